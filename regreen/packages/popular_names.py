"""Whether a package's name is popular, or easily confused with a popular one.

The lists of popular names are data of this package (`data/popular-*.txt.gz`, most used first). A name that
is missing there is only unknown, not bad: an index knows whether it exists.
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

_MAX_NAME_CHARACTERS = 214
# Squatters imitate names that many people install.
_TYPO_TARGETS = 4000
_AFFIX_TARGETS = 600
_SHORTEST_TYPO_TARGET = 5
_COMMON_AFFIXES = {
    "pypi": ("python", "python3", "py", "py3", "pip", "lib", "official", "sdk"),
    "npm": ("node", "nodejs", "js", "npm", "lib", "official"),
}
_LOOKS_LIKE = str.maketrans("013458", "oleasb")
_PYPI_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?\Z", re.IGNORECASE)
_NPM_NAME = re.compile(r"(?:@[a-z0-9~*-][a-z0-9._~*-]*/)?[a-z0-9~_-][a-z0-9._~-]*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LookAlike:
    """A name that could be confused with `of`, and the difference."""

    of: str
    how: Literal[
        "letters that look the same", "one letter off", "an affix", "another order", "a lost scope"
    ]


def normalise_name(ecosystem: Ecosystem, name: str) -> str:
    """The name in the normalised form of its index."""
    if ecosystem == "pypi":
        return re.sub(r"[-_.]+", "-", name[:_MAX_NAME_CHARACTERS]).lower()
    return name[:_MAX_NAME_CHARACTERS].lower()


def is_valid_package_name(ecosystem: Ecosystem, name: str) -> bool:
    """Whether the index could contain such a name at all."""
    if len(name) > _MAX_NAME_CHARACTERS:
        return False
    match ecosystem:
        case "pypi":
            return _PYPI_NAME.match(name) is not None
        case "npm":
            return _NPM_NAME.match(name) is not None
        case "go" | "cargo" | "rubygems":
            return bool(name) and name.isascii() and not any(c.isspace() for c in name)


@cache
def popular_names(ecosystem: Ecosystem) -> dict[str, int]:
    """The popular names with their rank, 0 the most used; empty if no list is shipped."""
    if ecosystem not in {"pypi", "npm"}:
        return {}
    raw = files("regreen.packages").joinpath("data", f"popular-{ecosystem}.txt.gz").read_bytes()
    names = gzip.decompress(raw).decode().split()
    return {normalise_name(ecosystem, name): rank for rank, name in enumerate(names)}


def is_popular(ecosystem: Ecosystem, name: str) -> bool:
    """Whether many projects depend on the name."""
    return normalise_name(ecosystem, name) in popular_names(ecosystem)


@cache
def _popular_scopes(ecosystem: Ecosystem) -> frozenset[str]:
    return frozenset(name.partition("/")[0] for name in popular_names(ecosystem) if "/" in name)


_SEPARATORS = re.compile(r"[-_.]+")


def find_confusable_package(ecosystem: Ecosystem, name: str) -> LookAlike | None:
    """The popular package that this name could be confused with; None for popular and for distinct names."""
    plain = normalise_name(ecosystem, name)
    if not plain or plain in popular_names(ecosystem) or not popular_names(ecosystem):
        return None
    if plain.partition("/")[0] in _popular_scopes(ecosystem):
        return None  # only the scope's owner publishes there
    same = _names_by_skeleton(ecosystem).get(_fold_lookalikes(plain))
    # Both indexes refuse new names that differ from a known one by separators alone, so one that parts the words of a
    # known one is as old; one that joins them is what people mistype.
    if same is not None and same == _SEPARATORS.sub("", plain):
        return None
    if same is not None:
        return LookAlike(same, "letters that look the same")
    return _find_typo(ecosystem, plain) or _find_name_with_affix(ecosystem, plain)


def _fold_lookalikes(name: str) -> str:
    """The visual form of a name: confusable letters folded, separators dropped."""
    folded = unicodedata.normalize("NFKD", name)
    letters = "".join(_CONFUSABLE_LETTERS.get(c, c) for c in folded if not unicodedata.combining(c))
    plain = _SEPARATORS.sub("", letters.lower()).translate(_LOOKS_LIKE)
    return plain.replace("rn", "m").replace("vv", "w").replace("1", "l").replace("i", "l")


_CONFUSABLE_LETTERS = dict(
    zip("аеорсухіјԁһӏոѕνΑΒΕΗΙΚΜΝΟΡΤΧ", "aeopcyxijdhlnsvabehikmnoptx", strict=True)
)


@cache
def _names_by_skeleton(ecosystem: Ecosystem) -> dict[str, str]:
    names: dict[str, str] = {}
    for name in popular_names(ecosystem):
        names.setdefault(_fold_lookalikes(name), name)
    return names


def _find_typo(ecosystem: Ecosystem, name: str) -> LookAlike | None:
    """A much-used name at a distance of one insertion, deletion, substitution or swap."""
    if len(name) < _SHORTEST_TYPO_TARGET - 1:
        return None
    near = _names_by_deletion(ecosystem)
    candidates = {target for key in _delete_one_letter(name) for target in near.get(key, ())}
    close = [
        target
        for target in candidates
        if _is_one_edit(name, target) and not _differ_by_version(name, target)
    ]
    if not close:
        return None
    ranks = popular_names(ecosystem)
    return LookAlike(min(close, key=ranks.__getitem__), "one letter off")


@cache
def _names_by_deletion(ecosystem: Ecosystem) -> dict[str, tuple[str, ...]]:
    """Every much-used name under itself and under each form without one letter, for looking up typos."""
    names: dict[str, tuple[str, ...]] = {}
    for name, rank in popular_names(ecosystem).items():
        if rank >= _TYPO_TARGETS:
            break
        if len(name) < _SHORTEST_TYPO_TARGET:
            continue
        for key in _delete_one_letter(name):
            names[key] = (*names.get(key, ()), name)
    return names


def _delete_one_letter(name: str) -> set[str]:
    return {name} | {name[:i] + name[i + 1 :] for i in range(len(name))}


def _is_one_edit(first: str, second: str) -> bool:
    if abs(len(first) - len(second)) > 1 or first == second:
        return False
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start]:
        start += 1
    rest, target = first[start:], second[start:]
    if len(rest) == len(target):
        swapped = rest[1::-1] + rest[2:] == target
        return rest[1:] == target[1:] or swapped
    return rest[1:] == target or rest == target[1:]


def _differ_by_version(first: str, second: str) -> bool:
    """`psycopg2` and `psycopg3`, `pytest-5` and `pytest-6`: another version, not a typo."""
    return re.sub(r"[\d.]+", "", first) == re.sub(r"[\d.]+", "", second) and first[:3] == second[:3]


def _find_name_with_affix(ecosystem: Ecosystem, name: str) -> LookAlike | None:
    """A very popular name with a word added, in another order, or without its scope."""
    ranks = popular_names(ecosystem)
    if "/" not in name and "-" in name:
        scope, _, rest = name.partition("-")
        if ecosystem == "npm" and ranks.get(f"@{scope}/{rest}", _TYPO_TARGETS) < _TYPO_TARGETS:
            return LookAlike(f"@{scope}/{rest}", "a lost scope")
    words = name.split("-")
    for affix in _COMMON_AFFIXES.get(ecosystem, ()):
        for bare in (name.removeprefix(f"{affix}-"), name.removesuffix(f"-{affix}")):
            if bare != name and ranks.get(bare, _AFFIX_TARGETS) < _AFFIX_TARGETS:
                return LookAlike(bare, "an affix")
    if len(words) == 2:
        turned = f"{words[1]}-{words[0]}"
        if ranks.get(turned, _TYPO_TARGETS) < _TYPO_TARGETS:
            return LookAlike(turned, "another order")
    return None
