"""How a call that checks becomes a call that writes, and which calls of a command are seen."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from regreen.fixers.recipes.tool_output import find_compiler_remedies, find_remedies_in_output
from regreen.shell.called_scripts import call_tool_as_in_setup
from regreen.shell.fixing_tools import (
    add_unsafe_fixes,
    find_generator_remedies,
    find_remedies,
    fixes_files_itself,
    make_comparison_remedy,
)
from regreen.shell.tools import load_tools


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ('for f in $(git ls-files "*.py"); do black --check -q "$f" || exit 1; done',
         'for f in $(git ls-files "*.py"); do black -q "$f" || true || true; done'),
        ("git ls-files '*.py' | xargs -0 isort -c", "git ls-files '*.py' | xargs -0 isort || true"),
        ("find src -name '*.py' -exec black --check -q {} +", "find src -name '*.py' -exec black -q {} +"),
        ("echo 'a; black --check b'; black --check c", "black c"),
        ("pytest -q && (cd src && black --check .)", "true && (cd src && black . || true)"),
        ("if ! ruff format --check src; then echo no; exit 1; fi",
         "if ! ruff format src || true; then echo no; true; fi"),
    ],
)  # fmt: skip
def test_a_checker_is_turned_round_where_it_stands(command: str, script: str) -> None:
    found = [" ".join(one.script.split()) for one in find_remedies(command)]
    assert script in found


def test_words_that_a_tool_chose_are_left_until_the_layout_alone_does_not_help() -> None:
    found = find_remedies("black --check . && codespell docs")
    assert [one.approval is not None for one in found] == [False, True, False, True]


def test_several_scripts_are_mended_together() -> None:
    found = find_remedies("black --check a", "cd web\nprettier -c .")
    assert found[0].script.count("(\nblack a\n)\n(\ncd web\nprettier --write .\n)") == 2


def test_what_is_written_for_a_shell_is_read_by_one() -> None:
    whole = "(black --check a || exit 1)\nisort -c a && (cd b; black --check .)"
    for remedy in find_remedies(whole, "cd web\nprettier -c ."):
        read = subprocess.run(
            ["bash", "-n", "-c", f"(\n{remedy.script}\n)"], capture_output=True, check=False
        )
        assert read.stderr == b"", remedy.script
        assert "((" not in remedy.script


@pytest.mark.parametrize(
    ("command", "unsafe"),
    [
        ("uv run ruff check src", "uv run ruff check --fix --unsafe-fixes src"),
        ("biome ci .", "biome check --write --unsafe ."),
        ("A=1 oxlint src", "A=1 oxlint --fix --fix-suggestions src"),
    ],
)
def test_fixes_that_a_tool_calls_unsafe_are_for_a_person(command: str, unsafe: str) -> None:
    (found,) = add_unsafe_fixes(find_remedies(command)[:1])
    assert (found.script, found.approval is None) == (unsafe.removeprefix("A=1 "), False)


def test_a_tool_without_unsafe_fixes_is_not_called_again() -> None:
    assert list(add_unsafe_fixes(find_remedies("black --check src; prettier -c ."))) == []
    whole = find_remedies("ruff format --check a && ruff check a")[0]
    (found,) = add_unsafe_fixes([whole])
    assert found.script.count("ruff check --fix --unsafe-fixes a") == 2
    assert found.script.count("ruff format a") == 2


@pytest.mark.parametrize(
    "command",
    [
        "sort names | diff -u sorted -",
        "for f in sorted; do sort names > /tmp/made && cmp $f /tmp/made || exit 1; done",
        "diff <(sort names) sorted",
        "printf 'x:\\n\\tsort names | diff sorted -' > m && make -sf m x",
    ],
)
def test_what_a_file_is_compared_with_is_written_into_it(tmp_path: Path, command: str) -> None:
    (tmp_path / "names").write_text("b\na\n")
    (tmp_path / "sorted").write_text("b\n")
    subprocess.run(["bash", "-c", "git init -q && git add -A"], cwd=tmp_path, check=True)
    remedy = make_comparison_remedy(command, [command, "diff sorted -"])
    assert remedy is not None
    subprocess.run(["bash", "-c", remedy.script], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "sorted").read_text() == "a\nb\n"
    assert (tmp_path / "names").read_text() == "b\na\n"


def test_files_of_the_repository_that_are_compared_with_each_other_stay(tmp_path: Path) -> None:
    for name, text in {"a": "1\n", "b": "2\n"}.items():
        (tmp_path / name).write_text(text)
    subprocess.run(["bash", "-c", "git init -q && git add -A"], cwd=tmp_path, check=True)
    for command in ("diff a b", 'PATH="/usr/bin:$PATH"; export PATH; env diff a b'):
        remedy = make_comparison_remedy(command, ["diff a b"])
        assert remedy is not None
        script = ["bash", "-c", remedy.script]
        done = subprocess.run(script, cwd=tmp_path, check=False, capture_output=True, timeout=20)
        assert (done.returncode, b"> 2" in done.stdout) == (1, True)
    assert [(tmp_path / name).read_text() for name in "ab"] == ["1\n", "2\n"]
    assert make_comparison_remedy("make x", ["make x", "git diff --exit-code names"]) is None


REFUSED = "error: unused import: `std::fmt`\n --> src/lib.rs:1:5\n\nerror: could not compile `say` (lib) due to 1 previous error\n"


def test_what_a_compiler_is_sure_of_needs_no_person_and_what_it_guesses_does() -> None:
    calls = ["make lint", "cd rust\ncargo clippy --workspace -p say --all-targets -- -D warnings"]
    sure, guess = find_compiler_remedies(REFUSED, calls)
    assert (sure.approval is None, guess.approval is None) == (True, False)
    assert sure.script.startswith("(cd rust\ncargo fix --broken-code ".replace("rust", "rust/"))
    assert sure.script.endswith(" --workspace --all-targets -p say\n)")
    assert "__CARGO_FIX_YOLO=1 cargo fix" in guess.script


@pytest.mark.parametrize("call", ["cargo test --features=foo --package=bar", "cargo test -Ffoo -pbar", "cargo test -F foo -p bar"])  # fmt: skip
def test_a_compilers_fixes_are_made_for_what_the_call_compiles(call: str) -> None:
    sure, _ = find_compiler_remedies(REFUSED, [call])
    assert sure.script.endswith(f" {call.removeprefix('cargo test ')}\n)")


def test_a_word_of_the_call_names_no_program_of_regreen() -> None:
    (found,) = find_compiler_remedies("a.ts(1,1): error TS2304: x", ["tsc --outDir @x.cjs@"])
    assert "--outDir @x.cjs@" in found.script


@pytest.mark.parametrize("runner", sorted(load_tools().programs["own_runners"]))
def test_a_script_of_the_repository_writes_what_it_checks(runner: str) -> None:
    (found,) = find_generator_remedies(f"{runner} gen --check")
    assert found.script.endswith(f"{runner} gen")


def test_a_variable_that_nothing_reads_is_not_renamed_without_a_person() -> None:
    said = f"help: if this is intentional, prefix it with an underscore: `_x`\n{REFUSED}"
    assert all(one.approval for one in find_compiler_remedies(said, ["cargo check"]))


def test_a_compiler_that_refuses_nothing_is_not_asked() -> None:
    assert list(find_compiler_remedies("test result: FAILED. 0 passed; 1 failed", ["cargo test"])) == []  # fmt: skip


def test_typescripts_own_fixes_are_made_in_the_project_of_the_call() -> None:
    said = "src/a.ts(4,18): error TS2304: Cannot find name 'off'."
    (found,) = find_compiler_remedies(said, ["cd web\nnpx --no-install tsc --noEmit -p ."])
    assert found.script.startswith("(cd web/\nnode - --noEmit -p . <<'REGREEN_END'\n// Runs beside")
    assert found.approval is not None


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not here")
@pytest.mark.parametrize("place", ["", "$PWD/"])
def test_gccs_own_fixes_are_made_with_the_call_that_failed(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "lib"
    folder.mkdir()
    (folder / "a.c").write_text("char *a(int width)\n{\n    return malloc(widt);\n}\n")
    name = f"{place.replace('$PWD', str(folder))}a.c"
    call = f"cd lib\ngcc -Wall -Werror -c -o a.o {name}"
    done = subprocess.run(
        ["bash", "-c", call], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    (found,) = find_compiler_remedies(done.stderr, ["make", call])
    assert found.approval is not None
    subprocess.run(["bash", "-c", found.script], cwd=tmp_path, check=True, capture_output=True)
    assert (folder / "a.c").read_text() == (
        "#include <stdlib.h>\nchar *a(int width)\n{\n    return malloc(width);\n}\n"
    )
    assert [one.name for one in folder.iterdir()] == ["a.c"]
    assert list(find_compiler_remedies(done.stderr, ["make"])) == []


def test_ruff_says_in_two_ways_that_it_can_fix() -> None:
    place = "F401 [*] `os` imported but unused\n --> pkg/a.py:1:8\n"
    for end in (
        "[*] 1 fixable with the `--fix` option.",
        "[*] 1 fixable with `--fix` (1 unsafe fix available with `--fix --unsafe-fixes`)",
    ):
        assert [one.script for one in find_remedies_in_output(place + end, ())] == [
            "ruff check --fix pkg/a.py"
        ]


@pytest.mark.parametrize(
    ("command", "scripts"),
    [
        ("python tools/gen.py --check --all", ["python tools/gen.py --all"]),
        ("python manage.py makemigrations --check --dry-run", ["python manage.py makemigrations"]),
        ("uv run python -m tools.gen --check", ["uv run python -m tools.gen"]),
        ("node scripts/gen.mjs --check", ["node scripts/gen.mjs"]),
        ("cargo xtask codegen --check", ["cargo xtask codegen"]),
        ("npm run -s docs -- --check", ["npm run -s docs --"]),
        ("poetry check --lock --verify", []),
        ("cd docs && ./toc.sh --check", ["cd docs\n./toc.sh"]),
        ("black --check .", []),
        ("cargo publish --dry-run", []),
        ("git diff --check", []),
    ],
)
def test_a_script_that_was_told_only_to_look(command: str, scripts: list[str]) -> None:
    assert [one.script for one in find_generator_remedies(command)] == scripts


@pytest.mark.parametrize(
    "command", ["python -m pre_commit run -a", "requirements-txt-fixer reqs.txt", "uvx prek run"]
)
def test_hooks_leave_the_files_as_they_want_them(command: str) -> None:
    assert fixes_files_itself(command)


@pytest.mark.parametrize(
    ("setup", "script"),
    [
        ("npx --yes pnpm@9 install --frozen-lockfile", "npx --yes pnpm@9 lock"),
        ("cd web && /opt/x/.bin/pnpm install", "/opt/x/.bin/pnpm lock"),
        ("pnpm install", "pnpm lock"),
    ],
)
def test_a_lock_is_written_by_the_tool_that_the_setup_calls(setup: str, script: str) -> None:
    assert call_tool_as_in_setup("pnpm lock", setup) == script


def test_shellchecks_own_patch_is_applied_with_the_files_of_the_call() -> None:
    said = "  https://www.shellcheck.net/wiki/SC2086 -- Double quote to prevent globbing ..."
    (found,) = find_compiler_remedies(said, ["make lint", "cd ci\nshellcheck -x a.sh"])
    assert found.script == "(cd ci/\nshellcheck -x a.sh -f diff | patch -s -N -p1\n)"
    assert found.approval is not None
