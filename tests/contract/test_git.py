"""GitRepository keeps what `ports.Git` promises, on real git."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from regreen.adapters.git.repository import GitRepository
from regreen.domain.errors import NotARepository, OutsideError, UserError
from regreen.domain.ports import Git
from tests.checkout import Checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout")


def view(checkout: Checkout, tmp_path: Path) -> GitRepository:
    return GitRepository.open(checkout.root, home=tmp_path / "home")


def names(stream: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(stream)) as tar:
        return {m.name: (f.read() if (f := tar.extractfile(m)) else b"") for m in tar if m.isreg()}


def test_it_is_what_the_parts_ask_for(checkout: Checkout, tmp_path: Path) -> None:
    checkout.commit("one", a="1\n")
    git: Git = view(checkout, tmp_path)
    assert git.commit(git.resolve("HEAD")).subject == "one"


def test_revisions_are_named_as_in_the_checkout(checkout: Checkout, tmp_path: Path) -> None:
    first = checkout.commit("one", a="1\n")
    second = checkout.commit("two", a="2\n")
    checkout.git("tag", "-a", "v1", "-m", "first", first)
    git = view(checkout, tmp_path)
    assert [git.resolve(r) for r in ("HEAD", "HEAD~1", "v1", "main", first[:10])] == [
        second,
        first,
        first,
        second,
        first,
    ]


@pytest.mark.parametrize(
    "rev", ["", "nope", "--help", "-q", "HEAD:a", "HEAD~99", "a\x00b", "$(touch x)", "HEAD\nHEAD"]
)
def test_what_names_no_commit_is_refused_in_one_line(
    checkout: Checkout, tmp_path: Path, rev: str
) -> None:
    checkout.commit("one", a="1\n")
    with pytest.raises(UserError, match="no such revision"):
        view(checkout, tmp_path).resolve(rev)


def test_a_folder_without_a_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotARepository, match="--repo"):
        GitRepository.open(tmp_path)


def test_a_range_comes_parents_first_with_its_merges(checkout: Checkout, tmp_path: Path) -> None:
    base = checkout.commit("base", a="1\n")
    checkout.git("checkout", "-q", "-b", "side")
    side = checkout.commit("side", b="1\n")
    checkout.git("checkout", "-q", "main")
    trunk = checkout.commit("trunk", a="2\n")
    checkout.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    git = view(checkout, tmp_path)
    commits = git.commits(base, git.resolve("HEAD"))
    assert {c.sha for c in commits[:2]} == {side, trunk}
    assert commits[2].parents == (trunk, side)
    assert [c.subject for c in git.commits(base, git.resolve("HEAD"), first_parent=True)] == [
        "trunk",
        "merge",
    ]
    assert git.merge_base(side, trunk) == base
    assert git.is_ancestor(side, commits[2].sha)
    assert not git.is_ancestor(side, trunk)


def test_the_whole_tree_is_archived_whatever_the_attributes_say(
    checkout: Checkout, tmp_path: Path
) -> None:
    checkout.commit("one", _gitattributes="x")
    (checkout.root / ".gitattributes").write_text(
        "tests export-ignore\n*.txt export-subst eol=crlf filter=evil\n"
    )
    head = checkout.commit("two", tests__test_a_py="x\n", v_txt="$Format:%H$\n")
    git = view(checkout, tmp_path)
    files = names(b"".join(git.archive(head)))
    assert files["tests/test_a.py"] == b"x\n"
    assert b"$Format:%H$\n" in files.values()


def test_an_overlay_replaces_and_adds_files(checkout: Checkout, tmp_path: Path) -> None:
    head = checkout.commit("one", a="1\n", b="2\n")
    files = names(
        b"".join(view(checkout, tmp_path).archive(head, {"a": b"new\n", "deep/c": b"3\n"}))
    )
    assert files == {"a": b"new\n", "b": b"2\n", "deep/c": b"3\n"}


def test_a_working_tree_is_snapshotted_and_left_alone(checkout: Checkout, tmp_path: Path) -> None:
    head = checkout.commit("one", a="1\n")
    (checkout.root / "a").write_text("2\n")
    (checkout.root / "new").write_text("n\n")
    git = view(checkout, tmp_path)
    snapshot = git.commit_work_tree(checkout.root, head)
    assert git.show(snapshot, "a") == b"2\n"
    assert git.show(snapshot, "new") == b"n\n"
    assert checkout.git("status", "--porcelain") == "M a\n?? new"
    assert git.resolve(snapshot) == snapshot
    assert (
        git.commit(snapshot).date == git.commit(head).date
    )  # inferred dependencies are of this day
    checkout.git("checkout", "-q", "a")
    (checkout.root / "new").unlink()
    assert git.commit_work_tree(checkout.root, head) == head


def test_a_repository_may_lie_in_a_folder_whose_name_is_no_text(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / os.fsdecode(b"caf\xe9"))
    head = checkout.commit("one", a="1\n")
    (checkout.root / "a").write_text("2\n")
    git = view(checkout, tmp_path)
    assert git.show(git.commit_work_tree(checkout.root, head), "a") == b"2\n"


def test_a_change_that_only_the_content_tells_is_in_a_snapshot(
    checkout: Checkout, tmp_path: Path
) -> None:
    head = checkout.commit("one", a="1\n")
    checkout.git("config", "core.trustctime", "false")
    changed, index = checkout.root / "a", checkout.root / ".git" / "index"
    then = changed.stat().st_mtime_ns - 10**10
    os.utime(changed, ns=(then, then))
    checkout.git("update-index", "--refresh")
    changed.write_text("2\n")
    for path in (changed, index):  # as where all of it happens in the same moment
        os.utime(path, ns=(then, then))
    git = view(checkout, tmp_path)
    assert git.show(git.commit_work_tree(checkout.root, head), "a") == b"2\n"


def test_a_snapshot_keeps_tracked_files_that_are_ignored_or_not_checked_out(
    checkout: Checkout, tmp_path: Path
) -> None:
    checkout.commit("one", docs__a="1\n", src__b="1\n", kept="1\n")
    (checkout.root / ".gitignore").write_text("kept\n")
    other = Checkout(tmp_path / "other")
    other.commit("one", c="1\n")
    checkout.git("-c", "protocol.file.allow=always", "submodule", "add", str(other.root), "module")
    head = checkout.commit("two")
    checkout.git("submodule", "deinit", "--force", "module")
    checkout.git("sparse-checkout", "set", "--sparse-index", "docs")
    assert not (checkout.root / "src").exists()
    git = view(checkout, tmp_path)
    assert git.commit_work_tree(checkout.root, head) == head
    (checkout.root / "docs" / "a").write_text("2\n")
    (checkout.root / "src").mkdir()
    (checkout.root / "src" / "new").write_text("1\n")
    snapshot = git.commit_work_tree(checkout.root, head)
    assert set(git.changed_paths(snapshot)) == {"docs/a", "src/new"}
    assert checkout.git("status", "--porcelain").splitlines() == ["M docs/a", "?? src/new"]
    checkout.git("sparse-checkout", "set", "--no-sparse-index", "docs")
    checkout.git("update-index", "--split-index")
    assert git.commit_work_tree(checkout.root, head) == snapshot, "a split index says the same"


def test_a_patch_is_applied_without_a_work_tree(checkout: Checkout, tmp_path: Path) -> None:
    one = checkout.commit("one", a="1\n2\n3\n")
    two = checkout.commit("two", a="1\nx\n3\n")
    git = view(checkout, tmp_path)
    made = git.apply(one, git.diff(one, two), "as two")
    assert made is not None
    assert git.tree_id(made) == git.tree_id(two)
    assert git.commit(made).parents == (one,)
    assert git.apply(two, git.diff(one, two), "again") is None
    assert git.apply(one, git.diff(one, two), "as two") == made, "the same patch is the same commit"


def test_a_commit_is_reverted_on_a_later_head(checkout: Checkout, tmp_path: Path) -> None:
    checkout.commit("one", a="1\n2\n3\n4\n5\n6\n7\n8\n9\n", b="b\n")
    bad = checkout.commit("bad", a="1\nX\n3\n4\n5\n6\n7\n8\n9\n", b="B\n")
    head = checkout.commit("later", a="1\nX\n3\n4\n5\n6\n7\n8\nY\n")
    git = view(checkout, tmp_path)
    whole = git.revert(bad, head)
    assert whole is not None
    assert git.show(whole, "a") == b"1\n2\n3\n4\n5\n6\n7\n8\nY\n"
    assert git.show(whole, "b") == b"b\n"
    part = git.revert(bad, head, paths=["a"])
    assert part is not None
    assert git.show(part, "b") == b"B\n"
    conflicting = checkout.commit("over it", a="1\nZ\n3\n4\n5\n6\n7\n8\n9\n")
    assert git.revert(bad, conflicting) is None


def test_a_commit_that_adds_a_submodule_cannot_be_reverted(
    checkout: Checkout, tmp_path: Path
) -> None:
    checkout.commit("one", a="1\n")
    other = Checkout(tmp_path / "other")
    other.commit("one", c="1\n")
    checkout.git("-c", "protocol.file.allow=always", "submodule", "add", str(other.root), "module")
    head = checkout.commit("two", a="2\n")
    git = view(checkout, tmp_path)
    assert git.revert(head, head) is None
    assert git.revert(head, head, paths=["a"]) is not None


SYMLINK = """diff --git a/l b/l
new file mode 120000
index 0000000..a63a9e5
--- /dev/null
+++ b/l
@@ -0,0 +1 @@
+/etc/shadow
\\ No newline at end of file
"""


def test_a_patch_with_a_symlink_is_refused(checkout: Checkout, tmp_path: Path) -> None:
    head = checkout.commit("one", a="1\n")
    with pytest.raises(UserError, match="symlink"):
        view(checkout, tmp_path).apply(head, SYMLINK, "no")


@pytest.mark.parametrize("path", [".git/config", "../out", "/abs", ".gitmodules", "sub/.GIT/x"])
def test_a_patch_outside_or_into_git_changes_nothing(
    checkout: Checkout, tmp_path: Path, path: str
) -> None:
    head = checkout.commit("one", a="1\n")
    patch = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    git = view(checkout, tmp_path)
    try:
        made = git.apply(head, patch, "no")
    except UserError:
        made = None
    assert made is None


def test_a_hostile_configuration_is_never_honoured(checkout: Checkout, tmp_path: Path) -> None:
    head = checkout.commit("one", a="1\n")
    witness = tmp_path / "ran"
    hook = checkout.root / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {witness}\n")
    hook.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "diff.external",
        "filter.evil.clean",
        "filter.evil.smudge",
        "core.pager",
    ):
        checkout.git("config", key, f"touch {witness}")
    git = view(checkout, tmp_path)
    made = git.apply(head, "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n", "x")
    assert made is not None
    git.diff(head, made)
    b"".join(git.archive(made))
    git.revert(made, made)
    assert not witness.exists()


def test_a_mirror_follows_its_remote(checkout: Checkout, tmp_path: Path) -> None:
    first = checkout.commit("one", a="1\n")
    url = checkout.root.as_uri()
    mirror = GitRepository.clone_mirror(url, tmp_path / "mirror.git")
    assert mirror.resolve("main") == first
    second = checkout.commit("two", a="2\n")
    mirror = GitRepository.clone_mirror(url, tmp_path / "mirror.git")
    assert mirror.resolve("main") == second


def test_a_remote_that_is_not_there_is_an_outside_error_without_its_credentials(
    tmp_path: Path,
) -> None:
    with pytest.raises(OutsideError) as caught:
        GitRepository.clone_mirror(
            "http://user:hunter2@127.0.0.1:9/x.git", tmp_path / "m.git", token="ghs_secret"
        )
    assert "hunter2" not in str(caught.value)
    assert "ghs_secret" not in str(caught.value)


def test_a_shallow_clone_says_so(checkout: Checkout, tmp_path: Path) -> None:
    checkout.commit("one", a="1\n")
    checkout.commit("two", a="2\n")
    assert not view(checkout, tmp_path).is_shallow()
    clone = tmp_path / "shallow"
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", checkout.root.as_uri(), str(clone)], check=True
    )
    assert GitRepository.open(clone, home=tmp_path / "home").is_shallow()


def test_strange_names_survive(checkout: Checkout, tmp_path: Path) -> None:
    strange = ["a b", "tab\tname", "new\nline", "ünï", "-dash", 'quo"te', "star*"]
    for name in strange:
        (checkout.root / name).write_text(name)
    head = checkout.commit("strange")
    git = view(checkout, tmp_path)
    assert sorted(e.path for e in git.tree(head)) == sorted(strange)
    assert [git.show(head, n) for n in strange] == [n.encode() for n in strange]
    assert set(git.changed_paths(head)) == set(strange)


def test_many_blobs_come_in_the_order_asked(checkout: Checkout, tmp_path: Path) -> None:
    texts = {f"f{n}": f"{n}\n" * n for n in range(300)}
    checkout.commit("one", **texts)
    git = view(checkout, tmp_path)
    ids = {e.path: e.sha for e in git.tree(git.resolve("HEAD"))}
    asked = sorted(texts, reverse=True)
    assert list(git.blobs([ids[p] for p in asked])) == [texts[p].encode() for p in asked]
    absent, folder = "0" * 40, git.tree_id(git.resolve("HEAD"))
    assert folder is not None
    mixed = [absent, ids["f2"], folder, ids["f1"]]
    assert list(git.blobs(mixed)) == [None, b"2\n2\n", None, b"1\n"]
    assert list(git.blobs([])) == []
    some = git.blobs([ids[p] for p in asked] * 50)
    assert next(some) == texts[asked[0]].encode()
    del some  # the rest is not wanted, and git does not wait for us to read it


def test_blame_names_the_commit_of_each_line(checkout: Checkout, tmp_path: Path) -> None:
    one = checkout.commit("one", a="1\n2\n")
    two = checkout.commit("two", a="1\nx\n")
    assert view(checkout, tmp_path).blame(two, "a", 1, 2) == [one, two]


@pytest.mark.parametrize(
    ("written", "read"), [("253402300800", "9999-12-31"), ("99999999999999999", "9999-12-31"), ("", "1970-01-01")]
)  # fmt: skip
def test_a_commit_with_a_date_that_no_calendar_holds_is_read(
    checkout: Checkout, tmp_path: Path, written: str, read: str
) -> None:
    tree = checkout.git("rev-parse", checkout.commit("one", a="1\n") + "^{tree}")
    stamp = f"{written} +0000".strip() if written else ""
    (checkout.root / "odd").write_text(
        f"tree {tree}\nauthor A <a@b> {stamp}\ncommitter A <a@b> {stamp}\n\nodd\n"
    )
    sha = checkout.git("hash-object", "-t", "commit", "-w", "--literally", "odd")
    assert view(checkout, tmp_path).commit(sha).date.date().isoformat() == read
