"""Names that others give as a text, and fixtures that tests ask for: gone under them, or gone with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from regreen.reviewers.analyzers.python_contracts import PythonContracts
from tests.unit.changes import Files, Story

MAIL = "def send(to):\n    return to\n"
PATCHED = "from unittest import mock\n\n\ndef test_it():\n    with mock.patch('app.mail.send') as send:\n        assert send\n"
APP: Files = {"app/__init__.py": "", "app/mail.py": MAIL}
CONFTEST = "import pytest\n\n\n@pytest.fixture\ndef ledger():\n    return []\n"
ASKS = "def test_it(ledger):\n    assert ledger == []\n"
SCRIPT = "[project]\nname = 'x'\n\n[project.scripts]\nsend = 'app.mail:send'\n"


def titles(folder: Path, before: Files, after: Files) -> list[str]:
    story = Story(folder / "repo")
    story.change(before, after)
    context = story.context()
    found = PythonContracts().run(context).claims
    assert all(context.change.can_anchor(c.path, c.start_line, c.line, c.side) for c in found)
    return [c.title for c in found]


@pytest.mark.parametrize(
    ("before", "after", "title"),
    [
        (
            {**APP, "tests/test_a.py": PATCHED},
            {"app/mail.py": MAIL.replace("send", "deliver")},
            "`send` is removed here and still used in tests/test_a.py",
        ),
        (
            {**APP, "pyproject.toml": SCRIPT},
            {"app/mail.py": MAIL.replace("send", "deliver")},
            "`send` is removed here and still used in pyproject.toml",
        ),
        (
            {**APP, "setup.cfg": "[options.entry_points]\nconsole_scripts =\n  send = app.mail:send\n"},
            {"app/mail.py": None},
            "`send` is removed here and still used in setup.cfg",
        ),
        (
            {"tests/conftest.py": CONFTEST, "tests/sub/test_a.py": ASKS},
            {"tests/conftest.py": "import pytest\n"},
            "`ledger` is removed here and still used in tests/sub/test_a.py",
        ),
        (
            {"tests/conftest.py": CONFTEST.replace("ledger", "client"), "tests/test_a.py": ASKS.replace("ledger", "client")},
            {"tests/conftest.py": CONFTEST.replace("ledger", "http_client")},
            "`client` is removed here and still used in tests/test_a.py",
        ),
    ],
)  # fmt: skip
def test_what_others_name_is_gone(tmp_path: Path, before: Files, after: Files, title: str) -> None:
    assert titles(tmp_path, before, after) == [title]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({**APP, "tests/test_a.py": PATCHED}, {"app/mail.py": "from app.post import send\n", "app/post.py": MAIL}),
        ({**APP, "tests/test_a.py": PATCHED.replace("mock.patch", "log.getLogger")}, {"app/mail.py": ""}),
        ({**APP, "pyproject.toml": SCRIPT}, {"app/mail.py": "", "pyproject.toml": SCRIPT.replace("send'", "post'")}),
        ({"tests/conftest.py": CONFTEST, "tests/test_a.py": ASKS}, {"tests/conftest.py": None, "conftest.py": CONFTEST}),
        ({"tests/conftest.py": CONFTEST, "other/test_a.py": ASKS}, {"tests/conftest.py": ""}),
        (
            {"tests/conftest.py": CONFTEST, "tests/test_a.py": "import pytest\n\n\n@pytest.mark.parametrize('ledger', [[]])\n" + ASKS},
            {"tests/conftest.py": ""},
        ),
        (
            {"tests/conftest.py": CONFTEST.replace("ledger", "client"), "tests/test_a.py": ASKS.replace("ledger", "client")},
            {"tests/conftest.py": "pytest_plugins = ['pytest_flask']\n"},
        ),
    ],
)  # fmt: skip
def test_what_others_name_is_still_there(tmp_path: Path, before: Files, after: Files) -> None:
    assert titles(tmp_path, before, after) == []
