"""What a compiler may run of a tree, and which of this machine's folders a box sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from regreen.adapters.sandbox.host import skeleton_mounts
from regreen.languages.compilers import RustCompiler
from regreen.reviewers.analyzers.compiled.compiler_checks import _Output
from tests.unit.changes import Story

PACKAGE = "[package]\nname = 'a'\nversion = '0.1.0'\n"


@pytest.mark.parametrize(
    ("files", "runs"),
    [
        ({"Cargo.toml": PACKAGE}, False),
        ({"Cargo.toml": PACKAGE + "build = false\n"}, False),
        ({"Cargo.toml": PACKAGE, "build.rs": ""}, True),
        ({"Cargo.toml": PACKAGE + "build = 'evil.rs'\n", "evil.rs": ""}, True),
        ({"Cargo.toml": PACKAGE + "[lib]\nproc-macro = true\n"}, True),
        ({"Cargo.toml": PACKAGE + "[lib]\nproc_macro = true\n"}, True),
        ({"Cargo.toml": PACKAGE + "[lib]\ncrate-type = ['proc-macro']\n"}, True),
        ({"Cargo.toml": PACKAGE, ".cargo/config.toml": ""}, True),
        ({"Cargo.toml": PACKAGE, ".cargo": "a link to another folder"}, True),
        ({"Cargo.toml": PACKAGE, "rust-toolchain.toml": ""}, True),
        ({"Cargo.toml": PACKAGE + "[["}, True),
        ({f"p{n}/Cargo.toml": PACKAGE for n in range(201)}, True),
    ],
)
def test_a_tree_that_would_run_code_while_it_is_compiled_is_known(
    files: dict[str, str], runs: bool
) -> None:
    plan = RustCompiler().plan_run(["src/lib.rs"], [*files, "src/lib.rs"], files.get)
    assert bool(plan.runs_code) is runs


def test_a_name_is_missed_beside_empty_crates_only_where_the_change_took_it_away(
    tmp_path: Path,
) -> None:
    story = Story(tmp_path / "repo")
    code = "pub fn encode() {}\npub fn no() {}\n"
    after = "pub fn write() {}\npub fn never() {}\n"
    story.change({"src/code.rs": code}, {"src/code.rs": after})
    span = '{"is_primary":true,"file_name":"src/lib.rs","line_start":1,"line_end":1,"label":null}'
    said = (
        '{"reason":"compiler-message","message":{"code":{"code":"%s"},"level":"error","message":"no `%s`","spans":['
        + span
        + "]}}\n"
    )
    rows = [said % row for row in (("E0432", "encode"), ("E0432", "serde"), ("E0308", "u8"))]
    found = {
        mark: [
            f"{hit.rule} {hit.message}"
            for hit in _Output.parse(story.context(), "Rust", f"@.\n{mark}{''.join(rows)}").hits
        ]
        for mark in ("", "#stubs\n")
    }
    assert found == {
        "": ["E0432 no `encode`", "E0432 no `serde`", "E0308 no `u8`"],
        "#stubs\n": ["E0432 no `encode`", "E0308 no `u8`"],
    }


@pytest.mark.parametrize(("gone", "count"), [("total", 1), ("find", 0)])
def test_a_java_message_misses_its_symbol_and_no_word_of_its_sentence(
    tmp_path: Path, gone: str, count: int
) -> None:
    story = Story(tmp_path / "repo")
    code = f"class A {{ int {gone}(int a) {{ return a; }} }}\n"
    story.change({"A.java": code}, {"A.java": code.replace(gone, "other")})
    package = "compiler.err.doesnt.exist\tB.java\t1\t1\tpackage org.missing does not exist\n"
    said = "compiler.err.cant.resolve.location.args\tB.java\t2\t2\tcannot find symbol symbol: method total(int) location: class B\n"
    assert len(_Output.parse(story.context(), "Java", package + said).hits) == count


def test_a_class_that_this_java_lacks_is_missed_like_a_package(tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    story.change({"A.java": "class A {}\n"}, {"A.java": "class A { int a; }\n"})
    row = "compiler.err.cant.resolve.location\tA.java\t1\t1\tcannot find symbol symbol: class {} location: {}\n"
    counts = [
        len(
            _Output.parse(
                story.context(), "Java", row.format("X", place) + row.format("X", "class A")
            ).hits
        )
        for place in ("package sun.misc", "package own.code")
    ]
    assert counts == [0, 2]


@pytest.mark.parametrize(
    ("program", "beside", "is_seen"),
    [
        ("go", "src/runtime/proc.go", True),
        ("rustc", "lib/rustlib/components", True),
        ("staticcheck", "pkg/mod/private.example/secret.go", False),
        ("cargo-nextest", "credentials.toml", False),
        ("node", "settings/.env", False),
    ],
)
def test_a_box_sees_whole_toolchains_and_no_folder_of_a_user(
    program: str, beside: str, is_seen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "tool"
    for name in (f"bin/{program}", beside):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(root / "bin"))
    assert (str(root) in skeleton_mounts(None)) is is_seen
