"""One table for each kind of fact in place of values under string keys, and the progress of jobs in its own table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

# Columns are text unless marked: * key, # integer, % float, ? boolean, @ JSON; a trailing ! may be empty (NULL).
_TABLES = """
approval: *repo *#number *sha login
command_claim: *repo *#comment *command job
command_times: *repo *login @times
dashboard_session: *digest login @reads @writes until
dismissal: *repo *#number *fingerprint login reason
finding_outcome: *repo *#number *fingerprint rule %confidence how at @signals!
finished_work: *kind *id body
last_refusal: *repo *#number *login %at command
last_valid_config: *repo text
missing_organisation_config: *#installation *owner until
open_repair: *repo *branch #number ?draft text! workflow
pending_patch: *repo *place %at patch branch sha title body ?on_pull workflow
posted_finding: *repo *#number *fingerprint id title path rule dimension places code %confidence @signals! suggestion side
pushed_commits: *repo *branch @commits
rate_limit: *owner *resource #left #most %resets
read_repository: *job *repo
renamed_repository: *#repo_id repo @before
repair_attempt: *repo *sha *job
repair_try: *repo *day *branch *sha
reply_part: *repo *#number *thread *#line text
repository_schedules: *repo #repo_id #installation default_branch schedules
revert: *repo *culprit #pull
revert_proof: *repo *culprit *tip way
revert_try: *repo *day *culprit
reviewed_head: *repo *sha conclusion
schedule_state: *repo *schedule green red #issue! @issues
service_state: *name value
unclaimed_branch: *repo *branch job #installation sha
unreported_failure: *job reason
unresolved_thread: *repo *#number *fingerprint
uploaded_review: *review sha
"""
_TYPES: dict[str, sa.types.TypeEngine[Any]] = {
    "#": sa.BigInteger(),
    "%": sa.Float(),
    "?": sa.Boolean(),
    "@": sa.JSON(none_as_null=True),
}

_DEFAULTS: dict[str, dict[str, Any]] = {
    "schedule_state": {"green": "", "red": "", "issue": None, "issues": []}
}

Row = tuple[str, dict[str, Any]]


def upgrade() -> None:
    """Create the tables, move the values, and drop the old tables."""
    tables = {}
    for line in _TABLES.strip().splitlines():
        name, _, columns = line.partition(": ")
        tables[name] = op.create_table(
            name, *map(_column, columns.split()), sa.Column("stored", sa.Float(), nullable=False)
        )
    connection = op.get_bind()
    old = connection.execute(sa.text("SELECT space, key, value, at FROM memory ORDER BY at")).all()
    rows: dict[tuple[str, tuple[Any, ...]], dict[str, Any]] = {}
    for space, key, value, at in old:
        for name, row in _convert(space, key, value):
            identity = tuple(row[column.name] for column in tables[name].primary_key)
            known = rows.get((name, identity), {"stored": at, **_DEFAULTS.get(name, {})})
            rows[name, identity] = {**known, **row}
    for (name, _), row in rows.items():
        connection.execute(tables[name].insert().values(row))
    _move_lines(connection)
    op.drop_table("memory")


def _column(mark: str) -> sa.Column[Any]:
    kind = next((_TYPES[c] for c in mark if c in _TYPES), sa.Text())
    is_key = mark.startswith("*")
    name = mark.strip("*#%?@!")
    return sa.Column(
        name, kind, primary_key=is_key, nullable=mark.endswith("!"), autoincrement=False
    )


def _move_lines(connection: sa.Connection) -> None:
    """Divide the lines into the progress of jobs and the observations of bisections."""
    for name, key, prefix in (("progress", "job", "progress/"), ("observations", "key", "bisect/")):
        op.create_table(
            name,
            sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
            sa.Column(key, sa.String(400 if key == "job" else 300), nullable=False),
            sa.Column("line", sa.Text(), nullable=False),
            sa.Column("at", sa.Float(), nullable=False),
        )
        op.create_index(f"ix_{name}_{key}", name, [key])
        move = f"INSERT INTO {name} ({key}, line, at) SELECT substr(key, :from_), line, at FROM lines WHERE key LIKE :which ORDER BY id"  # noqa: S608
        connection.execute(sa.text(move), {"from_": len(prefix) + 1, "which": prefix + "%"})
    op.drop_table("lines")


_SUBJECT = re.compile(r"(?P<repo>[^/#]+/[^/#]+)#(?P<number>\d+)")


def _convert(space: str, key: str, value: str) -> Iterator[Row]:  # noqa: C901, PLR0912, PLR0915 - a case a kind of value
    """The rows of one old value; a value that nothing reads any more has none."""
    kind, _, rest = space.partition("/")
    match kind:
        case "posted" | "dismissed" | "to-resolve":
            subject = _SUBJECT.fullmatch(rest)
            if subject is not None:
                finding = {
                    "repo": subject["repo"],
                    "number": int(subject["number"]),
                    "fingerprint": key,
                }
                yield _convert_finding(kind, finding, value)
        case "outcomes":
            yield "finding_outcome", json.loads(value)
        case "reviewed":
            yield "reviewed_head", {"repo": rest, "sha": key, "conclusion": value}
        case "code-scanning":
            yield "uploaded_review", {"review": key, "sha": value}
        case "review":
            yield "finished_work", {"kind": "review", "id": key, "body": value}
        case "fix-result":
            yield "finished_work", {"kind": "fix", "id": key, "body": value}
        case "approved":
            number, _, sha = key.partition("@")
            yield "approval", {"repo": rest, "number": int(number), "sha": sha, "login": value}
        case "pending":
            yield (
                "pending_patch",
                {"at": 0.0, "workflow": "", **json.loads(value), "repo": rest, "place": key},
            )
        case "fix-open":
            note = json.loads(value)
            note = (
                note if isinstance(note, dict) else {"number": note}
            )  # release 0.1.0 stored the number
            known = {"draft": False, "text": None, "workflow": "", **note}
            yield (
                "open_repair",
                {**known, "repo": rest, "branch": key, "draft": bool(known["draft"])},
            )
        case "fix-tries":
            repo, _, day = rest.rpartition("/")
            branch, _, sha = key.rpartition("@")
            yield "repair_try", {"repo": repo, "day": day, "branch": branch, "sha": sha}
        case "fix-attempts":
            sha, _, job = key.partition("/")
            yield "repair_attempt", {"repo": rest, "sha": sha, "job": job}
        case "branches":
            repo, _, branch = key.partition("@")
            yield "unclaimed_branch", {**json.loads(value), "repo": repo, "branch": branch}
        case "pushed":
            yield "pushed_commits", {"repo": rest, "branch": key, "commits": json.loads(value)}
        case "reverts":
            yield _convert_revert(rest, key, value)
        case "config":
            yield "last_valid_config", {"repo": key, "text": value}
        case "schedules":
            data = json.loads(value)
            yield (
                "repository_schedules",
                {**data["where"], "repo": key, "schedules": json.dumps(data["schedules"])},
            )
        case "schedule":
            repo, _, name = rest.rpartition("/")
            state: dict[str, Any] = {"repo": repo, "schedule": name}
            if key == "green":
                yield "schedule_state", {**state, "green": value}
            else:
                red = json.loads(value)
                issues = red.get("issues", [red["issue"]])
                yield (
                    "schedule_state",
                    {**state, "red": red["head"], "issue": red["issue"], "issues": issues},
                )
        case "moved":
            yield "renamed_repository", {**json.loads(value), "repo_id": int(key)}
        case "learnt":
            yield "read_repository", {"job": rest, "repo": key}
        case "commands":
            repo, _, comment = rest.rpartition("/")
            yield (
                "command_claim",
                {"repo": repo, "comment": int(comment), "command": key, "job": value},
            )
        case "reply":
            subject = _SUBJECT.match(rest)
            if subject is not None:
                thread = rest[subject.end() + 1 :]
                place = {
                    "repo": subject["repo"],
                    "number": int(subject["number"]),
                    "thread": thread,
                }
                yield "reply_part", {**place, "line": int(key), "text": value}
        case "pace":
            repo, _, login = key.rpartition("/")
            yield "command_times", {"repo": repo, "login": login, "times": json.loads(value)}
        case "refused":
            number, _, login = key.partition("/")
            at, command = json.loads(value)
            place = {"repo": rest, "number": int(number), "login": login}
            yield "last_refusal", {**place, "at": at, "command": command}
        case "giving-up":
            yield "unreported_failure", {"job": key, "reason": value}
        case "health" | "ticks":
            yield (
                "service_state",
                {"name": "tick" if kind == "ticks" else "sandbox", "value": value},
            )
        case "dashboard-session-secret":
            yield "service_state", {"name": "form secret", "value": value}
        case "dashboard-session":
            yield "dashboard_session", {**json.loads(value), "digest": key}
        case _:
            return  # what is read again within minutes


_FINDING_COLUMNS: dict[str, Any] = {
    "id": "",
    "title": "",
    "path": "",
    "rule": "",
    "dimension": "",
    "places": "",
    "code": "",
    "confidence": 0.8,
    "signals": "",
    "suggestion": "",
    "side": "RIGHT",
}
"""The values of a posted finding by their position, with the defaults of those that it may lack."""


def _convert_finding(kind: str, finding: dict[str, Any], value: str) -> Row:
    if kind == "to-resolve":
        return "unresolved_thread", finding
    if kind == "dismissed":
        login, reason = json.loads(value)
        return "dismissal", {**finding, "login": login, "reason": reason}
    row = _FINDING_COLUMNS | dict(zip(_FINDING_COLUMNS, json.loads(value), strict=False))
    signals = json.loads(row["signals"]) if row["signals"] else None
    return "posted_finding", {**finding, **row, "signals": signals}


def _convert_revert(rest: str, key: str, value: str) -> Row:
    owner, name, *more = rest.split("/")
    repo = {"repo": f"{owner}/{name}"}
    if not more:
        return "revert", {**repo, "culprit": key, "pull": int(value)}
    if more == ["passed"]:
        culprit, _, tip = key.partition("@")
        return "revert_proof", {**repo, "culprit": culprit, "tip": tip, "way": value}
    return "revert_try", {**repo, "day": more[0], "culprit": key}
