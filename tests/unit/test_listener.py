"""What is laid beside a project's tests to hear how each of them ends, run by the Python at hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from regreen.domain.ports import BOX_HOME
from regreen.languages.python.test_tools import PythonTestListener

FOLDER = f"{BOX_HOME}/.regreen-listen"

CASES = """import inspect
import unittest
from pathlib import Path

import shop.a

DATA = Path("data.json").read_text()


class A(unittest.TestCase):
    def test_passes(self):
        pass

    def test_fails(self):
        self.assertEqual(1, 2)

    def test_reads_sources(self):
        self.assertIn("colour", inspect.getsource(shop.a))

    @unittest.skip("later")
    def test_skipped(self):
        pass

    @unittest.expectedFailure
    def test_expected(self):
        self.fail()

    def test_parts(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertLess(number, 2)

    def test_runs_tests(self):
        class Inner(unittest.TestCase):
            def test_inner(self):
                self.fail()

        Inner("test_inner").run(unittest.TestResult())


class B(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise ValueError

    def test_never(self):
        pass
"""
PROJECT = {"shop/__init__.py": "", "shop/a.py": "ONE = 1\n", "data.json": "{}", "tests/__init__.py": "", "tests/test_a.py": CASES}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    programs = PythonTestListener().read_programs()
    texts = {f".listen/{Path(name).name}": program.decode() for name, program in programs.items()}
    for name, text in {**PROJECT, **texts}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def heard(
    project: Path, *argv: str, path: str = "", more: Mapping[str, str] = MappingProxyType({})
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """How each test ended, and what failing ones looked at."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHON", "REGREEN"))}
    env["PYTHONPATH"] = os.pathsep.join([str(project / ".listen"), path])
    env["REGREEN_TREE"] = str(project)
    env["PYTEST_ADDOPTS"] = "-p regreen_listen -p no:cacheprovider"
    env.update(more)
    subprocess.run([sys.executable, *argv], cwd=project, env=env, capture_output=True, check=False)
    lines = (project / ".listen/heard.txt").read_text().splitlines()
    told = [line.split("\t") for line in lines]
    touched = {
        test: [one for one in json.loads(more) if one[0] != "." and (project / one).is_file()]
        for word, test, more in told
        if word == "touched"
    }
    return {test: word for word, test, _ in told if word != "touched"}, touched


def test_how_each_test_of_unittest_ends_is_told_by_the_name_that_unittest_prints(
    project: Path,
) -> None:
    (project / "tests/test_broken.py").write_text("import nothing_of_the_kind\n")
    ends, _ = heard(project, "-m", "unittest")
    assert ends == {
        "tests.test_a.A.test_passes": "passed", "tests.test_a.A.test_fails": "failed",
        "tests.test_a.A.test_reads_sources": "failed", "tests.test_a.A.test_skipped": "skipped",
        "tests.test_a.A.test_expected": "xfailed", "tests.test_a.A.test_parts": "failed",
        "tests.test_a.A.test_runs_tests": "passed", "tests.test_a.B.setUpClass": "failed",
        "tests.test_broken": "failed",
    }  # fmt: skip


def test_a_pytest_that_reads_no_options_from_its_environment_is_listened_to(project: Path) -> None:
    env = PythonTestListener().extend_environment({"PYTEST_PLUGINS": "json"}, None)
    assert env.pop("PYTEST_ADDOPTS") == "-p regreen_listen"
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHON", "REGREEN"))}  # fmt: skip
    env = {**plain, **env, "PYTHONPATH": str(project / ".listen")}
    argv = ("-m", "pytest", "-p", "no:cacheprovider", "tests/test_a.py")
    subprocess.run([sys.executable, *argv], cwd=project, env=env, capture_output=True, check=False)
    assert "passed\ttests/test_a.py::A::test_passes" in (project / ".listen/heard.txt").read_text()


@pytest.mark.parametrize(
    ("said", "starts"),
    [
        ('ImportError: Error importing plugin "regreen_listen": No module named \'regreen_listen\'', False),
        ("ImportError: No module named regreen_listen", False),
        ("E   ModuleNotFoundError: No module named 'calc'\nplugins: regreen_listen", True),
    ],
)  # fmt: skip
def test_a_plugin_that_was_not_found_is_no_failure_of_the_project(said: str, starts: bool) -> None:
    assert PythonTestListener().kept_tests_from_starting(said) is not starts


def test_a_search_path_in_the_command_names_the_plugin_too() -> None:
    extend = PythonTestListener().extend_command
    assert extend(("env", "PYTHONPATH=src", "pytest")) == ("env", f"PYTHONPATH={FOLDER}:src", "pytest")  # fmt: skip
    assert extend(("sh", "-c", 'PYTHONPATH="a b" pytest')) == ("sh", "-c", f'PYTHONPATH="{FOLDER}:a b" pytest')  # fmt: skip
    for kept in ("PYTHONPATH= pytest", "MY_PYTHONPATH=src pytest", 'PYTHONPATH="" pytest', "--PYTHONPATH=x"):  # fmt: skip
        assert extend(("sh", "-c", kept)) == ("sh", "-c", kept)


def test_of_tests_that_run_at_once_the_one_that_is_stuck_ends_the_process(project: Path) -> None:
    text = "import os, time, pytest\n\n\ndef test_crash():\n    os._exit(3)\n\n\ndef test_stuck():\n    time.sleep(60)\n\n\n"
    text += "@pytest.mark.parametrize('number', range(90))\ndef test_short(number):\n    time.sleep(0.2)\n"
    (project / "tests/test_a.py").write_text(text)
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHON", "REGREEN"))}  # fmt: skip
    env = {**plain, "PYTHONPATH": str(project / ".listen"), "REGREEN_STUCK_SECONDS": "6"}
    argv = (sys.executable, "-m", "pytest", "-p", "regreen_listen", "-p", "no:cacheprovider", "-n", "2", "tests")  # fmt: skip
    subprocess.run(argv, cwd=project, env=env, capture_output=True, check=False, timeout=50)
    words = [line.split("\t") for line in (project / ".listen/heard.txt").read_text().splitlines()]
    end = next(at for at, (word, *_) in enumerate(words) if word.startswith("Timeout ("))
    begun = [more[0] for word, *more in words[:end] if word == "begun"]
    assert begun[-1] == "tests/test_a.py::test_stuck"
    assert ["failed", "tests/test_a.py::test_crash"] in [one[:2] for one in words]


def test_where_pytest_tells_no_ends_of_tests_each_has_its_own_time(project: Path) -> None:
    (project / "tests/test_a.py").write_text("import time, pytest\n\n\n@pytest.mark.parametrize('number', range(9))\ndef test_short(number):\n    time.sleep(0.4)\n")  # fmt: skip
    (project / "old_pytest.py").write_text("import _pytest.hookspec\n\ndel _pytest.hookspec.pytest_runtest_logfinish\n")  # fmt: skip
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHON", "REGREEN"))}  # fmt: skip
    env = {**plain, "PYTHONPATH": f"{project / '.listen'}:{project}", "REGREEN_STUCK_SECONDS": "2"}
    argv = (sys.executable, "-m", "pytest", "-p", "old_pytest", "-p", "regreen_listen", "-p", "no:cacheprovider", "-p", "no:xdist", "tests")  # fmt: skip
    subprocess.run(argv, cwd=project, env=env, capture_output=True, check=True)
    words = [line.split("\t")[0] for line in (project / ".listen/heard.txt").read_text().splitlines()]  # fmt: skip
    assert words.count("begun") == words.count("passed") == 9


def test_the_instance_that_an_old_pytest_names_is_no_part_of_a_test(project: Path) -> None:
    (project / "tests/test_a.py").write_text("class TestSums:\n    def test_adds(self):\n        assert True\n")  # fmt: skip
    (project / "conftest.py").write_text("import pytest\n\n\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n    report = yield\n    report.nodeid = report.nodeid.replace('::test_', '::()::test_')\n    return report\n")  # fmt: skip
    ends = heard(project, "-m", "pytest", "-q", "tests/test_a.py")[0]
    assert ends == {"tests/test_a.py::TestSums::test_adds": "passed"}


NESTED = """import os
import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("runs", ["inprocess", "subprocess", "plain", "again"])
def test_outer(pytester, monkeypatch, runs):
    path = pytester.makepyfile(test_inner="def test_inner():\\n    assert False\\n")
    pytester.makepyfile(test_broken="import nothing_of_the_kind")
    assert os.environ["PYTEST_PLUGINS"] == "json"
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p regreen_listen" if runs != "again" else "")
    if runs in ("plain", "again"):
        monkeypatch.setenv("PYTEST_PLUGINS", "regreen_listen")
        subprocess.run([sys.executable, "-m", "pytest", path.name])
        assert pytest.main([path.name]) == 1
    else:
        getattr(pytester, "runpytest_" + runs)("--continue-on-collection-errors").assert_outcomes(failed=1, errors=1)


def test_reads_after():
    assert not open("data.json").read()
"""


@pytest.mark.parametrize("own", [(), ("-n", "1")])
def test_a_test_that_runs_pytest_counts_as_one_test(own: tuple[str, ...], project: Path) -> None:
    (project / "tests/test_a.py").write_text(NESTED)
    env = PythonTestListener().extend_environment({"PYTEST_PLUGINS": "json"}, None)
    ends, touched = heard(
        project, "-m", "pytest", *own, more={"PYTEST_PLUGINS": env["PYTEST_PLUGINS"]}
    )
    assert ends == {
        **{f"tests/test_a.py::test_outer[{runs}]": "passed" for runs in ("inprocess", "subprocess", "plain", "again")},
        "tests/test_a.py::test_reads_after": "failed",
    }  # fmt: skip
    assert touched == {"tests/test_a.py::test_reads_after": ["data.json"]}


@pytest.mark.parametrize(
    ("runner", "mark"), [("unittest", "tests.test_a.A."), ("pytest", "tests/test_a.py::A::")]
)
def test_what_a_failing_test_reads_is_told(project: Path, runner: str, mark: str) -> None:
    _, touched = heard(project, "-m", runner)
    assert touched[f"{mark}test_fails"] == ["data.json"]  # read on import, for all of them
    assert touched[f"{mark}test_reads_sources"] == ["data.json", "shop/a.py"]


def test_pytest_reading_its_own_settings_is_no_tests_doing(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.pytest.ini_options]\nfilterwarnings = 'error'\n")
    start = "import sys, unittest, pytest; sys.exit(pytest.main(['-q']))"
    ends, touched = heard(project, "-c", start)
    assert ends["tests/test_a.py::A::test_passes"] == "passed"
    assert touched["tests/test_a.py::A::test_fails"] == ["data.json"]


def test_a_document_that_pytest_collects_is_only_its_own_examples_doing(project: Path) -> None:
    (project / "testing.txt").write_text(">>> 1 + 1\n3\n")
    _, touched = heard(project, "-m", "pytest")
    assert touched["tests/test_a.py::A::test_fails"] == ["data.json"]
    assert touched["testing.txt::testing.txt"] == ["data.json", "testing.txt"]


def test_a_runner_that_knows_unittest_itself_leaves_the_word_to_its_pytest(project: Path) -> None:
    start = "import subprocess, sys, unittest; subprocess.run([sys.executable, '-m', 'pytest'])"
    ends, _ = heard(project, "-c", start)
    assert ends["tests/test_a.py::A::test_passes"] == "passed"
    assert not [test for test in ends if test.startswith("tests.")]


def test_a_sitecustomize_of_the_environment_is_loaded_all_the_same(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env/sitecustomize.py").write_text("import sys\n\nsys.from_the_environment = 1\n")
    test = "import sys\nimport unittest\n\n\nclass C(unittest.TestCase):\n    def test_env(self):\n        self.assertEqual(sys.from_the_environment, 1)\n"
    (project / "tests/test_a.py").write_text(test)
    ends, _ = heard(project, "-m", "unittest", path=str(tmp_path / "env"))
    assert ends == {"tests.test_a.C.test_env": "passed"}


@pytest.mark.parametrize("known", [True, False])
def test_a_pytest_that_does_not_know_a_hook_gets_none(known: bool, project: Path) -> None:
    """pytest refuses a plugin's hook that it does not know; this one came with 3.4."""
    lines = [
        "import sys, types",
        "hooks = sys.modules['_pytest.hookspec'] = types.ModuleType('_pytest.hookspec')",
        f"hooks.pytest_runtest_log{'finish' if known else 'start'} = None",
        "import regreen_listen",
        "assert hasattr(regreen_listen, 'pytest_runtest_logreport')",
        "print(hasattr(regreen_listen, 'pytest_runtest_logfinish'))",
    ]
    env = {"PYTHONPATH": str(project / ".listen")}
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], env=env, capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.strip() == str(known)


@pytest.mark.parametrize("known", [True, False])
def test_a_pytest_without_the_option_to_go_on_gets_it(known: bool, project: Path) -> None:
    """pytest before 3.0 goes on where a file cannot be collected, and refuses the option that asks for it."""
    lines = [
        "from _pytest.config.argparsing import Parser",
        "import regreen_listen",
        "parser = Parser(_ispytest=True)",
        "option = '--continue-on-collection-errors'",
        f"{known} and parser.getgroup('general').addoption(option, action='count')",
        "regreen_listen.pytest_addoption(parser)",
        "print(parser.parse([option]).continue_on_collection_errors)",
    ]
    env = {"PYTHONPATH": str(project / ".listen")}
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], env=env, capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.strip() == ("1" if known else "True")
