"""The part of a repository worth reading for a task, within a token budget: the call graph first, then BM25."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from regreen.codebase.graph import Graph
from regreen.codebase.language import PARSED, language_of
from regreen.codebase.sources import sources
from regreen.codebase.symbols import outline, words
from regreen.ports import Git

CHARACTERS_PER_TOKEN = 3.5
_TERMS = 24
_FILES = 60
_LONGEST = 120
_WINDOW, _STEP = 40, 30
_K1, _B = 1.2, 0.75
_SMALL_CONFIG = 6000


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a file (1-based lines) and why it is worth reading."""

    path: str
    start: int
    end: int
    text: str
    why: str

    @property
    def tokens(self) -> int:
        """About how many tokens it costs."""
        return tokens(self.text)


def tokens(text: str) -> int:
    """About how many tokens a text is."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def retrieve(
    git: Git,
    rev: str,
    *,
    query: str,
    changed: Sequence[tuple[str, str]],
    budget: int,
    graph: Graph | None = None,
    skip: Callable[[str], bool] = lambda _path: False,
) -> tuple[Chunk, ...]:
    """Chunks of a revision that bear on a task, best first, together at most `budget` tokens.

    Args:
        git: the repository.
        rev: the revision to read.
        query: what the task is about: changed lines, title, body.
        changed: path and dotted name of the definitions that the task touches.
        budget: tokens.
        graph: the revision's call graph; without one BM25 decides alone.
        skip: paths that are not wanted (those the reader already has, generated ones).
    """
    chosen: list[Chunk] = []
    left = budget
    linked = _linked(git, rev, changed, graph, skip) if graph else iter(())
    for chunk in _chain(linked, lambda: _ranked(git, rev, query, skip)):
        if left < 40:
            break
        if chunk.tokens <= left and not _overlaps(chunk, chosen):
            chosen.append(chunk)
            left -= chunk.tokens
    return tuple(chosen)


def _chain(first: Iterable[Chunk], then: Callable[[], Iterable[Chunk]]) -> Iterator[Chunk]:
    """The second part is not even looked for when the first fills the budget."""
    yield from first
    yield from then()


def chunks(path: str, text: str) -> Iterator[tuple[int, int]]:
    """Line ranges of a file's chunks: its functions, small configuration whole, else overlapping windows."""
    count = text.count("\n") + 1
    if language_of(path) == "config" and len(text) <= _SMALL_CONFIG:
        yield 1, count
        return
    if language_of(path) in PARSED:
        spans = [
            (d.start, d.end)
            for d in outline(path, text.encode("utf-8", "surrogateescape")).definitions
            if d.kind != "class" or d.end - d.start < _WINDOW
        ]
        outer = 0
        for start, end in spans:
            if end <= outer:
                continue  # inside the one before
            outer = end
            for at in range(start, end + 1, _LONGEST):
                yield at, min(end, at + _LONGEST - 1)
        if spans:
            return
    for at in range(1, max(2, count - (_WINDOW - _STEP) + 1), _STEP):
        yield at, min(count, at + _WINDOW - 1)


def terms(query: str) -> tuple[str, ...]:
    """The words of a query worth searching for: identifiers before common words, the most frequent first."""
    counted = words(query)
    for word in _STOP & counted.keys():
        del counted[word]
    return tuple(w for w, _ in counted.most_common(_TERMS))


def _linked(
    git: Git,
    rev: str,
    changed: Sequence[tuple[str, str]],
    graph: Graph,
    skip: Callable[[str], bool],
) -> Iterator[Chunk]:
    """Callers and callees, turn by turn, so that one busy function does not eat the budget."""
    rows: list[list[tuple[str, int, int, str]]] = []
    for path, name in changed:
        row = [
            (x.path, x.definition.start if x.definition else max(1, x.line - 5), x.definition.end if x.definition else x.line + 5, f"calls {name}")
            for x in graph.callers(path, name)[:8]
        ]  # fmt: skip
        row += [
            (x.path, x.definition.start, x.definition.end, f"called by {name}")
            for x in graph.callees(path, name)[:8]
            if x.definition
        ]
        rows.append(row)
    texts: dict[str, list[str] | None] = {}
    for turn in range(max(map(len, rows), default=0)):
        for row in rows:
            if turn < len(row) and not skip(row[turn][0]):
                yield from _cut(git, rev, row[turn], texts)


def _cut(
    git: Git, rev: str, place: tuple[str, int, int, str], texts: dict[str, list[str] | None]
) -> Iterator[Chunk]:
    path, start, end, why = place
    if path not in texts:
        data = git.show(rev, path)
        texts[path] = data.decode("utf-8", "replace").split("\n") if data is not None else None
    rows = texts[path]
    if rows:
        end = min(end, start + _LONGEST - 1, len(rows))
        yield Chunk(path, start, end, "\n".join(rows[start - 1 : end]), why)


def _ranked(git: Git, rev: str, query: str, skip: Callable[[str], bool]) -> Iterator[Chunk]:
    """BM25 in two steps: files by the terms they hold, then the chunks of the best files."""
    asked = terms(query)
    if not asked:
        return
    files, seen, frequency = _best_files(git, rev, asked, skip)
    weights = {t: math.log(1 + (seen - n + 0.5) / (n + 0.5)) for t, n in frequency.items()}
    found: list[tuple[float, Chunk]] = []
    for path, text in files:
        rows = text.split("\n")
        for start, end in chunks(path, text):
            body = "\n".join(rows[start - 1 : end])
            value = _score(words(body), weights)
            if value > 0:
                found.append((value, Chunk(path, start, end, body, "speaks of the same things")))
    found.sort(key=lambda row: (-row[0], row[1].path, row[1].start))
    for _, chunk in found:
        yield chunk


def _best_files(
    git: Git, rev: str, asked: Sequence[str], skip: Callable[[str], bool]
) -> tuple[list[tuple[str, str]], int, Counter[str]]:
    """The files that hold most of what is asked; only those are kept in memory."""
    needles = [(t, t.encode()) for t in asked]
    frequency: Counter[str] = Counter()
    best: list[tuple[float, str, bytes]] = []
    seen = 0
    for path, data in sources(git, rev, lambda p: language_of(p) is not None and not skip(p)):
        seen += 1
        lower = data.lower()
        held = [t for t, needle in needles if needle in lower]
        frequency.update(held)
        # rarity is not known yet: long words stand in for rare ones
        value = sum(len(t) for t in held) / (1 + math.log1p(len(data) / 4000))
        if held:
            heapq.heappush(best, (value, path, data))
            if len(best) > _FILES:
                heapq.heappop(best)
    return [(p, d.decode("utf-8", "replace")) for _, p, d in best], seen, frequency


def _score(counted: Counter[str], weights: dict[str, float]) -> float:
    length = sum(counted.values())
    return sum(
        weight * counted[t] * (_K1 + 1) / (counted[t] + _K1 * (1 - _B + _B * length / 150))
        for t, weight in weights.items()
        if counted[t]
    )


def _overlaps(chunk: Chunk, chosen: Iterable[Chunk]) -> bool:
    return any(
        c.path == chunk.path and c.start <= chunk.end and chunk.start <= c.end for c in chosen
    )


_STOP = frozenset(
    re.findall(
        r"\w+",
        """self cls def return import from class none true false and not for while with the this that
        else elif try except raise pass print str int list dict set len name value data path file test assert
        function const let var new null undefined public private static void string func err nil end use get
        add fix update when was are has have can does into only""",
    )
)
