"""`regreen prove` on real commits: bug fixes, refactorings, and fixes whose tests a script made unable to fail.

    python -m benchmarks.prove --project NAME=GIT_DIR[=PACKAGES] ... --kind fix|refactor [--each 6] [--seed 1] [--neuter 0] > rows.jsonl
    python -m benchmarks.prove --sum rows.jsonl

A commit is drawn from the latest ones that change both tests and sources of Python, and whose subject says `fix` (and
no word such as typo, docs, lint) or `refactor`. The label of a fix is a plain run of its new and changed tests: with the
commit, and with its test files on the parent (`fails without` is what a proof can show). The environment is inferred where no PACKAGES are named. Neutered variants are made of each fix that is proven, `--neuter` of them, in ways that the seed chooses.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regreen.adapters.git.repository import GitRepository
from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.cli.env import complete_local_trial
from regreen.code.paths import is_source, is_test
from regreen.code.python_calls import FunctionNode
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.ports import Sandbox
from regreen.languages.python.test_tools import PYTHON_TESTS
from regreen.packages.python_version import choose_python_version
from regreen.proofs.changed_tests import ChangedTest, divide_change
from regreen.proofs.prove import ProofJob, prove_change
from regreen.runs.test_runs import run_fresh
from regreen.runs.trial import Trial

_SUBJECTS = {"fix": re.compile(r"(?i)\bfix(?:e[sd])?\b"), "refactor": re.compile(r"(?i)\brefactor")}
_NO_FIX = re.compile(r"(?i)\b(?:typos?|docs?|docstrings?|lint\w*|tests?|ci|flake8?|mypy|typing|types?|annotations?|pre-commit|build|warnings?|format\w*|coverage|merge|bump|release|changelog|readme)\b")  # fmt: skip
_LATEST = 500


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--project", action="append", default=[])
    parser.add_argument("--kind", choices=sorted(_SUBJECTS), default="fix")
    parser.add_argument("--each", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--neuter", type=int, default=0)
    parser.add_argument("--mutants", type=int, default=20)
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--sum", type=Path)
    given = parser.parse_args()
    if given.sum:
        print_summary(given.sum)
        return
    sandbox = choose_sandbox(given.sandbox)
    with tempfile.TemporaryDirectory() as folder:
        for named in given.project:
            name, place, packages, *_ = [*named.split("="), ""]
            clone = Path(folder) / name
            subprocess.run(["git", "clone", "-q", "--bare", "--shared", place, clone], check=True)
            for head in draw_commits(clone, given.kind, given.each, given.seed):
                for row in run_case(clone, head, packages, sandbox, given):
                    row["project"] = name
                    print(json.dumps(row), flush=True)


def draw_commits(repo: Path, kind: str, count: int, seed: int) -> list[str]:
    """Commits of a kind that change tests and sources of Python, drawn evenly from the latest."""
    out = _git(repo, "log", "--no-merges", f"-{_LATEST}", "--format=%x00%H %s", "--name-only", "HEAD")  # fmt: skip
    found = []
    for entry in out.split("\0")[1:]:
        first, *paths = entry.strip().splitlines()
        sha, _, subject = first.partition(" ")
        python = [path for path in paths if path.endswith(".py")]
        if (
            _SUBJECTS[kind].search(subject)
            and not (kind == "fix" and _NO_FIX.search(subject))
            and any(is_test(path) for path in python)
            and any(is_source(path) and "/" in path for path in python)
        ):
            found.append(sha)
    return random.Random(seed).sample(found, min(count, len(found)))


def run_case(
    repo: Path, head: str, packages: str, sandbox: Sandbox, given: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """The row of a commit, and those of its neutered variants."""
    git = GitRepository.open(repo)
    base = git.commit(head).parents[0]
    trial = make_trial(git, head, packages, sandbox)
    title = git.commit(head).subject
    parts = divide_change(git, base, head)
    own, label = 0.0, "no test function"
    if parts.tests:
        alone = choose_tests_alone(trial, parts.tests)
        try:
            run_fresh(alone, head, git=git, sandbox=sandbox)  # makes the environment
            started = time.monotonic()
            run_fresh(alone, head, git=git, sandbox=sandbox)
            own = time.monotonic() - started
        except (UserError, OutsideError):
            pass
        label = label_tests(alone, git, base, head, sandbox)
    row = judge(git, ProofJob(trial, base, head, title, "", given.mutants, 1.0), sandbox)
    yield {
        "kind": given.kind,
        "head": head[:12],
        "title": title[:80],
        "own_seconds": round(own, 1),
        "label": label,
        **row,
    }
    if row["verdict"] != "proven":
        return
    order = random.Random(f"{given.seed}:{head}")
    for way in order.sample(sorted(WAYS), min(given.neuter, len(WAYS))):
        changed = neuter_commit(repo, git, base, head, WAYS[way])
        if changed:
            job = ProofJob(trial, base, changed, title, "", 3, 0.2)
            alone = choose_tests_alone(trial, parts.tests)
            label = label_tests(alone, git, base, changed, sandbox)
            yield {"kind": "neutered", "way": way, "head": head[:12], "label": label, **judge(git, job, sandbox)}  # fmt: skip


def choose_tests_alone(trial: Trial, tests: Sequence[ChangedTest]) -> Trial:
    """The new and changed tests, as one command of pytest."""
    paths = list(dict.fromkeys(test.path for test in tests))
    names = list(dict.fromkeys(test.function for test in tests))
    return replace(trial, command=PYTHON_TESTS.run_functions((), names, paths))


def label_tests(alone: Trial, git: GitRepository, base: str, head: str, sandbox: Sandbox) -> str:
    """What two plain runs of the tests show: with the change, and with its test files on the parent."""
    try:
        with_change = run_fresh(alone, head, git=git, sandbox=sandbox)
        tests_alone = lay_tests_over(git.git_dir, base, head)
        without = run_fresh(alone, tests_alone, git=git, sandbox=sandbox)
    except (UserError, OutsideError):
        return "does not run"
    if not with_change.is_green:
        return "fails with"
    return "passes without" if without.is_green else "fails without"


def lay_tests_over(repo: Path, base: str, head: str) -> str:
    """The parent with the test files of the head, as a commit."""
    changed = _git(repo, "diff", "--name-only", "--no-renames", "--diff-filter=AM", base, head)
    paths = [path for path in changed.splitlines() if is_test(path)]
    env = {**os.environ, "GIT_INDEX_FILE": str(repo / "label.index")}
    _git(repo, "read-tree", base, env=env)
    rows = _git(repo, "ls-tree", "-r", head, "--", *paths)
    _git(repo, "update-index", "--add", "--index-info", stdin=rows, env=env)
    return _commit_index(repo, base, "tests alone", env)


def make_trial(git: GitRepository, head: str, packages: str, sandbox: Sandbox) -> Trial:
    """How the tests run: with these packages, or as inferred, as on the command line, where none are given."""
    if packages:
        return Trial(
            ("python", "-m", "pytest"),
            setup=f"pip install -q 'pytest<9' {packages.replace(',', ' ')}",
            env=(("PYTHONPATH", "/work/src:/work"), ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "")),
            timeout=120,
        )
    trial = Trial((), timeout=120)
    done = complete_local_trial(trial, head, git=git, sandbox=sandbox, minutes=5)
    return replace(done.trial, python=done.trial.python or choose_python_version(git, head, sandbox.pythons()))  # fmt: skip


def judge(git: GitRepository, job: ProofJob, sandbox: Sandbox) -> dict[str, Any]:
    """What `prove` says of a change, and how long it took."""
    started = time.monotonic()
    try:
        found = prove_change(job, git=git, sandbox=sandbox)
    except (UserError, OutsideError) as error:
        return {"verdict": "error", "reason": str(error)[:300]}
    tests = [f"{one.verdict} {one.test}: {one.reason}"[:400] for one in found.tests[:12]]
    lived = sum(one.killed_by is None for one in found.mutants)
    return {
        "verdict": found.verdict,
        "reason": found.reason[:300],
        "tests": tests,
        "claims": [f"{one.text}: {one.holds}, {one.reason}"[:300] for one in found.claims],
        "mutants": [len(found.mutants), lived],
        "seconds": {key: round(value, 1) for key, value in found.seconds.items()},
        "all_seconds": round(time.monotonic() - started, 1),
    }


# -- tests that cannot fail --------------------------------------------------------------------------------------


class _Neuter(ast.NodeTransformer):
    """Changes the assertions of the functions named; `change` makes statements of an assertion."""

    def __init__(self, change: Callable[[ast.expr], str]) -> None:
        self.change = change

    def visit_Assert(self, node: ast.Assert) -> Any:
        return ast.parse(self.change(node.test)).body

    def visit_Expr(self, node: ast.Expr) -> Any:
        match node.value:
            case ast.Call(func=ast.Attribute(attr=name), args=[left, right, *_]) if name.startswith("assertEqual"):  # fmt: skip
                return self.visit_Assert(ast.Assert(ast.Compare(left, [ast.Eq()], [right])))
            case ast.Call(func=ast.Attribute(attr=name), args=[*args]) if name.startswith("assert"):
                return ast.parse("\n".join(ast.unparse(arg) for arg in args) or "pass").body
            case _:
                return node

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        said = ast.unparse(node.items[0].context_expr)
        if re.search(r"\b(?:pytest\.(?:raises|warns)|assertRaises|assertWarns|raises)\b", said):
            return _swallow(node.body)
        return node


def _swallow(body: list[ast.stmt]) -> ast.stmt:
    handler = ast.ExceptHandler(ast.Name("BaseException"), None, [ast.Pass()])
    return ast.fix_missing_locations(ast.Try(body, [handler], [], []))


def _compare(test: ast.expr, text: str, other: str) -> str:
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
        left, right = ast.unparse(test.left), ast.unparse(test.comparators[0])
        callee = ast.unparse(test.left.func) if isinstance(test.left, ast.Call) else left
        return text.format(left=left, right=right, callee=callee)
    return other.format(test=ast.unparse(test))


def _by_assertion(text: str, other: str) -> Callable[[ast.FunctionDef], None]:
    def change(node: ast.FunctionDef) -> None:
        new = _Neuter(lambda test: _compare(test, text, other))
        node.body = [one for old in node.body for one in _as_list(new.visit(old))] or [ast.Pass()]

    return change


def _as_list(node: Any) -> list[ast.stmt]:
    return node if isinstance(node, list) else [node]


def _swallow_all(node: ast.FunctionDef) -> None:
    node.body = [_swallow(node.body)]


class _InsertBody(ast.NodeTransformer):
    def __init__(self, body: list[ast.stmt]) -> None:
        self.body = body

    def visit_Expr(self, node: ast.Expr) -> Any:
        return self.body if ast.unparse(node) == "BODY" else node


def _wrap(text: str) -> Callable[[ast.FunctionDef], None]:
    """The body of the test in the place of `BODY`, below other statements."""

    def change(node: ast.FunctionDef) -> None:
        node.body = _InsertBody(node.body).visit(ast.parse(text)).body

    return change


def _start_with(text: str) -> Callable[[ast.FunctionDef], None]:
    def change(node: ast.FunctionDef) -> None:
        node.body = [*ast.parse(text).body, *node.body]

    return change


def _test_another(node: ast.FunctionDef) -> None:
    node.body = ast.parse("assert sorted([2, 1]) == [1, 2]").body


WAYS: dict[str, Callable[[ast.FunctionDef], None]] = {
    "no assertion": _by_assertion("{left}", "{test}"),
    "always true": _by_assertion("assert {left} == {right} or True", "assert ({test}) or True"),
    "computed": _by_assertion("expected = {left}\nassert {left} == expected", "assert bool({test}) or not ({test})"),
    "assert True": _by_assertion("{left}\nassert True", "{test}\nassert True"),
    "skipped": _start_with("import pytest\npytest.skip('not now')"),
    "swallowed": _swallow_all,
    "another function": _test_another,
    "mocked": _by_assertion("from unittest import mock\nassert mock.Mock(return_value={right})() == {right}", "pass"),
    "expected to fail": _start_with("import pytest\npytest.xfail('known')"),
    "returns first": _start_with("if len('ab') == 2:\n    return"),
    "never called": _wrap("def check():\n    BODY\nassert callable(check)"),
    "empty loop": _wrap("for _ in []:\n    BODY"),
    "another system": _wrap("import sys\nif sys.platform == 'aix':\n    BODY"),
    "suppressed": _wrap("import contextlib\nwith contextlib.suppress(Exception):\n    BODY"),
    "printed": _wrap("try:\n    BODY\nexcept Exception as error:\n    print(error)"),
    "type alone": _by_assertion("result = {left}\nassert isinstance(result, type(result))", "result = {test}\nassert isinstance(bool(result), bool)"),
    "its own literal": _by_assertion("assert {right} == {right}", "assert ({test}) in (True, False) or ({test}) is not None"),
}  # fmt: skip


def neuter_commit(
    repo: Path, git: GitRepository, base: str, head: str, change: Callable[[ast.FunctionDef], None]
) -> str | None:
    """The head with its new and altered tests neutered, as a commit; None where nothing of them changes."""
    parts = divide_change(git, base, head)
    env = {**os.environ, "GIT_INDEX_FILE": str(repo / "neuter.index")}
    _git(repo, "read-tree", head, env=env)
    done = False
    for path in {test.path for test in parts.tests}:
        text = (git.show(head, path) or b"").decode()
        tree = ast.parse(text)
        names = {test.function for test in parts.tests if test.path == path}
        for node in ast.walk(tree):
            if isinstance(node, FunctionNode) and node.name in names:
                change(node)
        new = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        done = done or new != ast.unparse(ast.parse(text)) + "\n"
        blob = _git(repo, "hash-object", "-w", "--stdin", stdin=new).strip()
        _git(repo, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", env=env)
    if not done:
        return None
    return _commit_index(repo, base, "neutered", env)


def _commit_index(repo: Path, parent: str, subject: str, env: dict[str, str]) -> str:
    tree_id = _git(repo, "write-tree", env=env).strip()
    who = {**env, "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "n@n", "GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "n@n"}  # fmt: skip
    return _git(repo, "commit-tree", tree_id, "-p", parent, "-m", subject, env=who).strip()


def _git(repo: Path, *args: str, stdin: str = "", env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        ["git", "-C", repo, *args], input=stdin, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout


def print_summary(path: Path) -> None:
    """How many of each kind ended how, and what a proof took."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for kind in sorted({row["kind"] for row in rows}):
        chosen = [row for row in rows if row["kind"] == kind]
        counts = Counter(row["verdict"] for row in chosen)
        took = [row["seconds"]["proof"] for row in chosen if "seconds" in row]
        median = f", median {statistics.median(took):.1f} s" if took else ""
        ratios = [
            row["seconds"]["proof"] / row["own_seconds"]
            for row in chosen
            if row.get("own_seconds") and "seconds" in row
        ]
        median += f", {statistics.median(ratios):.1f} times one run of the tests" if ratios else ""
        print(f"{kind}: {len(chosen)}, {dict(counts)}{median}", file=sys.stdout)
        labelled = Counter((row["label"], row["verdict"]) for row in chosen if "label" in row)
        for (label, verdict), count in sorted(labelled.items()):
            print(f"  {label}: {verdict} {count}")


if __name__ == "__main__":
    main()
