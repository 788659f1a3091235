"""Public regressions turned red, through `regreen fix`: how many become green, by which rung.

    python -m benchmarks.fix_regressions --mirrors DIR [--only ID] [--rungs ...] [--as main|pr] > results.jsonl

`DIR/<owner>+<name>/repo` are git directories. "main" stands at the bad commit, with no good commit known to the
rungs beyond the case's; "pr" is a branch that carries the first bad commit alone, on top of its parent.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SHARED = Path(os.environ.get("REGREEN_TEST_DATA", ""), "data", "regressions")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--rungs", default="recipe,revert,shrink,template")
    parser.add_argument("--as", dest="scene", choices=["main", "pr"], default="main")
    parser.add_argument("--minutes", default="20")
    parser.add_argument("--sandbox", default="auto")
    given = parser.parse_args()
    loaded = json.loads((SHARED / "cases.json").read_text())
    cases = loaded if isinstance(loaded, list) else loaded["cases"]
    for case in cases:
        if given.only in case["id"]:
            print(json.dumps(run(case, given)), flush=True)


def run(case: dict[str, str], given: argparse.Namespace) -> dict[str, object]:
    """One case through the command line, and the same red commit through a plain `git revert` beside it."""
    repo = given.mirrors / case["repo"].replace("/", "+") / "repo"
    check = SHARED / case["check"]
    pull = given.scene == "pr"
    rev = case["first_bad"] if pull else case["bad"]
    base = [f"--base={case['first_bad']}~1"] if pull else [f"--base={case['good']}"]
    setup = (
        [f"--setup=pip install -q {' '.join(case['requirements'])}"] if case["requirements"] else []
    )
    patch = Path(tempfile.mkdtemp()) / "patch.diff"
    argv = [
        str(Path(sys.executable).with_name("regreen")), "fix", "--repo", str(repo), f"--rev={rev}", *base, *setup,
        "--overlay", f"{check}:regreen_check.py", "--env", f"PYTHONPATH={case['python_path']}", "--timeout", "120",
        "--max-minutes", given.minutes, "--rungs", given.rungs, "--patch-out", str(patch), "--format", "json",
        "--sandbox", given.sandbox,
        "--", "python", "regreen_check.py",
    ]  # fmt: skip
    started = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    found: dict[str, Any] = {"outcome": f"error {done.stderr[-300:]}"}
    if done.stdout.startswith("{"):
        found = json.loads(done.stdout)
    culprit = (found.get("culprit") or {}).get("sha")
    return {
        "id": case["id"],
        "scene": given.scene,
        "outcome": found["outcome"],
        "rung": found.get("rung"),
        "culprit_right": culprit in {case["first_bad"], *case["acceptable"]} if culprit else None,
        "lines": (found.get("patch") or "").count("\n"),
        "gate": [reason["detail"] for reason in (found.get("gate") or {}).get("reasons", [])],
        "attempts": [
            f"{one['rung']}: {one['summary']}: {one['outcome']}"
            for one in found.get("attempts", [])
        ],
        "patch": found.get("patch"),
        "seconds": round(time.monotonic() - started),
    }


if __name__ == "__main__":
    main()
