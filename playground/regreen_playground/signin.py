"""Signing in to an App as GitHub's pages do it: choose who you are, come back with a code, trade it for a token."""

from __future__ import annotations

import secrets
from urllib.parse import urlencode, urlsplit

from flask import Blueprint, Response, jsonify, redirect, render_template, request
from werkzeug.wrappers import Response as WerkzeugResponse

from regreen_playground.things import App
from regreen_playground.world import Refused, World


def routes(world: World) -> Blueprint:
    """The pages and the trade."""
    blueprint = Blueprint("signin", __name__, template_folder="templates")

    @blueprint.get("/login/oauth/authorize")
    def authorize() -> str | WerkzeugResponse:
        with world.lock:
            app, callback = (
                _app(world, request.args.get("client_id", "")),
                request.args.get("redirect_uri", ""),
            )
            _allowed(app, callback)
            login = request.args.get("login", "")
            if not login:
                people = sorted(u.login for u in world.users.values() if u.type == "User")
                query = request.query_string.decode()
                return render_template("signin.html", app=app, people=people, query=query)
            code = secrets.token_hex(10)
            world.codes[code] = (app, world.user(login), callback)
        back = urlencode({"code": code, "state": request.args.get("state", "")})
        return redirect(f"{callback}?{back}", 302)

    @blueprint.post("/login/oauth/access_token")
    def trade() -> Response:
        asked = request.form
        with world.lock:
            app = next(
                (a for a in world.apps.values() if a.client_id == asked.get("client_id")), None
            )
            given = asked.get("client_secret", "")
            if app is None or not secrets.compare_digest(given, app.client_secret):
                return jsonify(error="incorrect_client_credentials")
            # a code works once
            known = world.codes.pop(asked.get("code", ""), None)
            if known is None or known[0] is not app:
                return jsonify(error="bad_verification_code")
            if asked.get("redirect_uri") not in {None, known[2]}:
                return jsonify(error="redirect_uri_mismatch")
            token = f"ghu_{secrets.token_hex(18)}"
            world.signed_in[token] = (app, known[1])
        return jsonify({"access_token": token, "token_type": "bearer", "scope": ""})

    return blueprint


def _app(world: World, client_id: str) -> App:
    for app in world.apps.values():
        if app.client_id == client_id:
            return app
    raise Refused(404, "Not Found")


def _allowed(app: App, callback: str) -> None:
    """A browser is sent to the App's own host only.

    Raises:
        Refused: it would go elsewhere (422).
    """
    known = urlsplit(app.hook_url)
    asked = urlsplit(callback)
    if not app.hook_url or (asked.scheme, asked.netloc) != (known.scheme, known.netloc):
        raise Refused(422, "The redirect_uri is not associated with this application.")
