"""Who may look: the operator by token, everybody else by signing in with GitHub.

A sign-in keeps no token of GitHub's. What the person may read and write is asked once and kept for an hour; then the
browser is sent to GitHub again, which answers at once where the right still holds.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode, urlsplit

from flask import Blueprint, Request, Response, g, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from regreen.dashboard.rendering import (
    FORM_TOKEN_FIELD,
    Viewer,
    add_security_headers,
    render_message,
    render_page,
)
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.github import PERMISSION_LEVELS, SignIn
from regreen.domain.ports import Clock
from regreen.domain.records import AuditEntry, Store
from regreen.domain.state_records import DashboardSession, ServiceState, StoredCapsule

SESSION_COOKIE = "regreen"
_STATE_COOKIE = "regreen-state"
_SESSION_LIFETIME = timedelta(hours=1)
_PUBLIC_PATHS = frozenset({"/sign-in", "/signed-in"})
CAPSULES_PATH = "/capsules/"


@dataclass(frozen=True)
class Authenticator:
    """The ways in. `token` is the operator's; `public_url` where a browser is sent back to."""

    store: Store
    clock: Clock
    token: str | None = None
    sign_in: SignIn | None = None
    public_url: str = ""

    def protect_pages(self, pages: Blueprint) -> None:
        """Let nobody through to these pages who may not look, nor any form that is not ours."""

        @pages.before_request
        def check() -> AnyResponse | None:
            if request.path in _PUBLIC_PATHS:
                return None
            reader = self.identify_viewer(request)
            if reader is None and self._is_public_capsule(request.path):
                reader = Viewer("", b"", frozenset())
            if reader is None:
                return self._show_sign_in()
            g.reader = reader
            if request.method not in {"GET", "HEAD"} and not _is_form_of_our_page(request, reader):
                return _plain_page(
                    "This form was not sent by a page of this dashboard; load the page again.\n",
                    403,
                )
            return None

        # redirects too: what sets a cookie stays in no cache
        pages.after_request(add_security_headers)
        pages.add_url_rule("/sign-in", "sign-in", self._redirect_to_github)
        pages.add_url_rule("/signed-in", "signed-in", self._finish_sign_in)
        pages.add_url_rule("/sign-out", "sign-out", self._sign_out, methods=["POST"])

    def identify_viewer(self, asked: Request) -> Viewer | None:
        """Who asks, None where they may not look."""
        if self.token and _has_token(asked, self.token):
            return self._operator_viewer()
        if self.sign_in is not None:
            return self._viewer_from_session(asked)
        return None

    def _is_public_capsule(self, path: str) -> bool:
        """Whether anybody may fetch what lies there: it was made of a public repository."""
        digest = path.removeprefix(CAPSULES_PATH).removesuffix(".json")
        return path.startswith(CAPSULES_PATH) and any(
            one.public for one in self.store.find_all(StoredCapsule, digest=digest)
        )

    def _operator_viewer(self) -> Viewer:
        secret = self.store.find(ServiceState, name="form secret")
        if secret is None:
            # another process may have stored one first
            self.store.add(ServiceState("form secret", secrets.token_hex(32)))
            secret = self.store.find(ServiceState, name="form secret")
        return Viewer("operator", secret.value.encode() if secret else b"")

    def _viewer_from_session(self, asked: Request) -> Viewer | None:
        cookie = asked.cookies.get(SESSION_COOKIE, "")
        digest = _cookie_digest(cookie)
        session = self.store.find(DashboardSession, digest=digest) if cookie else None
        if session is None:
            return None
        if datetime.fromisoformat(session.until) <= self.clock.now():
            self.store.remove(DashboardSession, digest=digest)
            return None
        reads, writes = frozenset(session.reads), frozenset(session.writes)
        return Viewer(session.login, cookie.encode(), reads, writes, session=digest)

    def _show_sign_in(self) -> AnyResponse:
        if self.sign_in is None:
            answer = _plain_page(
                "This page needs a token: REGREEN_DASHBOARD_AUTH, or the one in REGREEN_HOME/dashboard-token. Any user name.\n",
                401,
            )
            answer.headers["WWW-Authenticate"] = 'Basic realm="regreen", charset="UTF-8"'
            return answer
        if request.method not in {"GET", "HEAD"}:
            return _plain_page("Sign in first.\n", 401)
        address = "/sign-in?" + urlencode({"to": request.full_path.rstrip("?")})
        return render_page("sign_in.html", "Sign in", None, status=401, sign_in_address=address)

    def _redirect_to_github(self) -> AnyResponse:
        """Send the browser to GitHub; what it brings back must carry this state."""
        if self.sign_in is None:
            return redirect("/", 303)
        state = secrets.token_urlsafe(24)
        answer = redirect(self.sign_in.address(self._callback_url, state), 303)
        started = json.dumps(
            {"state": state, "to": _path_on_this_site(request.args.get("to", "/"))}
        )
        self._set_cookie(answer, _STATE_COOKIE, started, 600, path="/signed-in")
        return answer

    def _finish_sign_in(self) -> AnyResponse:
        """GitHub sends the browser back with a code: find out who it is, and what they may read."""
        if self.sign_in is None:
            return redirect("/", 303)
        try:
            started = json.loads(request.cookies.get(_STATE_COOKIE, ""))
            state, to = str(started["state"]), _path_on_this_site(str(started["to"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            state, to = "", "/"
        given = request.args.get("state", "")
        if not state or not hmac.compare_digest(given.encode(), state.encode()):
            return _sign_in_failed(
                "This answer does not belong to a sign-in that began in this browser."
            )
        try:
            person = self.sign_in.person(request.args.get("code", ""), self._callback_url)
        except (OutsideError, UserError) as error:
            return _sign_in_failed(f"GitHub did not say who you are: {error}")
        write = PERMISSION_LEVELS.index("write")
        writes = [r for r, level in person.repos.items() if PERMISSION_LEVELS.index(level) >= write]
        until = (self.clock.now() + _SESSION_LIFETIME).isoformat()
        if before := request.cookies.get(SESSION_COOKIE, ""):
            self.store.remove(DashboardSession, digest=_cookie_digest(before))
        cookie = secrets.token_urlsafe(32)
        self.store.save(
            DashboardSession(
                _cookie_digest(cookie), person.login, tuple(person.repos), tuple(writes), until
            )
        )
        self.store.log(AuditEntry(self.clock.now(), "", "", None, person.login, "signed in", ""))
        answer = redirect(to, 303)
        self._set_cookie(answer, SESSION_COOKIE, cookie, int(_SESSION_LIFETIME.total_seconds()))
        answer.delete_cookie(_STATE_COOKIE, path="/signed-in")
        return answer

    def _sign_out(self) -> AnyResponse:
        reader: Viewer = g.reader
        if reader.session:
            self.store.remove(DashboardSession, digest=reader.session)
        answer = redirect("/", 303)
        answer.delete_cookie(SESSION_COOKIE)
        return answer

    @property
    def _callback_url(self) -> str:
        return self.public_url.rstrip("/") + "/signed-in"

    def _set_cookie(
        self, answer: AnyResponse, name: str, value: str, age: int, path: str = "/"
    ) -> None:
        # Lax: GitHub's redirect back must bring it, a form on another site must not
        is_https = self.public_url.startswith("https://")
        answer.set_cookie(
            name, value, max_age=age, path=path, httponly=True, samesite="Lax", secure=is_https
        )


def _has_token(asked: Request, token: str) -> bool:
    try:
        given = asked.authorization
    except ValueError:  # Werkzeug raises it where what should be base64 is not even ASCII
        return False
    if given is None:
        return False
    presented = given.token if given.type == "bearer" else given.password
    return hmac.compare_digest((presented or "").encode(), token.encode())


def _is_form_of_our_page(asked: Request, reader: Viewer) -> bool:
    """Whether a form was sent by one of our pages: by its token, and by what the browser says of its origin."""
    site = asked.headers.get("Sec-Fetch-Site", "same-origin")
    origin = asked.headers.get("Origin")
    is_here = origin is None or urlsplit(origin).netloc == asked.host
    return (
        site in {"same-origin", "none"}
        and is_here
        and reader.has_form_token(asked.form.get(FORM_TOKEN_FIELD, ""))
    )


def _path_on_this_site(address: str) -> str:
    """A path of our own, whatever was asked for."""
    is_path = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if is_path and address.isprintable() else "/"


def _cookie_digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()


def _sign_in_failed(why: str) -> Response:
    return render_message("Not signed in", why, None, status=403, link=("/sign-in", "Try again"))


def _plain_page(words: str, status: int) -> Response:
    return add_security_headers(Response(words, status, mimetype="text/plain"))
