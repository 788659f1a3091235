"""`regreen why` and `regreen replay`: a failure's cause, and its evidence repeated elsewhere."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from regreen.cli import main
from regreen.domain.models import BoxLimits
from regreen.runs.capsule import (
    Capsule,
    ExpectedOutcome,
    encode_capsule,
    find_hidden,
    load_capsule,
)
from tests.checkout import Checkout
from tests.unit.repairs import SETUP

pytestmark = pytest.mark.sandbox
TEST = "from calc import add\nassert add(1, 2) == 3, 'the sum is wrong'\n"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGREEN_HOME", str(tmp_path / "home"))


def run(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, object]]:
    with pytest.raises(SystemExit) as ended:
        main([*words])
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return int(ended.value.code or 0), document


def test_the_change_is_blamed_and_its_capsule_repeats_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = Checkout(tmp_path / "mine")
    mine.commit("base", calc_py="def add(a, b):\n    return a + b\n", check_py=TEST)
    mine.git("checkout", "-q", "-b", "change")
    mine.commit("change", calc_py="def add(a, b):\n    return a - b\n")
    words = ("--setup", "true", "--env", f"API_TOKEN={TOKEN}", "--format", "json", "--", "python", "check.py")  # fmt: skip
    code, found = run("why", "--repo", str(mine.root), "--base", "main", *words, capsys=capsys)
    assert (code, found["verdict"], found["do"]) == (0, "change", "fix")
    place = Path(str(found["capsule"]))
    assert TOKEN not in place.read_text()
    capsule = load_capsule(place)
    assert find_hidden(capsule) == ["the value of the variable API_TOKEN"]

    shown = replace(capsule, recipe=replace(capsule.recipe, variables=()))
    theirs = tmp_path / "theirs"
    mine.git("clone", "-q", "--bare", str(mine.root), str(theirs))
    assert replay(bind(shown), theirs, tmp_path, capsys) == (0, "same")
    assert replay(shown, theirs, tmp_path, capsys) == (
        1,
        "different",
    )  # the outcome is bound to what it was seen with
    tampered = [
        replace(shown, tree="0" * 40),
        replace(shown, commit="1" * 40),
        replace(shown, environment=replace(shown.environment, python="3.0.1")),
        replace(shown, environment=replace(shown.environment, versions=("nothing==9.9",), digests=("0",))),
    ]  # fmt: skip
    verdicts = {replay(bind(one), theirs, tmp_path, capsys)[1] for one in tampered}
    assert verdicts <= {"different", "missing"}
    more = BoxLimits(memory=3 * 1024**3)  # enough either way, so only what was granted tells
    assert replay(bind(replace(shown, limits=more)), theirs, tmp_path, capsys)[1] == "different"
    assert replay(bind(replace(shown, timeout=shown.timeout + 1)), theirs, tmp_path, capsys)[1] == "different"  # fmt: skip
    assert replay(replace(bind(shown), limits=BoxLimits(pids=77)), theirs, tmp_path, capsys)[1] == "different"  # fmt: skip
    passing = replace(shown.expected, outcome="pass", signature=None)
    assert replay(bind(replace(shown, expected=passing)), theirs, tmp_path, capsys)[1] == "different"  # fmt: skip


def test_the_line_that_repeats_a_run_can_be_pasted_where_it_was_printed(tmp_path: Path) -> None:
    mine = Checkout(tmp_path / "my project")
    mine.commit("base", calc_py="def add(a, b):\n    return a + b\n", check_py=TEST)
    mine.git("checkout", "-q", "-b", "change")
    mine.commit("change", calc_py="def add(a, b):\n    return a - b\n")
    words = ("--repo", "my project", "--base", "main", "--setup", "true", "--", "python", "check.py")  # fmt: skip
    shown = run_regreen("why", *words, cwd=tmp_path).stdout
    line = shown.partition("repeat it: regreen ")[2].splitlines()[0]
    assert run_regreen(*shlex.split(line), cwd=tmp_path).stdout.startswith("same\n")
    opened = run_regreen(*shlex.split(line), "--shell", "--format", "json", cwd=tmp_path, stdin="ls\n")  # fmt: skip
    shown = json.loads(opened.stdout)
    assert (shown["verdict"], shown["missing"], opened.returncode) == (None, [], 0)
    assert "check.py" in opened.stderr


def run_regreen(*words: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "regreen", *words]
    return subprocess.run(
        command, cwd=cwd, input=stdin, capture_output=True, text=True, check=False
    )


def bind(capsule: Capsule) -> Capsule:
    """The capsule with digests of its ingredients that are right."""
    expected: ExpectedOutcome = capsule.expected
    bound = tuple(sorted(capsule.digest_ingredients().items()))
    return replace(capsule, expected=replace(expected, seen_with=bound))


def replay(
    capsule: Capsule, repo: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, object]:
    place = folder / "capsule.json"
    place.write_bytes(encode_capsule(capsule))
    code, document = run(
        "replay", str(place), "--repo", str(repo), "--format", "json", capsys=capsys
    )
    return code, document["verdict"]


def test_a_test_that_cannot_be_run_alone_is_not_called_flaky(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = Checkout(tmp_path / "mine")
    mine.commit("base", calc_py="", pytest_ini="[pytest]\naddopts = --needs-a-plugin\n")
    mine.git("checkout", "-q", "-b", "change")
    mine.commit("change", test_new_py="def test_new():\n    assert 1 + 1 == 3\n")
    words = ("--setup", SETUP, "--format", "json", "--", "python", "-m", "pytest", "-q", "-o", "addopts=")  # fmt: skip
    _, found = run("why", "--repo", str(mine.root), "--base", "main", *words, "test_new.py", capsys=capsys)  # fmt: skip
    assert (found["verdict"], found["do"]) == ("change", "fix")


def test_what_fails_alone_in_another_way_is_run_with_the_whole_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = Checkout(tmp_path / "mine")
    test = "def test_add():\n    from calc import add\n    assert add(1, 2) == 3\n"

    mine.commit("base", test_calc_py=test, src__calc_py="def add(a, b):\n    return a - b\n")
    mine.git("checkout", "-q", "-b", "change")
    mine.commit("change", notes_py="x = 1\n")
    words = ("--setup", SETUP, "--format", "json", "--", "env", "PYTHONPATH=src", "pytest", "-q")
    _, found = run("why", "--repo", str(mine.root), "--base", "main", *words, "test_calc.py", capsys=capsys)  # fmt: skip
    assert (found["verdict"], found["do"]) == ("main", "wait")


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        (("python", "-m", "pytest", "-o", "pythonpath=src"), ["fail", "fail", "pass"]),  # kept where they run alone
        (("env", "PYTHONPATH=src", "pytest"), ["fail", "fail", "fail", "pass"]),  # the second says nothing
        (("sh", "-c", "PYTHONPATH='src' pytest"), ["fail", "fail", "fail", "pass"]),
        (("sh", "run.sh"), ["fail", "fail", "pass"]),
    ],
)  # fmt: skip
def test_a_search_path_of_the_command_neither_hides_tests_nor_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], runs: list[str]
) -> None:
    mine = Checkout(tmp_path / "mine")
    test = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    files = {"tests__conftest_py": "import calc\n", "tests__test_calc_py": test}
    files["run_sh"] = "PYTHONPATH=src pytest -q\n"
    mine.commit("base", src__calc_py="def add(a, b):\n    return a + b\n", **files)
    mine.git("checkout", "-q", "-b", "change")
    mine.commit("change", src__calc_py="def add(a, b):\n    return a - b\n")
    words = ("--setup", SETUP, "--format", "json", "--", *command)
    _, found = run("why", "--repo", str(mine.root), "--base", "main", *words, capsys=capsys)
    assert (found["verdict"], found["do"]) == ("change", "fix")
    assert "tests/test_calc.py::test_add" in str(found["reason"])
    assert [one["outcome"] for one in found["runs"]] == runs  # type: ignore[attr-defined]


@pytest.mark.parametrize(("head", "advice"), [("change", "look"), ("main", "fix")])
def test_nobody_waits_for_a_test_that_never_passed_nor_on_the_base_itself(
    head: str, advice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = Checkout(tmp_path / "mine")
    mine.commit("base", calc_py="def add(a, b):\n    return a - b\n", check_py=TEST)
    mine.commit("more", notes_py="x = 1\n")
    mine.git("checkout", "-q", "-b", "change")
    mine.commit("change", notes_py="x = 2\n")
    words = ("--setup", "true", "--format", "json", "--", "python", "check.py")
    _, found = run("why", "--repo", str(mine.root), "--base", "main", "--head", head, *words, capsys=capsys)  # fmt: skip
    assert (found["verdict"], found["do"]) == ("main", advice)
    assert "and green at no older commit" in str(found["reason"])


RANDOM_WORDS = "import secrets\ndef sign(text):\n    raise ValueError(''.join(secrets.choice('abcdefghijklmnop') for _ in range(200)))\n"
RANDOM_ERROR = (
    "import uuid\ndef sign(text):\n    raise type(f'N{uuid.uuid4().hex}Error', (Exception,), {})\n"
)
SIGNED = "from sign import sign\ndef test_sign():\n    assert sign('a') == 'signed a'\n"
TWO_STEPS = "from steps import first, second\ndef test_steps():\n    first()\n    second()\n"


def ask_why(base: dict[str, str], change: dict[str, str], folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:  # fmt: skip
    """The answer of `regreen why -- pytest` for a change of a base."""
    mine = Checkout(folder / "mine")
    mine.commit("base", **base)
    mine.git("checkout", "-q", "-b", "change")
    mine.commit("change", **change)
    words = ("--setup", SETUP, "--format", "json", "--", "python", "-m", "pytest", "-q")
    return run("why", "--repo", str(mine.root), "--base", "main", *words, capsys=capsys)[1]


@pytest.mark.parametrize("module", [RANDOM_WORDS, RANDOM_ERROR], ids=["words", "errors"])
def test_a_base_that_fails_with_other_words_each_time_is_not_blamed_on_the_change(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = {"sign_py": module, "test_sign_py": SIGNED}
    found = ask_why(base, {"notes_py": "x = 1\n"}, tmp_path, capsys)
    assert (found["verdict"], found["do"]) == ("main", "wait")


def test_a_change_that_replaces_the_failure_of_the_base_by_another_is_blamed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = "def first():\n    raise ValueError('no such file')\ndef second():\n    pass\n"
    new = "def first():\n    pass\ndef second():\n    raise ValueError('10 > 9, wrong order')\n"
    base = {"steps_py": old, "test_steps_py": TWO_STEPS}
    found = ask_why(base, {"steps_py": new}, tmp_path, capsys)
    assert found["verdict"] == "change"
    assert "red for another reason on the base" in str(found["reason"])


def test_a_test_that_the_base_does_not_have_is_not_called_green_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = "import unittest\nclass D(unittest.TestCase):\n    def test_db(self):\n        self.{}\n"
    mine = Checkout(tmp_path / "mine")
    mine.commit("base", test_old_py=test.format("id()"))
    mine.git("checkout", "-q", "-b", "change")
    mine.commit("change", test_db_py=test.format("fail()"))
    words = ("--setup", "true", "--format", "json", "--", "python", "-m", "unittest", "-q")
    _, found = run("why", "--repo", str(mine.root), "--base", "main", *words, capsys=capsys)
    assert found["verdict"] == "change"
    assert str(found["reason"]).startswith("test_db.D.test_db is red on head in 3 of 3 runs, absent on the base")  # fmt: skip


def test_a_test_that_the_base_skips_is_not_called_green_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = "import pytest\ndef test_old():\n    pass\n{}def test_db():\n    assert 1 + 1 == 3\n"
    base = {"test_db_py": test.format("@pytest.mark.skip\n")}
    found = ask_why(base, {"test_db_py": test.format("")}, tmp_path, capsys)
    assert found["verdict"] == "change"
    assert "skipped on the base" in str(found["reason"])


def test_beside_what_a_change_breaks_it_is_said_what_was_seen_of_a_test_that_fails_on_the_base_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = {"sign_py": "def sign(t):\n    return 'signed ' + t\n", "test_sign_py": SIGNED, "test_rate_py": "def test_rate():\n    assert 2 == 3\n"}  # fmt: skip
    found = ask_why(base, {"sign_py": "def sign(t):\n    return t\n"}, tmp_path, capsys)
    assert found["verdict"] == "change"
    seen = "not settled (on head red in 2 of 2, on base red in 1 of 1): test_rate.py::test_rate"
    assert str(found["reason"]).endswith(seen)


def test_a_test_that_ends_as_one_that_the_change_breaks_is_counted_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sign = "def sign(t):\n    return {}\ndef label(t):\n    return sign(t).upper()\n"
    labelled = "from sign import label\ndef test_label():\n    assert label('a') == 'SIGNED A'\n"
    base = {
        "sign_py": sign.format("'signed ' + t"),
        "test_sign_py": SIGNED,
        "test_label_py": labelled,
    }
    found = ask_why(base, {"sign_py": sign.format("t")}, tmp_path, capsys)
    assert found["verdict"] == "change"
    assert str(found["reason"]).startswith("2 tests are red on head in 2 of 2 runs, green on the base in 1 of 1 run: ")  # fmt: skip
    assert "not settled" not in str(found["reason"])


def test_many_tests_that_a_newer_package_breaks_are_not_blamed_on_main(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = Checkout(tmp_path / "mine")
    for version, factor in (("1.2", 2), ("1.3", 3)):
        write_wheel(mine.root / "wheels", version, factor)
    test = "import dep\nimport pytest\n\n\n@pytest.mark.parametrize('n', range(30))\ndef test_n(n):\n    assert dep.FACTOR == 2\n"
    mine.commit("base", test_n_py=test)
    mine.git("checkout", "-q", "-b", "change")
    mine.commit("change", notes_md="two")
    green = tmp_path / "green.log"
    green.write_text("Successfully installed dep-1.2\n")
    setup = f"{SETUP} && pip install -q --no-index --find-links wheels dep"
    words = ("--base", "main", "--setup", setup, "--green-log", str(green), "--format", "json")
    _, found = run("why", "--repo", str(mine.root), *words, "--", "python", "-m", "pytest", "-q", capsys=capsys)  # fmt: skip
    assert found["verdict"] == "world"
    assert found["package"] == {"name": "dep", "from": "1.2", "to": "1.3"}


def write_wheel(folder: Path, version: str, factor: int) -> None:
    folder.mkdir(exist_ok=True)
    info = f"dep-{version}.dist-info"
    with zipfile.ZipFile(folder / f"dep-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("dep.py", f"FACTOR = {factor}\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: dep\nVersion: {version}\n")  # fmt: skip
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")  # fmt: skip
        wheel.writestr(f"{info}/RECORD", f"dep.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")  # fmt: skip


def test_a_bisection_and_a_repair_come_with_what_repeats_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = Checkout(tmp_path / "mine")
    good = mine.commit("base", calc_py="def add(a, b):\n    return a + b\n", check_py=TEST)
    bad = mine.commit("break", calc_py="def add(a, b):\n    return a - b\n")
    words = ("--repo", str(mine.root), "--setup", "true", "--format", "json")
    _, found = run("bisect", *words, "--good", good, "--", "python", "check.py", capsys=capsys)
    _, mended = run("fix", *words, "--no-model", "--", "python", "check.py", capsys=capsys)
    commands = [found["repeat"], *mended["repeat"]]  # type: ignore[misc]
    capsules = [load_capsule(Path(shlex.split(str(one))[2])) for one in commands]
    assert [(one.kind, one.commit, one.expected.outcome) for one in capsules] == [
        ("bisect", bad, "fail"),
        ("fix", bad, "fail"),
        ("fix", bad, "pass"),
    ]
    theirs = tmp_path / "theirs"
    mine.git("clone", "-q", "--bare", str(mine.root), str(theirs))
    assert [replay(one, theirs, tmp_path, capsys) for one in capsules] == [(0, "same")] * 3


KEYED = """import os, sys
import pytest
from calc import add

@pytest.mark.parametrize("token", ["ID"])
def test_add(token):
    print("Authorization: Bearer PRINTED", file=sys.stderr)
    print(open("service.cfg").read())
    assert add(1, 2) == 3, f"{os.environ['API_TOKEN']} is refused by MESSAGE"
"""


@pytest.mark.parametrize(
    "command",
    [
        "why --format text",
        "bisect --format json",
        "bisect --format text",
        "prove --format json",
        "prove --format text",
    ],
)
def test_no_credential_of_a_run_is_in_its_answer_or_kept(
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places = ("ID", "PRINTED", "MESSAGE", "FILE", "VARIABLE", "REMOTE", "LOG", "CODE", "TITLE")
    tokens = {place: f"{TOKEN[:-8]}{place:x<8}" for place in places}
    home = tmp_path / "home"
    monkeypatch.setenv("REGREEN_HOME", str(home))
    mine = Checkout(tmp_path / "mine")
    test = KEYED
    for place in ("ID", "PRINTED", "MESSAGE"):
        test = test.replace(place, tokens[place])
    service = f"[service]\ntoken = {tokens['FILE']}\n"
    good, bad = "def add(a, b):\n    return a + b\n", f"def add(a, b, key='{tokens['CODE']}'):\n    return a - b\n"  # fmt: skip
    proves = command.startswith("prove")
    before, after = (bad, good) if proves else (good, bad)
    mine.commit(
        "base",
        calc_py=before,
        test_calc_py=test.replace("== 3", "!= 3") if proves else test,
        **{"service.cfg": service},
    )
    mine.git("checkout", "-q", "-b", "change")
    mine.commit("change", calc_py=after, test_calc_py=test)
    mine.git("remote", "add", "origin", f"https://ann:{tokens['REMOTE']}@example.org/a/b.git")
    log = tmp_path / "ci.log"
    log.write_text(
        f"FAILED test_calc.py::test_add[{tokens['ID']}] - AssertionError: {tokens['LOG']}\n1 failed in 0.1s\n"
    )
    words = ("--repo", str(mine.root), "--setup", SETUP, "--env", f"API_TOKEN={tokens['VARIABLE']}")
    more = {
        "why": ("--base", "main", "--log", str(log), "--", "python", "-m", "pytest", "-q"),
        "bisect": ("--good", "main", "--", "python", "-m", "pytest", "-q"),
        "prove": ("--base", "main", "--title", f"Fix {tokens['TITLE']}", "--body", "Fixes #7"),
    }[command.split(maxsplit=1)[0]]
    with pytest.raises(SystemExit):
        main([*command.split(), *words, *more])
    said = capsys.readouterr()
    kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"AssertionError" in kept
    assert "AssertionError" in said.out
    everything = f"{said.out}{said.err}{kept.decode('latin-1')}"
    assert [place for place, token in tokens.items() if token in everything] == []


def test_a_linters_finding_is_named_with_its_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lint = "if grep -q '^import os' a.py; then\n  echo 'a.py:1:8: F401 [*] `os` imported but unused'\n  echo 'Found 1 error.'\n  exit 1\nfi\n"
    mine = Checkout(tmp_path / "mine")
    mine.commit("base", lint_sh=lint, a_py="A = 1\n")
    mine.git("checkout", "-q", "-b", "change")
    mine.commit("change", a_py="import os\nA = 1\n")
    words = ("--setup", "true", "--format", "json", "--", "sh", "lint.sh")
    _, found = run("why", "--repo", str(mine.root), "--base", "main", *words, capsys=capsys)
    assert str(found["reason"]).startswith("a.py:1:8: F401 (`os` imported but unused) is red on head in ")  # fmt: skip
    assert "a.py:1:8: F401 [*] `os` imported but unused" in str(found["runs"])


def test_an_environment_that_cannot_be_made_is_told_with_the_installers_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = Checkout(tmp_path / "mine")
    mine.commit("base", a_py="A = 1\n")
    mine.git("checkout", "-q", "-b", "change")
    mine.commit("change", a_py="A = 2\n")
    setup = "echo 'error: two top-level modules'; echo 'exit code: 1'; echo 'hint: See above for details.'; exit 1"
    words = ("--setup", setup, "--format", "json", "--", "python", "a.py")
    _, found = run("why", "--repo", str(mine.root), "--base", "main", *words, capsys=capsys)
    assert found["verdict"] == "unknown"
    assert str(found["reason"]).endswith("exited with 1: exit code: 1 (error: two top-level modules)")  # fmt: skip
