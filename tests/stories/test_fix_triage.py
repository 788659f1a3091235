"""What a developer reads where there is nothing to repair here: another's fault, or a setup that fails."""

from __future__ import annotations

import json
from pathlib import Path
from secrets import token_hex
from shutil import which
from typing import Any

import pytest
from click.testing import CliRunner

from regreen.cli import cli
from tests.unit.repairs import CALC, GREEN, SETUP, Repository, sandbox_or_skip

pytestmark = pytest.mark.sandbox
BROKEN = CALC.replace("result += value", "result = value")
SUM = "import sys\n\nfrom pkg.calc import total\n\nsys.exit(total([1, 2]) != 3)\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    sandbox_or_skip()
    return Repository(tmp_path / "repo")


def fixed(repository: Repository, *argv: str) -> dict[str, Any]:
    given = ("fix", "--repo", str(repository.path), "--no-model", "--format", "json", *argv)
    done = CliRunner().invoke(cli, given, standalone_mode=False, catch_exceptions=False)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_base_that_is_red_in_the_same_way_is_not_this_changes_fault(
    repository: Repository,
) -> None:
    base = repository.commit("broken", {**GREEN, "pkg/calc.py": BROKEN})
    repository.commit("readme", {"README.md": "hello\n"})
    found = fixed(repository, "--base", base, "--setup", SETUP, "--", "pytest", "-q")
    assert (found["outcome"], found["patch"], found["attempts"]) == ("gave_up", None, [])
    assert f"the base {base[:12]} is red too" in found["reason"]
    assert f"regreen bisect --bad {base[:12]} -- pytest -q" in found["hints"][0]


@pytest.mark.slow
def test_a_base_that_is_red_otherwise_does_not_excuse_the_change(repository: Repository) -> None:
    off = {"tests/test_calc.py": GREEN["tests/test_calc.py"].replace("== 0", "== 1")}
    base = repository.commit("another is red", {**GREEN, **off})
    repository.commit("broken", {"pkg/calc.py": BROKEN})
    found = fixed(
        repository, "--base", base, "--setup", SETUP, "--rungs", "recipe", "--", "pytest", "-q"
    )
    assert (found["outcome"], found["reason"]) == ("gave_up", "no patch was found")
    assert [one["rung"] for one in found["attempts"]] == ["recipe"]


def test_commands_that_name_no_test_are_compared_by_how_they_end(repository: Repository) -> None:
    base = repository.commit("broken", {**GREEN, "pkg/calc.py": BROKEN, "check.py": SUM})
    repository.commit("readme", {"README.md": "hello\n"})
    command = ("--", "env", "PYTHONPATH=.", "python", "check.py")
    assert "is red too" in fixed(repository, "--base", base, *command)["reason"]


@pytest.mark.slow
def test_a_setup_that_fails_is_what_is_said_to_be_red(repository: Repository) -> None:
    repository.commit("start", GREEN)
    found = fixed(repository, "--setup", "echo no compiler here >&2; exit 3", "--", "true")
    assert found["outcome"] == "gave_up"
    assert "the setup failed" in found["reason"]
    assert "no compiler here" in found["reason"]
    assert found["before"] == {
        "command": "true",
        "exit_code": None,
        "failures": [
            {
                "test": "setup",
                "kind": "SetupFailed",
                "message": "exit 3",
                "path": None,
                "line": None,
                "frames": [],
            }
        ],
    }


def test_a_setup_without_a_network_is_no_fault_of_the_code(repository: Repository) -> None:
    repository.commit("start", GREEN)
    setup = "echo 'Temporary failure in name resolution' >&2; exit 1"
    found = fixed(repository, "--setup", setup, "--", "true")
    assert found["outcome"] == "not_reproduced"
    assert "could not reach" in found["reason"]


CHECK_EACH_FILE = """import pytest


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".py":
        return CheckedFile.from_parent(parent, path=file_path)


class CheckedFile(pytest.File):
    def collect(self):
        yield Check.from_parent(self, name="style")


class Check(pytest.Item):
    def runtest(self):
        assert "import" + " sys" not in self.path.read_text()
"""


def test_a_check_of_each_file_meets_no_file_of_ours(repository: Repository) -> None:
    """As pytest-flake8 is one: where `norecursedirs` is set, hidden folders are collected too."""
    options = GREEN["pyproject.toml"] + 'norecursedirs = ["build"]\n'
    repository.commit("start", {**GREEN, "conftest.py": CHECK_EACH_FILE, "pyproject.toml": options})
    found = fixed(repository, "--setup", SETUP, "--", "python", "-m", "pytest", "-q")
    assert found["outcome"] == "already_green", found["reason"]


@pytest.mark.soak
def test_a_suite_that_hangs_is_an_answer_and_no_crash(repository: Repository) -> None:
    repository.commit("hang", {**GREEN, "tests/test_hang.py": "def test_hang():\n    while True:\n        pass\n"})  # fmt: skip
    argv = ("--setup", SETUP, "--timeout", "2", "--rungs", "recipe,template")
    found = fixed(repository, *argv, "--", "pytest", "-q")
    assert (found["outcome"], found["before"]["exit_code"]) == ("gave_up", None)


GENERATE = "open('names.py', 'w').write('NAMES = %r\\n' % open('names.txt').read().split())\n"


def test_a_generated_file_that_is_out_of_date_is_generated_anew(repository: Repository) -> None:
    stale = {"gen.py": GENERATE, "names.txt": "a\nb\n", "names.py": "NAMES = ['a']\n"}
    repository.commit("stale", {**GREEN, **stale})
    command = "python gen.py && git diff --exit-code"
    found = fixed(repository, "--rungs", "recipe", "--", command)
    assert (found["outcome"], found["rung"]) == ("fixed", "recipe")
    assert "+NAMES = ['a', 'b']" in found["patch"]


@pytest.mark.slow
def test_what_the_setup_generates_is_no_part_of_the_commit(repository: Repository) -> None:
    stale = {"gen.py": GENERATE, "names.txt": "a\nb\n", "names.py": "NAMES = ['a']\n"}
    repository.commit("stale", {**GREEN, **stale})
    argv = ("--setup", "python gen.py", "--rungs", "recipe")
    found = fixed(repository, *argv, "--", "git diff --exit-code")
    assert (found["outcome"], found["before"]["exit_code"]) == ("fixed", 1)
    assert "+NAMES = ['a', 'b']" in found["patch"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ['test -z "$(git status --porcelain)"', "git add -N . && git diff --exit-code"]
)
def test_a_generated_file_that_nobody_added_is_added(repository: Repository, command: str) -> None:
    repository.commit("new", {**GREEN, "gen.py": GENERATE, "names.txt": "a\n"})
    argv = ("--setup", "python gen.py", "--rungs", "recipe")
    found = fixed(repository, *argv, "--", command)
    assert (found["outcome"], found["before"]["exit_code"]) == ("fixed", 1)
    assert "+++ b/names.py" in found["patch"]


@pytest.mark.skipif(which("make") is None, reason="make is not on this machine")
def test_a_script_that_was_told_only_to_look_is_run_without_that(repository: Repository) -> None:
    look = "import sys\nwant = 'NAMES = %r\\n' % open('names.txt').read().split()\nif '--check' in sys.argv:\n    sys.exit(open('names.py').read() != want)\nopen('names.py', 'w').write(want)\n"
    stale = {"gen.py": look, "names.txt": "a\nb\n", "names.py": "NAMES = ['a']\n"}
    repository.commit("stale", {**GREEN, **stale})
    repository.commit("a rule", {"Makefile": "names:\n\t@python gen.py --check\n"})
    found = fixed(repository, "--rungs", "recipe", "--", "make", "-s", "names")
    assert (found["outcome"], found["attempts"][0]["summary"]) == ("fixed", "ran python gen.py")
    assert "+NAMES = ['a', 'b']" in found["patch"]


@pytest.mark.skipif(which("npm") is None, reason="npm is not on this machine")
def test_a_checker_that_only_a_folder_has_is_found_there(repository: Repository) -> None:
    prettier = "#!/bin/sh\nwhile [ $# -gt 1 ]; do\n  case $1 in --write) echo 'let a;' > src.js; exit;; esac\n  shift\ndone\ngrep -qx 'let a;' src.js\n"
    tool = "mkdir -p web/node_modules/.bin; cp tool.txt web/node_modules/.bin/prettier; chmod +x web/node_modules/.bin/prettier"  # fmt: skip
    script = '{"scripts": {"style": "prettier --check src.js"}}'
    files = {"tool.txt": prettier, "web/package.json": script, "web/src.js": "let  a\n"}
    repository.commit("a folder", {**GREEN, **files})
    argv = ("--setup", tool, "--rungs", "recipe", "--", "npm --prefix web run style")
    found = fixed(repository, *argv)
    assert (found["outcome"], found["attempts"][0]["summary"]) == ("fixed", "ran prettier --write src.js in web")  # fmt: skip


RUST = {
    "Cargo.toml": '[package]\nname = "say"\nversion = "1.0.0"\nedition = "2021"\n',
    "Cargo.lock": 'version = 3\n\n[[package]]\nname = "say"\nversion = "1.0.0"\n',
    "tests/say.rs": '#[test]\nfn shouts() { assert_eq!(say::shout("a"), "a!"); }\n',
    "Makefile": "lint:\n\tRUSTFLAGS='-D warnings' cargo check\n",
}
SHOUT = 'pub fn shout(text: &str) -> String {\n    format!("{text}!")\n}\n'
COUNT = "\npub fn count() -> HashMap<String, i32> {\n    HashMap::new()\n}\n"


@pytest.mark.slow
@pytest.mark.skipif(which("cargo") is None, reason="cargo is not on this machine")
@pytest.mark.parametrize(
    ("source", "outcome", "line"),
    [
        (f"use std::fmt;\n{SHOUT}", "fixed", "-use std::fmt;"),
        (SHOUT + COUNT, "needs_human", "+use std::collections::HashMap;"),
    ],
)
def test_what_the_compiler_is_sure_of_is_published(
    repository: Repository, source: str, outcome: str, line: str
) -> None:
    repository.commit("loud", {**RUST, "src/lib.rs": SHOUT})
    repository.commit("more", {"src/lib.rs": source})
    found = fixed(repository, "--setup", "true", "--rungs", "recipe", "--", "make -s lint")
    assert (found["outcome"], line in (found["patch"] or "").splitlines()) == (outcome, True)


@pytest.mark.slow
@pytest.mark.skipif(which("npm") is None, reason="npm is not on this machine")
@pytest.mark.parametrize(
    ("options", "bill", "line"),
    [
        ("", "import { gone } from './gone'\n\nexport const bill: number = off(3)\n", "+import { off } from './off'"),
        (', "declaration": true, "isolatedDeclarations": true', "import { off } from './off'\n\nexport const bill = () => off(3)\n", "+export const bill = (): number => off(3)"),
    ],
    ids=["import", "annotation"],
)  # fmt: skip
def test_what_typescript_would_add_waits_for_a_person(
    repository: Repository, options: str, bill: str, line: str
) -> None:
    files = {
        "package.json": '{"name": "say", "private": true, "scripts": {"types": "tsc -p ."}}',
        "tsconfig.json": '{"compilerOptions": {"noEmit": true, "types": []OPTIONS}, "include": ["src"]}'.replace("OPTIONS", options),
        "src/off.ts": "export function off(price: number): number { return price - 1 }\n",
        "src/bill.ts": bill,
        "src/gone.ts": "export const gone = 1\n",
    }  # fmt: skip
    repository.commit("a bill", files)
    setup = "npm install --no-save --no-audit --no-fund --silent typescript@5.9.3"
    found = fixed(repository, "--setup", setup, "--rungs", "recipe", "--", "npm run types")
    assert found["outcome"] == "needs_human"
    assert line in found["patch"].splitlines()


def test_a_file_that_a_script_would_have_written_is_added(repository: Repository) -> None:
    look = "import sys\nfrom pathlib import Path\nif '--dry-run' in sys.argv:\n    sys.exit(not Path('names.py').exists())\nPath('names.py').write_text('NAMES = []\\n')\n"
    repository.commit("new", {**GREEN, "manage.py": look})
    found = fixed(repository, "--rungs", "recipe", "--", "python manage.py names --check --dry-run")
    assert (found["outcome"], found["attempts"][0]["summary"]) == ("fixed", "ran python manage.py names")  # fmt: skip
    assert "+++ b/names.py" in found["patch"]


NPM = """
test -x /env/bin/npm || printf '#!/bin/sh\\necho new > package-lock.json\\n' > /env/bin/npm; chmod +x /env/bin/npm
true || pip install a-name-that-nobody-knows
grep -q new package-lock.json || { echo 'npm error code EUSAGE'; exit 1; }
"""


@pytest.mark.slow
def test_a_lock_out_of_date_is_written_anew_at_the_first_try(repository: Repository) -> None:
    new = {"package.json": "{}\n", "package-lock.json": "old\n", "new.txt": token_hex()}
    repository.commit("never prepared before", {**GREEN, **new})
    found = fixed(repository, "--setup", NPM, "--rungs", "recipe", "--", "true")
    # no test of behaviour ran with the new lock, so a person decides
    assert (found["outcome"], len(found["attempts"])) == ("needs_human", 1)
    assert "+new" in found["patch"]


@pytest.mark.slow
def test_what_the_failure_says_to_run_is_run(repository: Repository) -> None:
    check = "import sys\nwant = 'NAMES = %r\\n' % open('names.txt').read().split()\nif open('names.py').read() != want:\n    sys.exit('names.py is stale, please run `python gen.py` first')\n"
    stale = {"gen.py": GENERATE, "check.py": check, "names.txt": "a\nb\n", "names.py": "NAMES = ['a']\n"}  # fmt: skip
    repository.commit("stale", {**GREEN, **stale})
    found = fixed(repository, "--rungs", "recipe", "--", "python", "check.py")
    assert (found["outcome"], found["attempts"][0]["summary"]) == ("fixed", "ran python gen.py")


@pytest.mark.soak
def test_expected_results_that_a_command_writes_are_for_a_person(repository: Repository) -> None:
    write = "open('tests/expected.txt', 'w').write(open('names.txt').read())\n"
    stale = {"gen.py": write, "names.txt": "a\nb\n", "tests/expected.txt": "a\n"}
    repository.commit("stale", {**GREEN, **stale})
    found = fixed(repository, "--rungs", "recipe", "--", "python gen.py && git diff --exit-code")
    assert found["outcome"] == "needs_human"
    assert any(one["check"] == "approval" for one in found["gate"]["reasons"])
