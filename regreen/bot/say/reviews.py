"""What a review says: its comments, its text, its check run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from regreen.bot.say.markup import code, counted, flat, folded, foreign, marker, one_line, span
from regreen.errors import Problem
from regreen.forge import Annotation, AnnotationLevel, Button, CheckRun, Conclusion, InlineComment
from regreen.models import Cost, Evidence, Finding, Review, Severity
from regreen.repo_config import CONFIG_PATH, RepoConfig

CHECK_NAME = "Regreen"
BUTTONS = (
    Button("Fix", "Repair what is red, as a draft PR", "fix"),
    Button("Bisect", "Find the commit that broke the tests", "bisect"),
    Button("Dismiss", "Do not raise these findings again", "dismiss"),
)
_EXPLAIN = Button("Explain", "What it changes and what goes wrong", "explain")
_ORDER: tuple[Severity, ...] = ("low", "medium", "high", "critical")
_LEVELS: dict[Severity, AnnotationLevel] = {
    "low": "notice",
    "medium": "warning",
    "high": "warning",
    "critical": "failure",
}


def finding_comment(finding: Finding) -> InlineComment:
    """A finding as an inline comment: the claim, the evidence, the suggestion."""
    parts = [f"**{one_line(finding.title)}**", foreign(finding.body)]
    parts += [_evidence(e) for e in finding.evidence[:3]]
    if finding.suggestion is not None:
        parts.append(_suggested(finding.suggestion.removesuffix("\n")))
    parts.append(
        f"<sub>{finding.severity} · {finding.dimension} · {span(finding.rule)} · "
        f"{finding.confidence:.0%} sure · `/dismiss {finding.id}` if it is wrong</sub>"
    )
    body = "\n\n".join(p for p in parts if p) + "\n\n" + marker("finding", finding.fingerprint)
    return InlineComment(finding.path, finding.start_line, finding.line, finding.side, body)


def review_body(review: Review) -> str:
    """The text of a review that has findings."""
    count = counted(len(review.findings), "finding")
    told = review.summary.removesuffix(f" {count}.")
    parts = [f"**{count}.** {one_line(told)}", _scores(review)]
    overflow = [w.finding for w in review.withheld if w.reason == "budget"]
    if overflow:
        lines = [f"- {_place(f)} {one_line(f.title)} ({f.confidence:.0%})" for f in overflow]
        parts.append(folded(f"{len(overflow)} more, kept back to stay short", "\n".join(lines)))
    parts.append(_left_out(review))
    return "\n\n".join(p for p in parts if p)


def without_lines(review: Review) -> str:
    """A review whose inline comments GitHub did not take: everything in its text."""
    parts = [review_body(review)]
    for finding in review.findings:
        heading = f"### {_place(finding)} {one_line(finding.title)}"
        parts.append(f"{heading}\n\n{foreign(finding.body)}")
    return "\n\n".join(parts)


def review_check(
    review: Review,
    config: RepoConfig,
    *,
    external_id: str,
    details_url: str,
    note: str = "",
    standing: Sequence[Finding] = (),
    gone: int = 0,
) -> CheckRun:
    """The check run of a finished review: success only where everything selected was read, and is clean.

    `standing` was said on an earlier push and still holds; `gone` counts what was said and is mended.
    """
    conclusion = _conclusion(review, config, standing)
    parts = [note, one_line(review.summary), _scores(review), _coverage(review)]
    parts += [_earlier(standing, gone)]
    parts += [_list_of_findings(review.findings), _left_out(review), _cost(review.cost)]
    return CheckRun(
        name=CHECK_NAME,
        head_sha=review.head,
        external_id=external_id,
        title=_check_title(review, conclusion, len(standing)),
        summary="\n\n".join(p for p in parts if p),
        conclusion="neutral" if note and conclusion == "success" else conclusion,
        annotations=tuple(_annotation(f) for f in review.findings if f.side == "RIGHT"),
        buttons=_buttons((*review.findings, *standing)),
        details_url=details_url,
    )


def _buttons(findings: Sequence[Finding]) -> tuple[Button, ...]:
    """GitHub takes three: where a model found something it can explain it, and no test need be red to bisect."""
    if not findings:
        return ()
    by_model = any(f.rule.startswith("model/") for f in findings)
    fix, bisect, dismiss = BUTTONS
    return (fix, _EXPLAIN if by_model else bisect, dismiss)


def reviewing(head_sha: str, external_id: str, details_url: str) -> CheckRun:
    """The check run while a review runs."""
    return CheckRun(
        name=CHECK_NAME,
        head_sha=head_sha,
        external_id=external_id,
        title="Reading the change",
        summary="The review is on its way.",
        details_url=details_url,
    )


def not_reviewed(head_sha: str, external_id: str, title: str, reason: str) -> CheckRun:
    """The check run of a review that did not happen. Never green."""
    return CheckRun(
        name=CHECK_NAME,
        head_sha=head_sha,
        external_id=external_id,
        title=title,
        summary=reason,
        conclusion="neutral",
    )


def passed_in_queue(head_sha: str, external_id: str) -> CheckRun:
    """The check run on a merge group: its pull requests were reviewed one by one."""
    return CheckRun(
        name=CHECK_NAME,
        head_sha=head_sha,
        external_id=external_id,
        title="Reviewed in its pull requests",
        summary="Each pull request of this merge group has its own review.",
        conclusion="success",
    )


def broken_config(problems: Sequence[Problem]) -> str:
    """What is wrong with the configuration, line by line."""
    lines = [f"- line {p.line}: {span(p.key or 'file')}: {one_line(p.message)}" for p in problems]
    head = f"`{CONFIG_PATH}` on the default branch cannot be used:"
    tail = "Check it before pushing with `regreen config check`."
    return "\n".join([head, "", *lines, "", tail])


def _conclusion(review: Review, config: RepoConfig, standing: Sequence[Finding]) -> Conclusion:
    if is_blocked(review, config, standing):
        return "failure"
    everything_read = not review.not_reviewed and not review.skipped
    return "success" if everything_read and not (review.findings or standing) else "neutral"


def is_blocked(review: Review, config: RepoConfig, standing: Sequence[Finding] = ()) -> bool:
    """Whether a finding is grave enough for what this repository wants blocked."""
    wanted = config.review.blocking
    if wanted == "none":
        return False
    least = _ORDER.index(wanted)
    return any(
        f.blocking or _ORDER.index(f.severity) >= least for f in (*review.findings, *standing)
    )


def _check_title(review: Review, conclusion: Conclusion, standing: int) -> str:
    if review.findings:
        worst = max(review.findings, key=lambda f: _ORDER.index(f.severity)).severity
        return f"{counted(len(review.findings), 'finding')}, the worst is {worst}"
    if standing:
        return f"Nothing new; {counted(standing, 'earlier finding')} not mended"
    if conclusion == "success":
        return "Nothing to say"
    names = [s.reviewer for s in review.skipped] + [u.path for u in review.not_reviewed]
    return f"Nothing found; not everything was read ({', '.join(names[:3])})"[:250]


def _earlier(standing: Sequence[Finding], gone: int) -> str:
    """What became of the findings of earlier pushes."""
    parts = [f"Mended since: {counted(gone, 'earlier finding')}."] if gone else []
    if standing:
        parts.append(f"Said before, and still there:\n\n{_list_of_findings(standing)}")
    return "\n\n".join(parts)


def _scores(review: Review) -> str:
    known = [f"{name} {value}" for name, value in review.scores.items() if value is not None]
    return f"Scores: {' · '.join(known)} · risk {review.risk}" if known else ""


def _coverage(review: Review) -> str:
    report = review.coverage
    if report is None or report.new_lines == 0:
        return ""
    text = f"The tests run {report.covered} of {report.new_lines} new lines."
    missed = [f"{span(u.path)}: {_ranges(u.lines)}" for u in report.uncovered[:10]]
    return text + (" Not run: " + "; ".join(missed) if missed else "")


def _ranges(lines: Sequence[int]) -> str:
    spans: list[list[int]] = []
    for line in sorted(lines):
        if spans and line == spans[-1][1] + 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    shown = [f"{a}" if a == b else f"{a}-{b}" for a, b in spans[:20]]
    return ", ".join(shown) + (", …" if len(spans) > 20 else "")


def _list_of_findings(findings: Iterable[Finding]) -> str:
    lines = [
        f"- **{f.severity}** {_place(f)} {one_line(f.title)} ({f.confidence:.0%}, `{f.id}`)"
        for f in findings
    ]
    return "\n".join(lines)


def _left_out(review: Review) -> str:
    lines = [f"- {span(u.path)}: {one_line(u.reason)}" for u in review.not_reviewed[:50]]
    lines += [f"- {s.reviewer}: {one_line(s.reason)}" for s in review.skipped]
    more = len(review.not_reviewed) - 50
    lines += [f"- and {more} files more"] if more > 0 else []
    return folded(f"Not read or not run: {len(lines)}", "\n".join(lines)) if lines else ""


def _cost(cost: Cost) -> str:
    if cost.calls == 0:
        return "No model was asked."
    return f"{counted(cost.calls, 'model call')}, ${cost.usd:.3f}."


def _annotation(finding: Finding) -> Annotation:
    return Annotation(
        path=finding.path,
        start_line=finding.start_line,
        end_line=finding.line,
        level=_LEVELS[finding.severity],
        title=flat(finding.title, 250),
        message="\n".join(flat(row) for row in (finding.body.strip() or finding.title).split("\n")),
    )


def _evidence(evidence: Evidence) -> str:
    if evidence.kind == "vote":
        return one_line(f"{evidence.excerpt.rstrip('.')}.")
    if evidence.kind == "model":
        return folded("What a second reader found", foreign(evidence.excerpt))
    seen = [evidence.command or ""]
    seen += [f"on this change: {evidence.head}" if evidence.head else ""]
    seen += [f"before it: {evidence.base}" if evidence.base else ""]
    title = f"Evidence ({evidence.kind}): " + "; ".join(s for s in seen if s)
    title = title.removesuffix(": ")
    if not evidence.excerpt.strip():
        return one_line(title)
    return folded(title, code(evidence.excerpt, "python" if evidence.kind == "test" else ""))


def _place(finding: Finding) -> str:
    return span(f"{finding.path}:{finding.line}")


def _suggested(text: str) -> str:
    """The fence that GitHub can commit; the text is the file's to be, so not a letter of it is changed."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}suggestion\n{text}\n{ticks}"
