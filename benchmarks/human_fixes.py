"""Real fixes by people, through the gate's looking checks: how many would be refused.

    python -m benchmarks.human_fixes --mirrors DIR [--only NAME,NAME] [--language python] [--per-repo 10] [--seed 1] > results.jsonl

Takes commits whose subject says "fix" and that touch one to four files of source in the language, tests included as
they are, and judges each against its parent.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from regreen.adapters.git.repository import GitRepository
from regreen.code.paths import is_source
from regreen.gate.judge import changed_files, judge_files

_FIX = re.compile(r"\b(fix|fixes|fixed|bug|bugfix|regression|crash)\b", re.IGNORECASE)
_LANGUAGES = {
    "python": (".py",),
    "javascript": (".js", ".ts", ".mjs", ".tsx"),
    "go": (".go",),
    "rust": (".rs",),
}
_NOT = re.compile(
    r"\b(typo|docs?|documentation|changelog|lint|flake8|mypy|typing|ci|spelling|comment|test|tests)\b",
    re.IGNORECASE,
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--language", choices=sorted(_LANGUAGES), default="python")
    parser.add_argument("--per-repo", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    totals: Counter[str] = Counter()
    suffixes = _LANGUAGES[given.language]
    for folder in sorted(given.mirrors.iterdir()):
        where = folder / "repo"
        if not where.is_dir() or (given.only and folder.name not in given.only.split(",")):
            continue
        git = GitRepository.open(where)
        commits = fixes(where, suffixes)
        chance.shuffle(commits)
        taken = 0
        for sha, subject in commits[:200]:
            if taken >= given.per_repo:
                break
            files = changed_files(git, f"{sha}~1", sha)
            sources = [file for file in files if is_source(file.path) and file.suffix in suffixes]
            if not sources or len(files) > 6 or len(sources) > 4:
                continue
            taken += 1
            report = judge_files(files, tree=[])
            totals[report.verdict] += 1
            reasons = [
                f"{one.check}: {one.detail}"
                for one in report.reasons
                if one.level == report.verdict
            ]
            print(
                json.dumps(
                    {
                        "repo": folder.name,
                        "sha": sha,
                        "subject": subject,
                        "verdict": report.verdict,
                        "reasons": reasons,
                    }
                ),
                flush=True,
            )
    print(json.dumps({"total": dict(totals)}))


def fixes(where: Path, suffixes: Sequence[str]) -> list[tuple[str, str]]:
    """Commits since 2019 that say they mend something."""
    argv = [
        "git",
        "--git-dir",
        str(where),
        "log",
        "--no-merges",
        "--since=2019-01-01",
        "--format=%H%x09%s",
        "HEAD",
        "--",
        *(f"*{suffix}" for suffix in suffixes),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
    pairs = [line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line]
    return [
        (sha, subject)
        for sha, subject in pairs
        if _FIX.search(subject) and not _NOT.search(subject)
    ]


if __name__ == "__main__":
    main()
