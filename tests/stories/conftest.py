"""The `story` fixture: Regreen on a playground, every API exchange checked against GitHub's description."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pytest
from regreen_playground.application import is_api
from regreen_playground.loopback import Wsgi
from regreen_playground.model import Answer, Script
from regreen_playground.routes.apps import new_key

from regreen.bot.sandbox_trust import SandboxProvider
from tests.outside import CHECKER, is_missing, outside
from tests.stories.story import Story, missing_sandbox


@cache
def _checker() -> Any:
    """GitHub's description with its checker; None where there is none, of which the test run speaks."""
    if is_missing(CHECKER):
        return None
    spec = importlib.util.spec_from_file_location("contract_check", outside(CHECKER))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["contract_check"] = module
    spec.loader.exec_module(module)
    return module


@cache
def _contract() -> Any:
    """GitHub's description, read once."""
    return _checker().Contract(prefix="/api/v3")


@cache
def app_key() -> tuple[str, bytes]:
    """One key for all Apps of a test run: making one takes longer than most stories."""
    return new_key()


def checked(log: Path) -> Callable[[Wsgi], Wsgi]:
    """Lay the checker around the playground's API (not around pages, git and storage)."""
    module = _checker()

    def wrap(application: Wsgi) -> Wsgi:
        if module is None:
            return application
        inside: Wsgi = module.middleware(application, log, contract=_contract())

        def choose(environ: dict[str, Any], start: Any) -> Any:
            path = environ["PATH_INFO"]
            # what a person may see through an App is not in the part of the description that is kept there
            is_checked = is_api(path) and "/user/installations" not in path
            return (inside if is_checked else application)(environ, start)

        return choose

    return wrap


def violations(log: Path) -> list[dict[str, object]]:
    """What the checker found, warnings left out."""
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return [
        {"call": f"{row['method']} {row['path']} -> {row['status']}", **found}
        for row in rows
        for found in row["violations"]
        if found["level"] == "error"
    ]


class Tell(Protocol):
    """Begins a story with a scripted model (or none), on another sandbox than this machine's where one is given."""

    def __call__(
        self,
        answers: Script | list[Answer] | None,
        sandbox: SandboxProvider | None = None,
        *,
        types: bool = False,
    ) -> Story: ...


@pytest.fixture
def tell(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Tell]:
    """Begin a story with a scripted model (or none); only one that is marked `sandbox` runs code."""
    log, told = tmp_path / "violations.jsonl", []
    usual = None if request.node.get_closest_marker("sandbox") else missing_sandbox()

    def begin(
        answers: Script | list[Answer] | None,
        sandbox: SandboxProvider | None = None,
        *,
        types: bool = False,
    ) -> Story:
        boxes = sandbox or usual
        told.append(Story(tmp_path, checked(log), answers, app_key(), boxes, types=types))
        return told[-1]

    yield begin
    for story in told:
        story.end()
    assert violations(log) == []


@pytest.fixture
def story(tell: Tell) -> Story:
    """A story without a model."""
    return tell(None)
