"""`regreen setup` against the playground: the manifest goes out, the secrets come back, the files are private."""

from __future__ import annotations

import html
import json
import stat
import threading
from pathlib import Path

import pytest
import requests
from regreen_playground import Playground, serve

from regreen.app import registration
from regreen.domain.errors import UserError
from regreen.domain.settings import Settings


def test_the_whole_flow_with_a_browser(tmp_path: Path) -> None:
    with serve(port=0) as playground:
        told: list[str] = []

        def page(redirect: str, state: str) -> str:
            asked = registration.make_manifest("Regreen", "https://regreen.example.org", redirect)
            return registration.render_manifest_form(playground.url, None, asked, state)

        codes: list[str] = []

        def wait() -> None:
            codes.append(registration.wait_for_code(page, 0, told.append))

        waiting = threading.Thread(target=wait)
        waiting.start()
        while not told:
            threading.Event().wait(0.05)
        local = told[0].split()[1]
        form = requests.get(local, timeout=10).text
        assert requests.get(f"{local}done?code=x&state=guess", timeout=10).status_code == 400
        _agree(playground, form)
        waiting.join(timeout=20)
        app = registration.exchange_code(playground.api_url, codes[0])
        with pytest.raises(UserError, match="wrong, used or over an hour old"):
            registration.exchange_code(playground.api_url, codes[0])
    env = tmp_path / ".env"
    key = registration.write_settings(
        tmp_path / "home", env, app, api_url="https://x/api/v3", public_url="https://y"
    )
    assert stat.S_IMODE(key.stat().st_mode) == stat.S_IMODE(env.stat().st_mode) == 0o600
    settings = Settings(_env_file=env)
    assert settings.app_id == app.app_id
    assert settings.client_id == app.client_id
    assert settings.client_secret is not None
    assert settings.client_secret.get_secret_value() == app.client_secret != ""
    assert (settings.private_key_pem() or "").startswith("-----BEGIN ")
    with pytest.raises(UserError, match="holds an App already"):
        registration.write_settings(tmp_path, env, app, api_url="x", public_url="y")


def _agree(playground: Playground, form: str) -> None:
    """What GitHub does when somebody presses its button: keep the manifest, send the browser back."""
    action = html.unescape(form.split('action="')[1].split('"', maxsplit=1)[0])
    asked = json.loads(
        html.unescape(form.split('name="manifest" value="')[1].split('"', maxsplit=1)[0])
    )
    assert action.startswith(f"{playground.url}/settings/apps/new?state=")
    assert asked["public"] is False
    playground.state.manifests["code-1"] = asked
    state = action.partition("state=")[2]
    back = f"{asked['redirect_url']}?code=code-1&state={state}"
    assert requests.get(back, timeout=10).status_code == 200


def test_a_code_that_is_none() -> None:
    with pytest.raises(UserError, match="that is no code"):
        registration.exchange_code("https://api.github.com", "https://x/?code=1")
