"""The review as documents: JSON as docs/interface.md has it, text for a terminal, markdown."""

from __future__ import annotations

import html
from dataclasses import asdict
from typing import Any

from regreen.codebase import inert
from regreen.models import Evidence, Finding, Review


def document(review: Review) -> dict[str, Any]:
    """The JSON document; every string in it is valid Unicode."""
    data = asdict(review)
    data["withheld"] = [{**asdict(w.finding), "reason": w.reason} for w in review.withheld]
    cleaned = _clean({"version": 1, **data})
    assert isinstance(cleaned, dict)  # noqa: S101 - what went in
    return cleaned


def text(review: Review) -> str:
    """The review for a terminal."""
    lines = [review.summary, f"Risk: {review.risk}. Scores: {_scores(review)}.", ""]
    for finding in review.findings:
        lines += _finding_lines(finding)
    if review.coverage:
        lines.append(_coverage_line(review))
    lines += [f"withheld: {len(review.withheld)} ({_reasons(review)})"] if review.withheld else []
    lines += [f"not read: {_one_line(u.path)}: {u.reason}" for u in review.not_reviewed]
    lines += [f"skipped: {s.reviewer}: {s.reason}" for s in review.skipped]
    return _utf8("\n".join(lines).rstrip() + "\n")


def markdown(review: Review) -> str:
    """The review as GitHub renders it; nothing in it that others wrote links, pings, refers, draws or hides."""
    lines = [
        inert.plain(review.summary, 2000),
        "",
        f"**Risk** {review.risk} · **Scores** {_scores(review)}",
        "",
    ]
    for finding in review.findings:
        lines += [
            f"### {inert.plain(finding.title)}",
            f"{inert.span(f'{finding.path}:{_span(finding)}')} · {finding.severity} · {finding.dimension} · "
            f"{inert.span(finding.rule)} · confidence {finding.confidence:.2f}"
            + (" · **blocking**" if finding.blocking else ""),
            "",
            inert.foreign(finding.body),
            "",
        ]
        lines += [row for e in finding.evidence for row in _evidence(e)]
        lines += _suggestion_block(finding)
    if review.coverage:
        lines += [inert.plain(_coverage_line(review), 20_000), ""]
    lines += _details(
        "Withheld",
        [
            f"{inert.span(f'{w.finding.path}:{w.finding.line}')} {inert.plain(w.finding.title)} ({w.reason})"
            for w in review.withheld
        ],
    )
    lines += _details(
        "Not read",
        [f"{inert.span(u.path)}: {inert.plain(u.reason)}" for u in review.not_reviewed],
    )
    lines += _details(
        "Not done", [f"{s.reviewer}: {inert.plain(s.reason)}" for s in review.skipped]
    )
    return _utf8("\n".join(lines).rstrip() + "\n")


def _evidence(evidence: Evidence) -> list[str]:
    """What a finding rests on: what was run in a fold of its own, what was said in a line."""
    if evidence.kind in {"vote", "model"}:
        return [inert.foreign(evidence.excerpt), ""]
    title = inert.flat(f"Evidence ({evidence.kind}): {_seen(evidence)}").removesuffix(": ")
    if not evidence.excerpt.strip():
        return [inert.plain(title), ""]
    language = "python" if evidence.kind == "test" else ""
    block = inert.block(evidence.excerpt, language)
    shown = html.escape(title.rstrip(":"), quote=False)
    return [f"<details><summary>{shown}</summary>", "", block, "", "</details>", ""]


def _seen(evidence: Evidence) -> str:
    """The command, and what came of it on both sides."""
    seen = [evidence.command or ""]
    seen += [f"on this change: {evidence.head}"] if evidence.head else []
    seen += [f"before it: {evidence.base}"] if evidence.base else []
    return "; ".join(s for s in seen if s)


def fence(content: str, info: str = "") -> str:
    """A fenced block whose fence is longer than any run of backticks inside."""
    longest = run = 0
    for letter in content:
        run = run + 1 if letter == "`" else 0
        longest = max(longest, run)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{info}\n{content}\n{ticks}"


def _finding_lines(finding: Finding) -> list[str]:
    mark = " [blocking]" if finding.blocking else ""
    lines = [
        f"{_one_line(finding.path)}:{_span(finding)}: {finding.severity} {finding.title} "
        f"({finding.rule}, {finding.confidence:.2f}){mark}",
        *(f"    {row}" for row in finding.body.split("\n")),
        *(f"    {row}" for e in finding.evidence if (row := _seen(e))),
    ]
    if finding.suggestion is not None:
        lines += ["    suggestion:", *(f"    | {row}" for row in finding.suggestion.split("\n"))]
    return [*lines, ""]


def _suggestion_block(finding: Finding) -> list[str]:
    if finding.suggestion is None:
        return []
    return [fence(finding.suggestion, "suggestion"), ""]


def _details(title: str, rows: list[str]) -> list[str]:
    if not rows:
        return []
    shown = [f"- {row}" for row in rows[:100]]
    more = [f"- and {len(rows) - 100} more"] if len(rows) > 100 else []
    return [
        f"<details><summary>{title} ({len(rows)})</summary>",
        "",
        *shown,
        *more,
        "",
        "</details>",
        "",
    ]


def _coverage_line(review: Review) -> str:
    assert review.coverage  # noqa: S101 - the callers have looked
    report = review.coverage
    where = ", ".join(f"{u.path}:{_ranges(u.lines)}" for u in report.uncovered)
    rest = f"; not run by any test: {where}" if where else ""
    return f"Coverage: {report.covered} of {report.new_lines} new lines run by the tests{rest}."


def _ranges(numbers: tuple[int, ...]) -> str:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def _one_line(path: str) -> str:
    return path.replace("\n", "\\n")


def _span(finding: Finding) -> str:
    if finding.start_line == finding.line:
        return str(finding.line)
    return f"{finding.start_line}-{finding.line}"


def _scores(review: Review) -> str:
    return ", ".join(f"{d} {'n/a' if v is None else v}" for d, v in review.scores.items())


def _reasons(review: Review) -> str:
    counts: dict[str, int] = {}
    for entry in review.withheld:
        counts[entry.reason] = counts.get(entry.reason, 0) + 1
    return ", ".join(f"{n} {reason}" for reason, n in counts.items())


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _utf8(value)
    if isinstance(value, dict):
        return {_clean(k): _clean(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(v) for v in value]
    return value


def _utf8(value: str) -> str:
    """Bytes that are no text (kept as lone surrogates while we work) become U+FFFD."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
