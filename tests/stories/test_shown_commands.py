"""Every command that README and docs show is typed as it stands there, or named here with the reason why not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests import shown
from tests.stories.test_fixes import needs_sandbox

TOP = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PROGRAMS = ("regreen", "make", "docker", "git", "python", "python3", "sqlite3", "pg_dump", "pg_restore")  # fmt: skip
_INLINE = re.compile(rf"`((?:{'|'.join(_PROGRAMS)}) [^`\n]+)`")
_FORM = re.compile(r"\[-|\[[A-Z]|\.\.\.|\w\|\w|\b(?:DIR|FILE|COMMAND|NAME|DELIVERY_ID|CASES|OUT)\b")
"""What is no command but the form of one: `test_docs.py` holds its options to what there is."""

# In the package with tests: the command, how it may end, and words of its answer.
_QUICK = {
    "regreen review": (0, "Reviewed 1 of 1 file"),
    "regreen review --head WORKTREE": (0, "Reviewed "),
    "git diff main | regreen review --diff -": (0, "Reviewed "),
    "git diff main | regreen review --diff - --repo . --base main": (0, "Reviewed "),
    "regreen ci-log JOB.log": (0, "tests/test_api.py::test_paging"),
    "regreen ci-log JOB.log --format json": (0, '"tests/test_api.py::test_paging"'),
    "regreen doctor --only model": (0, "a model can be asked"),
    "regreen --help": (0, "finds the commit"),
}
_SLOW = {
    'regreen fix --setup "pip install -e .[test]" -- python -m pytest -q': (0, "fixed ("),
    'regreen fix --repo . --setup "pip install -e .[test]" -- pytest -q': (0, "fixed ("),
    'regreen fix --repo . --base origin/main --setup "pip install -e .[test]" --apply -- pytest -q tests/test_parser.py': (0, "fixed ("),
    "regreen fix --repo . --workflow .github/workflows/ci.yml --job test --log job.log": (0, "fixed ("),
    'regreen fix --repo . --setup "pip install -e .[test]" --overlay spec/test_new.py:tests/test_new.py -- pytest -q tests/test_new.py': (0, "fixed ("),
    'regreen bisect --good v1.2 --setup "pip install -e .[test]" -- python -m pytest -q tests/test_api.py': (0, "broke it"),
    'regreen bisect --good v1.4 --setup "pip install -e .[test]" -- pytest -q tests/test_api.py::test_paging': (0, "broke it"),
    'regreen review --run-tests --setup "pip install -e .[test]"': (0, "Reviewed "),
}  # fmt: skip
_ELSEWHERE = {
    'regreen why --base main --setup "pip install -e .[test]" -- pytest -q': "stories/test_who_caused_it.py, on a change of its own",
    'regreen prove --base main --title "Fix #7: empty lists"': "stories/test_prove_cli.py, on a change of its own",
    "regreen review --base main": "test_the_review_in_the_readme_is_what_comes_out",
    "regreen bisect --good HEAD~29 --overlay check_slug.py -- python check_slug.py": "test_the_bisection_in_the_readme",
    'pg_dump --format=custom --file=regreen.dump "$REGREEN_DATABASE_URL"': "contract/test_backup.py",
    'pg_restore --no-owner --dbname="$REGREEN_DATABASE_URL" regreen.dump': "contract/test_backup.py",
    'sqlite3 /var/lib/regreen/regreen.sqlite ".backup copy.sqlite"': "contract/test_backup.py, at another place",
    "regreen setup --public-url https://regreen.example.org": "stories/test_setup.py, against the playground",
    "regreen serve --host 0.0.0.0 --port 8080": "soak/test_day.py starts it, on loopback",
    "make demo": "stories/test_demo.py",
    "make site": ".ci/run",
    'sqlite3 -json ~/.regreen/regreen.sqlite "select * from actions order by id" > audit.json': "contract/test_backup.py, at another place",
    "make demo ARGS=--keep": "it stays until it is stopped; else the same as `make demo`",
}
_CANNOT = {
    "python3 -m venv sbom && sbom/bin/pip install cyclonedx-bom": "needs a package index; tried by hand: 92 components",
    "python3 -I": "named in a sentence",
    "python -m regreen": "named in a sentence",
    "python -I": "named in a sentence",
    "regreen fix --allow-network": "half of a command, named in a sentence",
    "regreen sandbox --python 3.9": "half of a command, named in a sentence",
    "make setup": "it made the environment that this runs in",
    "make test": "it is what runs this",
    "make check": "it is what runs this",
    "make tests": "it is what runs this",
    "make soak": "it takes an hour",
    "make wheel": "stories/test_packaging.py builds the wheel, into another folder",
    "make wheels": "it downloads three hundred megabytes",
    "make image": "it builds an image, which takes a base that the engine has or can pull",
    "make image BASE=regreen-machine-base": "it builds an image, which takes a base that the engine has or can pull",
    "docker build --network none --build-arg BASE=IMAGE -t regreen .": "IMAGE is the reader's own",
    "docker run --env-file /etc/regreen/env -p 127.0.0.1:8000:8000 -v regreen:/var/lib/regreen -v /var/run/docker.sock:/var/run/docker.sock --group-add $(stat -c %g /var/run/docker.sock) --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges:true regreen": "it takes the built image and a registered App",
    "docker compose -f packaging/compose.yml -f packaging/compose.proxy.yml up -d": "it takes the built image, a public host name and a registered App",
    "regreen setup --public-url https://ADDRESS": "the address is the reader's tunnel; stories/test_setup.py runs it against the playground",
    "regreen serve --port 8080": "it takes a registered App; soak/test_day.py starts it",
    "regreen doctor -v": "it attacks the sandbox for a minute; unit/test_cli.py tests what it prints",
    "regreen doctor --sandbox e2b": "it needs an account at the service",
    "python3 -m venv /opt/regreen && /opt/regreen/bin/pip install '.[app]'": "it installs from an index, outside of the checkout",
}  # fmt: skip


@cache
def _shown() -> dict[str, str]:
    """Each whole command of README and docs, and the page that shows it first."""
    found: dict[str, str] = {}
    for page in (TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))):
        text = page.read_text()
        lines = [
            line.strip().removeprefix("$ ")
            for kind, body in _FENCE.findall(text)
            if kind in {"", "console", "sh", "bash"}
            for line in re.sub(r" *\\\n *", " ", body).splitlines()
        ]
        lines += [c for c in _INLINE.findall(_FENCE.sub("", text)) if " -" in c or '"' in c or c.startswith("make ")]  # fmt: skip
        for line in lines:
            command = re.split(r"\s{2,}(?!$)|\s+# ", line)[0].strip()
            if command.partition(" ")[0] in _PROGRAMS and not _FORM.search(command):
                found.setdefault(command, page.name)
    return found


def test_every_command_that_is_shown_is_run_or_has_a_reason() -> None:
    known = {*_QUICK, *_SLOW, *_ELSEWHERE, *_CANNOT}
    assert {c: page for c, page in _shown().items() if c not in known} == {}
    assert known - {*_shown()} == set(), "what no page shows any more"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shown.project(tmp_path_factory.mktemp("shown") / "project")


def _type(command: str, where: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """In a shell, with `regreen` as `make setup` installs it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ANTHROPIC", "REGREEN"))}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=where, env=env | {"PATH": path, "REGREEN_HOME": str(home)}, check=False, capture_output=True, text=True, timeout=280,
    )  # fmt: skip


def _answers(command: str, project: Path, tmp_path: Path, expected: tuple[int, str]) -> None:
    place = tmp_path / "project"
    shutil.copytree(project, place)
    done = _type(command, place, tmp_path / "home")
    assert done.returncode == expected[0], done.stdout + done.stderr
    assert expected[1] in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("command", _QUICK)
def test_a_command_that_is_shown(command: str, project: Path, tmp_path: Path) -> None:
    _answers(command, project, tmp_path, _QUICK[command])


@needs_sandbox
@pytest.mark.soak
@pytest.mark.sandbox
@pytest.mark.parametrize("command", _SLOW)
def test_a_command_that_is_shown_and_runs_tests(
    command: str, project: Path, tmp_path: Path
) -> None:
    _answers(command, project, tmp_path, _SLOW[command])


def _blocks(page: str) -> list[str]:
    return [body for kind, body in _FENCE.findall((TOP / page).read_text()) if kind == "text"]


def test_the_review_in_the_readme_is_what_comes_out(tmp_path: Path) -> None:
    place = shown.orders(tmp_path / "orders")
    said = _type("regreen review --base main", place, tmp_path / "home").stdout
    findings, rest = said.split("\n\nwithheld: ")
    assert _in_order(_blocks("README.md")[0], findings)
    assert re.search(r"not reviewed: model: not configured \(.*\); not required\n", rest)


@needs_sandbox
@pytest.mark.soak
@pytest.mark.sandbox
def test_the_bisection_in_the_readme_is_what_comes_out(tmp_path: Path) -> None:
    place = shown.slugs(tmp_path / "slugs")
    said = _type(
        "regreen bisect --good HEAD~29 --overlay check_slug.py -- python check_slug.py",
        place, tmp_path / "home",
    ).stdout  # fmt: skip
    assert _in_order(_blocks("README.md")[1], said)


def _in_order(shown: str, said: str) -> bool:
    """Whether every line that is shown was said, in that order; more may have been said between them."""
    rest = iter(_plain(said))
    missing = [line for line in _plain(shown) if line not in rest]
    assert missing == []
    return not missing


def _plain(words: str) -> list[str]:
    """Without what differs from machine to machine: seconds, and the Python that is there."""
    lines = (re.sub(r"\d+ s\b|Python 3\.\d+", "...", line).rstrip() for line in words.splitlines())
    return [line for line in lines if line]


def test_the_program_in_the_playgrounds_page_runs(tmp_path: Path) -> None:
    page = (TOP / "docs" / "playground.md").read_text()
    (program,) = [body for kind, body in _FENCE.findall(page) if kind == "python"]
    checked = program + "assert [event for event, *_ in [(d.event,) for d in app.deliveries]]\nassert not state.surprises, state.surprises\n"  # fmt: skip
    checked = checked.replace("assert ", "    assert ")
    done = subprocess.run([sys.executable, "-c", checked], cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60)  # fmt: skip
    assert done.returncode == 0, done.stderr
