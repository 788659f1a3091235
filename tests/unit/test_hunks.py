from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regreen.code.hunks import (
    ChangePiece,
    apply_pieces,
    diff_file,
    diff_files,
    split_into_pieces,
    split_pieces_into_lines,
    undo_all_pieces,
)
from regreen.domain.errors import AnalysisFailed
from regreen.fixers.minimization import minimize_in_batches

LINES = st.lists(st.sampled_from(["a", "b", "c", "", " d", "é"]), max_size=12)


@settings(deadline=None)
@given(LINES, LINES)
def test_all_pieces_make_the_whole_change(one: list[str], other: list[str]) -> None:
    before, after = {"f": "\n".join(one)}, {"f": "\n".join(other)}
    found = split_into_pieces(before, after)
    changed = apply_pieces(before, after, found)
    assert changed.get("f", before["f"]) == after["f"]
    assert apply_pieces(before, after, []) == {}


@settings(deadline=None)
@given(st.sets(st.integers(0, 15), min_size=1), st.integers(16, 30))
def test_ddmin_finds_what_is_needed_and_no_more(needed: set[int], size: int) -> None:
    everything = [
        ChangePiece("f", number, number + 1, number, number + 1) for number in range(size)
    ]

    def test(options: Sequence[Sequence[ChangePiece]]) -> list[bool]:
        return [needed <= {piece.i1 for piece in option} for option in options]

    assert {piece.i1 for piece in minimize_in_batches(everything, test)} == needed


@settings(deadline=None)
@given(LINES, LINES)
def test_pieces_cut_into_lines_still_make_the_whole_change(
    one: list[str], other: list[str]
) -> None:
    before, after = {"f": "\n".join(one) + "\n"}, {"f": "\n".join(other) + "\n"}
    lines = split_pieces_into_lines(split_into_pieces(before, after), before, after)
    assert all(line.line_count == 1 for line in lines)
    assert apply_pieces(before, after, lines).get("f", before["f"]) == after["f"]


def test_a_line_is_paired_with_the_one_most_like_it() -> None:
    before = {"f": "def f(size):\n    if size > 10:\n        return None\n"}
    after = {"f": "def f(size):\n    log(size)\n    if size >= 10:\n        return 0\n"}
    cut = split_pieces_into_lines(split_into_pieces(before, after), before, after)
    alone = [apply_pieces(before, after, [line])["f"] for line in cut]
    assert "def f(size):\n    if size >= 10:\n        return None\n" in alone
    assert "def f(size):\n    log(size)\n    if size > 10:\n        return None\n" in alone


def test_what_still_stands_is_undone_where_it_moved_to() -> None:
    before, after = "a\nb\nc\nd\n", "a\nB\nc\nd\n"
    now = "new\na\nB\nc\nD\n"
    assert undo_all_pieces(now, before, after) == "new\na\nb\nc\nD\n"
    assert undo_all_pieces("something else\n", before, after) == "something else\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a\nb", "a\nb\n"),
        ("a\nb\n", "a\nb"),
        ("a\r\nb\r\n", "a\r\nc\r\n"),
        ("a\x0cb\nc\n", "a\x0cb\nd\n"),
        (None, "new\n"),
        ("old\n", None),
        (None, "no end"),
        ("", "x\n"),
        ("x\n", ""),
        (
            "\n".join(map(str, range(100))) + "\n",
            "\n".join(str(n) if n % 30 else "x" for n in range(100)) + "\n",
        ),
    ],
)
def test_git_applies_what_we_write(tmp_path: Path, old: str | None, new: str | None) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    target = tmp_path / "a dir" / "f.txt"
    target.parent.mkdir()
    if old is not None:
        target.write_bytes(old.encode())
    patch = diff_file(
        "a dir/f.txt",
        old.encode() if old is not None else None,
        new.encode() if new is not None else None,
    )
    subprocess.run(["git", "-C", str(tmp_path), "apply", "-"], input=patch.encode(), check=True)
    assert (target.read_bytes().decode() if target.exists() else None) == new


def test_files_that_stay_are_left_out() -> None:
    assert diff_files({"a": b"1\n", "b": b"2\n"}, {"a": b"1\n", "b": b"2\n"}) == ""


def test_all_that_stands_is_taken_off_once_and_that_comes_to_an_end() -> None:
    assert undo_all_pieces("a\nb\nd\n", "a\nb\nc\n", "a\nb\n") == "a\nb\nc\nd\n"
    before, after = "a\nb\nc\nd\ne\nf\ng\nh\n", "a\nB\nc\nd\ne\nf\nG\nh\n"
    assert undo_all_pieces("new\n" + after, before, after) == "new\n" + before
    assert undo_all_pieces("other\n", before, after) == "other\n"


def test_a_file_that_takes_too_long_to_compare_is_one_hunk_of_a_patch(tmp_path: Path) -> None:
    # every other line stays: each of them is looked for among all that follow
    shared = range(0, 30_000, 2)
    old, new = ("".join(f"line {n}\n{sign} {n}\n" for n in shared) for sign in "xy")
    began = time.process_time()
    patch = diff_file("f.txt", f"first\n{old}last\n".encode(), f"first\n{new}last\n".encode())
    assert time.process_time() - began < 3
    assert patch.count("@@ -") == 1
    (tmp_path / "f.txt").write_text(f"first\n{old}last\n")
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), check=True)
    assert (tmp_path / "f.txt").read_text() == f"first\n{new}last\n"


def test_lines_that_are_all_alike_are_not_compared_for_ever() -> None:
    text = "x\n" * 15_000
    with pytest.raises(AnalysisFailed, match="took more than 5 s of CPU"):
        split_into_pieces({"a.py": text}, {"a.py": f"{text}y\n"})
