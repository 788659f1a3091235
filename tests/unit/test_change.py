"""A change as a value: what it says of its lines, and where a comment may stand."""

from __future__ import annotations

import dataclasses

import pytest

from regreen.code.diff import (
    SHOWN_CHARACTERS,
    SHOWN_LINES,
    SUBMODULE,
    SYMLINK,
    Change,
    DiffLine,
    FileChange,
    Hunk,
    parse,
)

# old:  1 a, 2 b, 3 c, 4 d, 5 e        new: 1 a, 2 B, 3 BB, 4 c, 5 e
DIFF = """diff --git a/x b/x
--- a/x
+++ b/x
@@ -1,5 +1,5 @@ def f():
 a
-b
+B
+BB
 c
-d
 e
@@ -20,2 +20,1 @@
-q
 r
"""


@pytest.fixture
def file() -> FileChange:
    (found,) = parse(DIFF).files
    return found


def test_a_file_is_exactly_what_its_diff_says() -> None:
    text = "--- a/x\n+++ b/x\n@@ -1 +1 @@ top\n-a\n+b\n\\ No newline at end of file\n"
    rows = (DiffLine("-", 1, None, "a"), DiffLine("+", None, 1, "b", newline=False))
    assert parse(text) == Change(
        (FileChange("x", "x", "modified", (Hunk(1, 1, 1, 1, "top", rows),)),)
    )


def test_values_cannot_be_changed(file: FileChange) -> None:
    hunk = file.hunks[0]
    for value, field in (
        (file, "path"), (hunk, "section"), (hunk.lines[0], "text"), (Change((file,)), "files"),
    ):  # fmt: skip
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field, "y")
    assert not hasattr(hunk, "__dict__")
    assert not hasattr(hunk.lines[0], "__dict__")


def test_modes_say_what_a_file_is() -> None:
    made = FileChange("x", "x", "added", new_mode="100755")
    gone = FileChange("x", "x", "deleted", old_mode=SYMLINK)
    assert gone.is_symlink
    assert not gone.is_submodule
    assert FileChange("x", "x", "added", new_mode=SUBMODULE).is_submodule
    assert not made.is_symlink


def test_what_is_added_and_removed_is_counted(file: FileChange) -> None:
    assert (file.added_lines, file.removed_lines, file.changed_line_count) == (
        (2, 3),
        (2, 4, 20),
        5,
    )
    assert Change((file, file)).changed_line_count == 10


@pytest.mark.parametrize(
    ("start", "end", "touched"),
    [(1, 1, False), (1, 2, True), (2, 2, True), (3, 3, True), (3, 9, True), (4, 9, False)],
)
def test_a_range_is_touched_when_it_holds_an_added_line(
    file: FileChange, start: int, end: int, touched: bool
) -> None:
    assert file.touches_lines(start, end) is touched


def test_a_file_without_additions_is_touched_nowhere() -> None:
    assert FileChange("x", "x", "deleted").touches_lines(1, 100) is False


def of_rows(count: int, size: int) -> FileChange:
    rows = tuple(DiffLine("+", None, n + 1, "x" * size) for n in range(count))
    return FileChange("x", "x", "added", (Hunk(0, 0, 1, count, "", rows),))


def test_a_diff_is_shown_up_to_githubs_limits() -> None:
    assert (SHOWN_LINES, SHOWN_CHARACTERS) == (20_000, 500_000)
    assert not of_rows(20_000, 1).too_large
    assert of_rows(20_001, 1).too_large
    assert not of_rows(5, 99_998).too_large  # each line has its mark and its newline besides
    assert of_rows(5, 99_999).too_large
    assert not of_rows(1, 499_998).too_large
    assert of_rows(1, 499_999).too_large


@pytest.mark.parametrize(
    ("start", "line", "fitted"),
    [(1, 5, (1, 5)), (5, 9, (5, 5)), (6, 19, None), (0, 1, (1, 1)), (3, 20, (20, 20)), (21, 30, None)],
)  # fmt: skip
def test_a_range_is_fitted_into_what_is_shown_afterwards(
    file: FileChange, start: int, line: int, fitted: tuple[int, int] | None
) -> None:
    assert file.fit_to_hunk(start, line, "RIGHT") == fitted


def test_a_range_is_fitted_into_what_was_shown_before(file: FileChange) -> None:
    assert file.fit_to_hunk(5, 9, "LEFT") == (5, 5)
    assert file.fit_to_hunk(20, 30, "LEFT") == (20, 21)
    assert file.fit_to_hunk(6, 19, "LEFT") is None
    longer = FileChange("x", "x", "modified", (Hunk(1, 1, 1, 4, "", ()),))
    assert longer.fit_to_hunk(2, 4, "LEFT") is None
    assert longer.fit_to_hunk(2, 4, "RIGHT") == (2, 4)


def test_a_suggestion_may_touch_a_removed_line_but_not_span_one(file: FileChange) -> None:
    assert file.can_suggest(2, 3) is True  # the old line stands above
    assert file.can_suggest(4, 4) is True  # the next old line stands below
    assert file.can_suggest(4, 5) is False
    assert file.can_suggest(1, 2) is False
    assert file.can_suggest(20, 20) is True
    assert file.can_suggest(5, 20) is False
    assert file.can_suggest(6, 6) is False


def test_a_change_knows_where_a_comment_may_stand(file: FileChange) -> None:
    change = Change((file,))
    assert change.can_anchor("x", 2, 3) is True
    assert change.can_anchor("x", 21, 21) is False
    assert change.can_anchor("x", 21, 21, "LEFT") is True
    assert change.can_anchor("y", 1, 1) is False


def test_only_an_added_file_is_known_whole() -> None:
    added = "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b\n"
    assert parse(added).added_file_text("n") == "a\nb\n"
    assert parse(added + "\\ No newline at end of file\n").added_file_text("n") == "a\nb"
    assert parse(added).added_file_text("m") is None
    assert parse(DIFF).added_file_text("x") is None
    row = (Hunk(0, 0, 1, 1, "", (DiffLine("+", None, 1, "a"),)),)
    for file in (
        FileChange("n", "n", "added", row, binary=True),
        FileChange("n", "n", "added", row, problem="cut off"),
    ):
        assert Change((file,)).added_file_text("n") is None


def test_numbers_go_on_behind_hunks_that_only_add_or_only_remove() -> None:
    (file,) = parse(
        "--- a/x\n+++ b/x\n@@ -2,0 +3,2 @@\n+p\n+q\n@@ -8,3 +9,0 @@\n-r\n-s\n-t\n"
    ).files
    assert file.fit_to_hunk(1, 9, "LEFT") == (8, 9)
    assert file.fit_to_hunk(1, 9, "RIGHT") == (3, 4)


def test_a_suggestion_counts_in_the_lines_afterwards(file: FileChange) -> None:
    assert file.can_suggest(21, 21) is False  # shown, but only as it was before
    (longer,) = parse("--- a/x\n+++ b/x\n@@ -1,1 +1,3 @@\n a\n+b\n+c\n").files
    assert longer.can_suggest(2, 3) is True
