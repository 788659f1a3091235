"""The part of a repository worth reading for a task, within a token budget, by BM25."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from regreen.code.file_languages import has_outline, language_of
from regreen.code.symbols import count_words, read_outline, read_sources
from regreen.domain.ports import Git

CHARACTERS_PER_TOKEN = 3.5
_MAX_TERMS = 24
_MAX_FILES = 60
_MAX_CHUNK_LINES = 120
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
    def token_count(self) -> int:
        """About how many tokens it costs."""
        return estimate_tokens(self.text)


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def retrieve_chunks(
    git: Git,
    rev: str,
    *,
    query: str,
    budget: int,
    skip: Callable[[str], bool] = lambda _path: False,
) -> tuple[Chunk, ...]:
    """Chunks of a revision that bear on a task, best first, together at most `budget` tokens.

    Args:
        git: the repository.
        rev: the revision to read.
        query: what the task is about: changed lines, title, body.
        budget: tokens.
        skip: paths that are not wanted (those the reader already has, generated ones).
    """
    chosen: list[Chunk] = []
    left = budget
    for chunk in _rank_chunks(git, rev, query, skip):
        if left < 40:
            break
        if chunk.token_count <= left and not _overlaps_chosen(chunk, chosen):
            chosen.append(chunk)
            left -= chunk.token_count
    return tuple(chosen)


def chunk_ranges(path: str, text: str) -> Iterator[tuple[int, int]]:
    """Line ranges of a file's chunks: its functions, small configuration whole, else overlapping windows."""
    count = text.count("\n") + 1
    if language_of(path) == "config" and len(text) <= _SMALL_CONFIG:
        yield 1, count
        return
    if has_outline(path):
        spans = [
            (d.start, d.end)
            for d in read_outline(path, text.encode("utf-8", "surrogateescape")).definitions
            if d.kind != "class" or d.end - d.start < _WINDOW
        ]
        outer = 0
        for start, end in spans:
            if end <= outer:
                continue  # inside the one before
            outer = end
            for at in range(start, end + 1, _MAX_CHUNK_LINES):
                yield at, min(end, at + _MAX_CHUNK_LINES - 1)
        if spans:
            return
    for at in range(1, max(2, count - (_WINDOW - _STEP) + 1), _STEP):
        yield at, min(count, at + _WINDOW - 1)


def query_terms(query: str) -> tuple[str, ...]:
    """The words of a query worth searching for: identifiers before common words, the most frequent first."""
    counted = count_words(query)
    for word in _STOP_WORDS & counted.keys():
        del counted[word]
    return tuple(w for w, _ in counted.most_common(_MAX_TERMS))


def _rank_chunks(git: Git, rev: str, query: str, skip: Callable[[str], bool]) -> Iterator[Chunk]:
    """BM25 in two steps: files by the terms they hold, then the chunks of the best files."""
    asked = query_terms(query)
    if not asked:
        return
    files, known, frequency = _best_files(git, rev, asked, skip)
    weights = {t: math.log(1 + (known - n + 0.5) / (n + 0.5)) for t, n in frequency.items()}
    found: list[tuple[float, Chunk]] = []
    for path, text in files:
        rows = text.split("\n")
        for start, end in chunk_ranges(path, text):
            body = "\n".join(rows[start - 1 : end])
            value = _score_chunk(count_words(body), weights)
            if value > 0:
                found.append((value, Chunk(path, start, end, body, "speaks of the same things")))
    found.sort(key=lambda row: (-row[0], row[1].path, row[1].start))
    for _, chunk in found:
        yield chunk


def _best_files(
    git: Git, rev: str, asked: Sequence[str], skip: Callable[[str], bool]
) -> tuple[list[tuple[str, str]], int, Counter[str]]:
    """The files with the most words of the query; only those are kept in memory."""
    needles = [(t, t.encode()) for t in asked]
    frequency: Counter[str] = Counter()
    best: list[tuple[float, str, bytes]] = []
    known = 0
    for path, data in read_sources(git, rev, lambda p: language_of(p) is not None and not skip(p)):
        known += 1
        lower = data.lower()
        held = [t for t, needle in needles if needle in lower]
        frequency.update(held)
        # rarity is not known yet: long words stand in for rare ones
        value = sum(len(t) for t in held) / (1 + math.log1p(len(data) / 4000))
        if held:
            heapq.heappush(best, (value, path, data))
            if len(best) > _MAX_FILES:
                heapq.heappop(best)
    return [(p, d.decode("utf-8", "replace")) for _, p, d in best], known, frequency


def _score_chunk(counted: Counter[str], weights: dict[str, float]) -> float:
    length = sum(counted.values())
    return sum(
        weight * counted[t] * (_K1 + 1) / (counted[t] + _K1 * (1 - _B + _B * length / 150))
        for t, weight in weights.items()
        if counted[t]
    )


def _overlaps_chosen(chunk: Chunk, chosen: Iterable[Chunk]) -> bool:
    return any(
        c.path == chunk.path and c.start <= chunk.end and chunk.start <= c.end for c in chosen
    )


_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """self cls def return import from class none true false and not for while with the this that
        else elif try except raise pass print str int list dict set len name value data path file test assert
        function const let var new null undefined public private static void string func err nil end use get
        add fix update when was are has have can does into only""",
    )
)
