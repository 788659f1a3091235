"""What follows when refs move: push, create and delete events, pulls brought up to date, suites requested."""

from __future__ import annotations

from regreen_playground.acts import checks, pulls
from regreen_playground.events import emit
from regreen_playground.gitstore import CommitRecord
from regreen_playground.shape.commits import account, api, web
from regreen_playground.shape.people import when
from regreen_playground.things import Json, Repository, User
from regreen_playground.world import World

ZERO = "0" * 40


def moved(world: World, repository: Repository, before: dict[str, str], sender: User) -> None:
    """Compare the refs with what they were and tell of every branch and tag that moved."""
    after = repository.git.refs()
    for ref in sorted(before.keys() | after.keys()):
        old, new = before.get(ref, ZERO), after.get(ref, ZERO)
        if old != new and ref.startswith(("refs/heads/", "refs/tags/")):
            _one(world, repository, ref, old=old, new=new, sender=sender)


def _one(
    world: World, repository: Repository, ref: str, *, old: str, new: str, sender: User
) -> None:
    name = ref.split("/", 2)[2]
    kind = "branch" if ref.startswith("refs/heads/") else "tag"
    emit(
        world,
        repository,
        "push",
        None,
        _push(world, repository, ref, old=old, new=new, sender=sender),
        sender,
    )
    if ZERO in {old, new}:
        made: Json = {"ref": name, "ref_type": kind, "pusher_type": "user"}
        if old == ZERO:
            made |= {"master_branch": repository.default_branch, "description": None}
        emit(world, repository, "create" if old == ZERO else "delete", None, made, sender)
    if kind != "branch":
        return
    for base in world.repositories.values():
        for pull in list(base.pulls.values()):
            if pull.issue.state != "open":
                continue
            if pull.base is repository and pull.base_ref == name and new != ZERO:
                pull.base_sha = new
                pulls.point_refs(pull)
            if pull.head is repository and pull.head_ref == name:
                if new == ZERO:
                    pulls.update(world, pull, sender, state="closed")
                else:
                    pulls.synchronize(world, pull, new, sender)
    if new != ZERO:
        checks.request_suites(world, repository, new, branch=name, before=old, sender=sender)


def _push(
    world: World, repository: Repository, ref: str, *, old: str, new: str, sender: User
) -> Json:
    records: list[CommitRecord] = []
    git = repository.git
    if new != ZERO and git.kind(new) == "commit":
        others = [f"^{sha}" for name, sha in git.refs("refs/heads/").items() if name != ref]
        known = [f"^{old}"] if old != ZERO else others
        records = git.commits(new, *known, limit=20)[::-1]
    shown = [_commit(world, repository, one) for one in records]
    forced = ZERO not in {old, new} and git.merge_base(old, new) != old
    span = f"{old[:12]}...{new[:12]}"
    return {
        "ref": ref,
        "before": old,
        "after": new,
        "base_ref": None,
        "created": old == ZERO,
        "deleted": new == ZERO,
        "forced": forced,
        "compare": f"{web(world, repository)}/compare/{span}",
        "commits": shown,
        "head_commit": shown[-1] if shown else None,
        "pusher": {"name": sender.login, "email": sender.email},
    }


def _commit(world: World, repository: Repository, one: CommitRecord) -> Json:
    named = repository.git.run(
        "diff-tree",
        "-r",
        "--root",
        "--no-commit-id",
        "--name-status",
        "-z",
        "-m",
        "--first-parent",
        one.sha,
    )
    fields = [each for each in named.decode(errors="replace").split("\0") if each]
    pairs = list(zip(fields[::2], fields[1::2], strict=False))
    return {
        "id": one.sha,
        "tree_id": one.tree,
        "distinct": True,
        "message": one.message,
        "timestamp": when(one.committer.date),
        "url": f"{api(world, repository)}/commits/{one.sha}",
        "author": _who(one.author.name, one.author.email, account(world, one.author)),
        "committer": _who(one.committer.name, one.committer.email, account(world, one.committer)),
        "added": [path for status, path in pairs if status == "A"],
        "removed": [path for status, path in pairs if status == "D"],
        "modified": [path for status, path in pairs if status not in {"A", "D"}],
    }


def _who(name: str, email: str, known: User | None) -> Json:
    shown: Json = {"name": name, "email": email}
    if known is not None:
        shown["username"] = known.login
    return shown
