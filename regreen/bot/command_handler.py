"""Slash-commands and buttons: their syntax, the permission that each needs, and what is answered at once or ordered as a job."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal, get_args

from markdown_it import MarkdownIt

from regreen.bot import feedback, messages, trust
from regreen.bot.feedback import OutcomeStore
from regreen.bot.jobs.event_jobs import BRANCH_PREFIX, make_orders
from regreen.bot.jobs.runner import Job
from regreen.bot.jobs.serialization import deserialize_work
from regreen.bot.posted_findings import PostedFindings
from regreen.bot.replies import CommandReply
from regreen.bot.repository_settings import LoadedConfig, config_to_yaml
from regreen.bot.services import Services
from regreen.domain.errors import UserError
from regreen.domain.events import (
    BisectRequest,
    ButtonPressed,
    CauseRequest,
    CommentPosted,
    CommentRef,
    FixRequest,
    NewTestRequest,
    ProofRequest,
    QuestionRequest,
    RepositoryRef,
    ReviewRequest,
    WorkRequest,
)
from regreen.domain.github import COMMENT_SCOPE, PERMISSION_LEVELS, GitHub, Permission, PullRequest
from regreen.domain.records import JobKind, JobRecord, Store
from regreen.domain.state_records import CommandClaim, CommandTimes, LastRefusal, PostedFinding
from regreen.reviewers.learning import rule_statistics

# Slash-commands: their syntax, and the permission that each needs. Pure.

CommandName = Literal[
    "review",
    "fix",
    "bisect",
    "why",
    "prove",
    "test",
    "explain",
    "ask",
    "approve",
    "dismiss",
    "undismiss",
    "cancel",
    "retry",
    "config",
    "stats",
    "help",
]
COMMAND_NAMES: tuple[CommandName, ...] = get_args(CommandName)

COMMAND_USAGE: Mapping[CommandName, str] = MappingProxyType(
    {
        "review": "review [full]",
        "fix": "fix [hint]",
        "bisect": 'bisect [good=REV] [bad=REV] [test="CMD"] [slower=X]',
        "why": "why",
        "prove": "prove",
        "test": "test [path]",
        "explain": "explain",
        "ask": "ask QUESTION",
        "approve": "approve [SHA]",
        "dismiss": "dismiss ID [reason]",
        "undismiss": "undismiss ID",
        "cancel": "cancel",
        "retry": "retry",
        "config": "config",
        "stats": "stats",
        "help": "help",
    }
)

COMMAND_HELP: Mapping[CommandName, str] = MappingProxyType(
    {
        "review": "review the newest commits; `full` reviews the whole pull request again",
        "fix": "repair the failing check and open the patch as a draft; a hint in words helps the model",
        "bisect": 'find the commit that broke a test, such as `test="pytest tests/test_x.py"`',
        "why": "say what caused the failing check: this change, main, a flaky test, a package",
        "prove": "say whether the tests of this change prove it, by running them without it",
        "test": "write a test for lines that no test runs (needs a model)",
        "explain": "explain what the change does, or a finding in its thread (needs a model)",
        "ask": "answer a question about the change (needs a model)",
        "approve": "open the patch that is waiting, or let a fork's tests run at this commit",
        "dismiss": "a finding is wrong: never raise it here again",
        "undismiss": "take a dismissal back: the finding counts again",
        "cancel": "stop what is running or waiting here",
        "retry": "run the last failed or cancelled job again",
        "config": "show the effective configuration",
        "stats": "show how often each rule was right in this repository",
        "help": "show this list",
    }
)

# The least permission for a command; where none is given, the repository's `commands.allow` decides.
_MIN_PERMISSIONS: Mapping[CommandName, Permission] = MappingProxyType({"approve": "write"})
RUNS_CODE: frozenset[CommandName] = frozenset({"fix", "bisect", "why", "prove", "test", "approve"})
"""What has a pull request's code run: on a fork's it takes write access, whatever `commands.allow` says."""
_COMMANDS_FOR_ANYONE: frozenset[CommandName] = frozenset({"help"})

# Commands of other bots with the same syntax; Regreen ignores them.
_FOREIGN_WORDS = (
    "lgtm assign unassign cc uncc hold unhold ok-to-test retest label remove-label kind priority "
    "area close reopen lifecycle milestone merge rebase squash shrug tableflip me remind run build "
    "deploy rerun backport cherry-pick cherrypick sig triage gcbrun azp"
)
_FOREIGN_COMMANDS = frozenset(_FOREIGN_WORDS.split())

_REVISION_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@{}^~+-]{0,199}")
_SHA_PATTERN = re.compile(r"[0-9a-f]{7,64}")
_COMMAND_WORD = re.compile(r"[A-Za-z][A-Za-z-]{0,29}")
_MAX_COMMANDS = 10
_MAX_COMMENT_CHARS = 65_536  # GitHub's own limit
_MARKDOWN_PARSER = MarkdownIt("commonmark").enable("table")
_LINE_MARKER = "\ue000"
"""A private letter, which means nothing in Markdown."""


@dataclass(frozen=True, slots=True)
class Command:
    """One parsed command; `line` is its position among the comment's commands, `given` what was written."""

    name: CommandName
    text: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    line: int = 0
    given: str = ""


@dataclass(frozen=True, slots=True)
class UnclearCommand:
    """Text that looks like a command but is not, with a suggestion."""

    text: str
    problem: str
    line: int = 0
    given: str = ""


def parse_commands(body: str, prefix: str = "/") -> tuple[Command | UnclearCommand, ...]:
    """The commands of a comment, in order: one on each line, outside code and quotations, ten at most."""
    commands: list[Command | UnclearCommand] = []
    for text in _find_plain_lines(body, prefix):
        command = _parse_command(text[len(prefix) :].strip(), prefix, len(commands))
        if command is not None and len(commands) < _MAX_COMMANDS:
            commands.append(replace(command, given=text))
    return tuple(commands)


def has_command(store: Store, event: CommentPosted) -> bool:
    """Whether a comment gave a command, for where its configuration, which may set another prefix, cannot be read."""
    known = store.find(CommandClaim, repo=event.where.repo, comment=event.comment_id)
    return known is not None or bool(parse_commands(event.body))


def may_give_command(
    name: CommandName, has: Permission, allow: Permission, *, fork: bool = False
) -> bool:
    """Whether somebody with permission `has` may give the command under the configured `allow`.

    `fork`: the command is about a fork's pull request.
    """
    if name in _COMMANDS_FOR_ANYONE:
        return True
    return PERMISSION_LEVELS.index(has) >= PERMISSION_LEVELS.index(
        required_permission(name, allow, fork=fork)
    )


def required_permission(name: CommandName, allow: Permission, *, fork: bool = False) -> Permission:
    """The permission that the command needs under the configured `allow`; some always need more."""
    floor = "write" if fork and name in RUNS_CODE else _MIN_PERMISSIONS.get(name, "none")
    return max(allow, floor, key=PERMISSION_LEVELS.index)


def _find_plain_lines(body: str, prefix: str) -> Iterator[str]:
    """The lines that begin with the prefix and are rendered as text in a paragraph outside quotations and lists."""
    if not any(line.strip().startswith(prefix) for line in body.split("\n")):
        return
    context: dict[str, Any] = {}  # the link definitions that the paragraphs may use
    blocks = _MARKDOWN_PARSER.parse(body[:_MAX_COMMENT_CHARS].replace(_LINE_MARKER, ""), context)
    for opened, inline in pairwise(blocks):
        if opened.type == "paragraph_open" and opened.level == 0:
            yield from _find_shown_lines(
                [line.strip() for line in inline.content.split("\n")], prefix, context
            )


def _find_shown_lines(lines: Sequence[str], prefix: str, context: dict[str, Any]) -> Iterator[str]:
    """A paragraph's lines with the prefix that are not inside a code span, HTML, a link or its title.

    Each line gets a numbered mark; if the mark is rendered as text at the start of a line, the line counts.
    """
    if not any(line.startswith(prefix) for line in lines):
        return
    marked = "\n".join(
        f"{_LINE_MARKER}{number}{_LINE_MARKER}{line}" for number, line in enumerate(lines)
    )
    for token in _MARKDOWN_PARSER.parseInline(marked, context)[0].children or ():
        if token.type == "text" and token.level == 0 and token.content.startswith(_LINE_MARKER):
            line = lines[int(token.content.split(_LINE_MARKER)[1])]
            if line.startswith(prefix):
                yield line


def _parse_command(text: str, prefix: str, line: int) -> Command | UnclearCommand | None:
    word, _, rest = text.partition(" ")
    if not _COMMAND_WORD.fullmatch(word):
        return None
    lower = word.lower()
    name = next((n for n in COMMAND_NAMES if n == lower), None)
    if name is not None:
        return _parse_arguments(name, rest.strip(), prefix, line)
    near = difflib.get_close_matches(lower, COMMAND_NAMES, n=1, cutoff=0.6)
    if near:
        return UnclearCommand(
            text, f"there is no `{prefix}{word}`. Did you mean `{prefix}{near[0]}`?", line
        )
    if lower in _FOREIGN_COMMANDS:
        return None
    return UnclearCommand(
        text, f"there is no `{prefix}{word}`; `{prefix}help` lists what there is", line
    )


def _parse_arguments(
    name: CommandName, rest: str, prefix: str, line: int
) -> Command | UnclearCommand:
    if name == "bisect":
        return _parse_bisect(rest, prefix, line)
    if name == "ask" and not rest:
        return UnclearCommand(name, f"what is the question? `{prefix}{COMMAND_USAGE[name]}`", line)
    if not _arguments_fit(name, rest):
        return _unclear_arguments(name, rest, prefix, line)
    return Command(name, rest[:2000], line=line)


def _arguments_fit(name: CommandName, rest: str) -> bool:
    match name:
        case "ask" | "fix" | "dismiss" | "undismiss" | "bisect":
            return True
        case "review":
            return rest in {"", "full"}
        case "test":
            return not (rest.startswith("/") or ".." in rest.split("/") or " " in rest)
        case "approve":
            return not rest or _SHA_PATTERN.fullmatch(rest) is not None
        case "why" | "prove" | "explain" | "cancel" | "retry" | "config" | "stats" | "help":
            return not rest


def _parse_bisect(rest: str, prefix: str, line: int) -> Command | UnclearCommand:
    try:
        words = shlex.split(rest)
    except ValueError:
        return UnclearCommand("bisect", "a quotation mark is not closed", line)
    options: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in {"good", "bad", "test", "slower"} or not value:
            return _unclear_arguments("bisect", word, prefix, line)
        if key == "slower" and not _is_ratio(value):
            return UnclearCommand(
                "bisect", "`slower=` wants a number above 1, such as `slower=1.5`", line
            )
        if key in {"good", "bad"} and not _REVISION_PATTERN.fullmatch(value):
            return UnclearCommand("bisect", f"`{key}=` wants a commit, branch or tag", line)
        options[key] = value
    return Command("bisect", rest, options, line)


def _is_ratio(value: str) -> bool:
    try:
        return 1 < float(value) <= 100
    except ValueError:
        return False


def _unclear_arguments(name: CommandName, rest: str, prefix: str, line: int) -> UnclearCommand:
    shown = rest[:80].replace("`", "'")
    told = f"`{shown}` is not understood; it goes `{prefix}{COMMAND_USAGE[name]}`"
    if name == "explain":
        told = f"`{prefix}explain` takes no ID; write it in the finding's thread"
    return UnclearCommand(name, told, line)


PublishFix = Callable[[Job, RepositoryRef, str, str], str | None]
"""Publishes the fix that waits on an issue or pull request ("7") or commit ("@SHA"); None where none waits."""
RefreshCheck = Callable[[RepositoryRef, int, LoadedConfig], str]
"""Posts the newest review's check run again, after a finding was dismissed."""

_BUTTON_COMMANDS: dict[str, CommandName] = {
    "fix": "fix",
    "bisect": "bisect",
    "explain": "explain",
}
_HOUR_SECONDS = 3600.0
_MAX_COMMANDS_PER_HOUR = 30
_LAST_REPLY_LINE = 99  # the last part of the reply, after the parts of the comment's commands


@dataclass(frozen=True)
class _CommandContext:
    """One comment or button that is being handled. `sha` is the commit whose check run shows the button."""

    job: Job
    event: CommentPosted
    github: GitHub
    loaded: LoadedConfig
    sha: str = ""

    @property
    def login(self) -> str:
        return self.event.actor.login

    @cached_property
    def permission(self) -> Permission:
        """What the author may do in the repository."""
        return self.github.permission(self.login)

    @cached_property
    def pull(self) -> PullRequest | None:
        """The pull request of the comment, as it is now."""
        return self.github.pull(self.event.number) if self.event.on_pull else None


class CommandHandler:
    """Handles the commands in comments and the buttons of check runs."""

    def __init__(self, services: Services, publish: PublishFix, refresh: RefreshCheck) -> None:
        self._desk = services
        self._publish = publish
        self._refresh = refresh

    def handle_comment(self, job: Job, event: CommentPosted) -> str:
        """Run the commands of a comment."""
        services = self._desk
        if event.actor.is_bot or event.actor.login == f"{services.app.slug}[bot]":
            return "a bot's comment"
        github = services.github_client(event.where, COMMENT_SCOPE)
        loaded = services.load_repo_config(event.where, github, github.repository())
        prefix = loaded.config.commands.prefix
        if event.edited and event.author != event.actor:
            return "edited by a person who did not write it"
        before = {_command_key(c) for c in parse_commands(event.before, prefix)}
        commands = [c for c in parse_commands(event.body, prefix) if _command_key(c) not in before]
        new = [c for c in commands if self._claim_command(job, event, c)]
        if not new:
            return "no command"
        context = _CommandContext(job, event, github, loaded)
        return ", ".join(self._run_command(context, command) for command in new)

    def handle_button(self, job: Job, event: ButtonPressed) -> str:
        """Run the command that a button stands for."""
        if event.identifier == "approve":
            return self._approve_shown_patch(job, event)
        name = _BUTTON_COMMANDS.get(event.identifier)
        if name is None or not event.pulls:
            return "no such button"
        github = self._desk.github_client(event.where, COMMENT_SCOPE)
        loaded = self._desk.load_repo_config(event.where, github, github.repository())
        as_comment = CommentPosted(
            where=event.where,
            actor=event.actor,
            number=event.pulls[0],
            on_pull=True,
            review=False,
            comment_id=0,
            body="",
            association="",
            edited=False,
        )
        context = _CommandContext(job, as_comment, github, loaded, event.head_sha)
        return self._run_command(context, Command(name, given=name.capitalize()))

    def _approve_shown_patch(self, job: Job, event: ButtonPressed) -> str:
        """Publish the patch that a commit's check run shows; people without permission get no answer."""
        github, login = self._desk.github_client(event.where, COMMENT_SCOPE), event.actor.login
        allow = self._desk.load_repo_config(
            event.where, github, github.repository()
        ).config.commands.allow
        has = github.permission(login)
        if not may_give_command("approve", has, allow):
            self._desk.log_action(job, login, "refused", f"approve: has {has}")
            return f"refused {login}"
        done = self._publish(job, event.where, f"@{event.head_sha}", login)
        return done or "nothing waits there"

    def report_failure(
        self, record: JobRecord, event: CommentPosted | ButtonPressed, reason: str
    ) -> None:
        """Tell the author of a command that its job failed; a comment without a command gets no answer."""
        github = self._desk.github_client(event.where, COMMENT_SCOPE)
        if isinstance(event, ButtonPressed):
            if event.identifier in _BUTTON_COMMANDS and event.pulls:
                ref = CommentRef(0, review=False, command=event.identifier.capitalize())
                reply = CommandReply(github, self._desk.store, event.pulls[0], ref, record.id)
                reply.post_text(
                    messages.job_failed(reason, record, self._desk.job_page_url(record.id))
                )
            return
        if has_command(self._desk.store, event):
            ref = CommentRef(event.comment_id, event.review, _LAST_REPLY_LINE)
            reply = CommandReply(github, self._desk.store, event.number, ref, record.id)
            reply.show_reaction("confused")
            reply.post_text(messages.job_failed(reason, record, self._desk.job_page_url(record.id)))

    def _claim_command(
        self, job: Job, event: CommentPosted, command: Command | UnclearCommand
    ) -> bool:
        """Whether the command is new to its comment, which may be edited; a retried job runs its own commands again."""
        claim = CommandClaim(
            event.where.repo, event.comment_id, _command_key(command), job.record.id
        )
        store = self._desk.store
        return store.add(claim) or store.find(CommandClaim, **asdict(claim)) is not None

    def _run_command(self, context: _CommandContext, command: Command | UnclearCommand) -> str:
        reply = self._make_reply(context, command)
        allow, has = context.loaded.config.commands.allow, context.permission
        name: CommandName = command.name if isinstance(command, Command) else "review"
        fork = name in RUNS_CODE and context.pull is not None and context.pull.fork
        if not may_give_command(name, has, allow, fork=fork):
            needs = required_permission(name, allow, fork=fork)
            if self._may_refuse_again(context, command.line):
                reply.post_text(messages.command_refused(context.login, needs))
            self._desk.log_action(
                context.job, context.login, "refused", f"{name}: has {has}, needs {needs}"
            )
            return f"refused {context.login}"
        if reason := self._reason_to_hold_back(context, reply, command.line):
            return reason
        # the "eyes" reaction confirms the comment before any slow work
        reply.show_reaction("eyes")
        if isinstance(command, UnclearCommand):
            reply.show_reaction("confused")
            reply.post_text(messages.command_unclear(command.problem))
            return "unclear"
        self._desk.log_action(context.job, context.login, f"/{command.name}", command.text)
        try:
            sha = self._find_target_commit(context, command)
        except UserError as error:
            reply.show_reaction("confused")
            reply.post_text(messages.command_not_run(str(error)))
            return "the head has moved"
        if command.name in _PROGRESS_TEXTS:
            return self._order_work(context, command, reply, sha)
        reply.post_text(self._answer_immediately(context, command))
        reply.show_reaction("rocket")
        return command.name

    def _find_target_commit(self, context: _CommandContext, command: Command) -> str:
        """The commit that a command runs, which needs an approval if it is a fork's; "" if nothing is run.

        Raises:
            UserError: the commit is no longer the pull request's head.
        """
        pull, event = context.pull if command.name in RUNS_CODE else None, context.event
        if pull is None or "bad" in command.options:
            return ""
        head = pull.head_sha
        if command.name == "approve" and command.text:
            target = head if head.startswith(command.text) else command.text
        else:
            target = context.sha or trust.find_head_seen_by_author(
                self._desk.store, context.job.record, event, head
            )
        trust.refuse_command_for_old_head(command.name, target, pull)
        if pull.fork:
            trust.record_approval(
                self._desk.store, event.where.repo, event.number, target, context.login
            )
        return target

    def _answer_immediately(self, context: _CommandContext, command: Command) -> str:  # noqa: PLR0911 - one for each command
        event = context.event
        match command.name:
            case "config":
                loaded = context.loaded
                return messages.config_shown(
                    config_to_yaml(loaded.config), loaded.source, loaded.problems
                )
            case "cancel":
                note = f"cancelled by {context.login} with /cancel"
                stopped = map(self._desk.store.job, context.job.cancel_earlier_jobs(note))
                return messages.jobs_cancelled([job.kind for job in stopped if job is not None])
            case "retry":
                return self._retry_last_job(context.job, event)
            case "dismiss" | "undismiss":
                return self._judge_finding(context, command)
            case "approve":
                return self._approve_pull(context)
            case "stats":
                return self._show_statistics(context)
            case _:
                prefix = context.loaded.config.commands.prefix
                return messages.help_text(
                    ((COMMAND_USAGE[n], COMMAND_HELP[n]) for n in COMMAND_NAMES), prefix
                )

    def _order_work(
        self, context: _CommandContext, command: Command, reply: CommandReply, sha: str
    ) -> str:
        demand = _make_request(context.event, command, sha)
        if demand is None:
            reply.post_text(
                messages.command_not_run(
                    f"`/{command.name}` works on pull requests; here use `/bisect` or `/fix`"
                )
            )
            reply.show_reaction("confused")
            return "not a pull request"
        if command.name in _MODEL_COMMANDS and not self._desk.settings.has_model:
            reply.post_text(messages.model_missing(f"`/{command.name}`"))
            reply.show_reaction("confused")
            return "no model"
        if command.name != "review" and context.event.comment_id:
            # a review answers with its check run; a button has no comment that could get a second answer
            reply.post_text(messages.work_started(_PROGRESS_TEXTS[command.name]))
        self._desk.order(make_orders(demand, f"{context.job.record.id}/{command.line}"))
        return f"ordered {command.name}"

    def _show_statistics(self, context: _CommandContext) -> str:
        outcomes, repo = OutcomeStore(self._desk.store), context.event.where.repo
        default = context.loaded.config.review.min_confidence
        rows = rule_statistics(
            outcomes.list_outcomes(), outcomes.learned_thresholds(repo, default)[1], repo, default
        )
        return messages.statistics_report(rows, outcomes.calibration_bins(repo), default)

    def _retry_last_job(self, job: Job, event: CommentPosted) -> str:
        past = self._desk.store.jobs(
            states=("failed", "cancelled"),
            kinds=_RETRIED_KINDS,
            repo=event.where.repo,
            number=event.number,
            limit=_MAX_RETRIED_JOBS,
        )
        if not past:
            return messages.nothing_to_retry()
        last = past[0]
        again = [last, *(one for one in past[1:] if _was_stopped_together(one, last))]
        for at, one in enumerate(again):
            order = f"retry/{job.record.id}{f'/{at}' if at else ''}"
            self._desk.order(make_orders(deserialize_work(one.event), order))
        return messages.jobs_retried([one.kind for one in again])

    def _judge_finding(self, context: _CommandContext, command: Command) -> str:
        """Dismiss a finding, or take its dismissal back."""
        event, github, text = context.event, context.github, command.text
        wanted, _, reason = text.partition(" ")
        remembered = PostedFindings(self._desk.store, event.where.repo, event.number)
        posted, dismissed = remembered.load_posted(), remembered.dismissals()
        named = wanted in _finding_names(posted) or _FINDING_ID.fullmatch(wanted)
        if event.reply_to is not None and not named:
            # in a finding's own thread, all text after the command is the reason
            wanted, reason = self._find_thread_finding(github, event, posted) or wanted, text
        names = {wanted} - {""}
        finding = next((f for f in posted.values() if names & {f.id, f.fingerprint}), None)
        undo = command.name == "undismiss"
        if finding is None or (undo and finding.fingerprint not in dismissed):
            refused = f"{command.name}: no such finding"
            self._desk.log_action(context.job, context.login, "refused", refused)
            listed = [f for f in posted.values() if not undo or f.fingerprint in dismissed]
            return messages.unknown_finding(wanted, [(f.id, f.title) for f in listed], undo=undo)
        is_answered = undo and feedback.withdraw_dismissal(self._desk, github, finding)
        if not undo:
            self._record_dismissal(event, github, finding, reason)
        check = self._refresh(event.where, event.number, context.loaded)
        if undo:
            login = dismissed[finding.fingerprint].login
            return messages.finding_restored(finding.title, login, check, is_answered=is_answered)
        is_own = context.pull is not None and context.pull.author == context.login
        prefix = context.loaded.config.commands.prefix
        undo_with = f"{prefix}undismiss {finding.id}"
        own = context.login if is_own else ""
        return messages.finding_dismissed(finding.title, undo_with, own, check, reason)

    def _record_dismissal(
        self, event: CommentPosted, github: GitHub, finding: PostedFinding, reason: str
    ) -> None:
        remembered = PostedFindings(self._desk.store, event.where.repo, event.number)
        remembered.dismiss(finding.fingerprint, event.actor.login, reason)
        feedback.record_dismissed(self._desk, finding)
        remembered.close_threads(github, event.number, {finding.fingerprint})

    def _find_thread_finding(
        self, github: GitHub, event: CommentPosted, posted: Iterable[str]
    ) -> str:
        for thread in github.threads(event.number):
            if any(c.id == event.reply_to for c in thread.comments):
                body = thread.comments[0].body
                return next((f for f in posted if f"finding:{f}" in body), "")
        return ""

    def _approve_pull(self, context: _CommandContext) -> str:
        event, login = context.event, context.login
        done = self._publish(context.job, event.where, str(event.number), login)
        if done is not None:
            return done
        pull = context.pull
        if pull is None or not pull.fork:
            is_draft = pull is not None and pull.draft and pull.head_ref.startswith(BRANCH_PREFIX)
            return messages.nothing_to_approve(event.number if is_draft else None)
        again = ReviewRequest(event.where, event.number, full=False, asked_by=login)
        self._desk.order(make_orders(again, context.job.record.id))
        return messages.fork_approved(pull.head_sha)

    def _reason_to_hold_back(self, context: _CommandContext, reply: CommandReply, line: int) -> str:
        """Why a permitted command is not carried out now; "" if it is."""
        is_trusted = may_give_command(
            "review", context.permission, context.loaded.config.commands.allow
        )
        if not is_trusted and not self._may_refuse_again(context, line):
            return "answered within the hour"
        count = (
            self._count_recent_commands(context.event) if context.job.record.attempts == 1 else 0
        )
        if count < _MAX_COMMANDS_PER_HOUR:
            return ""
        reply.show_reaction("confused")
        # posted once: a hundred commands do not get a hundred answers
        if count == _MAX_COMMANDS_PER_HOUR:
            reply.post_text(messages.too_many_commands(context.login))
        return "too many"

    def _may_refuse_again(self, context: _CommandContext, line: int) -> bool:
        """Whether a person without permission gets an answer: once an hour in each conversation."""
        event, store, own = context.event, self._desk.store, f"{context.job.record.id}/{line}"
        now = self._desk.clock.now().timestamp()
        place = {"repo": event.where.repo, "number": event.number, "login": context.login}
        last = store.find(LastRefusal, **place)
        if last is not None and now - last.at < _HOUR_SECONDS and last.command != own:
            return False
        store.save(LastRefusal(event.where.repo, event.number, context.login, now, own))
        return True

    def _count_recent_commands(self, event: CommentPosted) -> int:
        """Count one more command of this person in this repository; return how many came in the hour before."""
        store, repo, login = self._desk.store, event.where.repo, event.actor.login
        now = self._desk.clock.now().timestamp()
        known = store.find(CommandTimes, repo=repo, login=login)
        past = [t for t in known.times if now - t < _HOUR_SECONDS] if known else []
        store.save(CommandTimes(repo, login, (*past, now)[-2 * _MAX_COMMANDS_PER_HOUR :]))
        return len(past)

    def _make_reply(
        self, context: _CommandContext, command: Command | UnclearCommand
    ) -> CommandReply:
        ref = _comment_ref(context.event, command)
        return CommandReply(
            context.github, self._desk.store, context.event.number, ref, context.job.record.id
        )


_MAX_RETRIED_JOBS = 5
_ONE_CANCEL = timedelta(minutes=5)
"""Jobs that one `/cancel` stopped have ended within this time."""


def _was_stopped_together(job: JobRecord, last: JobRecord) -> bool:
    """Whether one `/cancel` stopped both."""
    if last.state != "cancelled" or (job.state, job.note) != (last.state, last.note):
        return False
    return bool(job.ended and last.ended and abs(last.ended - job.ended) <= _ONE_CANCEL)


_RETRIED_KINDS: tuple[JobKind, ...] = ("review", "fix", "bisect", "why", "prove")
_FINDING_ID = re.compile(r"[0-9a-f]{8}(?:[0-9a-f]{24})?")
_MODEL_COMMANDS = frozenset({"test", "explain", "ask"})
_PROGRESS_TEXTS: dict[str, str] = {
    "review": "reading the change",
    "fix": "reproducing what is red",
    "bisect": "looking for the commit that broke it",
    "why": "running what failed on this change and on its base",
    "prove": "running the tests with and without this change",
    "test": "writing a test",
    "explain": "reading the change",
    "ask": "looking it up",
}


def _finding_names(posted: dict[str, PostedFinding]) -> set[str]:
    """Every name that a finding can be called by."""
    return {*posted, *(finding.id for finding in posted.values())}


def _comment_ref(event: CommentPosted, command: Command | UnclearCommand) -> CommentRef:
    return CommentRef(event.comment_id, event.review, command.line, command.given)


def _thread_root(event: CommentPosted) -> int | None:
    """The first comment of the thread that a comment belongs to; the comment itself if it starts the thread."""
    return (event.reply_to or event.comment_id) if event.review else None


def _command_key(command: Command | UnclearCommand) -> str:
    """The key that distinguishes a command from the others of its comment."""
    text = command.text if isinstance(command, UnclearCommand) else f"{command.name} {command.text}"
    return text[:300]


def _make_request(  # noqa: PLR0911 - a return for each command
    event: CommentPosted, command: Command, sha: str
) -> WorkRequest | None:
    where, number, login = event.where, event.number, event.actor.login
    ref = _comment_ref(event, command)
    match command.name:
        case "review" if event.on_pull:
            full = command.text == "full"
            return ReviewRequest(where, number, full=full, asked_by=login, comment=ref)
        case "fix":
            return FixRequest(where, number, event.on_pull, command.text, login, ref, sha)
        case "bisect":
            o = command.options
            good, bad, test = o.get("good"), o.get("bad"), o.get("test")
            slower = float(o["slower"]) if "slower" in o else None
            return BisectRequest(where, number, good, bad, test, login, ref, sha, slower)
        case "why" if event.on_pull:
            return CauseRequest(where, number, sha, login, ref)
        case "prove" if event.on_pull:
            return ProofRequest(where, number, login, ref, sha)
        case "test" if event.on_pull:
            return NewTestRequest(where, number, command.text, login, ref, sha)
        case "explain":
            return QuestionRequest(
                where, number, event.on_pull, "", login, ref, _thread_root(event)
            )
        case "ask":
            return QuestionRequest(
                where, number, event.on_pull, command.text, login, ref, _thread_root(event)
            )
        case _:
            return None
