"""A diff handler at its edges: counts that do not fit, hunks that touch or overlap, headers that stop halfway."""

from __future__ import annotations

import pytest

from regreen.code.diff import apply_suggestion, parse, unquote_path

GIT = "diff --git a/x b/x\n--- a/x\n+++ b/x\n"
FINE = "diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"
PLAIN = "--- a/x\n+++ b/x\n"
SHORT = "the hunk at line 1 does not have the lines its header promises"


@pytest.mark.parametrize(
    ("hunks", "problem"),
    [
        ("@@ -1 +1,2 @@\n a\n b\n", SHORT),
        ("@@ -1,2 +1 @@\n a\n b\n", SHORT),
        ("@@ -1,2 +1 @@\n+a\n+b\n-c\n-d\n", SHORT),
        ("@@ -1 +1,2 @@\n-a\n-b\n+c\n+d\n", SHORT),
        ("@@ -1 +1 @@\nXa\n", SHORT),
        ("@@ -1 +1 @@\n-a\n+b\n@@ -5 +1 @@\n-c\n+d\n", "its hunks overlap at line 1"),
        ("@@ -1 +1 @@\n-a\n+b\n@@ -1 +5 @@\n-c\n+d\n", "its hunks overlap at line 5"),
        ("@@ -1,2 +1 @@\n-a\n-b\n+c\n@@ -2 +2 @@\n-c\n+d\n", "its hunks overlap at line 2"),
        ("@@ -1 +1,2 @@\n-a\n+b\n+c\n@@ -2 +2 @@\n-c\n+d\n", "its hunks overlap at line 2"),
        ("@@ what\n-a\n+b\n", "hunk header '@@ what' cannot be read"),
        (f"@@ {'x' * 80}\n-a\n+b\n", f"hunk header '@@ {'x' * 57}' cannot be read"),
        (
            "@@ -1 +1 @@\n-a\n+b\n@@ -5 +5,3 @@\n-c\n+d\n+e\n+f\n@@ -9 +6 @@\n-g\n+h\n",
            "its hunks overlap at line 6",
        ),
        (
            "@@ -1 +1 @@\n-a\n+b\n@@ -5,3 +5 @@\n-c\n-d\n-e\n+f\n@@ -6 +9 @@\n-g\n+h\n",
            "its hunks overlap at line 9",
        ),
    ],
)
def test_a_hunk_that_cannot_be_right_is_named(hunks: str, problem: str) -> None:
    broken, fine = parse(GIT + hunks + FINE).files
    assert (broken.problem, broken.hunks) == (problem, ())
    assert (fine.path, fine.added_lines) == ("y", (1,))


def test_hunks_may_touch_each_other() -> None:
    (file,) = parse(GIT + "@@ -1 +1 @@\n-a\n+b\n@@ -2 +2 @@\n-c\n+d\n").files
    assert (file.problem, file.added_lines, file.removed_lines) == (None, (1, 2), (1, 2))


def test_what_ends_without_a_newline_is_told_on_either_side() -> None:
    end = "\\ No newline at end of file\n"
    (file,) = parse(f"{GIT}@@ -1 +1 @@\n-a\n{end}+b\n{end}@@ -5 +5 @@\n-c\n+d\n{end}").files
    assert [x.newline for hunk in file.hunks for x in hunk.lines] == [False, False, True, False]
    (empty,) = parse(f"{GIT}@@ -0,0 +0,0 @@\n{end}").files
    assert [hunk.lines for hunk in empty.hunks] == [()]


def test_after_damage_a_plain_diff_goes_on_at_the_next_header() -> None:
    broken, fine = parse(
        f"{PLAIN}@@ -1 +1 @@\n a\n b\n{PLAIN.replace('x', 'y')}@@ -1 +1 @@\n-a\n+b\n"
    ).files
    assert (broken.problem is None, fine.path, fine.added_lines) == (True, "y", (1,))
    cut, fine = parse(
        f"{PLAIN}@@ -1,9 +1 @@\n+a\n+b\n{PLAIN.replace('x', 'y')}@@ -1 +1 @@\n-a\n+b\n"
    ).files
    assert (cut.problem, fine.path) == (SHORT, "y")


def test_after_damage_content_of_a_git_diff_starts_no_file() -> None:
    inside = "@@ -1 +1 @@\nX\n--- a/secret\n+++ b/secret\n@@ -1 +1 @@\n-a\n+b\n"
    broken, fine = parse(GIT + inside + FINE).files
    assert (broken.problem, fine.path) == (SHORT, "y")


@pytest.mark.parametrize("before", ["", "one\n", "one\ntwo\n", "one\ntwo\nthree\n"])
def test_words_before_a_diff_hide_nothing_of_it(before: str) -> None:
    assert [f.path for f in parse(before + FINE).files] == ["y"]
    assert [f.path for f in parse(before + PLAIN).files] == ["x"]


@pytest.mark.parametrize("text", ["--- a/x\nhello\n", "--- a/x\nhello\n+++ b/x\n", "--- a/x\n"])
def test_half_a_header_starts_no_file(text: str) -> None:
    assert parse(text + "@@ -1 +1 @@\n-a\n+b\n").files == ()


def test_a_merge_without_a_line_of_its_own_leaves_the_next_file_alone() -> None:
    merge, fine = parse(f"diff --cc a name\n{FINE}").files
    assert (merge.path, fine.path) == ("a name", "y")


def test_a_rename_is_not_binary_for_its_similarity() -> None:
    (file,) = parse(
        "diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"
    ).files
    assert (file.binary, file.status, file.added_lines) == (False, "renamed", (1,))


@pytest.mark.parametrize("header", ["a/x\tb/x", "x/one y/one"])
def test_names_that_are_not_set_apart_are_a_problem(header: str) -> None:
    (file,) = parse(f"diff --git {header}\nold mode 100644\nnew mode 100755\n").files
    assert file.problem == "its name could not be read"


@pytest.mark.parametrize(
    "text",
    [
        "diff --git a/x b/x\r\nold mode 100644\r\nnew mode 100755\r\n",
        "--- a/x\r\n+++ b/x\n@@ -1 +1 @@\r\n-a\r\n+b\r\n",
        "--- a/x\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n",
    ],
)
def test_any_header_shows_that_a_patch_was_saved_with_carriage_returns(text: str) -> None:
    (file,) = parse(text).files
    assert (file.path, file.old_path, file.problem) == ("x", "x", None)
    assert all("\r" not in x.text for hunk in file.hunks for x in hunk.lines)
    assert file.new_mode in {None, "100755"}


def test_a_suggestion_keeps_the_file_s_line_endings() -> None:
    assert apply_suggestion("a\r\nb\r\n", 1, 1, "x\r\ny") == "x\r\ny\r\nb\r\n"
    assert apply_suggestion("a\nb\r\nc\n", 2, 2, "x") == "a\nx\r\nc\n"
    assert apply_suggestion("a\nb", 2, 2, "x\ny") == "a\nx\ny"
    assert apply_suggestion("a\r\nb", 1, 2, "x\ny") == "x\r\ny"


def test_bytes_that_are_no_text_survive_in_a_quoted_name() -> None:
    assert unquote_path('"\udcff\\n"') == "\udcff\n"


def test_a_blank_line_that_lost_its_space_is_context() -> None:
    (file,) = parse(f"{GIT}@@ -1,3 +1,4 @@\n a\n\r\n+b\n\n").files
    assert file.problem is None
    rows = [(x.kind, x.old, x.new, x.text) for x in file.hunks[0].lines]
    assert rows == [(" ", 1, 1, "a"), (" ", 2, 2, "\r"), ("+", None, 3, "b"), (" ", 3, 4, "")]
