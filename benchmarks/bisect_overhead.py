"""What a run of a bisection costs beside a bare checkout and the same test, commit by commit in turns.

    python benchmarks/bisect_overhead.py CASES.json REPOSITORIES [ID...] [--runs N] [--sleep S] [--sandbox KIND]

The two are timed at the same randomly chosen commits, one right after the other, so that the machine's load falls on
both; `fresh` is a run in a box of its own, as ends and proofs have it. CASES.json is described in
`bisect_regressions.py`. Prints one line a case.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from regreen.adapters.git.repository import GitRepository
from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.bisect.box_pool import BoxPool
from regreen.domain.ports import Sandbox
from regreen.runs.trial import Trial


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=Path)
    parser.add_argument("repositories", type=Path)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--sleep", type=float, default=0.0)
    parser.add_argument("--sandbox", default="auto")
    asked = parser.parse_args()
    sandbox = choose_sandbox(asked.sandbox)
    for case in json.loads(asked.cases.read_text()):
        if case["requirements"] or (asked.ids and case["id"] not in asked.ids):
            continue
        repo = asked.repositories / case["repo"].replace("/", "+") / "repo"
        text = (asked.cases.parent / case["check"]).read_bytes()
        if asked.sleep:
            text = b"import time; time.sleep(%f)\n" % asked.sleep + text
        rows = measure(case, repo, text, sandbox, asked.runs)
        bare, again, fresh = (sum(row[at] for row in rows) for at in range(3))
        middle = [median(row[at] for row in rows) for at in range(3)]
        print(
            case["id"],
            "bare {:.3f} s, emptied box {:.3f} s, fresh box {:.3f} s;".format(*middle),
            f"ratio of sums {again / bare:.2f}, fresh {fresh / bare:.2f}",
            flush=True,
        )


def measure(
    case: dict[str, Any], repo: Path, text: bytes, sandbox: Sandbox, runs: int
) -> list[tuple[float, float, float]]:
    git = GitRepository.open(repo)
    commits = [commit.sha for commit in git.commits(case["good"], case["bad"])]
    chosen = random.Random(1).choices(commits, k=runs)
    variables = (("PYTHONPATH", case["python_path"]),)
    trial = Trial(("python", "check_it.py"), env=variables, overlay={"check_it.py": text})
    boxes = BoxPool(git, sandbox)
    boxes.run_again(trial, chosen[0])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place, check = Path(folder, "clone"), Path(folder, "check_it.py")
        check.write_bytes(text)
        words = ["git", "clone", "-q", "--shared", "--no-checkout", str(repo), str(place)]
        subprocess.run(words, check=True)
        for sha in chosen:
            times = [time.perf_counter()]
            code = bare(place, sha, check, dict(variables))
            times.append(time.perf_counter())
            again, _ = boxes.run_again(trial, sha)
            times.append(time.perf_counter())
            fresh, _ = boxes.run_trial(trial, sha)
            times.append(time.perf_counter())
            if len({code, again.exit_code, fresh.exit_code}) > 1:
                sys.exit(f"{case['id']} {sha}: {code}, {again}, {fresh}")
            rows.append((times[1] - times[0], times[2] - times[1], times[3] - times[2]))
    boxes.close()
    return rows


def bare(place: Path, sha: str, check: Path, variables: dict[str, str]) -> int:
    """A checkout and the test, in a persistent clone and with no sandbox, by the interpreter itself."""
    subprocess.run(["git", "checkout", "-q", sha], cwd=place, check=True)
    interpreter = getattr(sys, "_base_executable", sys.executable)
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [interpreter, str(check)], cwd=place, env=environment, capture_output=True, check=False
    )
    return done.returncode


if __name__ == "__main__":
    main()
