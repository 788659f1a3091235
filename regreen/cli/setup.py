"""`regreen setup`: registers the GitHub App and writes the settings."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from regreen.cli.options import config_option


@click.command()
@click.option(
    "--public-url",
    metavar="URL",
    help="Where GitHub reaches this server: https://HOST.",
)
@click.option("--name", default="Regreen", help="The App's name on GitHub.")
@click.option(
    "--organisation",
    "--organization",
    "organisation",
    default=None,
    help="Register it for an organisation.",
)
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Port of the local page; 0: a free one.",
)
@click.option(
    "--headless", is_flag=True, help="No browser here: write the page to a file, ask for the code."
)
@click.option("--code", default=None, help="The code from an earlier step (headless).")
@config_option(exists=False)
def command(
    *,
    public_url: str | None,
    name: str,
    organisation: str | None,
    port: int,
    headless: bool,
    code: str | None,
    config: Path | None,
) -> int:
    """Register the GitHub App by manifest and write the settings, readable by you alone."""
    from regreen.app import registration as r
    from regreen.app.settings_loader import SETTINGS_FILE, load_operator_settings
    from regreen.domain.errors import UserError

    settings = load_operator_settings(config)
    env_file = config or settings.home / SETTINGS_FILE
    public_url = public_url or _ask_user("Where GitHub reaches this server", "--public-url")
    if not public_url.startswith(("https://", "http://127.0.0.1", "http://localhost")):
        raise UserError("the public address must start with https://")
    web = settings.github.web_url

    def page(redirect: str, state: str) -> str:
        return r.render_manifest_form(
            web, organisation, r.make_manifest(name, public_url, redirect), state
        )

    def say(text: str) -> None:
        click.echo(text, err=True)

    if code is None and headless:
        file = Path("regreen-setup.html").absolute()
        file.write_text(page(f"{public_url.rstrip('/')}/healthz", "headless"))
        say(
            f"open {file} in any browser, agree on GitHub, and copy `code=` from the address you land on"
        )
        code = _ask_user("code", "--code")
    elif code is None:
        code = r.wait_for_code(page, port, say)
    app = r.exchange_code(settings.github_api_url, str(code).strip())
    api = settings.github_api_url
    key = r.write_settings(settings.home, env_file, app, api_url=api, public_url=public_url)
    say(f"wrote {env_file} and {key}")
    say(f"now install it: {app.html_url}/installations/new, then run `regreen serve`")
    return 0


def _ask_user(question: str, option: str) -> str:
    """What a person answers.

    Raises:
        UserError: there is nobody to ask.
    """
    from regreen.domain.errors import UserError

    if not sys.stdin.isatty():
        message = f"{option} is required when not running in a terminal ({question})"
        raise UserError(message)
    return str(click.prompt(question, err=True))
