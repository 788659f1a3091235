"""Who may look: the operator by token or from this machine, everybody else by signing in with GitHub.

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

from regreen.bot.dashboard.frame import guarded, page
from regreen.bot.dashboard.html import link, tag
from regreen.bot.dashboard.reader import FIELD, Reader
from regreen.errors import OutsideError, UserError
from regreen.forge import PERMISSIONS, SignIn
from regreen.ports import Clock
from regreen.records import Action, Store

COOKIE = "regreen"
_STATE = "regreen-state"
_SPACE = "dashboard-session"
_LASTS = timedelta(hours=1)
_LOOPBACK = frozenset({"127.0.0.1", "::1"})
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_OF_PROXIES = frozenset({"forwarded", "via", "x-real-ip", "cf-connecting-ip", "true-client-ip"})
_OPEN = frozenset({"/sign-in", "/signed-in"})


@dataclass(frozen=True)
class Doors:
    """The ways in. `token` is the operator's; `public_url` where a browser is sent back to."""

    store: Store
    clock: Clock
    token: str | None = None
    sign_in: SignIn | None = None
    public_url: str = ""

    def guard(self, pages: Blueprint) -> None:
        """Let nobody through to these pages who may not look, nor any form that is not ours."""

        @pages.before_request
        def check() -> AnyResponse | None:
            if request.path in _OPEN:
                return None
            reader = self.reader(request)
            if reader is None:
                return self._ask()
            g.reader = reader
            if request.method not in {"GET", "HEAD"} and not _is_ours(request, reader):
                return _plain("This form was not sent by a page of this dashboard; load the page again.\n", 403)  # fmt: skip
            return None

        pages.after_request(guarded)  # redirects too: what sets a cookie stays in no cache
        pages.add_url_rule("/sign-in", "sign-in", self._go)
        pages.add_url_rule("/signed-in", "signed-in", self._back)
        pages.add_url_rule("/sign-out", "sign-out", self._out, methods=["POST"])

    def reader(self, asked: Request) -> Reader | None:
        """Who asks, None where they may not look."""
        if self.token and _has_token(asked, self.token):
            return self._operator()
        if self.sign_in is not None:
            return self._signed_in(asked)
        if self.token is None and _is_local(asked, self.public_url):
            return self._operator()
        return None

    def _operator(self) -> Reader:
        secret = self.store.get(_SPACE + "-secret", "operator")
        if secret is None:
            self.store.put_new(_SPACE + "-secret", "operator", secrets.token_hex(32))
            secret = self.store.get(_SPACE + "-secret", "operator") or ""
        return Reader("operator", secret.encode())

    def _signed_in(self, asked: Request) -> Reader | None:
        cookie = asked.cookies.get(COOKIE, "")
        kept = self.store.get(_SPACE, _digest(cookie)) if cookie else None
        if kept is None:
            return None
        data = json.loads(kept)
        if datetime.fromisoformat(data["until"]) <= self.clock.now():
            self.store.delete(_SPACE, _digest(cookie))
            return None
        reads, writes = frozenset(data["reads"]), frozenset(data["writes"])
        return Reader(data["login"], cookie.encode(), reads, writes, session=_digest(cookie))

    def _ask(self) -> AnyResponse:
        if self.sign_in is None:
            answer = _plain("This page needs the token in REGREEN_DASHBOARD_AUTH.\n", 401)
            answer.headers["WWW-Authenticate"] = 'Basic realm="regreen", charset="UTF-8"'
            return answer
        if request.method not in {"GET", "HEAD"}:
            return _plain("Sign in first.\n", 401)
        to = "/sign-in?" + urlencode({"to": request.full_path.rstrip("?")})
        body = (
            tag("p", "You see the repositories that you may read on GitHub and where Regreen is installed."),
            tag("p", link(to, "Sign in with GitHub")),
        )  # fmt: skip
        return page("Sign in", *body, reader=None, status=401)

    def _go(self) -> AnyResponse:
        """Send the browser to GitHub; what it brings back must carry this state."""
        if self.sign_in is None:
            return redirect("/", 303)
        state = secrets.token_urlsafe(24)
        answer = redirect(self.sign_in.address(self._callback, state), 303)
        kept = json.dumps({"state": state, "to": _inside(request.args.get("to", "/"))})
        self._set(answer, _STATE, kept, 600, path="/signed-in")
        return answer

    def _back(self) -> AnyResponse:
        """GitHub sends the browser back with a code: find out who it is, and what they may read."""
        if self.sign_in is None:
            return redirect("/", 303)
        try:
            kept = json.loads(request.cookies.get(_STATE, ""))
            state, to = str(kept["state"]), _inside(str(kept["to"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            state, to = "", "/"
        given = request.args.get("state", "")
        if not state or not hmac.compare_digest(given.encode(), state.encode()):
            return _again("This answer does not belong to a sign-in that began in this browser.")
        try:
            person = self.sign_in.person(request.args.get("code", ""), self._callback)
        except (OutsideError, UserError) as error:
            return _again(f"GitHub did not say who you are: {error}")
        write = PERMISSIONS.index("write")
        writes = [r for r, level in person.repos.items() if PERMISSIONS.index(level) >= write]
        until = self.clock.now() + _LASTS
        session = {"login": person.login, "reads": [*person.repos], "writes": writes, "until": until.isoformat()}  # fmt: skip
        if before := request.cookies.get(COOKIE, ""):
            self.store.delete(_SPACE, _digest(before))
        cookie = secrets.token_urlsafe(32)
        self.store.put(_SPACE, _digest(cookie), json.dumps(session))
        self.store.log(Action(self.clock.now(), "", "", None, person.login, "signed in", ""))
        answer = redirect(to, 303)
        self._set(answer, COOKIE, cookie, int(_LASTS.total_seconds()))
        answer.delete_cookie(_STATE, path="/signed-in")
        return answer

    def _out(self) -> AnyResponse:
        reader: Reader = g.reader
        if reader.session:
            self.store.delete(_SPACE, reader.session)
        answer = redirect("/", 303)
        answer.delete_cookie(COOKIE)
        return answer

    @property
    def _callback(self) -> str:
        return self.public_url.rstrip("/") + "/signed-in"

    def _set(self, answer: AnyResponse, name: str, value: str, age: int, path: str = "/") -> None:
        # Lax: GitHub's redirect back must bring it, a form on another site must not
        is_https = self.public_url.startswith("https://")
        answer.set_cookie(
            name, value, max_age=age, path=path, httponly=True, samesite="Lax", secure=is_https
        )


def _has_token(asked: Request, token: str) -> bool:
    given = asked.authorization
    if given is None:
        return False
    said = given.token if given.type == "bearer" else given.password
    return hmac.compare_digest((said or "").encode(), token.encode())


def _is_local(asked: Request, public_url: str) -> bool:
    """From this machine, with no proxy between (it would make everybody local), under a name of this machine.

    A page of somebody else can make a browser here resolve its own name to 127.0.0.1; the Host header tells. A proxy
    shows itself by what it adds, or by HTTP/1.0, which no browser speaks: nginx as it comes adds nothing, and names
    this machine as the host. Where a public address is set, somebody has put a proxy there.
    """
    if urlsplit(public_url).hostname not in {None, *_LOCAL_NAMES}:
        return False
    host = urlsplit(f"//{asked.host}").hostname
    is_relayed = asked.environ.get("SERVER_PROTOCOL") == "HTTP/1.0" or any(
        name.lower() in _OF_PROXIES or name.lower().startswith("x-forwarded")
        for name, _ in asked.headers
    )
    return asked.remote_addr in _LOOPBACK and not is_relayed and host in _LOCAL_NAMES


def _is_ours(asked: Request, reader: Reader) -> bool:
    """Whether a form was sent by one of our pages: by its token, and by what the browser says of its origin."""
    site = asked.headers.get("Sec-Fetch-Site", "same-origin")
    origin = asked.headers.get("Origin")
    is_here = origin is None or urlsplit(origin).netloc == asked.host
    return site in {"same-origin", "none"} and is_here and reader.sent(asked.form.get(FIELD, ""))


def _inside(address: str) -> str:
    """A path of our own, whatever was asked for."""
    is_path = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if is_path and address.isprintable() else "/"


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()


def _again(why: str) -> Response:
    return page("Not signed in", tag("p", why), tag("p", link("/sign-in", "Try again")), reader=None, status=403)  # fmt: skip


def _plain(words: str, status: int) -> Response:
    return guarded(Response(words, status, mimetype="text/plain"))
