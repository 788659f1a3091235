"""Runs the tests of a change with and without it, and says what they prove and whether what it promises holds."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, Literal

from regreen import isolation
from regreen.code.file_change import CheckReason, PatchedFile
from regreen.code.paths import is_test, is_test_config
from regreen.code.python_calls import parse_python
from regreen.domain.errors import UserError
from regreen.domain.job_control import ContextThreadPool, StopCondition
from regreen.domain.languages import FileTestTools
from regreen.domain.models import Failure, PreparedEnv
from regreen.domain.ports import Git, Sandbox
from regreen.fixers.case import FixJob, InitialFailure, RepairCase
from regreen.fixers.warm_engine import Candidate, WarmEngine
from regreen.gate.checks.silenced_errors import check_silenced_errors
from regreen.gate.checks.tests_kept import check_assertions
from regreen.gate.facts import PythonFunction, find_functions, find_nodes
from regreen.gate.judge import changed_files
from regreen.languages.python.dependencies import add_missing_pytest
from regreen.languages.python.test_tools import (
    PYTHON_TESTS,
    REFUSED_SECTION,
    SETUP_CFG,
    rename_pytest_section,
)
from regreen.languages.registry import (
    TEST_LISTENERS,
    find_file_tests,
    find_mutation,
    find_warm_language,
    parses,
)
from regreen.logs.failure_signature import find_telling_line
from regreen.proofs.changed_tests import (
    ChangedTest,
    ChangeParts,
    divide_change,
    list_changed_calls,
)
from regreen.reviewers.analyzers.vacuous_tests import ONLY_NOTICES_ERRORS
from regreen.runs.capsule import (
    Capsule,
    SeenEnvironment,
    expect_runs,
    make_capsule,
    observe_box,
)
from regreen.runs.test_runs import (
    STUCK_VARIABLE,
    CommandRun,
    find_regressed_tests,
    run_fresh,
    run_in_box,
)
from regreen.runs.trial import Trial, open_box, prepare_environment
from regreen.secrets.markdown_sanitizer import count_noun

# What a pull request says of itself, and what its own diff does to the tests that guard the project.

_CLOSES = re.compile(
    r"(?i)\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?):? {1,3}(?:[\w.-]{1,60}/[\w.-]{1,60})?#\d{1,9}\b"
)
_FIXES = re.compile(
    r"(?i)^(?:\[?bug\]?|(?:bug|hot)?fix(?:e[sd]|ing)?\b)|\bfix(?:e[sd])? (?:a |the )?bug\b"
)
# `refactor!:` announces a change of behaviour (https://www.conventionalcommits.org)
_KEEPS = re.compile(
    r"(?i)^(?:[^\w\n]{1,8}|[\w./-]{1,30}: {1,3}|(?:minor|small|major|internal|code|some|more|further|another|micro)[ -])?"
    r"refactor\w*(?!\w|(?:\([^)\n]{0,60}\))?!)"
    r"|\brefactoring\b|\bno (?:(?:behavior|behaviour)(?:al)?|functional) changes?\b"
)
_MAX_TEXT = 20_000
_WEAKENED_CI = re.compile(r"continue-on-error:\s{0,4}true|\|\|\s{0,4}(?:true|:)\s{0,4}$")


@dataclass(frozen=True, slots=True)
class ProofClaim:
    """Something that the title or the description says; `holds` is None where the runs cannot tell."""

    text: str
    holds: bool | None
    reason: str


@dataclass(frozen=True, slots=True)
class StatedIntent:
    """What title and description promise: `fixes` in their words, `keeps` behaviour in theirs; "" where they do not."""

    closes: tuple[str, ...] = ()
    fixes: str = ""
    keeps: str = ""


def read_intent(title: str, body: str) -> StatedIntent:
    """What a title and a description promise."""
    text = f"{title}\n{body}"[:_MAX_TEXT]
    closes = tuple(dict.fromkeys(found[0] for found in _CLOSES.finditer(text)))
    fixes = _FIXES.search(title[:500])
    keeps = _KEEPS.search(text)
    return StatedIntent(
        closes[:5], title[:200] if fixes or closes else "", keeps[0] if keeps else ""
    )


def find_weakened_tests(git: Git, base: str, head: str) -> tuple[CheckReason, ...]:
    """Where the change weakens tests, their configuration or the workflows. Call it in a child process."""
    return check_weakening(changed_files(git, base, head))


def check_weakening(files: Sequence[PatchedFile]) -> tuple[CheckReason, ...]:
    """The gate's checks of assertions, skips, tolerances and swallowed errors, on what guards the project."""
    guards = [
        file
        for file in files
        if is_test(file.path) or is_test_config(file.path) or file.path.startswith(".github/")
    ]
    reasons = [*check_assertions(files, person=True), *check_silenced_errors(guards)]
    for file in guards:
        lines = [line.strip() for _, line in file.added_lines if _WEAKENED_CI.search(line)]
        lost = sum(bool(_WEAKENED_CI.search(line)) for _, line in file.removed_lines)
        if file.path.startswith(".github/") and len(lines) > lost:
            what = f"{file.path}: a step may fail now without failing the job ({lines[0][:80]})"
            reasons.append(CheckReason("workflow", what, "deny"))
    return tuple(
        dict.fromkeys(reason for reason in reasons if reason.level in {"deny", "needs_human"})
    )


ProofVerdict = Literal[
    "proven", "not_discriminating", "inconclusive", "nothing_to_prove", "refused"
]
_MAX_NAMED_TESTS = 40
_MAX_START_REPAIRS = 2
_MAX_DIRECT_FAULTS = 6
_MAX_CONFIRMED_MUTANTS = 4
_MAX_ENGINE_PASSES = 3
_BOXES = 4
_MAX_CALL_SECONDS = 40.0
_MUTANTS_A_CALL = 12
_ASSERTING_KIND = re.compile(
    r"(?:\w*AssertionError|Failed|FAIL|\w*ComparisonFailure|MultipleFailures)$"
)
_LACKS_NAME = re.compile(
    r"is not a (?:function|constructor)|does not provide an export|Cannot find module|unexpected keyword argument|positional arguments?\b.{0,40}\bgiven|cannot import name|No module named"
    r"|has no attribute|is not defined|does not have the attribute|takes no arguments|fixture '"
)
_PLATFORM = re.compile(
    r"\b(?:version_info|hexversion|(?:IS_)?PY[23]\d{0,3}|PYPY|sys\.(?:platform|implementation)|platform\.\w{1,40}|os\.name)\b"
)
_QUOTED = re.compile(r"['\"`]([\w.]{1,200})['\"`]|([\w$.]{1,200})\)? is (?:not a |not defined)")


@dataclass(frozen=True)
class ProofJob:
    """A change whose tests are to prove it.

    `trial` is how the tests of the repository run; `base` is the merge base. `mutants` and `minutes` bound the faults
    that are put into the changed lines. A test that takes `stuck_seconds` without the change, and a tenth of that with
    it, does not end there.
    """

    trial: Trial
    base: str
    head: str
    title: str = ""
    body: str = ""
    mutants: int = 40
    minutes: float = 5.0
    stuck_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class TestProof:
    """How one new or altered test ends without and with the change; the keys are those of the JSON document."""

    __test__ = False
    test: str
    base: Literal["fail", "pass", "error", "missing"]
    head: Literal["pass", "fail"]
    verdict: ProofVerdict
    reason: str


@dataclass(frozen=True, slots=True)
class TriedMutant:
    """A fault in a changed line, the first test that notices it, and the function that it is in, where that is known.

    `is_run`: not in a function that none of the tests runs.
    """

    path: str
    line: int
    change: str
    killed_by: str | None
    function: str = ""
    is_run: bool = True


@dataclass(frozen=True, slots=True)
class ProofResult:
    """What the tests of a change prove; `capsule` repeats what is red without the change, None where nothing is proven."""

    verdict: ProofVerdict
    reason: str
    tests: tuple[TestProof, ...] = ()
    mutants: tuple[TriedMutant, ...] = ()
    claims: tuple[ProofClaim, ...] = ()
    census: tuple[CheckReason, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    capsule: Capsule | None = None


@dataclass(frozen=True, slots=True)
class _SidedRuns:
    """One run on the head and one on the base."""

    head: CommandRun
    base: CommandRun


@dataclass(frozen=True, slots=True)
class _Red:
    """How a test fails without the change; `kind` "lacks" means that it needs something that the change adds."""

    kind: Literal["assertion", "crash", "lacks", "other"]
    text: str


def prove_change(
    job: ProofJob,
    *,
    git: Git,
    sandbox: Sandbox,
    say: Callable[[str], None] = lambda _: None,
    cancel: Event | None = None,
    prepare: Callable[[], ProofJob] | None = None,
) -> ProofResult:
    """Say what the new and altered tests of a change prove.

    `prepare` gives the job with its environment. It is not called where nothing has to run.

    Raises:
        UserError: the change cannot be read, or its environment cannot be set up.
        Cancelled: `cancel` was set.
        OutsideError: the sandbox engine failed.
    """
    with isolation.name_failed_input("the change"):
        parts = isolation.run_in_child(divide_change, git, job.base, job.head, cancel=cancel)
        census = isolation.run_in_child(find_weakened_tests, git, job.base, job.head, cancel=cancel)
    keeps = read_intent(job.title, job.body).keeps
    if prepare is not None and parts.changes_source and (parts.tests or keeps):
        job = prepare()
    proof = _Proof(job, parts, git, sandbox)
    proof.say, proof.cancel = say, cancel
    return proof.finish(census)


class _Proof:
    """One proof while it is made."""

    def __init__(self, job: ProofJob, parts: ChangeParts, git: Git, sandbox: Sandbox) -> None:
        self.job, self.parts, self.git, self.sandbox = job, parts, git, sandbox
        self.say: Callable[[str], None] = lambda _: None
        self.cancel: Event | None = None
        self.intent = read_intent(job.title, job.body)
        self.overlay = {
            path: data for path in parts.support if (data := git.show(job.head, path)) is not None
        }
        self.seconds = {"environment": 0.0, "tests": 0.0, "proof": 0.0, "mutants": 0.0}
        self.done: dict[str, TestProof] = {}
        self._runner: FileTestTools | None = None
        self.capsule: Capsule | None = None
        self._seen: dict[str, SeenEnvironment] = {}
        self._candidates: list[tuple[TriedMutant, Candidate]] = []
        self.mutants: tuple[TriedMutant, ...] = ()
        self.noticed: set[str] = set()
        self._untried = 0
        self._without_change: list[CommandRun] = []

    def finish(self, census: tuple[CheckReason, ...]) -> ProofResult:
        started = time.monotonic()
        tests: tuple[TestProof, ...] = ()
        if self.parts.tests and self.parts.changes_source:
            tests = self._prove_groups()
        self.seconds["proof"] = (
            time.monotonic() - started - self.seconds["mutants"] - self.seconds["environment"]
        )
        verdict, reason = self._conclude(tests)
        refused = next((one for one in census if one.level == "deny"), None)
        if refused is not None:
            verdict, reason = "refused", refused.detail
        claims = (*self._check_closes(tests, verdict), *self._check_keeps(tests))
        return ProofResult(
            verdict,
            reason,
            tests,
            self.mutants,
            claims,
            census,
            self.seconds,
            self.capsule,
        )

    def _conclude(self, tests: Sequence[TestProof]) -> tuple[ProofVerdict, str]:
        if not self.parts.changes_source:
            return "nothing_to_prove", "the change alters no source of the product"
        if not self.parts.tests and self.parts.unparsed:
            return "inconclusive", f"{self.parts.unparsed[0]} cannot be parsed as Python 3"
        if not self.parts.tests:
            return "nothing_to_prove", "no test is new or altered"
        for verdict in ("proven", "not_discriminating", "inconclusive"):
            found = [test for test in tests if test.verdict == verdict]
            if found:
                more = f" ({len(found)} of {len(tests)} tests)" if len(tests) > 1 else ""
                return found[0].verdict, f"{found[0].test}: {found[0].reason}{more}"
        return (
            "nothing_to_prove",
            "the tests pass with and without the change, as they are meant to",
        )

    def _make_capsule(self, tests: Sequence[TestProof]) -> Capsule | None:
        """The runs without the change, where they are what proves it."""
        runs = [run for run in self._without_change if run.failed]
        if not runs or not any(one.verdict == "proven" and one.base == "fail" for one in tests):
            return None
        trial = self._make_trial(self.parts.tests, self.overlay, self.job.base)
        try:
            return make_capsule(
                "prove",
                trial,
                self.job.base,
                expect_runs(runs),
                git=self.git,
                sandbox=self.sandbox,
                seen=self._seen,
            )
        except UserError as error:
            self.say(f"no capsule was made: {error}")
            return None

    # -- runs ----------------------------------------------------------------------------------------------------

    def _run(
        self,
        rev: str,
        tests: Sequence[ChangedTest],
        overlay: Mapping[str, bytes],
        env: PreparedEnv | None = None,
        *,
        observe: bool = False,
    ) -> CommandRun:
        trial = self._make_trial(tests, overlay, rev)
        listeners = () if self._runner else TEST_LISTENERS
        engine, cancel = self.sandbox, self.cancel
        with open_box(trial, rev, git=self.git, sandbox=engine, env=env, cancel=cancel) as box:
            if observe and env is not None:
                self._seen[env.key] = observe_box(box, trial)
            run = run_in_box(box, trial, listeners=listeners, cancel=cancel)
        if self._runner is None:
            return run
        titles: dict[str, list[str]] = {}
        for test in self.parts.tests:
            titles.setdefault(test.path, []).append(test.function)
        words, failures = self._runner.read_results(run.output, titles)
        return replace(run, tests=words, failures=failures)

    def _make_trial(
        self, tests: Sequence[ChangedTest], overlay: Mapping[str, bytes], rev: str
    ) -> Trial:
        laid = {**self.job.trial.overlay, **overlay}
        limit = ("env", f"{STUCK_VARIABLE}={self.job.stuck_seconds:g}")
        limited = limit if self._runner is None and rev == self.job.base else ()
        command = (*limited, *self._command(tests))
        return replace(self.job.trial, command=command, overlay=laid, title=None)

    def _command(self, tests: Sequence[ChangedTest]) -> tuple[str, ...]:
        """What runs some tests, with the Python that the repository's own command names."""
        paths = list(dict.fromkeys(test.path for test in tests))
        if self._runner is not None:
            command = self._runner.run_files(self.job.trial.command_line, paths, self._read_head)
            return command or self.job.trial.command
        functions = list(dict.fromkeys(test.function for test in tests))
        named = functions if "" not in functions and len(functions) <= _MAX_NAMED_TESTS else ()
        return PYTHON_TESTS.run_functions(self._find_python(), named, paths)

    def _find_python(self) -> Sequence[str]:
        language = find_warm_language(self.job.trial)
        driver = language.warm_driver if language is not None else None
        python = driver.find_interpreter(self.job.trial.command) if driver else None
        return python or ()

    def _read_head(self, path: str) -> str | None:
        data = self.git.show(self.job.head, path)
        return data.decode("utf-8", "replace") if data is not None else None

    def _prove_groups(self) -> tuple[TestProof, ...]:
        """The tests of one language after the other, each with the faults in its own sources."""
        whole, groups = self.parts, dict[FileTestTools | None, list[ChangedTest]]()
        for test in whole.tests:
            groups.setdefault(find_file_tests(test.path), []).append(test)
        proofs: list[TestProof] = []
        mutants: list[TriedMutant] = []
        overlay = self.overlay
        for runner, tests in groups.items():
            self.overlay = dict(
                overlay
            )  # what one language needs on the base is not the next one's
            sources = tuple(x for x in whole.sources if find_file_tests(x.path) is runner)
            self._runner, self._candidates, self._untried = runner, [], 0
            self.parts = replace(whole, tests=tuple(tests), sources=sources)
            called = self.job.trial.command_line
            paths = [test.path for test in tests]
            if runner is not None and not runner.run_files(called, paths, self._read_head):
                why = f"no runner that is known here runs it in `{called[:80]}`"
                proofs += [TestProof(x.test, "error", "fail", "inconclusive", why) for x in tests]
                continue
            proofs += (found := self._prove_tests())
            mutants += (mutant for mutant, _ in self._candidates)
            self.capsule = self.capsule or self._make_capsule(found)
            self._without_change = []
        self.parts, self.mutants = whole, tuple(mutants)
        return tuple(proofs)

    def _run_both_sides(self, tests: Sequence[ChangedTest]) -> list[_SidedRuns]:
        runs = self._run_twice(tests, (self.job.head, {}), (self.job.base, self.overlay))
        return [_SidedRuns(*sided) for sided in runs]

    def _run_twice(
        self, tests: Sequence[ChangedTest], *sides: tuple[str, Mapping[str, bytes]]
    ) -> list[list[CommandRun]]:
        """Two runs at each revision with its overlay, all at once: most of a short one is the start of its box.

        The environments are looked up once, before: each look-up takes a process, and that as long as a short run.
        """
        environments = [self._prepare(rev, tests, overlay) for rev, overlay in sides]
        with ContextThreadPool(2 * len(sides)) as pool:
            submitted = [
                [
                    pool.submit(
                        self._run,
                        rev,
                        tests,
                        overlay,
                        env,
                        observe=again and rev == self.job.base,
                    )
                    for (rev, overlay), env in zip(sides, environments, strict=True)
                ]
                for again in (False, True)
            ]
            return [[run.result() for run in runs] for runs in submitted]

    def _prepare(
        self, rev: str, tests: Sequence[ChangedTest], overlay: Mapping[str, bytes]
    ) -> PreparedEnv:
        started = time.monotonic()
        trial = self._make_trial(tests, overlay, rev)
        env = prepare_environment(
            trial, rev, git=self.git, sandbox=self.sandbox, cancel=self.cancel
        )
        self.seconds["environment"] += time.monotonic() - started
        return env

    def _repair_pytest_start(self, output: str) -> bool:
        """Change what keeps pytest itself from starting; whether there was such a thing."""
        # pytest runs the tests of a project that uses unittest
        completed = add_missing_pytest(self.job.trial, output)
        if completed is not None:
            self.job = replace(self.job, trial=completed)
            return True
        if REFUSED_SECTION not in output or SETUP_CFG in self.job.trial.overlay:
            return False
        self.say(
            f"pytest refuses [pytest] in {SETUP_CFG}: it is called [tool:pytest] on both sides"
        )
        laid = dict(self.job.trial.overlay)
        for rev, files in ((self.job.head, laid), (self.job.base, self.overlay)):
            if text := files.get(SETUP_CFG) or self.git.show(rev, SETUP_CFG):
                files[SETUP_CFG] = rename_pytest_section(text)
        self.job = replace(self.job, trial=replace(self.job.trial, overlay=laid))
        return True

    def _prove_tests(self) -> tuple[TestProof, ...]:
        tests = self.parts.tests
        what = count_noun(len(tests), "new or altered test")
        self.say(f"running {what} with and without the change")
        first, second = self._run_both_sides(tests)
        for _ in range(_MAX_START_REPAIRS):
            if self._runner or first.head.tests or not self._repair_pytest_start(first.head.output):
                break
            first, second = self._run_both_sides(tests)
        self._without_change += [first.base, second.base]
        if not first.head.tests:
            ended = first.head.result.ended
            why = f"no test ran with the change: {find_telling_line(first.head.output) or ended}"
            if ended != "exit":  # a box that was stopped cannot be read any more
                why = f"the tests did not end with the change ({ended})"
            return tuple(
                TestProof(test.test, "error", "fail", "inconclusive", why) for test in tests
            )
        self.seconds["tests"] = first.head.result.seconds
        compared = {test.test: self._compare(test, first) for test in tests}
        self.done = {name: one for name, one in compared.items() if isinstance(one, TestProof)}
        reds = {name: one for name, one in compared.items() if isinstance(one, _Red)}
        if not reds:
            green = [test for test in tests if compared[test.test] is None and test.asks_new]
            self._try_own_manifests(green, first.head)
        self._find_unsteady(first, second, [test for test in tests if test.test in reds])
        lacking: list[ChangedTest] = []
        for test in tests:
            if test.test in reds and test.test not in self.done:
                if reds[test.test].kind == "lacks":
                    lacking.append(test)
                else:
                    self.done[test.test] = self._judge_red(test, reds[test.test])
        self._show_by_faults(lacking, self._make_direct_faults() if lacking else ())
        self._try_mutants(first.head)
        left = [test for test in lacking if test.test not in self.done]
        if left and not self.intent.keeps:
            killed = [(mutant, text) for mutant, text in self._candidates if mutant.killed_by]
            faults = [(f"{one.path}:{one.line}: {one.change}", text) for one, text in killed]
            self._show_by_faults(left, faults[:_MAX_CONFIRMED_MUTANTS])
        proven = any(proof.verdict == "proven" for proof in self.done.values())
        for test in tests:
            if test.test not in self.done:
                red = reds.get(test.test)
                self.done[test.test] = (
                    self._judge_unshown(test, red)
                    if red
                    else self._judge_green(test, proven=proven)
                )
        return tuple(self.done[test.test] for test in tests)

    def _compare(self, test: ChangedTest, runs: _SidedRuns) -> TestProof | _Red | None:
        """The verdict where one run on each side settles it, else how the base is red; None where both are green."""
        head = _select(test, runs.head.tests)
        passing = {name for name, word in head.items() if word == "passed"}
        why = ""
        if "failed" in head.values() or not head:
            why = f"it {'fails' if head else 'did not run'} with the change, so it proves nothing"
            return TestProof(test.test, "error", "fail", "inconclusive", why)
        if not passing:
            why = "it is skipped here, or expected to fail"
        elif runs.base.result.ended != "exit":
            why = f"the tests did not end without the change ({runs.base.result.ended})"
        elif runs.base.stuck and not passing & {*runs.base.tests, runs.base.stuck}:
            why = f"without the change {runs.base.stuck}, which runs before it, does not end"
        if why:
            return TestProof(test.test, "error", "pass", "inconclusive", why)
        if runs.base.stuck in passing:
            limit, took = self.job.stuck_seconds, runs.head.took.get(runs.base.stuck, 0.0)
            text = f"it does not end in {limit:g} s ({took:.1f} s with the change)"
            return _Red("crash" if took < limit / 10 else "other", text)
        return self._read_red(test, passing, runs.base)

    def _read_red(self, test: ChangedTest, passing: set[str], run: CommandRun) -> _Red | None:
        """How what passes with the change fails without it; None where it does not."""
        base = _select(test, run.tests)
        failed = [name for name in passing if base.get(name) == "failed"]
        found = [
            _classify_failure(one, self.parts.new_names) for one in _list_failures(run, failed)
        ]
        for kind in ("assertion", "crash", "lacks", "other"):
            if red := next((red for red in found if red.kind == kind), None):
                return red
        if failed:
            return _Red("other", "how it fails could not be read")
        if not passing - base.keys():
            return None
        uncollected = [one for one in run.failures if one.test.partition("::")[0] == test.path]
        failure_text = (
            uncollected[0].message if uncollected else "it is not collected without the change"
        )
        return _Red("lacks", failure_text.partition("\n")[0][:200])

    def _find_unsteady(
        self, first: _SidedRuns, second: _SidedRuns, tests: Sequence[ChangedTest]
    ) -> None:
        """What is red on the base, and ends otherwise in the second run of either side, is a flake."""
        for test in tests:
            before, after = (_select(test, runs.head.tests) for runs in (first, second))
            if before.keys() - after.keys() or not isinstance(self._compare(test, second), _Red):
                why = "it ends otherwise when it is run again"
                self.done[test.test] = TestProof(test.test, "error", "pass", "inconclusive", why)

    def _try_own_manifests(self, tests: Sequence[ChangedTest], head: CommandRun) -> None:
        """Judge tests that pass with the head's manifests on the base, and fail by assertion with its own.

        The base has the head's for what the tests need installed; what the change mends may stand there too.
        """
        own = {
            path: data
            for path, data in self.overlay.items()
            if is_test(path) or is_test_config(path) or path not in self.parts.support
        }
        if SETUP_CFG in self.job.trial.overlay and (
            text := self.git.show(self.job.base, SETUP_CFG)
        ):
            own[SETUP_CFG] = rename_pytest_section(text)
        if not tests or own == self.overlay:
            return
        self.say("running them with the manifests as they were, too")
        laid, self.overlay = self.overlay, own
        runs = [run for (run,) in self._run_twice(tests, (self.job.base, own))]
        for test in tests:
            passing = {name for name, word in _select(test, head.tests).items() if word == "passed"}
            reds = [self._read_red(test, passing, run) for run in runs]
            if reds[0] is not None and all(red and red.kind == "assertion" for red in reds):
                self.done[test.test] = self._judge_red(test, reds[0])
        if any(test.test in self.done for test in tests):
            self._without_change = runs
        else:
            self.overlay = laid

    # -- verdicts ------------------------------------------------------------------------------------------------

    def _judge_red(self, test: ChangedTest, red: _Red) -> TestProof:
        if red.kind == "other":
            return TestProof(
                test.test,
                "error",
                "pass",
                "inconclusive",
                f"without the change it ends with an error of another kind: {red.text}",
            )
        if test.hollow and (red.kind == "crash" or test.hollow == ONLY_NOTICES_ERRORS):
            why = f"without the change it stops with {red.text}, but {test.hollow}"
            return TestProof(test.test, "error", "pass", "inconclusive", why)
        return TestProof(test.test, "fail", "pass", "proven", f"without the change: {red.text}")

    def _judge_unshown(self, test: ChangedTest, red: _Red) -> TestProof:
        if self.intent.keeps:
            why = f"the change is said to keep behaviour; without it: {red.text}"
            return TestProof(test.test, "missing", "pass", "nothing_to_prove", why)
        if test.hollow:
            return TestProof(test.test, "missing", "pass", "not_discriminating", test.hollow)
        why = f"it needs the new code ({red.text}), and no fault that was tried there makes an assertion fail"
        return TestProof(test.test, "missing", "pass", "inconclusive", why)

    def _judge_green(self, test: ChangedTest, *, proven: bool) -> TestProof:
        both = "it passes with and without the change"
        if test.hollow and test.asks_new:
            return TestProof(
                test.test, "pass", "pass", "not_discriminating", f"{both}: {test.hollow}"
            )
        if not test.asks_new or not test.function:
            return TestProof(
                test.test,
                "pass",
                "pass",
                "nothing_to_prove",
                f"{both}; what is altered in it asks nothing new",
            )
        if proven or self.intent.keeps:
            return TestProof(
                test.test, "pass", "pass", "nothing_to_prove", f"{both}; it guards what stays"
            )
        if test.test in self.noticed:
            verdict: ProofVerdict = "inconclusive" if self.intent.fixes else "nothing_to_prove"
            return TestProof(
                test.test,
                "pass",
                "pass",
                verdict,
                f"{both}, and notices faults in the changed lines",
            )
        verdict, why = self._explain_survivors()
        return TestProof(test.test, "pass", "pass", verdict, f"{both}, {why}")

    def _explain_survivors(self) -> tuple[ProofVerdict, str]:
        """What it says of a test that is green on both sides that no fault is noticed by it."""
        survivors = [mutant for mutant in self.mutants if not mutant.killed_by]
        if not survivors and self.mutants:
            return (
                "inconclusive",
                f"and other tests notice the {len(self.mutants)} faults that were put into the changed lines",
            )
        if not survivors and self._untried:
            return (
                "inconclusive",
                f"and the {self._untried} faults that could be put into the changed lines could not be tried",
            )
        if not survivors:
            return "inconclusive", "and no fault could be put into the changed lines"
        place = f"{survivors[0].path}:{survivors[0].line}"
        elsewhere = isolation.run_in_child(
            _list_platform_lines, self.parts.sources, cancel=self.cancel
        )
        if all((mutant.path, mutant.line) in elsewhere for mutant in survivors):
            why = f"and what no test notices depends on the Python or the platform: {place}"
            return "inconclusive", why
        return "not_discriminating", f"and with {survivors[0].change!r} in {place} too"

    # -- faults --------------------------------------------------------------------------------------------------

    def _make_direct_faults(self) -> list[tuple[str, Candidate]]:
        """New functions that return nothing, then single places taken back."""
        if self.intent.keeps:
            return []
        return isolation.run_in_child(_list_direct_faults, self.parts.sources, cancel=self.cancel)

    def _show_by_faults(
        self, tests: Sequence[ChangedTest], faults: Sequence[tuple[str, Candidate]]
    ) -> None:
        """Run tests that need the new code on the head with a fault in it; those whose assertions fail are proven."""
        left = [test for test in tests if not test.hollow]
        for what, candidate in faults:
            if not left:
                return
            files = _encode_candidate(candidate)
            env = self._prepare(self.job.head, left, files)
            run = self._run(self.job.head, left, files, env)
            for test in list(left):
                failed = _select(test, run.tests)
                seen = [_classify_failure(one, frozenset()) for one in _list_failures(run, failed)]
                shown = next((red for red in seen if red.kind in {"assertion", "crash"}), None)
                if shown is not None:
                    left.remove(test)
                    why = f"it needs the new code, and with {what} it fails: {shown.text}"
                    self.done[test.test] = TestProof(test.test, "missing", "pass", "proven", why)

    def _try_mutants(self, head: CommandRun) -> None:
        """Put faults into the changed lines, and see which of them a test of the changed test files notices."""
        started = time.monotonic()
        deadline = started + 60 * self.job.minutes
        faults = list(self._make_mutants())
        own = {
            name: test.test
            for test in self.parts.tests
            for name, word in _select(test, head.tests).items()
            if word == "passed"
        }
        if faults and own and self.job.mutants > 0:
            self.say(f"putting {len(faults)} faults into the changed lines")
            kill = self._kill if self._runner is None else self._kill_in_fresh_boxes
            self._candidates = kill(faults, own, deadline)
            if self._runner is None:
                self._mark_functions_not_run(own, deadline)
        self.mutants = tuple(mutant for mutant, _ in self._candidates)
        self._untried = len(faults) - len(self.mutants)
        if self._untried and self.mutants:
            self.say(
                f"{self._untried} of them could not be tried: no time was left, or they do not compile"
            )
        self.seconds["mutants"] = time.monotonic() - started

    def _mark_functions_not_run(self, own: Mapping[str, str], deadline: float) -> None:
        """Tell a function that no test runs from one that tests run and whose faults they do not notice: make it raise."""
        tried = [mutant for mutant, _ in self._candidates]
        noticed = {(one.path, one.function) for one in tried if one.killed_by}
        silent = {(one.path, one.function) for one in tried if one.function} - noticed
        probes = [
            (file.path, name, {file.path: text})
            for file in self.parts.sources
            if (names := {name for path, name in silent if path == file.path})
            for name, text in isolation.run_in_child(_make_functions_raise, file, names)
        ]
        stop = StopCondition(deadline, self.cancel)
        if not probes or stop.left < 1:
            return
        engine = self._make_engine(dict.fromkeys(own, "failed"), stop)
        verdicts = engine.try_all([candidate for _, _, candidate in probes], seconds=stop.left)
        not_run = {
            (path, name)
            for (path, name, _), verdict in zip(probes, verdicts, strict=False)
            if verdict.green and verdict.how != "untried"
        }
        self._candidates = [
            (replace(one, is_run=(one.path, one.function) not in not_run), candidate)
            for one, candidate in self._candidates
        ]

    def _kill(
        self, faults: list[tuple[TriedMutant, Candidate]], own: Mapping[str, str], deadline: float
    ) -> list[tuple[TriedMutant, Candidate]]:
        stop = StopCondition(deadline, self.cancel)
        tried: list[tuple[TriedMutant, Candidate]] = []
        asked = dict(own)
        others: dict[str, str] = {}
        for number in range(_MAX_ENGINE_PASSES):
            if not asked or stop.left < 1:
                break
            engine = self._make_engine({**others, **dict.fromkeys(asked, "failed")}, stop)
            if number == 0:
                timed = engine.run_baseline(
                    sorted({name.split("::")[0] for name in asked}), stop.left / 3
                )
                others = {
                    name: "passed"
                    for name, one in timed.items()
                    if one.outcome == "passed" and name not in own
                }
                engine = self._make_engine({**others, **dict.fromkeys(asked, "failed")}, stop)
                engine.set_limits(timed)
            verdicts = engine.try_all([candidate for _, candidate in faults], seconds=stop.left)
            seen: set[str] = set()
            rows: list[tuple[TriedMutant, Candidate]] = []
            for (mutant, candidate), verdict in zip(faults, verdicts, strict=False):
                if verdict.how != "untried":
                    killer = verdict.failed[0] if verdict.failed else "the tests"
                    rows.append(
                        (replace(mutant, killed_by=None if verdict.green else killer), candidate)
                    )
                    seen |= {own[killer]} if not verdict.green and killer in own else set()
            tried = tried or rows
            self.noticed |= seen
            if not seen:
                break
            others = {}  # asked once; what follows is whether each of the other new tests notices something
            asked = {name: test for name, test in asked.items() if test not in self.noticed}
        return tried

    def _kill_in_fresh_boxes(
        self, faults: list[tuple[TriedMutant, Candidate]], own: Mapping[str, str], deadline: float
    ) -> list[tuple[TriedMutant, Candidate]]:
        """One run of the changed test files for each fault; one that does not even compile says nothing."""
        tried: list[tuple[TriedMutant, Candidate]] = []
        for at in range(0, len(faults), _BOXES):
            if time.monotonic() > deadline:
                break
            some = faults[at : at + _BOXES]
            with ContextThreadPool(_BOXES) as pool:
                runs = [
                    pool.submit(self._run, self.job.head, self.parts.tests, _encode_candidate(x))
                    for _, x in some
                ]
                ends = [run.result().tests for run in runs]
            for (mutant, candidate), words in zip(some, ends, strict=True):
                failed = [name for name in own if words.get(name) == "failed"]
                self.noticed |= {own[name] for name in failed}
                if failed or all(words.get(name) == "passed" for name in own):
                    killer = failed[0] if failed else None
                    tried.append((replace(mutant, killed_by=killer), candidate))
        return tried

    def _make_engine(self, words: Mapping[str, str], stop: StopCondition) -> WarmEngine:
        trial = replace(self.job.trial, command=self._command(self.parts.tests), title=None)
        before = InitialFailure(trial.command_line, 0)
        job = FixJob(trial, self.job.head)
        return WarmEngine(
            RepairCase(job, self.job.head, before, words, self.git, self.sandbox, stop)
        )

    def _make_mutants(self) -> Iterator[tuple[TriedMutant, Candidate]]:
        sources = self.parts.sources
        share = max(1, self.job.mutants // max(1, len(sources)))
        left = self.job.mutants
        for file in sources:
            made = isolation.run_in_child(_mutate_file, file, share)
            for mutant, text in made[: max(0, left)]:
                left -= 1
                yield mutant, {file.path: text}

    # -- claims --------------------------------------------------------------------------------------------------

    def _check_closes(
        self, tests: Sequence[TestProof], verdict: ProofVerdict
    ) -> Iterator[ProofClaim]:
        proven = [test.test for test in tests if test.verdict == "proven"]
        for text in self.intent.closes:
            if proven:
                yield ProofClaim(text, True, f"{proven[0]} fails without the change")
            elif not self.parts.changes_source:
                yield ProofClaim(text, None, "no source of the product changes")
            elif verdict == "inconclusive":
                yield ProofClaim(text, None, "the tests could not show it")
            else:
                yield ProofClaim(text, False, "no test of this change fails without it")

    def _check_keeps(self, tests: Sequence[TestProof]) -> Iterator[ProofClaim]:
        """Compare the project's tests before and after a change that is said to keep behaviour."""
        if not self.intent.keeps:
            return
        text = self.intent.keeps
        red = next((test for test in tests if test.base == "fail"), None)
        if red is not None:
            yield ProofClaim(text, False, f"{red.test} fails without the change")
            return
        if not self.parts.changes_source or not self.job.trial.command:
            yield ProofClaim(
                text, None if self.parts.changes_source else True, "nothing was compared"
            )
            return
        self.say("running the project's tests before and after the change")
        trial = replace(self.job.trial, timeout=min(self.job.trial.timeout, 60 * self.job.minutes))
        old, new = (
            run_fresh(
                trial,
                rev,
                git=self.git,
                sandbox=self.sandbox,
                listeners=TEST_LISTENERS,
                seconds=trial.timeout / 2,
                cancel=self.cancel,
            )
            for rev in (self.job.base, self.job.head)
        )
        if not old.tests or not new.tests or old.stopped or new.stopped:
            yield ProofClaim(text, None, "the project's tests did not run to their end")
            return
        gone = find_regressed_tests(old.tests, new.tests)
        failed = [test for test, word in gone.items() if word == "failed"]
        kept = sum(
            word == "passed" and old.tests.get(test) == "passed" for test, word in new.tests.items()
        )
        why = (
            f"{failed[0]} passed before and fails now"
            if failed
            else f"{kept} tests pass before and after"
        )
        if not failed:
            compared, differing = self._compare_calls()
            failed = list(differing)
            why = differing[0] if differing else f"{why}{compared}"
        yield ProofClaim(text, not failed, why)

    def _compare_calls(self) -> tuple[str, list[str]]:
        """Call the changed public functions with made-up arguments on both sides: what was compared, what differs."""
        with isolation.name_failed_input("the change"):
            rows = isolation.run_in_child(
                list_changed_calls, self.git, self.job.head, self.parts.sources, cancel=self.cancel
            )
        if not rows:
            return "", []
        self.say(f"calling {len(rows)} changed functions before and after the change")
        results: list[dict[str, str]] = []
        left_out = False
        for rev in (self.job.base, self.job.head, self.job.base, self.job.head):
            run = self._run_calls(rows, rev)
            calls, is_cut = PYTHON_TESTS.read_calls(run.output)
            results.append(calls)
            left_out |= is_cut
            is_settled = results[:1] == results[1:2] or not all(results)
            if len(results) == 2 and is_settled:
                break
        old, new, *again = results
        common = [call for call in old if call in new]
        differing = [
            f"{call}: {old[call]} before, {new[call]} now"
            for call in sorted(common, key=len)
            if _differ(old[call], new[call])
            and [old[call], new[call]] == [one.get(call) for one in again]
        ]
        same = [call for call in common if old[call] == new[call]]
        named = len({call.partition("(")[0] for call in same})
        compared = f", and {len(same)} made-up calls of {named} changed functions give the same"
        compared += "; the calls past the limit were not compared" if left_out else ""
        return compared if same else "", differing

    def _run_calls(self, rows: Sequence[Mapping[str, Any]], rev: str) -> CommandRun:
        seconds = max(10.0, min(_MAX_CALL_SECONDS, 15 * self.job.minutes))
        command, files = PYTHON_TESTS.call_functions(self._find_python(), rows, seconds)
        trial = replace(
            self.job.trial,
            command=command,
            overlay={**self.job.trial.overlay, **files},
            timeout=2 * seconds,
            title=None,
        )
        return run_fresh(trial, rev, git=self.git, sandbox=self.sandbox, cancel=self.cancel)


def _differ(old: str, new: str) -> bool:
    """Whether a call gives something else; of arguments that were none of the function's before, nothing is promised."""
    return old != new and old not in {"raises TypeError", "raises AttributeError"}


def _select(test: ChangedTest, tests: Mapping[str, str]) -> dict[str, str]:
    """The outcomes of one test function: all its cases, and those of the classes that inherit it.

    A project in a folder of its own calls its tests by their paths below that. Decorators that make a test of each case
    (parameterized, ddt) put its number behind the name.
    """
    whole = {name: name.split("[", 1)[0] for name in tests}
    own = [name for name in tests if test.test in {name, whole[name]}]
    own = own or [name for name in tests if f"/{test.test}".endswith(f"/{whole[name]}")]
    own = own or [
        name
        for name in tests
        if name.startswith(f"{test.path}::")
        and (not test.function or whole[name].endswith(f"::{test.function}"))
    ]
    if not own and test.function:
        case = re.compile(re.escape(test.test.partition("::")[2]) + r"_?\d{1,4}(?:_\w{0,300})?")
        parts = ((name, *name.split("::", 1)) for name in tests if "::" in name)
        own = [
            name
            for name, path, rest in parts
            if case.fullmatch(rest) and f"/{test.path}".endswith(f"/{path}")
        ]
    return {name: tests[name] for name in own}


def _list_failures(run: CommandRun, tests: Collection[str]) -> list[Failure]:
    """The failures of these tests; pytest may print their paths from above the folder of the project."""
    return [one for one in run.failures if one.test in tests] or [
        one for one in run.failures if any(f"/{one.test}".endswith(f"/{test}") for test in tests)
    ]


def _classify_failure(failure: Failure, new_names: frozenset[str]) -> _Red:
    """What a failure without the change says; `new_names` are the identifiers that only the change brings."""
    line = next(iter(failure.message.splitlines()), "")[:200]
    text = line if line.startswith(failure.kind) else f"{failure.kind}: {line}"
    place = failure.path or failure.test.partition("::")[0]
    asserts = _ASSERTING_KIND.fullmatch(failure.kind) or text.startswith("panic: assertion ")
    if asserts and is_test(place):
        return _Red("assertion", text)
    unread = {"SyntaxError", "IndentationError"} if "::" not in failure.test else set()
    if failure.kind in {"ImportError", "ModuleNotFoundError", "NameError", *unread}:
        return _Red("lacks", text)
    if _LACKS_NAME.search(failure.message[:2000]):
        quoted = {
            part
            for names in _QUOTED.findall(failure.message[:2000])
            for part in "".join(names).split(".")
        }
        about_calls = "argument" in failure.message[:2000]
        if "fixture '" in failure.message[:2000]:
            return _Red("other", text)
        if quoted & new_names or about_calls:
            return _Red("lacks", text)
    if not failure.kind or failure.kind == "error":
        return _Red("other", text)
    return _Red("crash", text)


def _encode_candidate(candidate: Candidate) -> dict[str, bytes]:
    return {path: text.encode("utf-8", "surrogateescape") for path, text in candidate.items()}


def _list_direct_faults(sources: Sequence[PatchedFile]) -> list[tuple[str, Candidate]]:
    stubs = [fault for file in sources for fault in _stub_new_functions(file)]
    back = [fault for file in sources for fault in _take_back_places(file)]
    chosen = stubs[: max(_MAX_DIRECT_FAULTS // 2, _MAX_DIRECT_FAULTS - len(back))]
    return [*chosen, *back][:_MAX_DIRECT_FAULTS]


def _stub_new_functions(file: PatchedFile) -> Iterator[tuple[str, Candidate]]:
    """The file with one of its new functions made to return nothing."""
    known = find_functions(file.old_tree)
    for name, node in find_functions(file.new_tree).items():
        is_new = name not in known and not name.endswith("__init__")
        if is_new and (stubbed := _replace_body(file, node, "return None")):
            yield f"{name} returning nothing", {file.path: stubbed}


def _make_functions_raise(file: PatchedFile, names: set[str]) -> list[tuple[str, str]]:
    """For each of these functions the text in which it raises an error. Call it in a child process."""
    functions = find_functions(file.new_tree).items()
    made = [
        (name, _replace_body(file, node, "raise RuntimeError"))
        for name, node in functions
        if name in names
    ]
    return [(name, text) for name, text in made if text]


def _replace_body(file: PatchedFile, node: PythonFunction, statement: str) -> str:
    """The text with one statement in the place of a function's body; "" where that cannot be parsed."""
    lines = (file.new or "").splitlines(keepends=True)
    start, end = node.body[0].lineno, node.end_lineno or node.lineno
    if start <= node.lineno:
        return ""
    indent = " " * node.body[0].col_offset
    text = "".join([*lines[: start - 1], f"{indent}{statement}\n", *lines[end:]])
    return text if parse_python(text) is not None else ""


def _take_back_places(file: PatchedFile) -> Iterator[tuple[str, Candidate]]:
    """The file with one changed place as it was before."""
    if file.old is None or file.new is None:
        return
    for number, text in file.take_back_places():
        if parses(file.path, text):
            yield f"{file.path}:{number} as it was", {file.path: text}


def _list_platform_lines(sources: Sequence[PatchedFile]) -> frozenset[tuple[str, int]]:
    """The lines of both branches of a condition on the Python or the platform. Call it in a child process."""
    return frozenset(
        (file.path, line)
        for file in sources
        for node in find_nodes(file.new_tree, ast.If, ast.IfExp)
        if _PLATFORM.search(ast.unparse(node.test))
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    )


def _find_function(functions: Mapping[str, PythonFunction], line: int) -> str:
    """The innermost function that a line is in; "" outside of all."""
    around = {
        name: node.lineno
        for name, node in functions.items()
        if node.lineno <= line <= (node.end_lineno or node.lineno)
    }
    return max(around, key=lambda name: around[name], default="")


def _mutate_file(file: PatchedFile, most: int) -> list[tuple[TriedMutant, str]]:
    """Faults in the changed lines of a file, spread over them. Call it in a child process."""
    make_mutants, text = find_mutation(file.path), file.new or ""
    functions = find_functions(file.new_tree)
    numbers = [number for number, line in file.added_lines if line.strip()]
    if make_mutants is None or not numbers:
        return []
    size = max(1, len(numbers) * _MUTANTS_A_CALL // max(_MUTANTS_A_CALL, most))
    groups = [numbers[at : at + size] for at in range(0, len(numbers), size)]
    found: list[tuple[TriedMutant, str]] = []
    for group in groups:
        for edit in make_mutants(text, group)[:_MUTANTS_A_CALL]:
            changed = edit.apply_to(text)
            line = changed.splitlines()[edit.line - 1].strip()[:120]
            if parses(file.path, changed):
                function = _find_function(functions, edit.line)
                found.append((TriedMutant(file.path, edit.line, line, None, function), changed))
        if len(found) >= most:
            break
    return found[:most]
