"""The common part of every API call: who calls, may they, what they sent, and how the answer is worded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from flask import Blueprint, Response, request

from regreen_playground.routes.callers import Caller, identify, visible
from regreen_playground.things import App, Json, Repository, User
from regreen_playground.world import Refused, World

DOCS = "https://docs.github.com/rest"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is not just a 200 with JSON."""

    status: int = 200
    data: object = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One API call, checked: `user` is whom it is done as."""

    world: World
    caller: Caller

    @property
    def user(self) -> User:
        """The account that acts.

        Raises:
            Refused: nobody is signed in (401).
        """
        if self.caller.user is None:
            raise Refused(401, "Requires authentication")
        return self.caller.user

    @property
    def app(self) -> App | None:
        """The App that acts, None for people."""
        return self.caller.app

    def body(self) -> Json:
        """The request's JSON object."""
        data = any_body()
        if not isinstance(data, dict):
            raise Refused(422, "Invalid request.\n\nFor 'links/0/schema', nil is not an object.")
        return data

    def asked(self, name: str, default: str = "") -> str:
        """A query parameter."""
        return request.args.get(name, default)

    def wants(self, word: str) -> bool:
        """Whether the Accept header asks for a media type of GitHub's (diff, patch, raw, object)."""
        return f"application/vnd.github.{word}" in _media() or f".{word}" in _media()


@dataclass(frozen=True, slots=True)
class RepoCall(Call):
    """One API call about a repository that the caller may see."""

    repo: Repository


View = Callable[..., object]


def any_body() -> object:
    """The request's JSON, whatever it is.

    Raises:
        Refused: it is no JSON (400).
    """
    raw = request.get_data()
    if not raw:
        return {}
    try:
        return json.loads(raw)
    except ValueError:
        raise Refused(400, "Problems parsing JSON") from None


class Api:
    """A set of API routes over one world, registered once at the root and once under /api/v3."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.blueprint = Blueprint(name, __name__)

    def on(self, method: str, rule: str, needs: str = "") -> Callable[[View], View]:
        """Serve a route about a repository; `needs` lists permissions (any one suffices)."""

        def register(view: View) -> View:
            def run(owner: str, repo: str, **args: object) -> Response:
                with self.world.lock:
                    caller = identify(self.world)
                    found = visible(self.world, caller, f"{owner}/{repo}", needs, method)
                    return respond(view(RepoCall(self.world, caller, found), **args))

            self._add(method, f"/repos/<owner>/<repo>{rule}", run)
            return view

        return register

    def plain(self, method: str, rule: str) -> Callable[[View], View]:
        """Serve a route that is about no repository; the view checks the caller."""

        def register(view: View) -> View:
            def run(**args: object) -> Response:
                with self.world.lock:
                    return respond(view(Call(self.world, identify(self.world)), **args))

            self._add(method, rule, run)
            return view

        return register

    def _add(self, method: str, rule: str, run: Callable[..., Response]) -> None:
        endpoint = f"{method} {rule}".replace(".", "_")
        self.blueprint.add_url_rule(
            rule, endpoint, run, methods=[method], provide_automatic_options=False
        )


def page(items: Sequence[object], default: int = 30) -> tuple[list[object], dict[str, str]]:
    """The asked-for page of a list, and the Link header."""
    size = min(max(_number("per_page", default), 1), 100)
    number = max(_number("page", 1), 1)
    last = max(1, -(-len(items) // size))
    targets: dict[str, int] = {}
    if number < last:
        targets |= {"next": number + 1, "last": last}
    if number > 1:
        targets |= {"first": 1, "prev": min(number - 1, last)}
    links = ", ".join(f'<{_same(page=where)}>; rel="{rel}"' for rel, where in targets.items())
    start = (number - 1) * size
    return list(items[start : start + size]), ({"Link": links} if links else {})


def listed(items: Sequence[object], default: int = 30) -> Reply:
    """A page of a plain list."""
    part, headers = page(items, default)
    return Reply(200, part, headers)


def counted(key: str, items: Sequence[object], **more: object) -> Reply:
    """A page of a list that comes with its total."""
    part, headers = page(items)
    return Reply(200, {"total_count": len(items), key: part, **more}, headers)


def _number(name: str, default: int) -> int:
    text = request.args.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 9 else default


def _same(**changed: object) -> str:
    query = {**request.args.to_dict(), **{key: str(value) for key, value in changed.items()}}
    return f"{request.base_url}?{urlencode(query)}"


def link_to(**query: str) -> str:
    """This request's address with other query parameters."""
    return _same(**query)


def text_of(body: Json, key: str, resource: str) -> str:
    """A required text of a request.

    Raises:
        Refused: it is missing or no text (422).
    """
    value = body.get(key)
    if not isinstance(value, str) or not value:
        code = "missing_field" if value in (None, "") else "invalid"
        detail: Json = {"resource": resource, "code": code, "field": key}
        raise Refused(422, "Validation Failed", [detail])
    return value


def optional(body: Json, key: str) -> str | None:
    """An optional text of a request.

    Raises:
        Refused: it is there and no text (422).
    """
    value = body.get(key)
    if value is not None and not isinstance(value, str):
        raise Refused(422, f"Invalid request.\n\nFor 'properties/{key}', it is not a string.")
    return value


def integer(body: Json, key: str) -> int | None:
    """An optional whole number of a request.

    Raises:
        Refused: it is there and no whole number (422).
    """
    value = body.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise Refused(422, f"Invalid request.\n\nFor 'properties/{key}', it is not an integer.")
    return value


def texts(body: Json, key: str) -> list[str]:
    """An optional list of texts of a request."""
    value = body.get(key)
    return [str(one) for one in value] if isinstance(value, list) else []


def respond(result: object) -> Response:
    """Word an answer as GitHub does: JSON, an ETag for what was read, 304 for what is known."""
    reply = result if isinstance(result, Reply) else Reply(200, result)
    if reply.raw is not None:
        body, kind = reply.raw, reply.headers.get("Content-Type", "text/plain; charset=utf-8")
    elif reply.status in {204, 302} or reply.data is None:
        body, kind = b"", "text/html; charset=utf-8"
    else:
        body, kind = json.dumps(reply.data).encode(), "application/json; charset=utf-8"
    response = Response(body, reply.status, content_type=kind)
    response.headers.update({k: v for k, v in reply.headers.items() if k != "Content-Type"})
    if request.method in {"GET", "HEAD"} and reply.status == 200:
        seed = body + response.headers.get("Link", "").encode()
        response.headers["ETag"] = f'W/"{hashlib.sha256(seed).hexdigest()}"'
        if request.headers.get("If-None-Match") == response.headers["ETag"]:
            response = Response(status=304, headers={"ETag": response.headers["ETag"]})
    return response


def refusal(error: Refused) -> Response:
    """An error as GitHub words it."""
    data: Json = {"message": error.message}
    if error.errors is not None:
        data["errors"] = error.errors
    data |= {"documentation_url": DOCS, "status": str(error.status)}
    return respond(Reply(error.status, data, dict(error.headers)))


def _media() -> str:
    return request.headers.get("Accept", "")
