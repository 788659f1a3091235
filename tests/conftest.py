"""Fixtures and settings that more than one kind of test needs."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.contract.sandboxes import BACKENDS, backend
from tests.outside import CHECKER, is_missing, reason
from tests.postgres import postgres

__all__ = ["postgres"]

# Where the environment sets it, every process that a test starts compiles all that it imports anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# How fast examples are made says how busy the machine is, nothing of the code.
settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.fixture(scope="session", autouse=True)
def user_defaults(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Commands run as for a user who prefers bubblewrap, where it works, and never with this user's own defaults."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "regreen").mkdir()
    if not isinstance(backend("bwrap"), str):
        (folder / "regreen" / "defaults.toml").write_text('sandbox = "bwrap"\n')
    os.environ["XDG_CONFIG_HOME"] = str(folder)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is marked `sandbox` where none works."""
    if item.get_closest_marker("sandbox") is not None:
        reasons = [found for kind in BACKENDS if isinstance(found := backend(kind), str)]
        if len(reasons) == len(BACKENDS):
            pytest.skip(f"no sandbox works here: {reasons[-1]}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it of the whole run when no story was held against GitHub's description of its API."""
    if is_missing(CHECKER):
        words = f"NOT CHECKED: no exchange with GitHub was held against its description ({reason(CHECKER)})"
        terminalreporter.write_line(words, yellow=True)
