"""Holds what failed here against what failed in CI: the same tests, and not for want of a network."""

from __future__ import annotations

import re
from collections.abc import Sequence

from regreen.fixers.network import is_for_want_of_network
from regreen.models import Failure

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,16}\b")
_PLACE = re.compile(r"(?<=[\w)\]]):\d{1,7}(?::\d{1,7})?(?=$|: | )")
_UNREAD = frozenset({"error", "setup"})
"""What a log that no reader knew comes to: nothing can be held against it."""


def is_same(found: Sequence[Failure], expected: Sequence[Failure]) -> bool:
    """Whether a run shows what CI showed: one of its failing ids at least; where CI named none, its kind.

    Any failure will do where nothing is known of CI's.
    """
    if all(not one.test and one.kind in _UNREAD for one in expected):
        return True
    wanted, own = _ids(expected), _of_the_code(found, expected)
    if wanted:
        return bool(wanted & _ids(own))
    kinds = {one.kind for one in expected}
    return not found or bool(kinds & {one.kind for one in own})


def missing(found: Sequence[Failure], expected: Sequence[Failure]) -> tuple[str, ...]:
    """The ids that failed in CI and did not here, in CI's order."""
    own = _ids(_of_the_code(found, expected))
    lacking = {one.test: None for one in expected if one.test and plain(one.test) not in own}
    return tuple(lacking)


def plain(test: str) -> str:
    """An id without what differs from run to run, and from a pull request's head to its merge.

    That is the address of an object that a parameter is, and the line of a finding.
    """
    bare = _PLACE.sub("", test) if ":" in test else test
    return _ADDRESS.sub("0x", bare) if "0x" in bare else bare


def _ids(failures: Sequence[Failure]) -> set[str]:
    return {plain(one.test) for one in failures if one.test}


def _of_the_code(found: Sequence[Failure], expected: Sequence[Failure]) -> list[Failure]:
    """What failed here for CI's reason: a test that only missed the network is not the one that CI saw fail."""
    there = {plain(one.test) for one in expected if is_for_want_of_network(one.message)}
    return [
        one for one in found if plain(one.test) in there or not is_for_want_of_network(one.message)
    ]
