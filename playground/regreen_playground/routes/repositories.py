"""Routes that read a repository: itself, branches, commits, comparisons, contents, archives, statuses."""

from __future__ import annotations

import base64
import binascii

from regreen_playground.acts import pushes
from regreen_playground.difflines import changes
from regreen_playground.gitstore import Person
from regreen_playground.routes.wire import (
    Api,
    Call,
    Reply,
    RepoCall,
    listed,
    optional,
    page,
    text_of,
)
from regreen_playground.shape import checks as shape_checks
from regreen_playground.shape import commits as shape
from regreen_playground.shape.people import full_repository, permission_flags, repository, user
from regreen_playground.shape.pulls import pull as shape_pull
from regreen_playground.things import Json, Level, Repository, Status
from regreen_playground.world import Refused, World, level

COMPARED_FILES = 300


def routes(world: World) -> Api:
    """The routes."""
    api = Api(world, "repositories")
    _itself(api)
    _branches(api)
    _about(api)
    _commits(api)
    _contents(api)
    _statuses(api)
    return api


def commit_named(call: RepoCall, rev: str) -> str:
    """The commit a route names by branch, tag or id.

    Raises:
        Refused: there is none (404; 422 for what looks like an id).
    """
    git = call.repo.git
    for name in (f"refs/heads/{rev}", f"refs/tags/{rev}", f"refs/{rev}", rev):
        sha = git.resolve(name)
        if sha:
            return sha
    looks_like_id = len(rev) == 40 and all(letter in "0123456789abcdef" for letter in rev)
    raise Refused(422 if looks_like_id else 404, f"No commit found for SHA: {rev}")


def _itself(api: Api) -> None:
    @api.on("GET", "", "metadata:read")
    def get(call: RepoCall) -> object:
        shown = full_repository(call.world, call.repo)
        if call.caller.user is not None and call.caller.token is None:
            shown["permissions"] = permission_flags(level(call.repo, call.caller.user))
        return shown

    @api.on("GET", "/collaborators", "metadata:read")
    def collaborators(call: RepoCall) -> object:
        known: dict[str, Level] = {call.repo.owner.login: "admin", **call.repo.collaborators}
        shown = []
        for login, word in known.items():
            who = user(call.world, call.world.user(login))
            shown.append({**who, "permissions": permission_flags(word), "role_name": word})
        return listed(shown)


def _branches(api: Api) -> None:
    @api.on("GET", "/branches", "contents:read")
    def branches(call: RepoCall) -> object:
        heads = call.repo.git.refs("refs/heads/")
        return listed([_short_branch(call, name, sha) for name, sha in heads.items()])

    @api.on("GET", "/branches/<path:branch>", "contents:read")
    def branch(call: RepoCall, branch: str) -> object:
        sha = call.repo.git.branch(branch)
        if sha is None:
            raise Refused(404, "Branch not found")
        base = shape.api(call.world, call.repo)
        return {
            **_short_branch(call, f"refs/heads/{branch}", sha),
            "commit": shape.commit(call.world, call.repo, call.repo.git.commit(sha)),
            "_links": {
                "self": f"{base}/branches/{branch}",
                "html": f"{shape.web(call.world, call.repo)}/tree/{branch}",
            },
            "protection": {"enabled": False},
            "protection_url": f"{base}/branches/{branch}/protection",
        }

    @api.on("GET", "/rules/branches/<path:branch>", "metadata:read")
    def rules(call: RepoCall, branch: str) -> object:  # noqa: ARG001 - none on any
        return []

    @api.on("GET", "/branches/<path:branch>/protection", "administration:read")
    def protection(call: RepoCall, branch: str) -> object:  # noqa: ARG001 - never
        raise Refused(404, "Branch not protected")


def _about(api: Api) -> None:
    @api.on("GET", "/tags", "metadata:read")
    def tags(call: RepoCall) -> object:
        base, html = shape.api(call.world, call.repo), shape.web(call.world, call.repo)
        shown = []
        for ref in call.repo.git.refs("refs/tags/"):
            name, sha = ref.removeprefix("refs/tags/"), call.repo.git.resolve(ref)
            shown.append(
                {
                    "name": name,
                    "commit": {"sha": sha, "url": f"{base}/commits/{sha}"},
                    "zipball_url": f"{html}/zipball/{ref}",
                    "tarball_url": f"{html}/tarball/{ref}",
                    "node_id": f"REF_{call.repo.id}_{ref}",
                }
            )
        return listed(shown)

    @api.on("GET", "/languages", "metadata:read")
    def languages(call: RepoCall) -> object:
        known = {".py": "Python", ".js": "JavaScript", ".ts": "TypeScript", ".go": "Go"}
        sizes: Json = {}
        for entry in call.repo.git.tree(call.repo.default_branch, recursive=True):
            for ending, name in known.items():
                if entry.path.endswith(ending):
                    so_far = sizes.get(name)
                    sizes[name] = (so_far if isinstance(so_far, int) else 0) + (entry.size or 0)
        return sizes

    @api.plain("GET", "/orgs/<login>/repos")
    def of_org(call: Call, login: str) -> object:
        token, account = call.caller.token, call.world.user(login)
        mine = [
            one
            for one in call.world.repositories.values()
            if one.owner is account and (not one.private or (token and token.covers(one)))
        ]
        return listed([repository(call.world, one) for one in mine])


def _short_branch(call: RepoCall, ref: str, sha: str) -> Json:
    base = shape.api(call.world, call.repo)
    name = ref.removeprefix("refs/heads/")
    tip = {"sha": sha, "url": f"{base}/commits/{sha}"}
    return {"name": name, "commit": tip, "protected": False}


def _commits(api: Api) -> None:
    @api.on("GET", "/commits", "contents:read")
    def commits(call: RepoCall) -> object:
        start = commit_named(call, call.asked("sha") or call.repo.default_branch)
        found = call.repo.git.commits(start, path=call.asked("path") or None)
        since, until = call.asked("since"), call.asked("until")
        if since:
            found = [one for one in found if one.committer.date.isoformat() >= since[:19]]
        if until:
            found = [one for one in found if one.committer.date.isoformat()[:19] <= until[:19]]
        part, headers = page(found)
        shown = [shape.commit(call.world, call.repo, one) for one in part]  # type: ignore[arg-type]
        return Reply(200, shown, headers)

    @api.on("GET", "/commits/<path:rev>", "contents:read")
    def commit(call: RepoCall, rev: str) -> object:
        sha = commit_named(call, rev)
        record = call.repo.git.commit(sha)
        base = shape.parent_or_empty(record)
        if call.wants("sha"):
            return Reply(200, raw=sha.encode())
        if call.wants("diff") or call.wants("patch"):
            return Reply(200, raw=call.repo.git.run("diff", "-M", "--full-index", base, sha))
        files = changes(call.repo.git, base, sha)
        return shape.full_commit(call.world, call.repo, record, files)

    @api.on("GET", "/commits/<path:rev>/pulls", "contents:read")
    def pulls_with(call: RepoCall, rev: str) -> object:
        sha = commit_named(call, rev)
        git = call.repo.git
        found = [
            one
            for one in call.repo.pulls.values()
            if one.merge_commit == sha
            or sha in {c.sha for c in git.commits(one.head_sha, f"^{one.base_sha}")}
        ]
        return listed([shape_pull(call.world, one) for one in found])

    @api.on("GET", "/compare/<path:basehead>", "contents:read")
    def compare(call: RepoCall, basehead: str) -> object:
        left, dots, right = basehead.partition("...")
        if not dots:
            raise Refused(404, "Not Found")
        git = call.repo.git
        base = commit_named(call, left.rpartition(":")[2])
        head = commit_named(call, right.rpartition(":")[2])
        fork = git.merge_base(base, head)
        if fork is None:
            raise Refused(404, f"No common ancestor between {left} and {right}.")
        if call.wants("diff") or call.wants("patch"):
            return Reply(200, raw=git.run("diff", "-M", "--full-index", fork, head))
        ahead, behind = git.count(head, base), git.count(base, head)
        words = {(False, False): "identical", (True, False): "ahead", (False, True): "behind"}
        found, headers = page(git.commits(head, f"^{base}")[::-1], 250)
        url = f"{shape.api(call.world, call.repo)}/compare/{basehead}"
        html = f"{shape.web(call.world, call.repo)}/compare/{basehead}"
        files = changes(git, fork, head)[:COMPARED_FILES]
        shown: Json = {
            "url": url,
            "html_url": html,
            "permalink_url": html,
            "diff_url": f"{html}.diff",
            "patch_url": f"{html}.patch",
            "base_commit": shape.commit(call.world, call.repo, git.commit(base)),
            "merge_base_commit": shape.commit(call.world, call.repo, git.commit(fork)),
            "status": words.get((ahead > 0, behind > 0), "diverged"),
            "ahead_by": ahead,
            "behind_by": behind,
            "total_commits": ahead,
            "commits": [shape.commit(call.world, call.repo, one) for one in found],  # type: ignore[arg-type]
            "files": [shape.file(call.world, call.repo, one, head) for one in files],
        }
        return Reply(200, shown, headers)


def _contents(api: Api) -> None:
    @api.on("GET", "/contents/", "contents:read single_file:read")
    @api.on("GET", "/contents", "contents:read single_file:read")
    def root(call: RepoCall) -> object:
        return _content(call, "")

    @api.on("GET", "/contents/<path:path>", "contents:read single_file:read")
    def content(call: RepoCall, path: str) -> object:
        return _content(call, path.strip("/"))

    @api.on("PUT", "/contents/<path:path>", "contents:write single_file:write")
    def write(call: RepoCall, path: str) -> object:
        body = call.body()
        try:
            data = base64.b64decode(text_of(body, "content", "Contents"), validate=False)
        except binascii.Error:
            raise Refused(422, "content is not valid Base64") from None
        return _write(call, path, data, body)

    @api.on("DELETE", "/contents/<path:path>", "contents:write single_file:write")
    def delete(call: RepoCall, path: str) -> object:
        return _write(call, path, None, call.body())

    @api.on("GET", "/readme", "contents:read")
    def readme(call: RepoCall) -> object:
        rev = commit_named(call, call.asked("ref") or call.repo.default_branch)
        for entry in call.repo.git.tree(rev):
            if entry.kind == "blob" and entry.path.lower().startswith("readme"):
                return _content(call, entry.path)
        raise Refused(404, "Not Found")


def _content(call: RepoCall, path: str) -> object:
    git = call.repo.git
    rev = commit_named(call, call.asked("ref") or call.repo.default_branch)
    entry = git.at(rev, path) if path else None
    if path and entry is None:
        raise Refused(404, "Not Found")
    if entry is not None and entry.kind == "blob":
        data = git.blob(entry.sha)
        if call.wants("raw"):
            return Reply(200, raw=data)
        return shape.content(call.world, call.repo, rev, entry, data)
    prefix = f"{path}/" if path else ""
    shown = []
    for each in git.tree(rev, path):
        at = git.at(rev, prefix + each.path) or each
        shown.append(shape.content(call.world, call.repo, rev, at, None))
    if call.wants("object"):
        return {
            "type": "dir",
            "size": 0,
            "name": path.rpartition("/")[2],
            "path": path,
            "sha": git.text("rev-parse", f"{rev}:{path}"),
            "url": f"{shape.api(call.world, call.repo)}/contents/{path}?ref={rev}",
            "git_url": None,
            "html_url": None,
            "download_url": None,
            "entries": shown,
            "_links": {"git": None, "html": None, "self": ""},
        }
    return shown


def _write(call: RepoCall, path: str, data: bytes | None, body: Json) -> object:
    git, branch = call.repo.git, optional(body, "branch") or call.repo.default_branch
    tip = git.branch(branch)
    if tip is None:
        raise Refused(404, f"Branch {branch} not found")
    known = git.at(tip, path)
    if known is not None and body.get("sha") != known.sha:
        raise Refused(409 if body.get("sha") else 422, f"{path} does not match {body.get('sha')}")
    before = git.refs()
    who = Person(call.user.name, call.user.email, call.world.now())
    tree = git.write_files(tip, {path: data})
    sha = git.write_commit(tree, [tip], text_of(body, "message", "Commit"), who)
    git.set_ref(f"refs/heads/{branch}", sha)
    pushes.moved(call.world, call.repo, before, call.user)
    made = git.at(sha, path)
    content = shape.content(call.world, call.repo, branch, made, None) if made else None
    commit = shape.git_commit(call.world, call.repo, git.commit(sha))
    return Reply(200 if known else 201, {"content": content, "commit": commit})


def _statuses(api: Api) -> None:
    @api.on("POST", "/statuses/<sha>", "statuses:write")
    def create(call: RepoCall, sha: str) -> object:
        body = call.body()
        state = text_of(body, "state", "Status")
        if state not in {"error", "failure", "pending", "success"}:
            raise Refused(422, "Validation Failed", ["state is invalid"])
        made = Status(
            id=call.world.new_id(),
            sha=commit_named(call, sha),
            context=optional(body, "context") or "default",
            state=state,
            description=optional(body, "description"),
            target_url=optional(body, "target_url"),
            user=call.user,
            created=call.world.now(),
        )
        if len(made.description or "") > 140:
            raise Refused(422, "Validation Failed", ["description is too long (maximum is 140)"])
        call.repo.statuses.append(made)
        return Reply(201, shape_checks.status(call.world, call.repo, made))

    @api.on("GET", "/commits/<path:rev>/statuses", "statuses:read")
    def statuses(call: RepoCall, rev: str) -> object:
        found = _at(call.repo, commit_named(call, rev))
        return listed([shape_checks.status(call.world, call.repo, one) for one in found])

    @api.on("GET", "/commits/<path:rev>/status", "statuses:read")
    def combined(call: RepoCall, rev: str) -> object:
        sha = commit_named(call, rev)
        latest = {one.context: one for one in reversed(_at(call.repo, sha))}
        states = {one.state for one in latest.values()}
        bad = states & {"failure", "error"}
        state = "failure" if bad else "success" if states == {"success"} else "pending"
        base = shape.api(call.world, call.repo)
        return {
            "state": state,
            "statuses": [
                shape_checks.status(call.world, call.repo, one) for one in latest.values()
            ],
            "sha": sha,
            "total_count": len(latest),
            "repository": repository(call.world, call.repo),
            "commit_url": f"{base}/commits/{sha}",
            "url": f"{base}/commits/{sha}/status",
        }


def _at(repo: Repository, sha: str) -> list[Status]:
    return [one for one in repo.statuses if one.sha == sha][::-1]
