"""Commits, trees, refs and changed files as GitHub's JSON shows them."""

from __future__ import annotations

import base64
from urllib.parse import quote

from regreen_playground.difflines import FileChange
from regreen_playground.gitstore import NO_TREE, CommitRecord, Entry, Person
from regreen_playground.shape.people import maybe_user, when
from regreen_playground.things import Json, Repository, User
from regreen_playground.world import World


def api(world: World, repository: Repository) -> str:
    """What a repository's API addresses begin with."""
    return f"{world.api_url}/repos/{repository.full_name}"


def web(world: World, repository: Repository) -> str:
    """What a repository's pages begin with."""
    return f"{world.web_url}/{repository.full_name}"


def account(world: World, person: Person) -> User | None:
    """The account behind a commit's address."""
    for one in world.users.values():
        if one.email.lower() == person.email.lower():
            return one
    return None


def person(one: Person) -> Json:
    """A commit's author or committer."""
    return {"name": one.name, "email": one.email, "date": when(one.date)}


def _parents(world: World, repository: Repository, record: CommitRecord, kind: str) -> list[Json]:
    return [
        {
            "sha": sha,
            "url": f"{api(world, repository)}/{kind}/{sha}",
            "html_url": f"{web(world, repository)}/commit/{sha}",
        }
        for sha in record.parents
    ]


def commit(world: World, repository: Repository, record: CommitRecord) -> Json:
    """A commit as lists show it."""
    url = f"{api(world, repository)}/commits/{record.sha}"
    return {
        "sha": record.sha,
        "node_id": f"C_{record.sha}",
        "commit": {
            "author": person(record.author),
            "committer": person(record.committer),
            "message": record.message,
            "tree": {
                "sha": record.tree,
                "url": f"{api(world, repository)}/git/trees/{record.tree}",
            },
            "url": f"{api(world, repository)}/git/commits/{record.sha}",
            "comment_count": 0,
            "verification": _verification(record),
        },
        "url": url,
        "html_url": f"{web(world, repository)}/commit/{record.sha}",
        "comments_url": f"{url}/comments",
        "author": maybe_user(world, account(world, record.author)),
        "committer": maybe_user(world, account(world, record.committer)),
        "parents": _parents(world, repository, record, "commits"),
    }


def full_commit(
    world: World, repository: Repository, record: CommitRecord, files: list[FileChange]
) -> Json:
    """A commit with what it changed."""
    added = sum(one.additions for one in files)
    removed = sum(one.deletions for one in files)
    return {
        **commit(world, repository, record),
        "stats": {"additions": added, "deletions": removed, "total": added + removed},
        "files": [file(world, repository, one, record.sha) for one in files],
    }


def git_commit(world: World, repository: Repository, record: CommitRecord) -> Json:
    """A commit as the git data API shows it."""
    return {
        "sha": record.sha,
        "node_id": f"C_{record.sha}",
        "url": f"{api(world, repository)}/git/commits/{record.sha}",
        "html_url": f"{web(world, repository)}/commit/{record.sha}",
        "author": person(record.author),
        "committer": person(record.committer),
        "tree": {
            "sha": record.tree,
            "url": f"{api(world, repository)}/git/trees/{record.tree}",
        },
        "message": record.message,
        "parents": _parents(world, repository, record, "git/commits"),
        "verification": _verification(record),
    }


def simple_commit(record: CommitRecord) -> Json:
    """A commit inside a workflow run or check suite."""
    return {
        "id": record.sha,
        "tree_id": record.tree,
        "message": record.message,
        "timestamp": when(record.committer.date),
        "author": {"name": record.author.name, "email": record.author.email},
        "committer": {"name": record.committer.name, "email": record.committer.email},
    }


def file(world: World, repository: Repository, change: FileChange, head: str) -> Json:
    """One changed file of a pull, commit or comparison."""
    path = quote(change.path)
    shown: Json = {
        "sha": change.sha,
        "filename": change.path,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        "changes": change.additions + change.deletions,
        "blob_url": f"{web(world, repository)}/blob/{head}/{path}",
        "raw_url": f"{web(world, repository)}/raw/{head}/{path}",
        "contents_url": f"{api(world, repository)}/contents/{path}?ref={head}",
    }
    if change.patch is not None:
        shown["patch"] = change.patch
    if change.previous is not None:
        shown["previous_filename"] = change.previous
    return shown


def parent_or_empty(record: CommitRecord) -> str:
    """What a commit is shown against."""
    return record.parents[0] if record.parents else NO_TREE


def ref(world: World, repository: Repository, name: str, sha: str, kind: str) -> Json:
    """A git ref."""
    return {
        "ref": name,
        "node_id": f"REF_{repository.id}_{name}",
        "url": f"{api(world, repository)}/git/{quote(name)}",
        "object": {
            "type": kind,
            "sha": sha,
            "url": f"{api(world, repository)}/git/{kind}s/{sha}",
        },
    }


def tree_entry(world: World, repository: Repository, entry: Entry) -> Json:
    """One entry of a git tree."""
    shown: Json = {"path": entry.path, "mode": entry.mode, "type": entry.kind, "sha": entry.sha}
    if entry.kind != "commit":
        shown["url"] = f"{api(world, repository)}/git/{entry.kind}s/{entry.sha}"
    if entry.size is not None:
        shown["size"] = entry.size
    return shown


def content(
    world: World, repository: Repository, rev: str, entry: Entry, data: bytes | None
) -> Json:
    """A file or directory entry of the contents API; `data` where the file itself was asked for."""
    path = quote(entry.path)
    url = f"{api(world, repository)}/contents/{path}?ref={rev}"
    kinds = {"tree": "dir", "commit": "submodule"}
    kind = "symlink" if entry.mode == "120000" else kinds.get(entry.kind, "file")
    word = "tree" if kind == "dir" else "blob"
    git_url = f"{api(world, repository)}/git/{word}s/{entry.sha}"
    html_url = f"{web(world, repository)}/{word}/{rev}/{path}"
    raw_url = f"{web(world, repository)}/raw/{rev}/{path}" if kind == "file" else None
    shown: Json = {
        "name": entry.path.rpartition("/")[2],
        "path": entry.path,
        "sha": entry.sha,
        "size": entry.size or 0,
        "url": url,
        "html_url": html_url,
        "git_url": git_url,
        "download_url": raw_url,
        "type": kind,
        "_links": {"self": url, "git": git_url, "html": html_url},
    }
    if data is not None and kind == "symlink":
        shown["target"] = data.decode(errors="replace")
    elif data is not None:
        shown["content"] = base64.encodebytes(data).decode()
        shown["encoding"] = "base64"
    return shown


GITHUB = ("GitHub", "noreply@github.com")
"""The committer of what GitHub commits itself, which it signs."""


def _verification(record: CommitRecord) -> Json:
    signed = (record.committer.name, record.committer.email) == GITHUB
    return {
        "verified": signed,
        "reason": "valid" if signed else "unsigned",
        "signature": "-----BEGIN PGP SIGNATURE-----" if signed else None,
        "payload": f"tree {record.tree}" if signed else None,
        "verified_at": when(record.committer.date) if signed else None,
    }
