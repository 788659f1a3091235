"""Registers the GitHub App by manifest: the page that sends it, and GitHub's answer."""

from __future__ import annotations

import html
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, make_server

import requests

from regreen.domain.errors import OutsideError, UserError
from regreen.domain.private_folders import make_private, write_private

APP_PERMISSIONS = {
    "actions": "write",
    "checks": "write",
    "contents": "write",
    "issues": "write",
    "metadata": "read",
    "pull_requests": "write",
    "security_events": "write",
    "statuses": "read",
}
APP_EVENTS = (
    "check_run",
    "check_suite",
    "issue_comment",
    "merge_group",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request_review_thread",
    "push",
    "repository",
    "status",
    "workflow_run",
)


@dataclass(frozen=True, slots=True)
class RegisteredApp:
    """What GitHub shows only once: the App's id, name and secrets."""

    app_id: int
    slug: str
    private_key: str
    webhook_secret: str
    html_url: str
    client_id: str = ""
    client_secret: str = ""


def make_manifest(name: str, public_url: str, redirect_url: str) -> dict[str, object]:
    """The manifest of the App: private, with only the permissions that are used."""
    return {
        "name": name,
        "url": public_url,
        "hook_attributes": {"url": f"{public_url.rstrip('/')}/webhooks/github", "active": True},
        "redirect_url": redirect_url,
        "callback_urls": [f"{public_url.rstrip('/')}/signed-in"],
        "public": False,
        "default_permissions": APP_PERMISSIONS,
        "default_events": list(APP_EVENTS),
    }


def render_manifest_form(
    web_url: str, organisation: str | None, manifest: Mapping[str, object], state: str
) -> str:
    """A page with one button, which sends the manifest to GitHub."""
    where = (
        f"/organizations/{organisation}/settings/apps/new" if organisation else "/settings/apps/new"
    )
    action = html.escape(f"{web_url.rstrip('/')}{where}?state={state}")
    value = html.escape(json.dumps(manifest))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Register Regreen</title>'
        f'<form method="post" action="{action}"><input type="hidden" name="manifest" value="{value}">'
        "<p>GitHub will show what the App asks for; nothing is made before you agree there.</p>"
        "<button>Register on GitHub</button></form></html>"
    )


def exchange_code(api_url: str, code: str) -> RegisteredApp:
    """Exchange GitHub's code for the App's secrets; works once, within an hour.

    Raises:
        UserError: the code is wrong, used, or too old.
        OutsideError: GitHub cannot be reached.
    """
    if not code or not all(c.isascii() and (c.isalnum() or c in "-_") for c in code):
        raise UserError("that is no code; it is the `code=` in the address GitHub sent you back to")
    url = f"{api_url.rstrip('/')}/app-manifests/{code}/conversions"
    try:
        answer = requests.post(url, headers={"Accept": "application/vnd.github+json"}, timeout=30)
    except requests.RequestException as error:
        message = f"GitHub cannot be reached ({type(error).__name__})"
        raise OutsideError(message) from error
    if answer.status_code != requests.codes.created:
        message = f"GitHub does not take the code ({answer.status_code}): it is wrong, used or over an hour old"
        raise UserError(message)
    data = answer.json()
    return RegisteredApp(
        app_id=int(data["id"]),
        slug=str(data["slug"]),
        private_key=str(data["pem"]),
        webhook_secret=str(data.get("webhook_secret") or ""),
        html_url=str(data["html_url"]),
        client_id=str(data.get("client_id") or ""),
        client_secret=str(data.get("client_secret") or ""),
    )


def wait_for_code(page: Callable[[str, str], str], port: int, say: Callable[[str], None]) -> str:
    """Serve the form on loopback until GitHub redirects the browser back with the code."""
    state = secrets.token_urlsafe(24)
    codes: list[str] = []

    def application(environ, start_response):  # type: ignore[no-untyped-def]
        query = parse_qs(environ.get("QUERY_STRING", ""))
        if environ["PATH_INFO"] == "/done":
            body, status = _handle_callback(query, state, codes)
        else:
            body, status = page(redirect, state), "200 OK"
        start_response(status, [("Content-Type", "text/html; charset=utf-8")])
        return [body.encode()]

    with make_server("127.0.0.1", port, application, handler_class=_QuietRequestHandler) as server:
        redirect = f"http://127.0.0.1:{server.server_port}/done"
        say(f"open http://127.0.0.1:{server.server_port}/ in a browser on this machine")
        while not codes:
            server.handle_request()
    return codes[0]


def _handle_callback(
    query: Mapping[str, list[str]], state: str, codes: list[str]
) -> tuple[str, str]:
    received = query.get("state", [""])[0]
    if not secrets.compare_digest(received.encode(), state.encode()):
        return "This answer does not belong to this setup.", "400 Bad Request"
    codes.append(query.get("code", [""])[0])
    return "Registered. You may close this page.", "200 OK"


class _QuietRequestHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Not logged: the address contains the code."""


def write_settings(
    home: Path, env_file: Path, app: RegisteredApp, *, api_url: str, public_url: str
) -> Path:
    """Write the key and the settings, readable by this user alone; return the key's path.

    Raises:
        UserError: settings exist already.
    """
    if env_file.exists() and "REGREEN_APP_ID" in env_file.read_text():
        message = f"{env_file} holds an App already; move it away first"
        raise UserError(message)
    key = make_private(home) / f"{app.slug}.private-key.pem"
    write_private(key, app.private_key)
    lines = [
        f"REGREEN_APP_ID={app.app_id}",
        f"REGREEN_PRIVATE_KEY_PATH={key}",
        f"REGREEN_WEBHOOK_SECRET={app.webhook_secret}",
        f"REGREEN_CLIENT_ID={app.client_id}",
        f"REGREEN_CLIENT_SECRET={app.client_secret}",
        f"REGREEN_GITHUB_API_URL={api_url}",
        f"REGREEN_PUBLIC_URL={public_url}",
    ]
    before = env_file.read_text().rstrip("\n") + "\n" if env_file.exists() else ""
    write_private(env_file, before + "\n".join(lines) + "\n")
    return key
