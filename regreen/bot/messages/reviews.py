"""The texts of a review: comments, body, check run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import quote

from regreen.bot.messages.markup import (
    add_verdict,
    code_span,
    count_noun,
    explain_neutral,
    fence_code,
    fold_details,
    format_time,
    inline_prose,
    make_marker,
    sanitize_markdown,
    strip_markdown,
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
    FileComment,
    InlineComment,
    after_fetch,
)
from regreen.domain.models import DIMENSIONS, Evidence, Finding, Review, Severity
from regreen.domain.repo_config import CONFIG_PATH, RepoConfig
from regreen.domain.state_records import Dismissal, PostedFinding
from regreen.environment.preparation import render_environment
from regreen.reviewers.summary import (
    describe_coverage,
    describe_grave_doubts,
    describe_on_base,
    describe_open,
    describe_result,
    find_worst,
    list_all_findings,
    list_over_budget,
    list_unreviewed,
)
from regreen.secrets.markdown_sanitizer import (
    describe_confidence,
    format_line_ranges,
    group_lines,
)

CHECK_NAME = "Regreen"
_FIX_BUTTON = Button("Fix", "Repair the failing tests, as a draft PR", "fix")
_BISECT_BUTTON = Button("Bisect", "Find the commit that broke the tests", "bisect")
_EXPLAIN_BUTTON = Button("Explain", "What it changes and what goes wrong", "explain")
_SEVERITY_ORDER: tuple[Severity, ...] = ("low", "medium", "high", "critical")
_MAX_FILE_THREADS = 5
_MAX_FIXED = 5
_MAX_UNCOVERED_FILES = 10
_ANNOTATION_LEVELS: dict[Severity, AnnotationLevel] = {
    "low": "notice",
    "medium": "warning",
    "high": "warning",
    "critical": "failure",
}


@dataclass(frozen=True, slots=True)
class FixedFinding:
    """A finding of an earlier push that is gone, as its thread names it."""

    id: str
    path: str
    title: str


def finding_comment(finding: Finding, reproduce: str = "") -> InlineComment:
    """A finding as an inline comment: the claim, the evidence, the suggestion, and the command that finds it again."""
    title = f"**{finding.severity.capitalize()}: {inline_prose(finding.title)}**"
    parts = [title, sanitize_markdown(finding.body)]
    parts += [_format_evidence(e) for e in finding.evidence[:3]]
    if finding.suggestion is not None:
        parts.append(_fence_suggestion(finding.suggestion.removesuffix("\n")))
    facts = (
        "" if finding.rule.startswith(f"{finding.dimension}/") else finding.dimension,
        code_span(finding.rule),
        describe_confidence(finding.confidence),
        f"wrong? `/dismiss {finding.id}`",
        f"reproduce: {code_span(reproduce)}" if reproduce else "",
    )
    parts.append(f"<sub>{' · '.join(filter(None, facts))}</sub>")
    body = "\n\n".join(p for p in parts if p) + "\n\n" + make_marker("finding", finding.fingerprint)
    return InlineComment(finding.path, finding.start_line, finding.line, finding.side, body)


def overflow_comments(review: Review, reproduce: str = "") -> list[tuple[Finding, FileComment]]:
    """The findings over the budget of inline comments, each as a thread on its file, worst first; at most five."""
    comments = []
    for finding in list_over_budget(review.withheld)[:_MAX_FILE_THREADS]:
        marker = make_marker("finding", finding.fingerprint)
        body = finding_comment(finding, reproduce).body.removesuffix(marker).rstrip()
        text = f"{_format_location(finding)}\n\n{body}"
        comments.append((finding, FileComment(finding.path, marker, text)))
    return comments


def reproduce_review(review: Review, fetch: str = "") -> str:
    """The command that makes the same review in a clone of the repository; `fetch` brings a fork's commits there."""
    if not review.head:
        return ""
    tests = " --run-tests" if review.tests or review.coverage else ""
    again = f"regreen review --base {review.merge_base[:12]} --head {review.head[:12]}{tests}"
    return after_fetch(fetch, again)


def review_body(
    review: Review,
    details_url: str = "",
    web: str = "",
    *,
    is_first: bool = True,
    fetch: str = "",
) -> str:
    """The text of a review that has findings: the worst, the list of all, then folded statistics.

    `web` is the address of the repository, for links to lines. Not `is_first`: an earlier review described the change,
    and the check run has the present numbers, so only what is new is said.
    """
    lead, about, reading = _split_summary(review)
    parts = [f"**{inline_prose(lead)}**", inline_prose(about) if is_first else ""]
    parts += _describe_failing_tests(review)
    parts.append(_list_findings(list_all_findings(review)))
    if list_over_budget(review.withheld):
        listed = len(list_over_budget(review.withheld)) - _MAX_FILE_THREADS
        threads = f"{min(len(list_over_budget(review.withheld)), _MAX_FILE_THREADS)} in threads on their files"
        rest = f", {listed} in this list only" if listed > 0 else ""
        parts.append(f"Beyond the limit of comments on lines: {threads}{rest}.")
    if is_first:
        cost = review.cost.describe(review.seconds)
        parts += [_format_coverage(review, web), _fold_walkthrough(review)]
        parts += [_format_scores(review, reading, cost), _list_unreviewed(review)]
    more = [f"[every detail]({details_url})"] if details_url else []
    command = reproduce_review(review, fetch)
    more += ["`/help` lists the commands"]
    more += [f"reproduce: {code_span(command)}"] if command else []
    parts.append(f"<sub>{' · '.join(more)}</sub>")
    return "\n\n".join(p for p in parts if p)


def _split_summary(review: Review) -> tuple[str, str, str]:
    """The result, what the change does ("" where no model said it), and what was read."""
    lead, *rest = review.summary.split("\n\n")
    return lead, " ".join(rest[:-1]), "".join(rest[-1:])


def review_without_comments(review: Review, web: str = "", fetch: str = "") -> str:
    """A review whose inline comments GitHub rejected: all findings in the body."""
    parts = []
    for finding in review.findings:
        heading = f"### {_format_location(finding)} {inline_prose(finding.title)}"
        parts.append(f"{heading}\n\n{sanitize_markdown(finding.body)}")
    return "\n\n".join([*parts, review_body(review, web=web, fetch=fetch)])


def review_check(
    review: Review,
    config: RepoConfig,
    *,
    external_id: str,
    details_url: str,
    note: str = "",
    problems: Sequence[ConfigProblem] = (),
    standing: Sequence[Finding] = (),
    fixed: Sequence[FixedFinding] = (),
    dismissed: Mapping[str, Dismissal] = {},
    author: str = "",
    web: str = "",
    waits_for_approval: bool = False,
    fetch: str = "",
) -> CheckRun:
    """The check run of a finished review: success only if everything selected was read and has no finding.

    `problems` are the faults of the repository's configuration; `standing` was posted for an earlier push and still
    holds; `fixed` are posted findings that are gone; `dismissed` holds what somebody dismissed, by fingerprint; `author`
    wrote the change; `web` is the address of the repository; `waits_for_approval`: it is a fork's commit that nobody has
    approved; `fetch` brings a fork's commits to a clone. What was dismissed and still holds is no finding any more, and is named with who dismissed it, at
    every head.
    """
    broken = describe_unusable_config(problems, has_valid=True) if problems else ""
    waits = (
        "**Tests not run: this is a fork's commit.** Nothing of it runs before a person with write access has read it: "
        f"then write `/approve` here, and it is reviewed again with its tests ({code_span(review.head[:12])})."
        if waits_for_approval
        else ""
    )
    note = "\n\n".join(n for n in (broken, note) if n)
    found = list_all_findings(review)
    ruled_out = [f for f in (*found, *standing) if f.fingerprint in dismissed]
    review = replace(
        review,
        findings=tuple(f for f in found if f.fingerprint not in dismissed),
        withheld=tuple(w for w in review.withheld if w.reason != "budget"),
        # of a fork's commit, the title says it once
        skipped=tuple(
            replace(s, tests_not_run=s.tests_not_run and not waits) for s in review.skipped
        ),
    )
    standing = [f for f in standing if f.fingerprint not in dismissed]
    conclusion = _conclude_review(review, config, standing)
    lead, about, reading = _split_summary(review)
    lead = (
        describe_result(
            review.findings, len(standing), review.tests, review.withheld, review.skipped
        )
        if ruled_out or standing
        else lead
    )
    if ruled_out:
        lead = lead.replace("No findings", "No open findings")
    parts = [note, f"**{inline_prose(lead)}**", waits, inline_prose(about)]
    parts += _describe_failing_tests(review)
    parts += [_list_findings(review.findings), _describe_earlier_findings(standing, fixed)]
    if ruled_out:
        ends = {
            f.fingerprint: _describe_dismissal(dismissed[f.fingerprint], author) for f in ruled_out
        }
        rows = _list_findings(ruled_out, ends)
        parts.append(f"Dismissed, and still counted in the statistics:\n\n{rows}")
    command = reproduce_review(review, fetch)
    parts += [
        _format_coverage(review, web),
        _fold_walkthrough(review),
        _format_scores(review, reading),
        _list_unreviewed(review),
        render_environment(review.environment),
        review.cost.describe(review.seconds),
        _explain_neutral(review, config, standing) if conclusion == "neutral" else "",
        _explain_failure(review, config, standing) if conclusion == "failure" else "",
        f"Reproduce: {code_span(command)}" if command else "",
    ]
    check = CheckRun(
        name=CHECK_NAME,
        head_sha=review.head,
        external_id=external_id,
        title=to_plain_line(
            (f"{name_config_problem(problems)}; " if problems else "")
            + ("Tests not run: approve this fork's commit; " if waits and not review.gaps else "")
            + _check_title(review, standing, _name_dismissals(ruled_out, dismissed, author))
            + ("; tests not run: approve this fork's commit" if waits and review.gaps else ""),
            250,
        ),
        summary="\n\n".join(p for p in parts if p),
        conclusion="neutral" if note and conclusion == "success" else conclusion,
        annotations=tuple(_make_annotation(f) for f in review.findings if f.side == "RIGHT"),
        buttons=_choose_buttons(review, standing),
        details_url=details_url,
    )
    everything = (*review.findings, *standing)
    tests = review.tests
    return add_verdict(
        check,
        _name_verdict(review, config, standing),
        conclusion=check.conclusion,
        findings=len(review.findings),
        still_open=len(standing),
        fixed=len(fixed),
        dismissed=len(ruled_out),
        worst=find_worst(everything).severity if everything else None,
        tests=None if tests is None else "passed" if tests.passed else "failed",
        not_reviewed=list(review.gaps[:20]),
    )


def _describe_dismissal(dismissal: Dismissal, author: str) -> str:
    """Who dismissed a finding, whether it is of their own change, and why."""
    own = ", the author of this change" if author and dismissal.login == author else ""
    why = inline_prose(dismissal.reason, 200) or "no reason was given"
    day = f"{',' if own else ''} on {dismissal.at:%Y-%m-%d}" if dismissal.stored else ""
    who = f" by {code_span(dismissal.login)}" if dismissal.login else ""
    return f"; dismissed{who}{own}{day}: {why}"


def _name_dismissals(
    ruled_out: Sequence[Finding], dismissed: Mapping[str, Dismissal], author: str
) -> str:
    """What each person dismissed, for the title."""
    by_login: dict[str, list[Finding]] = {}
    for finding in ruled_out:
        by_login.setdefault(dismissed[finding.fingerprint].login, []).append(finding)
    parts = []
    for login, theirs in by_login.items():
        number = f"1 {theirs[0].severity}" if len(theirs) == 1 else str(len(theirs))
        who = f"{login}, the author of the change" if author and login == author else login
        worst = "" if len(theirs) == 1 else ", worst is " + find_worst(theirs).severity
        parts.append(f"{number} dismissed{f' by {who}' if who else ''}{worst}")
    return "; ".join(parts)


def name_config_problem(problems: Sequence[ConfigProblem]) -> str:
    """That the repository's configuration cannot be used, and its first fault; "" without any."""
    if not problems:
        return ""
    first = problems[0]
    more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    fault = f"line {first.line}: {first.key or 'file'}: {first.message[:80]}"
    return f"{CONFIG_PATH} cannot be used ({fault}{more})"


def _name_verdict(review: Review, config: RepoConfig, standing: Sequence[Finding]) -> str:
    if is_blocked(review, config, standing):
        return "blocked"
    if review.tests is not None and not review.tests.passed:
        return "tests_fail"
    if review.findings or standing:
        return "findings"
    return "not_reviewed" if review.gaps else "no_findings"


def _choose_buttons(review: Review, standing: Sequence[Finding]) -> tuple[Button, ...]:
    """The buttons that apply: repairing and bisecting need a failing test, explaining a model's finding."""
    tests = review.tests
    failing = tests is not None and not (tests.passed or tests.fails_without_change)
    by_model = any(f.rule.startswith("model/") for f in (*review.findings, *standing))
    return (
        *((_FIX_BUTTON, _BISECT_BUTTON) if failing else ()),
        *((_EXPLAIN_BUTTON,) if by_model else ()),
    )


def _first_line(summary: str) -> str:
    """A failure's first line, with the next one where it only announces it; what follows is a diff or a hint."""
    first, _, rest = summary.strip().partition("\n")
    return f"{first} {rest.strip().partition(chr(10))[0]}" if first.endswith(":") else first


def _describe_failing_tests(review: Review) -> list[str]:
    """What fails, with each test's message."""
    tests = review.tests
    if tests is None or tests.passed:
        return []
    rows = [
        f"- {code_span(f.test)} {inline_prose(_first_line(f.summary), 300)}"
        + describe_on_base(f.test, tests.fail_on_base, tests.others_on_base)
        for f in tests.failures[:10]
        if f.test
    ]
    more = len(tests.failures) - 10
    rows += [f"- and {more} more"] if more > 0 else []
    there = describe_on_base("", tests.fail_on_base, tests.others_on_base) if not rows else ""
    head = (
        f"{code_span(tests.command)} ends with exit code {tests.exit_code} at this commit{there}."
    )
    if tests.fails_without_change:
        head += " What fails here fails at the merge base too, so it lowers no score; `/why` says since when."
    else:
        head += " `/why` says whose failure it is."
    return ["\n".join([head, "", *rows]) if rows else head]


def review_started_check(
    head_sha: str, external_id: str, details_url: str, *, began: datetime, until: datetime
) -> CheckRun:
    """The check run of a running review, which should end by `until`: a server that is down cannot say so itself."""
    late = "If this text is still here later, Regreen is probably not running: see *While Regreen is down* in Regreen's documentation."
    return CheckRun(
        name=CHECK_NAME,
        head_sha=head_sha,
        external_id=external_id,
        title="Review in progress",
        summary=f"Began on {format_time(began)}. The result should replace this text by {format_time(until)}. {late}",
        details_url=details_url,
    )


def skipped_review_check(head_sha: str, external_id: str, title: str, reason: str) -> CheckRun:
    """The check run of a review that was not made, for the reason of its title. Never success."""
    check = CheckRun(
        name=CHECK_NAME,
        head_sha=head_sha,
        external_id=external_id,
        title=f"Not reviewed: {title}",
        summary=reason,
        conclusion="neutral",
    )
    return add_verdict(check, "not_reviewed", reason=title)


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
    check = CheckRun(CHECK_NAME, head_sha, external_id, title[:250], summary, conclusion)
    verdict = "not_reviewed" if missing or not queued else conclusion
    return add_verdict(check, verdict, pulls={str(q.number): q.review for q in queued})


def describe_unusable_config(problems: Sequence[ConfigProblem], *, has_valid: bool) -> str:
    """The faults of the configuration, line by line, and what holds instead; `has_valid`: an earlier file does."""
    lines = [
        f"- line {p.line}: {code_span(p.key or 'file')}: {inline_prose(p.message)}"
        for p in problems
    ]
    head = f"`{CONFIG_PATH}` on the default branch cannot be used:"
    used = (
        "the last valid file is in force"
        if has_valid
        else "no valid file is known, so nothing is reviewed"
    )
    tail = f"Until it is repaired, {used}. Check it before pushing with `regreen config check`."
    return "\n".join([head, "", *lines, "", tail])


def _conclude_review(review: Review, config: RepoConfig, standing: Sequence[Finding]) -> Conclusion:
    if is_blocked(review, config, standing):
        return "failure"
    if review.tests is not None and not review.tests.passed:
        return "neutral"
    return "neutral" if review.gaps or review.findings or standing else "success"


def _explain_neutral(review: Review, config: RepoConfig, standing: Sequence[Finding]) -> str:
    found = (*review.findings, *standing)
    if review.tests is not None and not review.tests.passed:
        why = "failing tests are for the project's own CI to block"
    elif all(review_settings(config, f.path).blocking == "none" for f in found) and found:
        why = "`review.blocking` is `none`, so no finding blocks a merge"
    elif found:
        why = "no finding here is as severe as `review.blocking` asks for"
    else:
        why = "not everything that should be reviewed was"
    return explain_neutral(why)


def _explain_failure(review: Review, config: RepoConfig, standing: Sequence[Finding]) -> str:
    """The sentence that says what blocks, and what to do."""
    blocking = [f for f in (*review.findings, *standing) if _blocks(f, config)]
    return (
        f"This check fails because {count_noun(len(blocking), 'finding')} block{'s' if len(blocking) == 1 else ''}, by "
        "`review.blocking` or a rule of the repository: fix what is named above, or `/dismiss ID` with a reason."
    )


def is_blocked(review: Review, config: RepoConfig, standing: Sequence[Finding] = ()) -> bool:
    """Whether a finding is severe enough to block, by the repository's configuration."""
    return any(_blocks(f, config) for f in (*review.findings, *standing))


def _blocks(finding: Finding, config: RepoConfig) -> bool:
    return finding.blocking or _is_severe(finding, config)


def _is_severe(finding: Finding, config: RepoConfig) -> bool:
    wanted = review_settings(config, finding.path).blocking
    if wanted == "none":
        return False
    return _SEVERITY_ORDER.index(finding.severity) >= _SEVERITY_ORDER.index(wanted)


def _check_title(review: Review, standing: Sequence[Finding], dismissals: str) -> str:
    tests = review.tests
    parts = []
    if tests is not None and not tests.passed:
        failing = tests.failing_count
        words = f"{count_noun(failing, 'test')} failing" if failing else "Tests fail"
        parts.append(f"{words} without the change too" if tests.fails_without_change else words)
    if review.findings:
        open_findings = (*review.findings, *standing)
        worst = find_worst(open_findings)
        number = count_noun(len(open_findings), "finding")
        number += f" open ({len(review.findings)} new)" if standing else ""
        parts.append(f"{number}, worst is {worst.severity}: {strip_markdown(worst.title)}")
    elif standing:
        severity = find_worst(standing).severity
        which = severity if len(standing) == 1 else f"worst is {severity}"
        told = f" ({which})" if severity in {"high", "critical"} else ""
        parts.append(describe_open(len(standing)) + told)
    if not review.findings and review.gaps:
        parts.append(f"Not reviewed: {_name_few(review.gaps)}")
    if not parts:
        clean = describe_open(0, review.withheld, review.skipped)
        rest = clean.removeprefix("No findings").removeprefix(" posted")
        return f"No open findings, {dismissals}{rest}"[:250] if dismissals else clean
    if not review.findings and (doubts := describe_grave_doubts(review.withheld)):
        parts.append(doubts)
    return "; ".join([*parts, *filter(None, [dismissals])])[:250]


@dataclass(frozen=True, slots=True)
class ReviewProgress:
    """A pull request's findings at its newest review: new, standing and fixed ones, all that were posted, and who dismissed which.

    `author` wrote the change.
    """

    head: str
    new: Sequence[Finding]
    standing: Sequence[Finding]
    fixed: Sequence[FixedFinding]
    dismissed: Mapping[str, Dismissal]
    posted: Mapping[str, PostedFinding]
    author: str
    check_url: str


def describe_progress(
    progress: ReviewProgress, *, newest: str = "", only_dismissals: bool = False
) -> str:
    """What became of a pull request's findings, for the texts of earlier reviews.

    What was dismissed counts as that also once it is gone. What is new stands in the review at the address `newest`.
    `only_dismissals`: for a review of the newest head, "" unless a finding was dismissed.
    """
    found, standing, dismissed = progress.new, progress.standing, progress.dismissed
    known = {f.id for f in (*found, *standing)}
    gone = list({f.id: f for f in progress.fixed if f.id not in known}.values())
    new = [f for f in found if f.fingerprint not in dismissed]
    still_open = [f for f in standing if f.fingerprint not in dismissed]
    counts = {"fixed": len(gone), "still open": len(still_open), "new": len(new)}
    ruled_out = {f.fingerprint for f in (*found, *standing)} | progress.posted.keys()
    counts["dismissed"] = len(ruled_out & dismissed.keys())
    rows = [
        f"- {code_span(f.path)} {inline_prose(f.title)} (`{f.id}`)"
        + _describe_dismissal(dismissed[f.fingerprint], progress.author)
        for f in progress.posted.values()
        if f.fingerprint in dismissed
    ]
    away = "Dismissed:\n\n" + "\n".join(rows) if rows else ""
    if only_dismissals and not counts["dismissed"]:
        return ""
    shown = [
        f"[{number} {what}]({newest})" if newest and what == "new" else f"{number} {what}"
        for what, number in counts.items()
        if number
    ]
    shown += [] if new or still_open else ["none open"]
    lead = f"**Findings at {code_span(progress.head[:12])}: {', '.join(shown)}** ([check]({progress.check_url}))"
    parts = [lead, _describe_earlier_findings(still_open, gone, "Fixed"), away]
    return "\n\n".join(part for part in parts if part)


_AS_POSTED = make_marker("as-posted") + "\n"
_FOLD, _FOLD_END = "<details><summary>The review as it was posted</summary>\n\n", "\n\n</details>"


def put_above_review(progress: str, body: str) -> str:
    """A review's text under what became of its findings since; it replaces what stood there before."""
    posted = body.partition(_AS_POSTED)[2] or body
    if posted.startswith(_FOLD):
        posted = posted.removeprefix(_FOLD).removesuffix(_FOLD_END)
    if not progress:
        return posted
    return f"{progress}\n\n{_AS_POSTED}{_FOLD}{posted}{_FOLD_END}"


def _describe_earlier_findings(
    standing: Sequence[Finding],
    fixed: Sequence[FixedFinding],
    heading: str = "Fixed since the last review",
) -> str:
    """What became of the findings of earlier pushes."""
    rows = [f"- {code_span(f.path)} {inline_prose(f.title)} (`{f.id}`)" for f in fixed[:_MAX_FIXED]]
    rows += [f"- and {len(fixed) - _MAX_FIXED} more"] if len(fixed) > _MAX_FIXED else []
    parts = [f"{heading}:\n\n" + "\n".join(rows)] if fixed else []
    if standing:
        parts.append(f"Still open:\n\n{_list_findings(standing)}")
    return "\n\n".join(parts)


def _format_scores(review: Review, reading: str, cost: str = "") -> str:
    """The statistics in a fold: each score with what it is made of, and how much was read."""
    rows = [
        f"| {name} | {'not scored' if review.scores.get(name) is None else review.scores[name]} | "
        + inline_prose(review.score_notes.get(name, "")).replace("|", "\\|")
        + " |"
        for name in DIMENSIONS
        if name in review.scores
    ]
    table = (
        "\n".join(["| score of 100 | | made of |", "| --- | --- | --- |", *rows]) if rows else ""
    )
    shown = "\n\n".join(p for p in (inline_prose(reading), table, cost) if p)
    return fold_details(f"Statistics (risk {review.risk})", shown) if shown else ""


def _fold_walkthrough(review: Review) -> str:
    rows = [f"- {code_span(step.path)}: {inline_prose(step.text)}" for step in review.walkthrough]
    return fold_details("Walkthrough by file", "\n".join(rows)) if rows else ""


def _format_coverage(review: Review, web: str) -> str:
    report = review.coverage
    if report is None or report.new_lines == 0:
        return ""
    missed = []
    for unit in report.uncovered[:_MAX_UNCOVERED_FILES]:
        lines = format_line_ranges(unit.lines)
        if web:
            spans = group_lines(unit.lines)
            lines = ", ".join(
                _link_lines(web, review.head, unit.path, *span) for span in spans[:20]
            )
            lines += ", …" if len(spans) > 20 else ""
        missed.append(f"{code_span(unit.path)}: {lines}")
    more = len(report.uncovered) - _MAX_UNCOVERED_FILES
    missed += [f"and {count_noun(more, 'more file')}"] if more > 0 else []
    told = describe_coverage(report, review.tests)
    return told + (" Not covered: " + "; ".join(missed) if missed else "")


def _link_lines(web: str, head: str, path: str, first: int, last: int) -> str:
    """Lines of a file as a link to them; `web` is the repository's address."""
    shown, anchor = (
        (f"{first}", f"L{first}") if first == last else (f"{first}-{last}", f"L{first}-L{last}")
    )
    return f"[{shown}]({web}/blob/{head}/{quote(path)}#{anchor})"


def _sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda f: (-_SEVERITY_ORDER.index(f.severity), -f.confidence))


def _list_findings(findings: Iterable[Finding], ends: Mapping[str, str] = {}) -> str:
    """The findings, worst first, each with its end by fingerprint; the first says what its percentage is."""
    lines: list[str] = []
    for f in _sort_findings(findings):
        sure = describe_confidence(f.confidence)
        sure = sure.partition(" ")[0] if lines else sure
        about = f"{_format_location(f)} {inline_prose(f.title)} ({sure}, `{f.id}`)"
        lines.append(f"- **{f.severity}** {about}{ends.get(f.fingerprint, '')}")
    return "\n".join(lines)


def _list_unreviewed(review: Review) -> str:
    """A fold of what was not reviewed; what the policy leaves out changes no conclusion, and is counted apart."""
    unread = list_unreviewed(review)
    lines = [f"- {code_span(name)}: {inline_prose(reason)}" for name, reason in unread[:50]]
    lines += [f"- and {len(unread) - 50} more"] if len(unread) > 50 else []
    optional = review.list_left_out(by_policy=True)
    parts = [f"Not reviewed: {_name_few(review.gaps)}"] if review.gaps else []
    parts += [f"Not checked, and not required: {_name_few(optional)}"] if optional else []
    return fold_details("; ".join(parts), "\n".join(lines)) if unread else ""


def _name_few(names: Sequence[str]) -> str:
    """The first three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _make_annotation(finding: Finding) -> Annotation:
    return Annotation(
        path=finding.path,
        start_line=finding.start_line,
        end_line=finding.line,
        level=_ANNOTATION_LEVELS[finding.severity],
        title=strip_markdown(finding.title)[:250],
        message=strip_markdown(finding.body.strip() or finding.title),
    )


def _format_evidence(evidence: Evidence) -> str:
    if evidence.kind == "model":
        return fold_details("What a second reader found", sanitize_markdown(evidence.excerpt))
    if evidence.is_statement:
        return inline_prose(f"{evidence.excerpt.rstrip('.')}.")
    excerpt = evidence.excerpt.strip()
    if evidence.kind == "analyzer" and "\n" not in excerpt:
        # the line stands right above the comment
        tool = f" by {evidence.command}" if evidence.command else ""
        if evidence.base in {None, "not there", "not reported"}:
            before = ", and not before this change" if evidence.base else ""
            return inline_prose(f"Reported{tool}{before}.")
        return inline_prose(f"Reported{tool}; before this change: {evidence.base}.")
    details = [evidence.command or ""]
    details += [f"on this change: {evidence.head}" if evidence.head else ""]
    details += [f"before it: {evidence.base}" if evidence.base else ""]
    title = f"Evidence ({evidence.kind}): " + "; ".join(s for s in details if s)
    title = title.removesuffix(": ")
    if not excerpt:
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
