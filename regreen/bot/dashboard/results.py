"""One result with everything behind it: a review's findings, a repair's attempts, a bisection's runs."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import groupby
from typing import Any

from regreen.bot.dashboard.html import (
    Content,
    Safe,
    code,
    diff,
    dollars,
    facts,
    fold,
    prose,
    seconds,
    state,
    table,
    tag,
    text,
    when,
    wide,
)
from regreen.bot.dashboard.lists import headline, verdict
from regreen.bot.dashboard.narrowing import narrowing
from regreen.bot.say.markup import counted
from regreen.codebase.redaction import redact
from regreen.records import Document

_NAMES = {"review": "Review", "fix": "Repair", "bisect": "Bisection"}
_WITHHELD = {
    "confidence": "not sure enough",
    "budget": "more than the budget of comments",
    "duplicate": "said already",
    "dismissed": "dismissed by a person",
    "outside_diff": "not on a line of the diff",
}
_HIDDEN = {"svg"}


def result(document: Document) -> Safe:
    """A result, its parts by kind, and the whole document below."""
    body = document.body
    whole = json.dumps({k: v for k, v in body.items() if k not in _HIDDEN}, indent=2, ensure_ascii=False)  # fmt: skip
    head = tag("h2", _NAMES[document.kind], " ", state(verdict(document)))
    return text(
        head,
        tag("p", headline(document)),
        *_parts(document),
        fold("Everything, as JSON", code(redact(whole), "The document")),
    )


def _parts(document: Document) -> list[Content]:
    match document.kind:
        case "review":
            return _review(document.body)
        case "fix":
            return _fix(document.body)
        case "bisect":
            return _bisection(document.body)


# --- a review ------------------------------------------------------------------------------------


def _review(body: Mapping[str, Any]) -> list[Content]:
    scores = _mapping(body.get("scores"))
    shown = ", ".join(f"{k} {'not scored' if v is None else v}" for k, v in scores.items())
    coverage = _mapping(body.get("coverage"))
    ran = f"{coverage.get('covered')} of {coverage.get('new_lines')} new lines" if coverage else ""
    parts: list[Content] = [
        facts((("risk", _text(body, "risk")), ("scores", shown), ("run by the tests", ran), ("head", _text(body, "head")))),
        tag("h3", "Posted"),
    ]  # fmt: skip
    findings = _list(body, "findings")
    parts += [_finding(f) for f in findings] or [tag("p", "Nothing.", class_="none")]
    parts.append(tag("h3", "Withheld"))
    withheld = _list(body, "withheld")
    parts += [_finding(f) for f in withheld] or [tag("p", "Nothing.", class_="none")]
    for key, title, names in (
        ("not_reviewed", "Not read", ("path", "reason")),
        ("skipped", "Not done", ("reviewer", "reason")),
    ):
        rows = [[_text(row, name) for name in names] for row in _list(body, key)]
        if rows:
            parts += [tag("h3", title), table(names, rows, caption=title)]
    return parts


def _finding(found: Mapping[str, Any]) -> Safe:
    where = f"{_text(found, 'path')}:{_text(found, 'line')}"
    held = str(found.get("reason") or "")
    confidence = found.get("confidence")
    named = (
        ("where", tag("code", where)),
        ("rule", tag("code", _text(found, "rule"))),
        ("confidence", f"{confidence:.2f}" if isinstance(confidence, float) else ""),
        ("kept back because", _WITHHELD.get(held, held)),
        ("blocking", "yes" if found.get("blocking") else ""),
    )
    suggestion = found.get("suggestion")
    return tag(
        "article",
        tag("h4", state(_text(found, "severity")), " ", prose(_text(found, "title"))),
        facts(named),
        tag("div", prose(redact(_text(found, "body"))), class_="body"),
        text(tag("p", "Suggested instead:"), code(redact(str(suggestion)), "Suggestion")) if suggestion else "",
        *(_evidence(each) for each in _list(found, "evidence")),
        class_="card",
    )  # fmt: skip


def _evidence(seen: Mapping[str, Any]) -> Safe:
    """What was run or read, and what it said on the head and on the base."""
    parts = [
        text(tag("p", label), code(redact(_text(seen, key)), f"{label} of the evidence"))
        for key, label in (
            ("command", "Command"),
            ("excerpt", "Seen"),
            ("head", "On the head"),
            ("base", "On the base"),
        )
        if seen.get(key)
    ]
    return fold(f"Evidence: {_text(seen, 'kind')}", *parts)


# --- a repair ------------------------------------------------------------------------------------


def _fix(body: Mapping[str, Any]) -> list[Content]:
    before, after = _mapping(body.get("before")), _mapping(body.get("after"))
    cost = _mapping(body.get("cost"))
    green = _ended(after) if after else ""
    strength = _mapping(body.get("strength"))
    noticed = f"{strength.get('killed')} of {strength.get('mutants')} faults put into the changed lines" if strength else ""  # fmt: skip
    culprit = _mapping(body.get("culprit"))
    parts: list[Content] = [
        facts(
            (
                ("outcome", _text(body, "outcome").replace("_", " ")),
                ("reason", _text(body, "reason")),
                ("cause", _text(body, "cause")),
                ("broken by", f"{_text(culprit, 'sha')[:12]} {_text(culprit, 'subject')}".strip()),
                ("after", green),
                ("the tests notice", noticed),
                ("took", seconds(body.get("seconds"))),
                ("cost", dollars(float(cost.get("usd") or 0))),
            )
        ),
        tag("h3", "Before"),
        code(_text(before, "command"), "The failing command"),
        _failures(before),
    ]
    parts.append(_gate(body, "h3"))
    if body.get("patch"):
        parts += [tag("h3", "Patch"), diff(redact(str(body["patch"])))]
    if body.get("reflection"):
        parts += [tag("h3", "Looking back"), tag("p", _text(body, "reflection"))]
    parts.append(tag("h3", "Rung by rung"))
    attempts = _list(body, "attempts")
    for rung, tries in groupby(attempts, key=lambda a: _text(a, "rung")):
        parts += [tag("h4", rung), *(_attempt(a, _text(before, "command")) for a in tries)]
    if not attempts:
        parts.append(tag("p", "Nothing was tried.", class_="none"))
    hints = [tag("li", str(h)) for h in body.get("hints") or ()]
    return [*parts, tag("h3", "Hints"), tag("ul", *hints)] if hints else parts


def _failures(before: Mapping[str, Any], caption: str = "Failures") -> Safe:
    rows = (
        (
            _text(f, "test"),
            _text(f, "kind"),
            _text(f, "message"),
            f"{_text(f, 'path')}:{_text(f, 'line')}" if f.get("path") else "",
        )
        for f in _list(before, "failures")
    )
    return table(("test", "kind", "message", "where"), rows, caption=caption, none="No failure could be read out of the output.")  # fmt: skip


def _attempt(attempt: Mapping[str, Any], command: str) -> Safe:
    """One thing that was tried: its code, what was run, what came out, what the gate said of it."""
    patch, detail = attempt.get("patch"), _text(attempt, "detail")
    trail = [str(line) for line in attempt.get("trail") or ()]
    steps = [
        tag("li", code(redact(line), f"Step {at}"))
        for at, line in enumerate(trail, 1)
        if line.strip()
    ]
    outcome, after = _text(attempt, "outcome"), _mapping(attempt.get("after"))
    ran = text(tag("code", command), f", {_ended(after)}") if after else ""
    return tag(
        "article",
        tag("p", state(outcome.replace("_", " ")), " ", prose(_text(attempt, "summary"))),
        facts((("ran", ran), ("took", seconds(attempt.get("seconds"))), ("cost", dollars(float(attempt.get("usd") or 0))))),
        _failures(after, "Still failing") if _list(after, "failures") else "",
        _gate(attempt, "h5"),
        text(tag("p", "Verdict:"), code(redact(detail), "Verdict")) if detail else "",
        fold("The patch that was tried", diff(redact(str(patch)))) if patch else "",
        fold(f"Each step ({len(steps)})", tag("ol", *steps)) if steps else "",
        class_="card",
    )  # fmt: skip


def _ended(after: Mapping[str, Any]) -> str:
    """How a command ended with a patch."""
    ended, runs = after.get("exit_code"), after.get("reruns")
    end = "cut off" if ended is None else f"exit {ended}"
    return f"{end} in {runs} fresh run{'' if runs == 1 else 's'}"


def _gate(body: Mapping[str, Any], heading: str) -> Safe:
    gate = _mapping(body.get("gate"))
    if not gate:
        return Safe("")
    rows = [(_text(r, "check"), _text(r, "detail")) for r in _list(gate, "reasons")]
    return text(
        tag(heading, "Gate ", state(_text(gate, "verdict"))),
        table(("check", "detail"), rows, caption="The gate", none="No objection."),
    )


# --- a bisection ---------------------------------------------------------------------------------


def _bisection(body: Mapping[str, Any]) -> list[Content]:
    culprit, proof = _mapping(body.get("culprit")), _mapping(body.get("verified"))
    span, cost = _mapping(body.get("range")), body.get("tests")
    said = " and ".join(str(one) for one in proof.get("by") or ())
    held = "holds" if proof.get("ok") else "does not hold"
    merges = _counted(span.get("merges"), "merge")
    good = str(span.get("good") or "the beginning")[:12]
    parts: list[Content] = [
        facts(
            (
                ("culprit", f"{_text(culprit, 'sha')} {_text(culprit, 'subject')}".strip()),
                ("author", text(_text(culprit, "author"), " ", _when(culprit.get("date"))) if culprit else ""),
                ("probability", _share(body.get("probability")) if culprit else ""),
                ("proof", f"{held} ({said}): {_text(proof, 'detail')}" if proof else ""),
                ("command", tag("code", _text(body, "command")) if body.get("command") else ""),
                ("range", f"{good}..{_text(span, 'bad')[:12]}: {_counted(span.get('commits'), 'commit')}, {merges}"),
                ("cost", f"{_counted(cost, 'test')} in {_counted(body.get('rounds'), 'round')}, {seconds(body.get('seconds'))}"),
            )
        ),
        _plot(str(body.get("svg") or "")),
    ]  # fmt: skip
    parts += [
        *(tag("p", str(note)) for note in body.get("notes") or ()),
        tag("h3", "The likeliest commits"),
        table(("commit", "probability"), _likeliest(body), caption="The likeliest commits"),
        narrowing(body),
        tag("h3", "Each run"),
        _runs(body),
    ]
    return parts


def _likeliest(body: Mapping[str, Any]) -> Iterable[tuple[Content, Content]]:
    points = sorted(_list(body, "posterior"), key=lambda p: -float(p.get("p") or 0))[:10]
    return [(tag("code", _text(p, "sha")[:12]), _share(p.get("p"))) for p in points]


def _runs(body: Mapping[str, Any]) -> Safe:
    rows = (
        (
            at,
            tag("code", _text(seen, "sha")[:12]),
            state(_text(seen, "outcome")),
            _text(seen, "reason"),
            seconds(seen.get("seconds")),
            "known before" if seen.get("reused") else "",
        )
        for at, seen in enumerate(_list(body, "observations"), 1)
    )
    return table(("run", "commit", "outcome", "why", "took", "note"), rows, caption="Every run of the search")  # fmt: skip


def _plot(svg: str) -> Safe:
    if not svg:
        return Safe("")
    encoded = b64encode(svg.encode()).decode()
    # as an image, so that nothing inside it could ever run
    alt = "The probability of each commit, and where tests were run; the tables below say the same"
    return wide(tag("img", alt=alt, src=f"data:image/svg+xml;base64,{encoded}"), "The picture")


def _when(date: object) -> Safe | str:
    """A time of a document; as it stands there where it is none."""
    try:
        return when(datetime.fromisoformat(str(date)))
    except ValueError:
        return str(date or "")


def _counted(value: object, noun: str) -> str:
    return counted(int(value) if isinstance(value, int | float) else 0, noun)


def _share(value: object) -> str:
    return f"{value:.2%}" if isinstance(value, int | float) else ""


def _text(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    return "" if value is None else str(value)


def _list(body: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = body.get(key)
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list | tuple) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
