"""QuixBugs without a model: a smoke test of the warm engine and the templates, not a claim about real bugs.

python -m benchmarks.quixbugs --mirror GIT_DIR [--only NAME,NAME] [--seconds 60] > results.jsonl
"""

from __future__ import annotations

import argparse
import ast
import json
import time
from pathlib import Path

from regreen.adapters.git.repository import GitRepository
from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.domain.job_control import StopCondition
from regreen.domain.ports import Sandbox
from regreen.fixers.case import FixJob, InitialFailure, RepairCase
from regreen.fixers.rungs.template_rung import search_edits
from regreen.fixers.warm_engine import WarmEngine
from regreen.runs.trial import Trial


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mirror", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--sandbox", default="auto")
    given = parser.parse_args()
    git = GitRepository.open(given.mirror)
    rev = git.resolve("HEAD")
    sandbox = choose_sandbox(given.sandbox)
    names = [
        e.path.split("/")[-1][5:-3]
        for e in git.tree(rev)
        if e.path.startswith("python_testcases/test_")
    ]
    for name in sorted(names):
        if not given.only or name in given.only.split(","):
            print(json.dumps(run(name, rev, git, sandbox, given.seconds)), flush=True)


def run(
    name: str, rev: str, git: GitRepository, sandbox: Sandbox, seconds: float
) -> dict[str, object]:
    test, source = f"python_testcases/test_{name}.py", f"python_programs/{name}.py"
    trial = Trial(("python", "-m", "pytest", test), setup="pip install -q pytest", timeout=60)
    case = bare(trial, rev, git, sandbox, {})
    started = time.monotonic()
    engine = WarmEngine(case)
    seen = engine.run_baseline([test], 60)
    case = bare(trial, rev, git, sandbox, {one: timed.outcome for one, timed in seen.items()})
    engine = WarmEngine(case)
    engine.set_limits(seen)
    found, exhausted = search_edits(case, engine, seconds=seconds, thorough=False)
    correct = (git.show(rev, f"correct_python_programs/{name}.py") or b"").decode()
    texts = [text for _, _, text in found]
    return {
        "name": name,
        "tests": len(seen),
        "failing": len(engine.failing),
        "plausible": len(found),
        "same_as_reference": [
            position for position, text in enumerate(texts) if same(text, correct)
        ],
        "first": line_of(found[0][2], (git.show(rev, source) or b"").decode()) if found else None,
        "all": [line_of(text, (git.show(rev, source) or b"").decode()) for text in texts],
        "exhausted": exhausted,
        "tried": engine.tried,
        "cpu": round(engine.cpu, 1),
        "seconds": round(time.monotonic() - started, 1),
    }


def bare(
    trial: Trial, rev: str, git: GitRepository, sandbox: Sandbox, tests: dict[str, str]
) -> RepairCase:
    job = FixJob(trial, rev)
    stop = StopCondition(time.monotonic() + 600)
    before = InitialFailure(trial.command_line, 1)
    return RepairCase(job, rev, before, tests, git, sandbox, stop)


def same(text: str, reference: str) -> bool:
    def functions(code: str) -> list[str]:
        return [
            ast.dump(node) for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)
        ]

    return functions(text) == functions(reference)


def line_of(text: str, before: str) -> str:
    old = before.splitlines()
    return " / ".join(line.strip() for line in text.splitlines() if line not in old)


if __name__ == "__main__":
    main()
