"""Somebody wrote a comment, or pressed a button: who may, what is asked, what is done at once, what is ordered."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from regreen.bot import lessons, say
from regreen.bot.asks import Ask, Bisect, CommentRef, Demand, Fix, Review, WriteTest
from regreen.bot.commands import NAMES, USAGE, Command, Name, Unclear, commands_in, may, needed
from regreen.bot.configuration import Loaded, as_yaml
from regreen.bot.desk import Desk
from regreen.bot.envelope import unpack
from regreen.bot.outcomes import Outcomes
from regreen.bot.plan import orders
from regreen.bot.remembering import Remembered
from regreen.bot.replies import Reply
from regreen.bot.running import Job
from regreen.forge import TALK, GitHub
from regreen.records import JobRecord, Order
from regreen.reviewers.learning import statistics
from regreen.webhooks.events import ButtonPressed, CommentPosted, Where

OrderWork = Callable[[tuple[Order, ...]], None]
Publish = Callable[[Job, Where, int, str], str | None]
"""Publishes the fix that waits for an approval on an issue or pull request; None where none waits."""

_BUTTONS: dict[str, Name] = {
    "fix": "fix",
    "bisect": "bisect",
    "explain": "explain",
    "dismiss": "dismiss",
}
_AN_HOUR = 3600.0
_MOST_AN_HOUR = 30
_AFTER_ALL = 99  # the last part of the answer, after those of a comment's commands


@dataclass(frozen=True)
class _Said:
    """One comment or button while it is obeyed."""

    job: Job
    event: CommentPosted
    github: GitHub
    loaded: Loaded

    @property
    def login(self) -> str:
        return self.event.actor.login


class Talk:
    """What comments and buttons lead to."""

    def __init__(self, desk: Desk, order: OrderWork, publish: Publish) -> None:
        self._desk = desk
        self._order = order
        self._publish = publish

    def comment(self, job: Job, event: CommentPosted) -> str:
        """Obey the commands of a comment."""
        desk = self._desk
        if event.actor.is_bot or event.actor.login == f"{desk.app.slug}[bot]":
            return "a bot's comment"
        github = desk.github(event.where, TALK)
        loaded = desk.config(event.where, github, github.repository())
        found = commands_in(event.body, loaded.config.commands.prefix)
        new = [c for c in found if self._is_new(job, event, c)]
        if not new:
            return "no command"
        said = _Said(job, event, github, loaded)
        return ", ".join(self._one(said, command) for command in new)

    def button(self, job: Job, event: ButtonPressed) -> str:
        """Obey a button as if it were a command."""
        name = _BUTTONS.get(event.identifier)
        if name is None or not event.pulls:
            return "no such button"
        github = self._desk.github(event.where, TALK)
        loaded = self._desk.config(event.where, github, github.repository())
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
        said = _Said(job, as_comment, github, loaded)
        return self._dismiss_all(said) if name == "dismiss" else self._one(said, Command(name))

    def failed(self, record: JobRecord, event: CommentPosted | ButtonPressed, reason: str) -> None:
        """Tell whoever gave a command that it came to nothing; a comment without one is not answered."""
        github = self._desk.github(event.where, TALK)
        if isinstance(event, ButtonPressed):
            if event.identifier in _BUTTONS and event.pulls:
                reply = Reply(github, self._desk.store, event.pulls[0], None, record.id)
                reply.say(say.failed(reason, record.id))
            return
        # the configuration, which could name another prefix, may be what cannot be read
        kept = self._desk.store.items(f"commands/{event.where.repo}/{event.comment_id}")
        if kept or commands_in(event.body):
            ref = _ref(event, _AFTER_ALL)
            reply = Reply(github, self._desk.store, event.number, ref, record.id)
            reply.react("confused")
            reply.say(say.failed(reason, record.id))

    def _is_new(self, job: Job, event: CommentPosted, command: Command | Unclear) -> bool:
        """An edited comment runs only the commands it did not have before; a job tried again runs its own."""
        said = command.said if isinstance(command, Unclear) else f"{command.name} {command.text}"
        space = f"commands/{event.where.repo}/{event.comment_id}"
        store = self._desk.store
        return store.put_new(space, said[:300], job.record.id) or (
            store.get(space, said[:300]) == job.record.id
        )

    def _one(self, said: _Said, command: Command | Unclear) -> str:
        reply = self._reply(said, command.line)
        allow = said.loaded.config.commands.allow
        given = self._given_before(said.event) if said.job.record.attempts == 1 else 0
        if given >= _MOST_AN_HOUR:
            reply.react("confused")
            if given == _MOST_AN_HOUR:  # said once: who writes a hundred gets no hundred answers
                reply.say(say.too_many(said.login))
            return "too many"
        # the eyes say "read" before anything that takes time
        reply.react("eyes")
        has = said.github.permission(said.login)
        name: Name = command.name if isinstance(command, Command) else "review"
        if not may(name, has, allow):
            reply.react("confused")
            needs = needed(name, allow)
            reply.say(say.refused(said.login, needs))
            self._desk.log(said.job, said.login, "refused", f"{name}: has {has}, needs {needs}")
            return f"refused {said.login}"
        if isinstance(command, Unclear):
            reply.react("confused")
            reply.say(say.unclear(command.problem))
            return "unclear"
        self._desk.log(said.job, said.login, f"/{command.name}", command.text)
        if command.name in _ORDERED:
            return self._order_work(said, command, reply)
        reply.say(self._at_once(said, command))
        reply.react("rocket")
        return command.name

    def _at_once(self, said: _Said, command: Command) -> str:  # noqa: PLR0911 - one for each command
        event = said.event
        match command.name:
            case "config":
                loaded = said.loaded
                return say.config_shown(as_yaml(loaded.config), loaded.source, loaded.problems)
            case "cancel":
                stopped = self._desk.store.cancel(
                    event.where.repo, event.number, said.job.record.id
                )
                return say.cancelled(len(stopped))
            case "retry":
                return self._retry(said.job, event)
            case "dismiss":
                return self._dismiss(event, said.github, command.text)
            case "approve":
                return self._approve(said)
            case "stats":
                return self._statistics(said)
            case _:
                prefix = said.loaded.config.commands.prefix
                return say.help_text((USAGE[n] for n in NAMES), prefix)

    def _order_work(self, said: _Said, command: Command, reply: Reply) -> str:
        demand = _demand(said.event, command)
        if demand is None:
            reply.say(say.unclear("that works on pull requests, and this is an issue."))
            reply.react("confused")
            return "not a pull request"
        if command.name in _MODEL_ONLY and not self._desk.settings.has_model:
            reply.say(say.no_model(f"`/{command.name}`"))
            reply.react("confused")
            return "no model"
        if command.name != "review" and said.event.comment_id:
            # a review answers by itself, with its check run; a button has no comment to be answered twice
            reply.say(say.on_it(_ORDERED[command.name]))
        self._order(orders(demand, f"{said.job.record.id}/{command.line}"))
        return f"ordered {command.name}"

    def _statistics(self, said: _Said) -> str:
        outcomes, repo = Outcomes(self._desk.store), said.event.where.repo
        default = said.loaded.config.review.min_confidence
        rows = statistics(outcomes.all(), outcomes.lessons(repo, default)[1], repo, default)
        return say.statistics(rows, outcomes.calibration(repo), default)

    def _retry(self, job: Job, event: CommentPosted) -> str:
        past = self._desk.store.jobs(
            states=("failed", "cancelled"), repo=event.where.repo, number=event.number
        )
        last = next((j for j in past if j.kind in {"review", "fix", "bisect"}), None)
        if last is None:
            return say.nothing_to_retry()
        self._order(orders(unpack(last.event), f"retry/{job.record.id}"))
        return say.retried(last.kind)

    def _dismiss(self, event: CommentPosted, github: GitHub, text: str) -> str:
        wanted, _, reason = text.partition(" ")
        posted = self._posted(event)
        named = wanted in _ids(posted) or _ID.fullmatch(wanted)
        if event.reply_to is not None and not named:
            # in a finding's own thread all that follows the command is the reason
            wanted, reason = self._finding_of_thread(github, event, posted) or wanted, text
        for fingerprint, (finding_id, title) in posted.items():
            if wanted and wanted in {finding_id, fingerprint}:
                self._turn_down(event, github, fingerprint, reason)
                return say.dismissed(title)
        return say.unknown_finding(wanted, list(posted.values()))

    def _dismiss_all(self, said: _Said) -> str:
        event, login = said.event, said.login
        allow = said.loaded.config.commands.allow
        if not may("dismiss", said.github.permission(login), allow):
            return f"refused {login}"
        posted = self._posted(event)
        for fingerprint in posted:
            self._turn_down(event, said.github, fingerprint, "by button")
        self._desk.log(said.job, login, "/dismiss", f"all {len(posted)} by button")
        again = Review(event.where, event.number, full=False, asked_by=login)
        self._order(orders(again, said.job.record.id))
        return f"dismissed {len(posted)}"

    def _turn_down(
        self, event: CommentPosted, github: GitHub, fingerprint: str, reason: str
    ) -> None:
        remembered = Remembered(self._desk.store, f"{event.where.repo}#{event.number}")
        said = remembered.posted()[fingerprint]
        remembered.dismiss(fingerprint, event.actor.login, reason)
        lessons.turned_down(self._desk, event.where, event.number, fingerprint, said)
        remembered.close(github, event.number, {fingerprint})

    def _finding_of_thread(
        self, github: GitHub, event: CommentPosted, posted: dict[str, tuple[str, str]]
    ) -> str:
        for thread in github.threads(event.number):
            if any(c.id == event.reply_to for c in thread.comments):
                body = thread.comments[0].body
                return next((f for f in posted if f"finding:{f}" in body), "")
        return ""

    def _posted(self, event: CommentPosted) -> dict[str, tuple[str, str]]:
        items = self._desk.store.items(f"posted/{event.where.repo}#{event.number}")
        found = {}
        for fingerprint, value in items:
            finding_id, title, *_ = json.loads(value)
            found[fingerprint] = (str(finding_id), str(title))
        return found

    def _approve(self, said: _Said) -> str:
        event, login = said.event, said.login
        done = self._publish(said.job, event.where, event.number, login)
        if done is not None:
            return done
        pull = said.github.pull(event.number) if event.on_pull else None
        if pull is None or not pull.fork:
            return say.nothing_to_approve()
        key = f"{event.number}@{pull.head_sha}"
        self._desk.store.put(f"approved/{event.where.repo}", key, login)
        again = Review(event.where, event.number, full=False, asked_by=login)
        self._order(orders(again, said.job.record.id))
        return say.fork_approved(pull.head_sha)

    def _given_before(self, event: CommentPosted) -> int:
        """Count one more command of this person in this repository; how many they gave in the hour before."""
        store, key = self._desk.store, f"{event.where.repo}/{event.actor.login}"
        now = self._desk.clock.now().timestamp()
        past = [t for t in json.loads(store.get("pace", key) or "[]") if now - t < _AN_HOUR]
        store.put("pace", key, json.dumps([*past, now][-2 * _MOST_AN_HOUR :]))
        return len(past)

    def _reply(self, said: _Said, line: int) -> Reply:
        ref = _ref(said.event, line)
        return Reply(said.github, self._desk.store, said.event.number, ref, said.job.record.id)


_ID = re.compile(r"[0-9a-f]{8}(?:[0-9a-f]{24})?")
_MODEL_ONLY = frozenset({"test", "explain", "ask"})
_ORDERED: dict[str, str] = {
    "review": "reading the change",
    "fix": "reproducing what is red",
    "bisect": "looking for the commit that broke it",
    "test": "writing a test",
    "explain": "reading the change",
    "ask": "looking it up",
}


def _ids(posted: dict[str, tuple[str, str]]) -> set[str]:
    """All by which findings can be called."""
    return {*posted, *(known[0] for known in posted.values())}


def _ref(event: CommentPosted, line: int) -> CommentRef | None:
    if not event.comment_id:
        return None
    return CommentRef(event.comment_id, event.review, line)


def _thread(event: CommentPosted) -> int | None:
    """The first remark of the thread that a comment stands in; itself where it begins one."""
    return (event.reply_to or event.comment_id) if event.review else None


def _demand(  # noqa: PLR0911 - a return for each command
    event: CommentPosted, command: Command
) -> Demand | None:
    where, number, login = event.where, event.number, event.actor.login
    ref = _ref(event, command.line)
    match command.name:
        case "review" if event.on_pull:
            full = command.text == "full"
            return Review(where, number, full=full, asked_by=login, comment=ref)
        case "fix":
            return Fix(where, number, event.on_pull, command.text, login, ref)
        case "bisect":
            o = command.options
            return Bisect(where, number, o.get("good"), o.get("bad"), o.get("test"), login, ref)
        case "test" if event.on_pull:
            return WriteTest(where, number, command.text, login, ref)
        case "explain":
            return Ask(where, number, event.on_pull, "", login, ref, _thread(event))
        case "ask":
            return Ask(where, number, event.on_pull, command.text, login, ref, _thread(event))
        case _:
            return None
