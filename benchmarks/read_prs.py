"""Have a model read the PR sets, case after case, and score what the whole review would post. Figures: review.md.

python benchmarks/read_prs.py run OUT [--cases IDS.txt] [--only-model] [--repositories DIR [--claims]] [BUGS CLEAN]
    With --repositories the cases are read in their whole repositories (DIR/owner+name/repo); with --claims their
    claims are run as `regreen review` runs them, in an inferred environment. The endpoint comes from ANTHROPIC_BASE_URL (and REGREEN_SECOND_URL, where the second reader is somebody else).
    Answers are kept in OUT/answers by the hash of their question: a run that broke off, or a changed ranking, asks
    nothing twice. The model sees a repository without name or history; cases come in an order that tells nothing.
python benchmarks/read_prs.py score OUT [--cases IDS.txt] [BUGS CLEAN]
    OUT/posted.jsonl (what would be posted), OUT/all.jsonl (withheld ones too), OUT/outcomes.jsonl (signals and
    whether the claim was right: it names the labelled fault within 3 lines, or OUT/judged.json says so), tokens.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

from calibration import calibration_gap
from review import SHARED, cases, repository

from regreen.adapters.git.repository import GitRepository
from regreen.adapters.model.anthropic_client import AnthropicModel, LedgerEntry
from regreen.adapters.model.endpoints import ModelEndpoint
from regreen.cli.review import LocalTests
from regreen.domain.job_control import TimeLimit
from regreen.domain.models import ModelAnswer, ModelRequest, Signals
from regreen.domain.ports import Model
from regreen.domain.repo_config import RepoConfig
from regreen.packages.setup_guard import InstallPolicy
from regreen.reviewers.calibration import (
    PRIOR_WEIGHTS,
    estimate_confidence,
    fit_weights,
)
from regreen.reviewers.document import make_document
from regreen.reviewers.pipeline import ReviewJob, review_change
from regreen.reviewers.reviewer_table import REVIEWERS
from regreen.runs.trial import Trial

MOST_COMMENTS = 3
FOLDS = 5
MOST_WAIT = 4 * 3600.0


class Answers:
    """What was answered before, in a folder, by the hash of the question; and the questions, to be read again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def recall(self, key: str) -> str | None:
        path = self._folder / f"{key}.json"
        return path.read_text() if path.exists() else None

    def remember(self, key: str, answer: str) -> None:
        draft = self._folder / f"{key}.draft"
        draft.write_text(answer)
        draft.rename(self._folder / f"{key}.json")


class Exchange:
    """A model that routes the second reading to its own endpoint and keeps every question with its answer."""

    def __init__(self, first: Model, second: Model, transcript: Path) -> None:
        self._first, self._second, self._transcript = first, second, transcript
        self._lock = threading.Lock()
        transcript.unlink(missing_ok=True)

    def ask(self, request: ModelRequest) -> ModelAnswer:
        to = self._second if request.purpose == "review/second-reader" else self._first
        answer = to.ask(request)
        row = {"purpose": request.purpose, "asked": asdict(request), "answer": asdict(answer)}
        with self._lock, self._transcript.open("a") as out:
            out.write(json.dumps(row, default=str) + "\n")
        return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("verb", choices=["run", "score"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", type=Path, help="a file of case ids; default: all")
    parser.add_argument("--only-model", action="store_true", help="without the static reviewers")
    parser.add_argument("--repositories", type=Path, help="folder of the cases' repositories")
    parser.add_argument("--claims", action="store_true", help="run the claims in the sandbox")
    parser.add_argument("--parallel", type=int, default=1, help="cases at once")
    parser.add_argument("sets", nargs="*", type=Path)
    # the sets may stand behind options, as the usage shows them
    args = parser.parse_intermixed_args()
    sets = args.sets or [SHARED / f"data/review/{k}_prs.public.jsonl.gz" for k in ("bug", "clean")]
    kinds = {c["id"]: (kind, c) for kind, p in zip(("bug", "clean"), sets, strict=True) for c in cases(p)}  # fmt: skip
    wanted = args.cases.read_text().split() if args.cases else list(kinds)
    chosen = {i: kinds[i] for i in sorted(wanted, key=_name)}
    args.out.mkdir(parents=True, exist_ok=True)
    if args.verb == "run":
        run(args, [case for _, case in chosen.values()])
    else:
        score(args.out, chosen)


def run(args: argparse.Namespace, chosen: Sequence[Mapping[str, Any]]) -> None:
    for folder in ("reviews", "transcripts"):
        (args.out / folder).mkdir(exist_ok=True)
    with ThreadPoolExecutor(args.parallel) as pool:
        list(pool.map(lambda case: _read_case(args, case), chosen))


def _read_case(args: argparse.Namespace, case: Mapping[str, Any]) -> None:
    name, ledger = _name(case["id"]), list[LedgerEntry]()
    kept = Answers(args.out / "answers")
    first = _model(os.environ.get("ANTHROPIC_BASE_URL"), kept, ledger)
    other = os.environ.get("REGREEN_SECOND_URL")
    second = _model(other, kept, ledger) if other else first
    model = Exchange(first, second, args.out / "transcripts" / f"{name}.jsonl")
    done = _review(case, model, args)
    gaps = [s["reason"] for s in done["skipped"] if s["reviewer"].startswith("model")]
    print(f"{name}: {gaps[0] if gaps else 'read'}", flush=True)
    if not gaps or done["findings"] or all("claims were not tested" in g for g in gaps):
        done["calls"] = [e.purpose for e in ledger]
        (args.out / "reviews" / f"{name}.json").write_text(json.dumps(done, indent=1))


def _review(case: Mapping[str, Any], model: Model, args: argparse.Namespace) -> dict[str, Any]:
    table = tuple(r for r in REVIEWERS if r[1].name == "model") if args.only_model else REVIEWERS
    with tempfile.TemporaryDirectory() as folder:
        if args.repositories:
            root = args.repositories / case["repo"].replace("/", "+") / "repo"
            base, head = case["base_commit"], case["head_commit"]
        else:
            root = Path(folder) / "project"
            root.mkdir()
            base, head = repository(dict(case), root)
        git = GitRepository.open(root, Path(folder) / "view")
        tests = None
        if args.claims:
            trial = Trial((), base=base, rules=InstallPolicy.from_config(RepoConfig().tests))
            limit = TimeLimit(MOST_WAIT / 60, time.monotonic())
            tests = LocalTests(
                git, RepoConfig(), trial, head, None, exact=False, asked=True, limit=limit
            )
        job = ReviewJob(
            base=base,
            head=head,
            title=case["title"],
            body=case["body"] or "",
            max_comments=MOST_COMMENTS,
            find_claim_tests=tests.find_claim_tests if tests else None,
        )
        return make_document(
            review_change(job, git=git, sandbox=None, model=model, reviewers=table)
        )


def _model(url: str | None, kept: Answers, ledger: list[LedgerEntry]) -> AnthropicModel:
    return AnthropicModel(
        ModelEndpoint(
            api_key=os.environ.get("ANTHROPIC_API_KEY", "any"),
            name=os.environ.get("REGREEN_MODEL", "claude-sonnet-5"),
            base_url=url,
        ),
        recall=kept.recall,
        remember=kept.remember,
        ledger=ledger.append,
        timeout=MOST_WAIT,
        max_retries=0,
    )


def score(out: Path, chosen: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
    scorer = _scorer()
    judged = json.loads((out / "judged.json").read_text()) if (out / "judged.json").exists() else {}
    posted, everything, outcomes, read = [], [], [], {}
    tokens: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for key, (kind, case) in chosen.items():
        path = out / "reviews" / f"{_name(key)}.json"
        if not path.exists():
            continue
        done = json.loads(path.read_text())
        read[key] = (kind, case)
        posted.append({"id": key, "comments": [_comment(f) for f in done["findings"]]})
        kept = [f for f in done["withheld"] if f["reason"] in {"confidence", "budget"}]
        everything.append(
            {"id": key, "comments": [_comment(f) for f in (*done["findings"], *kept)]}
        )
        for finding in (*done["findings"], *done["withheld"]):
            if finding["signals"] is None or finding["reason" if "reason" in finding else "id"] == "duplicate":  # fmt: skip
                continue
            comment = _comment(finding)
            hit = kind == "bug" and scorer.near(comment, case) and scorer.names(comment["body"], case)  # fmt: skip
            right = judged.get(finding["fingerprint"], hit)
            outcomes.append(
                {"case": key, "fingerprint": finding["fingerprint"], "right": bool(right), "judged": finding["fingerprint"] in judged,
                 "signals": finding["signals"], "confidence": finding["confidence"], "title": finding["title"], "kind": kind}
            )  # fmt: skip
        tokens[_size(case)].append(_tokens(out / "transcripts" / f"{_name(key)}.jsonl"))
    for name, rows in (("posted", posted), ("all", everything), ("outcomes", outcomes)):
        (out / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    bugs = [c for kind, c in read.values() if kind == "bug"]
    clean = [c for kind, c in read.values() if kind == "clean"]
    if not bugs or not clean:
        sys.exit(f"{len(bugs)} bug and {len(clean)} clean cases read: both are needed for a score")
    for name, rows, cuts in (("posted", posted, (0.0,)), ("all", everything, (0.0, 0.5, 0.8))):
        for cut in cuts:
            got = scorer.score(rows, bugs, clean, cut)
            print(f"{name} >= {cut}:", {k: round(v, 3) for k, v in got.items()})
    right = sum(o["right"] for o in outcomes)
    print(f"claims: {len(outcomes)}, right {right}, judged by hand {sum(o['judged'] for o in outcomes)}")  # fmt: skip
    _calibrated(outcomes)
    for size, found in sorted(tokens.items()):
        calls, fresh, answered = (mean(c) for c in zip(*found, strict=True))
        print(f"changed lines {size}: {len(found)} PRs, {calls:.1f} calls, {fresh:.0f} tokens in (a repeated beginning counted at a tenth), {answered:.0f} out")  # fmt: skip


def _calibrated(outcomes: Sequence[Mapping[str, Any]]) -> None:
    """How far stated confidence and truth lie apart: with the prior, and fitted on the other folds' pull requests."""
    told = [(o["case"], Signals(**o["signals"]), o["right"]) for o in outcomes]
    names = sorted({case for case, _, _ in told}, key=_name)
    fold_of = {name: i % FOLDS for i, name in enumerate(names)}
    prior = [(estimate_confidence(s), r) for _, s, r in told]
    fitted = []
    for fold in range(FOLDS):
        weights = fit_weights((s, r, 1.0) for case, s, r in told if fold_of[case] != fold)
        fitted += [
            (estimate_confidence(s, weights), r) for case, s, r in told if fold_of[case] == fold
        ]
    for name, pairs in (("prior", prior), ("fitted on the other folds", fitted)):
        posted = [(c, r) for c, r in pairs if c >= 0.8]
        stated = sum(c for c, _ in posted) / max(1, len(posted))
        right = sum(r for _, r in posted) / max(1, len(posted))
        print(f"calibration, {name}: gap {calibration_gap(pairs):.3f} over all {len(pairs)}; of {len(posted)} at .80 and above {right:.2f} right, {stated:.2f} stated")  # fmt: skip
    everything = fit_weights((s, r, 1.0) for _, s, r in told)
    print("weights, prior:", [round(w, 2) for w in PRIOR_WEIGHTS])
    print("weights, fitted on all:", [round(w, 2) for w in everything])


def _comment(finding: Mapping[str, Any]) -> dict[str, Any]:
    body = f"{finding['title']}\n{finding['body']}"
    return {"path": finding["path"], "line": finding["line"], "body": body, "confidence": finding["confidence"]}  # fmt: skip


def _tokens(transcript: Path) -> tuple[int, int, int]:
    """Calls, tokens in, tokens out, at four characters a token; what the endpoint has in its cache costs a tenth."""
    rows = [json.loads(line) for line in transcript.read_text().splitlines()]
    seen: set[str] = set()
    fresh = answered = 0.0
    for row in rows:
        asked = row["asked"]
        first = json.dumps([asked["system"], asked["tools"], asked["messages"][0]])
        rest = json.dumps(asked["messages"][1:])
        fresh += len(first) / 4 * (0.1 if first in seen else 1.25) + len(rest) / 4
        seen.add(first)
        answered += len(json.dumps([c["input"] for c in row["answer"]["calls"]])) / 4
    return len(rows), round(fresh), round(answered)


def _size(case: Mapping[str, Any]) -> str:
    lines = sum(x[:1] in "+-" and x[:3] not in {"+++", "---"} for x in case["diff"].split("\n") if x)  # fmt: skip
    return next(name for most, name in ((30, " 1-30"), (100, "31-100"), (10**9, "over 100")) if lines <= most)  # fmt: skip


def _name(case: str) -> str:
    """A case's name that says neither where it is from nor which set it is of."""
    return hashlib.sha256(f"reading:{case}".encode()).hexdigest()[:8]


def _scorer() -> Any:
    spec = importlib.util.spec_from_file_location("score_prs", SHARED / "tools" / "score_prs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
