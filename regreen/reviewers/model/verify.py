"""Verification of a claim: a second reader who tries to refute it."""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from regreen.code.paths import is_test
from regreen.code.symbol_index import CallGraph
from regreen.code.symbols import CallSite, Definition, Outline
from regreen.domain.errors import OutOfBudget, OutsideError
from regreen.domain.models import (
    ClaimVerdict,
    ClaimWorth,
    Message,
    ModelAnswer,
    ModelRequest,
    SentPart,
    Tool,
)
from regreen.domain.ports import Model
from regreen.domain.text_limits import shorten_text
from regreen.reviewers.context import EarlierFinding, ReviewContext
from regreen.reviewers.model.change_listing import ChangePortion, fence_data, name_pieces
from regreen.reviewers.model.claims import CLAIM_REACHES, ModelClaim, join_claims
from regreen.reviewers.model.related_code import EVERYDAY_NAMES, fit_budget, format_excerpt
from regreen.reviewers.model.review_prompts import (
    EARLIER_CLAIMS_PROMPT,
    REVIEW_TOOLS,
    SYSTEM_PROMPT,
    VERDICTS_TOOL,
    VERIFIER_PROMPT,
)

VERDICT_WORDS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)
WORTH_WORDS: tuple[ClaimWorth, ...] = get_args(ClaimWorth)
_MAX_EARLIER_FINDINGS = 20
_HOLDS_OTHERWISE = "holds otherwise"
_MAX_HAPPENS = 1500
_ALREADY_WRONG = "as wrong"
_NEW_AGAIN_ANSWERS = frozenset({"as wrong, said to be mended", "as wrong, written anew"})


@dataclass(frozen=True, slots=True)
class VerifiedClaim:
    """A claim with the second reader's verdict: whether it is true, and whether anybody would act on it.

    `mended`: the fault existed before, and the change claims to fix it or writes the same code again. `again` is the
    fingerprint of an earlier finding with the same cause.
    """

    claim: ModelClaim
    verdict: ClaimVerdict
    certainty: float
    because: str
    worth: ClaimWorth = "unsaid"
    mended: bool = False
    again: str = ""


def ask_verifier(
    model: Model,
    portion: ChangePortion,
    claims: Sequence[ModelClaim],
    code: Sequence[str] = (),
    known: Sequence[EarlierFinding] = (),
) -> tuple[VerifiedClaim, ...]:
    """Ask a second reader, who sees only the code and the claims, whether they are true.

    `code` is code that the claims refer to and the portion does not show, `known` are earlier findings. Claims with one
    cause are merged. If the reading fails, the claims come back unread.
    """
    known = [k for k in known if k.path in {c.path for c in claims}][-_MAX_EARLIER_FINDINGS:]
    first = len(known) + 1
    before = [
        f"Claim {i}: {k.path}: {k.title}\nStood on: {k.code[:300]}" for i, k in enumerate(known, 1)
    ]
    listed = "\n\n".join(
        [*before, *(f"Claim {i}: {c.text_for_second_reader}" for i, c in enumerate(claims, first))]
    )
    claim = EARLIER_CLAIMS_PROMPT.format(last=len(known)) if known else ""
    earlier = (SentPart("the code of an earlier finding", k.path) for k in known)
    portion = replace(portion, sent=(*portion.sent, *earlier))
    asked = f"{VERIFIER_PROMPT}{claim}\n\n{fence_data('claims', listed)}"
    if code:
        text = fence_data("repository", "\n\n".join(code))
        asked += f"\n\nCode that they rest on, as it stands after the change:\n{text}"
        rests = name_pieces(code, "code that the claims rest on")
        portion = replace(portion, sent=(*portion.sent, *rests))
    given = ask_for_input(
        model, make_question(portion, "review/second-reader", asked, VERDICTS_TOOL, 8000)
    )
    if isinstance(given, str):
        return tuple(VerifiedClaim(c, "unread", 0.5, given) for c in claims)
    rows = given.get("verdicts")
    listed_rows = [r for r in rows if isinstance(r, dict)] if isinstance(rows, list) else []
    by_number = [
        next((r for r in listed_rows if r.get("claim") == i), None)
        for i in range(first, first + len(claims))
    ]
    same_as = [row.get("same_as") if row else None for row in by_number]
    tried = [
        replace(_make_verified_claim(claim, row), again=_earlier_fingerprint(claim, same, known))
        for claim, row, same in zip(claims, by_number, same_as, strict=True)
    ]
    return _merge_same_cause(tried, same_as, first)


def _earlier_fingerprint(
    claim: ModelClaim, same_as: object, known: Sequence[EarlierFinding]
) -> str:
    """The fingerprint of the earlier finding in the same file with the same cause; "" without one."""
    if not isinstance(same_as, int) or not 1 <= same_as <= len(known):
        return ""
    one = known[same_as - 1]
    return one.fingerprint if one.path == claim.path else ""


def _merge_same_cause(
    tried: Sequence[VerifiedClaim], same_as: Sequence[object], begin: int
) -> tuple[VerifiedClaim, ...]:
    """Claims in one file that the second reader finds to have one cause, and judges the same, as one."""
    merged: dict[int, VerifiedClaim] = {}
    for number, (one, first) in enumerate(zip(tried, same_as, strict=True), begin):
        known = merged.get(first) if isinstance(first, int) else None
        if (
            known is None
            or not isinstance(first, int)
            or known.claim.path != one.claim.path
            or known.verdict != one.verdict
        ):
            merged[number] = one
        else:
            merged[first] = replace(known, claim=join_claims(known.claim, one.claim))
    return tuple(merged.values())


def make_question(
    portion: ChangePortion, purpose: str, asked: str, tool: Tool, most: int
) -> ModelRequest:
    """One question about a portion of the change; everything before `asked` is the same in all of them."""
    return ModelRequest(
        purpose=purpose,
        system=SYSTEM_PROMPT,
        messages=(Message("user", portion.text, sent=portion.sent), Message("user", asked)),
        tools=REVIEW_TOOLS,
        force=tool.name,
        max_tokens=most,
        cache_messages=1,
    )


def ask_for_input(model: Model, wanted: ModelRequest) -> dict[str, object] | str:
    """The complete input of the tool that `wanted` forces, from the model; the reason if the model gave none.

    A truncated answer is asked for again with twice the length, a missing one once more. A part of a truncated or
    refused answer is never used.
    """
    try:
        answer = model.ask(wanted)
        if answer.stop == "length":
            answer = model.ask(replace(wanted, max_tokens=2 * wanted.max_tokens))
        elif answer.stop != "refusal" and _tool_input(answer, wanted) is None:
            answer = model.ask(replace(wanted, salt="no answer"))
    except (OutOfBudget, OutsideError) as error:
        return str(error)
    if answer.stop == "length":
        return "its answer was cut off"
    if answer.stop == "refusal":
        return "it declined to answer"
    given = _tool_input(answer, wanted)
    return "it gave no report" if given is None else given


def _tool_input(answer: ModelAnswer, wanted: ModelRequest) -> dict[str, object] | None:
    """The input of the requested tool; None if the model did not use it."""
    return next((c.input for c in answer.calls if c.name == wanted.force), None)


def _make_verified_claim(claim: ModelClaim, row: dict[str, object] | None) -> VerifiedClaim:
    if row is None:
        return VerifiedClaim(claim, "unread", 0.5, "no verdict was given")
    happens = row.get("happens")
    if row.get("verdict") == _HOLDS_OTHERWISE and isinstance(happens, str) and happens.strip():
        claim = replace(claim, happens=shorten_text(happens.strip(), _MAX_HAPPENS), others=())
        row = {**row, "verdict": "holds"}
    reaches = {claim.reach, *(r for r in CLAIM_REACHES if r == row.get("reach"))}
    claim = replace(claim, reach=max(reaches, key=CLAIM_REACHES.index))  # the rarer one
    verdict: ClaimVerdict = next((v for v in VERDICT_WORDS if v == row.get("verdict")), "unsure")
    if verdict == "holds" and row.get("before") == _ALREADY_WRONG:
        verdict = "as_before"  # true of the code, and not this change's doing
    certainty = row.get("certainty")
    traced = row.get("traced")
    return VerifiedClaim(
        claim,
        verdict,
        float(min(1, max(0, certainty))) if isinstance(certainty, int | float) else 0.5,
        shorten_text(" ".join(traced.split()), 500) if isinstance(traced, str) else "",
        next((w for w in WORTH_WORDS if w == row.get("acts")), "unsaid"),
        str(row.get("before")) in _NEW_AGAIN_ANSWERS,
    )


# The code that the second reader needs and the listing of the change does not show.

_BUDGET_TOKENS = 2000
_MAX_EXCERPTS = 8
_MAX_EXCERPT_LINES = 90
_MAX_CANDIDATES = 2
_MIN_SHOWN_SHARE = 0.9
_MIN_SHOWN_CLASS_SHARE = 0.5
"""How much of an excerpt has to be shown already for it to be left out."""
_NEAR_LINES = 3
_CONSTRUCTORS = ("__init__", "__new__", "constructor", "initialize")

_QUOTED_CODE = re.compile(r"`([^`\n]{2,120})`")
_DOTTED_NAME = re.compile(r"(?<![\w.])(?:[A-Za-z_]\w*\.){0,4}[A-Za-z_]\w*")
_TEXT_LITERAL = re.compile(r"""(["'])[^"'\n]{0,400}\1""")
_CODE_LIKE_NAME = re.compile(r"_*[A-Za-z0-9]+_\w+|_+[A-Za-z]\w+|(?>[A-Za-z0-9]*?[a-z0-9][A-Z])\w*")
"""A name that is no word of a sentence: with an underscore, or with a capital inside."""
_OWN_ATTRIBUTE = re.compile(r"\b(?:self|cls|this)\.([A-Za-z_]\w*)")
_BUILT_IN_NAMES = (
    frozenset(dir(builtins))
    | frozenset(sys.stdlib_module_names)
    | frozenset(keyword.kwlist)
    | EVERYDAY_NAMES
)


def verification_code(
    context: ReviewContext, claims: Sequence[ModelClaim], shown: str, budget: int = _BUDGET_TOKENS
) -> Sequence[str]:
    """Definitions that the claims rest on and `shown` does not show, a piece each.

    First come definitions that the faulty lines use, resolved by the file's imports and the enclosing class; then those
    that the claims name in backticks or by a distinctive name; then the rest of a long function around the fault.

    Args:
        context: the change.
        claims: the claims to verify.
        shown: the text that the reader sees anyway.
        budget: tokens for all of it.
    """
    graph = context.call_graph
    if graph is None:
        return ()
    found = [
        *(x for c in claims for x in _find_used_definitions(context, graph, c)),
        *(x for c in claims for x in _find_named_definitions(graph, c)),
        *(x for c in claims for x in _enclosing_function(graph, c)),
    ]
    excerpts: dict[tuple[str, int], tuple[str, Definition, str]] = {}
    for path, definition, why in found:
        excerpts.setdefault((path, definition.start), (path, definition, why))
    about_tests = any(is_test(c.fault_place[0]) for c in claims)
    pieces = (
        (
            _MIN_SHOWN_CLASS_SHARE if definition.kind == "class" else _MIN_SHOWN_SHARE,
            format_excerpt(context, path, definition, why, _MAX_EXCERPT_LINES),
        )
        for path, definition, why in excerpts.values()
        if about_tests
        or not is_test(path)  # a test shows what is asked of the code, not what the code does
    )
    new = (text for least, text in pieces if not _is_shown(text, shown, least))
    return fit_budget(new, budget)[:_MAX_EXCERPTS]


_Definitions = Iterator[tuple[str, Definition, str]]


def _find_used_definitions(
    context: ReviewContext, graph: CallGraph, claim: ModelClaim
) -> _Definitions:
    """What the line at fault calls or names, and where the attributes that it reads come from; then its neighbours'."""
    path, side, line = claim.fault_place
    shape = graph.outlines.get(path)
    text = context.head_text(path)
    rows = text.split("\n") if text is not None else []
    if shape is None or side == "LEFT" or line > len(rows):
        return
    around = shape.definition_at(line)
    first, last = (around.start, around.end) if around else (1, len(rows))
    # a call, or a condition, often begins above
    for number in (line, *(n for d in range(1, _NEAR_LINES + 1) for n in (line - d, line + d))):
        if first <= number <= min(last, len(rows)):
            yield from _definitions_on_line(graph, shape, path, number, rows)


def _definitions_on_line(
    graph: CallGraph, shape: Outline, path: str, line: int, rows: Sequence[str]
) -> _Definitions:
    """What one line of code calls, names and reads."""
    why = "the line at fault uses it"
    own = {m[1] for m in _OWN_ATTRIBUTE.finditer(rows[line - 1])}
    owner = _enclosing_class(shape, line)
    for definition in shape.definitions if owner else ():
        if definition.kind != "constant" and definition.name in {f"{owner}.{n}" for n in own}:
            yield path, definition, why
    made = [
        d for d in shape.definitions if owner and d.name in {f"{owner}.{n}" for n in _CONSTRUCTORS}
    ]
    for definition in made:
        body = "\n".join(rows[definition.start - 1 : definition.end])
        if any(re.search(rf"\.{re.escape(n)}\b[^=\n]{{0,80}}=(?!=)", body) for n in own):
            yield path, definition, "it makes what the line at fault reads"
    for call in shape.calls:
        if call.line == line and (call.name not in _BUILT_IN_NAMES or call.name in own):
            for target, definition in _resolve_call(graph, path, call, owner):
                yield target, definition, why
    for name in _DOTTED_NAME.findall(_TEXT_LITERAL.sub("", rows[line - 1])):
        if _CODE_LIKE_NAME.fullmatch(name.rpartition(".")[2]):
            for target, definition in _resolve_name(graph, path, name, owner):
                yield target, definition, why


def _resolve_call(
    graph: CallGraph, path: str, call: CallSite, owner: str
) -> Iterator[tuple[str, Definition]]:
    """The definitions that a call means: of the same class, else those that the file's imports lead to."""
    found = list(graph.resolve_call(path, call))
    mine = [x for x in found if x[0] == path and x[1].name == f"{owner}.{call.name}"]
    yield from mine or found[:_MAX_CANDIDATES]


def _find_named_definitions(graph: CallGraph, claim: ModelClaim) -> _Definitions:
    """What a claim's words name: in backticks, or by a name that is no word of a sentence."""
    path, _, line = claim.fault_place
    shape = graph.outlines.get(path)
    owner = _enclosing_class(shape, line) if shape else ""
    text = claim.text_for_second_reader
    quoted = [n for q in _QUOTED_CODE.findall(text) for n in _DOTTED_NAME.findall(q)]
    telling = [
        n for n in _DOTTED_NAME.findall(text) if _CODE_LIKE_NAME.fullmatch(n.rpartition(".")[2])
    ]
    for name in dict.fromkeys((*quoted, *telling)):
        if name.rpartition(".")[2] not in _BUILT_IN_NAMES:
            for target, definition in _resolve_name(graph, path, name, owner):
                yield target, definition, "a claim names it"


def _enclosing_function(graph: CallGraph, claim: ModelClaim) -> _Definitions:
    """The function that the fault is in: of a long one the change shows only parts."""
    path, side, line = claim.fault_place
    shape = graph.outlines.get(path)
    around = shape.definition_at(line) if shape and side == "RIGHT" else None
    if around is not None and around.kind != "class":
        yield path, around, "the fault is in it"


def _resolve_name(
    graph: CallGraph, path: str, name: str, owner: str
) -> list[tuple[str, Definition]]:
    """The definitions of a name, as seen from a file: as it is dotted, of the same class, of this file, imported.

    Nothing where it could be any of several.
    """
    before, _, short = name.rpartition(".")
    found = graph.find_definitions(short)
    near = [x for x in found if graph.are_files_linked(path, x[0])]
    of = before.rpartition(".")[2]
    for part in (
        [x for x in near or found if of and f".{x[1].name}".endswith(f".{of}.{short}")],
        [x for x in near if x[0] == path and owner and x[1].name == f"{owner}.{short}"],
        [x for x in near if x[0] == path],
        near,
        found,
    ):
        if part:
            return part if len(part) <= _MAX_CANDIDATES else []
    return []


def _enclosing_class(shape: Outline, line: int) -> str:
    """The class around a line, "" where there is none."""
    around = [d for d in shape.definitions if d.kind == "class" and d.start <= line <= d.end]
    return max(around, key=lambda d: d.start).name if around else ""


def _is_shown(excerpt: str, shown: str, least: float) -> bool:
    """Whether at least this share of an excerpt's lines is shown already."""
    rows = [x.strip() for x in excerpt.split("\n")[1:]]
    rows = [x for x in rows if x and x != "..."]
    return sum(x in shown for x in rows) >= least * len(rows)
