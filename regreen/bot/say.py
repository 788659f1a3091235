"""Every sentence that people read on GitHub: pure functions from what was found to Markdown."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from regreen.fixers.case import Fix
from regreen.forge import Annotation, AnnotationLevel, Button, CheckRun, Conclusion, InlineComment
from regreen.models import Cost, Evidence, Finding, Review, Severity
from regreen.settings import CONFIG_PATH, Problem, RepoConfig

CHECK_NAME = "Regreen"
BUTTONS = (
    Button("Fix", "Repair what is red, as a draft PR", "fix"),
    Button("Bisect", "Find the commit that broke the tests", "bisect"),
    Button("Dismiss", "Do not raise these findings again", "dismiss"),
)
_ORDER: tuple[Severity, ...] = ("low", "medium", "high", "critical")
_LEVELS: dict[Severity, AnnotationLevel] = {
    "low": "notice",
    "medium": "warning",
    "high": "warning",
    "critical": "failure",
}
_EXCERPT = 1500


# Markers: how we find again what we wrote. GitHub shows none of them.


def marker(*parts: object) -> str:
    """A hidden mark for one thing we write, so that it is written once."""
    joined = ":".join(str(p).replace("--", "~~").replace(">", "") for p in parts)
    return f"<!-- regreen:{joined} -->"


# Reviews


def finding_comment(finding: Finding) -> InlineComment:
    """A finding as an inline comment: the claim, the evidence, the suggestion."""
    parts = [f"**{_line(finding.title)}**", finding.body.strip()]
    parts += [_evidence(e) for e in finding.evidence[:2]]
    if finding.suggestion is not None:
        fence = _fence(finding.suggestion)
        text = finding.suggestion.removesuffix("\n")
        parts.append(f"{fence}suggestion\n{text}\n{fence}")
    parts.append(
        f"<sub>{finding.severity} · {finding.dimension} · `{_line(finding.rule)}` · "
        f"{finding.confidence:.0%} sure · `/dismiss {finding.id}` if it is wrong</sub>"
    )
    body = "\n\n".join(p for p in parts if p) + "\n\n" + marker("finding", finding.fingerprint)
    return InlineComment(finding.path, finding.start_line, finding.line, finding.side, body)


def review_body(review: Review) -> str:
    """The text of a review that has findings."""
    count = _count(len(review.findings), "finding")
    parts = [f"**{count}.** {_line(review.summary)}", _scores(review)]
    overflow = [w.finding for w in review.withheld if w.reason == "budget"]
    if overflow:
        lines = [f"- `{f.path}:{f.line}` {_line(f.title)} ({f.confidence:.0%})" for f in overflow]
        parts.append(_details(f"{len(overflow)} more, kept back to stay short", "\n".join(lines)))
    parts.append(_left_out(review))
    return "\n\n".join(p for p in parts if p)


def without_lines(review: Review) -> str:
    """A review whose inline comments GitHub did not take: everything in its text."""
    parts = [review_body(review)]
    for finding in review.findings:
        place = f"`{finding.path}:{finding.line}`"
        parts.append(f"### {place} {_line(finding.title)}\n\n{finding.body.strip()}")
    return "\n\n".join(parts)


def review_check(
    review: Review, config: RepoConfig, *, external_id: str, details_url: str, note: str = ""
) -> CheckRun:
    """The check run of a finished review: success only where everything selected was read, and is clean."""
    conclusion = _conclusion(review, config)
    parts = [note, review.summary.strip(), _scores(review), _coverage(review)]
    parts += [_list_of_findings(review.findings), _left_out(review), _cost(review.cost)]
    return CheckRun(
        name=CHECK_NAME,
        head_sha=review.head,
        external_id=external_id,
        title=_check_title(review, conclusion),
        summary="\n\n".join(p for p in parts if p),
        conclusion="neutral" if note and conclusion == "success" else conclusion,
        annotations=tuple(_annotation(f) for f in review.findings if f.side == "RIGHT"),
        buttons=BUTTONS if review.findings else (),
        details_url=details_url,
    )


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
    lines = [f"- line {p.line}: `{_line(p.key) or 'file'}`: {_line(p.message)}" for p in problems]
    head = f"`{CONFIG_PATH}` on the default branch cannot be used:"
    tail = "Check it before pushing with `regreen config check`."
    return "\n".join([head, "", *lines, "", tail])


def _conclusion(review: Review, config: RepoConfig) -> Conclusion:
    if is_blocked(review, config):
        return "failure"
    everything_read = not review.not_reviewed and not review.skipped
    return "success" if everything_read and not review.findings else "neutral"


def is_blocked(review: Review, config: RepoConfig) -> bool:
    """Whether a finding is grave enough for what this repository wants blocked."""
    wanted = config.review.blocking
    if wanted == "none":
        return False
    least = _ORDER.index(wanted)
    return any(f.blocking or _ORDER.index(f.severity) >= least for f in review.findings)


def _check_title(review: Review, conclusion: Conclusion) -> str:
    if review.findings:
        worst = max(review.findings, key=lambda f: _ORDER.index(f.severity)).severity
        return f"{_count(len(review.findings), 'finding')}, the worst is {worst}"
    if conclusion == "success":
        return "Nothing to say"
    names = [s.reviewer for s in review.skipped] + [u.path for u in review.not_reviewed]
    return f"Nothing found; not everything was read ({', '.join(names[:3])})"[:250]


def _scores(review: Review) -> str:
    known = [f"{name} {value}" for name, value in review.scores.items() if value is not None]
    return f"Scores: {' · '.join(known)} · risk {review.risk}" if known else ""


def _coverage(review: Review) -> str:
    report = review.coverage
    if report is None or report.new_lines == 0:
        return ""
    text = f"The tests run {report.covered} of {report.new_lines} new lines."
    missed = [f"`{u.path}`: {_ranges(u.lines)}" for u in report.uncovered[:10]]
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
        f"- **{f.severity}** `{f.path}:{f.line}` {_line(f.title)} ({f.confidence:.0%}, `{f.id}`)"
        for f in findings
    ]
    return "\n".join(lines)


def _left_out(review: Review) -> str:
    lines = [f"- `{u.path}`: {_line(u.reason)}" for u in review.not_reviewed[:50]]
    lines += [f"- {s.reviewer}: {_line(s.reason)}" for s in review.skipped]
    more = len(review.not_reviewed) - 50
    lines += [f"- and {more} files more"] if more > 0 else []
    return _details(f"Not read or not run: {len(lines)}", "\n".join(lines)) if lines else ""


def _cost(cost: Cost) -> str:
    if cost.calls == 0:
        return "No model was asked."
    return f"{_count(cost.calls, 'model call')}, ${cost.usd:.3f}."


def _annotation(finding: Finding) -> Annotation:
    return Annotation(
        path=finding.path,
        start_line=finding.start_line,
        end_line=finding.line,
        level=_LEVELS[finding.severity],
        title=_line(finding.title)[:255],
        message=finding.body.strip() or finding.title,
    )


def _evidence(evidence: Evidence) -> str:
    seen = [f"`{_line(evidence.command)}`" if evidence.command else ""]
    seen += [f"on this change: {_line(evidence.head)}" if evidence.head else ""]
    seen += [f"before it: {_line(evidence.base)}" if evidence.base else ""]
    title = f"Evidence ({evidence.kind}): " + "; ".join(s for s in seen if s)
    title = title.removesuffix(": ")
    if not evidence.excerpt.strip():
        return title
    return _details(title, code(evidence.excerpt))


# Plain pieces


def code(text: str, language: str = "", limit: int = _EXCERPT) -> str:
    """Text in a code fence that nothing inside can close."""
    cut = text if len(text) <= limit else text[:limit] + "\n…"
    fence = _fence(cut)
    return f"{fence}{language}\n{cut.strip(chr(10))}\n{fence}"


def _fence(text: str) -> str:
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return "`" * max(3, longest + 1)


def _line(text: str) -> str:
    """One line that can be no markup of ours: no newline, no comment, no mention that pings."""
    flat = " ".join(text.split())
    return flat.replace("<!--", "&lt;!--").replace("@", "@\u200b")


def _details(title: str, inner: str) -> str:
    shown = html.escape(title, quote=False)
    return f"<details><summary>{shown}</summary>\n\n{inner}\n\n</details>"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# Commands


def refused(login: str, allow: str) -> str:
    """Somebody may not give commands here."""
    return f"@{login}, only people with {allow} access may do that."


def too_many(login: str) -> str:
    """Somebody gives more commands than one person needs."""
    return f"@{login}, that is more than 30 commands in an hour; go on a little later."


def unclear(problem: str) -> str:
    """A command that cannot be read."""
    return f"That is not clear: {problem}"


def help_text(usage: Iterable[str], prefix: str) -> str:
    """What can be asked for."""
    lines = [f"- `{prefix}{_line(u)}`" for u in usage]
    return "\n".join(["What I understand:", "", *lines])


def cancelled(count: int) -> str:
    """What `/cancel` did."""
    return f"Stopped {_count(count, 'job')}." if count else "Nothing is running or waiting here."


def nothing_to_retry() -> str:
    """`/retry` where nothing failed."""
    return "Nothing here has failed or was cancelled."


def retried(kind: str) -> str:
    """`/retry` put a job back."""
    return f"Trying the {kind} again."


def no_model(what: str) -> str:
    """A command that only a model can obey, where there is none."""
    return (
        f"{what} needs a language model, and this Regreen has none: its operator has not set "
        "`ANTHROPIC_API_KEY` or `ANTHROPIC_BASE_URL`. `/review`, `/fix` and `/bisect` work without."
    )


def dismissed(title: str) -> str:
    """A finding was turned down."""
    return f"Dismissed: {_line(title)}. It will not be raised again."


def unknown_finding(wanted: str, known: Sequence[str]) -> str:
    """`/dismiss` with an id that is none of ours."""
    if not known:
        return "There is no finding here to dismiss."
    listed = ", ".join(f"`{k}`" for k in known[:20])
    asked = f"There is no finding `{_line(wanted)[:40]}`" if wanted else "Which finding?"
    return f"{asked}; here are: {listed}."


def on_it(what: str) -> str:
    """The first words of an answer that will be edited."""
    return f"On it: {what}."


def failed(reason: str, job: str) -> str:
    """A job that ended badly, in one sentence."""
    return f"That did not work: {_line(reason)}. (job `{job}`)"


def was_cancelled() -> str:
    """A job somebody stopped."""
    return "Stopped."


def config_shown(yaml: str, source: str, problems: Sequence[Problem]) -> str:
    """The configuration in force, and where it comes from."""
    where = {
        "repository": f"`{CONFIG_PATH}` on the default branch",
        "organisation": f"`{CONFIG_PATH}` of the organisation's `.github` repository",
        "defaults": "the defaults; the repository has no file of its own",
        "last valid": "the last valid file; the present one cannot be read",
    }[source]
    parts = [f"In force here, from {where}:", code(yaml, "yaml", 20_000)]
    parts += [broken_config(problems)] if problems else []
    return "\n\n".join(parts)


def nothing_to_approve() -> str:
    """`/approve` where nothing waits for it."""
    return "Nothing here waits for an approval."


def fork_approved(sha: str) -> str:
    """`/approve` on a fork's pull request."""
    return f"Approved: the tests of `{sha[:12]}` may be run in the sandbox. Reviewing again."


# Repairs


def fix_title(check: str, found: Fix) -> str:
    """The title of a patch pull request, and its commit's subject: at most 72 characters."""
    test = found.before.failures[0].test if found.before.failures else check
    title = f"Make {_line(test) or 'the check'} pass again".replace("\u200b", "")
    return title if len(title) <= 72 else title[:71] + "…"


def fix_body(found: Fix, step: str, url: str, report: str) -> str:
    """The body of a patch pull request: what was red, the proof, and what a reader should do."""
    red = f"[{_line(step)}]({url})" if url else f"`{_line(step)}`"
    head = f"{red} failed. This patch makes it pass; nothing was merged, and a person decides."
    return "\n\n".join([head, report, marker("fix", found.rung or "none")])


def fix_opened(number: int, cause: str) -> str:
    """Where the patch is."""
    tail = f" Cause: {_line(cause)}" if cause else ""
    return f"A verified patch is in #{number}, as a draft.{tail}"


def fix_waits(report: str) -> str:
    """A patch that only a person may let through."""
    return f"A patch works, and needs your approval: `/approve` opens it as a draft.\n\n{report}"


def no_fix(step: str, report: str) -> str:
    """No patch, and why."""
    return f"No patch for `{_line(step)}`.\n\n{report}"


# Bisections


def bisected(report: str) -> str:
    """What a bisection found out."""
    return report


def regression_title(branch: str, subject: str | None) -> str:
    """The title of a regression's issue."""
    if subject is None:
        return f"{_line(branch)} is red"
    return f"{_line(branch)} is red since “{_line(subject)[:120]}”"


def regression_body(schedule: str, test: str, report: str) -> str:
    """A regression's issue: what failed, and the commit that broke it."""
    head = f"The schedule `{_line(schedule)}` found this test failing:"
    tail = "This issue is closed by itself when the test passes again."
    return "\n\n".join([head, code(test, "sh"), report, tail])


def green_again(schedule: str, sha: str) -> str:
    """A regression is over."""
    return f"Green again at {sha[:12]}: the schedule `{_line(schedule)}` passes."


def needless_fix(branch: str, sha: str) -> str:
    """A draft of ours that is not needed any more."""
    return f"`{_line(branch)}` is green again at {sha[:12]} without this patch: closing it."


# Answers of a model


def answered(text: str, cost: Cost) -> str:
    """A model's answer, with nothing in it that pings people or hides."""
    tame = text.replace("<!--", "&lt;!--").replace("@", "@\u200b").strip()
    return f"{tame}\n\n<sub>A model's answer, from this page alone · ${cost.usd:.3f}</sub>"


def proposed_test(path: str, source: str, why: str, command: str) -> str:
    """A test that was run."""
    parts = [f"A test for this change: {_line(why)}", f"`{_line(path)}`:"]
    parts += [
        code(source, "python", 20_000),
        f"It was run in the sandbox and passes: `{_line(command)}`.",
    ]
    return "\n\n".join(parts)


def no_test(rounds: int) -> str:
    """No test came out."""
    return f"No test came out of {_count(rounds, 'attempt')} that passes on this change."
