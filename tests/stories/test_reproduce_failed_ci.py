"""A job failed in CI; we run it again in the sandbox and say what came of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from regreen.actions.step_trial import make_step_trial
from regreen.actions.workflow import plan_workflow
from regreen.adapters.git.repository import GitRepository
from regreen.domain.models import Failure
from regreen.domain.ports import Sandbox
from regreen.fixers.minimization import describe_smaller_failure, minimize_failure
from regreen.logs.ci_log import CiLog
from tests.contract.sandboxes import sandbox_or_skip, usual_sandbox
from tests.reproduction import reproduce_failure

pytestmark = pytest.mark.sandbox

Commit = Callable[[dict[str, str]], str]


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return usual_sandbox()


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
    seen = reproduce_failure(
        make_step_trial(plan_workflow(STALE)[0], 3),
        bad,
        git=git,
        sandbox=sandbox,
        runs=2,
        base=good,
    )
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
    seen = reproduce_failure(
        make_step_trial(plan_workflow(PLAIN)[0]),
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
    seen = reproduce_failure(
        make_step_trial(plan_workflow(PLAIN)[0]),
        head,
        git=GitRepository.open(tmp_path),
        sandbox=sandbox,
        runs=1,
        base=base,
    )
    assert (seen.verdict, seen.base) == ("reproduced", "red")


FAR = """import unittest
from urllib.error import HTTPError
from urllib.request import urlopen

class T(unittest.TestCase):
    def test_far(self):
        with self.assertRaises(HTTPError):  # what answers is the filter before the network
            urlopen("http://10.0.0.1/")
        self.assertEqual(1, 2)
"""


def test_a_test_that_misses_the_network_is_not_the_one_that_failed(
    tmp_path: Path, commit: Commit, sandbox: Sandbox
) -> None:
    bad = commit({"test_far.py": FAR})
    git, trial = GitRepository.open(tmp_path), make_step_trial(plan_workflow(PLAIN)[0])
    failed = Failure("test_far.T.test_far", "AssertionError", "AssertionError: 1 != 2")
    seen_in_ci = CiLog("Run python -m unittest", "test", (failed,))
    without = reproduce_failure(trial, bad, git=git, sandbox=sandbox, runs=1, expected=seen_in_ci)
    assert (without.verdict, without.network) == ("not_reproduced", False)
    assert "which it has only where tests.allow_network allows it" in without.detail
    allowed = reproduce_failure(
        trial, bad, git=git, sandbox=sandbox, runs=2, expected=seen_in_ci, allow_network=True
    )
    assert (allowed.verdict, allowed.network, len(allowed.runs)) == ("reproduced", True, 2)
    assert "with a network while it ran" in allowed.detail


def test_who_can_do_without_a_network_has_none_though_it_is_allowed(
    tmp_path: Path, commit: Commit, sandbox: Sandbox
) -> None:
    bad = commit({"calc.py": "def add(a, b): return a - b\n", "test_calc.py": UNITTEST})
    git, trial = GitRepository.open(tmp_path), make_step_trial(plan_workflow(PLAIN)[0])
    seen = reproduce_failure(trial, bad, git=git, sandbox=sandbox, runs=1, allow_network=True)
    assert (seen.verdict, seen.network) == ("reproduced", False)


def test_a_green_step_is_not_reproduced(tmp_path: Path, commit: Commit, sandbox: Sandbox) -> None:
    head = commit({"calc.py": "def add(a, b): return a + b\n", "test_calc.py": UNITTEST})
    seen = reproduce_failure(
        make_step_trial(plan_workflow(PLAIN)[0]),
        head,
        git=GitRepository.open(tmp_path),
        sandbox=sandbox,
        runs=2,
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
    seen = reproduce_failure(
        make_step_trial(plan_workflow(BOOKKEEPING)[0], 9),
        head,
        git=GitRepository.open(tmp_path),
        sandbox=sandbox,
        runs=1,
    )
    assert seen.runs[0].result.exit_code == 42, seen.runs[0].output


def test_an_earlier_failure_is_said(tmp_path: Path, commit: Commit, sandbox: Sandbox) -> None:
    head = commit({"a.txt": ""})
    steps = "      - {id: x, run: 'echo a=b >> $GITHUB_OUTPUT; exit 9'}\n      - run: echo ${{ steps.x.outputs.a }}\n"
    seen = reproduce_failure(
        make_step_trial(plan_workflow(JOB.format(steps=steps))[0], 3),
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
    seen = reproduce_failure(
        make_step_trial(plan_workflow(JOB.format(steps=steps))[0], 3),
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
    trial = make_step_trial(plan_workflow(JOB.format(steps=steps))[0])
    failure = reproduce_failure(trial, head, git=git, sandbox=sandbox, runs=1).failures[0]
    small = minimize_failure(
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
        image: postgres:99-alpine
        env: {POSTGRES_USER: me, POSTGRES_PASSWORD: "it's secret", POSTGRES_DB: shop}
        ports: ["5433:5432"]
        options: --health-cmd pg_isready
    env: {PGHOST: localhost, PGUSER: me, PGDATABASE: shop}
    steps:
      - run: psql -p ${{ job.services.db.ports['5432'] }} -Atc 'select current_database()' > name
        env: {PGPASSWORD: "it's secret"}
      - run: |
          psql -p 5433 -c 'select 1' && exit 1
          test "$(cat name)" = shop && exit 7
        env: {PGPASSWORD: wrong}
"""
MYSQL = """\
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    services:
      db:
        image: mysql:8.0
        env: {MYSQL_ROOT_PASSWORD: "a'b", MYSQL_DATABASE: shop, MYSQL_USER: me, MYSQL_PASSWORD: 'c\\d'}
        ports: ["3307:3306"]
    steps:
      - run: |
          mysql -h 127.0.0.1 -P 3307 -u me '-pc\\d' shop -e 'create table t (n int)'
          test "$(mysql -h 127.0.0.1 -P 3307 -u root "-pa'b" -Ne "show tables in shop")" = t
          mysql -h 127.0.0.1 -P 3307 -u me -pwrong -e 'select 1' && exit 1
          exit 7
"""
REDIS = """\
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    services:
      cache: {image: "redis:99", ports: ["6380:6379"], options: --health-cmd "redis-cli ping"}
    steps:
      - env: {REDIS_URL: "redis://localhost:${{ job.services.cache.ports[6379] }}"}
        run: |
          test "$(redis-cli -u "$REDIS_URL" ping)" = PONG
          exit 7
"""
MEMCACHED = """\
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    services:
      cache: {image: "memcached:99", ports: ["11211:11211"]}
    steps:
      - shell: python
        run: |
          import socket, sys
          link = socket.create_connection(("localhost", 11211))
          link.sendall(b"version\\r\\n")
          sys.exit(7 if link.recv(100).startswith(b"VERSION") else 1)
"""


@pytest.mark.parametrize("kind", ["docker", "bwrap"])
@pytest.mark.parametrize(
    ("workflow", "server", "said"),
    [
        (DATABASE, "initdb", "service db (postgres:99-alpine) was run as PostgreSQL 1"),
        (MYSQL, "mariadbd", "service db (mysql:8.0) was run as MariaDB 1"),
        (REDIS, "redis-server", "service cache (redis:99) was run as redis-server "),
        (MEMCACHED, "memcached", "service cache (memcached:99) was run as memcached 1."),
    ],
    ids=["postgres", "mysql", "redis", "memcached"],
)
def test_a_service_of_this_machines_packages_runs_beside_the_job(  # noqa: PLR0917
    tmp_path: Path, commit: Commit, kind: str, workflow: str, server: str, said: str
) -> None:
    places = [*map(Path, ("/usr/bin", "/usr/sbin")), *Path("/usr/lib/postgresql").glob("*/bin")]
    if not any((place / server).exists() for place in places):
        pytest.skip(f"no {server} on this machine")
    sandbox = sandbox_or_skip(kind)
    if server == "initdb" and getattr(sandbox, "why_approximate", None):
        pytest.skip("PostgreSQL needs shared memory that approximate limits refuse")
    head = commit({"readme": "x"})
    job = plan_workflow(workflow)[0]
    trial = make_step_trial(job, len(job.steps))
    git = GitRepository.open(tmp_path)
    seen = reproduce_failure(trial, head, git=git, sandbox=sandbox, runs=1)
    assert (seen.verdict, seen.runs[0].result.exit_code) == ("reproduced", 7), seen
    assert said in seen.detail


def test_a_service_in_the_version_asked_for_needs_no_remark(
    tmp_path: Path, commit: Commit, sandbox: Sandbox
) -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server on this machine")
    done = subprocess.run(["redis-server", "--version"], capture_output=True, text=True, check=True)
    major = done.stdout.partition("v=")[2].partition(".")[0]
    head = commit({"readme": "x"})
    trial = make_step_trial(plan_workflow(REDIS.replace("redis:99", f"redis:{major}-alpine"))[0], 1)
    seen = reproduce_failure(trial, head, git=GitRepository.open(tmp_path), sandbox=sandbox, runs=1)
    assert seen.verdict == "reproduced"
    assert "was run as" not in seen.detail


INSTALLS_IN_A_RULE = JOB.format(steps="      - run: make check\n")


def test_what_a_make_rule_installs_is_there_without_a_network(
    tmp_path: Path, commit: Commit, sandbox: Sandbox
) -> None:
    head = commit({
        "Makefile": "check: deps\n\tpython -m unittest\ndeps:\n\tpython -m pip install --quiet iniconfig\n",
        "test_it.py": "import unittest, iniconfig\nclass T(unittest.TestCase):\n    def test_no(self): self.fail('x')\n",
    })  # fmt: skip
    git = GitRepository.open(tmp_path)
    planned = plan_workflow(INSTALLS_IN_A_RULE, files=lambda path: git.show(head, path))[0]
    seen = reproduce_failure(make_step_trial(planned), head, git=git, sandbox=sandbox, runs=1)
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
    found = describe_smaller_failure(
        make_step_trial(plan_workflow(PLAIN)[0]),
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
    planned = plan_workflow(
        JOB.format(steps="      - run: make -v && docker run --rm alpine true\n")
    )[0]
    seen = reproduce_failure(
        make_step_trial(planned), head, git=GitRepository.open(tmp_path), sandbox=sandbox, runs=1
    )
    assert seen.verdict == "unsupported"
    assert "docker run: there is no container engine" in seen.detail
