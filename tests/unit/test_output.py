"""Endless output in bounded memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from regreen.adapters.sandbox.process_watch import HeadAndTail


@given(st.binary(max_size=3000), st.integers(0, 1000), st.lists(st.integers(1, 700), max_size=20))
def test_what_fits_is_kept_whole_and_what_does_not_keeps_its_ends(
    data: bytes, limit: int, cuts: list[int]
) -> None:
    keeper = HeadAndTail(limit)
    rest = data
    for cut in cuts:
        keeper.add_chunk(rest[:cut])
        rest = rest[cut:]
    keeper.add_chunk(rest)
    kept = keeper.to_bytes()
    assert keeper.is_truncated == (len(data) > limit)
    assert len(kept) <= limit
    if not keeper.is_truncated:
        assert kept == data
    elif limit >= 200:
        assert kept[:50] == data[:50]
        assert kept[-50:] == data[-50:]


def test_a_gigabyte_takes_no_more_than_the_limit() -> None:
    keeper = HeadAndTail(1000)
    chunk = b"x" * 65536
    for _ in range(1024**3 // 65536):
        keeper.add_chunk(chunk)
    assert keeper.seen == 1024**3
    assert len(keeper.to_bytes()) <= 1000
