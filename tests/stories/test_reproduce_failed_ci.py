"""A job failed in CI; we run it again in the sandbox and say what came of it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from regreen.adapters.git import GitRepository
from regreen.adapters.sandbox import choose
from regreen.errors import NoSandbox
from regreen.fixers.ci_log import CiLog
from regreen.fixers.ci_trial import trial_for
from regreen.fixers.minimise import minimise
from regreen.fixers.reproduce import reproduce
from regreen.fixers.smaller import smaller
from regreen.fixers.workflow import plan
from regreen.models import Failure
from regreen.ports import Sandbox

pytestmark = pytest.mark.sandbox

Commit = Callable[[dict[str, str]], str]


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    try:
        return choose()
    except NoSandbox as error:
        pytest.skip(f"no sandbox here: {error}")


@pytest.fixture
def commit(tmp_path: Path) -> Commit:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    def made(files: dict[str, str]) -> str:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        for command in (["add", "-A"], [*identity, "commit", "-qm", "change"]):
            subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
        done = subprocess.run(
            ["git", "-C", str(tmp_path), "rev-parse", "HEAD"], check=True, capture_output=True
        )
        return done.stdout.decode().strip()

    return made


UNITTEST = "import unittest\nfrom calc import add\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"
JOB = "on: push\nenv: {{MODE: ci}}\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v4\n{steps}"
PLAIN = JOB.format(steps="      - run: python -m unittest\n")


STALE = JOB.format(steps="      - run: |\n          pip install --help > /dev/null\n          python gen.py\n      - run: git diff --exit-code\n")  # fmt: skip


def test_a_generated_file_out_of_date_fails_though_the_setup_generates_it(
    tmp_path: Path, commit: Commit, sandbox: Sandbox
) -> None:
    good = commit({"gen.py": "open('names.txt', 'w').write('b')\n", "names.txt": "b"})
    bad = commit({"names.txt": "a"})
    git = GitRepository.open(tmp_path)
    seen = reproduce(trial_for(plan(STALE)[0], 3), bad, git=git, sandbox=sandbox, runs=2, base=good)
    assert (seen.verdict, seen.base) == ("reproduced", "green")


def test_the_same_test_fails_again(tmp_path: Path, commit: Commit, sandbox: Sandbox) -> None:
    good = commit({"calc.py": "def add(a, b): return a + b\n", "test_calc.py": UNITTEST})
    bad = commit({"calc.py": "def add(a, b): return a - b\n"})
    seen_in_ci = CiLog(
        "Run python -m unittest",
        "test",
        (Failure("test_calc.T.test_add", "AssertionError", "-1 != 3"),),
    )
    git = GitRepository.open(tmp_path)
    seen = reproduce(
        trial_for(plan(PLAIN)[0]),
        bad,
        git=git,
        sandbox=sandbox,
        runs=2,
        expected=seen_in_ci,
        base=good,
    )
    assert (seen.verdict, seen.rate, seen.base) == ("reproduced", 1.0, "green")
    assert [failure.test for failure in seen.failures] == ["test_calc.T.test_add"]


def test_a_base_that_is_red_too_is_told_apart(
    tmp_path: Path, commit: Commit, sandbox: Sandbox
) -> None:
    base = commit({"calc.py": "def add(a, b): return a - b\n", "test_calc.py": UNITTEST})
    head = commit({"other.py": ""})
    seen = reproduce(
        trial_for(plan(PLAIN)[0]),
        head,
        git=GitRepository.open(tmp_path),
        sandbox=sandbox,
        runs=1,
        base=base,
    )
    assert (seen.verdict, seen.base) == ("reproduced", "red")


FAR = "import socket, unittest\nclass T(unittest.TestCase):\n    def test_far(self):\n        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far:\n            far.connect(('192.0.2.1', 9))\n        self.assertEqual(1, 2)\n"


def test_a_test_that_misses_the_network_is_not_the_one_that_failed(
    tmp_path: Path, commit: Commit, sandbox: Sandbox
) -> None:
    bad = commit({"test_far.py": FAR})
    git, trial = GitRepository.open(tmp_path), trial_for(plan(PLAIN)[0])
    failed = Failure("test_far.T.test_far", "AssertionError", "AssertionError: 1 != 2")
    seen_in_ci = CiLog("Run python -m unittest", "test", (failed,))
    without = reproduce(trial, bad, git=git, sandbox=sandbox, runs=1, expected=seen_in_ci)
    assert (without.verdict, without.network) == ("not_reproduced", False)
    assert "which it has only where tests.allow_network allows it" in without.detail
    allowed = reproduce(
        trial, bad, git=git, sandbox=sandbox, runs=2, expected=seen_in_ci, allow_network=True
    )
    assert (allowed.verdict, allowed.network, len(allowed.runs)) == ("reproduced", True, 2)
    assert "with a network while it ran" in allowed.detail


def test_who_can_do_without_a_network_has_none_though_it_is_allowed(
    tmp_path: Path, commit: Commit, sandbox: Sandbox
) -> None:
    bad = commit({"calc.py": "def add(a, b): return a - b\n", "test_calc.py": UNITTEST})
    git, trial = GitRepository.open(tmp_path), trial_for(plan(PLAIN)[0])
    seen = reproduce(trial, bad, git=git, sandbox=sandbox, runs=1, allow_network=True)
    assert (seen.verdict, seen.network) == ("reproduced", False)


def test_a_green_step_is_not_reproduced(tmp_path: Path, commit: Commit, sandbox: Sandbox) -> None:
    head = commit({"calc.py": "def add(a, b): return a + b\n", "test_calc.py": UNITTEST})
    seen = reproduce(
        trial_for(plan(PLAIN)[0]), head, git=GitRepository.open(tmp_path), sandbox=sandbox, runs=2
    )
    assert (seen.verdict, seen.detail) == ("not_reproduced", "it passed in 2 of 2 runs")


BOOKKEEPING = JOB.format(
    steps="""\
      - id: words
        run: |
          echo "name=Value" >> "$GITHUB_OUTPUT"
          printf 'many<<END\\na=1\\nb\\nEND\\n' >> "$GITHUB_OUTPUT"
          echo "FROM_FILE=x y" >> "$GITHUB_ENV"
          mkdir -p tools && printf '#!/bin/sh\\necho tool\\n' > tools/mytool && chmod +x tools/mytool
          echo "$PWD/tools" >> "$GITHUB_PATH"
      - {run: exit 3, continue-on-error: true, id: let}
      - {if: steps.words.outputs.name == 'VALUE' && steps.let.outcome == 'failure', run: touch ran}
      - {if: failure(), run: touch wrong}
      - {if: "contains(steps.words.outputs.many, 'zzz')", run: touch wrong}
      - {shell: python, run: "open('py', 'w').write('${{ steps.words.outputs.name }}')"}
      - {shell: bash, run: "false | true", continue-on-error: true, id: pipe}
      - name: check
        env: {MODE: mine, GOT: "${{ steps.pipe.outcome }}", MANY: "${{ steps.words.outputs.many }}"}
        run: |
          false | true
          test -e ran && test ! -e wrong
          test "$(cat py)" = Value
          test "$(mytool)" = tool
          test "$FROM_FILE" = "x y" && test "$MODE" = mine && test "$CI" = true && test "$GITHUB_WORKSPACE" = "$PWD"
          test "$GOT" = failure
          test "$MANY" = "$(printf 'a=1\\nb')"
          echo summary >> "$GITHUB_STEP_SUMMARY"
          exit 42
"""
)


def test_steps_hand_on_what_a_runner_hands_on(
    tmp_path: Path, commit: Commit, sandbox: Sandbox
) -> None:
    head = commit({"a.txt": ""})
    seen = reproduce(
        trial_for(plan(BOOKKEEPING)[0], 9),
        head,
        git=GitRepository.open(tmp_path),
        sandbox=sandbox,
        runs=1,
    )
    assert seen.runs[0].exit_code == 42, seen.runs[0].output


def test_an_earlier_failure_is_said(tmp_path: Path, commit: Commit, sandbox: Sandbox) -> None:
    head = commit({"a.txt": ""})
    steps = "      - {id: x, run: 'echo a=b >> $GITHUB_OUTPUT; exit 9'}\n      - run: echo ${{ steps.x.outputs.a }}\n"
    seen = reproduce(
        trial_for(plan(JOB.format(steps=steps))[0], 3),
        head,
        git=GitRepository.open(tmp_path),
        sandbox=sandbox,
        runs=1,
    )
    assert seen.detail == "an earlier step failed, so the failing step was never reached"


def test_system_packages_are_refused_by_name(
    tmp_path: Path, commit: Commit, sandbox: Sandbox
) -> None:
    head = commit({"a.txt": ""})
    steps = "      - run: sudo apt-get update && sudo apt-get install -y no-such-package-here\n      - run: make test\n"
    seen = reproduce(
        trial_for(plan(JOB.format(steps=steps))[0], 3),
        head,
        git=GitRepository.open(tmp_path),
        sandbox=sandbox,
        runs=1,
    )
    assert seen.verdict == "unsupported"
    assert "no-such-package-here" in seen.detail


POLLUTED = "state = []\ndef test_a(): state.append(1)\ndef test_b(): pass\ndef test_c():\n    x = 1\n    y = 2\n    assert not state\n"


@pytest.mark.slow
def test_a_failing_test_is_cut_down_to_what_it_needs(
    tmp_path: Path, commit: Commit, sandbox: Sandbox
) -> None:
    head = commit({"test_p.py": POLLUTED})
    git = GitRepository.open(tmp_path)
    steps = "      - run: pip install pytest\n      - run: pytest -q\n"
    trial = trial_for(plan(JOB.format(steps=steps))[0])
    failure = reproduce(trial, head, git=git, sandbox=sandbox, runs=1).failures[0]
    small = minimise(
        trial,
        head,
        failure,
        git=git,
        sandbox=sandbox,
        before=["test_p.py::test_a", "test_p.py::test_b"],
    )
    assert small.selection == ("test_p.py::test_a", "test_p.py::test_c")
    assert small.removed == 2
    assert small.source is not None
    assert "y = 2" not in small.source


DATABASE = """\
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    services:
      db:
        image: postgres:16
        env: {POSTGRES_USER: me, POSTGRES_PASSWORD: secret, POSTGRES_DB: shop}
        ports: ["5433:5432"]
        options: --health-cmd pg_isready
    steps:
      - run: psql -h localhost -p ${{ job.services.db.ports['5432'] }} -U me -d shop -Atc 'select current_database()' > name
      - run: test "$(cat name)" = shop && exit 7
"""


@pytest.mark.skipif(
    not any(Path("/usr/lib/postgresql").glob("*/bin/initdb")), reason="no PostgreSQL server here"
)
def test_a_service_runs_beside_the_job(tmp_path: Path, commit: Commit, sandbox: Sandbox) -> None:
    head = commit({"readme": "x"})
    trial = trial_for(plan(DATABASE)[0], 2)
    seen = reproduce(trial, head, git=GitRepository.open(tmp_path), sandbox=sandbox, runs=1)
    assert (seen.verdict, seen.runs[0].exit_code) == ("reproduced", 7), seen.runs[0].output


INSTALLS_IN_A_RULE = JOB.format(steps="      - run: make check\n")


def test_what_a_make_rule_installs_is_there_without_a_network(
    tmp_path: Path, commit: Commit, sandbox: Sandbox
) -> None:
    head = commit({
        "Makefile": "check: deps\n\tpython -m unittest\ndeps:\n\tpython -m pip install --quiet iniconfig\n",
        "test_it.py": "import unittest, iniconfig\nclass T(unittest.TestCase):\n    def test_no(self): self.fail('x')\n",
    })  # fmt: skip
    git = GitRepository.open(tmp_path)
    planned = plan(INSTALLS_IN_A_RULE, files=lambda path: git.show(head, path))[0]
    seen = reproduce(trial_for(planned), head, git=git, sandbox=sandbox, runs=1)
    assert [failure.test for failure in seen.failures] == ["test_it.T.test_no"]


LONG_UNITTEST = """\
import unittest
from calc import add
class T(unittest.TestCase):
    def test_add(self):
        seen = []
        for number in range(3):
            seen.append(number)
            extra = number * 2
        label = "unused"
        total = add(1, 2)
        self.assertEqual(total, 3)
        print(seen, label, extra)
"""


def test_a_failing_unittest_is_made_small_and_said(
    tmp_path: Path, commit: Commit, sandbox: Sandbox
) -> None:
    head = commit({"calc.py": "def add(a, b): return a - b\n", "test_calc.py": LONG_UNITTEST})
    found = smaller(
        trial_for(plan(PLAIN)[0]),
        head,
        [
            Failure(
                "test_calc.T.test_add",
                "AssertionError",
                "AssertionError: -1 != 3",
                "test_calc.py",
                11,
            )
        ],
        git=GitRepository.open(tmp_path),
        sandbox=sandbox,
    )
    assert (found or "").splitlines()[1:] == [
        "        total = add(1, 2)",
        "        self.assertEqual(total, 3)",
    ]


def test_a_step_that_wants_a_container_engine_is_refused_by_name(
    tmp_path: Path, commit: Commit, sandbox: Sandbox
) -> None:
    head = commit({"readme": "x"})
    planned = plan(JOB.format(steps="      - run: make -v && docker run --rm alpine true\n"))[0]
    seen = reproduce(
        trial_for(planned), head, git=GitRepository.open(tmp_path), sandbox=sandbox, runs=1
    )
    assert seen.verdict == "unsupported"
    assert "docker run: there is no container engine" in seen.detail
