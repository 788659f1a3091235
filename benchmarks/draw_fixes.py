"""Draw failing runs with a known end from public histories, by program and blind: small changes whose tests fail before them.

python benchmarks/draw_fixes.py REPO.git ... --take 10 --seed S --since 2024-06-01 --out DIR
    writes DIR/ID/case.json and, below DIR/ID/tests, the test files of the change, and prints one line a case. The scene:
    the parent, with these files laid over, where `python -m pytest -q FILES` fails; with the change it passes. Both were
    run in a box, under the same Python and setup. The same histories and seed give the same cases. The change itself
    is only named, so that who repairs it by hand need not see it.

A change: one commit with one parent, of at most 40 lines of Python source in at most three files, that touches a test
file. One from each repository, the repositories in an order drawn too; --per-repo for more, --tries candidates each.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from draw_prs import MOST_FIX_FILES, MOST_FIXED, Commit, History, is_code

from regreen.adapters.git.repository import GitRepository
from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.code.paths import is_test
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.ports import Git, Sandbox
from regreen.languages.python.dependencies import PythonDependencies
from regreen.packages.python_version import choose_python_version
from regreen.runs.test_runs import run_fresh
from regreen.runs.trial import Trial

TIMEOUT = 300.0  # seconds for one run of the tests of one change


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("repositories", nargs="+", type=Path, metavar="REPO.git")
    parser.add_argument("--take", type=int, default=10)
    parser.add_argument("--per-repo", type=int, default=1)
    parser.add_argument("--tries", type=int, default=6)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--since", type=datetime.fromisoformat, default="2024-06-01")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    after = args.since.replace(tzinfo=UTC).timestamp()
    sandbox = choose_sandbox("auto")
    order = sorted(args.repositories)
    random.Random(args.seed).shuffle(order)
    taken = 0
    for where in order:
        if taken == args.take:
            break
        history = History(where)
        git = GitRepository.open(where)
        drawn = candidates(history, after, random.Random(f"{args.seed}:{history.name}"))
        here = 0
        for commit in drawn[: args.tries]:
            if taken == args.take or here == args.per_repo:
                break
            case, why = scene(history, commit, git, sandbox)
            print(f"{history.name} {commit.sha[:12]} {why}", file=sys.stderr, flush=True)
            if case is not None:
                keep(case, git, commit, args.out)
                print(f"{case['id']} {history.name} {case['parent']}", flush=True)
                taken, here = taken + 1, here + 1


def candidates(history: History, after: float, dice: random.Random) -> list[Commit]:
    """The changes that fit, in an order that the dice give."""
    found = sorted((c for c in history.commits.values() if c.time > after and _fits(c)), key=lambda c: c.sha)  # fmt: skip
    dice.shuffle(found)
    return found


def _fits(commit: Commit) -> bool:
    source = [path for path in commit.paths if is_code(path)]
    few = 0 < commit.changed <= MOST_FIXED and 0 < len(source) <= MOST_FIX_FILES
    return few and any(_runs(path) for path in commit.paths)


def _runs(path: str) -> bool:
    return is_test(path) and path.endswith(".py") and Path(path).name.startswith("test")


def scene(
    history: History, commit: Commit, git: Git, sandbox: Sandbox
) -> tuple[dict[str, object] | None, str]:
    """The case, where its tests fail before the change and pass with it; and what was seen, in words."""
    laid = dict(_tests_of(commit, git))
    files = [path for path in laid if _runs(path)]
    if not files:
        return None, "the change takes tests away"
    parent = git.resolve(f"{commit.sha}^")
    setup = f"python -m pip install -q -e .\n{PythonDependencies().make_test_setup(git, parent)}"
    trial = Trial(
        ("python", "-m", "pytest", "-q", *files),
        setup=setup,
        overlay=MappingProxyType(laid),
        python=choose_python_version(git, parent, sandbox.pythons()),
        timeout=TIMEOUT,
    )
    started = time.monotonic()
    try:
        runs = {name: run_fresh(trial, rev, git=git, sandbox=sandbox) for name, rev in (("before", parent), ("after", commit.sha))}  # fmt: skip
    except (OutsideError, UserError) as error:
        return None, f"cannot be set up: {str(error)[:200]!r}"
    exits = {name: run.result.exit_code for name, run in runs.items()}
    if exits["after"] != 0 or exits["before"] != 1:
        return None, f"exits {exits['before']} before and {exits['after']} after"
    case: dict[str, object] = {
        "id": hashlib.sha256(f"{history.name}:{commit.sha}".encode()).hexdigest()[:10],
        "repo": history.name,
        "parent": parent,
        "change": commit.sha,
        "python": trial.python,
        "setup": setup,
        "command": shlex.join(trial.command),
        "overlay": list(laid),
        "failing": [failure.test for failure in runs["before"].failures],
        "seconds": round(time.monotonic() - started),
    }
    return case, "taken"


def _tests_of(commit: Commit, git: Git) -> Iterator[tuple[str, bytes]]:
    for path in commit.paths:
        data = git.show(commit.sha, path) if is_test(path) else None
        if data is not None:
            yield path, data


def keep(case: Mapping[str, object], git: Git, commit: Commit, out: Path) -> None:
    """Write the case and the files that are laid over."""
    folder = out / str(case["id"])
    for path, data in _tests_of(commit, git):
        file = folder / "tests" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


if __name__ == "__main__":
    main()
