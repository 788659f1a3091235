from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from regreen_playground import difflines
from unidiff.patch import PatchSet

from regreen.code.diff import Change, FileChange, apply_suggestion, parse, unquote_path
from regreen.domain.models import Side

SIDES: tuple[Side, ...] = ("LEFT", "RIGHT")
_ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


class Repo:
    """A real repository: `commit` writes files (None deletes), `diff` is what git says between the last two."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.git("init", "-q", "-b", "main")

    def git(self, *args: str, stdin: bytes | None = None) -> bytes:
        done = subprocess.run(
            ["git", *args], cwd=self.path, env=_ENV, input=stdin, capture_output=True, check=True
        )
        return done.stdout

    def commit(self, files: dict[str, bytes | None]) -> None:
        for name, data in files.items():
            place = self.path / name
            if data is None:
                place.unlink()
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")

    def diff_text(self, *options: str) -> str:
        out = self.git("diff", "--full-index", "-M", *options, "HEAD~1", "HEAD")
        return out.decode("utf-8", "surrogateescape")

    def diff(self, *options: str) -> Change:
        return parse(self.diff_text(*options))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path)


def only(change: Change) -> FileChange:
    (file,) = change.files
    return file


AWKWARD = [
    "plain.py",
    "with space.py",
    "a b/b c/d.py",
    "x b/x.py",
    "tab\there.py",
    'quo"te.py',
    "back\\slash.py",
    "ünïcode/☃.py",
    "new\nline.py",
    "b/b/b.py",
    "a/a.py",
    "- -.py",
]


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("quotepath", ["true", "false"])
def test_any_name_is_read_in_any_state(repo: Repo, name: str, quotepath: str) -> None:
    repo.git("config", "core.quotepath", quotepath)
    repo.commit({name: b"1\n2\n3\n"})
    repo.commit({name: b"1\n2\nx\n"})
    changed = only(repo.diff())
    assert (changed.path, changed.old_path, changed.status) == (name, name, "modified")
    assert changed.added_lines == (3,)
    repo.commit({name: None})
    gone = only(repo.diff())
    assert (gone.path, gone.status, gone.removed_lines) == (name, "deleted", (1, 2, 3))
    repo.commit({name: b""})
    empty = only(repo.diff())
    assert (empty.path, empty.status, empty.hunks) == (name, "added", ())


@pytest.mark.parametrize("name", AWKWARD)
def test_a_mode_change_and_a_binary_file_keep_their_name(repo: Repo, name: str) -> None:
    repo.commit({name: b"1\n", "bin " + name: b"\0\1"})
    (repo.path / name).chmod(0o755)
    repo.commit({"bin " + name: b"\0\2"})
    binary, mode = sorted(repo.diff().files, key=lambda f: not f.binary)
    assert (binary.path, binary.binary, binary.hunks) == ("bin " + name, True, ())
    assert (mode.path, mode.old_mode, mode.new_mode) == (name, "100644", "100755")


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("change", [b"", b"changed\n"])
def test_a_rename_has_both_names(repo: Repo, name: str, change: bytes) -> None:
    text = b"".join(b"line %d\n" % n for n in range(30))
    repo.commit({name: text})
    repo.commit({name: None, "moved to/" + name: text + change})
    file = only(repo.diff())
    assert (file.old_path, file.path, file.status) == (name, "moved to/" + name, "renamed")
    assert file.added_lines == ((31,) if change else ())


def test_a_copy_has_both_names(repo: Repo) -> None:
    text = b"".join(b"line %d\n" % n for n in range(30))
    repo.commit({"one.py": text})
    repo.commit({"two.py": text})
    file = only(repo.diff("-C", "--find-copies-harder"))
    assert (file.old_path, file.path, file.status) == ("one.py", "two.py", "copied")


def test_prefixes_are_whatever_git_was_told(repo: Repo) -> None:
    repo.commit({"a/x b/y.py": b"1\n", "b/z.py": b"1\n"})
    repo.commit({"a/x b/y.py": b"2\n", "b/z.py": b"2\n"})
    for options in (["--no-prefix"], ["--src-prefix=i/", "--dst-prefix=w/"], ["--src-prefix=a/"]):
        assert {f.path for f in repo.diff(*options).files} == {"a/x b/y.py", "b/z.py"}


def test_symlinks_and_submodules_are_named_as_such(repo: Repo) -> None:
    repo.commit({"x": b"1\n"})
    (repo.path / "link").symlink_to("x")
    head = repo.git("rev-parse", "HEAD").decode().strip()
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    (repo.path / "sub").mkdir()
    repo.git("add", "link")
    repo.git("commit", "-qm", "x")
    by_path = repo.diff().by_path
    assert by_path["link"].is_symlink
    assert by_path["sub"].is_submodule
    assert not by_path["link"].is_submodule


def test_a_file_that_becomes_a_link_is_not_read(repo: Repo) -> None:
    repo.commit({"x": b"1\n2\n"})
    (repo.path / "x").unlink()
    (repo.path / "x").symlink_to("y")
    repo.commit({})
    for file in repo.diff().files:
        assert (file.path, file.hunks) == ("x", ())
        assert file.problem is not None


def test_no_comment_stands_on_a_diff_that_github_does_not_show() -> None:
    for count, size in ((20_001, 1), (30, 20_000)):
        row = "+" + "x" * size + "\n"
        file = only(parse(f"--- /dev/null\n+++ b/x\n@@ -0,0 +1,{count} @@\n" + row * count))
        assert file.problem is None
        assert not file.can_anchor(1, 1, "RIGHT")
        assert file.fit_to_hunk(1, 1, "RIGHT") is None


def test_only_a_newline_ends_a_line(repo: Repo) -> None:
    odd = "a\u2028b\nc\x0cd\x85e\nf\rg\nh\r\n".encode()
    repo.commit({"x": odd})
    repo.commit({"x": odd + b"caf\xe9"})
    file = only(repo.diff())
    assert file.added_lines == (5,)
    added = file.hunks[0].lines[-1]
    assert (added.text, added.newline) == ("caf\udce9", False)
    assert file.hunks[0].lines[-2].text == "h\r"


def test_lines_that_look_like_headers_are_content(repo: Repo) -> None:
    repo.commit({"x.sql": b"-- a\n-- b\n++ c\n"})
    repo.commit({"x.sql": b"++ b/x.sql\n@@ -1 +1 @@\ndiff --git a/q b/q\n-- b\n"})
    file = only(repo.diff())
    assert file.added_lines == (1, 2, 3)
    assert file.removed_lines == (1, 3)


def test_a_patch_saved_with_crlf_and_one_with_stripped_blanks() -> None:
    patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n \n-b\n+c\n"
    for variant in (patch, patch.replace("\n", "\r\n"), patch.replace("\n \n", "\n\n")):
        file = only(parse(variant))
        assert (file.problem, file.added_lines) == (None, (3,))
        assert file.hunks[0].lines[-1].text == "c"


def test_a_plain_diff_has_no_git_headers() -> None:
    text = "--- x/a.py\t2020-01-01\n+++ x/a.py\t2020-01-02\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/n.py\n@@ -0,0 +1 @@\n+z\n"
    one, two = parse(text).files
    assert (one.path, one.status, one.added_lines) == ("x/a.py", "modified", (1,))
    assert (two.path, two.status, two.added_lines) == ("n.py", "added", (1,))


@pytest.mark.parametrize(
    ("hunk", "problem"),
    [
        ("@@ -1,3 +1,3 @@\n a\n", "cut off"),
        ("@@ -1 +1 @@\n?a\n", "does not have the lines"),
        ("@@ -1 +1 @@\n-a\n-b\n+c\n", "does not have the lines"),
        ("@@ -1 +1 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b\n", "overlap"),
        ("@@@ -1 -1 +1 @@@\n  a\n", "cannot be read"),
        ("@@ -99999999999 +1 @@\n-a\n+b\n", "cannot be read"),
    ],
)
def test_a_damaged_file_costs_only_itself(hunk: str, problem: str) -> None:
    good = "diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"
    bad, fine = parse(f"diff --git a/x b/x\n--- a/x\n+++ b/x\n{hunk}{good}").files
    assert bad.problem is not None
    assert problem in bad.problem
    assert bad.hunks == ()
    assert (fine.path, fine.problem, fine.added_lines) == ("y", None, (1,))


def test_a_merge_is_named_and_not_read(repo: Repo) -> None:
    repo.commit({"x": b"1\n"})
    repo.git("checkout", "-qb", "other")
    repo.commit({"x": b"2\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"x": b"3\n"})
    subprocess.run(
        ["git", "merge", "-q", "other"], cwd=repo.path, env=_ENV, capture_output=True, check=False
    )
    repo.commit({"x": b"4\n"})
    file = only(parse(repo.git("show", "--cc", "--format=", "HEAD").decode()))
    assert (file.path, file.problem) == ("x", "a merge's combined diff")


def test_text_without_a_diff_is_an_empty_change() -> None:
    assert parse("").files == ()
    assert parse("hello\nworld\n").files == ()


NUMBERS = "".join(f"{n}\n" for n in range(1, 41))


def two_hunks(repo: Repo) -> FileChange:
    repo.commit({"x": NUMBERS.encode()})
    changed = NUMBERS.replace("\n5\n", "\nfive\nfive and a half\n").replace("\n30\n", "\n")
    repo.commit({"x": changed.encode()})
    return only(repo.diff())


def test_comments_stand_on_what_a_hunk_shows(repo: Repo) -> None:
    file = two_hunks(repo)
    right = [n for n in range(40) if file.can_anchor(n, n, "RIGHT")]
    left = [n for n in range(40) if file.can_anchor(n, n, "LEFT")]
    assert right == [2, 3, 4, 5, 6, 7, 8, 9, 28, 29, 30, 31, 32, 33]
    assert left == [2, 3, 4, 5, 6, 7, 8, 27, 28, 29, 30, 31, 32, 33]
    assert file.can_anchor(5, 6, "RIGHT")
    assert not file.can_anchor(9, 28, "RIGHT"), "two hunks"
    assert not file.can_anchor(6, 5, "RIGHT"), "backwards"
    assert not file.can_anchor(10, 10, "RIGHT")
    assert file.can_anchor(30, 30, "LEFT")


def test_a_range_is_trimmed_to_what_one_comment_can_cover(repo: Repo) -> None:
    file = two_hunks(repo)
    assert file.fit_to_hunk(5, 30, "RIGHT") == (28, 30)
    assert file.fit_to_hunk(1, 3, "RIGHT") == (2, 3)
    assert file.fit_to_hunk(8, 20, "RIGHT") == (8, 9)
    assert file.fit_to_hunk(12, 20, "RIGHT") is None


def test_a_suggestion_spans_no_removed_line(repo: Repo) -> None:
    file = two_hunks(repo)
    assert file.can_suggest(5, 6)
    assert not file.can_suggest(29, 31), "line 30 of the base was removed between them"
    assert not file.can_suggest(10, 11)


@pytest.mark.parametrize(
    ("text", "start", "line", "suggestion", "after"),
    [
        ("a\nb\nc\n", 2, 2, "x", "a\nx\nc\n"),
        ("a\nb\nc\n", 1, 3, "x\ny", "x\ny\n"),
        ("a\nb\nc\n", 2, 2, "", "a\nc\n"),
        ("a\nb\nc\n", 2, 2, "\n", "a\n\nc\n"),
        ("a\nb", 2, 2, "x", "a\nx"),
        ("a\nb", 2, 2, "", "a\n"),
        ("a\r\nb\r\n", 2, 2, "x\ny", "a\r\nx\r\ny\r\n"),
        ("a\u2028b\nc\n", 1, 1, "x", "x\nc\n"),
        ("a\n", 2, 2, "x", None),
        ("a\n", 0, 1, "x", None),
        ("", 1, 1, "x", None),
    ],
)
def test_a_suggestion_replaces_exactly_its_lines(
    text: str, start: int, line: int, suggestion: str, after: str | None
) -> None:
    assert apply_suggestion(text, start, line, suggestion) == after


def test_quoted_names() -> None:
    assert unquote_path('"a\\303\\244\\t\\"\\\\b"') == 'aä\t"\\b'
    assert unquote_path("plain") == "plain"
    assert unquote_path('"') == '"'


ROWS = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            "",
            "- a",
            "+ b",
            "-- c",
            "++ d",
            "@@ -1 +1 @@",
            "x\r",
            " ",
            "\x0c",
            "\u2028",
            "\\",
        ]
    ),
    max_size=30,
)


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(before=ROWS, after=ROWS, ends=st.booleans(), context=st.integers(0, 5))
def test_what_is_read_is_what_git_applies(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[str],
    after: list[str],
    ends: bool,
    context: int,
) -> None:
    folder = tmp_path_factory.mktemp("apply")
    old, new = _text(before, ends), _text(after, True)
    (folder / "old").write_bytes(old.encode())
    (folder / "new").write_bytes(new.encode())
    done = subprocess.run(
        ["git", "diff", "--no-index", f"-U{context}", "old", "new"],
        cwd=folder, env=_ENV, capture_output=True, check=False,
    )  # fmt: skip
    diff = done.stdout.decode("utf-8", "surrogateescape")
    change = parse(diff)
    if old == new:
        assert change.files == ()
        return
    file = only(change)
    assert file.problem is None
    _agrees_with_texts(file, old, new)
    _agrees_with_unidiff(file, diff)
    _agrees_with_the_playground(file, diff)


def _text(rows: list[str], ends: bool) -> str:
    return "".join(f"{r}\n" for r in rows) if ends or not rows else "\n".join(rows)


def _agrees_with_texts(file: FileChange, old: str, new: str) -> None:
    """Each line stands where its number says, and the hunks laid over the old text give the new one."""
    olds, news = old.split("\n"), new.split("\n")
    out: list[str] = []
    at = 1
    for hunk in file.hunks:
        first = hunk.old_start + (hunk.old_count == 0)
        out += [f"{x}\n" for x in olds[at - 1 : first - 1]]
        at = first + hunk.old_count
        for line in hunk.lines:
            assert line.old is None or olds[line.old - 1] == line.text
            assert line.new is None or news[line.new - 1] == line.text
            if line.kind != "-":
                out.append(line.text + "\n" * line.newline)
    rest = "\n".join(olds[at - 1 :])
    assert "".join(out) + rest == new


def _agrees_with_the_playground(file: FileChange, diff: str) -> None:
    """GitHub's rule as the playground has it: nothing allowed is refused, nothing it would take is withheld."""
    patch = diff[diff.index("@@") :].removesuffix("\n")
    other = difflines.FileChange("new", None, "modified", "", 0, 0, patch)
    for side in SIDES:
        for start in range(35):
            for line in range(start, 35, 3):
                one, two = other.spot(side, start), other.spot(side, line)
                taken = one is not None and two is not None and one.hunk == two.hunk
                assert file.can_anchor(start, line, side) == taken


def _agrees_with_unidiff(file: FileChange, diff: str) -> None:
    """A second reader, for hunks where it can be trusted."""
    (other,) = PatchSet(diff)
    numbers = [
        (x.source_line_no, x.target_line_no) for h in other for x in h if x.line_type in "+- "
    ]
    assert numbers == [(x.old, x.new) for h in file.hunks for x in h.lines]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='@-+ ,01239\nabdifgtx/"\\\r', max_size=200))
def test_no_text_makes_it_fail(text: str) -> None:
    for prefix in (
        "",
        "diff --git a/x b/x\n",
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n",
    ):
        for file in parse(prefix + text).files:
            assert file.problem is None or not file.hunks
