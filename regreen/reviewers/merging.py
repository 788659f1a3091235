"""Claims of one cause become one: those of which that is sure; a second reader tells the rest apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from regreen.reviewers.claims import Example, Said

_NEAR = 3
_SAME_CAUSE = 0.6
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}|[0-9]+")
_COMMON = frozenset(
    """the and for with that this not but when will from are instead does should which has have was its into value
    values return returns returned function method line code argument arguments called call calls""".split()  # noqa: SIM905 - reads better without quotes
)


def merge(said: Iterable[Said]) -> tuple[Said, ...]:
    """One claim where several readers surely say the same of the same place; most readers first, then the surest.

    What one reader hands in as two causes stays two. The likest pair is joined first, so that the order in which
    the readers answered decides nothing. What is not surely the same is left to the second reader to tell apart.
    """
    merged: list[Said] = []
    for claim in said:
        twin = next((i for i, m in enumerate(merged) if _repeated(m, claim)), None)
        if twin is None:
            merged.append(claim)
    while pair := _likest(merged):
        one, other = pair
        merged = [m for m in merged if m is not one and m is not other]
        merged.append(joined(one, other))
    return tuple(sorted(merged, key=lambda m: (-len(m.readers), -m.sure)))


def joined(one: Said, other: Said) -> Said:
    """Two claims of one cause as one: the surer's words, and what the other saw beside it."""
    best, less = (one, other) if one.sure >= other.sure else (other, one)
    if less.anchored and not best.anchored:
        best = replace(best, path=less.path, side=less.side, line=less.line, changed=less.changed, shows=less.shows, anchored=True)  # fmt: skip
    same_line = (best.path, best.line, best.side) == (less.path, less.line, less.side)
    borrowed = best.replacement is None and same_line
    examples = (*best.others, Example(less.input, less.happens), *less.others)
    mine = " ".join(best.input.split())
    return replace(
        best,
        readers=tuple(dict.fromkeys(one.readers + other.readers)),
        replacement=less.replacement if borrowed else best.replacement,
        last=less.last if borrowed else best.last,
        others=tuple(dict.fromkeys(o for o in examples if " ".join(o.input.split()) != mine)),
    )


def beside(said: Said) -> tuple[Example, ...]:
    """The examples of a claim that say more than its own."""
    return tuple(o for o in said.others if _alike(said.input, o.input) < _SAME_CAUSE)


def _repeated(one: Said, other: Said) -> bool:
    """Whether a reader wrote the same claim twice."""
    return (one.readers, one.at, one.title) == (other.readers, other.at, other.title)


def _likest(said: Sequence[Said]) -> tuple[Said, Said] | None:
    """The two claims of different readers that most surely are the same; None where none are."""
    best, found = 0.0, None
    for i, one in enumerate(said):
        for other in said[i + 1 :]:
            if not set(one.readers) & set(other.readers) and (like := _likeness(one, other)) > best:
                best, found = like, (one, other)
    return found


def _likeness(one: Said, other: Said) -> float:
    """How much two claims speak of one cause, 0 where that is not sure.

    Two claims on one line share the words of its code whatever they say of it: the input that fails, or the edit
    that mends it, has to be the same too. Where these are put differently, all that the two say beside the words of
    the line itself has to be alike, and the edits must have something in common. (Of 107 pairs of claims on 87 public
    pull requests, 73 of them the same by a second reader's word, the first finds 28, both together 40, and neither
    joined two that it kept apart.)
    """
    apart = abs(one.at[2] - other.at[2])
    if one.at[:2] != other.at[:2] or apart > _NEAR * 3:
        return 0.0
    outcome = _overlap(_outcome(one), _outcome(other))
    cause = max(
        _overlap(f"{one.mend} {one.replacement or ''}", f"{other.mend} {other.replacement or ''}"),
        _alike(one.input, other.input),
    )
    if outcome >= (0.34 if apart <= _NEAR else 0.5) and cause >= _SAME_CAUSE:
        return outcome + cause - apart / 100
    line = f"{one.quote} {other.quote}"
    told = _overlap(_whole(one), _whole(other), line)
    outcome = _overlap(_outcome(one), _outcome(other), line)
    if told < 0.45 or outcome < 0.4 or _overlap(one.mend, other.mend, line) < 0.25:
        return 0.0
    return told + outcome - apart / 100


def _outcome(said: Said) -> str:
    return f"{said.title} {said.happens}"


def _whole(said: Said) -> str:
    return f"{said.title} {said.input} {said.happens} {said.should} {said.mend}"


def _overlap(one: str, other: str, beside: str = "") -> float:
    """Share of the shorter text's words that the other has too; those of `beside` tell nothing."""
    known = _words(beside)
    a, b = _words(one) - known, _words(other) - known
    return len(a & b) / min(len(a), len(b)) if a and b else 0.0


def _alike(one: str, other: str) -> float:
    """Share of all their words that two texts have in common."""
    a, b = _words(one), _words(other)
    return len(a & b) / len(a | b) if a and b else 0.0


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _COMMON
