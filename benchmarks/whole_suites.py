"""Published patches held against the project's whole suite, and against the tests that came with the later fix.

    python -m benchmarks.whole_suites RESULTS.jsonl --mirrors DIR [--only ID,ID] > judged.jsonl

RESULTS is what `benchmarks.fix_regressions` printed. A patch is wrong where a test that passed before fails with it, or
where a test of the later fix that passes with that fix and can be run here fails with the patch.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.fix_regressions import SHARED
from regreen.adapters.git.repository import GitRepository
from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.code.paths import is_test
from regreen.domain.job_control import StopCondition
from regreen.domain.ports import Sandbox
from regreen.gate.suite import find_suite
from regreen.languages.registry import TEST_LISTENERS
from regreen.packages.python_version import choose_python_version
from regreen.runs.test_runs import run_fresh
from regreen.runs.trial import Trial


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--sandbox", default="auto")
    given = parser.parse_args()
    loaded = json.loads((SHARED / "cases.json").read_text())
    cases = {one["id"]: one for one in (loaded if isinstance(loaded, list) else loaded["cases"])}
    sandbox = choose_sandbox(given.sandbox)
    for line in given.results.read_text().splitlines():
        found = json.loads(line)
        if found.get("patch") and (not given.only or found["id"] in given.only.split(",")):
            case = cases[found["id"]]
            where = given.mirrors / case["repo"].replace("/", "+") / "repo"
            print(json.dumps(held(case, found, GitRepository.open(where), sandbox)), flush=True)


def held(
    case: Mapping[str, Any], found: Mapping[str, Any], git: GitRepository, sandbox: Sandbox
) -> dict[str, Any]:
    """The suite before and after the patch, and the later fix's tests on both."""
    red = case["first_bad"] if found.get("scene") == "pr" else case["bad"]
    mended = git.apply(red, found["patch"], "candidate")
    words = {
        "id": case["id"],
        "scene": found.get("scene"),
        "outcome": found["outcome"],
        "rung": found["rung"],
    }
    if mended is None:
        return {**words, "trouble": "the patch does not apply"}
    check = Trial(
        ("python", "regreen_check.py"),
        setup=f"pip install -q {' '.join(case['requirements'])}" if case["requirements"] else None,
        env=(("PYTHONPATH", case["python_path"]),),
        python=choose_python_version(git, red, sandbox.pythons()),
    )
    stop = StopCondition(time.monotonic() + 3600)
    suite = find_suite(
        check, red, configured=None, outcomes={}, git=git, sandbox=sandbox, stop=stop
    )
    way = suite.run_baseline() if suite is not None else None
    if way is None:
        return {**words, "trouble": "the suite does not run here"}
    trial = way[0]
    before, after = (_outcomes(trial, rev, git, sandbox) for rev in (red, mended))
    laid = {
        path: data
        for path in git.changed_paths(case["fix"])
        if is_test(path) and (data := git.show(case["fix"], path)) is not None
    }
    theirs = replace(trial, overlay=MappingProxyType(laid))  # whole: data of tests changes too
    runs = {name: _outcomes(theirs, rev, git, sandbox) if laid else {} for name, rev in (("fix", case["fix"]), ("red", red), ("mended", mended))}  # fmt: skip
    wanted = [test for test, word in runs["fix"].items() if word == "passed"]
    return {
        **words,
        "suite": len(before),
        "newly_failing": sorted(
            test
            for test, word in before.items()
            if word == "passed" and after.get(test, "gone") != "passed"
        )[:20],
        "newly_passing": sum(
            word == "failed" and after.get(test) == "passed" for test, word in before.items()
        ),
        "tests_of_the_fix": len(wanted),
        "red_before": sorted(one for one in wanted if runs["red"].get(one) == "failed")[:20],
        "red_still": sorted(
            one
            for one in wanted
            if runs["red"].get(one) == "failed" and runs["mended"].get(one) != "passed"
        )[:20],
    }


def _outcomes(trial: Trial, rev: str, git: GitRepository, sandbox: Sandbox) -> Mapping[str, str]:
    return run_fresh(trial, rev, git=git, sandbox=sandbox, listeners=TEST_LISTENERS).tests


if __name__ == "__main__":
    main()
