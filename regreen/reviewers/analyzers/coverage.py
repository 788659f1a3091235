"""Coverage by running the tests: which new lines no test executes, which new branches none takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from regreen.code.diff import FileChange
from regreen.code.paths import is_test
from regreen.domain.errors import AnalysisFailed, Cancelled, OutsideError, UserError
from regreen.domain.languages import CoverageTool, MeasuredFile
from regreen.domain.models import (
    CoverageReport,
    Evidence,
    Failure,
    ReviewTestRun,
    RunResult,
    SkippedReviewer,
    UncoveredLines,
)
from regreen.domain.ports import Box
from regreen.environment.preparation import describe_start
from regreen.isolation import run_in_child
from regreen.languages.registry import (
    LANGUAGES,
    find_language,
    find_listeners,
    select_tests_of_trial,
)
from regreen.logs.ci_log import read_failures
from regreen.logs.failure_signature import FailureSignature, matches_any, read_signature
from regreen.reviewers.context import Claim, DimensionScore, ReviewContext, ReviewerReport
from regreen.runs.test_runs import CommandRun, run_fresh
from regreen.runs.trial import Trial, open_box
from regreen.secrets.markdown_sanitizer import count_noun

_REPORT_SECONDS = 120.0
_MAX_FAILURES = 50
_BASE_WORDS = {"pass": "passes", "fail": "fails otherwise", None: "not run"}
_START = 'chmod -f +x .regreen/bin/*; export PATH="$PWD/.regreen/bin:$PATH"; exec "$@"'


class Coverage:
    """Runs the tests on the head, in the sandbox, with the coverage tools of the changed languages beside them."""

    name = "coverage"

    def calls_out(self, context: ReviewContext) -> bool:
        """Where things are run."""
        return context.run_tests and context.sandbox is not None

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report the new lines that no test runs, or why that is not known."""
        tools = _choose_files(context)
        missing = _explain_skip(context)
        wanted = _needs_tests(context) and context.config.review.run_tests
        if missing or context.git is None or context.sandbox is None or context.tests is None:
            by_policy = not (_needs_tests(context) and context.config.tests.command)
            skip = SkippedReviewer(self.name, missing, by_policy, tests_not_run=wanted)
            return ReviewerReport(skipped=(skip,))
        trial = context.tests
        context.report_progress("running the tests with coverage")
        with open_box(
            trial, context.head, git=context.git, sandbox=context.sandbox, cancel=context.cancel
        ) as box:
            env = dict(trial.env)
            for tool, its_files in tools.items():
                box.write(tool.make_programs([f.path for f in its_files]))
                env = tool.extend_environment(env, traced=True)
            command = ("sh", "-c", _START, "sh", *trial.command)
            ran = box.run(command, timeout=trial.timeout, env=env, cancel=context.cancel)
            readings = {tool: _read_measurement(box, trial, ran, tool) for tool in tools}
        measured = {
            path: file for reading, _ in readings.values() for path, file in reading.items()
        }
        tests = _describe_run(trial, ran, measured)
        if tests is not None and not tests.passed:
            tests = _compare_with_base(context, trial, ran, tests)
        by_policy = not context.config.tests.command
        skipped = tuple(
            SkippedReviewer(self.name, _explain_unmeasured(tools[tool], trial, ran, why), by_policy)
            for tool, (reading, why) in readings.items()
            if not reading
        )
        if not tools:
            why = _NOTHING_TO_MEASURE if tests else _explain_end(trial, ran)
            skipped = (SkippedReviewer(self.name, why, by_policy or tests is not None),)
        if not measured:
            not_run = wanted and tests is None
            skipped = tuple(replace(one, tests_not_run=not_run) for one in skipped)
            return ReviewerReport(skipped=skipped, tests=tests)
        files = tuple(f for tool, files in tools.items() if readings[tool][0] for f in files)
        return replace(_make_report(files, measured, trial, ran), tests=tests, skipped=skipped)


def _describe_run(
    trial: Trial, ran: RunResult, measured: Mapping[str, MeasuredFile]
) -> ReviewTestRun | None:
    """How the tests ended; None where none was reached: that says nothing of the change."""
    failures = () if ran.passed else read_failures(f"{ran.stdout}\n{ran.stderr}")
    reached = any(file.tests for file in measured.values())
    if ran.ended != "exit" or not (reached or not describe_start(trial, CommandRun(ran, failures))):
        return None
    return ReviewTestRun(trial.command_line, ran.exit_code, failures[:_MAX_FAILURES])


def _compare_with_base(
    context: ReviewContext, trial: Trial, ran: RunResult, tests: ReviewTestRun
) -> ReviewTestRun:
    """With what each failing test does at the merge base: first run alone there, then those that fail with all others."""
    # every review imports this module, and few of them run tests
    from regreen.causes.investigation import find_test_outcome, is_new_test

    assert context.git is not None  # noqa: S101 - the caller has run them
    assert context.sandbox is not None  # noqa: S101
    revs = (context.merge_base, context.head)
    left = [name for name in tests.failing if not is_new_test(context.git, *revs, name)]
    alone = select_tests_of_trial(trial, left)
    ends = dict.fromkeys(tests.failing, "not run")
    if left:
        context.report_progress("running the failing tests without the change")
    # most failures are the change's, and a run of them alone is quick; a test may fail alone that passes after others
    for one in [trial] if alone is trial else [alone, trial]:
        if not left:
            break
        try:
            run = run_fresh(
                one,
                context.merge_base,
                git=context.git,
                sandbox=context.sandbox,
                listeners=find_listeners(one, f"{ran.stdout}\n{ran.stderr}"),
                cancel=context.cancel,
            )
        except Cancelled:
            raise
        except (UserError, OutsideError) as error:  # nothing is known of the base
            context.report_progress(f"the failing tests cannot be run without the change: {error}")
            ends |= dict.fromkeys(left, "not run")
            left = []
            break
        is_whole = run.result.ended == "exit"
        ends |= {n: _BASE_WORDS[find_test_outcome(n, run) if is_whole else None] for n in left}
        left = [name for name in left if _fails_alike(name, (ran, tests.failures), run)]
    others = {name: end for name, end in ends.items() if name not in left}
    return replace(tests, fail_on_base=tuple(left), others_on_base=others)


def _fails_alike(name: str, here: tuple[RunResult, tuple[Failure, ...]], there: CommandRun) -> bool:
    """Whether a test fails with the same exception and message in both runs; "" stands for the command."""
    if there.is_green or there.result.ended != "exit":
        return False
    first, second = (
        _read_signature(name, *here),
        _read_signature(name, there.result, there.failures),
    )
    return first is not None and second is not None and matches_any(second, [first])


def _read_signature(
    name: str, result: RunResult, failures: Sequence[Failure]
) -> FailureSignature | None:
    if not name:
        return read_signature(result)
    named = (one for one in failures if one.test == name)
    return next(
        (FailureSignature("exit", 1, (name,), one.kind, one.message) for one in named), None
    )


def _choose_files(context: ReviewContext) -> dict[CoverageTool, list[FileChange]]:
    """The files that each language's tool measures."""
    by_tool: dict[CoverageTool, list[FileChange]] = {}
    for file in context.files:
        language = find_language(file.path)
        if language and language.coverage and not is_test(file.path) and file.added_lines:
            by_tool.setdefault(language.coverage, []).append(file)
    return by_tool


def _needs_tests(context: ReviewContext) -> bool:
    """Whether the change can make a test fail: it touches code, or a file of the tests."""
    return any(is_test(file.path) or find_language(file.path) for file in context.files)


_NOTHING_TO_MEASURE = (
    f"no new {', '.join(x.title for x in LANGUAGES if x.coverage)} line outside the tests"
)


def _explain_skip(context: ReviewContext) -> str:
    if not context.run_tests:
        return (
            context.no_tests
            or "the tests were not asked for (--run-tests, or tests.command in .github/regreen.yml, runs them)"
        )
    if not _needs_tests(context):
        return _NOTHING_TO_MEASURE
    if context.git is None:
        return "a bare patch has no tests to run"
    if context.sandbox is None:
        return "the tests were not run: this machine has no sandbox"
    if context.tests is None:
        return "nobody said how the tests run: set tests.command in .github/regreen.yml"
    return ""


def _read_measurement(
    box: Box, trial: Trial, ran: RunResult, tool: CoverageTool
) -> tuple[dict[str, MeasuredFile], str]:
    """What the tool measured; where that is nothing, the last line of what it says of it."""
    if ran.ended != "exit":
        return {}, ""
    env = tool.extend_environment(dict(trial.env), traced=False)
    done = box.run(tool.report_command, timeout=_REPORT_SECONDS, env=env)
    data = box.read(tool.report_path, 8 * 1024 * 1024) if done.passed else None
    try:
        measured = run_in_child(tool.parse_report, data) if data is not None else None
    except AnalysisFailed as error:
        return {}, f"its report could not be read: {error}"
    return measured or {}, done.stderr.strip().rpartition("\n")[2][:200]


def _explain_end(trial: Trial, ran: RunResult) -> str:
    """Why a run says nothing of the tests; "" where it does."""
    if ran.ended != "exit":
        return f"the tests did not come to their end ({ran.ended})"
    cause = describe_start(trial, CommandRun(ran))
    return f"the tests cannot start: {cause}" if cause else ""


def _explain_unmeasured(files: Iterable[FileChange], trial: Trial, ran: RunResult, why: str) -> str:
    if end := _explain_end(trial, ran):
        return end
    tail = (ran.stdout + ran.stderr).strip().rpartition("\n")[2][:200]
    titles = {language.title for f in files if (language := find_language(f.path))}
    return (
        f"the tests left no coverage of {' and '.join(sorted(titles))} behind"
        f"{f': {why}' if why else ''} (exit {ran.exit_code}: {tail})"
    )


def _make_report(
    files: Sequence[FileChange],
    measured: Mapping[str, MeasuredFile],
    trial: Trial,
    ran: RunResult,
) -> ReviewerReport:
    uncovered: list[UncoveredLines] = []
    claims: list[Claim] = []
    total = 0
    tests: set[str] = set()
    for file in files:
        measurement = measured.get(file.path)
        if measurement is None:
            continue
        new = set(file.added_lines) & measurement.statements
        total += len(new)
        tests.update(measurement.tests)
        lines = tuple(sorted(new & measurement.missing))
        branches = [
            (a, b) for a, b in measurement.branches if a in new and a not in measurement.missing
        ]
        if lines:
            uncovered.append(UncoveredLines(file.path, lines))
        if lines or branches:
            claims.append(_make_claim(file, lines, branches, trial, ran))
    covered = total - sum(len(u.lines) for u in uncovered)
    if not total:
        return ReviewerReport(
            scores={"coverage": DimensionScore(None, "no new executable line")}, read="a run"
        )
    by = f", by {count_noun(len(tests), 'test')}" if tests else ""
    state = "" if ran.passed else f"; no score, because the tests failed (exit {ran.exit_code})"
    note = f"{covered} of {total} new executable lines run by `{trial.command_line}`{by}{state}"
    return ReviewerReport(
        claims=tuple(claims),
        read=note,
        scores={
            "coverage": DimensionScore(round(100 * covered / total) if ran.passed else None, note)
        },
        coverage=CoverageReport(
            total, covered, tuple(uncovered), tuple(f.path for f in files if f.path in measured)
        ),
    )


def _make_claim(
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
            Evidence(
                "coverage", branch.strip() or what, trial.command_line, f"exit {ran.exit_code}"
            ),
        ),
    )
