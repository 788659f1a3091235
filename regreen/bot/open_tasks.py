"""What needs a person, for the dashboard's first page and for the weekly digest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any

from regreen.bot.command_handler import has_command
from regreen.bot.flows.maintenance import parse_schedules
from regreen.bot.jobs.serialization import deserialize_work
from regreen.bot.messages import REPAIR_CHECK
from regreen.bot.services import Services
from regreen.domain.errors import UserError
from regreen.domain.events import (
    AnswerRequest,
    ButtonPressed,
    CheckFailed,
    CheckPassed,
    CheckRerequested,
    CommentPosted,
    Tick,
    Work,
)
from regreen.domain.records import JobKind, JobRecord, ResultDocument, Store
from regreen.domain.repo_config import Schedule
from regreen.domain.state_records import (
    Approval,
    OpenRepair,
    PendingPatch,
    RepositorySchedules,
    ScheduleState,
)
from regreen.secrets.markdown_sanitizer import count_noun, format_probability, to_plain_line
from regreen.secrets.redaction import redact_secrets

_MAX_DIGEST_TASKS = 12
_MAX_DOCUMENTS = 100
_MAX_CI_JOBS = 500
_RECENT_FAILURES = timedelta(days=3)
_RED_BY_FIX = {
    "gave_up": True,
    "denied": True,
    "out_of_budget": True,
    "already_green": False,
    "flaky": False,
}
"""Whether a repair of a branch says that the branch still fails, by outcome; others list a draft or a patch."""
MAINTENANCE_KINDS: tuple[JobKind, ...] = ("care", "comment")
"""Jobs that people did not ask for, or that only hand work on."""
KIND_TITLES: dict[JobKind, str] = {
    "review": "Review of",
    "fix": "Fix for",
    "bisect": "Bisection in",
    "why": "Cause of failed checks in",
    "prove": "Proof of",
    "comment": "Answer in",
    "tick": "Scheduled run in",
    "care": "Maintenance",
}


@dataclass(frozen=True, slots=True)
class OpenTask:
    """Something that a person has to do: a state for its colour, what it is, and where to go.

    `culprit` is the commit that caused it, if that is known; `draft` the pull request that repairs it; `check` the commit
    whose check run has the button, where that is the place to go.
    """

    state: str
    text: str
    repo: str
    number: int | None = None
    job: str = ""
    since: datetime | None = None
    culprit: str = ""
    check: str = ""
    draft: int | None = None

    @property
    def path(self) -> str:
        """Where to go on GitHub, below the repository."""
        if self.check:
            return f"commit/{self.check}/checks"
        return f"issues/{self.number}" if self.number is not None else ""


def list_open_tasks(store: Store, now: datetime, is_shown: Callable[[str], bool]) -> list[OpenTask]:
    """What needs a person in the shown repositories, the most urgent first.

    These are red branches, commits that a search blames for that, configurations that cannot be used, patches and forks' commits to approve, drafts to review, and jobs that failed lately.
    """
    tasks = [
        _describe_red_branch(store, state)
        for state in store.find_all(ScheduleState)
        if state.red and is_shown(state.repo)
    ]
    recent = {
        kind: [
            document
            for document in store.documents(kind=kind, limit=_MAX_DOCUMENTS)
            if is_shown(document.repo)
        ]
        for kind in ("why", "fix", "review", "bisect")
    }
    tasks += _list_culprits(store, recent["bisect"], now)
    tasks += _list_red_bases([*recent["why"], *recent["fix"], *recent["review"]], now)
    tasks += _list_broken_configs(store, recent["review"], now, is_shown)
    newest: dict[tuple[str, str], PendingPatch] = {}
    patches = [p for p in store.find_all(PendingPatch) if is_shown(p.repo)]
    for patch in sorted(patches, key=lambda p: p.at, reverse=True):
        is_newest = newest.setdefault((patch.repo, patch.branch), patch) is patch
        tasks.append(describe_patch(patch, is_newest=is_newest))
    tasks += _list_waiting_forks(store, [*recent["review"], *recent["why"]], now)
    drafts = [
        _describe_draft(store, d)
        for d in store.find_all(OpenRepair, closed=False)
        if is_shown(d.repo)
    ]
    tasks = _join_drafts(tasks, drafts)
    failed = {
        # one refusal may concern many jobs of a repository
        (job.repo, job.note if job.outcome == "refused" else job.id): job
        for job in store.jobs(states=("failed",), kinds=[k for k in KIND_TITLES if k != "care"])
        if now - job.created < _RECENT_FAILURES
        and _is_wanted(store, job)
        and is_shown(job.repo)
        and not _was_repeated_with_success(store, job)
    }
    return [*tasks, *map(_describe_failed_job, failed.values())]


def _describe_failed_job(job: JobRecord) -> OpenTask:
    kind, is_refused = name_job(job).split()[0], job.outcome == "refused"
    text = f"{kind} {'' if is_refused else 'failed: '}{job.note[:300]}"
    state = "refused" if is_refused else "failed"
    return OpenTask(state, text, job.repo, job.number, job.id, job.created)


def name_job(job: JobRecord) -> str:
    """What a job does, to come before the place where it does it."""
    return KIND_TITLES["comment" if isinstance(_read_work(job), AnswerRequest) else job.kind]


def _is_wanted(store: Store, job: JobRecord) -> bool:
    """Whether a person waits for what the job does; of those that hand work on, for commands alone."""
    match _read_work(job) if job.kind == "comment" else None:
        case CommentPosted() as event:
            return has_command(store, event)
        case ButtonPressed() | CheckRerequested():
            return True
        case _:
            return job.kind != "comment"


def _read_work(job: JobRecord) -> Work | None:
    """What was to be done; None where another version wrote it."""
    try:
        return deserialize_work(job.event)
    except UserError:
        return None


def _was_repeated_with_success(store: Store, failed: JobRecord) -> bool:
    """Whether a later job of its kind for the same pull request or issue was done; then nobody has to look at the failure."""
    # another branch, schedule or command may be meant
    if failed.number is None or failed.kind == "comment":
        return False
    done = store.jobs(
        states=("done",), kinds=(failed.kind,), repo=failed.repo, number=failed.number, limit=1
    )
    return bool(done) and done[0].created > failed.created


def _list_red_bases(found: Sequence[ResultDocument], now: datetime) -> list[OpenTask]:
    """Branches that the newest recent answer or repair that ran them saw fail; no schedule may test them."""
    seen: set[tuple[str, str]] = set()
    tasks = []
    for document in sorted(found, key=lambda one: one.at, reverse=True):
        branch, is_red = _find_branch_state(document)
        key = (document.repo, branch)
        if is_red is None or key in seen:
            continue
        seen.add(key)
        if is_red and now - document.at < _RECENT_FAILURES:
            text = f"Tests fail on `{branch}` too, not only in this pull request"
            if document.kind == "review":
                text = f"Tests fail at the merge base with `{branch}` too, not only in this pull request"
            if document.kind == "fix":
                text = f"The branch `{branch}` fails, and "
                text += (
                    "a repair was found, which is only shown: the repository is only observed"
                    if document.body.get("observed") and document.body.get("patch")
                    else "no repair was found"
                )
            place = (document.repo, document.number, document.job, document.at)
            for since, tests in _group_failing_tests(document.body).items():
                whole = f"{text}, since `{since[:12]}`" if since else text
                tasks.append(OpenTask("red", whole + _name_first(tests), *place, since))
    return tasks


def _find_branch_state(document: ResultDocument) -> tuple[str, bool | None]:
    """The branch that a result ran, and whether it failed; None where that is not known."""
    body = document.body
    if document.kind == "fix":
        if document.number is not None:  # then the title is a pull request's
            return "", None
        outcome = str(body.get("outcome"))
        is_shown_alone = bool(body.get("observed") and body.get("patch")) or None
        return str(body.get("title") or ""), _RED_BY_FIX.get(outcome, is_shown_alone)
    if document.kind == "review":
        failing = body.get("fail_on_base")
        return str(body.get("base_branch") or ""), True if failing else None
    causes = [cause for cause in body.get("causes") or () if isinstance(cause, dict)]
    if not isinstance(branch := body.get("base"), str):
        return "", None
    if any(cause.get("verdict") == "main" and cause.get("do") != "rebase" for cause in causes):
        return branch, True
    ran = [run for cause in causes for run in cause.get("runs") or () if isinstance(run, dict)]
    is_green = any(run.get("where") == "base" and run.get("outcome") == "pass" for run in ran)
    return branch, False if is_green or any(c.get("do") == "rebase" for c in causes) else None


def _group_failing_tests(body: dict[str, Any]) -> dict[str, list[str]]:
    """The tests that the base branch was seen to fail, by the commit that broke them; "" where that is not known."""
    mains = [
        cause
        for cause in body.get("causes") or ()
        if isinstance(cause, dict)
        and cause.get("verdict") == "main"
        and cause.get("do") != "rebase"
    ]
    groups: dict[str, list[str]] = {}
    for cause in mains:
        ran = [run for run in cause.get("runs") or () if isinstance(run, dict)]
        failed = [run.get("tests") or () for run in ran if run.get("where") == "base"]
        since = str((cause.get("since") or {}).get("sha") or "")
        groups.setdefault(since, []).extend(str(test) for named in failed for test in named if test)
    return groups or {"": [str(test) for test in body.get("fail_on_base") or () if test]}


def _name_first(tests: Sequence[str]) -> str:
    """The first of the tests, and how many more there are; empty where none is known."""
    tests = list(dict.fromkeys(tests))
    if not tests:
        return ""
    more = f" (+{len(tests) - 1} more)" if len(tests) > 1 else ""
    return f": {to_plain_line(tests[0], 160)}{more}"


def _list_broken_configs(
    store: Store,
    reviews: Sequence[ResultDocument],
    now: datetime,
    is_shown: Callable[[str], bool],
) -> list[OpenTask]:
    """Repositories whose newest recent review could not use their configuration, or was not made because of it."""
    newest: dict[str, OpenTask] = {}
    for one in sorted(reviews, key=lambda one: one.at):
        problem = str(one.body.get("config_problem") or "")
        newest[one.repo] = OpenTask("red", problem, one.repo, None, one.job, one.at)
    for job in store.jobs(states=("done",), kinds=("review",), limit=_MAX_CI_JOBS):
        known = newest.get(job.repo)
        is_later = known is None or known.since is None or job.created >= known.since
        if is_shown(job.repo) and is_later and job.outcome == "unreadable":
            text = f"Nothing is reviewed: {job.note}"
            newest[job.repo] = OpenTask("red", text, job.repo, None, job.id, job.created)
    return [
        task
        for task in newest.values()
        if task.text and task.since and now - task.since < _RECENT_FAILURES
    ]


def _list_waiting_forks(
    store: Store, found: Sequence[ResultDocument], now: datetime
) -> list[OpenTask]:
    """Forks' pull requests whose newest head is not run before somebody approves it."""
    seen: set[tuple[str, int]] = set()
    tasks = []
    for document in sorted(found, key=lambda one: one.at, reverse=True):
        repo, number, body = document.repo, document.number, document.body
        if number is None or (repo, number) in seen:
            continue
        seen.add((repo, number))
        head = str(body.get("head") or "")
        if not body.get("waits_for_approval") or now - document.at >= _RECENT_FAILURES:
            continue
        if store.find(Approval, repo=repo, number=number, sha=head) is None:
            text = f"A fork's code at `{head[:12]}` waits for `/approve`: {body.get('title') or ''}"
            tasks.append(OpenTask("waiting", text, repo, number, document.job, document.at))
    return tasks


def describe_patch(patch: PendingPatch, *, is_newest: bool = True) -> OpenTask:
    """A patch to approve: by a command where it was posted, else by the button of its commit's check run."""
    number = int(patch.place) if patch.place.isdecimal() else None
    how = f"the button “Approve” of the check `{REPAIR_CHECK}`" if number is None else "`/approve`"
    which = "A patch" if is_newest else "An older patch"
    text = f"{which} for `{patch.branch}` at `{patch.sha[:12]}` waits for {how}: {patch.title}"
    at, check = datetime.fromtimestamp(patch.at, UTC), "" if number is not None else patch.sha
    return OpenTask("waiting", text, patch.repo, number, since=at, check=check)


def _describe_draft(store: Store, draft: OpenRepair) -> OpenTask:
    """A repair to review: of whose pull request it is, and since when it waits, by its result."""
    found = store.documents(repo=draft.repo, kind="fix", limit=20)
    document = next((d for d in found if d.body.get("opened") == draft.number), None)
    asked = f" for #{draft.issue}" if draft.issue else ""
    text = f"Review the draft that repairs `{draft.branch}`{asked}"
    if document is None:
        return OpenTask("draft", text, draft.repo, draft.number)
    title, author = document.body.get("title"), document.body.get("author")
    text += f" “{title}”" if title and title != draft.branch else ""
    text += f" by {author}" if author else ""
    sha = (document.body.get("culprit") or {}).get("sha", "")
    return OpenTask("draft", text, draft.repo, draft.number, document.job, document.at, sha)


def _join_drafts(tasks: Sequence[OpenTask], drafts: Sequence[OpenTask]) -> list[OpenTask]:
    """The tasks and drafts, where a red branch and the draft that repairs what broke it are one."""
    repairs = {(draft.repo, draft.culprit): draft for draft in drafts if draft.culprit}
    joined = []
    for task in tasks:
        draft = repairs.get((task.repo, task.culprit)) if task.state == "red" else None
        text = f"{task.text}; review draft #{draft.number}, which repairs it" if draft else ""
        joined.append(replace(task, text=text, draft=draft.number) if draft else task)
    named = {(task.repo, task.draft) for task in joined}
    return [*joined, *(draft for draft in drafts if (draft.repo, draft.number) not in named)]


def _describe_red_branch(store: Store, state: ScheduleState) -> OpenTask:
    """A schedule that fails: since when, and whose commit it was, by its bisection."""
    found = store.documents(repo=state.repo, kind="bisect", limit=10)
    document = next((d for d in found if _is_bisection_of_schedule(d.body, state)), None)
    culprit = (document.body.get("culprit") if document else None) or {}
    text = f"The schedule `{state.schedule}` fails at `{state.red[:12]}`"
    if document is None:
        return OpenTask("red", text, state.repo, state.issue)
    culprit = (document.body.get("culprit") or {}).get("sha", "")
    text += _describe_culprit(document.body)
    return OpenTask("red", text, state.repo, state.issue, document.job, document.at, culprit)


def _list_culprits(store: Store, found: Sequence[ResultDocument], now: datetime) -> list[OpenTask]:
    """What the newest recent search on request for each command blames on a default branch that is not green again; schedules list their own."""
    newest: dict[tuple[str, str], ResultDocument] = {}
    for document in sorted(found, key=lambda one: one.at):
        if document.number is not None and document.body.get("branch"):
            newest[document.repo, str(document.body.get("command"))] = document
    tasks = []
    for (repo, command), document in newest.items():
        body = document.body
        if not body.get("culprit") or now - document.at >= _RECENT_FAILURES:
            continue
        if _is_green_again(store, document):
            continue
        does = "is slower" if body.get("slower") else "fails"
        shown = to_plain_line(command, 120).replace("`", "'")
        text = f"`{shown}` {does} on `{body['branch']}`{_describe_culprit(body)}"
        place, sha = document.number, body["culprit"]["sha"]
        tasks.append(OpenTask("red", text, repo, place, document.job, document.at, sha))
    return tasks


def read_schedules(known: RepositorySchedules) -> Sequence[Schedule]:
    """The schedules of a repository; none where this version takes them no more, because then they do not run."""
    try:
        return parse_schedules(known)
    except ValueError:
        return ()


def _is_green_again(store: Store, search: ResultDocument) -> bool:
    """Whether the command of a search, or the CI of its branch, has passed since at a commit that the search did not cover.

    It counts for the command when a schedule runs it; for the branch when each workflow that failed there passed, which
    says nothing of how fast it is. The run that GitHub started last decides: an older commit may run again later.
    """
    body, branch = search.body, search.body["branch"]
    wanted = (branch, body.get("command"), body.get("slower"))
    known = store.find(RepositorySchedules, repo=search.repo)
    same = {
        one.name
        for one in (read_schedules(known) if known else ())
        if (one.branch, one.test, one.slower) == wanted
    }
    covered = {point.get("sha") for point in body.get("posterior") or ()}
    covered |= {*(body.get("range") or {}).values()}
    runs: dict[str, list[tuple[int, bool]]] = {}
    failed = set()
    for job in store.jobs(kinds=("tick", "fix", "comment"), repo=search.repo, limit=_MAX_CI_JOBS):
        is_later = job.created > search.at
        match work := _read_work(job):
            case Tick(schedule=name) if is_later and name in same and job.outcome == "green":
                return True
            case CheckPassed(head_branch=at, fork=False) if at == branch:
                is_green = is_later and work.head_sha not in covered
                runs.setdefault(work.name, []).append((work.run_id, is_green))
            case CheckFailed(head_branch=at, fork=False) if at == branch:
                runs.setdefault(work.name, []).append((work.run_id or 0, False))
                failed.add(work.name)
            case _:
                pass
    # of one run's attempts, the one that is listed first is the newest
    newest = {name: max(its, key=lambda run: run[0])[1] for name, its in runs.items()}
    return bool(failed) and not body.get("slower") and all(newest[name] for name in failed)


def _describe_culprit(body: dict[str, Any]) -> str:
    """Since which commit, whose it is, how sure that is, and how to undo it; "" where none was found."""
    culprit = body.get("culprit")
    if not culprit:
        return ""
    text = f" since `{culprit['sha'][:12]}` “{culprit['subject']}” by {culprit['author']}"
    pull = body.get("culprit_pull") or {}
    text += f" (#{pull['number']} by {pull['author']})" if pull else ""
    share, undo = body.get("probability"), body.get("undo")
    text += f", {format_probability(share)}" if isinstance(share, float) else ""
    return text + (f"; revert it with `{undo}`" if undo else "")


def _is_bisection_of_schedule(body: dict[str, object], state: ScheduleState) -> bool:
    """Whether a bisection is the one of a schedule's failure; only its end is known where no issue was opened."""
    if state.issue is not None:
        return body.get("opened") == state.issue
    span = body.get("range")
    return isinstance(span, dict) and span.get("bad") == state.red


def post_digest(services: Services) -> str:
    """Send the week's list of what needs a person to the operator's address; return what was done."""
    address = services.settings.digest_url
    if address is None:
        return "no digest is wanted"
    tasks = list_open_tasks(services.store, services.clock.now(), lambda _repo: True)
    services.post_json(address.get_secret_value(), {"text": digest_text(services, tasks)})
    return f"sent {count_noun(len(tasks), 'task')}"


def digest_text(services: Services, tasks: list[OpenTask]) -> str:
    """The digest as chat programs show it; what comes from repositories is plain text there."""
    now, page = services.clock.now(), (services.settings.public_url or "").rstrip("/")
    count = f"{count_noun(len(tasks), 'thing')} need{'s' if len(tasks) == 1 else ''} a person"
    lines = [f"Regreen, week {now:%V}: {count if tasks else 'nothing needs a person'}."]
    for task in tasks[:_MAX_DIGEST_TASKS]:
        web = f"{services.settings.github.web_url}/{task.repo}"
        link = f"{web}/{task.path}" if task.path else web
        since = f" (since {task.since:%d %B})" if task.since else ""
        lines.append(f"- {task.repo}: {_quote(task.text)}{since} {link}")
    if more := tasks[_MAX_DIGEST_TASKS:]:
        repos = ", ".join(sorted({task.repo for task in more})[:_MAX_DIGEST_TASKS])
        lines.append(f"- {len(more)} more, in {repos}")
    return "\n".join([*lines, f"Overview: {page}/"] if page else lines)


def _quote(text: str) -> str:
    """Text that mentions nobody and links nowhere in a chat."""
    return escape(to_plain_line(redact_secrets(text), 300), quote=False)
