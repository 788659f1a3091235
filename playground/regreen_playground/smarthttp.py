"""Git over HTTP: git's own http-backend, behind the same tokens as the API."""

from __future__ import annotations

import base64
import binascii
import gzip
import subprocess
from collections.abc import Iterator

from flask import Blueprint, Response, request

from regreen_playground.acts import pushes
from regreen_playground.gitstore import NO_WORKFLOWS, environment
from regreen_playground.routes.callers import Caller, allows, of_token
from regreen_playground.things import Repository, User
from regreen_playground.world import Refused, World, at_least, level

SERVICES = {"git-upload-pack", "git-receive-pack"}


def routes(world: World) -> Blueprint:
    """The three addresses git asks for."""
    blueprint = Blueprint("git", __name__)

    @blueprint.get("/<owner>/<name>.git/info/refs")
    def advertise(owner: str, name: str) -> Response:
        service = request.args.get("service", "")
        if service not in SERVICES:
            return Response("only the smart protocol is served", 403)
        return _serve(world, f"{owner}/{name}", service, "info/refs")

    @blueprint.post("/<owner>/<name>.git/<service>")
    def talk(owner: str, name: str, service: str) -> Response:
        if service not in SERVICES:
            return Response("no such service", 404)
        return _serve(world, f"{owner}/{name}", service, service)

    return blueprint


def _serve(world: World, full_name: str, service: str, tail: str) -> Response:
    writing = service == "git-receive-pack"
    try:
        with world.lock:
            caller = _caller(world)
            repository = _admit(world, caller, full_name, writing=writing)
            sender = caller.user
    except Refused as error:
        headers = {"WWW-Authenticate": 'Basic realm="GitHub"'} if error.status == 401 else {}
        return Response(f"{error.message}\n", error.status, headers=headers)
    if not (writing and request.method == "POST"):
        return _backend(repository, tail, sender, {})
    with world.lock:
        before = repository.git.refs()
        response = _backend(repository, tail, sender, _limits(caller))
        if sender is not None:
            pushes.moved(world, repository, before, sender)
    return response


def _limits(caller: Caller) -> dict[str, str]:
    """What the receiving side must know of a push's author."""
    free = caller.token is None or allows(caller.token.permissions, "workflows:write")
    return {} if free else {NO_WORKFLOWS: "1"}


def _admit(world: World, caller: Caller, full_name: str, *, writing: bool) -> Repository:
    """The repository, or a refusal as git over HTTP words it."""
    found = world.repositories.get(full_name.lower())
    if caller.user is None:
        if found is None or found.private or writing:
            raise Refused(401, "Authentication required")
        return found
    if found is None:
        raise Refused(404, "Repository not found.")
    if caller.token is not None:
        need = "contents:write" if writing else "contents:read"
        if not caller.token.covers(found):
            raise Refused(403 if writing and not found.private else 404, "Repository not found.")
        if not allows(caller.token.permissions, need) and (writing or found.private):
            raise Refused(403, "Write access to repository not granted.")
    elif writing and not at_least(found, caller.user, "write"):
        raise Refused(403, "Permission to repository denied.")
    elif level(found, caller.user) == "none":
        raise Refused(404, "Repository not found.")
    return found


def _caller(world: World) -> Caller:
    kind, _, coded = request.headers.get("Authorization", "").partition(" ")
    if not coded:
        return Caller()
    if kind.lower() in {"bearer", "token"}:
        return of_token(world, coded.strip())
    try:
        name, _, password = base64.b64decode(coded).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise Refused(401, "Invalid username or password.") from None
    return of_token(world, password or name)


def _backend(
    repository: Repository, tail: str, sender: User | None, more: dict[str, str]
) -> Response:
    body = request.get_data()
    if request.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    env = {
        **environment(),
        "GIT_PROJECT_ROOT": str(repository.git.path),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{tail}",
        "REQUEST_METHOD": request.method,
        "QUERY_STRING": request.query_string.decode(),
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "REMOTE_ADDR": "127.0.0.1",
        "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        **({"REMOTE_USER": sender.login} if sender else {}),
        **more,
    }
    argv = ["git", "-c", "safe.directory=*", "http-backend"]
    done = subprocess.run(argv, input=body, capture_output=True, check=False, env=env)
    head, _, payload = done.stdout.partition(b"\r\n\r\n")
    fields = dict(_fields(head.decode("latin-1")))
    status = int(fields.pop("Status", "200").split()[0]) if done.returncode == 0 else 500
    return Response(payload, status, headers=fields)


def _fields(head: str) -> Iterator[tuple[str, str]]:
    for line in head.split("\r\n"):
        name, colon, value = line.partition(":")
        if colon:
            yield name.strip(), value.strip()
