"""The model's review: a reading of a change; a second reader then checks each claim."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from regreen.code.diff import apply_suggestion
from regreen.code.paths import is_test
from regreen.domain.errors import OutOfBudget, OutsideError
from regreen.domain.models import ClaimWorth, Evidence, Signals, SkippedReviewer, UnreadFile
from regreen.domain.ports import Model
from regreen.domain.text_limits import shorten_text
from regreen.languages.registry import has_capability
from regreen.reviewers.analyzers import bundled_checkers
from regreen.reviewers.analyzers.baseline import RUFF_RULES
from regreen.reviewers.calibration import estimate_confidence
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.reviewers.model.change_listing import ChangePortion, FindRelated, make_portions
from regreen.reviewers.model.claim_tests import ClaimEvidence, ClaimTester
from regreen.reviewers.model.claims import (
    ModelClaim,
    drop_repetitions,
    read_claims,
)
from regreen.reviewers.model.review_prompts import HARM_PROMPT, READING_PROMPT, REPORT_TOOL
from regreen.reviewers.model.verify import (
    VerifiedClaim,
    ask_for_input,
    ask_verifier,
    make_question,
    verification_code,
)

_MAX_VERIFIED_CLAIMS = 10
_MIN_CERTAINTY = 0.25
_ANSWER_TOKENS = 12_000
_MAX_ABOUT_CHARACTERS = 400
_WORTH_ORDER: dict[ClaimWorth, int] = {"yes": 0, "unsaid": 1, "perhaps": 2, "no": 3}

NO_MODEL = (
    "no model is configured: intent, edge cases, error paths and concurrency were not checked "
    "(set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL)"
)


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
            return ReviewerReport(skipped=(SkippedReviewer(self.name, NO_MODEL, by_policy=True),))
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
    context.report_progress(f"reading {len(portion.files)} file(s)")
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
    # a claim that cannot be posted, or was posted before, needs no proof
    if tried.verdict in {"holds", "unsure"} and claim.anchored and not tried.again:
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
        evidence.append(Evidence("vote", f"No test proves it: {shown.reason}"))
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
    parts += [("Mend", claim.mend)]
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
        old, new = (Counter(h.rule for h in bundled_checkers.run_ruff({path: t}, tuple(RUFF_RULES))) for t in (before, after))  # fmt: skip
    except OutsideError:
        return False
    return not new - old
