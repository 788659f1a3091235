"""Run the review over the PR sets and score it. Figures: review.md.

python benchmarks/review.py [--only ID] [--out PREDICTIONS.jsonl] [--cut 0.8] [BUGS CLEAN]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regreen.adapters.git.repository import GitRepository
from regreen.domain.models import Review
from regreen.reviewers.pipeline import ReviewJob, review_change

SHARED = Path(os.environ.get("REGREEN_TEST_DATA", ""))
ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


def cases(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def repository(case: dict[str, Any], root: Path) -> tuple[str, str]:
    """A repository with two commits: the case's files before and after."""

    def git(*args: str) -> str:
        done = subprocess.run(["git", *args], cwd=root, env=ENV, capture_output=True, check=True)
        return done.stdout.decode().strip()

    git("init", "-q", "-b", "main")
    shas = []
    for side in ("before", "after"):
        for file in case["files"]:
            place = root / file["path"]
            if file[side] is None:
                place.unlink(missing_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(file[side].encode("utf-8", "surrogateescape"))
        git("add", "-A")
        git("commit", "-q", "--allow-empty", "-m", side)
        shas.append(git("rev-parse", "HEAD"))
    return shas[0], shas[1]


def run(case: dict[str, Any]) -> Review:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        base, head = repository(case, root / ".." / root.name)
        job = ReviewJob(base=base, head=head, title=case["title"], body=case["body"] or "")
        return review_change(
            job, git=GitRepository.open(root, root / ".view"), sandbox=None, model=None
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only")
    parser.add_argument("--out", type=Path, default=Path("predictions.jsonl"))
    parser.add_argument("--show", action="store_true")
    parser.add_argument("sets", nargs="*", type=Path)
    args = parser.parse_args()
    sets = args.sets or [SHARED / f"data/review/{k}_prs.public.jsonl.gz" for k in ("bug", "clean")]
    withheld: Counter[tuple[str, str, str]] = Counter()
    with args.out.open("w") as out:
        for kind, path in zip(("bug", "clean"), sets, strict=True):
            for case in cases(path):
                if args.only and args.only != case["id"]:
                    continue
                started = time.monotonic()
                result = run(case)
                row = {
                    "id": case["id"],
                    "comments": [
                        {
                            "path": f.path,
                            "line": f.line,
                            "body": f"{f.title}\n{f.body}",
                            "confidence": f.confidence,
                        }
                        for f in result.findings
                    ],
                }
                out.write(json.dumps(row) + "\n")
                for f in result.findings:
                    print(
                        f"{kind} {case['id']} {f.path}:{f.line} {f.rule} {f.confidence} {f.title}"
                    )
                for w in result.withheld:
                    withheld[kind, w.reason, w.finding.rule] += 1
                    if args.show:
                        f = w.finding
                        print(
                            f"  withheld({w.reason}) {case['id']} {f.path}:{f.line} {f.rule} {f.confidence} {f.title}"
                        )
                print(
                    f"{case['id']}: {time.monotonic() - started:.1f} s {result.not_reviewed or ''}",
                    file=sys.stderr,
                )
    for key, count in withheld.most_common():
        print("withheld", *key, count)


if __name__ == "__main__":
    main()
