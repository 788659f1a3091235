"""The playground as one WSGI application: the API at / and /api/v3, git, the log storage and the pages."""

from __future__ import annotations

import threading
import time
import traceback

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, RuleFactory

from regreen_playground import graphql, pages, signin, smarthttp
from regreen_playground.routes import (
    actions,
    apps,
    checks,
    gitdata,
    issues,
    people,
    pulls,
    repositories,
    reviews,
)
from regreen_playground.routes.wire import Reply, refusal, respond
from regreen_playground.world import Fault, Refused, World

PREFIX = "/api/v3"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'"
ROOMS = (apps, people, repositories, gitdata, pulls, reviews, issues, checks, actions)


class _SharedRoutes(Map):
    """The routes of every world, which are the same: compiling them takes half a second, so once in a process."""

    is_complete = False

    def add(self, rulefactory: RuleFactory) -> None:
        if not self.is_complete:
            super().add(rulefactory)


_ROUTES = _SharedRoutes(strict_slashes=False)
_BUILDING = threading.Lock()


def build(world: World) -> Flask:
    """Make the application over one world."""
    app = Flask(__name__, static_folder=None)
    app.url_map = _ROUTES
    app.config["PROPAGATE_EXCEPTIONS"] = False
    with _BUILDING:
        _add_routes(app, world)
        _ROUTES.is_complete = True
    app.before_request(lambda: _faulty(world))
    app.after_request(lambda response: _stamp(world, response))
    app.register_error_handler(Refused, refusal)
    app.register_error_handler(HTTPException, lambda error: _no_route(world, error))
    app.register_error_handler(Exception, lambda error: _crash(world, error))
    return app


def _add_routes(app: Flask, world: World) -> None:
    for room in ROOMS:
        blueprint = room.routes(world).blueprint
        app.register_blueprint(blueprint)
        app.register_blueprint(blueprint, url_prefix=PREFIX, name=f"{blueprint.name}_ghes")
    app.register_blueprint(graphql.routes(world))
    app.register_blueprint(actions.storage(world))
    app.register_blueprint(smarthttp.routes(world))
    app.register_blueprint(signin.routes(world))
    app.register_blueprint(pages.routes(world))


def is_api(path: str) -> bool:
    """Whether a path belongs to the REST or GraphQL API (not to pages, git or storage)."""
    bare = path.removeprefix(PREFIX)
    rooms = ("/repos/", "/app", "/installation", "/user/", "/users/", "/orgs/", "/search/")
    exact = ("/user", "/rate_limit", "/meta", "/graphql", "/api/graphql")
    return path.startswith(PREFIX) or bare.startswith(rooms) or bare in exact


def _faulty(world: World) -> Response | None:
    """Let the fault hook answer first."""
    hook = world.fault
    fault: Fault | None = hook(request.method, request.path) if hook else None
    if fault is None:
        return None
    if fault.delay_s:
        time.sleep(fault.delay_s)
    if fault.status == 0:
        return None
    return respond(Reply(fault.status, {"message": fault.message}, dict(fault.headers)))


def _stamp(world: World, response: Response) -> Response:
    world.requests.append((request.method, request.full_path.rstrip("?"), response.status_code))
    if is_api(request.path):
        reset = int(world.clock.now().timestamp()) + 3600
        used = min(4999, len(world.requests))
        response.headers.update(
            {
                "X-GitHub-Media-Type": "github.v3; format=json",
                "X-GitHub-Request-Id": f"PLAY:{len(world.requests)}",
                "X-RateLimit-Limit": "5000",
                "X-RateLimit-Remaining": response.headers.get(
                    "X-RateLimit-Remaining", str(5000 - used)
                ),
                "X-RateLimit-Used": str(used),
                "X-RateLimit-Reset": response.headers.get("X-RateLimit-Reset", str(reset)),
                "X-RateLimit-Resource": "core",
            }
        )
    else:
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Content-Security-Policy"] = POLICY
    return response


def _no_route(world: World, error: HTTPException) -> Response:
    status = error.code or 500
    if status in {404, 405} and is_api(request.path):
        world.surprises.append(f"unknown route: {request.method} {request.path}")
    if is_api(request.path):
        return refusal(Refused(404 if status == 405 else status, error.name))
    return Response(error.name, status, content_type="text/plain; charset=utf-8")


def _crash(world: World, error: Exception) -> Response:
    told = "".join(traceback.format_exception(error))
    world.surprises.append(f"crash: {request.method} {request.path}\n{told}")
    return refusal(Refused(500, "Server Error"))
