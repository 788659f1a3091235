"""Prices."""

from __future__ import annotations

from prices import total


class TestTotal:
    def test_adds(self):
        assert total([1, 2]) == 3


def test_takes_the_discount_off():
    assert total([5], discount=2) == 3
