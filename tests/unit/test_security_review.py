"""The security reviewers on real commits: only what the change brings, on lines that it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from regreen.reviewers.analyzers.added_secrets import AddedSecrets
from regreen.reviewers.analyzers.dependency_changes import DependencyChanges
from regreen.reviewers.analyzers.python_security import PythonSecurity
from regreen.reviewers.analyzers.workflows import WorkflowRisks
from regreen.reviewers.context import Claim, Reviewer, ReviewerReport
from tests.unit.changes import Files, Story

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"
WEB = """\
from flask import Flask, request
import store

app = Flask(__name__)


@app.route("/users")
def users():
    return {"rows": store.find(request.args["name"])}
"""
SAFE = 'def find(name):\n    return db.execute("select 1 where n = ?", (name,))\n'
UNSAFE = "def find(name):\n    return db.execute(f\"select 1 where n = '{name}'\")\n"


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "repository")


def report(story: Story, reviewer: Reviewer, before: Files, after: Files) -> ReviewerReport:
    story.change({"README": "x", **before}, after)
    return reviewer.run(story.context())


def rules(found: ReviewerReport) -> list[str]:
    return [claim.rule for claim in found.claims if claim.confidence >= 0.8]


def the_only(found: ReviewerReport) -> Claim:
    (claim,) = [claim for claim in found.claims if claim.confidence >= 0.8]
    return claim


def test_a_sink_that_a_change_opens_is_reached_from_an_unchanged_file(story: Story) -> None:
    claim = the_only(
        report(story, PythonSecurity(), {"web.py": WEB, "store.py": SAFE}, {"store.py": UNSAFE})
    )
    assert (claim.rule, claim.path, claim.line) == ("taint/sql-injection", "store.py", 2)
    assert "`web.py:9` `request.args`" in claim.body
    assert "CWE-89" in claim.body
    assert claim.evidence[0].excerpt == UNSAFE.splitlines()[1]  # the way stands in the body, once


def test_a_source_that_is_joined_to_an_old_sink_is_named_where_the_change_is(story: Story) -> None:
    without = WEB.replace('request.args["name"]', '"ann"')
    claim = the_only(
        report(story, PythonSecurity(), {"web.py": without, "store.py": UNSAFE}, {"web.py": WEB})
    )
    assert (claim.rule, claim.path, claim.line) == ("taint/sql-injection", "web.py", 9)


def test_what_stood_before_is_not_said_even_when_it_moves(story: Story) -> None:
    before = {"web.py": WEB, "store.py": UNSAFE}
    assert (
        rules(report(story, PythonSecurity(), before, {"web.py": WEB + "\n\nVERSION = 2\n"})) == []
    )


def test_moved_code_is_not_new(story: Story) -> None:
    moved = {"store.py": "import database\n\nfind = database.find\n", "database.py": UNSAFE}
    assert rules(report(story, PythonSecurity(), {"web.py": WEB, "store.py": UNSAFE}, moved)) == []


CIPHER = "from Crypto.Cipher import AES\n\n\ndef seal(key, data):\n    return AES.new(key, AES.MODE_ECB).encrypt(data)\n"
EDITED = CIPHER.replace(
    "return AES.new(key, AES.MODE_ECB)", "box = AES.new(key[:16], AES.MODE_ECB)\n    return box"
)
ANOTHER = (
    CIPHER + "\n\ndef open_box(key, data):\n    return AES.new(key, AES.MODE_ECB).decrypt(data)\n"
)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({"seal.py": EDITED}, []),
        ({"seal.py": "x = 1\n", "box.py": CIPHER.replace("def seal", "def shut")}, []),
        ({"seal.py": "x = 1\n", "pay.py": EDITED}, ["taint/weak-cipher"]),
        ({"seal.py": ANOTHER}, ["taint/weak-cipher"]),
    ],
)
def test_a_weak_cipher_is_new_only_where_the_change_brings_one_more(
    story: Story, after: Files, said: list[str]
) -> None:
    assert rules(report(story, PythonSecurity(), {"seal.py": CIPHER}, after)) == said


def test_a_program_that_reads_its_own_arguments_is_not_scolded(story: Story) -> None:
    after = {"tool.py": "import sys\n\nprint(open(sys.argv[1]).read())\n"}
    assert rules(report(story, PythonSecurity(), {}, after)) == []


def test_a_file_that_cannot_be_parsed_is_reported_as_not_read(story: Story) -> None:
    found = report(story, PythonSecurity(), {}, {"bad.py": "def f(:\n"})
    assert [one.path for one in found.unread] == ["bad.py"]


RANDOM = "q7Zp2Lk9" + "Xw4TnB6v"


def test_a_secret_is_named_and_never_shown(story: Story) -> None:
    found = report(story, AddedSecrets(), {}, {"conf.py": f'TOKEN = "{TOKEN}"\n'})
    claim = the_only(found)
    assert (claim.path, claim.line, claim.dimension) == ("conf.py", 1, "security")
    assert TOKEN not in repr(found)
    assert TOKEN[8:] not in repr(found)


def test_a_password_in_a_url_is_called_one(story: Story) -> None:
    url = f"postgres://shop:{RANDOM}@db.acme.io/shop"
    claim = the_only(report(story, AddedSecrets(), {}, {"conf.py": f'URL = "{url}"\n'}))
    assert claim.title.startswith("A password stands in a URL: `")


def test_a_secret_that_only_moves_is_not_new(story: Story) -> None:
    before = {"conf.py": f'TOKEN = "{TOKEN}"\n'}
    assert (
        rules(
            report(
                story,
                AddedSecrets(),
                before,
                {"conf.py": f'import os\nAPI = 1\nTOKEN = "{TOKEN}"\n'},
            )
        )
        == []
    )


def test_a_look_alike_in_a_manifest_is_named_on_its_line(story: Story) -> None:
    before = {"requirements.txt": "flask==3.0\n"}
    claim = the_only(
        report(
            story, DependencyChanges(), before, {"requirements.txt": "flask==3.0\nreqeusts==2\n"}
        )
    )
    assert (claim.rule, claim.line) == ("dependencies/look-alike", 2)


def test_a_new_dependency_that_the_lock_lacks_is_said(story: Story) -> None:
    lock = "[[package]]\nname = 'click'\nversion = '1'\n"
    before = {"pyproject.toml": "[project]\ndependencies = ['click']\n", "uv.lock": lock}
    after = {"pyproject.toml": "[project]\ndependencies = ['click', 'flask']\n"}
    assert rules(report(story, DependencyChanges(), before, after)) == [
        "dependencies/lock-mismatch"
    ]


def test_a_workflow_that_a_change_opens_to_strangers_is_said(story: Story) -> None:
    safe = "on: pull_request\npermissions: {contents: read}\njobs:\n  a:\n    runs-on: x\n    steps:\n      - run: make\n"
    unsafe = safe.replace("make", "echo ${{ github.head_ref }}")
    path = ".github/workflows/ci.yml"
    claim = the_only(report(story, WorkflowRisks(), {path: safe}, {path: unsafe}))
    assert (claim.rule, claim.line) == ("workflows/script-injection", 7)


def test_switching_a_workflow_to_a_privileged_event_is_said_where_it_is_switched(
    story: Story,
) -> None:
    steps = "      - uses: actions/checkout@v4\n        with: {ref: '${{ github.event.pull_request.head.sha }}'}\n      - run: make\n"
    safe = f"on: pull_request\npermissions: {{contents: read}}\njobs:\n  a:\n    runs-on: x\n    steps:\n{steps}"
    path = ".github/workflows/ci.yml"
    claim = the_only(
        report(
            story,
            WorkflowRisks(),
            {path: safe},
            {path: safe.replace("on: pull_request", "on: pull_request_target")},
        )
    )
    assert (claim.rule, claim.line) == ("workflows/untrusted-checkout", 1)


@pytest.mark.parametrize(
    "reviewer", [PythonSecurity(), AddedSecrets(), DependencyChanges(), WorkflowRisks()]
)
def test_hostile_files_are_survived(story: Story, reviewer: Reviewer) -> None:
    after: Files = {
        "deep.py": "(" * 3000 + ")" * 3000,
        "null.py": b"\0\0",
        "latin.py": "s = 'gr\u00fc\u00dfe'\n".encode("latin-1"),
        "package.json": "[" * 5000,
        ".github/workflows/a.yml": "a: [" * 3000,
        "requirements.txt": "\\\n" * 2000,
        "long.js": "x" * 900_000,
    }
    found = report(story, reviewer, {}, after)
    assert all(claim.path in after for claim in found.claims)
