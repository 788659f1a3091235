"""The git data routes: blobs, trees, commits and refs."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime

from regreen_playground.acts import pushes
from regreen_playground.gitstore import GitRefused, Person
from regreen_playground.routes.wire import Api, Reply, RepoCall, listed, optional, text_of, texts
from regreen_playground.shape import commits as shape
from regreen_playground.things import Json
from regreen_playground.world import Refused, World


def routes(world: World) -> Api:
    """The routes."""
    api = Api(world, "gitdata")
    _blobs(api)
    _trees(api)
    _commits(api)
    _refs(api)
    return api


def _blobs(api: Api) -> None:
    @api.on("GET", "/git/blobs/<sha>", "contents:read")
    def get(call: RepoCall, sha: str) -> object:
        if call.repo.git.kind(sha) != "blob":
            raise Refused(404, "Not Found")
        data = call.repo.git.blob(sha)
        if call.wants("raw"):
            return Reply(200, raw=data)
        return {
            "sha": sha,
            "node_id": f"B_{sha}",
            "size": len(data),
            "url": f"{shape.api(call.world, call.repo)}/git/blobs/{sha}",
            "content": base64.encodebytes(data).decode(),
            "encoding": "base64",
        }

    @api.on("POST", "/git/blobs", "contents:write")
    def create(call: RepoCall) -> object:
        body = call.body()
        content = body.get("content")
        if not isinstance(content, str):
            raise Refused(422, 'Invalid request.\n\n"content" is not there.')
        try:
            coded = body.get("encoding") == "base64"
            data = base64.b64decode(content) if coded else content.encode()
        except binascii.Error:
            raise Refused(422, "content is not valid Base64") from None
        sha = call.repo.git.write_blob(data)
        return Reply(
            201, {"sha": sha, "url": f"{shape.api(call.world, call.repo)}/git/blobs/{sha}"}
        )


def _trees(api: Api) -> None:
    @api.on("GET", "/git/trees/<path:rev>", "contents:read")
    def get(call: RepoCall, rev: str) -> object:
        git = call.repo.git
        sha = git.resolve(rev, "tree") or git.resolve(f"refs/heads/{rev}", "tree")
        if sha is None:
            raise Refused(404, "Not Found")
        return _tree(call, sha, recursive=bool(call.asked("recursive")))

    @api.on("POST", "/git/trees", "contents:write")
    def create(call: RepoCall) -> object:
        body, git = call.body(), call.repo.git
        base = optional(body, "base_tree")
        base_sha = git.resolve(base, "tree") if base else None
        if base and base_sha is None:
            raise Refused(404, "Not Found")
        entries = body.get("tree")
        if not isinstance(entries, list) or not entries:
            raise Refused(422, "Invalid tree info")
        changes: list[tuple[str, str, str | None]] = []
        for one in entries:
            if not isinstance(one, dict) or not one.get("path") or not one.get("mode"):
                raise Refused(422, "Must supply tree.path and tree.mode")
            sha = one.get("sha")
            if "content" in one:
                sha = git.write_blob(str(one["content"]).encode())
            elif sha is not None and git.kind(str(sha)) is None:
                raise Refused(422, f"tree.sha {sha} is not a valid object")
            changes.append((str(one["mode"]), str(one["path"]), sha))
        try:
            made = git.write_tree(base_sha, changes)
        except GitRefused as error:
            raise Refused(422, f"Invalid tree info: {error}") from None
        return Reply(201, _tree(call, made, recursive=False))


def _tree(call: RepoCall, sha: str, *, recursive: bool) -> Json:
    found = call.repo.git.tree(sha, recursive=recursive)
    return {
        "sha": sha,
        "url": f"{shape.api(call.world, call.repo)}/git/trees/{sha}",
        "tree": [shape.tree_entry(call.world, call.repo, one) for one in found],
        "truncated": False,
    }


def _commits(api: Api) -> None:
    @api.on("GET", "/git/commits/<sha>", "contents:read")
    def get(call: RepoCall, sha: str) -> object:
        if call.repo.git.kind(sha) != "commit":
            raise Refused(404, "Not Found")
        return shape.git_commit(call.world, call.repo, call.repo.git.commit(sha))

    @api.on("POST", "/git/commits", "contents:write")
    def create(call: RepoCall) -> object:
        body, git = call.body(), call.repo.git
        tree = git.resolve(text_of(body, "tree", "Commit"), "tree")
        if tree is None:
            raise Refused(422, "Tree SHA does not exist")
        parents = texts(body, "parents")
        if any(git.kind(one) != "commit" for one in parents):
            raise Refused(422, "Parent SHA does not exist or is not a commit object")
        author = _person(call, body.get("author"))
        committer = _person(call, body.get("committer") or body.get("author"))
        if call.user.type == "Bot" and not (body.get("author") or body.get("committer")):
            committer = Person(*shape.GITHUB, committer.date)
        sha = git.write_commit(tree, parents, text_of(body, "message", "Commit"), author, committer)
        return Reply(201, shape.git_commit(call.world, call.repo, git.commit(sha)))


def _person(call: RepoCall, given: object) -> Person:
    data = given if isinstance(given, dict) else {}
    date = call.world.now()
    if isinstance(data.get("date"), str):
        try:
            date = datetime.fromisoformat(data["date"])
        except ValueError:
            raise Refused(422, "date is not a valid ISO 8601 date") from None
    name, email = data.get("name") or call.user.login, data.get("email") or call.user.email
    return Person(str(name), str(email), date)


def _refs(api: Api) -> None:
    @api.on("GET", "/git/ref/<path:name>", "contents:read")
    def get(call: RepoCall, name: str) -> object:
        found = call.repo.git.refs(f"refs/{name}").get(f"refs/{name}")
        if found is None:
            raise Refused(404, "Not Found")
        return _ref(call, f"refs/{name}", found)

    @api.on("GET", "/git/matching-refs/<path:name>", "contents:read")
    def matching(call: RepoCall, name: str) -> object:
        every = call.repo.git.refs()
        found = {ref: sha for ref, sha in every.items() if ref.startswith(f"refs/{name}")}
        return listed([_ref(call, ref, sha) for ref, sha in found.items()])

    @api.on("POST", "/git/refs", "contents:write")
    def create(call: RepoCall) -> object:
        body, git = call.body(), call.repo.git
        ref, sha = text_of(body, "ref", "Reference"), text_of(body, "sha", "Reference")
        if not ref.startswith("refs/") or ref.count("/") < 2:
            raise Refused(422, "Reference name must start with 'refs/'")
        if ref in git.refs():
            raise Refused(422, "Reference already exists")
        _move(call, ref, sha)
        return Reply(201, _ref(call, ref, sha))

    @api.on("PATCH", "/git/refs/<path:name>", "contents:write")
    def update(call: RepoCall, name: str) -> object:
        body, git, ref = call.body(), call.repo.git, f"refs/{name}"
        sha, known = text_of(body, "sha", "Reference"), git.refs().get(ref)
        if known is None:
            raise Refused(422, "Reference does not exist")
        forward = git.kind(sha) == "commit" and git.merge_base(known, sha) == known
        if not forward and body.get("force") is not True and git.kind(sha):
            raise Refused(422, "Update is not a fast forward")
        _move(call, ref, sha)
        return _ref(call, ref, sha)

    @api.on("DELETE", "/git/refs/<path:name>", "contents:write")
    def delete(call: RepoCall, name: str) -> object:
        git, ref = call.repo.git, f"refs/{name}"
        before = git.refs()
        if ref not in before:
            raise Refused(422, "Reference does not exist")
        git.delete_ref(ref)
        pushes.moved(call.world, call.repo, before, call.user)
        return Reply(204)


def _move(call: RepoCall, ref: str, sha: str) -> None:
    git = call.repo.git
    if git.kind(sha) is None:
        raise Refused(422, "Object does not exist")
    before = git.refs()
    try:
        git.run("check-ref-format", ref)
        git.set_ref(ref, sha)
    except GitRefused:
        raise Refused(422, f"{ref} is not a valid ref name.") from None
    pushes.moved(call.world, call.repo, before, call.user)


def _ref(call: RepoCall, ref: str, sha: str) -> Json:
    kind = call.repo.git.kind(sha) or "commit"
    return shape.ref(call.world, call.repo, ref, sha, kind)
