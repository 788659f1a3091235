"""The recipe class as a set: small real repositories whose failure has a known remedy, through `regreen fix`.

    python -m benchmarks.recipes [--kind python|missing|pins|locks|script|snapshots] [--only NAME,NAME] > results.jsonl

Packages come from their indexes in the setup, with the network phase; the failing command itself has no network.
A case counts where the command is green with the patch: at once, or (`person`) once a person has agreed.
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

from benchmarks.recipe_cases import CASES, Files, RecipeCase
from benchmarks.recipe_logs import ci
from benchmarks.recipe_shapes import FRESH, SHAPES


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--patches", action="store_true", help="show the patches too")
    parser.add_argument("--sandbox", default="auto")
    given = parser.parse_args()
    totals: Counter[str] = Counter()
    for case in (*CASES, *SHAPES, *FRESH):
        if given.kind in case.kind and (not given.only or case.name in given.only.split(",")):
            row = run(case, patches=given.patches, sandbox=given.sandbox)
            totals["mended" if row["mended"] else "not"] += 1
            print(json.dumps(row), flush=True)
    print(json.dumps({"total": totals}))


def run(case: RecipeCase, *, patches: bool, sandbox: str) -> dict[str, Any]:
    """One case through the command line."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        repo = Path(folder) / "repo"
        _commit(repo, case.files, "start")
        if case.last:
            _commit(repo, case.last, "break it")
        what = ci(case, repo, sandbox) if case.ci else ("--setup", case.setup, "--", case.command)
        argv = [
            str(Path(sys.executable).with_name("regreen")), "fix", "--repo", str(repo), "--no-model",
            "--rungs", "recipe", "--timeout", "120", "--sandbox", sandbox, "--format", "json", *what,
        ]  # fmt: skip
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    found: dict[str, Any] = {"outcome": f"error: {done.stderr[-600:]}"}
    if done.stdout.startswith("{"):
        found = json.loads(done.stdout)
    wanted = {"fixed", "needs_human"} if case.person else {"fixed"}
    row = {
        "name": case.name,
        "kind": case.kind,
        "outcome": found["outcome"],
        "mended": found["outcome"] in wanted and bool(found.get("patch")),
        "reason": found.get("reason"),
        "gate": [reason["detail"] for reason in (found.get("gate") or {}).get("reasons", [])],
        "attempts": [
            f"{one['summary']}: {one['outcome']} {one['detail']}"
            for one in found.get("attempts", [])
        ],
        "seconds": round(time.monotonic() - started, 1),
    }
    return {**row, "patch": found.get("patch")} if patches else row


def _commit(repo: Path, files: Files, subject: str) -> None:
    if not repo.exists():
        repo.mkdir()
        subprocess.run(["git", "init", "-q", "-b", "main", str(repo)], check=True)
    for name, text in files.items():
        target = repo / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, newline="")
    author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "-C", str(repo), "add", "-A"], check=True)
    subprocess.run(["git", "-C", str(repo), *author, "commit", "-qm", subject], check=True)


if __name__ == "__main__":
    main()
