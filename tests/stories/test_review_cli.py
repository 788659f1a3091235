"""What somebody sees who runs `regreen review` before pushing."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from regreen.code.symbol_index import SqliteOutlineStore
from regreen.reviewers.analyzers.script_checkers import find_program
from tests.unit.changes import ENV
from tests.unit.changes import Story as Repository

BAD = "def f(x):\n    return y\n"
# Every run starts the type checker; how long that takes says how busy the machine is, nothing of the code.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    repo = Repository(tmp_path / "repo")
    repo.change({"a.py": "def f(x):\n    return x\n"}, {"a.py": BAD})
    return repo


def regreen(
    repo: Repository, *args: str, stdin: str = "", where: Path | None = None
) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "regreen", "review", *args],
        cwd=where or repo.root, env=ENV | {"HOME": str(repo.root.parent)}, input=stdin, capture_output=True,
        text=True, check=False, timeout=400,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def found(out: str) -> list[tuple[str, int]]:
    data: dict[str, Any] = json.loads(out)
    return [(f["path"], f["line"]) for f in data["findings"]]


@pytest.mark.slow
def test_the_branch_is_held_against_main(repo: Repository) -> None:
    code, out, _ = regreen(repo)
    assert code == 0
    assert "a.py:2: high Undefined name `y`" in out
    assert "not reviewed: model: not configured (intent" in out


def test_json_stands_alone_on_standard_output(repo: Repository) -> None:
    code, out, err = regreen(repo, "--format", "json", "--no-model")
    assert (code, found(out)) == (0, [("a.py", 2)])
    assert "analyzers" in err


@pytest.mark.skipif(find_program("oxlint") is None, reason="oxlint is not installed")
def test_what_the_compiler_said_is_kept_for_the_next_review(repo: Repository) -> None:
    repo.run("checkout", "-q", "main")
    repo.change({"b.ts": "export const b = 1;\n"}, {"b.ts": "export const b = 2;\ndebugger;\n"})
    index = SqliteOutlineStore(repo.root.parent / ".regreen" / "index.sqlite")
    for places in ([("b.ts", 2)], []):
        code, out, _ = regreen(repo, "--no-model", "--format", "json")
        assert (code, found(out)) == (0, places)
        with closing(sqlite3.connect(index.path)) as db:
            keys = [key for (key,) in db.execute("SELECT key FROM outline")]
        index.put(dict.fromkeys(keys, b'{"diagnostics": []}'))


def test_a_home_that_others_may_write_to_ends_no_review_without_a_model(repo: Repository) -> None:
    (home := repo.root.parent / ".regreen").mkdir()
    home.chmod(0o777)
    code, out, _ = regreen(repo, "--format", "json", "--no-model")
    assert (code, found(out), [*home.iterdir()]) == (0, [("a.py", 2)], [])


def test_files_that_are_not_committed_yet(repo: Repository) -> None:
    (repo.root / "new.py").write_text("print(undefined1)\n")
    _, out, _ = regreen(repo, "--head", "WORKTREE", "--format", "json")
    assert found(out) == [("a.py", 2), ("new.py", 1)]
    assert repo.run("status", "--short") == "?? new.py\n", "nothing of the user's is touched"


def test_on_the_default_branch_the_range_is_chosen_and_named(repo: Repository) -> None:
    repo.run("checkout", "-q", "main")
    code, out, err = regreen(repo, "--no-model")
    assert (code, out) == (2, "")
    assert "the history has one commit, and nothing is uncommitted" in err
    (repo.root / "a.py").write_text(BAD)
    _, out, err = regreen(repo, "--no-model", "--format", "json")
    assert found(out) == [("a.py", 2)]
    assert "reviewing the uncommitted changes against HEAD" in err
    repo.commit({"a.py": BAD})
    _, out, err = regreen(repo, "--no-model", "--format", "json")
    assert found(out) == [("a.py", 2)]
    assert "reviewing the last commit" in err


@pytest.mark.parametrize("branches", ["--single-branch", "--no-single-branch"])
def test_a_clone_too_shallow_to_know_the_change_is_refused(
    repo: Repository, tmp_path: Path, branches: str
) -> None:
    repo.run("checkout", "-q", "main")
    repo.commit({"b.py": "print(1)\n"})
    url = f"file://{repo.root}"
    repo.run("clone", "-q", "--depth=1", branches, "--branch=change", url, str(tmp_path / "clone"))
    code, out, err = regreen(repo, "--no-model", where=tmp_path / "clone")
    assert (code, out) == (2, "")
    assert "run `git fetch --unshallow` first" in err


def test_commits_that_are_not_pushed_are_reviewed(repo: Repository, tmp_path: Path) -> None:
    repo.run("checkout", "-q", "main")
    repo.run("clone", "-q", "--bare", ".", str(tmp_path / "remote"))
    repo.run("remote", "add", "origin", str(tmp_path / "remote"))
    repo.run("fetch", "-q", "origin")
    repo.commit({"a.py": BAD})
    repo.commit({"b.py": "print(undefined1)\n"})
    _, out, err = regreen(repo, "--no-model", "--format", "json")
    assert found(out) == [("a.py", 2), ("b.py", 1)]
    assert "reviewing the commits since" in err


def test_a_patch_with_and_without_its_repository(repo: Repository) -> None:
    patch = repo.run("diff", "main", "change")
    repo.run("checkout", "-q", "main")
    _, out, _ = regreen(repo, "--diff", "-", "--repo", ".", "--format", "json", stdin=patch)
    assert found(out) == [("a.py", 2)]
    code, out, _ = regreen(repo, "--diff", "-", stdin=patch, where=repo.root.parent)
    assert code == 0
    assert "a bare patch: no repository to read around it" in out


def test_blocking_findings_exit_1_by_the_rules_of_the_base(repo: Repository) -> None:
    rules = {".github/regreen.yml": "review: {blocking: high}\n"}
    repo.commit(rules)
    assert regreen(repo)[0] == 0, "a change does not write its own rules"
    repo.run("checkout", "-q", "main")
    repo.commit(rules)
    repo.run("checkout", "-q", "change")
    repo.run("merge", "-q", "main", "-m", "m")
    assert regreen(repo)[0] == 1


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["--base", "nope"], 2, "no such revision"),
        (["--env", "X"], 2, "is not K=V"),
        (["--repo", "/nonexistent"], 3, "name a repository with --repo"),
        (["--diff", "/nonexistent"], 2, "cannot read the patch"),
        (["--diff", "-"], 2, "holds no unified diff"),
        (["--min-confidence", "2"], 2, "range"),
        (["--format", "xml"], 2, "xml"),
    ],
)
def test_wrong_use_is_answered_in_one_line(
    repo: Repository, args: list[str], code: int, said: str
) -> None:
    got, out, err = regreen(repo, *args, stdin="hello\n")
    assert (got, out) == (code, "")
    assert said in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


def test_all_formats(repo: Repository) -> None:
    assert json.loads(regreen(repo, "--format", "sarif")[1])["version"] == "2.1.0"
    assert "### Undefined name `y`" in regreen(repo, "--format", "markdown")[1]


@pytest.mark.slow
def test_thresholds_and_budget_can_be_set(repo: Repository) -> None:
    _, out, _ = regreen(repo, "--max-comments", "0", "--format", "json")
    assert [w["reason"] for w in json.loads(out)["withheld"] if w["rule"] == "ruff/F821"] == [
        "budget"
    ]
    _, out, _ = regreen(repo, "--min-confidence", "1", "--format", "json")
    assert found(out) == []
