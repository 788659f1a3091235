"""What the compilers of Go, Rust and Java find in a change, in real boxes."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from regreen.domain.models import Review
from regreen.domain.ports import Sandbox
from regreen.reviewers.analyzers.compiled.compiler_checks import CompilerChecks
from regreen.reviewers.pipeline import ReviewJob, review_change
from tests.contract.sandboxes import sandbox_or_skip
from tests.unit.repairs import Repository

pytestmark = pytest.mark.sandbox


@dataclass(frozen=True)
class Case:
    """A small project, an edit that breaks another file, and one that leaves no doubt for a linter."""

    program: str
    files: dict[str, str]
    breaks: tuple[str, str, str]
    misuse: tuple[str, str, str]
    rule: str


# Whoever gets the rows needs the statement open.
ROWS = 'java.sql.ResultSet rows(java.sql.Connection db) throws Exception {\n        java.sql.Statement all = db.createStatement();\n        return all.executeQuery("SELECT 1");\n    }\n\n    '
SAME = "boolean isSame(String a, String b) {\n        return a == b || a.equals(b);\n    }\n\n    "
CASES = {
    "Go": Case(
        "go",
        {
            "go.mod": "module example.com/shop\n\ngo 1.19\n",
            "price/price.go": 'package price\n\nimport "os"\n\nfunc Total(a int) int { return a }\n\nfunc Save(name string) error {\n\treturn os.WriteFile(name, nil, 0o600)\n}\n',
            "main.go": 'package main\n\nimport (\n\t"missing.example/log"\n\n\t"example.com/shop/price"\n)\n\nfunc main() {\n\tlog.Say(price.Total(1))\n\tif err := price.Save("x"); err != nil {\n\t\tpanic(err)\n\t}\n}\n',
        },
        ("price/price.go", "Total(a int)", "Total(a, b int)"),
        ("main.go", 'if err := price.Save("x"); err != nil {\n\t\tpanic(err)\n\t}', 'price.Save("x")'),
        "go/ignored-own-error",
    ),
    "Rust": Case(
        "cargo",
        {
            "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nmissing-crate = { version = "1.2", optional = true, features = ["std"] }\n',
            "src/lib.rs": "mod price;\n\npub fn receipt() -> u32 {\n    price::total(1)\n}\n",
            "src/price.rs": "pub fn total(a: u32) -> u32 {\n    a\n}\n",
        },
        ("src/price.rs", "total(a: u32)", "total(a: u32, _b: u32)"),
        ("src/lib.rs", "    price::total(1)\n", '    std::fs::write("x", "y");\n    price::total(1)\n'),
        "rust/unused_must_use",
    ),
    "Java": Case(
        "java",
        {
            "src/main/java/app/Price.java": "package app;\n\nimport org.missing.Log;\n\nfinal class Price {\n    static int total(int a) {\n        Log.say(a);\n        return a;\n    }\n}\n",
            "src/main/java/app/Shop.java": 'package app;\n\nfinal class Shop {\n    int receipt(String kind) {\n        return "big".equals(kind) ? Price.total(1) : 0;\n    }\n}\n',
        },
        ("src/main/java/app/Price.java", "total(int a)", "total(int a, int b)"),
        ("src/main/java/app/Shop.java", 'int receipt(String kind) {\n        return "big".equals(kind)', f'{ROWS}{SAME}int receipt(String kind) {{\n        return kind == "big" || kind.equals("huge")'),
        "java/string-identity",
    ),
}  # fmt: skip


@pytest.fixture
def sandbox() -> Sandbox:
    return sandbox_or_skip("bwrap")


@pytest.mark.timeout(900)  # the standard library is read once, when the box is prepared
@pytest.mark.parametrize("language", CASES)
def test_what_a_change_breaks_is_named_and_nothing_else(
    language: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    case = CASES[language]
    if shutil.which(case.program) is None:
        pytest.skip(f"{case.program} is not installed here")

    def review(path: str, old: str, new: str) -> Review:
        assert old in case.files[path]
        repository = Repository(tmp_path / str(len([*tmp_path.iterdir()])))
        base = repository.commit("start", case.files)
        head = repository.commit("change", {path: case.files[path].replace(old, new)})
        job = ReviewJob(base=base, head=head, find_sandbox=lambda: sandbox)
        return review_change(
            job, git=repository.open(), sandbox=None, model=None,
            reviewers=(("correctness", CompilerChecks()),),
        )  # fmt: skip

    (broken,) = review(*case.breaks).findings
    assert broken.rule == "contracts/broken-caller"
    assert broken.path == case.breaks[0]
    (misused,) = review(*case.misuse).findings
    assert misused.rule == case.rule
    path, old, _ = case.breaks
    assert review(path, old, f"{old} ").findings == ()


STATE = "package app;\n\npublic enum State {\n    ON;\n\n    public boolean equals(String name) {\n        return name().equalsIgnoreCase(name);\n    }\n\n    static State parse(String text) throws java.io.IOException {\n        throw new java.io.IOException(text);\n    }\n}\n"
STATE_TEST = """package app;

import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.util.*;
import java.util.stream.*;
import org.missing.Names;

class StateTest {
    static class Closed extends Names {
        @Override
        public void close() {
            super.close();
        }
    }

    Map<String, String> named(List<String> given) {
        return given.stream().map(x -> new AbstractMap.SimpleEntry<>(Names.of(x), x)).collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
    }

    boolean fails() {
        assertThrows(IOException.class, () -> State.parse("x"));
        return State.ON.equals("on");
    }
}
"""


def test_what_follows_from_a_missing_java_package_or_a_second_build_is_not_named(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    if shutil.which("java") is None:
        pytest.skip("java is not installed here")
    repository = Repository(tmp_path / "repo")
    base = repository.commit("start", {"src/main/java/app/State.java": STATE})
    demo = "package app;\n\nclass Demo {}\n"
    files = {f"{build}/src/main/java/app/Demo.java": demo for build in ("gradle", "maven")}
    test = "src/test/java/app/StateTest.java"
    missing = repository.commit("builds", {**files, test: STATE_TEST})
    uncaught = STATE_TEST.replace("        return State", '        Runnable run = () -> State.parse("y");\n        return State')  # fmt: skip
    found = []
    for head in (missing, repository.commit("x", {test: uncaught})):
        job = ReviewJob(base=base, head=head, find_sandbox=lambda: sandbox)
        review = review_change(job, git=repository.open(), sandbox=None, model=None, reviewers=(("correctness", CompilerChecks()),))  # fmt: skip
        found.append([f.title for f in review.findings])
    assert found[0] == []
    assert [title.split(";")[0] for title in found[1]] == [
        "Unreported exception java.io.IOException"
    ]


def test_a_second_rust_package_with_a_missing_crate_is_not_blamed_for_it(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed here")
    package = '[package]\nname = "{0}"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nmissing-crate = "1.2"\n'
    repository = Repository(tmp_path / "repo")
    base = repository.commit("start", {f"{name}/Cargo.toml": package.format(name) for name in ("code", "fuzz")})  # fmt: skip
    uses = "use missing_crate::{Input, target};\n\npub fn run(data: Input) {\n    target(data)\n}\n"
    head = repository.commit("two", {f"{name}/src/lib.rs": uses for name in ("code", "fuzz")})
    job = ReviewJob(base=base, head=head, find_sandbox=lambda: sandbox)
    review = review_change(job, git=repository.open(), sandbox=None, model=None, reviewers=(("correctness", CompilerChecks()),))  # fmt: skip
    assert [f.title for f in review.findings] == []


@pytest.mark.parametrize("language", CASES)
def test_a_compiler_that_is_missing_is_named(language: str, tmp_path: Path) -> None:
    case = CASES[language]
    repository = Repository(tmp_path / "repo")
    base = repository.commit("start", case.files)
    path, old, new = case.breaks
    head = repository.commit("change", {path: case.files[path].replace(old, new)})
    job = ReviewJob(base=base, head=head, find_sandbox=lambda: None)
    review = review_change(job, git=repository.open(), sandbox=None, model=None, reviewers=(("correctness", CompilerChecks()),))  # fmt: skip
    assert [s.reason for s in review.skipped if "not compiled" in s.reason] == [
        f"{language} was not compiled: no sandbox works here"
    ]
