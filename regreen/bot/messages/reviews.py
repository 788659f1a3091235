"""The texts of a review: comments, body, check run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regreen.bot.messages.markup import (
    code_span,
    count_noun,
    fence_code,
    fold_details,
    inline_prose,
    make_marker,
    sanitize_markdown,
    to_plain_line,
)
from regreen.code.path_settings import review_settings
from regreen.domain.errors import ConfigProblem
from regreen.domain.github import (
    Annotation,
    AnnotationLevel,
    Button,
    CheckRun,
    Conclusion,
    InlineComment,
)
from regreen.domain.models import Cost, Evidence, Finding, Review, Severity
from regreen.domain.repo_config import CONFIG_PATH, RepoConfig
from regreen.environment.preparation import render_environment

CHECK_NAME = "Regreen"
CHECK_BUTTONS = (
    Button("Fix", "Repair what is red, as a draft PR", "fix"),
    Button("Bisect", "Find the commit that broke the tests", "bisect"),
    Button("Dismiss", "Do not raise these findings again", "dismiss"),
)
_EXPLAIN_BUTTON = Button("Explain", "What it changes and what goes wrong", "explain")
_SEVERITY_ORDER: tuple[Severity, ...] = ("low", "medium", "high", "critical")
_ANNOTATION_LEVELS: dict[Severity, AnnotationLevel] = {
    "low": "notice",
    "medium": "warning",
    "high": "warning",
    "critical": "failure",
}


def finding_comment(finding: Finding) -> InlineComment:
    """A finding as an inline comment: the claim, the evidence, the suggestion."""
    parts = [f"**{inline_prose(finding.title)}**", sanitize_markdown(finding.body)]
    parts += [_format_evidence(e) for e in finding.evidence[:3]]
    if finding.suggestion is not None:
        parts.append(_fence_suggestion(finding.suggestion.removesuffix("\n")))
    parts.append(
        f"<sub>{finding.severity} · {finding.dimension} · {code_span(finding.rule)} · "
        f"{finding.confidence:.0%} sure · `/dismiss {finding.id}` if it is wrong</sub>"
    )
    body = "\n\n".join(p for p in parts if p) + "\n\n" + make_marker("finding", finding.fingerprint)
    return InlineComment(finding.path, finding.start_line, finding.line, finding.side, body)


def review_body(review: Review) -> str:
    """The text of a review that has findings."""
    count = count_noun(len(review.findings), "finding")
    summary = review.summary.removesuffix(f" {count}.")
    parts = [f"**{count}.** {inline_prose(summary)}", _format_scores(review)]
    overflow = [w.finding for w in review.withheld if w.reason == "budget"]
    if overflow:
        lines = [
            f"- {_format_location(f)} {inline_prose(f.title)} ({f.confidence:.0%})"
            for f in overflow
        ]
        parts.append(
            fold_details(f"{len(overflow)} more, kept back to stay short", "\n".join(lines))
        )
    parts.append(_describe_unread_and_skipped(review))
    return "\n\n".join(p for p in parts if p)


def review_without_comments(review: Review) -> str:
    """A review whose inline comments GitHub rejected: all findings in the body."""
    parts = [review_body(review)]
    for finding in review.findings:
        heading = f"### {_format_location(finding)} {inline_prose(finding.title)}"
        parts.append(f"{heading}\n\n{sanitize_markdown(finding.body)}")
    return "\n\n".join(parts)


def review_check(
    review: Review,
    config: RepoConfig,
    *,
    external_id: str,
    details_url: str,
    note: str = "",
    standing: Sequence[Finding] = (),
    fixed: int = 0,
) -> CheckRun:
    """The check run of a finished review: success only if everything selected was read and has no finding.

    `standing` was posted for an earlier push and still holds; `fixed` counts posted findings that are gone.
    """
    conclusion = _conclude_review(review, config, standing)
    parts = [note, inline_prose(review.summary), _format_scores(review), _format_coverage(review)]
    parts += [_describe_earlier_findings(standing, fixed)]
    parts += [
        _list_findings(review.findings),
        _describe_unread_and_skipped(review),
        render_environment(review.environment),
        _format_cost(review.cost),
    ]
    return CheckRun(
        name=CHECK_NAME,
        head_sha=review.head,
        external_id=external_id,
        title=_check_title(review, conclusion, len(standing)),
        summary="\n\n".join(p for p in parts if p),
        conclusion="neutral" if note and conclusion == "success" else conclusion,
        annotations=tuple(_make_annotation(f) for f in review.findings if f.side == "RIGHT"),
        buttons=_choose_buttons((*review.findings, *standing)),
        details_url=details_url,
    )


def _choose_buttons(findings: Sequence[Finding]) -> tuple[Button, ...]:
    """The buttons, three at most: explaining needs a model's finding, bisecting needs no failing test."""
    if not findings:
        return ()
    by_model = any(f.rule.startswith("model/") for f in findings)
    fix, bisect, dismiss = CHECK_BUTTONS
    return (fix, _EXPLAIN_BUTTON if by_model else bisect, dismiss)


def review_started_check(head_sha: str, external_id: str, details_url: str) -> CheckRun:
    """The check run of a running review."""
    return CheckRun(
        name=CHECK_NAME,
        head_sha=head_sha,
        external_id=external_id,
        title="Reading the change",
        summary="The review is on its way.",
        details_url=details_url,
    )


def skipped_review_check(head_sha: str, external_id: str, title: str, reason: str) -> CheckRun:
    """The check run of a review that failed. Never success."""
    return CheckRun(
        name=CHECK_NAME,
        head_sha=head_sha,
        external_id=external_id,
        title=title,
        summary=reason,
        conclusion="neutral",
    )


@dataclass(frozen=True, slots=True)
class QueuedPull:
    """A pull request in a merge group, the queued head, and "CONCLUSION: TITLE" of that head's review."""

    number: int
    sha: str
    review: str | None


def merge_group_check(
    head_sha: str, external_id: str, queued: Sequence[QueuedPull], *, unknown: bool
) -> CheckRun:
    """The check run on a merge group: the result of each pull request; success if all succeeded.

    `unknown`: the group holds commits that are not the reviewed head of a pull request.
    """
    lines = [
        f"- #{q.number} at {code_span(q.sha[:12])}: {inline_prose(q.review or 'not reviewed')}"
        for q in queued
    ]
    lines += ["- commits that are the head of no pull request here"] if unknown else []
    missing = [f"#{q.number}" for q in queued if q.review is None] + ["other commits"] * unknown
    ends = {q.review.partition(":")[0] for q in queued if q.review}
    conclusion: Conclusion = "failure" if "failure" in ends else "neutral"
    if missing or not queued:
        title = (
            f"Not reviewed: {', '.join(missing) or 'no pull request of this merge group is known'}"
        )
    elif ends == {"success"}:
        title, conclusion = "Reviewed in its pull requests", "success"
    else:
        title = "Reviewed in its pull requests, not all without findings"
    tail = "Each was reviewed by itself; what they do together was not."
    summary = "\n".join(["What was reviewed of this merge group:", "", *lines, "", tail])
    return CheckRun(CHECK_NAME, head_sha, external_id, title[:250], summary, conclusion)


def describe_unusable_config(problems: Sequence[ConfigProblem]) -> str:
    """The faults of the configuration, line by line."""
    lines = [
        f"- line {p.line}: {code_span(p.key or 'file')}: {inline_prose(p.message)}"
        for p in problems
    ]
    head = f"`{CONFIG_PATH}` on the default branch cannot be used:"
    tail = "Check it before pushing with `regreen config check`."
    return "\n".join([head, "", *lines, "", tail])


def _conclude_review(review: Review, config: RepoConfig, standing: Sequence[Finding]) -> Conclusion:
    if is_blocked(review, config, standing):
        return "failure"
    everything_read = not review.not_reviewed and not review.skipped
    return "success" if everything_read and not (review.findings or standing) else "neutral"


def is_blocked(review: Review, config: RepoConfig, standing: Sequence[Finding] = ()) -> bool:
    """Whether a finding is severe enough to block, by the repository's configuration."""
    return any(f.blocking or _is_severe(f, config) for f in (*review.findings, *standing))


def _is_severe(finding: Finding, config: RepoConfig) -> bool:
    wanted = review_settings(config, finding.path).blocking
    if wanted == "none":
        return False
    return _SEVERITY_ORDER.index(finding.severity) >= _SEVERITY_ORDER.index(wanted)


def _check_title(review: Review, conclusion: Conclusion, standing: int) -> str:
    if review.findings:
        worst = max(review.findings, key=lambda f: _SEVERITY_ORDER.index(f.severity)).severity
        return f"{count_noun(len(review.findings), 'finding')}, the worst is {worst}"
    if standing:
        return f"Nothing new; {count_noun(standing, 'earlier finding')} not mended"
    if conclusion == "success":
        return "Nothing to say"
    names = [s.reviewer for s in review.skipped] + [u.path for u in review.not_reviewed]
    return f"Nothing found; not everything was read ({', '.join(names[:3])})"[:250]


def _describe_earlier_findings(standing: Sequence[Finding], fixed: int) -> str:
    """What became of the findings of earlier pushes."""
    parts = [f"Mended since: {count_noun(fixed, 'earlier finding')}."] if fixed else []
    if standing:
        parts.append(f"Said before, and still there:\n\n{_list_findings(standing)}")
    return "\n\n".join(parts)


def _format_scores(review: Review) -> str:
    known = [f"{name} {value}" for name, value in review.scores.items() if value is not None]
    return f"Scores: {' · '.join(known)} · risk {review.risk}" if known else ""


def _format_coverage(review: Review) -> str:
    report = review.coverage
    if report is None or report.new_lines == 0:
        return ""
    text = f"The tests run {report.covered} of {report.new_lines} new lines."
    missed = [f"{code_span(u.path)}: {_format_line_ranges(u.lines)}" for u in report.uncovered[:10]]
    return text + (" Not run: " + "; ".join(missed) if missed else "")


def _format_line_ranges(lines: Sequence[int]) -> str:
    spans: list[list[int]] = []
    for line in sorted(lines):
        if spans and line == spans[-1][1] + 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    shown = [f"{a}" if a == b else f"{a}-{b}" for a, b in spans[:20]]
    return ", ".join(shown) + (", …" if len(spans) > 20 else "")


def _list_findings(findings: Iterable[Finding]) -> str:
    lines = [
        f"- **{f.severity}** {_format_location(f)} {inline_prose(f.title)} ({f.confidence:.0%}, `{f.id}`)"
        for f in findings
    ]
    return "\n".join(lines)


def _describe_unread_and_skipped(review: Review) -> str:
    lines = [f"- {code_span(u.path)}: {inline_prose(u.reason)}" for u in review.not_reviewed[:50]]
    lines += [f"- {s.reviewer}: {inline_prose(s.reason)}" for s in review.skipped]
    more = len(review.not_reviewed) - 50
    lines += [f"- and {more} files more"] if more > 0 else []
    return fold_details(f"Not read or not run: {len(lines)}", "\n".join(lines)) if lines else ""


def _format_cost(cost: Cost) -> str:
    if cost.calls == 0:
        return "No model was asked."
    return f"{count_noun(cost.calls, 'model call')}, ${cost.usd:.3f}."


def _make_annotation(finding: Finding) -> Annotation:
    return Annotation(
        path=finding.path,
        start_line=finding.start_line,
        end_line=finding.line,
        level=_ANNOTATION_LEVELS[finding.severity],
        title=to_plain_line(finding.title, 250),
        message="\n".join(
            to_plain_line(row) for row in (finding.body.strip() or finding.title).split("\n")
        ),
    )


def _format_evidence(evidence: Evidence) -> str:
    if evidence.kind == "vote":
        return inline_prose(f"{evidence.excerpt.rstrip('.')}.")
    if evidence.kind == "model":
        return fold_details("What a second reader found", sanitize_markdown(evidence.excerpt))
    details = [evidence.command or ""]
    details += [f"on this change: {evidence.head}" if evidence.head else ""]
    details += [f"before it: {evidence.base}" if evidence.base else ""]
    title = f"Evidence ({evidence.kind}): " + "; ".join(s for s in details if s)
    title = title.removesuffix(": ")
    if not evidence.excerpt.strip():
        return inline_prose(title)
    return fold_details(
        title, fence_code(evidence.excerpt, "python" if evidence.kind == "test" else "")
    )


def _format_location(finding: Finding) -> str:
    return code_span(f"{finding.path}:{finding.line}")


def _fence_suggestion(text: str) -> str:
    """The suggestion block that GitHub can commit; its text goes into the file, so no character is changed."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}suggestion\n{text}\n{ticks}"
