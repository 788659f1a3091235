"""The model's review: several independent readings of a change, each claim then tried by somebody else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from regreen.codebase.diff import apply_suggestion
from regreen.errors import OutOfBudget, OutsideError
from regreen.models import Evidence, Signals, Skipped, Unread
from regreen.pool import Pool
from regreen.ports import Model
from regreen.reviewers.calibrate import confidence
from regreen.reviewers.claimed import code_for
from regreen.reviewers.claims import Said, read_claims
from regreen.reviewers.context import Claim, Report, ReviewContext
from regreen.reviewers.dossier import Dossier, Related, dossiers
from regreen.reviewers.lint_suggestion import lints
from regreen.reviewers.merging import beside, merge
from regreen.reviewers.prompts import LENSES, REPORT
from regreen.reviewers.scope import is_test
from regreen.reviewers.shorten import shortened
from regreen.reviewers.verify import Shown, Tried, handed_in, mends, prove, question, second_reading

_MOST_TRIED = 10
_LEAST_SURE = 0.25
_ANSWER_TOKENS = 12_000
_LONGEST_ABOUT = 400

NO_MODEL = (
    "no model: what the change means to do was not held against what it does, nor were edge cases, error paths, "
    "callers' contracts and concurrency read, and no claim was tried by a generated test; set ANTHROPIC_API_KEY or "
    "ANTHROPIC_BASE_URL for that"
)


@dataclass
class Readers:
    """The reviewer that asks a model. `related` finds code elsewhere that bears on the change."""

    related: Related | None = None
    name: str = "model"

    def run(self, context: ReviewContext) -> Report:
        """Read, merge, have each claim tried, and report what is left with its evidence."""
        if context.model is None:
            return Report(skipped=(Skipped(self.name, NO_MODEL),))
        portions, unread = dossiers(context, self.related)
        claims: list[Claim] = []
        left: list[Unread] = list(unread)
        skipped: list[Skipped] = []
        about: list[str] = []
        for portion in portions:
            try:
                found, missed, said = _read(context, context.model, portion)
            except (OutOfBudget, OutsideError) as error:
                left += [
                    Unread(f.path, f"the model did not read it: {error}") for f in portion.files
                ]
                skipped.append(Skipped(self.name, str(error)))
                continue
            claims += found
            skipped += missed
            about.append(said)
        files = sum(len(p.files) for p in portions)
        read = f"a model's readings of {files} file{'s' if files != 1 else ''}" if portions else ""
        return Report(
            claims=tuple(claims),
            read=read,
            unread=tuple(left),
            skipped=tuple(dict.fromkeys(skipped)),
            about=shortened(" ".join(a for a in about if a), _LONGEST_ABOUT),
        )


def lenses_for(portion: Dossier) -> tuple[str, ...]:
    """The ways in which a portion is read: two always, a third where the change brings what can do lasting harm.

    What it only moves or edits was judged when it came.
    """
    lines = [x for f in portion.files if not is_test(f.path) for h in f.hunks for x in h.lines]
    brought = Counter(m for x in lines if x.kind == "+" for m in HARMFUL.findall(x.text))
    brought -= Counter(m for x in lines if x.kind == "-" for m in HARMFUL.findall(x.text))
    return ("trace", "compare", "harm") if brought else ("trace", "compare")


def _read(
    context: ReviewContext, model: Model, portion: Dossier
) -> tuple[list[Claim], list[Skipped], str]:
    """The claims of one portion, tried; the readings that could not be had; what the portion does."""
    lenses = lenses_for(portion)
    context.say(f"reading {len(portion.files)} file(s) in {len(lenses)} ways")
    # The first reading goes alone, so that the others find the dossier in the endpoint's cache.
    first, *others = lenses
    answers = {first: _ask(model, portion, first)}
    with Pool(max_workers=len(others)) as pool:
        answers |= dict(
            zip(others, pool.map(lambda lens: _ask(model, portion, lens), others), strict=True)
        )
    said: list[Said] = []
    skipped = []
    about = ""
    for lens, answer in answers.items():
        if isinstance(answer, str):
            skipped.append(Skipped(f"model/{lens}", answer))
        else:
            said += read_claims(answer, lens, portion.files, context.after)
            about = about or _sentence(answer.get("about"))
    readings = len(lenses) - len(skipped)
    if not readings:
        raise OutsideError(skipped[0].reason)
    merged = [m for m in merge(said) if m.sure >= _LEAST_SURE or len(m.readers) > 1]
    merged.sort(key=lambda m: not m.anchored)  # what cannot be posted is tried last
    tried = _tried(context, model, portion, merged)
    if untried := [t for t in tried if t.verdict == "unread"]:
        # They are withheld without having been refuted: a check that says nothing of them would be green by accident.
        number = f"{len(untried)} claim{'s' if len(untried) > 1 else ''}"
        told = f"{number} not tried by a second reader: {untried[0].because}"
        skipped.append(Skipped("model/second-reader", told))
    return [_claim(context, model, portion, t, readings) for t in tried], skipped, about


def _tried(
    context: ReviewContext, model: Model, portion: Dossier, merged: Sequence[Said]
) -> tuple[Tried, ...]:
    """Each claim with what a second reader says of it; of very many the first ones."""
    if not merged:
        return ()
    chosen, rest = merged[:_MOST_TRIED], merged[_MOST_TRIED:]
    code = code_for(context, chosen, portion.text)
    past = f"only the first {_MOST_TRIED} of a portion are"
    return (
        *second_reading(model, portion, chosen, code, context.known),
        *(Tried(said, "unread", 0.5, past) for said in rest),
    )


def _sentence(value: object) -> str:
    return shortened(" ".join(value.split()), _LONGEST_ABOUT) if isinstance(value, str) else ""


def _ask(model: Model, portion: Dossier, lens: str) -> dict[str, object] | str:
    """One reading; the reason where it could not be had."""
    given = handed_in(
        model, question(portion, f"review/{lens}", LENSES[lens], REPORT, _ANSWER_TOKENS)
    )
    return f"the reading '{lens}' is missing: {given}" if isinstance(given, str) else given


def _claim(
    context: ReviewContext, model: Model, portion: Dossier, tried: Tried, readings: int
) -> Claim:
    said = tried.said
    shown = Shown()
    runs = context.tests is not None and context.sandbox is not None
    posted = said.anchored and not tried.again  # what cannot be said, or was, needs no proof
    if tried.verdict == "holds" and runs and posted:
        shown = prove(context, model, portion, said)
    if shown.as_before and not tried.mended:
        # whatever readers think: the base fails in the same way, so the change did not bring it
        tried = replace(tried, verdict="as_before", certainty=1.0)
        shown = replace(shown, proof="not_run")
    signals = Signals(
        len(said.readers),
        readings,
        tried.verdict,
        tried.certainty,
        said.sure,
        shown.proof,
        tried.worth,
    )
    evidence = [
        Evidence(
            "vote",
            f"{len(said.readers)} of {readings} readings, made apart, report it ({', '.join(said.readers)})",
        ),
        Evidence("model", f"A second reader {_verdict(tried)}. {tried.because}".strip()),
    ]
    if shown.evidence is not None:
        evidence.insert(0, shown.evidence)
    proven = shown.proof == "proven"
    suggestion = _suggestion(context, said, shown)
    return Claim(
        dimension=said.dimension,
        rule=f"model/{said.kind}",
        severity="high" if said.severity == "critical" and not proven else said.severity,
        path=said.path,
        start_line=min(said.line, said.changed or said.line),
        line=max(said.line, said.changed, said.last if suggestion is not None else 0),
        side=said.side,
        title=said.title,
        body=_body(said),
        confidence=confidence(signals, context.weights),
        suggestion=suggestion,
        evidence=tuple(evidence),
        code=said.title,
        proven=proven,
        data_loss=said.kind == "data-loss",
        signals=signals,
        again=tried.again,
    )


def _verdict(tried: Tried) -> str:
    """What the second reader said, in words for people."""
    words = {
        "holds": "finds that it holds",
        "as_before": "finds that it holds, and that it was so before the change",
        "refuted": "refutes it",
        "unsure": "is not sure",
        "unread": "could not be asked",
    }
    worth = {"perhaps": ", and perhaps not worth a change", "no": ", and not worth a change"}
    return words[tried.verdict] + worth.get(tried.worth, "")


def _suggestion(context: ReviewContext, said: Said, shown: Shown) -> str | None:
    """The replacement, where the linter finds nothing new in it and the test that shows the fault then passes."""
    text = context.after(said.path)
    if said.replacement is None or said.side == "LEFT" or text is None:
        return None
    after = apply_suggestion(text, said.line, max(said.line, said.last), said.replacement)
    if after is None or not lints(said.path, text, after):
        return None
    return said.replacement if mends(context, shown, said.path, after) else None


def _body(said: Said) -> str:
    parts = [("Shows", _shows(said))] if said.shows else []
    parts += [("Input", said.input), ("Happens", said.happens), ("Should", said.should)]
    parts += [("Also", str(other)) for other in beside(said)]
    parts += [("Mend", said.mend)]
    return "\n\n".join(f"{name}: {text}" for name, text in parts if text)


def _shows(said: Said) -> str:
    """Where a fault shows that the commented line brings about."""
    assert said.shows is not None  # noqa: S101 - the caller has looked
    path, line, code = said.shows.path, said.shows.line, said.shows.code
    there = f"line {line}" if path == said.path else f"`{path}` line {line}"
    told = f": `{code}`" if code and "`" not in code else ""
    return f"{there}, which this change leaves as it is{told}"


HARMFUL = re.compile(
    r"(?<!\bdef )(?<!\bclass )(?<!\bfunc )(?<!\bfunction )(?<!\bwebbrowser\.)\b(?:open|unlink|remove|rmtree|chmod"
    r"|system|[Pp]open|exec|eval|spawn\w*|urlopen|execute|executemany|pickle\.loads?"
    r"|yaml\.load|marshal\.loads|Thread|Lock|RLock|Process|fork|create_task|redirect|mktemp)\("
    r"|\b(?:subprocess|innerHTML|dangerouslySetInnerHTML|shell=True|verify=False|InsecureSkipVerify|sync\.Mutex|global)\b"
)
"""Words in added lines that make it worth asking what lasting harm they can do; who defines one does not call it."""
