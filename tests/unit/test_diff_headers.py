"""Diffs as other programs and hostile people write them: headers that are odd, damaged or missing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from regreen.code.diff import FileChange, parse, unquote_path

HUNK = "@@ -1 +1 @@\n-a\n+b\n"


def only(text: str) -> FileChange:
    (file,) = parse(text).files
    return file


@pytest.mark.parametrize(
    ("header", "old", "new"),
    [
        ("diff --git a/one b/three\n", "one", "three"),
        ("diff --git a/p b/q b/r\n--- a/p b/q\n+++ b/r\n", "p b/q", "r"),
        ('diff --git a/x "b/t\\tt"\nBinary files a/x and "b/t\\tt" differ\n', "x", "t\tt"),
        ('diff --git "a/t\\tt" b/x\nBinary files differ\n', "t\tt", "x"),
        ('diff --git "a/q\\"q" "b/r\\"r"\nold mode 100644\nnew mode 100755\n', 'q"q', 'r"r'),
        ("diff --git a/x b/x.new\nindex 0123456..89abcde 100644\n", "x", "x.new"),
        ("diff --git one one\n", "one", "one"),
        ("diff --git i/one w/one\n", "one", "one"),
        ("diff --git c/one i/one\n", "one", "one"),
        ("diff --git c/one w/one\n", "one", "one"),
        ("diff --git o/one w/one\n", "one", "one"),
        ("diff --git 1/one 2/one\n", "one", "one"),
        ("diff --git a/dev/null b/dev/null\n--- a/dev/null\n+++ b/dev/null\n", "dev/null", "dev/null"),
        ("diff --git a/x b/x\nrename from y/z\nrename to x\n", "y/z", "x"),
    ],
)  # fmt: skip
def test_both_names_are_read(header: str, old: str, new: str) -> None:
    file = only(header)
    assert (file.old_path, file.path, file.problem) == (old, new, None)
    assert file.status == ("modified" if old == new else "renamed")


def test_a_header_without_a_name_is_a_problem() -> None:
    for header in ("diff --git \n", "diff --git a/x\n", "diff --git a/ b/\n"):
        assert only(header + HUNK).problem == "its name could not be read"


def test_git_headers_are_read_whole() -> None:
    file = only(
        "diff --git a/x b/x\nold mode 100644\nnew mode 100755\nindex 0a1b2c3..4d5e6f7\n"
        "--- a/x\n+++ b/x\n" + HUNK
    )
    assert (file.old_mode, file.new_mode) == ("100644", "100755")
    assert (file.old_sha, file.new_sha) == ("0a1b2c3", "4d5e6f7")
    plain = only("diff --git a/x b/x\nindex 0a1b2c3..4d5e6f7 100644\n--- a/x\n+++ b/x\n" + HUNK)
    assert (plain.old_mode, plain.new_mode, plain.binary) == ("100644", "100644", False)


def test_an_empty_side_says_that_a_file_is_new_or_gone() -> None:
    new = only("diff --git a/x b/x\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n")
    assert (new.status, new.old_path, new.path) == ("added", "x", "x")
    gone = only("diff --git a/x b/x\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n")
    assert (gone.status, gone.old_path, gone.path) == ("deleted", "x", "x")


@pytest.mark.parametrize(
    ("old", "new", "status", "path"),
    [
        ("/dev/null", "b/n", "added", "n"),
        ("/dev/null", "n", "added", "n"),
        ("a/n", "/dev/null", "deleted", "n"),
        ("n", "/dev/null", "deleted", "n"),
        ("x.py.orig", "x.py", "modified", "x.py"),
        ("old/x.py", "new/x.py", "modified", "new/x.py"),
        ("a/x.py", "b/x.py", "modified", "x.py"),
        ("a/x.py", "a/x.py", "modified", "a/x.py"),
        ('"a/t\\tt"', '"b/t\\tt"', "modified", "t\tt"),
    ],
)
def test_a_plain_diff_names_its_files(old: str, new: str, status: str, path: str) -> None:
    file = only(f"--- {old}\t2020-01-01\n+++ {new}\t2020-01-01\n{HUNK}")
    assert (file.status, file.path, file.old_path) == (status, path, path)
    assert (file.added_lines, file.binary) == ((1,), False)
    assert (file.old_mode, file.new_mode) == (None, None)


def test_a_lone_plus_header_starts_no_file() -> None:
    assert parse(f"hello\n+++ b/x\n{HUNK}").files == ()
    assert parse("--- a/x\n").files == ()


@pytest.mark.parametrize("command", ["--cc", "--combined"])
def test_every_kind_of_merge_diff_is_named(command: str) -> None:
    good = f"diff --git a/y b/y\n--- a/y\n+++ b/y\n{HUNK}"
    merge, fine = parse(
        f'diff {command} "m\\303\\244"\nindex 1,2..3\n--- a/m\n+++ b/m\n@@@ -1 -1 +1 @@@\n- a\n -b\n++c\n{good}'
    ).files
    assert (merge.path, merge.old_path, merge.status) == ("mä", "mä", "modified")
    assert merge.problem == "a merge's combined diff"
    assert (fine.path, fine.added_lines) == ("y", (1,))


def test_a_binary_patch_is_passed_over() -> None:
    body = "index 1111..2222 100644\nGIT binary patch\nliteral 3\nKcmZ>A\n--- a/z\n+++ b/z\n@@ -1 +1 @@\n\n"
    binary, fine = parse(
        f"diff --git a/i.png b/i.png\n{body}diff --git a/y b/y\n--- a/y\n+++ b/y\n{HUNK}"
    ).files
    assert (binary.path, binary.binary, binary.hunks, binary.problem) == ("i.png", True, (), None)
    assert fine.path == "y"


def test_a_file_that_changed_its_kind_says_so() -> None:
    gone = (
        "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    )
    link = "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n"
    one, two = parse(gone + link).files
    assert one.problem == two.problem == "its kind changed between file, link and submodule"
    assert (one.hunks, two.hunks, one.status, two.status) == ((), (), "deleted", "added")


def test_every_escape_that_git_writes_is_undone() -> None:
    assert unquote_path(r'"\a\b\t\n\v\f\r\"\\\001\377"') == '\a\b\t\n\v\f\r"\\\x01\udcff'
    assert unquote_path('""') == ""
    assert unquote_path('"half') == '"half'
    assert unquote_path('half"') == 'half"'


def test_a_diff_cut_by_one_line_is_cut_off() -> None:
    head = "diff --git a/x b/x\n--- a/x\n+++ b/x\n"
    assert only(f"{head}@@ -1,2 +1,3 @@\n a\n+b\n").problem == "the diff is cut off"
    whole = only(f"{head}@@ -1,2 +1,3 @@\n a\n+b\n c")
    assert whole.problem is None
    assert [x.text for x in whole.hunks[0].lines] == ["a", "b", "c"]


def test_carriage_returns_of_the_file_stay_and_those_of_the_patch_go() -> None:
    rows = "@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+c\r\n"
    saved = only(f"diff --git a/x b/x\r\n--- a/x\r\n+++ b/x\r\n{rows}")
    assert [x.text for x in saved.hunks[0].lines] == ["a", "b", "c"]
    assert saved.path == "x"
    inside = only(f"diff --git a/x b/x\n--- a/x\n+++ b/x\n{rows}".replace("@@\r", "@@"))
    assert [x.text for x in inside.hunks[0].lines] == ["a\r", "b\r", "c\r"]


def test_a_line_of_megabytes_is_a_line() -> None:
    long = "x" * 3_000_000
    file = only(f"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+{long}\n")
    assert file.hunks[0].lines[1].text == long
    assert file.too_large


ODD = ["a", "", "\x1c", "b\x1d", "\x1e c", "\x85", "d\u2028e\u2029", "\x0b", "\x0c", "f\r", "\rg", "--- a/x", "+++ b/x",
       "-- ", "++", "diff --git a/q b/q", "@@ -1 +1 @@", "\\ No newline at end of file", "GIT binary patch", "é\udcff"]  # fmt: skip
NAMES = ["x", "dev/null", "a b", "trailing ", " leading", "t\tt", 'q"q', "ä/ö", "{a => b}", "b/x", "-", "n\nn"]  # fmt: skip
ENV = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(
    before=st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(ODD), max_size=12), max_size=4),
    after=st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(ODD), max_size=12), max_size=4),
)  # fmt: skip
def test_a_whole_tree_is_read_as_git_wrote_it(
    tmp_path_factory: pytest.TempPathFactory,
    before: dict[str, list[str]],
    after: dict[str, list[str]],
) -> None:
    # Without an index git calls an `x` of the second tree alone `b/x`, like the file of that name in both.
    assume(not {"x", "b/x"} <= {*before, *after})
    folder = tmp_path_factory.mktemp("tree")
    texts = {side: {n: _bytes(rows) for n, rows in files.items()} for side, files in (("a", before), ("b", after))}  # fmt: skip
    for side, files in texts.items():
        for name, data in files.items():
            place = folder / side / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        (folder / side).mkdir(exist_ok=True)
    diff = _git_diff(folder)
    # a file on one side only is named with its folder on both
    seen = {
        f.path if f.status == "modified" else f.path.partition("/")[2]: f for f in parse(diff).files
    }
    for name in {*before, *after}:
        old, new = texts["a"].get(name), texts["b"].get(name)
        if old == new:
            assert name not in seen
            continue
        file = seen[name]
        assert file.status == ("added" if old is None else "deleted" if new is None else "modified")
        if not file.binary:
            _rebuilds(file, old or b"", new or b"")


def _bytes(rows: list[str]) -> bytes:
    return "\n".join(rows).encode("utf-8", "surrogateescape")


def _git_diff(folder: Path) -> str:
    done = subprocess.run(
        ["git", "diff", "--no-index", "--no-renames", "--no-prefix", "a", "b"],
        cwd=folder, env=ENV, capture_output=True, check=False,
    )  # fmt: skip
    return done.stdout.decode("utf-8", "surrogateescape")


def _rebuilds(file: FileChange, old: bytes, new: bytes) -> None:
    """The hunks laid over the old text give the new one."""
    assert file.problem is None
    olds = old.decode("utf-8", "surrogateescape").split("\n")
    out, at = "", 1
    for hunk in file.hunks:
        first = hunk.old_start + (hunk.old_count == 0)
        out += "".join(f"{x}\n" for x in olds[at - 1 : first - 1])
        at = first + hunk.old_count
        out += "".join(x.text + "\n" * x.newline for x in hunk.lines if x.kind != "-")
    out += "\n".join(olds[at - 1 :])
    assert out.encode("utf-8", "surrogateescape") == new
