"""What an operator is told whose settings cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from regreen.app.settings_loader import load_app_settings
from regreen.domain.errors import UserError

_PEM = "-----BEGIN PRIVATE KEY-----\nMII...\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "`regreen setup` registers the App"),
        ({"APP_ID": "one", "PRIVATE_KEY": _PEM}, "REGREEN_APP_ID: Input should be a valid integer"),
        ({"APP_ID": "1", "PRIVATE_KEY": "hunter2"}, "holds no private key"),
        ({"APP_ID": "1", "PRIVATE_KEY_PATH": "/nowhere"}, "cannot read /nowhere"),
        ({"APP_ID": "1", "PRIVATE_KEY": _PEM, "HOME": "/proc/nowhere"}, "set REGREEN_HOME"),
    ],
)
def test_settings_that_cannot_be_used_are_named(
    settings: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("APP_ID", "PRIVATE_KEY", "PRIVATE_KEY_PATH"):
        monkeypatch.delenv(f"REGREEN_{name}", raising=False)
    for name, value in {"HOME": str(tmp_path), **settings}.items():
        monkeypatch.setenv(f"REGREEN_{name}", value)
    with pytest.raises(UserError, match=said) as refused:
        load_app_settings()
    assert "hunter2" not in str(refused.value)
