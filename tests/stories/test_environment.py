"""What a developer sees who says nothing about how the repository is set up: the environment is inferred and shown."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from click.testing import CliRunner

from regreen.adapters.sandbox.bubblewrap.bubblewrap_sandbox import BwrapSandbox
from regreen.cli import cli
from regreen.domain.errors import SetupFailed, UserError
from regreen.domain.models import EnvSpec, PreparedEnv
from regreen.domain.repo_config import RepoConfig
from regreen.environment.preparation import complete_trial
from regreen.fixers import ladder
from regreen.fixers.case import RungResult
from regreen.runs.trial import Trial
from tests.stories.test_fix_resume import CountingSandbox
from tests.unit.repairs import CALC, GREEN, Repository, sandbox_or_skip

pytestmark = pytest.mark.sandbox
PYPROJECT = (
    '[build-system]\nrequires = ["setuptools>=64"]\nbuild-backend = "setuptools.build_meta"\n'
    '[project]\nname = "pkg"\nversion = "1"\n[project.optional-dependencies]\ntest = ["pytest", "iniconfig"]\n'
    '[tool.setuptools]\npackages = ["pkg"]\n'
)
BROKEN = CALC.replace("result += value", "result = value")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    made.commit("start", {**GREEN, "pyproject.toml": PYPROJECT})
    return made


def regreen(repository: Repository, name: str, *argv: str) -> tuple[int, dict[str, Any], str]:
    args = (name, "--repo", str(repository.path), "--format", "json", *argv)
    done = CliRunner().invoke(cli, args, standalone_mode=False, catch_exceptions=False)
    return int(done.return_value or 0), json.loads(done.stdout), done.stderr


class OnceSandbox(CountingSandbox):
    """A sandbox whose setups are killed as soon as they install what no manifest declares."""

    refused = False

    def prepare(
        self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None
    ) -> PreparedEnv:
        if "freezegun" in (spec.setup or ""):
            self.refused = True
            raise SetupFailed("the setup took too long (12 seconds)", "")
        return super().prepare(spec, tree, cancel)


def test_fix_needs_nothing_but_the_command(repository: Repository) -> None:
    repository.commit("faster sums", {"pkg/calc.py": BROKEN})
    code, document, said = regreen(repository, "fix", "--no-model", "--rungs", "revert", "--", "python", "-m", "pytest", "-q")  # fmt: skip
    assert (code, document["outcome"], document["rung"]) == (0, "fixed", "revert")
    environment = document["environment"]
    assert "-e '.[test]'" in environment["setup"]
    assert environment["sources"]["setup"] == "pyproject.toml:8"
    assert "(from pyproject.toml:8)" in said


def test_what_a_command_installs_first_is_installed_while_the_box_has_a_network(
    repository: Repository,
) -> None:
    command = "python -m pip install -q -e '.[test]' && python -m pytest -q"
    code, document, _ = regreen(repository, "fix", "--no-model", "--", "sh", "-c", command)
    assert (code, document["outcome"]) == (0, "already_green")
    assert document["environment"]["test"] == "python -m pytest -q"
    assert document["environment"]["setup"].startswith("python -m pip install -q -e '.[test]' && {")


def test_what_was_inferred_is_tried(repository: Repository) -> None:
    code, document, _ = regreen(repository, "env")
    assert (code, document["works"], document["language"]) == (0, True, "python")
    assert document["test"] == "python -m pytest -q"


def test_a_module_that_no_manifest_can_bring_is_named(repository: Repository) -> None:
    test = "import nowhere_to_be_found\n\n\ndef test_it():\n    pass\n"
    repository.commit("a test", {"tests/test_calc.py": test})
    code, document, _ = regreen(repository, "env")
    assert (code, document["works"]) == (1, False)
    assert "No module named 'nowhere_to_be_found'" in document["reason"]


def test_fix_says_why_no_setup_could_be_used(repository: Repository) -> None:
    index = ("--env", "PIP_NO_INDEX=1", "--env", "PIP_FIND_LINKS=/nowhere")
    code, document, _ = regreen(repository, "fix", "--no-model", *index, "--", "python", "-m", "pytest", "-q")  # fmt: skip
    assert (code, document["outcome"]) == (1, "not_reproduced")
    assert "(the setup inferred from pyproject.toml:" in document["reason"]
    assert "No matching distribution found for uv" in document["reason"]


def test_the_repository_s_own_tests_run_where_the_command_collects_none(tmp_path: Path) -> None:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    made.commit("start", {"tests.py": "def test_it():\n    assert 1 == 2\n", "requirements.txt": "pytest\n"})  # fmt: skip
    code, document, _ = regreen(made, "fix", "--no-model", "--rungs", "recipe", "--", "python", "-m", "pytest", "-q")  # fmt: skip
    assert (code, document["outcome"]) == (1, "gave_up")
    assert document["environment"]["test"] == "python -m pytest -q tests.py"
    assert document["reason"].endswith("(python -m pytest -q collects no test, so that python -m pytest -q tests.py (from tests.py) runs in its place)")  # fmt: skip


NEEDS_ITS_RUNNER = "import os\n\nif not os.environ.get('READY'):\n    raise RuntimeError('not set up')\n\n\ndef test_it():\n    assert 1 == 2\n"
RUNNER = "import os\nimport sys\n\nimport pytest\n\nos.environ['READY'] = {ready}\nsys.exit(pytest.main(['tests']))\n"


@pytest.mark.parametrize(
    ("ready", "starts"),
    [("'yes'", True), ("''", False)],
    ids=["whose runner sets them up", "whose runner fails too"],
)
def test_tests_that_need_their_runner_are_run_by_it(
    tmp_path: Path, ready: str, starts: bool
) -> None:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    files = {
        "tests/test_it.py": NEEDS_ITS_RUNNER,
        "runtests.py": RUNNER.format(ready=ready),
        "Makefile": "test:\n\tpython runtests.py\n",
        "requirements.txt": "pytest\n",
    }
    made.commit("start", files)
    code, document, _ = regreen(made, "fix", "--no-model", "--rungs", "recipe", "--", "python", "-m", "pytest", "-q")  # fmt: skip
    assert code == 1
    if starts:
        assert document["environment"]["test"] == "python runtests.py"
        assert document["before"]["failures"][0]["test"] == "tests/test_it.py::test_it"
        assert "(python -m pytest -q collects no test (RuntimeError: not set up" in document["reason"].replace("E   ", "")  # fmt: skip
    else:
        assert document["before"]["command"] == "python -m pytest -q"
        assert "it exits with 2 before any test: " in document["reason"]
        assert "RuntimeError: not set up" in document["reason"]


def test_tests_that_pass_in_the_place_of_the_command_are_named(tmp_path: Path) -> None:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    made.commit("start", {"tests.py": "def test_it():\n    pass\n", "requirements.txt": "pytest\n"})
    code, document, _ = regreen(made, "fix", "--no-model", "--rungs", "recipe", "--", "python", "-m", "pytest", "-q")  # fmt: skip
    assert (code, document["outcome"]) == (0, "already_green")
    assert "python -m pytest -q collects no test, so that python -m pytest -q tests.py" in document["reason"]  # fmt: skip


def test_a_file_that_cannot_be_collected_does_not_hide_the_other_tests(tmp_path: Path) -> None:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    files = {"requirements.txt": "pytest\n", "tests/test_words.py": "open('words/all.txt')\n"}
    made.commit("start", {**files, "tests/test_more.py": "def test_more():\n    assert 1 == 2\n"})
    code, document, _ = regreen(made, "fix", "--no-model", "--rungs", "recipe", "--", "python", "-m", "pytest", "-q")  # fmt: skip
    assert (code, document["outcome"]) == (1, "gave_up")
    assert "the others run by python -m pytest -q --continue-on-collection-errors" in document["reason"]  # fmt: skip
    assert "tests/test_more.py::test_more" in str(document)


def test_fix_says_why_the_setup_failed_after_which_not_all_tests_are_collected(
    tmp_path: Path,
) -> None:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    files = {"setup.py": "raise RuntimeError('no R here')\n", "tests/test_words.py": "open('words/all.txt')\n"}  # fmt: skip
    made.commit("start", {**files, "tests/test_more.py": "def test_more():\n    pass\n"})
    code, document, _ = regreen(made, "fix", "--no-model", "--rungs", "recipe", "--", "python", "-m", "pytest", "-q")  # fmt: skip
    assert (code, document["outcome"]) == (1, "gave_up")
    assert "not all tests can be collected" in document["reason"]
    assert "the setup inferred from setup.py:1 failed: " in document["reason"]
    assert "no R here" in document["reason"]


def test_variables_that_the_repository_sets_for_its_tests_are_set(tmp_path: Path) -> None:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    test = "import os\n\nDATABASE = os.environ['TEST_DB']\n\n\ndef test_it():\n    assert DATABASE == 'sqlite'\n"
    files = {"tox.ini": "[testenv]\nsetenv =\n    TEST_DB=sqlite\n", "requirements.txt": "pytest\n"}
    made.commit("start", {**files, "tests/test_it.py": test})
    code, document, _ = regreen(made, "fix", "--no-model", "--rungs", "recipe", "--", "python", "-m", "pytest", "-q")  # fmt: skip
    assert (code, document["outcome"]) == (0, "already_green")
    assert "set for the tests: TEST_DB=sqlite" in document["environment"]["notes"]  # fmt: skip


def test_fix_names_the_submodule_that_the_clone_lacks(tmp_path: Path) -> None:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    test = "from pathlib import Path\n\nWORDS = Path('words/all.txt').read_text()\n\n\ndef test_it():\n    pass\n"
    made.commit("start", {"requirements.txt": "pytest\n", ".gitmodules": '[submodule "words"]\n\tpath = words\n\turl = ../words\n'})  # fmt: skip
    (made.path / "words").mkdir()
    link = f"160000,{'1' * 40},words"
    subprocess.run(["git", "-C", made.path, "update-index", "--add", "--cacheinfo", link], check=True)  # fmt: skip
    made.commit("words", {"tests/test_words.py": test, "tests/test_more.py": "def test_more():\n    pass\n"})  # fmt: skip
    code, document, _ = regreen(made, "fix", "--no-model", "--rungs", "recipe", "--", "python", "-m", "pytest", "-q")  # fmt: skip
    assert (code, document["outcome"]) == (1, "gave_up")
    assert "not all tests can be collected as inferred from requirements.txt:1: FileNotFoundError" in document["reason"]  # fmt: skip
    assert "submodule words: not in this clone; run `git submodule update" in document["reason"]


def test_a_project_in_a_folder_is_set_up_for_the_tests_beside_it(tmp_path: Path) -> None:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    made.commit("start", {
        "python/pyproject.toml": PYPROJECT, "python/pkg/__init__.py": "", "python/pkg/calc.py": CALC,
        "tests/test_it.py": "from pkg.calc import total\n\n\ndef test_it():\n    assert total([1, 2]) == 3\n",
    })  # fmt: skip
    code, document, _ = regreen(made, "fix", "--no-model", "--", "python", "-m", "pytest", "-q")
    assert (code, document["outcome"]) == (0, "already_green"), document


def test_an_addition_that_cannot_be_set_up_leaves_what_was_set_up_before(
    repository: Repository,
) -> None:
    lacking = PYPROJECT.replace(', "iniconfig"', "").replace('version = "1"\n', 'version = "1"\ndependencies = []\n')  # fmt: skip
    test = "import freezegun\n\n\ndef test_it():\n    pass\n"
    rev = repository.commit("a test", {"pyproject.toml": lacking, "tests/test_calc.py": test})
    sandbox = OnceSandbox(sandbox_or_skip())
    done = complete_trial(
        Trial(()), rev, tests=RepoConfig().tests, git=repository.open(), sandbox=sandbox,
        minutes=5, today=datetime.now(UTC).date(), say=lambda _: None,
    )  # fmt: skip
    assert sandbox.refused
    assert "pytest" in (done.trial.setup or "")
    assert "freezegun" not in (done.trial.setup or "")
    assert "took too long" in done.failure


def test_a_project_whose_build_needs_its_requirements_is_built_after_them(tmp_path: Path) -> None:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    build = "import iniconfig\nfrom setuptools import setup\n\nopen('shop_built.py', 'w').write('ONE = 1\\n')\n"
    made.commit("start", {
        "setup.py": f"{build}setup(name='shop', py_modules=['shop_built'])\n", "requirements.txt": "iniconfig\n",
        "tests/test_it.py": "from shop_built import ONE\n\n\ndef test_it():\n    assert ONE == 1\n",
    })  # fmt: skip
    code, document, _ = regreen(made, "env")
    assert (code, document["works"]) == (0, True), document


def test_what_an_addition_does_not_bring_is_added_once(repository: Repository) -> None:
    test = "raise ModuleNotFoundError(\"No module named 'freezegun'\")\n"
    repository.commit("a test", {"tests/test_calc.py": test})
    code, document, _ = regreen(repository, "env")
    assert (code, document["works"]) == (1, False)
    assert document["setup"].count("pip install -q --prefer-binary freezegun") == 1
    assert "No module named 'freezegun'" in document["reason"]


def test_a_program_that_the_box_lacks_is_named(repository: Repository) -> None:
    code, document, _ = regreen(repository, "fix", "--no-model", "--", "nosuchprogram", "--all")
    assert (code, document["outcome"]) == (1, "not_reproduced")
    assert "nosuchprogram is not installed in the sandbox" in document["reason"]


def test_a_setup_that_hangs_is_killed_at_the_limit(repository: Repository) -> None:
    started = time.monotonic()
    code, document, _ = regreen(repository, "fix", "--no-model", "--setup", "sleep 600", "--max-minutes", "0.2", "--", "true")  # fmt: skip
    assert (code, document["outcome"]) == (1, "out_of_budget")
    assert "the time was over before the failure was understood" in document["reason"]
    assert time.monotonic() - started < 60


@pytest.mark.slow
def test_a_repair_that_the_limit_ends_still_says_what_fails(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StuckRung:
        def propose_fix(self, *_case_and_judge: object) -> RungResult:
            time.sleep(600)
            return RungResult()

    monkeypatch.setattr(ladder, "load_rung", lambda _name: StuckRung())
    repository.commit("faster sums", {"pkg/calc.py": BROKEN})
    code, document, _ = regreen(repository, "fix", "--no-model", "--max-minutes", "1", "--", "python", "-m", "pytest", "-q")  # fmt: skip
    assert (code, document["outcome"]) == (1, "out_of_budget")
    assert {one["test"] for one in document["before"]["failures"]} == {"tests/test_calc.py::test_total", "tests/test_calc.py::test_mean"}  # fmt: skip
    assert "pytest" in document["environment"]["setup"]


def _is_running(words: str) -> bool:
    """Whether a process of this machine, those in boxes included, has these words in its command line."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if words.encode() in place.read_bytes().replace(b"\0", b" "):
                return True
    return False


@pytest.mark.parametrize(
    ("argv", "key", "outcome"),
    [
        (("fix", "--no-model", "--setup", "true", "--", "sleep", "NUMBER"), "outcome", "out_of_budget"),
        (("fix", "--no-model", "--setup", "sleep NUMBER", "--", "true"), "outcome", "out_of_budget"),
        (("bisect", "--setup", "true", "--", "sleep", "NUMBER"), "outcome", "not_reproduced"),
        (("gate", "--base", "HEAD", "--setup", "sleep NUMBER"), "verdict", "needs_human"),
        (("why", "--base", "HEAD~1", "--setup", "true", "--", "sleep", "NUMBER"), "verdict", "unknown"),
        (("prove", "--base", "HEAD~1", "--setup", "sleep NUMBER"), "verdict", "inconclusive"),
        (("review", "--base", "HEAD~1", "--no-model", "--run-tests", "--setup", "sleep NUMBER"), None, None),
    ],
)  # fmt: skip
def test_no_command_takes_longer_than_its_limit(
    repository: Repository, tmp_path: Path, argv: tuple[str, ...], key: str | None, outcome: str
) -> None:
    """In a process of its own, from its start to its end; its answer is whole, and nothing of it runs on."""
    more = {"pkg/calc.py": BROKEN, "tests/test_more.py": "def test_more():\n    assert 1\n"}
    repository.commit("more", more)
    number = str(time.time_ns() % 10**9 + 10**6)
    words = [word.replace("NUMBER", number) for word in argv]
    if argv[0] == "gate":
        patch, before = tmp_path / "a.patch", tmp_path / "before.json"
        patch.write_text(
            "diff --git a/notes.txt b/notes.txt\nnew file mode 100644\n--- /dev/null\n+++ b/notes.txt\n@@ -0,0 +1 @@\n+note\n"
        )
        before.write_text(json.dumps({"command": "false", "failures": []}))
        words += ["--patch", str(patch), "--failures", str(before)]
    command = [sys.executable, "-m", "regreen", words[0], "--repo", str(repository.path), "--format", "json"]  # fmt: skip
    started = time.monotonic()
    done = subprocess.run([*command, "--max-minutes", "0.25", *words[1:]], capture_output=True, text=True, check=False)  # fmt: skip
    assert time.monotonic() - started < 15
    document = json.loads(done.stdout)
    assert done.returncode in {1, 3}, done.stderr
    assert "give --max-minutes more" in done.stderr
    assert key is None or document[key] == outcome
    assert not _is_running(f"sleep {number}")


def test_a_review_that_is_stopped_shows_what_was_found_until_then(repository: Repository) -> None:
    repository.commit(
        "more", {"pkg/calc.py": f"{CALC}\n\ndef give():\n    return nothing_like_it\n"}
    )
    review = ("review", "--base", "HEAD~1", "--no-model", "--run-tests", "--max-minutes", "1")
    code, document, _ = regreen(repository, *review, "--setup", "sleep 600")
    assert [(one["path"], one["title"]) for one in document["findings"]] == [("pkg/calc.py", "Undefined name `nothing_like_it`")]  # fmt: skip
    assert code == 3
    late = [one["reviewer"] for one in document["skipped"] if one["reason"] == "the time was over"]  # fmt: skip
    assert late


def test_a_bisection_stops_at_the_limit_too(repository: Repository) -> None:
    repository.commit("more", {"README.md": "more\n"})
    started = time.monotonic()
    code, document, _ = regreen(repository, "bisect", "--setup", "sleep 600", "--max-minutes", "0.2", "--", "false")  # fmt: skip
    assert (code, document["outcome"], document["culprit"]) == (1, "not_reproduced", None)
    assert any(note == "stopped at the time limit" for note in document["notes"])
    assert time.monotonic() - started < 60


def test_a_bisection_that_is_cut_before_its_range_is_known_is_undecided(
    repository: Repository,
) -> None:
    repository.commit("new", {"new.txt": "new\n"})
    command = "test -f new.txt && exit 1; sleep 600"
    code, document, error = regreen(repository, "bisect", "--setup", "true", "--max-minutes", "0.5", "--", "bash", "-c", command)  # fmt: skip
    assert (code, document["outcome"], document["culprit"]) == (1, "undecided", None), error


def test_the_committed_configuration_comes_before_what_is_inferred(repository: Repository) -> None:
    text = "tests: {setup: 'pip install -q pytest', command: 'python -m pytest -q tests'}\n"
    repository.commit("configure", {".github/regreen.yml": text})
    code, document, _ = regreen(repository, "fix", "--no-model")
    assert (code, document["outcome"]) == (0, "already_green")
    assert document["before"]["command"] == "python -m pytest -q tests"
    assert document["environment"]["source"] == ".github/regreen.yml"


def test_uncommitted_files_are_mentioned_and_can_be_included(repository: Repository) -> None:
    (repository.path / "pkg/calc.py").write_text(BROKEN)
    check = ("--setup", "true", "--no-model", "--rungs", "recipe", "--", "python", "-c", "from pkg.calc import total; assert total([1, 2]) == 3")  # fmt: skip
    code, document, said = regreen(repository, "fix", *check)
    assert (code, document["outcome"]) == (0, "already_green")
    assert "1 uncommitted file is not included" in said
    code, document, said = regreen(repository, "fix", "--rev", "WORKTREE", *check)
    assert (code, document["outcome"]) == (1, "gave_up")
    assert "not included" not in said


def test_a_bisection_takes_the_files_as_they_stand(repository: Repository) -> None:
    repository.commit("a note", {"README.md": "more\n"})
    (repository.path / "pkg/calc.py").write_text(BROKEN)
    check = ("--setup", "true", "--", "python", "-c", "from pkg.calc import total; assert total([1, 2]) == 3")  # fmt: skip
    code, document, said = regreen(repository, "bisect", "--bad", "WORKTREE", *check)
    assert (code, document["outcome"]) == (0, "found")
    assert document["culprit"]["subject"] == "The working tree as it stands"
    assert "not included" not in said


def test_a_history_of_one_commit_is_refused_at_once(repository: Repository) -> None:
    with pytest.raises(UserError, match="the history has one commit"):
        regreen(repository, "bisect", "--", "false")


def test_a_test_that_never_passed_has_no_culprit(repository: Repository) -> None:
    for number in range(3):
        repository.commit(f"note {number}", {"README.md": f"{number}\n"})
    code, document, _ = regreen(repository, "bisect", "--setup", "true", "--", "false")
    assert (code, document["outcome"], document["culprit"]) == (1, "before", None)
    assert document["tests"] <= 6


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on this machine")
@pytest.mark.parametrize("locked", [False, True])
def test_packages_are_installed_where_one_of_their_scripts_fails(
    tmp_path: Path, locked: bool
) -> None:
    """A script may ask for more network than a box has: also where the workflow says `npm ci`, the lock is not to blame."""
    made = Repository(tmp_path / "repo")
    files = {
        "package.json": '{"name": "shop", "scripts": {"test": "node a.js"}, "dependencies": {"dep": "file:dep"}}',
        "dep/package.json": '{"name": "dep", "version": "1.0.0", "scripts": {"postinstall": "exit 7"}}',
        "dep/index.js": "", "a.js": 'require("dep")\n',
        ".github/workflows/ci.yml": "on: push\njobs:\n  test:\n    steps:\n      - run: npm ci\n      - run: npm test\n",
    }  # fmt: skip
    if locked:
        packages = {
            "": {"name": "shop", "dependencies": {"dep": "file:dep"}},
            "dep": {"version": "1.0.0", "hasInstallScript": True},
            "node_modules/dep": {"resolved": "dep", "link": True},
        }
        lock = {"name": "shop", "lockfileVersion": 3, "requires": True, "packages": packages}
        files["package-lock.json"] = json.dumps(lock)
    made.commit("start", files)
    code, document, _ = regreen(made, "fix", "--no-model", "--", "npm", "test")
    assert (code, document["outcome"]) == (0, "already_green")


STALE_LOCK = json.dumps({"name": "shop", "lockfileVersion": 3, "packages": {"": {"name": "shop"}}})


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on this machine")
@pytest.mark.parametrize(("step", "outcome"), [("npm ci", "fixed"), ("npm install", "already_green")])  # fmt: skip
def test_a_lock_that_the_workflow_refuses_is_not_called_green(
    tmp_path: Path, step: str, outcome: str
) -> None:
    workflow = f"on: push\njobs:\n  test:\n    steps:\n      - run: {step}\n      - run: npm test\n"
    made = Repository(tmp_path / "repo")
    made.commit("start", {
        "package.json": '{"name": "shop", "scripts": {"test": "node a.js"}, "dependencies": {"dep": "file:dep"}}',
        "package-lock.json": STALE_LOCK,
        "dep/package.json": '{"name": "dep", "version": "1.0.0", "scripts": {"postinstall": "echo > built.js"}}',
        "dep/index.js": "", "a.js": 'require("dep/built.js")\n',
        ".github/workflows/ci.yml": workflow,
    })  # fmt: skip
    _, document, _ = regreen(made, "fix", "--no-model", "--", "npm", "test")
    assert document["outcome"] == outcome, "the packages of the repaired lock are built too"
    assert (document["cause"] == "package-lock.json does not match package.json") == (step == "npm ci")  # fmt: skip
    assert ('"node_modules/dep"' in (document["patch"] or "")) == (step == "npm ci")


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on this machine")
def test_a_lock_that_the_command_itself_refuses_is_repaired(tmp_path: Path) -> None:
    made = Repository(tmp_path / "repo")
    made.commit("start", {
        "web/package.json": '{"name": "shop", "scripts": {"test": "node a.js"}, "dependencies": {"dep": "file:dep"}}',
        "web/package-lock.json": STALE_LOCK,
        "web/dep/package.json": '{"name": "dep", "version": "1.0.0"}', "web/dep/index.js": "",
        "web/a.js": 'require("dep")\n',
    })  # fmt: skip
    call = "cd web && npm ci && npm test"
    _, document, _ = regreen(made, "fix", "--no-model", "--", "sh", "-c", call)
    assert document["outcome"] == "fixed"
    assert document["cause"] == "package-lock.json does not match package.json"
    assert '"node_modules/dep"' in document["patch"]


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on this machine")
def test_a_patch_is_judged_beside_a_lock_that_the_workflow_refuses(tmp_path: Path) -> None:
    made = Repository(tmp_path / "repo")
    made.commit("start", {
        "package.json": '{"name": "shop", "scripts": {"test": "node a.js"}, "dependencies": {"dep": "file:dep"}}',
        "package-lock.json": STALE_LOCK, "a.js": 'require("dep")\n',
        "dep/package.json": '{"name": "dep", "version": "1.0.0"}', "dep/index.js": "",
        ".github/workflows/ci.yml": "on: push\njobs:\n  test:\n    steps:\n      - run: npm ci\n",
    })  # fmt: skip
    patch, before = tmp_path / "a.diff", tmp_path / "before.json"
    patch.write_text('--- a/a.js\n+++ b/a.js\n@@ -1 +1,2 @@\n require("dep")\n+require("dep")\n')
    before.write_text('{"command": "npm test", "exit_code": 1, "failures": []}')
    _, document, _ = regreen(made, "gate", "--base", "HEAD", "--patch", str(patch), "--failures", str(before))  # fmt: skip
    assert "the setup failed" not in str(document["reasons"])


def test_the_first_half_of_a_given_setup_may_fail(repository: Repository) -> None:
    workflow = "on: push\njobs:\n  test:\n    steps:\n      - run: ls missing\n"
    repository.commit("a workflow", {".github/workflows/ci.yml": workflow})
    _, document, _ = regreen(repository, "fix", "--no-model", "--setup", "ls missing || true", "--", "true")  # fmt: skip
    assert document["outcome"] == "already_green"


def test_init_writes_a_configuration_that_works_and_overwrites_none(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2025-03-01T12:00:00Z")
    repository.commit("long ago", {"README.md": "old\n"})
    args = ("init", "--repo", str(repository.path / "pkg"))
    done = CliRunner().invoke(cli, args, standalone_mode=False, catch_exceptions=False)
    assert done.return_value == 0
    text = (repository.path / ".github/regreen.yml").read_text()
    assert "\\n" not in text, "a setup of many lines is written as lines"
    assert "--exclude-newer" not in text, "commits to come may need newer packages"
    repository.commit("configure", {".github/regreen.yml": text})
    code, document, _ = regreen(repository, "fix", "--no-model")
    assert (code, document["outcome"]) == (0, "already_green")
    with pytest.raises(UserError, match="is there already"):
        CliRunner().invoke(cli, args, standalone_mode=False, catch_exceptions=False)


@pytest.mark.parametrize("setup", [(), ("--setup", "pip install -q -e '.[test]'")])
def test_what_a_change_wants_installed_passes_the_guard(
    repository: Repository, setup: tuple[str, ...]
) -> None:
    more = "    return result  # the sum\n"
    repository.commit("a change", {"pkg/calc.py": CALC.replace("    return result\n", more)})
    review = ("review", "--no-model", "--run-tests", "--base", "HEAD~1", "--head", "HEAD", *setup)
    _, document, _ = regreen(repository, *review)
    assert "coverage" not in {one["reviewer"] for one in document["skipped"]}, document["skipped"]
    wanted = PYPROJECT.replace(
        'version = "1"', 'version = "1"\ndependencies = ["freezgun-helper-x"]'
    )
    repository.commit("want more", {"pyproject.toml": wanted, "pkg/calc.py": CALC})
    _, document, _ = regreen(repository, *review)
    assert re.search("freezgun-helper-x.*allow_packages", str(document["skipped"]))


@pytest.mark.parametrize("actions", [True, False])
def test_a_workflow_reviews_with_exact_limits_only(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, *, actions: bool
) -> None:
    repository.commit("a change", {"README.md": "more\n"})
    monkeypatch.setenv("REGREEN_SANDBOX", "bwrap")
    monkeypatch.setattr(BwrapSandbox, "why_approximate", "no control group")
    if actions:
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
    else:
        monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    _, _, said = regreen(repository, "review", "--no-model", "--run-tests", "--setup", "true", "--base", "HEAD~1")  # fmt: skip
    assert ("bubblewrap bounds memory only approximately here" in said) is actions


def test_an_image_that_the_sandbox_cannot_have_is_noted(tmp_path: Path) -> None:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    made.commit("start", {"Dockerfile": "FROM alpine:3\n", "check.sh": "true\n"})
    argv = ("fix", "--sandbox", "bwrap", "--no-model", "--", "sh", "check.sh")
    code, document, _ = regreen(made, *argv)
    assert (code, document["outcome"]) == (0, "already_green")
    (note,) = document["environment"]["notes"]
    assert note.startswith("the setup inferred from Dockerfile:1 failed: bubblewrap boxes have no")


def test_a_command_runs_where_the_manifests_cannot_be_read(repository: Repository) -> None:
    nested = {f"part{n}.txt": f"-r part{n + 1}.txt\n" for n in range(2000)}
    repository.commit("nest", {**nested, "requirements.txt": "-r part0.txt\n"})
    code, document, said = regreen(repository, "fix", "--no-model", "--", "python", "-c", "pass")
    assert "nothing was inferred: the repository's manifests could not be read" in said
    assert (code, document["outcome"]) == (0, "already_green")


def test_the_date_of_a_change_does_not_decide_what_is_installed(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = repository.open().resolve("HEAD")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2016-01-01T00:00:00Z")
    head = repository.commit("sums of long ago", {"pkg/calc.py": CALC + "\n"})
    done = complete_trial(
        Trial(()), base, tests=RepoConfig().tests, git=repository.open(), sandbox=sandbox_or_skip(),
        minutes=5, today=datetime.now(UTC).date(), say=lambda _: None, change=head,
    )  # fmt: skip
    assert (done.works, done.unused) == (True, "")
    assert "PIP_UPLOADED_PRIOR_TO" not in (done.trial.setup or "")


def test_a_review_takes_the_environment_from_where_the_change_left_the_base(
    repository: Repository,
) -> None:
    start = repository.open().resolve("HEAD")
    more = PYPROJECT.replace('["pytest", "iniconfig"]', '["pytest"]\ndev = ["iniconfig"]')
    base = repository.commit("extras on the base", {"pyproject.toml": PYPROJECT + "# later\n", "tox.ini": "[testenv]\nextras = nowhere\n"})  # fmt: skip
    subprocess.run(["git", "-C", str(repository.path), "checkout", "-q", start], check=True)
    repository.commit("a change", {"pkg/calc.py": CALC + "\n", "pyproject.toml": more})
    code, document, _ = regreen(repository, "review", "--run-tests", "--no-model", "--base", base, "--head", "HEAD")  # fmt: skip
    (note,) = document["environment"]["notes"]
    assert f"inferred from the base {start[:12]}: this change says something else (pyproject.toml:" in note  # fmt: skip
    assert "-e '.[test]'" in document["environment"]["setup"]
    assert code == 0


def test_a_review_names_the_file_that_the_bases_setup_reads_from_the_change(
    repository: Repository,
) -> None:
    more = PYPROJECT.replace('"iniconfig"]', '"iniconfig", "attrs"]')
    repository.commit("a change", {"pkg/calc.py": CALC + "\n", "pyproject.toml": more})
    _, document, _ = regreen(repository, "review", "--run-tests", "--no-model", "--base", "HEAD~1", "--head", "HEAD")  # fmt: skip
    (note,) = document["environment"]["notes"]
    assert "reads pyproject.toml, which this change alters" in note
