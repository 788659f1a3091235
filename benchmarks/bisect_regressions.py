"""Real regressions through `regreen bisect`, and through `git bisect run` on the same machine.

    python benchmarks/bisect_regressions.py CASES.json REPOSITORIES [ID...] [--no-git] [-- FLAG...]

CASES.json lists objects with id, repo (owner/name), good, bad, first_bad, acceptable, first_bad_first_parent, check (a
file beside it; exit 0 good, 1 bad, 125 untestable), python_path, requirements. REPOSITORIES/OWNER+NAME/repo are git
directories. Prints one line a case.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REGREEN = Path(sys.executable).parent / "regreen"


def main() -> None:
    words: list[str] = sys.argv[1:]
    flags: list[str] = []
    if "--" in words:
        at = words.index("--")
        words, flags = words[:at], words[at + 1 :]
    with_git = "--no-git" not in words
    listed, repos, *ids = [word for word in words if word != "--no-git"]
    cases = json.loads(Path(listed).read_text())
    right = 0
    chosen = [case for case in cases if not ids or case["id"] in ids]
    for case in chosen:
        repo = Path(repos) / case["repo"].replace("/", "+") / "repo"
        check = Path(listed).parent / case["check"]
        found, seconds = with_regreen(case, repo, check, flags)
        good = is_right(case, found, flags)
        right += good
        line = [
            case["id"],
            "right" if good else "WRONG",
            found["outcome"],
            found["range"]["commits"],
        ]
        line += [found["tests"], f"{seconds:.1f}s", f"{per_test(found):.2f}s/test"]
        if with_git and not case["requirements"]:
            steps, spent = with_git_bisect(case, repo, check)
            line += ["git:", steps, f"{spent:.1f}s", f"{spent / max(1, steps):.2f}s/step"]
        print(*line, flush=True)
    print(f"{right} of {len(chosen)} right")


def with_regreen(
    case: dict[str, Any], repo: Path, check: Path, flags: list[str]
) -> tuple[dict[str, Any], float]:
    command = [
        str(REGREEN),
        "bisect",
        "--repo",
        str(repo),
        "--good",
        case["good"],
        "--bad",
        case["bad"],
    ]
    command += ["--env", f"PYTHONPATH={case['python_path']}", "--overlay", f"{check}:check_it.py"]
    if case["requirements"]:
        command += ["--setup", "pip install " + " ".join(case["requirements"])]
    command += ["--format", "json", *flags, "--", "python", "check_it.py"]
    with tempfile.TemporaryDirectory() as home:
        started = time.monotonic()
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "REGREEN_HOME": home},
        )
    if not done.stdout:
        sys.exit(f"{case['id']}: {done.stderr[-500:]}")
    return json.loads(done.stdout), time.monotonic() - started


def is_right(case: dict[str, Any], found: dict[str, Any], flags: list[str]) -> bool:
    wanted = {case["first_bad"], *case["acceptable"]}
    if "--first-parent" in flags:
        wanted.add(case["first_bad_first_parent"])
    if found["culprit"]:
        return found["culprit"]["sha"] in wanted
    return found["outcome"] == "narrowed" and bool(
        wanted & {suspect["sha"] for suspect in found["credible_set"]}
    )


def per_test(found: dict[str, Any]) -> float:
    spent = [seen["seconds"] for seen in found["observations"] if not seen["reused"]]
    return sorted(spent)[len(spent) // 2] if spent else 0.0


def with_git_bisect(case: dict[str, Any], repo: Path, check: Path) -> tuple[int, float]:
    """Steps and seconds of `git bisect run` in a clone; no sandbox, every answer believed once."""
    folder = Path(tempfile.mkdtemp())
    try:
        clone = folder / "clone"
        git("clone", "-q", "--shared", "--no-checkout", str(repo), str(clone), cwd=folder)
        git("checkout", "-q", case["bad"], cwd=clone)
        started = time.monotonic()
        git("bisect", "start", case["bad"], case["good"], cwd=clone)
        environment = {**os.environ, "PYTHONPATH": case["python_path"]}
        done = subprocess.run(
            ["git", "bisect", "run", "python3", str(check)],
            check=False, cwd=clone, capture_output=True, text=True, env=environment,
        )  # fmt: skip
        return done.stdout.count("running "), time.monotonic() - started
    finally:
        shutil.rmtree(folder)


def git(*words: str, cwd: Path) -> None:
    subprocess.run(["git", *words], cwd=cwd, check=True, capture_output=True)


if __name__ == "__main__":
    main()
