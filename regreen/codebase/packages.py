"""Whether a package's name can be trusted: popular, or dangerously like a popular one.

The lists of popular names are data of this package (`data/popular-*.txt.gz`, most used first). A name that
is not on them is only unknown, not bad: whether it exists is a question for an index.
"""

from __future__ import annotations

import gzip
import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

Ecosystem = Literal["pypi", "npm", "go", "cargo", "rubygems"]

_LONGEST_NAME = 214
# A typo is only worth a squatter's while for what many people install.
_TYPO_TARGETS = 4000
_AFFIX_TARGETS = 600
_SHORTEST_TYPO_TARGET = 5
_AFFIXES = {
    "pypi": ("python", "python3", "py", "py3", "pip", "lib", "official", "sdk"),
    "npm": ("node", "nodejs", "js", "npm", "lib", "official"),
}
_LOOKS_LIKE = str.maketrans("013458", "oleasb")
_PYPI_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?\Z", re.IGNORECASE)
_NPM_NAME = re.compile(r"(?:@[a-z0-9~*-][a-z0-9._~*-]*/)?[a-z0-9~_-][a-z0-9._~-]*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LookAlike:
    """A name that could be mistaken for `of`, and how it differs."""

    of: str
    how: Literal[
        "letters that look the same", "one letter off", "an affix", "another order", "a lost scope"
    ]


def normal(ecosystem: Ecosystem, name: str) -> str:
    """The name as its index compares it."""
    if ecosystem == "pypi":
        return re.sub(r"[-_.]+", "-", name[:_LONGEST_NAME]).lower()
    return name[:_LONGEST_NAME].lower()


def is_valid(ecosystem: Ecosystem, name: str) -> bool:
    """Whether the index could hold such a name at all."""
    if len(name) > _LONGEST_NAME:
        return False
    match ecosystem:
        case "pypi":
            return _PYPI_NAME.match(name) is not None
        case "npm":
            return _NPM_NAME.match(name) is not None
        case "go" | "cargo" | "rubygems":
            return bool(name) and name.isascii() and not any(c.isspace() for c in name)


@cache
def popular(ecosystem: Ecosystem) -> dict[str, int]:
    """The popular names with their rank, 0 the most used; empty where no list is shipped."""
    if ecosystem not in {"pypi", "npm"}:
        return {}
    raw = files("regreen.codebase").joinpath("data", f"popular-{ecosystem}.txt.gz").read_bytes()
    return {name: rank for rank, name in enumerate(gzip.decompress(raw).decode().split())}


def is_popular(ecosystem: Ecosystem, name: str) -> bool:
    """Whether the name is one that many projects depend on."""
    return normal(ecosystem, name) in popular(ecosystem)


def look_alike(ecosystem: Ecosystem, name: str) -> LookAlike | None:
    """The popular package that this name could be mistaken for; None for popular and for unlike names."""
    plain = normal(ecosystem, name)
    if not plain or plain in popular(ecosystem) or not popular(ecosystem):
        return None
    same = _skeletons(ecosystem).get(_skeleton(plain))
    if same is not None and same != plain:
        return LookAlike(same, "letters that look the same")
    return _typo(ecosystem, plain) or _dressed(ecosystem, plain)


def _skeleton(name: str) -> str:
    """What the eye takes a name for: confusable letters folded, separators dropped."""
    folded = unicodedata.normalize("NFKD", name)
    letters = "".join(_CYRILLIC.get(c, c) for c in folded if not unicodedata.combining(c))
    plain = re.sub(r"[-_.]+", "", letters.lower()).translate(_LOOKS_LIKE)
    return plain.replace("rn", "m").replace("vv", "w").replace("1", "l").replace("i", "l")


_CYRILLIC = dict(zip("аеорсухіјԁһӏոѕνΑΒΕΗΙΚΜΝΟΡΤΧ", "aeopcyxijdhlnsvabehikmnoptx", strict=True))


@cache
def _skeletons(ecosystem: Ecosystem) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in popular(ecosystem):
        found.setdefault(_skeleton(name), name)
    return found


def _typo(ecosystem: Ecosystem, name: str) -> LookAlike | None:
    """One insertion, deletion, substitution or swap away from a much-used name."""
    if len(name) < _SHORTEST_TYPO_TARGET - 1:
        return None
    near = _deletions(ecosystem)
    candidates = {target for key in _shortened(name) for target in near.get(key, ())}
    close = [
        target for target in candidates if _one_edit(name, target) and not _versions(name, target)
    ]
    if not close:
        return None
    ranks = popular(ecosystem)
    return LookAlike(min(close, key=ranks.__getitem__), "one letter off")


@cache
def _deletions(ecosystem: Ecosystem) -> dict[str, tuple[str, ...]]:
    """Every much-used name under itself and under itself less one letter: typos meet in the middle."""
    found: dict[str, tuple[str, ...]] = {}
    for name, rank in popular(ecosystem).items():
        if rank >= _TYPO_TARGETS:
            break
        if len(name) < _SHORTEST_TYPO_TARGET:
            continue
        for key in _shortened(name):
            found[key] = (*found.get(key, ()), name)
    return found


def _shortened(name: str) -> set[str]:
    return {name} | {name[:i] + name[i + 1 :] for i in range(len(name))}


def _one_edit(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1 or one == other:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    rest, target = one[start:], other[start:]
    if len(rest) == len(target):
        swapped = rest[1::-1] + rest[2:] == target
        return rest[1:] == target[1:] or swapped
    return rest[1:] == target or rest == target[1:]


def _versions(one: str, other: str) -> bool:
    """`psycopg2` and `psycopg3`, `pytest-5` and `pytest-6`: another version, no typo."""
    return re.sub(r"[\d.]+", "", one) == re.sub(r"[\d.]+", "", other) and one[:3] == other[:3]


def _dressed(ecosystem: Ecosystem, name: str) -> LookAlike | None:
    """A very much-used name with a word added, in another order, or without its scope."""
    ranks = popular(ecosystem)
    if "/" not in name and "-" in name:
        scope, _, rest = name.partition("-")
        if ecosystem == "npm" and ranks.get(f"@{scope}/{rest}", _TYPO_TARGETS) < _TYPO_TARGETS:
            return LookAlike(f"@{scope}/{rest}", "a lost scope")
    words = name.split("-")
    for affix in _AFFIXES.get(ecosystem, ()):
        for bare in (name.removeprefix(f"{affix}-"), name.removesuffix(f"-{affix}")):
            if bare != name and ranks.get(bare, _AFFIX_TARGETS) < _AFFIX_TARGETS:
                return LookAlike(bare, "an affix")
    if len(words) == 2:
        turned = f"{words[1]}-{words[0]}"
        if ranks.get(turned, _TYPO_TARGETS) < _TYPO_TARGETS:
            return LookAlike(turned, "another order")
    return None
