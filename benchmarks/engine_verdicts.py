"""The warm engine's verdicts against those of a new pytest: the same sampled candidates through both.

    python -m benchmarks.engine_verdicts --mirror GIT_DIR [--pairs 500] [--seed 1] [--only NAME,NAME] > results.jsonl

The programs are QuixBugs'; the candidates are drawn evenly from all that the templates make of each.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

from benchmarks.quixbugs import bare
from regreen.adapters.git.repository import GitRepository
from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.domain.ports import Sandbox
from regreen.fixers.warm_engine import WarmEngine
from regreen.languages.python.edits import make_edits
from regreen.runs.trial import Trial


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mirror", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--sandbox", default="auto")
    given = parser.parse_args()
    git = GitRepository.open(given.mirror)
    rev = git.resolve("HEAD")
    sandbox = choose_sandbox(given.sandbox)
    found = [entry.path for entry in git.tree(rev)]
    names = sorted(
        path.split("/")[-1][5:-3] for path in found if path.startswith("python_testcases/test_")
    )
    chance = random.Random(given.seed)
    each = max(1, round(given.pairs / len(names)))
    for name in names:
        seed = chance.random()
        if not given.only or name in given.only.split(","):
            print(json.dumps(compare(name, rev, git, sandbox, each=each, seed=seed)), flush=True)


def compare(
    name: str, rev: str, git: GitRepository, sandbox: Sandbox, *, each: int, seed: float
) -> dict[str, Any]:
    """Both verdicts on some candidates of one program."""
    test, source = f"python_testcases/test_{name}.py", f"python_programs/{name}.py"
    trial = Trial(("python", "-m", "pytest", test), setup="pip install -q pytest", timeout=30)
    first = WarmEngine(bare(trial, rev, git, sandbox, {}))
    seen = first.run_baseline([test], 60)
    case = bare(trial, rev, git, sandbox, {one: timed.outcome for one, timed in seen.items()})
    text = (git.show(rev, source) or b"").decode()
    every = make_edits(text)
    chosen = random.Random(seed).sample(every, min(each, len(every)))
    candidates = [{source: edit.apply_to(text)} for edit in chosen]
    cheap, exact = WarmEngine(case), WarmEngine(case, exact=True)
    cheap.per_test = {"*": 2.0}
    quick = cheap.try_all(candidates, seconds=120)
    slow = exact.try_all(candidates, seconds=400)
    pairs = list(zip(chosen, quick, slow, strict=False))
    return {
        "name": name,
        "pairs": len(pairs),
        "same": sum(one.green == other.green for _, one, other in pairs),
        "green": sum(other.green for *_, other in pairs),
        "differ": [
            f"line {edit.line} {edit.name} {edit.new!r}: {one.failed} against {other.failed}"
            for edit, one, other in pairs
            if one.green != other.green
        ],
        "cpu": [round(cheap.cpu, 2), round(exact.cpu, 2)],
    }


if __name__ == "__main__":
    main()
