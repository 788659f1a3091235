"""Puts faults at random places of the product's code and counts those that the tests notice.

usage: python scripts/measure_mutants.py --contexts .coverage [--count 100] [--seed N] [--seconds 90] [--out FILE]

The contexts say which test runs which line; a run of the tests makes them:
`pytest -m "not soak and not slow" --cov --cov-context=test`. Each fault is put into a copy of the tree, in which the
tests of its line run, quickest files first, until one fails or the time is over. A fault in a line that no test runs
counts as unnoticed, and so does one whose tests need more time than they get.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from coverage import CoverageData

from regreen.languages.python.edits import make_mutants

ROOT = Path(__file__).resolve().parent.parent
_MOST_TESTS = 25


def product_files() -> Iterator[Path]:
    """The files of the product in which faults are put, those of the playground and of tests left out."""
    for path in sorted((ROOT / "regreen").rglob("*.py")):
        if path.name != "__main__.py" and "migrations" not in path.parts:
            yield path


def draw_faults(count: int, seed: int) -> list[tuple[str, int, str]]:
    """`count` faults as (path, line, the whole mutated text), at places drawn evenly from all that can be mutated."""
    faults = []
    for path in product_files():
        text = path.read_text()
        relative = str(path.relative_to(ROOT))
        every_line = list(range(1, text.count("\n") + 2))
        faults += [(relative, edit) for edit in make_mutants(text, every_line, len(text))]
    print(f"{len(faults)} faults can be made", flush=True)
    drawn = random.Random(seed).sample(faults, count)  # noqa: S311 # a sample, no secret
    return [(path, edit.line, edit.apply_to((ROOT / path).read_text())) for path, edit in drawn]


def tests_of_line(contexts: CoverageData, path: str, line: int) -> list[str]:
    """The tests that run a line, as pytest's node ids."""
    measured = next((file for file in contexts.measured_files() if file.endswith(f"/{path}")), "")
    names = contexts.contexts_by_lineno(measured).get(line, []) if measured else []
    return sorted({name.split("|")[0] for name in names if name})


def choose_tests(names: list[str], drawer: random.Random) -> list[str]:
    """At most a few of the tests: from as many files as possible, unit tests first."""
    drawer.shuffle(names)
    seen: dict[str, int] = {}
    rank = []
    for name in names:
        file = name.split("::")[0]
        seen[file] = seen.get(file, 0) + 1
        rank.append((seen[file], "/unit/" not in name, name))
    return [name for _, _, name in sorted(rank)[:_MOST_TESTS]]


def judge_fault(tree: Path, path: str, text: str, tests: list[str], seconds: float) -> str:
    """Run the tests with the fault in place: `killed`, `survived`, `out of time` or `not run`."""
    target = tree / path
    original = target.read_text()
    target.write_text(text)
    try:
        status = _run_tests(tree, tests, seconds)
    finally:
        target.write_text(original)
    if status not in {0, 1, None} and _run_tests(tree, tests, seconds) != 0:
        return "not run"  # the tests do not pass without the fault either
    return {0: "survived", None: "out of time"}.get(status, "killed")


def _run_tests(tree: Path, tests: list[str], seconds: float) -> int | None:
    """Pytest's exit status; None where the time is over."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]  # fmt: skip
    environment = os.environ | {
        "PYTHONPATH": f"{tree}:{tree / 'playground'}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        run = subprocess.run(
            [*command, *tests],
            cwd=tree,
            env=environment,
            timeout=seconds,
            check=False,
            capture_output=True,
        )
    except subprocess.TimeoutExpired:
        return None
    return run.returncode


def main() -> int:
    """Draw, run and count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--contexts", type=Path, required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    contexts = CoverageData(str(args.contexts))
    contexts.read()
    drawer = random.Random(args.seed)  # noqa: S311
    results = []
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        ignored = shutil.ignore_patterns(".git", ".venv", ".uv", ".*_cache", "__pycache__")
        shutil.copytree(ROOT, tree, ignore=ignored)
        for path, line, text in draw_faults(args.count, args.seed):
            tests = choose_tests(tests_of_line(contexts, path, line), drawer)
            begin = time.monotonic()
            word = judge_fault(tree, path, text, tests, args.seconds) if tests else "no test"
            fault = text.splitlines()[line - 1].strip()
            results.append(
                {"path": path, "line": line, "fault": fault, "tests": len(tests), "result": word}
            )
            print(
                f"{word:11} {time.monotonic() - begin:5.1f} s  {path}:{line}: {fault[:100]}",
                flush=True,
            )
    if args.out:
        args.out.write_text("".join(json.dumps(x) + "\n" for x in results))
    killed = sum(x["result"] == "killed" for x in results)
    print(f"{killed} of {len(results)} faults noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
