"""Coverage by running the tests: which new lines no test executes, which new branches none takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from regreen.codebase.diff import FileChange
from regreen.codebase.language import language_of
from regreen.codebase.trial import Trial, open_box
from regreen.models import CoverageReport, Evidence, RunResult, Skipped, UncoveredLines
from regreen.ports import Box
from regreen.reviewers.context import Claim, Report, ReviewContext, Score
from regreen.reviewers.scope import is_test

_FOLDER = ".regreen"
_REPORT_SECONDS = 120.0


class Coverage:
    """Runs the tests on the head, in the sandbox, with coverage.py beside them."""

    name = "coverage"

    def run(self, context: ReviewContext) -> Report:
        """Report the new lines that no test runs, or why that is not known."""
        files = tuple(
            f
            for f in context.files
            if language_of(f.path) == "python" and not is_test(f.path) and f.added_lines
        )
        missing = _why_not(context, files)
        if missing or context.git is None or context.sandbox is None or context.tests is None:
            return Report(skipped=(Skipped(self.name, missing),))
        trial = _with_python_path(context.tests)
        context.say("running the tests with coverage")
        with open_box(
            trial, context.head, git=context.git, sandbox=context.sandbox, cancel=context.cancel
        ) as box:
            box.write(_tracer(files))
            ran = box.run(
                trial.command, timeout=trial.timeout, env=dict(trial.env), cancel=context.cancel
            )
            measured = _measured(box, trial) if ran.ended == "exit" else None
        if measured is None:
            return Report(skipped=(Skipped(self.name, _unmeasured(ran)),))
        return _report(files, measured, trial, ran)


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen of one file: its executable lines, those not run, branches not taken, tests that ran it."""

    statements: frozenset[int]
    missing: frozenset[int]
    branches: tuple[tuple[int, int], ...]
    tests: tuple[str, ...]


def _why_not(context: ReviewContext, files: tuple[FileChange, ...]) -> str:
    if not context.run_tests:
        return "the tests were not asked for (--run-tests, or tests.command in .github/regreen.yml, runs them)"
    if not files:
        return "no new Python line outside the tests"
    if context.git is None:
        return "a bare patch has no tests to run"
    if context.sandbox is None:
        return "no sandbox: the tests are code of the change and run nowhere else"
    if context.tests is None:
        return "nobody said how the tests run: set tests.command in .github/regreen.yml"
    return ""


def _with_python_path(trial: Trial) -> Trial:
    env = dict(trial.env)
    rest = f":{env['PYTHONPATH']}" if env.get("PYTHONPATH") else ""
    env |= {
        "PYTHONPATH": f"/work/{_FOLDER}/site{rest}",
        "COVERAGE_PROCESS_START": f"/work/{_FOLDER}/coveragerc",
        "COVERAGE_FILE": f"/work/{_FOLDER}/data/coverage",
    }
    return replace(trial, env=tuple(env.items()))


def _tracer(files: tuple[FileChange, ...]) -> dict[str, bytes]:
    """coverage.py itself, and what makes every Python in the box start it."""
    include = "".join(f"\n    /work/{f.path}" for f in files)
    config = (
        "[run]\nbranch = True\nparallel = True\ndynamic_context = test_function\n"
        f"disable_warnings = no-data-collected\ninclude ={include}\n"
    )
    paths = json.dumps([f"/work/{f.path}" for f in files])
    own = {
        f"{_FOLDER}/coveragerc": config.encode("utf-8", "surrogateescape"),
        f"{_FOLDER}/data/.keep": b"",
        f"{_FOLDER}/site/sitecustomize.py": _START.encode(),
        f"{_FOLDER}/report.py": _REPORT.replace("PATHS", paths).encode("utf-8", "replace"),
    }
    return {**own, **_package()}


_START = """\
try:
    import coverage
    coverage.process_startup()
except Exception:  # an older Python than coverage.py knows: the tests still run
    pass
"""
_REPORT = """\
import json, os, coverage
os.chdir("/work")
cov = coverage.Coverage(config_file="/work/.regreen/coveragerc")
cov.combine(["/work/.regreen/data"], strict=True)
data = cov.get_data()
out = {}
for path in PATHS:
    try:
        _, statements, excluded, missing, _ = cov.analysis2(path)
    except Exception as error:
        continue
    arcs = {}
    try:
        arcs = cov._analyze(path).missing_branch_arcs()
    except Exception:
        pass
    contexts = sorted({c for cs in data.contexts_by_lineno(path).values() for c in cs if c})
    out[path] = {
        "statements": statements, "missing": missing, "tests": contexts[:50],
        "branches": [[a, b] for a, bs in arcs.items() for b in bs],
    }
with open("/work/.regreen/report.json", "w") as file:
    json.dump(out, file)
"""


@cache
def _package() -> Mapping[str, bytes]:
    """Our own coverage.py as files: nothing has to be installed in the box."""
    import coverage

    root = Path(coverage.__file__).parent
    wanted = [
        p for p in root.rglob("*") if p.suffix in {".py", ".so"} and "htmlfiles" not in p.parts
    ]
    return {
        f"{_FOLDER}/site/coverage/{p.relative_to(root).as_posix()}": p.read_bytes() for p in wanted
    }


def _measured(box: Box, trial: Trial) -> dict[str, Measured] | None:
    find = "exec $(command -v python || command -v python3) .regreen/report.py"
    env = {k: v for k, v in trial.env if k != "COVERAGE_PROCESS_START"}
    done = box.run(("sh", "-c", find), timeout=_REPORT_SECONDS, env=env)
    data = box.read(f"{_FOLDER}/report.json", 8 * 1024 * 1024) if done.passed else None
    return parse_report(data) if data is not None else None


def parse_report(data: bytes) -> dict[str, Measured] | None:
    """Read what the box wrote; it may be anything, since the tests could write there too."""
    try:
        rows = json.loads(data)
        return {str(p).removeprefix("/work/"): _file(row) for p, row in rows.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _file(row: dict[str, Any]) -> Measured:
    return Measured(
        statements=frozenset(int(n) for n in row["statements"]),
        missing=frozenset(int(n) for n in row["missing"]),
        branches=tuple((int(a), int(b)) for a, b in row["branches"]),
        tests=tuple(str(t)[:200] for t in row["tests"][:50]),
    )


def _unmeasured(ran: RunResult) -> str:
    if ran.ended != "exit":
        return f"the tests did not come to their end ({ran.ended})"
    tail = (ran.stdout + ran.stderr).strip().split("\n")[-1][:200]
    return f"the tests left no coverage behind (exit {ran.exit_code}: {tail})"


def _report(
    files: tuple[FileChange, ...], measured: Mapping[str, Measured], trial: Trial, ran: RunResult
) -> Report:
    uncovered: list[UncoveredLines] = []
    claims: list[Claim] = []
    total = 0
    tests: set[str] = set()
    for file in files:
        seen = measured.get(file.path)
        if seen is None:
            continue
        new = set(file.added_lines) & seen.statements
        total += len(new)
        tests.update(seen.tests)
        lines = tuple(sorted(new & seen.missing))
        branches = [(a, b) for a, b in seen.branches if a in new and a not in seen.missing]
        if lines:
            uncovered.append(UncoveredLines(file.path, lines))
        if lines or branches:
            claims.append(_claim(file, lines, branches, trial, ran))
    covered = total - sum(len(u.lines) for u in uncovered)
    if not total:
        return Report(scores={"coverage": Score(None, "no new executable line")}, read="a run")
    state = "" if ran.passed else f"; the tests failed (exit {ran.exit_code})"
    note = (
        f"{covered} of {total} new executable lines run by `{trial.shown}`"
        f"{f', by {len(tests)} tests' if tests else ''}{state}"
    )
    return Report(
        claims=tuple(claims),
        read=note,
        scores={"coverage": Score(round(100 * covered / total), note)},
        coverage=CoverageReport(total, covered, tuple(uncovered)),
    )


def _claim(
    file: FileChange,
    lines: tuple[int, ...],
    branches: list[tuple[int, int]],
    trial: Trial,
    ran: RunResult,
) -> Claim:
    """One quiet word a file: it informs the summary, and is posted only where the threshold is lowered."""
    at = lines[0] if lines else branches[0][0]
    end = at
    while end + 1 in lines:
        end += 1
    what = f"{len(lines)} new lines" if lines else f"{len(branches)} new branches"
    taken = ", ".join(f"{a} to {'the end' if b < 0 else b}" for a, b in branches[:5])
    branch = f" Never taken: line {taken}." if branches else ""
    return Claim(
        "coverage",
        "coverage/not-run",
        "low",
        file.path,
        at,
        end,
        title=f"No test runs {what} here",
        body=f"Lines {', '.join(map(str, lines[:20]))} were not executed.{branch}"
        if lines
        else branch.strip(),
        confidence=0.6,
        evidence=(
            Evidence("coverage", branch.strip() or what, trial.shown, f"exit {ran.exit_code}"),
        ),
    )
