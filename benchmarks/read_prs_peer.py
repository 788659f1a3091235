"""Have PR-Agent review the same public pull requests with the same reader, and score what it names. Figures: review.md.

python benchmarks/read_prs_peer.py run OUT --program PR_AGENT --url ENDPOINT --cases IDS.txt [BUGS CLEAN]
    PR_AGENT: its command line program, in an environment of its own (it is no dependency of ours). Its local provider
    is used with its defaults: `/review`, which names at most three key issues. The pull request's title and text are
    the commit's message, as that provider has it.
python benchmarks/read_prs_peer.py score OUT --cases IDS.txt [BUGS CLEAN]
    reads the key issues from the model's answers (OUT/answers/NAME.yml, put there by `run`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from read_prs import MOST_COMMENTS, _name, _scorer
from review import ENV, SHARED, cases, repository
from ruamel.yaml import YAML


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("verb", choices=["run", "score"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--program", default="pr-agent")
    parser.add_argument("--url", default="http://127.0.0.1:8765")
    parser.add_argument("--model", default="anthropic/claude-sonnet-4-5")
    parser.add_argument("--desk", type=Path, help="the folder of the hand-answered endpoint")
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("sets", nargs="*", type=Path)
    args = parser.parse_args()
    sets = args.sets or [SHARED / f"data/review/{k}_prs.public.jsonl.gz" for k in ("bug", "clean")]
    kinds = {c["id"]: (kind, c) for kind, p in zip(("bug", "clean"), sets, strict=True) for c in cases(p)}  # fmt: skip
    chosen = {i: kinds[i] for i in sorted(args.cases.read_text().split(), key=_name)}
    (args.out / "answers").mkdir(parents=True, exist_ok=True)
    if args.verb == "score":
        score(args.out, chosen)
        return
    for number, (_, case) in enumerate(chosen.values(), 1):
        name = _name(case["id"])
        kept = args.out / "answers" / f"{name}.yml"
        if kept.exists():
            continue
        print(f"case {number} of {len(chosen)} ({name})", flush=True)
        kept.write_text(_reviewed(case, args))


def _reviewed(case: Mapping[str, Any], args: argparse.Namespace) -> str:
    """What the model answered to PR-Agent's review prompt."""
    before = {p.name for p in args.desk.glob("*.reply.txt")}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        root.mkdir()
        base, _ = repository(dict(case), root)
        message = f"{case['title']}\n\n{case['body'] or ''}"
        for step in (
            ["checkout", "-q", "-b", "change"],
            ["branch", "-f", "main", base],
            ["commit", "-q", "--amend", "--allow-empty", "-m", message],
        ):
            subprocess.run(["git", *step], cwd=root, env=ENV, check=True)
        env = {
            **os.environ,
            "CONFIG__GIT_PROVIDER": "local",
            "CONFIG__MODEL": args.model,
            "CONFIG__FALLBACK_MODELS": "[]",
            "CONFIG__AI_TIMEOUT": "7200",
            "CONFIG__LOG_LEVEL": "WARNING",
            "ANTHROPIC__KEY": "any",
            "ANTHROPIC_API_BASE": args.url,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        done = subprocess.run([args.program, "--pr_url=main", "review"], check=False, cwd=root, env=env, capture_output=True, text=True)  # fmt: skip
    if done.returncode:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    new = sorted(p for p in args.desk.glob("*.reply.txt") if p.name not in before)
    if not new:
        sys.exit(f"it asked nothing: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return new[-1].read_text()


def score(out: Path, chosen: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
    scorer = _scorer()
    rows, read = [], {}
    for key, (kind, case) in chosen.items():
        path = out / "answers" / f"{_name(key)}.yml"
        if not path.exists():
            continue
        read[key] = (kind, case)
        told = YAML(typ="safe").load(path.read_text())["review"].get("key_issues_to_review") or []
        rows.append({"id": key, "comments": [_comment(t) for t in told[:MOST_COMMENTS]]})
    (out / "posted.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    bugs = [c for kind, c in read.values() if kind == "bug"]
    clean = [c for kind, c in read.values() if kind == "clean"]
    print({k: round(v, 3) for k, v in scorer.score(rows, bugs, clean, 0.0).items()})


def _comment(issue: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "path": issue["relevant_file"].strip(),
        "line": int(issue["end_line"]),
        "body": f"{issue['issue_header']}\n{issue['issue_content']}",
        "confidence": 1.0,
    }


if __name__ == "__main__":
    main()
