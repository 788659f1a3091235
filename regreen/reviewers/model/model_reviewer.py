"""The model's review: a reading of a change; a second reader then checks each claim."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from regreen.code.diff import apply_suggestion
from regreen.code.paths import is_test
from regreen.domain.errors import AnalysisFailed, Cancelled, OutOfBudget, OutsideError, UserError
from regreen.domain.models import (
    ClaimWorth,
    Evidence,
    ProofStatus,
    RunResult,
    SentPart,
    Signals,
    SkippedReviewer,
    UnreadFile,
)
from regreen.domain.ports import Git, Model, Sandbox
from regreen.domain.text_limits import shorten_text
from regreen.languages.python.dependencies import add_missing_pytest
from regreen.languages.python.test_tools import PYTHON_TESTS
from regreen.languages.registry import find_test_tools, has_capability
from regreen.reviewers.analyzers import bundled_checkers
from regreen.reviewers.analyzers.baseline import RUFF_RULES
from regreen.reviewers.calibration import estimate_confidence
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.reviewers.model.change_listing import (
    ChangePortion,
    FindRelated,
    fence_data,
    make_portions,
)
from regreen.reviewers.model.claims import (
    ModelClaim,
    drop_repetitions,
    read_claims,
)
from regreen.reviewers.model.related_code import changed_definitions
from regreen.reviewers.model.review_prompts import (
    CORRECT_TEST_PROMPT,
    EXISTING_TESTS_PROMPT,
    HARM_PROMPT,
    READING_PROMPT,
    REPORT_TOOL,
    TEST_PATH,
    WRITE_TEST_PROMPT,
    WRITE_TEST_TOOL,
)
from regreen.reviewers.model.verify import (
    VerifiedClaim,
    ask_for_input,
    ask_verifier,
    make_question,
    verification_code,
)
from regreen.runs.capsule import KeepCapsule, expect_runs, make_capsule
from regreen.runs.test_runs import CommandRun
from regreen.runs.trial import Trial, open_box
from regreen.secrets.markdown_sanitizer import count_noun

# Tests of claims: the model writes one for a claim, it runs on the head and the merge base, and it decides.

_TEST_SECONDS = 120.0
_MAX_SECONDS = 900.0
"""For all tests of one review, once their environment is ready; a test that has begun may run to its own limit."""
_MAX_TESTED_CLAIMS = 6
_MAX_EXISTING_TESTS = 3
_MAX_TEST_CHARACTERS = 20_000
_SHOWN_TEST_CHARACTERS = 4000
_SHOWN_OUTPUT_CHARACTERS = 3000
_MIN_PREDICTION_CHARACTERS = 3
_FAILED = frozenset({1, 2})
"""Pytest's exit codes for a failed test: before 5.0 it calls it interrupted where the first failure is the last."""
_NOT_STARTED = frozenset({3, 4})
"""Pytest's exit codes where a plugin fails with an option of the project, and where it does not know one."""
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_ENVIRONMENT_ERROR = re.compile(
    r"\b(?:Import|ModuleNotFound|Syntax)Error\b|\b(?:DistributionNotFound|PackageNotFoundError|VersionConflict)\b"
    r"|\bmodule '[^'\n]{1,200}' has no attribute\b"
)
"""How a test fails that has another interpreter or other packages than the change asks for."""
_COUNT = re.compile(r"\b(\d{1,6}) (passed|failed|errors?)\b")
_SUMMARY = re.compile(
    r"(?m)^[= ]{0,100}(\d{1,6} [a-z]{4,10}\b.{0,200} in [\d.]{1,12}(?:s| seconds).*)$"
)
"""Pytest's last line; what plugins and the project print may follow it."""
_SAVED_AS = f"# {TEST_PATH}, at the root of the repository\n"


@dataclass(frozen=True, slots=True)
class ClaimEvidence:
    """What a test showed of a claim; `reason` is why it proves nothing, `code` the test where it fails on the head.

    `proof` is "proven" where the test fails on the head as predicted and passes on the merge base, "red_on_head" where
    the base fails in another way (it has no such code), and "disproven" where the test passes on the head.
    `as_before`: it fails on the base in the same way.
    """

    proof: ProofStatus = "not_run"
    evidence: Evidence | None = None
    code: str = ""
    as_before: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _WrittenTest:
    """A test, and the words that its failure on the head is predicted to hold."""

    code: str
    prediction: str


@dataclass(frozen=True, slots=True)
class _TestRuns:
    """How one test ended on the head and, where it failed there, on the merge base; `output` is what its author sees."""

    shown: ClaimEvidence
    output: str = ""
    is_settled: bool = False


@dataclass(frozen=True, slots=True)
class _Bench:
    """Where the tests of claims run; `existing` tells their author which tests of the changed code ran, and how.

    `plain`: without the options that the project has set for pytest, since the environment does not know them.
    `doubt`: why a test may fail for the environment.
    """

    trial: Trial
    git: Git
    sandbox: Sandbox
    existing: str = ""
    plain: bool = False
    doubt: str = ""
    sent: tuple[SentPart, ...] = ()
    keep: KeepCapsule | None = None

    @property
    def command(self) -> tuple[str, ...]:
        """The command that runs the test of a claim."""
        return PYTHON_TESTS.run_file(TEST_PATH, once=True, plain=self.plain)


class ClaimTester:
    """Tests the claims of one review, a limited number of them for a limited time."""

    def __init__(self, context: ReviewContext, model: Model) -> None:
        self._context = context
        self._model = model
        self._left = _MAX_TESTED_CLAIMS
        self._until = math.inf
        self._bench: _Bench | None = None
        self.missing = ""
        """Why no test of this review can run; "" where they can, where none was needed, and where none is wanted."""

    def test_claim(
        self, portion: ChangePortion, claim: ModelClaim, *, mended: bool = False
    ) -> ClaimEvidence:
        """Have a test of the claim written, run it, and let its author correct it once after seeing the output.

        `mended`: the change says that it mends just this, so that the base may fail in the same way.
        """
        if self._context.find_claim_tests is None:
            return ClaimEvidence()
        try:
            bench = self._find_bench() if find_test_tools(claim.path) is PYTHON_TESTS else None
            if bench is None:
                return ClaimEvidence(
                    reason=self.missing or "claims about this kind of file are not tested"
                )
            if self._left <= 0 or time.monotonic() > self._until:
                limit = (
                    f"{_MAX_TESTED_CLAIMS} claims"
                    if self._left <= 0
                    else f"{_MAX_SECONDS:.0f} seconds"
                )
                return ClaimEvidence(reason=f"the tests of a review are limited to {limit}")
            self._left -= 1
            return self._try_claim(bench, portion, claim, mended=mended)
        except Cancelled:
            raise
        except (OutsideError, UserError, AnalysisFailed) as error:
            reason = shorten_text(" ".join(str(error).split()), 300)
            if self._bench is None:
                self.missing = reason
            return ClaimEvidence(reason=reason)

    def passes_with(self, shown: ClaimEvidence, path: str, text: str) -> bool:
        """Whether the test that fails on the head passes once the file at `path` reads `text`; True where none ran."""
        if not shown.code or self._bench is None:
            return True
        try:
            files = {path: text.encode("utf-8", "surrogateescape")}
            return self._run(self._bench, shown.code, self._context.head, files).passed
        except Cancelled:
            raise
        except (OutsideError, UserError):
            return False

    def _find_bench(self) -> _Bench | None:
        """Where the tests run; found, and tried with the tests of the changed code, before the first claim."""
        context = self._context
        if self._bench is not None or self.missing or context.find_claim_tests is None:
            return self._bench
        tests = context.find_claim_tests()
        if tests.reason or tests.trial is None or tests.sandbox is None or context.git is None:
            self.missing = tests.reason or "there is no sandbox"
            return None
        trial = replace(tests.trial, timeout=_TEST_SECONDS)
        bench = _Bench(trial, context.git, tests.sandbox, doubt=tests.doubt, keep=tests.keep)
        files = context.run_isolated(_find_tests_of_change)
        first = self._try_bench(bench, files)
        if (completed := add_missing_pytest(trial, first.stdout + first.stderr)) is not None:
            bench = replace(bench, trial=completed)
            first = self._try_bench(bench, files)
        if add_missing_pytest(trial, first.stdout + first.stderr) is not None:
            self.missing = "the environment of the tests has no pytest"
            return None
        if first.exit_code in _NOT_STARTED:
            bench = replace(bench, plain=True)
            first = self._try_bench(bench, files)
        if files:
            text = f"{', '.join(files)}: {_describe_outcome(first)}\n\n{(context.head_text(files[0]) or '')[:_SHOWN_TEST_CHARACTERS]}"
            sent = (SentPart("the beginning of an existing test file", files[0]),)
            existing = EXISTING_TESTS_PROMPT + fence_data("repository", text)
            bench = replace(bench, existing=existing, sent=sent)
        self._bench = bench
        self._until = time.monotonic() + _MAX_SECONDS
        return bench

    def _try_bench(self, bench: _Bench, files: Sequence[str]) -> RunResult:
        """The existing tests of the changed code; without any, whether pytest starts."""
        self._context.report_progress(
            "running the tests of the changed code" if files else "looking for pytest"
        )
        first, *others = files or ["--markers"]
        command = PYTHON_TESTS.run_file(first, plain=bench.plain)
        trial = replace(bench.trial, command=(*command, *others, "-p", "no:cacheprovider"))
        return _run_trial(self._context, bench, trial, self._context.head)

    def _try_claim(
        self, bench: _Bench, portion: ChangePortion, claim: ModelClaim, *, mended: bool
    ) -> ClaimEvidence:
        portion = replace(portion, sent=(*portion.sent, *bench.sent))
        asked = f"{WRITE_TEST_PROMPT}{bench.existing}\n\n{fence_data('claims', claim.text_for_second_reader)}"
        test = self._ask_for_test(portion, asked)
        if isinstance(test, str):
            return ClaimEvidence(reason=test)
        self._context.report_progress(f"testing a claim about {claim.path}")
        ran = self._run_on_both(bench, test)
        if ran.is_settled or (mended and ran.shown.as_before):
            return ran.shown
        seen = fence_data("test", f"{test.code}\n\n{ran.output}")
        portion = replace(portion, sent=(*portion.sent, SentPart("what the written test printed")))
        corrected = self._ask_for_test(portion, f"{asked}\n\n{CORRECT_TEST_PROMPT}\n\n{seen}")
        if isinstance(corrected, str) or corrected == test:
            return ran.shown
        again = self._run_on_both(bench, corrected)
        # A test that could not run withdraws nothing that one that ran has shown.
        return (
            ran.shown
            if again.shown.proof == "not_run" and ran.shown.proof != "not_run"
            else again.shown
        )

    def _ask_for_test(self, portion: ChangePortion, asked: str) -> _WrittenTest | str:
        """A test, or why there is none."""
        given = ask_for_input(
            self._model, make_question(portion, "review/test", asked, WRITE_TEST_TOOL, 6000)
        )
        if isinstance(given, str):
            return f"no test was written: {given}"
        code, impossible = given.get("code"), given.get("impossible")
        if not isinstance(code, str) or "def test" not in code or len(code) > _MAX_TEST_CHARACTERS:
            why = " ".join(impossible.split()) if isinstance(impossible, str) else ""
            return (
                f"no test can show it: {shorten_text(why, 200)}"
                if why
                else "no usable test was written"
            )
        prediction = given.get("fails_with")
        return _WrittenTest(
            code, " ".join(prediction.split()) if isinstance(prediction, str) else ""
        )

    def _run_on_both(self, bench: _Bench, test: _WrittenTest) -> _TestRuns:
        """Run a test on the head, and where it fails there once more and on the merge base."""
        context = self._context
        head = self._run(bench, test.code, context.head)
        counts = _count_outcomes(head)
        outcome = _describe_outcome(head)
        output = f"On the change:\n{_cut_output(head)}"
        evidence = Evidence(
            "test",
            (_SAVED_AS + test.code.strip())[:_SHOWN_TEST_CHARACTERS],
            self._repeat_command(bench),
            outcome,
        )
        if head.passed and counts["passed"]:
            reason = "a test that was written for it passes on this change"
            return _TestRuns(ClaimEvidence("disproven", evidence, reason=reason), output)
        if head.exit_code not in _FAILED or counts["error"] or not counts["failed"]:
            ended = outcome if head.ended == "exit" else f"it was ended ({head.ended})"
            return _TestRuns(ClaimEvidence(reason=f"a test of it could not run: {ended}"), output)
        if not _is_predicted(test.prediction, head):
            reason = f"a test of it fails otherwise than predicted: {outcome}"
            return _TestRuns(
                ClaimEvidence(reason=reason), f"{output}\nThis is not `{test.prediction[:200]}`."
            )
        if bench.doubt and _ENVIRONMENT_ERROR.search("\n".join(_failure_lines(head))):
            return _TestRuns(ClaimEvidence(reason=bench.doubt), output)
        again = self._run(bench, test.code, context.head)
        base = self._run(bench, test.code, context.merge_base)
        output += f"\n\nBefore the change:\n{_cut_output(base)}"
        if again.exit_code != head.exit_code or base.ended != "exit":
            return _TestRuns(
                ClaimEvidence(reason="a test of it does not end alike each time"), output
            )
        proof: ProofStatus = (
            "proven" if base.passed and _count_outcomes(base)["passed"] else "red_on_head"
        )
        as_before = _failure_lines(base) == _failure_lines(head) != []
        repeat = ""
        if proof == "proven" and bench.keep is not None:
            seen = {context.head: [head, again], context.merge_base: [base]}
            repeat = "".join(self._keep_runs(bench, bench.keep, test.code, seen))
        shown = f"{repeat}{evidence.excerpt}"
        evidence = replace(evidence, excerpt=shown, base=_describe_outcome(base))
        before = "in the same way" if as_before else f"otherwise: {_describe_outcome(base)}"
        reason = (
            ""
            if proof == "proven"
            else f"a test of it fails on this change, and before it {before}"
        )
        return _TestRuns(
            ClaimEvidence(proof, evidence, test.code, as_before, reason),
            output,
            is_settled=not as_before,
        )

    def _repeat_command(self, bench: _Bench) -> str:
        revs = f"{self._context.head[:12]} {self._context.merge_base[:12]}"
        return f"for commit in {revs}; do git switch -q --detach $commit && {' '.join(bench.command)}; done"

    def _keep_runs(
        self, bench: _Bench, keep: KeepCapsule, code: str, seen: Mapping[str, Sequence[RunResult]]
    ) -> Iterator[str]:
        """For each commit a comment of Python with the command that repeats its runs."""
        trial = _lay_test(bench, code)
        for rev, results in seen.items():
            if time.monotonic() > self._until:
                return
            expected = expect_runs([CommandRun(result) for result in results])
            try:
                made = make_capsule(
                    "claim", trial, rev, expected, git=bench.git, sandbox=bench.sandbox
                )
            except (UserError, OutsideError) as error:
                self._context.report_progress(f"no capsule was made: {error}")
                continue
            if command := keep(made):
                yield f"# {_SIDES[rev == self._context.merge_base]}: {command}\n"

    def _run(
        self, bench: _Bench, code: str, rev: str, files: Mapping[str, bytes] = MappingProxyType({})
    ) -> RunResult:
        return _run_trial(self._context, bench, _lay_test(bench, code, files), rev)


_SIDES = ("repeat it with this change", "repeat it before the change")


def _lay_test(bench: _Bench, code: str, files: Mapping[str, bytes] = MappingProxyType({})) -> Trial:
    """How the test of a claim runs, with other files in the place of the commit's own."""
    laid = {**bench.trial.overlay, **files, TEST_PATH: code.encode("utf-8", "replace")}
    return replace(bench.trial, command=bench.command, overlay=laid)


def _run_trial(context: ReviewContext, bench: _Bench, trial: Trial, rev: str) -> RunResult:
    with open_box(trial, rev, git=bench.git, sandbox=bench.sandbox, cancel=context.cancel) as box:
        return box.run(
            trial.command, timeout=trial.timeout, env=dict(trial.env), cancel=context.cancel
        )


def _find_tests_of_change(context: ReviewContext) -> list[str]:
    """The test files that call most of what the change touches, changed ones first."""
    graph = context.call_graph
    counted = Counter({f.path: 1000 for f in context.change.files if f.status != "deleted"})
    for path, name in changed_definitions(context, context.files) if graph else ():
        callers = graph.find_callers(path, name.removesuffix(".__init__")) if graph else ()
        counted.update({link.path for link in callers})
    found = (p for p, _ in counted.most_common() if is_test(p) and PYTHON_TESTS.is_collected(p))
    return [p for p, _ in zip(found, range(_MAX_EXISTING_TESTS), strict=False)]


def _count_outcomes(result: RunResult) -> Counter[str]:
    """Pytest's counts of passed, failed and error, from its summary."""
    summaries = _SUMMARY.findall(result.stdout)
    rows = _COUNT.findall(summaries[-1]) if summaries else []
    return Counter(
        {word.removesuffix("s") if word != "passed" else word: int(n) for n, word in rows}
    )


def _is_predicted(prediction: str, result: RunResult) -> bool:
    """Whether pytest's error lines hold the predicted words, whatever the white space."""
    found = "".join("".join(_failure_lines(result)).split())
    wanted = "".join(prediction.split())
    return len(wanted) >= _MIN_PREDICTION_CHARACTERS and wanted in found


def _cut_output(result: RunResult) -> str:
    text = f"exit {result.exit_code}\n{result.stdout}\n{result.stderr}".strip()
    return (
        text if len(text) <= _SHOWN_OUTPUT_CHARACTERS else f"...{text[-_SHOWN_OUTPUT_CHARACTERS:]}"
    )


def _describe_outcome(result: RunResult) -> str:
    rows = result.stdout.split("\n")
    lines = [
        x for x in rows if x.startswith("E ") or "passed" in x or "failed" in x or " error" in x
    ]
    lines = lines or result.stderr.strip().split("\n")[-1:]
    return f"exit {result.exit_code}: " + " / ".join(x.strip() for x in lines[:4])[:500]


def _failure_lines(result: RunResult) -> list[str]:
    """Pytest's error lines, without what differs from run to run."""
    lines = [x.strip() for x in result.stdout.split("\n") if x.startswith("E ")]
    return [_ADDRESS.sub("0x", x) for x in lines[:20]]


_MAX_VERIFIED_CLAIMS = 10
_MIN_CERTAINTY = 0.12
_ANSWER_TOKENS = 12_000
_MAX_ABOUT_CHARACTERS = 400
_WORTH_ORDER: dict[ClaimWorth, int] = {"yes": 0, "unsaid": 1, "perhaps": 2, "no": 3}

NO_MODEL = "not configured (intent, edge cases, error paths and concurrency were not checked)"


@dataclass
class ModelReviewer:
    """The reviewer that asks a model. `related` finds code elsewhere that bears on the change."""

    related: FindRelated | None = None
    name: str = "model"

    def calls_out(self, context: ReviewContext) -> bool:
        """Where there is a model."""
        return context.model is not None

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Read, merge, have each claim tried, and report what is left with its evidence."""
        if context.model is None:
            skipped_by_policy = (SkippedReviewer(self.name, NO_MODEL, by_policy=True),)
            return ReviewerReport(reads_also=("security",), skipped=skipped_by_policy)
        portions, unread = context.run_isolated(make_portions, self.related)
        claims: list[Claim] = []
        left: list[UnreadFile] = list(unread)
        skipped: list[SkippedReviewer] = []
        about: list[str] = []
        tester = ClaimTester(context, context.model)
        for portion in portions:
            try:
                found, missed, claim = _review_portion(context, context.model, portion, tester)
            except (OutOfBudget, OutsideError) as error:
                left += [
                    UnreadFile(f.path, f"the model did not read it: {error}") for f in portion.files
                ]
                skipped.append(SkippedReviewer(self.name, str(error)))
                continue
            claims += found
            skipped += missed
            about.append(claim)
        if tester.missing:
            skipped.append(
                SkippedReviewer("model/tests", f"claims were not tested: {tester.missing}")
            )
        files = sum(len(p.files) for p in portions)
        read = f"a model's reading of {files} file{'s' if files != 1 else ''}" if portions else ""
        return ReviewerReport(
            claims=tuple(claims),
            read=read,
            reads_also=("security",),
            unread=tuple(left),
            skipped=tuple(dict.fromkeys(skipped)),
            about=shorten_text(" ".join(a for a in about if a), _MAX_ABOUT_CHARACTERS),
        )


def brings_harmful_code(portion: ChangePortion) -> bool:
    """Whether the change brings what can do lasting harm. What it only moves or edits was judged when it came."""
    lines = [x for f in portion.files if not is_test(f.path) for h in f.hunks for x in h.lines]
    brought = Counter(m for x in lines if x.kind == "+" for m in HARMFUL_CODE.findall(x.text))
    brought -= Counter(m for x in lines if x.kind == "-" for m in HARMFUL_CODE.findall(x.text))
    return bool(brought)


def _review_portion(
    context: ReviewContext, model: Model, portion: ChangePortion, tester: ClaimTester
) -> tuple[list[Claim], list[SkippedReviewer], str]:
    """The verified claims of one portion, what was left out, and what the portion does.

    Raises:
        OutsideError: the model gave no reading.
    """
    context.report_progress(f"reading {count_noun(len(portion.files), 'file')}")
    asked = READING_PROMPT + (HARM_PROMPT if brings_harmful_code(portion) else "")
    question = make_question(portion, "review/reading", asked, REPORT_TOOL, _ANSWER_TOKENS)
    answer = ask_for_input(model, question)
    if isinstance(answer, dict) and not isinstance(answer.get("findings"), list):
        answer = "the answer holds no list of findings"
    if isinstance(answer, str):
        raise OutsideError(answer)
    about = _clean_sentence(answer.get("about"))
    read = drop_repetitions(read_claims(answer, portion.files, context.head_text))
    claims = [claim for claim in read if claim.sure >= _MIN_CERTAINTY]
    claims.sort(key=lambda m: not m.anchored)  # what cannot be posted is tried last
    tried = _verify_claims(context, model, portion, claims)
    skipped = []
    if untried := [t for t in tried if t.verdict == "unread"]:
        # They are withheld without having been refuted: a check that ignored them would be green by accident.
        number = f"{len(untried)} claim{'s' if len(untried) > 1 else ''}"
        quoted = f"{number} not tried by a second reader: {untried[0].because}"
        skipped.append(SkippedReviewer("model/second-reader", quoted))
    # likeliest first, since only some are tested
    ranked = sorted(
        tried, key=lambda t: (t.verdict != "holds", _WORTH_ORDER[t.worth], -t.claim.sure)
    )
    return [_make_claim(context, tester, portion, t) for t in ranked], skipped, about


def _verify_claims(
    context: ReviewContext, model: Model, portion: ChangePortion, claims: Sequence[ModelClaim]
) -> tuple[VerifiedClaim, ...]:
    """Each claim with the second reader's verdict; at most the first ones of many."""
    if not claims:
        return ()
    chosen, rest = claims[:_MAX_VERIFIED_CLAIMS], claims[_MAX_VERIFIED_CLAIMS:]
    code = context.run_isolated(verification_code, chosen, portion.text)
    past = f"only the first {_MAX_VERIFIED_CLAIMS} of a portion are"
    return (
        *ask_verifier(model, portion, chosen, code, context.known),
        *(VerifiedClaim(claim, "unread", 0.5, past) for claim in rest),
    )


def _clean_sentence(value: object) -> str:
    return (
        shorten_text(" ".join(value.split()), _MAX_ABOUT_CHARACTERS)
        if isinstance(value, str)
        else ""
    )


def _make_claim(
    context: ReviewContext,
    tester: ClaimTester,
    portion: ChangePortion,
    tried: VerifiedClaim,
) -> Claim:
    claim = tried.claim
    shown = ClaimEvidence()
    # A test shows that a claim is true, not that anybody would act on it.
    idle = tried.worth == "no" or (tried.worth == "perhaps" and claim.severity == "low")
    wanted = claim.anchored and not tried.again and not idle
    if tried.verdict in {"holds", "unsure"} and wanted:
        shown = tester.test_claim(portion, claim, mended=tried.mended)
    if shown.as_before and not tried.mended:
        # whatever readers think: the base fails in the same way, so the change did not bring it
        tried = replace(tried, verdict="as_before", certainty=1.0)
        shown = replace(shown, proof="not_run")
    signals = Signals(
        1,
        1,
        tried.verdict,
        tried.certainty,
        claim.sure,
        shown.proof,
        tried.worth,
        claim.reach,
    )
    evidence = [
        Evidence("model", f"A second reader {_describe_verdict(tried)}. {tried.because}".strip())
    ]
    if shown.evidence is not None:
        evidence.insert(0, shown.evidence)
    if shown.reason:
        evidence.append(Evidence("test", f"No test proves it: {shown.reason}"))
    proven = shown.proof == "proven"
    suggestion = _checked_suggestion(context, tester, claim, shown)
    return Claim(
        dimension=claim.dimension,
        rule=f"model/{claim.kind}",
        severity="high" if claim.severity == "critical" and not proven else claim.severity,
        path=claim.path,
        start_line=min(claim.line, claim.changed or claim.line),
        line=max(claim.line, claim.changed, claim.last if suggestion is not None else 0),
        side=claim.side,
        title=claim.title,
        body=_claim_body(claim),
        confidence=estimate_confidence(signals, context.weights),
        suggestion=suggestion,
        evidence=tuple(evidence),
        code=claim.title,
        proven=proven,
        data_loss=claim.kind == "data-loss",
        signals=signals,
        again=tried.again,
    )


def _describe_verdict(tried: VerifiedClaim) -> str:
    """The second reader's verdict as a sentence."""
    words = {
        "holds": "finds that it holds",
        "as_before": "finds that it holds, and that it was so before the change",
        "refuted": "refutes it",
        "unsure": "is not sure",
        "unread": "could not be asked",
    }
    worth = {"perhaps": ", and perhaps not worth a change", "no": ", and not worth a change"}
    return words[tried.verdict] + worth.get(tried.worth, "")


def _checked_suggestion(
    context: ReviewContext, tester: ClaimTester, claim: ModelClaim, shown: ClaimEvidence
) -> str | None:
    """The replacement, where the linter finds nothing new in it and the test that shows the fault then passes."""
    text = context.head_text(claim.path)
    if claim.replacement is None or claim.side == "LEFT" or text is None:
        return None
    after = apply_suggestion(text, claim.line, max(claim.line, claim.last), claim.replacement)
    if after is None or not is_lint_clean(claim.path, text, after):
        return None
    return claim.replacement if tester.passes_with(shown, claim.path, after) else None


def _claim_body(claim: ModelClaim) -> str:
    parts = [("Shows", _describe_unchanged_line_of_fault(claim))] if claim.shows else []
    parts += [("Input", claim.input), ("Happens", claim.happens), ("Should", claim.should)]
    parts += [("Also", str(other)) for other in claim.others]
    parts += [("Repair", claim.mend)]
    return "\n\n".join(f"{name}: {text}" for name, text in parts if text)


def _describe_unchanged_line_of_fault(claim: ModelClaim) -> str:
    """Where a fault shows that the commented line brings about."""
    assert claim.shows is not None  # noqa: S101 - the caller has looked
    path, line, code = claim.shows.path, claim.shows.line, claim.shows.code
    there = f"line {line}" if path == claim.path else f"`{path}` line {line}"
    quoted = f": `{code}`" if code and "`" not in code else ""
    return f"{there}, which this change leaves as it is{quoted}"


HARMFUL_CODE = re.compile(
    r"(?<!\bdef )(?<!\bclass )(?<!\bfunc )(?<!\bfunction )(?<!\bwebbrowser\.)\b(?:open|unlink|remove|rmtree|chmod"
    r"|system|[Pp]open|exec|eval|spawn\w*|urlopen|execute|executemany|pickle\.loads?"
    r"|yaml\.load|marshal\.loads|Thread|Lock|RLock|Process|fork|create_task|redirect|mktemp)\("
    r"|\b(?:subprocess|innerHTML|dangerouslySetInnerHTML|shell=True|verify=False|InsecureSkipVerify|sync\.Mutex|global)\b"
)
"""Words in added lines that make it worth asking what lasting harm they can do; who defines one does not call it."""


# Whether a suggestion causes new findings of the linter.


def is_lint_clean(path: str, before: str, after: str) -> bool:
    """Whether a file has nothing new, by the linter's bug rules, after a suggestion; True where it is not linted."""
    if not has_capability(path, "checkers", stubs=True):
        return True
    try:
        old, new = (
            Counter(h.rule for h in bundled_checkers.run_ruff({path: t}, tuple(RUFF_RULES)))
            for t in (before, after)
        )
    except OutsideError:
        return False
    return not new - old
