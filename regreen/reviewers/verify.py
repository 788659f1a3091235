"""Trying a claim: a second reader who wants to refute it, and a test run on head and base."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import get_args

from regreen.codebase.trial import Trial, open_box
from regreen.errors import Cancelled, OutOfBudget, OutsideError, UserError
from regreen.models import (
    Evidence,
    Message,
    ModelAnswer,
    ModelRequest,
    Proof,
    RunResult,
    Tool,
    Verdict,
    Worth,
)
from regreen.ports import Model
from regreen.reviewers.claims import Said
from regreen.reviewers.context import ReviewContext
from regreen.reviewers.dossier import Dossier, fence
from regreen.reviewers.memory import Known
from regreen.reviewers.merging import joined
from regreen.reviewers.prompts import (
    SAID_BEFORE,
    SECOND_READER,
    SYSTEM,
    TEST_PATH,
    TOOLS,
    TRY_BY_TEST,
    VERDICTS,
    WRITE_TEST,
)
from regreen.reviewers.shorten import shortened

VERDICT_WORDS: tuple[Verdict, ...] = get_args(Verdict)
WORTH_WORDS: tuple[Worth, ...] = get_args(Worth)
_TEST_SECONDS = 120.0
_MOST_KNOWN = 20
_AS_WRONG = "as wrong"
_NEWS = frozenset({"as wrong, said to be mended", "as wrong, written anew"})
_ADDRESS = re.compile(r"0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Tried:
    """A claim and what the second reader said of it: whether it is true, and whether anybody would act on it.

    `mended` says that it was so before, and that the change means to mend it or writes just that anew; `again` is the fingerprint of what was
    said to the author before and has the same cause.
    """

    said: Said
    verdict: Verdict
    certainty: float
    because: str
    worth: Worth = "unsaid"
    mended: bool = False
    again: str = ""


def second_reading(
    model: Model,
    portion: Dossier,
    claims: Sequence[Said],
    code: str = "",
    known: Sequence[Known] = (),
) -> tuple[Tried, ...]:
    """Have claims tried by a reader who sees only the code and the claims.

    `code` is what the claims speak of and the portion does not show, `known` what was said to the author before. Claims
    that this reader finds to have one cause come back as one. Where the reading cannot be had they come back unread: agreement alone then decides.
    """
    known = [k for k in known if k.path in {c.path for c in claims}][-_MOST_KNOWN:]
    first = len(known) + 1
    before = [
        f"Claim {i}: {k.path}: {k.title}\nStood on: {k.code[:300]}" for i, k in enumerate(known, 1)
    ]
    listed = "\n\n".join([*before, *(f"Claim {i}: {c.told}" for i, c in enumerate(claims, first))])
    said = SAID_BEFORE.format(last=len(known)) if known else ""
    asked = f"{SECOND_READER}{said}\n\n{fence('claims', listed)}"
    if code:
        asked += f"\n\nCode that they rest on, as it stands after the change:\n{fence('repository', code)}"
    given = handed_in(model, question(portion, "review/second-reader", asked, VERDICTS, 8000))
    if isinstance(given, str):
        return tuple(Tried(c, "unread", 0.5, given) for c in claims)
    rows = given.get("verdicts")
    listed_rows = [r for r in rows if isinstance(r, dict)] if isinstance(rows, list) else []
    by_number = [
        next((r for r in listed_rows if r.get("claim") == i), None)
        for i in range(first, first + len(claims))
    ]
    same_as = [row.get("same_as") if row else None for row in by_number]
    tried = [
        replace(_tried(claim, row), again=_said_before(claim, same, known))
        for claim, row, same in zip(claims, by_number, same_as, strict=True)
    ]
    return _one_a_cause(tried, same_as, first)


def _said_before(claim: Said, same_as: object, known: Sequence[Known]) -> str:
    """The fingerprint of what was said before in the same file and has the same cause; "" where nothing has."""
    if not isinstance(same_as, int) or not 1 <= same_as <= len(known):
        return ""
    one = known[same_as - 1]
    return one.fingerprint if one.path == claim.path else ""


def _one_a_cause(
    tried: Sequence[Tried], same_as: Sequence[object], begin: int
) -> tuple[Tried, ...]:
    """Claims of different readers in one file that the second reader finds the same, and judges the same, as one."""
    kept: dict[int, Tried] = {}
    for number, (one, first) in enumerate(zip(tried, same_as, strict=True), begin):
        known = kept.get(first) if isinstance(first, int) else None
        if (
            known is None
            or not isinstance(first, int)
            or known.said.path != one.said.path
            or known.verdict != one.verdict
            or set(known.said.readers) & set(one.said.readers)
        ):
            kept[number] = one
        else:
            kept[first] = replace(known, said=joined(known.said, one.said))
    return tuple(kept.values())


def question(portion: Dossier, purpose: str, asked: str, tool: Tool, most: int) -> ModelRequest:
    """One question about a portion of the change; everything before `asked` is the same in all of them."""
    return ModelRequest(
        purpose=purpose,
        system=SYSTEM,
        messages=(Message("user", portion.text), Message("user", asked)),
        tools=TOOLS,
        force=tool.name,
        max_tokens=most,
        cache_messages=1,
    )


def handed_in(model: Model, wanted: ModelRequest) -> dict[str, object] | str:
    """What a model hands in with the tool that `wanted` forces, whole; the reason where that could not be had.

    An answer that was cut off gets twice the room once; one that is none at all is asked for once more. What came of
    an answer that was cut off or declined half-way is not used: nobody knows what it would have said.
    """
    try:
        answer = model.ask(wanted)
        if answer.stop == "length":
            answer = model.ask(replace(wanted, max_tokens=2 * wanted.max_tokens))
        elif answer.stop != "refusal" and _given(answer, wanted) is None:
            answer = model.ask(replace(wanted, salt="no answer"))
    except (OutOfBudget, OutsideError) as error:
        return str(error)
    if answer.stop == "length":
        return "its answer was cut off"
    if answer.stop == "refusal":
        return "it declined to answer"
    given = _given(answer, wanted)
    return "it gave no report" if given is None else given


def _given(answer: ModelAnswer, wanted: ModelRequest) -> dict[str, object] | None:
    """What was handed in with the tool asked for; None where it was not used."""
    return next((c.input for c in answer.calls if c.name == wanted.force), None)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a test showed of a claim; `code` is the test where it ran to an end.

    `as_before` says that it fails on the base in the very same way.
    """

    proof: Proof = "not_run"
    evidence: Evidence | None = None
    code: str = ""
    as_before: bool = False


def prove(context: ReviewContext, model: Model, portion: Dossier, said: Said) -> Shown:
    """Turn a claim into a test and run it: twice on the head, once on the merge base.

    Returns:
        Proof "proven" with its evidence where it fails on the head and passes on the base; "red_on_head" where the base
        fails in another way, having no such code; "disproven" where it passes on the head; "not_run" otherwise.
    """
    if context.tests is None or context.sandbox is None or context.git is None:
        return Shown()
    asked = f"{TRY_BY_TEST}\n\n{fence('claims', said.told)}"
    given = handed_in(model, question(portion, "review/test", asked, WRITE_TEST, 6000))
    code = None if isinstance(given, str) else given.get("code")
    if not isinstance(code, str) or "def test" not in code or len(code) > 20_000:
        return Shown()
    try:
        return _show(context, code)
    except Cancelled:
        raise
    except (OutsideError, UserError):
        return Shown()


def mends(context: ReviewContext, shown: Shown, path: str, text: str) -> bool:
    """Whether the test that fails on the head passes once the file at `path` reads `text`; True where none ran."""
    if not shown.code:
        return True
    try:
        trial = _trial(context, shown.code, {path: text.encode("utf-8", "surrogateescape")})
        return _run(context, trial, context.head).passed
    except Cancelled:
        raise
    except (OutsideError, UserError):
        return False


def _show(context: ReviewContext, code: str) -> Shown:
    trial = _trial(context, code)
    head = _run(context, trial, context.head)
    if head.ended != "exit" or head.exit_code not in {0, 1}:
        return Shown()
    if head.passed:
        return Shown("disproven")
    again = _run(context, trial, context.head)
    base = _run(context, trial, context.merge_base)
    if again.exit_code != 1 or base.ended != "exit":
        return Shown()
    proof: Proof = "proven" if base.passed else "red_on_head"
    seen = Evidence("test", code.strip()[:4000], trial.shown, _outcome(head), _outcome(base))
    return Shown(proof, seen, code, as_before=_failures(base) == _failures(head) != [])


def _trial(
    context: ReviewContext, code: str, files: Mapping[str, bytes] = MappingProxyType({})
) -> Trial:
    assert context.tests is not None  # noqa: S101 - prove() has looked
    return replace(
        context.tests,
        command=("python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", TEST_PATH),
        overlay={**context.tests.overlay, **files, TEST_PATH: code.encode()},
        timeout=_TEST_SECONDS,
    )


def _run(context: ReviewContext, trial: Trial, rev: str) -> RunResult:
    assert context.git is not None  # noqa: S101 - prove() has looked
    assert context.sandbox is not None  # noqa: S101
    with open_box(
        trial, rev, git=context.git, sandbox=context.sandbox, cancel=context.cancel
    ) as box:
        return box.run(
            trial.command, timeout=trial.timeout, env=dict(trial.env), cancel=context.cancel
        )


def _outcome(result: RunResult) -> str:
    lines = [
        x for x in result.stdout.split("\n") if x.startswith("E ") or "passed" in x or "failed" in x
    ]
    return f"exit {result.exit_code}: " + " / ".join(x.strip() for x in lines[:4])[:500]


def _failures(result: RunResult) -> list[str]:
    """What pytest says went wrong, without what differs from run to run."""
    lines = [x.strip() for x in result.stdout.split("\n") if x.startswith("E ")]
    return [_ADDRESS.sub("0x", x) for x in lines[:20]]


def _tried(claim: Said, row: dict[str, object] | None) -> Tried:
    if row is None:
        return Tried(claim, "unread", 0.5, "no verdict was given")
    verdict: Verdict = next((v for v in VERDICT_WORDS if v == row.get("verdict")), "unsure")
    if verdict == "holds" and row.get("before") == _AS_WRONG:
        verdict = "as_before"  # true of the code, and not this change's doing
    certainty = row.get("certainty")
    traced = row.get("traced")
    return Tried(
        claim.with_example(row.get("example")),
        verdict,
        float(min(1, max(0, certainty))) if isinstance(certainty, int | float) else 0.5,
        shortened(" ".join(traced.split()), 500) if isinstance(traced, str) else "",
        next((w for w in WORTH_WORDS if w == row.get("acts")), "unsaid"),
        str(row.get("before")) in _NEWS,
    )
