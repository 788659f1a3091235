"""What `regreen fix` publishes by itself on red default branches, and whether that was right.

    python -m benchmarks.repair_choices [--set mechanical-held-back] [--only NAME,NAME] [--sandbox bwrap] > results.jsonl

A case is wrong where a patch is published without a person's word and the tree with it lacks what the case keeps, or
the failing command is still red there. Packages come from their index in the setup; the command has no network.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import (
    caller_cases,
    mechanical_cases,
    mechanical_eighteenth_cases,
    mechanical_eleventh_cases,
    mechanical_fifteenth_cases,
    mechanical_fourteenth_cases,
    mechanical_more_cases,
    mechanical_seventeenth_cases,
    mechanical_sixteenth_cases,
    mechanical_thirteenth_cases,
    mechanical_twelfth_cases,
    mechanical_unseen_cases,
)
from benchmarks.repair_choice_cases import CASES, START, Choice, Files
from benchmarks.repair_choice_fresh import FRESH

SETS = {
    "choices": (*CASES, *FRESH),
    "mechanical": tuple(one for one in mechanical_cases.CASES if one.name not in mechanical_cases.HELD_BACK),
    "mechanical-held-back": tuple(one for one in mechanical_cases.CASES if one.name in mechanical_cases.HELD_BACK),
    "mechanical-fresh": mechanical_cases.FRESH,
    "mechanical-first": (*mechanical_more_cases.FIRST, *mechanical_more_cases.FIRST_TEMPTING),
    "mechanical-second": (*mechanical_more_cases.SECOND, *mechanical_more_cases.SECOND_TEMPTING),
    "mechanical-third": mechanical_unseen_cases.THIRD,
    "mechanical-fourth": mechanical_unseen_cases.FOURTH,
    "mechanical-fifth": mechanical_unseen_cases.FIFTH,
    "mechanical-sixth": mechanical_unseen_cases.SIXTH,
    "mechanical-seventh": mechanical_unseen_cases.SEVENTH,
    "mechanical-eighth": mechanical_unseen_cases.EIGHTH,
    "mechanical-ninth": mechanical_unseen_cases.NINTH,
    "mechanical-tenth": mechanical_unseen_cases.TENTH,
    "mechanical-eleventh": mechanical_eleventh_cases.ELEVENTH,
    "mechanical-twelfth": mechanical_twelfth_cases.TWELFTH,
    "mechanical-thirteenth": mechanical_thirteenth_cases.THIRTEENTH,
    "mechanical-fourteenth": mechanical_fourteenth_cases.FOURTEENTH,
    "mechanical-fifteenth": mechanical_fifteenth_cases.FIFTEENTH,
    "mechanical-sixteenth": mechanical_sixteenth_cases.SIXTEENTH,
    "mechanical-seventeenth": mechanical_seventeenth_cases.SEVENTEENTH,
    "mechanical-eighteenth": mechanical_eighteenth_cases.EIGHTEENTH,
    "callers": caller_cases.DEVELOPMENT,
    "callers-fresh": caller_cases.FRESH,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--set", choices=SETS, default="choices")
    parser.add_argument("--only", default="")
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--minutes", default="8")
    parser.add_argument("--rungs", default="recipe,revert,shrink,template")
    parser.add_argument("--part", default="0/1", help="of the cases, every Nth from K: K/N")
    given = parser.parse_args()
    at, of = (int(number) for number in given.part.split("/"))
    totals: Counter[str] = Counter()
    for case in SETS[given.set][at::of]:
        if not given.only or case.name in given.only.split(","):
            row = run(case, given)
            totals[f"{row['kind']}: {row['verdict']}"] += 1
            print(json.dumps(row), flush=True)
    print(json.dumps({"total": totals}), flush=True)


def run(case: Choice, given: argparse.Namespace) -> dict[str, Any]:
    """One case through the command line, with every rung that needs no model."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        repo = Path(folder) / "repo"
        commit(repo, {**START, **case.start}, "Start")
        for message, files in getattr(
            case, "history", (("Say something", {"NEWS.txt": "first\n"}),)
        ):
            commit(repo, files, message)
        commit(repo, case.culprit, case.message)
        commit(repo, case.later, "Note")
        argv = [
            sys.executable, "-m", "regreen", "fix", "--repo", str(repo), "--no-model", "--timeout", "120",
            "--rungs", given.rungs, "--max-minutes", given.minutes, "--sandbox", given.sandbox, "--format", "json",
            "--setup", case.setup, "--", case.command,
        ]  # fmt: skip
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        found: dict[str, Any] = {"outcome": f"error: {done.stderr[-600:]}"}
        if done.stdout.startswith("{"):
            found = json.loads(done.stdout)
        patch = found.get("patch") or ""
        is_kept = bool(patch) and _keeps(repo, patch, case)
        # taking back a part of what a check of form complains about is no answer, though the rest is kept
        undone = case.form and found.get("rung") in {"revert", "shrink"}
    return {
        "name": case.name,
        "kind": "form" if case.form else "right" if case.right else "tempting",
        "outcome": found["outcome"],
        "rung": found.get("rung"),
        "verdict": _verdict(found["outcome"], is_right=is_kept and not undone),
        "reasons": [
            f"{one['check']}: {one['detail']}"
            for one in (found.get("gate") or {}).get("reasons", [])
            if one["level"] in {"deny", "needs_human"}
        ],
        "attempts": [f"{one['rung']}: {one['summary']}: {one['outcome']}" for one in found.get("attempts", [])],
        "hints": [hint[:200] for hint in found.get("hints", [])],
        "reason": found.get("reason"),
        "seconds": round(time.monotonic() - started),
        "patch": patch,
    }  # fmt: skip


def _verdict(outcome: str, *, is_right: bool) -> str:
    if outcome == "fixed":
        return "published, right" if is_right else "published, wrong"
    if outcome == "needs_human":
        return "waits, right" if is_right else "waits, wrong"
    return "no patch"


def _keeps(repo: Path, patch: str, case: Choice) -> bool:
    """Whether the tree with the patch still has what the case keeps."""
    git = ["git", "-C", str(repo)]
    subprocess.run([*git, "apply", "--index"], input=patch, text=True, check=True)
    try:
        done = subprocess.run(
            [sys.executable, "-c", case.keeps], cwd=repo, capture_output=True, text=True, timeout=60, check=False
        )  # fmt: skip
    finally:
        subprocess.run([*git, "reset", "-q", "--hard"], check=True)
    return done.returncode == 0


def commit(repo: Path, files: Files, message: str) -> None:
    """Lay files over a repository, made where it is not there yet, and commit."""
    if not repo.exists():
        repo.mkdir()
        subprocess.run(["git", "init", "-q", "-b", "main", str(repo)], check=True)
    for name, text in files.items():
        target = repo / name
        if text is None:
            target.unlink(missing_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, newline="")
        target.chmod(0o755 if text.startswith("#!") else 0o644)
    author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "-C", str(repo), "add", "-A"], check=True)
    subprocess.run(["git", "-C", str(repo), *author, "commit", "-qm", message], check=True)


if __name__ == "__main__":
    main()
