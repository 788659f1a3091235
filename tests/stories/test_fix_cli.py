"""What a developer sees who types `regreen fix` or `regreen gate`, in a real repository with a real sandbox."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from regreen.cli import cli
from tests.unit.repairs import CALC, GREEN, SETUP, TESTS, Repository, sandbox_or_skip

pytestmark = pytest.mark.sandbox
BROKEN = CALC.replace("result += value", "result = value")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    made.commit("start", GREEN)
    return made


def regreen(*argv: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli, argv, standalone_mode=False, catch_exceptions=False)
    return int(done.return_value or 0), done.stdout, done.stderr


def fixed(repository: Repository, *argv: str, model: bool = False) -> tuple[int, dict[str, Any]]:
    code, out, _ = regreen(
        "fix",
        "--repo",
        str(repository.path),
        "--setup",
        SETUP,
        *(() if model else ("--no-model",)),
        "--format",
        "json",
        *argv,
    )
    return code, json.loads(out)


def test_green_already(repository: Repository) -> None:
    code, document = fixed(repository, "--", "pytest", "-q")
    assert (code, document["version"], document["outcome"], document["patch"]) == (
        0,
        1,
        "already_green",
        None,
    )


def test_the_culprit_of_a_red_main_is_reverted(repository: Repository) -> None:
    repository.commit("readme", {"README.md": "hello\n"})
    bad = repository.commit("faster sums", {"pkg/calc.py": BROKEN})
    repository.commit("more readme", {"README.md": "hello there\n"})
    code, document = fixed(repository, "--rungs", "revert", "--", "pytest", "-q")
    assert (code, document["outcome"], document["rung"]) == (0, "fixed", "revert")
    assert document["culprit"]["sha"] == bad
    assert "+        result += value" in document["patch"]
    assert document["after"] == {"exit_code": 0, "reruns": 3, "failures": []}
    assert document["gate"]["verdict"] == "allow"
    assert {failure["test"] for failure in document["before"]["failures"]} >= {
        "tests/test_calc.py::test_total"
    }


@pytest.mark.slow
def test_a_pull_request_is_shrunk_to_its_guilty_line_and_the_patch_applied(
    repository: Repository, tmp_path: Path
) -> None:
    double = "\n\ndef double(values):\n    return [2 * value for value in values]\n"
    repository.commit("double, and faster sums", {"pkg/calc.py": BROKEN + double})
    out = tmp_path / "fix.diff"
    code, document = fixed(
        repository,
        "--base",
        "HEAD~1",
        "--rungs",
        "shrink",
        "--apply",
        "--patch-out",
        str(out),
        "--",
        "pytest",
        "-q",
    )
    assert (code, document["outcome"], document["rung"]) == (0, "fixed", "shrink")
    assert (repository.path / "pkg/calc.py").read_text() == CALC + double
    assert out.read_text() == document["patch"]
    assert document["strength"]["killed"] == document["strength"]["mutants"] > 0


SLUG = """\
def slug(text):
    text = text.strip()
    text = text.lower()
    text = text.replace(" ", "-")
    text = text.replace("_", "-")
    text = text.replace(".", "")
    text = text.replace("!", "")
    return text
"""
SLUG_TEST = """\
from pkg.slug import slug


def test_slug():
    assert slug(" A b_c.d! ") == "a-b-cd"
"""


@pytest.mark.soak
def test_more_than_a_few_lines_are_taken_back_if_a_person_agrees(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "unused")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")  # nobody answers there
    repository.commit("slugs", {"pkg/slug.py": SLUG, "tests/test_slug.py": SLUG_TEST})
    other = SLUG.replace("strip", "lstrip").replace("lower", "title")
    other = other.replace('"-")', '"+")').replace('"")', '"+")')
    double = "\n\ndef double(values):\n    return [2 * value for value in values]\n"
    repository.commit("double, and other slugs", {"pkg/slug.py": other + double})
    code, document = fixed(
        repository, "--base", "HEAD~1", "--rungs", "shrink,model", "--", "pytest", "-q", model=True
    )
    assert (code, document["outcome"], document["rung"]) == (1, "needs_human", "shrink")
    assert [one["outcome"] for one in document["attempts"]] == ["needs_human", "infra"]
    assert "look whether the rest still makes sense" in str(document["gate"]["reasons"])
    assert "def double" not in document["patch"]


@pytest.mark.soak
def test_of_many_lines_the_guilty_one_alone_is_taken_back(repository: Repository) -> None:
    longer = CALC.replace(
        "    for value in values:\n        result += value\n",
        "    for value in list(values)[1:]:\n        if value is None:\n            continue\n"
        "        if value == 0:\n            continue\n        result = result + value\n",
    )
    double = "\n\ndef double(values):\n    return [2 * value for value in values]\n"
    repository.commit("double, and slower sums", {"pkg/calc.py": longer + double})
    code, document = fixed(
        repository, "--base", "HEAD~1", "--rungs", "shrink", "--apply", "--", "pytest", "-q"
    )
    assert (code, document["outcome"], document["rung"]) == (0, "fixed", "shrink")
    mended = longer.replace("list(values)[1:]", "values") + double
    assert (repository.path / "pkg/calc.py").read_text() == mended


@pytest.mark.slow
def test_a_flaky_failure_is_called_flaky(repository: Repository) -> None:
    repository.commit(
        "dice",
        {
            "tests/test_dice.py": "import os\n\n\ndef test_dice():\n    assert os.urandom(1)[0] % 2\n"
        },
    )
    # with more rungs, three bad throws in a row would start a long search for a culprit
    argv = ("--rungs", "recipe", "--", "pytest", "-q", "tests/test_dice.py")
    runs = (fixed(repository, *argv)[1]["outcome"] for _ in range(6))
    seen = next((outcome for outcome in runs if outcome == "flaky"), None)
    assert seen == "flaky"


def test_the_one_edit_that_is_offered_is_not_called_an_unlikely_repair_too(
    repository: Repository,
) -> None:
    test = "from pkg.price import price\n\n\ndef test_price():\n    assert (price(9, 2), price(5, 5), price(0, 0), price(1, 3)) == (7, 0, 0, -2)\n"
    good = "def price(whole, less):\n    return whole - less\n"
    repository.commit("prices", {"pkg/price.py": good, "tests/test_price.py": test})
    repository.commit("faster prices", {"pkg/price.py": good.replace(" - ", " + ")})
    argv = ("--base", "HEAD~1", "--rungs", "template", "--", "pytest", "-q")
    _, document = fixed(repository, *argv)
    assert (document["outcome"], document["rung"]) == ("fixed", "template"), document["attempts"]
    assert document["hints"] == []


@pytest.mark.soak
def test_a_wrong_test_is_left_alone(repository: Repository) -> None:
    repository.commit(
        "wrong test",
        {
            "tests/test_sum.py": "from pkg.calc import total\n\n\ndef test_sum():\n    assert total([2, 2]) == 5\n"
        },
    )
    code, document = fixed(
        repository, "--base", "HEAD~1", "--rungs", "recipe,shrink,template", "--", "pytest", "-q"
    )
    assert (code, document["outcome"], document["patch"]) == (1, "gave_up", None)


def test_an_edit_after_which_the_command_waits_does_not_use_up_the_time(tmp_path: Path) -> None:
    sandbox_or_skip()
    made = Repository(tmp_path / "repo")
    check = "if [ -e src/foo-bar.js ]; then exec sleep 500; fi\necho \"src/foo_bar.js:1:1: error: the file name should be 'foo-bar.js'\"\nexit 1\n"
    made.commit("start", {"src/foo_bar.js": "const one = 1;\n", "run.sh": check})
    _, printed, _ = regreen("fix", "--repo", str(made.path), "--no-model", "--max-minutes", "0.7", "--rungs", "recipe,revert", "--format", "json", "--", "sh", "run.sh")  # fmt: skip
    document = json.loads(printed)
    assert document["outcome"] == "gave_up", "the next rung still has its time"
    assert [one["rung"] for one in document["attempts"]] == ["recipe", "revert"]


def test_imports_that_nobody_uses_go(repository: Repository) -> None:
    repository.commit("import", {"pkg/more.py": "import os\n"})
    code, _, _ = regreen(
        "fix",
        "--repo",
        str(repository.path),
        "--setup",
        "pip install -q ruff",
        "--no-model",
        "--",
        "ruff",
        "check",
        "--select",
        "F",
        ".",
    )
    assert code == 0


@pytest.mark.soak  # installs packages several times
def test_a_missing_dependency_is_declared_and_needs_a_person(repository: Repository) -> None:
    repository.commit(
        "yaml",
        {
            "requirements.txt": "pytest\n",
            "pkg/conf.py": "import yaml\n\n\ndef load(text):\n    return yaml.safe_load(text)\n",
            "tests/test_conf.py": "from pkg.conf import load\n\n\ndef test_load():\n    assert load('a: 1') == {'a': 1}\n",
        },
    )
    code, out, _ = regreen(
        "fix",
        "--repo",
        str(repository.path),
        "--setup",
        "pip install -q -r requirements.txt",
        "--no-model",
        "--format",
        "json",
        "--",
        "python",
        "-m",
        "pytest",
        "-q",
    )
    document = json.loads(out)
    assert (code, document["outcome"], document["rung"]) == (1, "needs_human", "recipe")
    assert "+PyYAML" in document["patch"]
    assert document["after"]["exit_code"] == 0


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "missing command: pass -- COMMAND"),
        (["--rungs", "prayer", "--", "true"], "--rungs takes some of"),
        (["--env", "nonsense", "--", "true"], "is not K=V"),
        (["--job", "test", "--", "true"], "name it with --workflow"),
        (["--step", "2", "--", "true"], "name it with --workflow"),
        (["--rev", "nowhere", "--", "true"], "nowhere"),
        (["--overlay", "missing.py", "--", "true"], "missing.py"),
    ],
)
def test_wrong_usage_is_said_in_one_line(
    repository: Repository, argv: list[str], says: str
) -> None:
    from regreen.domain.errors import UserError

    with pytest.raises(UserError, match=says):
        regreen("fix", "--repo", str(repository.path), *argv)


@pytest.mark.parametrize("text", ["jobs: [\n", "on: push\njobs:\n  a: {}\n  a: {}\n", "hello\n"])
def test_a_workflow_that_cannot_be_read_is_named(
    tmp_path: Path, repository: Repository, text: str
) -> None:
    from regreen.domain.errors import UserError

    bad = tmp_path / "bad.yml"
    bad.write_text(text)
    with pytest.raises(UserError, match=rf"^{bad}: (line \d|not a workflow)"):
        regreen("fix", "--repo", str(repository.path), "--workflow", str(bad), "--job", "a")


CHEAT = """--- a/pkg/calc.py
+++ b/pkg/calc.py
@@ -3,4 +3,6 @@

 def total(values):
     \"\"\"The sum of all values.\"\"\"
+    if values == [1, 2, 3]:
+        return 6
     result = 0
"""
GOOD = """--- a/pkg/calc.py
+++ b/pkg/calc.py
@@ -5,5 +5,5 @@
     \"\"\"The sum of all values.\"\"\"
     result = 0
     for value in values:
-        result = value
+        result += value
     return result
"""
BEFORE = {
    "command": "pytest -q tests/test_calc.py::test_total",
    "exit_code": 1,
    "failures": [
        {
            "test": "tests/test_calc.py::test_total",
            "kind": "AssertionError",
            "message": "assert 3 == 6",
            "path": "tests/test_calc.py",
            "line": 5,
        }
    ],
}


def judged(
    repository: Repository,
    tmp_path: Path,
    patch: str,
    *,
    run: bool,
    before: Mapping[str, object] = BEFORE,
) -> tuple[int, dict[str, Any]]:
    (tmp_path / "p.diff").write_text(patch)
    (tmp_path / "before.json").write_text(json.dumps(before))
    more = ["--failures", str(tmp_path / "before.json"), "--setup", SETUP] if run else []
    code, out, _ = regreen(
        "gate",
        "--repo",
        str(repository.path),
        "--base",
        "HEAD",
        "--patch",
        str(tmp_path / "p.diff"),
        "--format",
        "json",
        *more,
    )
    return code, json.loads(out)


def test_the_gate_alone_only_looks(repository: Repository, tmp_path: Path) -> None:
    repository.commit("faster sums", {"pkg/calc.py": BROKEN})
    code, document = judged(repository, tmp_path, GOOD, run=False)
    assert (code, document["verdict"]) == (1, "needs_human"), "nobody saw it run"
    assert {reason["check"] for reason in document["reasons"]} == {
        "verified",
        "necessary",
        "evidence",
    }


@pytest.mark.soak
def test_with_failures_the_gate_runs_the_command(repository: Repository, tmp_path: Path) -> None:
    repository.commit("faster sums", {"pkg/calc.py": BROKEN})
    code, document = judged(repository, tmp_path, GOOD, run=True)
    assert (code, document["verdict"], document["reasons"]) == (0, "allow", [])
    code, document = judged(repository, tmp_path, GOOD.replace("+=", "-="), run=True)
    assert (code, document["verdict"]) == (1, "deny")
    assert document["reasons"][0]["detail"].startswith(
        "still failing: tests/test_calc.py::test_total"
    )
    assert judged(repository, tmp_path, CHEAT, run=True)[1]["verdict"] == "deny"


@pytest.mark.slow
def test_the_gate_looks_beyond_the_failing_test(repository: Repository, tmp_path: Path) -> None:
    more = "\n\ndef first(values):\n    return values[0]\n"
    tests = (
        GREEN["tests/test_calc.py"]
        + "\n\ndef test_first():\n    from pkg.calc import first\n\n    assert first([7, 8]) == 7\n"
    )
    repository.commit("first", {"pkg/calc.py": BROKEN + more, "tests/test_calc.py": tests})
    (tmp_path / "x").mkdir()
    elsewhere = Repository(tmp_path / "x" / "copy")
    elsewhere.commit("one", {**GREEN, "pkg/calc.py": BROKEN + more, "tests/test_calc.py": tests})
    elsewhere.commit("two", {"pkg/calc.py": CALC + more.replace("values[0]", "values[-1]")})
    patch = elsewhere._git("diff", "HEAD~1", "HEAD")
    code, document = judged(repository, tmp_path, patch, run=True)
    assert (code, document["verdict"]) == (1, "deny")
    assert any(
        "passed before, failed now: tests/test_calc.py::test_first" in reason["detail"]
        for reason in document["reasons"]
    )


def test_a_patch_that_does_not_apply_is_denied(repository: Repository, tmp_path: Path) -> None:
    code, document = judged(repository, tmp_path, GOOD, run=False)
    assert (code, document["verdict"], document["reasons"][0]["check"]) == (1, "deny", "applies")


def test_a_log_without_a_failure_is_told_so(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("all is well\n")
    log = ["--log", str(tmp_path / "job.log")]
    _, _, told = regreen(
        "fix", "--repo", str(repository.path), "--rungs", "recipe", *log, "--", "true"
    )
    assert "shows no failure that can be read" in told


@pytest.mark.parametrize("words", ["", "\n", "hello world\n", "\xff\x00"])
def test_what_is_no_patch_is_told_so(repository: Repository, tmp_path: Path, words: str) -> None:
    from regreen.domain.errors import UserError

    with pytest.raises(UserError, match=r"p\.diff holds no patch; make one with `git diff`"):
        judged(repository, tmp_path, words, run=False)


def test_a_patch_that_breaks_off_says_so(repository: Repository, tmp_path: Path) -> None:
    _, document = judged(repository, tmp_path, CHEAT.rpartition("+        return 6")[0], run=False)
    assert "pkg/calc.py: the diff is cut off" in document["reasons"][0]["detail"]


@pytest.mark.slow
def test_a_command_that_was_green_before_shows_nothing(
    repository: Repository, tmp_path: Path
) -> None:
    patch = GOOD.replace("-        result = value\n", "-        result += value\n").replace(
        "+        result += value\n", "+        result = result + value\n"
    )
    more = f"{TESTS}\n\ndef test_more():\n    assert True\n"
    old, new = TESTS.splitlines(keepends=True), more.splitlines(keepends=True)
    patch += "".join(unified_diff(old, new, "a/tests/test_calc.py", "b/tests/test_calc.py"))
    before = {"command": "pytest -q", "failures": []}
    code, document = judged(repository, tmp_path, patch, run=True, before=before)
    assert code == 0
    details = [one["detail"] for one in document["reasons"]]
    assert any("green without the patch too" in detail for detail in details)
    assert [detail for detail in details if "the new test" in detail] == [
        "the new test tests/test_calc.py::test_more passes without the patch too, so it shows nothing"
    ]


def test_what_was_red_from_the_first_commit_on_ends_with_a_reason(
    repository: Repository, tmp_path: Path
) -> None:
    (tmp_path / "spec.py").write_text("raise SystemExit(1)\n")
    repository.commit("readme", {"README.md": "hello\n"})
    spec = ("--overlay", str(tmp_path / "spec.py"))
    code, document = fixed(repository, *spec, "--rungs", "revert", "--", "python", "spec.py")
    assert (code, document["outcome"], document["patch"]) == (1, "gave_up", None)
    assert "fails at the oldest commit, too" in json.dumps(document["attempts"])


def test_a_command_whose_tool_is_not_installed_is_told_so(repository: Repository) -> None:
    code, out, _ = regreen("fix", "--repo", str(repository.path), "--", "python", "-m", "tox")
    assert code == 1
    assert "hint: tox is not installed in the sandbox, and the setup does not install it" in out


def test_a_service_in_another_version_than_asked_for_is_named(repository: Repository) -> None:
    line = "regreen: service: redis:6 runs as redis-server 7.0"
    code, out, _ = regreen(
        "fix", "--repo", str(repository.path), "--", "bash", "-c", f"echo '{line}'; exit 1"
    )
    assert code == 1
    assert "hint: service redis:6 runs as redis-server 7.0" in out
