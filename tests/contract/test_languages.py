"""What every language's adapter keeps: each capability works on a small project, or is a declared gap."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from regreen.code.file_languages import (
    has_outline,
    is_stub,
    language_of,
    language_row,
    parser_for,
)
from regreen.code.symbol_index import CallGraph
from regreen.code.symbols import read_outline
from regreen.domain.environments import RepositoryFiles
from regreen.domain.languages import CAPABILITIES, Capability, Language, MakeEdits
from regreen.environment.inference import infer_environments
from regreen.languages.registry import LANGUAGES, detect_languages, find_language, has_capability
from tests.checkout import Checkout
from tests.unit.repairs import Repository

PROJECTS = Path(__file__).parent.parent / "data" / "languages"


@dataclass(frozen=True)
class Sample:
    """Where a small project defines `total`, which `receipt` calls, and the definition of one of its tests."""

    source: str
    test_file: str
    test: str = ""
    method: str = "total"
    caller: str = ""  # a file that calls it, where the tests cannot be seen to


SAMPLES = {
    "Python": Sample("prices.py", "tests/test_prices.py", "test_takes_the_discount_off"),
    "JavaScript": Sample("prices.js", "test/prices.test.js", "adds"),
    "TypeScript": Sample("src/prices.ts", "test/prices.test.ts", "adds"),
    "Go": Sample("limit/prices.go", "limit/prices_test.go", "TestAdds", "Total"),
    "Rust": Sample("src/lib.rs", "tests/receipts.rs", "takes_the_discount_off", caller="src/lib.rs"),
    "Java": Sample("src/main/java/app/Prices.java", "src/test/java/app/PricesTest.java", "PricesTest.adds", "Prices.total"),
}  # fmt: skip

_LCOV = "SF:/work/{}\nDA:1,3\nDA:2,0\nend_of_record\n"
COVERAGE = {
    "Python": '{{"/work/{}": {{"statements": [1, 2], "missing": [2], "branches": [[1, -1]], "tests": ["a"]}}}}',
    "JavaScript": _LCOV,
    "TypeScript": _LCOV,
    "Go": _LCOV,
    "Rust": _LCOV,
    "Java": _LCOV,
}


@pytest.fixture(params=LANGUAGES, ids=lambda language: language.title)
def language(request: pytest.FixtureRequest) -> Language:
    found = request.param
    assert isinstance(found, Language)
    return found


@pytest.fixture
def sample(language: Language) -> Sample:
    return SAMPLES[language.title]


@pytest.fixture
def project(language: Language) -> Mapping[str, str]:
    root = PROJECTS / language.title.lower()
    return {
        path.relative_to(root).as_posix(): path.read_text("utf-8")
        for path in root.rglob("*")
        if path.is_file()
    }


def having(capability: Capability) -> pytest.MarkDecorator:
    """Only the languages that have a capability; that the others declare a gap is tested by itself."""
    found = [language for language in LANGUAGES if language.has(capability)]
    return pytest.mark.parametrize("language", found, ids=[x.title for x in found])


def test_each_field_is_there_or_a_declared_gap(language: Language) -> None:
    fields = {
        "test results": language.tests,
        "changed tests": language.tests or language.file_tests,
        "coverage": language.coverage,
        "edits": language.make_edits,
        "mutants": language.make_mutants,
        "warm engine": language.warm_driver,
        "dependencies": language.dependencies,
    }
    missing = {name for name, value in fields.items() if value is None}
    assert missing == language.gaps & fields.keys()
    assert language.gaps <= set(CAPABILITIES)


def test_no_file_has_two_languages() -> None:
    names = [name for language in LANGUAGES for name in language.files]
    assert len(names) == len(set(names))


def test_a_project_is_detected(language: Language, project: Mapping[str, str]) -> None:
    assert language.is_used_in(project)
    assert language in detect_languages(list(project))
    assert language not in detect_languages(["README.md", "Dockerfile"])


def test_a_project_is_set_up(
    language: Language, project: Mapping[str, str], tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "repo")
    rev = repository.commit("start", dict(project))
    git = repository.open()
    today = git.commit(rev).date.date()
    first = infer_environments(git, rev, pythons=("3.11",), today=today)[0]
    assert first.language == language.projects.name
    assert first.setup is not None
    assert first.setup.source.partition(":")[0] in project  # no command was given
    assert first.test is not None
    program = first.test.value.split()[0]
    assert program.rpartition("/")[2] in language.projects.test_programs
    assert not language.projects.rate_tree(RepositoryFiles(frozenset({"README.md"}), lambda _: ""))


@having("dependencies")
def test_what_the_tests_lack_is_installed(
    language: Language, project: Mapping[str, str], tmp_path: Path
) -> None:
    assert language.dependencies is not None
    assert language.tests is not None
    repository = Repository(tmp_path / "repo")
    rev = repository.commit("start", dict(project))
    assert language.dependencies.install_test_runner in language.dependencies.make_test_setup(
        repository.open(), rev
    )
    assert " a 'b c' || " in language.dependencies.install(["a", "b c"])
    whole = language.tests.run_suite()
    assert language.tests.find_plain_call(whole) == whole


MANIFEST = '[project]\nname = "shop"\ndependencies = [\n    "click==8.0",\n]\n'


@having("dependencies")
def test_a_manifest_declares_pins_and_bounds(language: Language) -> None:
    assert language.dependencies is not None
    tools = language.dependencies
    files = {"pyproject.toml": MANIFEST, "shop.py": "import yaml\n"}
    missing = "ModuleNotFoundError: No module named 'yaml'"
    proposed = tools.propose_declarations(
        missing, list(files), files.get, "pip install -e .", setup_failed=False
    )
    changed, cause = next(iter(proposed))
    assert '"PyYAML"' in changed["pyproject.toml"]
    assert "PyYAML" in cause
    assert tools.find_unneeded_by_product(missing, list(files), files.get) == ()
    assert tools.find_unneeded_by_product(missing, ["a.txt"], files.get) == ("PyYAML",)
    ((path, free),) = tools.propose_free_pins("click", list(files), files.get)
    assert (path, '"click"' in free) == ("pyproject.toml", True)
    assert tools.move_pin(MANIFEST, "click", "click==8.1.7\n") == (
        MANIFEST.replace("8.0", "8.1.7"),
        "8.1.7",
    )
    bounds = tools.find_bounds("click", "click click 8.1.7")
    assert bounds.releases == ("8", "7")
    loose = {"pyproject.toml": MANIFEST.replace("==8.0", "")}
    bounded = tools.declare_bound(bounds, "8", list(loose), loose.get, "")
    assert '"click<8"' in bounded["pyproject.toml"]


def test_a_file_finds_its_adapter(language: Language, sample: Sample) -> None:
    assert find_language(sample.source) is language
    for capability in CAPABILITIES:
        assert has_capability(sample.source, capability) == language.has(capability)
    for suffix in language_row(sample.source).stub_suffixes:
        assert is_stub(f"types{suffix}")
        assert not has_capability(f"types{suffix}", "outline")
        assert has_capability(f"types{suffix}", "outline", stubs=True)


@having("outline")
def test_symbols_and_references(
    language: Language, sample: Sample, project: Mapping[str, str]
) -> None:
    assert has_outline(sample.source)
    outlines = {
        path: read_outline(path, text.encode())
        for path, text in project.items()
        if has_outline(path)
    }
    names = {definition.name for definition in outlines[sample.source].definitions}
    assert sample.method in names
    callers = CallGraph(outlines).find_callers(sample.source, sample.method)
    inside = {(x.path, x.definition.short_name.lower()) for x in callers if x.definition}
    assert (sample.source, "receipt") in inside
    assert (sample.caller or sample.test_file) in {x.path for x in callers}


@having("test results")
def test_a_test_is_named_and_selected(language: Language, sample: Sample) -> None:
    assert language.tests is not None
    tools = language.tests
    name = tools.name_test(sample.test_file, sample.test)
    assert sample.test_file in tools.find_test_files(name)
    command = tools.run_tests([name])
    assert command[-1] == name
    whole = tools.run_file(sample.test_file)
    assert tools.find_plain_call(whole) == whole
    assert tools.names_each_test(" ".join(whole))
    wide = tools.widen(whole)
    assert wide is not None
    assert sample.test_file not in wide
    assert tools.widen(wide) is None
    assert tools.names_some(" ".join(command))
    assert not tools.names_some(" ".join(wide))
    assert tools.find_plain_call(("make", "check")) is None


@pytest.mark.parametrize(
    "language", [x for x in LANGUAGES if x.file_tests], ids=lambda language: language.title
)
def test_a_test_file_is_run_and_its_tests_are_told_apart(
    language: Language, sample: Sample, project: Mapping[str, str]
) -> None:
    assert language.file_tests is not None
    tools = language.file_tests
    listed = tools.list_tests(project[sample.test_file])
    assert listed[sample.test].asserts
    lines = project[sample.test_file].splitlines()
    assert sample.test in lines[listed[sample.test].line - 1]
    call = {"Go": "go test ./...", "Rust": "cargo test"}.get(language.title, "npm test")
    command = tools.run_files(call, [sample.test_file], project.get)
    assert command is not None
    assert sample.test_file in command[-1]
    assert tools.run_files("make check", [sample.test_file], lambda _: None) is None
    output = f"@regreen {sample.test_file}\nnothing that a runner prints\n"
    assert tools.read_results(output, {sample.test_file: [sample.test]}) == ({}, ())


@having("test results")
def test_the_tests_are_listened_to(language: Language) -> None:
    assert language.tests is not None
    listener = language.tests.listener
    programs = listener.read_programs()
    folder = listener.output.rpartition("/")[0]
    assert programs
    assert all(path.startswith(f"{folder}/") for path in programs)
    env = listener.extend_environment({"PATH": "/bin"}, 12)
    assert env["PATH"] == "/bin"
    assert env.keys() > {"PATH"}


@having("coverage")
def test_a_coverage_report_is_read(language: Language, sample: Sample) -> None:
    assert language.coverage is not None
    tool = language.coverage
    measured = tool.parse_report(COVERAGE[language.title].format(sample.source).encode())
    assert measured is not None
    assert measured[sample.source].statements == {1, 2}
    assert measured[sample.source].missing == {2}
    assert tool.parse_report(b"[]") is None
    assert tool.parse_report(b"\xff{") is None
    assert any(sample.source.encode() in x for x in tool.make_programs([sample.source]).values())
    traced, untraced = (tool.extend_environment({}, traced=traced) for traced in (True, False))
    assert untraced.items() <= traced.items()


@pytest.mark.parametrize(
    ("language", "make_edits"),
    [
        pytest.param(language, make, id=f"{language.title}, {name}")
        for language in LANGUAGES
        for name, make in (("edits", language.make_edits), ("mutants", language.make_mutants))
        if make is not None
    ],
)
def test_edits_and_mutants_parse_and_differ(
    language: Language, make_edits: MakeEdits, sample: Sample, project: Mapping[str, str]
) -> None:
    text = project[sample.source]
    edits = make_edits(text, list(range(1, text.count("\n") + 2)))
    changed = [edit.apply_to(text) for edit in edits]
    assert changed
    assert text not in changed
    name = language_of(sample.source)
    assert name is not None
    assert not any(parser_for(name).parse(x.encode()).root_node.has_error for x in changed)


@having("warm engine")
def test_the_warm_engine_finds_its_interpreter(language: Language, sample: Sample) -> None:
    assert language.warm_driver is not None
    assert language.tests is not None
    assert language.warm_driver.find_interpreter(language.tests.run_file(sample.test_file))
    assert language.warm_driver.find_interpreter(("make", "check")) is None
    assert language.warm_driver.read_program()


def run_here(command: Sequence[str], place: Path) -> str:
    """What a command prints; the interpreter of these tests comes first."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=place, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )  # fmt: skip
    return done.stdout + done.stderr


@having("test results")
def test_the_commands_run_the_file_and_the_selected_test(
    language: Language, sample: Sample, tmp_path: Path
) -> None:
    assert language.tests is not None
    tools = language.tests
    place = tmp_path / "project"
    shutil.copytree(PROJECTS / language.title.lower(), place)
    assert "2 passed" in run_here(tools.run_file(sample.test_file), place)
    name = tools.name_test(sample.test_file, sample.test)
    assert "1 passed" in run_here(tools.run_tests([name]), place)


def test_the_doctor_names_what_is_done_for_the_languages_at_hand(tmp_path: Path) -> None:
    repo = Checkout(tmp_path / "repo")
    repo.commit("a", **{"main.go": "package main\n"})
    found = ask_doctor(repo.root, tmp_path)
    assert found == (
        "Go: compiler, outline, contracts, bug patterns, assertions, changed tests, coverage, mutants"
    )
    repo.commit("b", **{"main.go": None, "Cargo.toml": "[package]\n"})
    assert "coverage (needs llvm-tools)" in ask_doctor(repo.root, tmp_path)
    repo.commit("c", **{"Cargo.toml": None, "a.txt": "x"})
    everywhere = ask_doctor(repo.root, tmp_path)
    assert everywhere.startswith("Python: everything; ")
    assert all(language.title in everywhere for language in LANGUAGES)


def ask_doctor(place: Path, home: Path) -> str:
    """The line of `regreen doctor` about languages, asked in a folder."""
    command = [sys.executable, "-m", "regreen", "doctor", "--only", "config", "--format", "json"]
    env = {**os.environ, "REGREEN_HOME": str(home / "home")}
    done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=True)
    checks = json.loads(done.stdout)["checks"]
    (detail,) = [str(x["detail"]) for x in checks if x["name"] == "what is done for each language"]
    return detail
