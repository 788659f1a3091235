"""Bug patterns of JavaScript and TypeScript: what the checkers are given to read, and what is said of their hits."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from regreen.code.symbol_index import SqliteOutlineStore
from regreen.languages.script_config import (
    PartialTypes,
    load_jsonc,
    read_compiler_options,
    read_workspace_paths,
)
from regreen.reviewers.analyzers.bundled_checkers import write_temporary_checkout
from regreen.reviewers.analyzers.compiled.compiled_contracts import (
    ScriptContracts,
    _compile_import,
)
from regreen.reviewers.analyzers.script_checkers import (
    ScriptCheckers,
    _declares_globally,
    _SideChecker,
    find_program,
    run_oxlint,
)
from regreen.reviewers.context import Claim
from regreen.reviewers.pipeline import ReviewJob, review_change
from regreen.reviewers.reviewer_table import ReviewerTable
from tests.growth import growth
from tests.unit.changes import Files, Story

# It says which of the files it was given, and which program it would start for types.
LISTING = """#!/bin/sh
listed=$(find . -type f | sort | tr '\\n' ' ')
printf '{"diagnostics": [{"code": "eslint(no-debugger)", "filename": "a.ts", "message": "%s",
  "labels": [{"span": {"line": 1, "offset": 0, "length": 1}}]}]}' "$listed $OXLINT_TSGOLINT_PATH"
"""

typed = pytest.mark.skipif(
    find_program("oxlint") is None or find_program("tsgolint") is None,
    reason="oxlint and tsgolint are not installed",
)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "repo")


def claims(story: Story, before: Files, after: Files) -> list[Claim]:
    story.change(before, after)
    return list(ScriptCheckers().run(story.context()).claims)


def test_nothing_that_a_repository_brings_is_started(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("oxlint", "tsgolint"):
        place = tmp_path / "bin" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(LISTING)
        place.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    hostile = {
        "node_modules/.bin/tsgolint.js": "steal()",
        "oxlint.config.ts": "steal()",
        ".oxlintrc.js": "steal()",
    }
    (claim,) = claims(story, {"b.ts": "\n"}, hostile | {"a.ts": "let a = 1;\n"})
    assert "./a.ts" in claim.title
    assert "node_modules" not in claim.title
    assert "oxlint" not in claim.title.replace(str(tmp_path), "")
    assert str(tmp_path / "bin" / "tsgolint") in claim.title.replace("`", "")


def test_the_compiler_reads_what_is_checked_and_what_no_import_names(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = LISTING.replace(
        "find . -type f | sort | tr '\\n' ' '", 'sed \'s/.*"files": //; s/"//g\' web/tsconfig.json'
    )
    place = tmp_path / "bin" / "oxlint"
    place.parent.mkdir()
    place.write_text(listing)
    place.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    before: Files = {
        "web/tsconfig.json": "{}",
        "web/types.d.ts": "declare const a: 1;\n",
        "web/shapes.ts": "interface Shape { size: number }\n",
        "web/window.ts": "export {};\ndeclare global { interface Window { shop: number } }\n",
        "web/other.ts": "import './more';\nexport const b = 1;\n",
        "server.ts": "export const c = 1;\n",
    }
    (claim,) = claims(story, before, {"web/a.ts": "export const d = 1;\n", "a.ts": "let e = 1;\n"})
    assert "[a.ts, shapes.ts, types.d.ts, window.ts, ../regreen-globals.d.ts]" in claim.title


# It counts its runs, and says what stands in a file that is imported.
READING = """#!/bin/sh
echo "$GOGC $GOMEMLIMIT" >> RUNS
printf '{"diagnostics": [{"code": "eslint(no-debugger)", "filename": "a.ts", "message": "%s",
  "labels": [{"span": {"line": 1, "offset": 0, "length": 1}}]}]}' "$(ls | tr '\\n' ' ') $(head -c 40 b.ts)"
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The runs of a checker that reads `a.ts` and what it imports."""
    place, noted = tmp_path / "bin" / "oxlint", tmp_path / "runs"
    place.parent.mkdir()
    place.write_text(READING.replace("RUNS", str(noted)))
    place.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    return lambda: noted.read_text().splitlines()


def test_what_was_read_before_is_read_again_only_where_a_file_differs(
    story: Story, tmp_path: Path, runs: Callable[[], list[str]]
) -> None:
    index = SqliteOutlineStore(tmp_path / "home" / "index.sqlite")

    def say(story: Story) -> str:
        (claim,) = ScriptCheckers().run(replace(story.context(), index=index)).claims
        return claim.title

    other = Story(tmp_path / "other")
    story.change({"b.ts": "old"}, {"a.ts": "import './b';\n"})
    other.change({"b.ts": "new"}, {"a.ts": "import './b';\n"})
    assert ("old" in say(story), "old" in say(story), len(runs())) == (True, True, 1)
    assert ("new" in say(other), len(runs())) == (True, 2), "the file that is checked is the same"
    program = tmp_path / "bin" / "oxlint"
    program.write_text(program.read_text().replace("head -c 40", "head -c 39"))
    assert ("new" in say(other), len(runs())) == (True, 3), "another version may say something else"


def test_both_sides_are_read_as_they_are(story: Story, runs: Callable[[], list[str]]) -> None:
    before: Files = {"a.ts": "old = 1;\n", "b.ts": "at the base", "gone/c.ts": "", "d/e.ts": ""}
    story.change(before, {"a.ts": "old = 1;\nb = 2;\n", "b.ts": "at the head", "gone/c.ts": None})
    context = story.context()
    with write_temporary_checkout(()) as laid:
        checker = _SideChecker(context, laid)
        sides = (context.head, context.merge_base, context.head)
        said = [checker.check(rev, ["a.ts"])[0].message for rev in sides]
        options = [*json.loads((laid.root / "tsconfig.json").read_text())["compilerOptions"]]
    assert options == sorted(options), "the next process gives the compiler the very same file"
    tree = "a.ts b.ts d {}regreen-globals.d.ts tsconfig.json"
    assert said == [
        f"{tree.format('')}  at the head",
        f"{tree.format('gone ')}  at the base",
        f"{tree.format('')}  at the head",
    ]
    assert runs() == ["off 1GiB"] * 3, "memory is collected near the limit alone"


CONFIGS = {
    "tsconfig.json": '{"extends": "./base", "compilerOptions": {"paths": {"@/*": ["src/*"]}}} // end',
    "base.json": '{"compilerOptions": {"strict": true, "plugins": [{"name": "x"}], /* a */ "lib": ["es2020"],},}',
    "web/tsconfig.json": '{"extends": "@company/tsconfig", "compilerOptions": {"baseUrl": "src"}}',
    "core/package.json": '{"name": "@shop/core", "main": "dist/index.js", "types": "api.d.ts"}',
    "node_modules/x/package.json": '{"name": "x"}',
    "core/api.d.ts": "",
}


def test_options_are_read_with_what_they_extend_and_without_plugins() -> None:
    options = read_compiler_options("tsconfig.json", CONFIGS.get, {"@shop/core": ["core/index"]})
    assert options["strict"] is True
    assert options["lib"] == ["es2020", "dom"], "what Node has too: console, timers, fetch"
    assert "plugins" not in options
    assert options["paths"] == {"@/*": ["./src/*"], "@shop/core": ["./core/index"]}


def test_a_configuration_of_an_installed_package_counts_as_strict() -> None:
    options = read_compiler_options("web/tsconfig.json", CONFIGS.get, {"c": ["core/index"]})
    assert options["strict"] is True
    assert options["paths"] == {"*": ["./src/*"], "c": ["../core/index"]}
    assert (
        read_compiler_options("core/tsconfig.json", {"core/tsconfig.json": "{}"}.get, {})["strict"]
        is False
    )
    assert read_compiler_options("none/tsconfig.json", CONFIGS.get, {})["strict"] is True


def test_packages_of_a_workspace_are_found_by_their_manifests() -> None:
    assert read_workspace_paths(CONFIGS.keys(), CONFIGS.get) == {
        "@shop/core": ["core/api.d.ts", "core/src/index", "core/index"],
        "@shop/core/*": ["core/src/*", "core/*"],
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "// no comment", "b": [1, 2,],}', {"a": "// no comment", "b": [1, 2]}),
        ('{"a": 1, // last\n}', {"a": 1}),
        ("[1]", {}),
        ("{" * 100_000, {}),
        ('{"a": "' + "\\" * 50_000, {}),
    ],
)
def test_json_with_comments(text: str, value: object) -> None:
    assert load_jsonc(text) == value


STRICT = json.dumps({"compilerOptions": {"strict": True}})
STORE = (
    "export async function save(n: number): Promise<number> { return n; }\nexport const gone = 1;\n"
)
USER = 'import { save, gone } from "./store";\nexport async function run() { await save(gone); }\n'
PROJECT: Files = {"tsconfig.json": STRICT, "src/store.ts": STORE, "src/use.ts": USER}


@typed
@pytest.mark.parametrize(
    ("path", "old", "new", "rule"),
    [
        ("src/use.ts", "await save", "save", "oxlint/typescript/no-floating-promises"),
        ("src/use.ts", "await save(gone)", "if (save(gone)) return", "tsc/TS2801"),
        ("src/use.ts", "save(gone)", "save('1')", "tsc/TS2345"),
        (
            "src/use.ts",
            "save(gone)",
            "save(0 as any as Uint8Array)",
            "tsc/TS2345",
        ),
        ("src/store.ts", "n: number)", "n: number, m: string)", "contracts/broken-caller"),
        ("src/store.ts", "export const gone = 1;", "", "contracts/removed-still-used"),
    ],
)
def test_what_a_change_breaks_is_said_where_it_was_changed(
    story: Story, path: str, old: str, new: str, rule: str
) -> None:
    found = claims(story, PROJECT, {path: str(PROJECT[path]).replace(old, new)})
    assert (rule, path) in {(c.rule, c.path) for c in found}
    assert {c.path for c in found} == {path}


@typed
def test_a_call_that_a_change_beside_it_breaks_is_said_once(story: Story) -> None:
    after: Files = {
        "src/store.ts": STORE.replace("n: number)", "n: number, m: string)"),
        "src/use.ts": f"// runs\n{USER}",
    }
    story.change(PROJECT, after)
    both: ReviewerTable = (
        ("correctness", ScriptContracts()),
        ("correctness", ScriptCheckers()),
    )
    job = ReviewJob(base="main", head="HEAD")
    git = story.context().git
    (finding,) = review_change(job, git=git, sandbox=None, model=None, reviewers=both).findings
    assert (finding.rule, finding.path) == ("contracts/broken-caller", "src/store.ts")
    assert "src/use.ts" in f"{finding.title} {finding.body}"


@typed
@pytest.mark.parametrize(("known", "count"), [("part.text", 0), ("1", 1)])
def test_a_type_whose_members_were_unknown_before_is_not_at_hand(
    story: Story, known: str, count: int
) -> None:
    code = "interface Part {{ size: number }}\nexport function show(part: Part) {{\n  return [{}, {}];\n}}\n"
    before: Files = {**PROJECT, "src/show.ts": code.format(known, "part.size")}
    found = claims(story, before, {"src/show.ts": code.format(known, "part.sizes")})
    assert len([c for c in found if c.rule in {"tsc/TS2339", "tsc/TS2551"}]) == count


@typed
@pytest.mark.parametrize(("generated", "count"), [(False, 0), (True, 1)])
def test_a_module_may_pass_on_more_than_the_repository_holds(
    story: Story, generated: bool, count: int
) -> None:
    shop = "import { Price } from './all';\nexport const free: Price = 0;\n"
    before: Files = {
        **PROJECT,
        "src/all.ts": "export * from './passed';\n",
        "src/passed.ts": "export * from './generated';\nexport const rate = 1;\n",
        **({"src/generated.ts": "export type Cost = number;\n"} if generated else {}),
    }
    found = claims(story, before, {"src/shop.ts": shop})
    assert [c.rule for c in found] == ["tsc/TS2305"] * count


@typed
@pytest.mark.parametrize(
    "added",
    [
        "import express from 'express';\nexpress().get('/', (q: express.Request) => q.body.a.b);\n",
        "process.exit(Buffer.from('a').length);\n",
        "declare const bytes: Uint8Array;\nexport const key: Uint8Array<ArrayBuffer> = bytes;\n",
        "import ask from 'ask';\nfor (const one of Array.from(ask())) one?.focus();\n",
        "const on: { key: () => void } = { key() {} };\non.key = async () => { await Promise.resolve(1); };\n",
        "export const isOwn = hasOwnProperty.call({}, 'a');\n",
        "export const compiled = new Function('a', 'return a');\n",
        "export const wait = () => { void Promise.resolve(1); };\n",
        "myOwnGlobal();\n",
        "/* global shown, drawn:writable */\nshown();\ndrawn();\n",
        "// eslint-disable-next-line no-undef\nshown();\n",
        "shown(); // eslint-disable-line\n",
        "/* eslint-disable no-undef */\n\nshown();\n",
        "(Object.prototype as any).__defineGetter__('shown', () => 1);\nexport const most = shown;\n",
        "Object.defineProperty(globalThis, 'shown', { value: 1 });\nexport const most = shown;\n",
        "if (typeof shown !== 'undefined') shown();\n",
        "const all: any = self;\nif ('undefined' == typeof shown) all.shown = 1;\nshown();\n",
        "setTimeout(() => {}, 9).unref();\nif (Error.captureStackTrace) window.shopTrace = 1;\n",
        "import { ask } from 'ask';\nexport const sum = ask().price + (ask().price * 3n) / 4n;\nexport const last: bigint = ask().price * 3n;\n",
        "export function all<T>(table: T) { for (const row of Object.values(table as {})) for (const cell of row) cell; }\n",
        "import ask from 'ask';\nlet id: number | undefined;\nexport function next(): number { id ??= ask();\n  return id;\n}\n",
    ],
)
def test_what_cannot_be_known_is_not_said(story: Story, added: str) -> None:
    before: Files = {**PROJECT, "src/old.ts": "myOwnGlobal();\n"}
    assert claims(story, before, {"src/old.ts": "myOwnGlobal();\n" + added}) == []


@typed
@pytest.mark.parametrize(
    "added",
    [
        "shown(); // eslint-disable-line no-undef-init, semi\n",
        "shown();\n/* eslint-disable no-undef */\n",
        "// eslint-disable-next-line no-undef\nbegin;\nshown();\n",
        "export const kind: typeof shown = 1;\n",
        "Object.defineProperty({}, 'other', shown);\n",
    ],
)
def test_an_unknown_name_is_said_where_nothing_allows_it(story: Story, added: str) -> None:
    before: Files = {**PROJECT, "src/old.ts": "begin;\n"}
    (claim,) = claims(story, before, {"src/old.ts": f"begin;\n{added}"})
    assert claim.title == "Cannot find name `shown`"


@typed
@pytest.mark.parametrize(("base", "count"), [("make()", 0), ("Shape", 1)])
def test_what_a_class_of_plain_javascript_has_from_a_call_is_a_guess(
    story: Story, base: str, count: int
) -> None:
    make = "class Shape { sized() {} }\nconst make = () => Shape;\n"
    code = f"{make}class Part extends {base} {{\n  all() {{ return this.sizes(); }}\n}}\n"
    found = claims(story, {"part.js": "\n"}, {"part.js": code})
    assert [c.rule for c in found] == ["tsc/TS2551"] * count


@typed
@pytest.mark.parametrize(("package", "count"), [("kit", 0), ("./kit", 1)])
def test_how_a_class_that_a_package_makes_is_constructed_is_not_known(
    story: Story, package: str, count: int
) -> None:
    kit = "export class Base {}\nexport const kit = { of: <T>(): typeof Base => Base };\n"
    wrong = f"import {{ kit }} from '{package}';\nexport class Wrong extends kit.of<Wrong>() {{}}\n"
    use = "import * as all from './wrong';\nexport const made = () => [\n  new all.Wrong({ size: 1 })\n];\n"
    before: Files = {**PROJECT, "src/kit.ts": kit, "src/wrong.ts": wrong, "src/made.ts": "\n"}
    assert [c.rule for c in claims(story, before, {"src/made.ts": use})] == ["tsc/TS2554"] * count


@typed
@pytest.mark.parametrize(("used", "count"), [("seen.size", 0), ("load().size", 1)])
def test_a_change_is_held_to_break_a_file_only_by_a_name_that_both_have(
    story: Story, used: str, count: int
) -> None:
    store = "import { read } from './read';\nconst kept = {};\nexport function load() { return kept; }\n"
    far = "\n" * 9
    before: Files = {
        **PROJECT,
        "src/read.ts": "export const read = () => 1;\n",
        "src/stock.ts": store.replace("{};", "JSON.parse('1');"),
        "src/far.ts": f"import {{ load }} from './stock';\nconst seen = load();\n{far}export const all = {used};\n",
    }
    found = claims(story, before, {"src/stock.ts": store.replace("{};", "read();")})
    assert [c.title for c in found] == [
        "This change of `kept` breaks src/far.ts, which it leaves alone"
    ] * count


@typed
@pytest.mark.parametrize(
    ("source", "count"), [("Map<string, number>", 1), ("any", 0), ("import('kit').Store", 0)]
)
def test_a_value_that_may_be_missing_is_said_unless_it_is_of_any_type(
    story: Story, source: str, count: int
) -> None:
    code = f"declare const ids: {source};\nexport function find(k: string): number {{\n  let id: number | undefined;\n  id = ids.get(k);\n  return id;\n}}\n"
    found = claims(story, PROJECT, {"src/find.ts": code})
    assert [c.rule for c in found] == ["tsc/TS2322"] * count


@typed
@pytest.mark.parametrize(
    ("call", "count"),
    [("kit.assert(id", 0), ("invariant(\n    id", 0), ("kit.assert(k", 1), ("kit.log(id", 1)],
)
def test_a_value_that_may_be_missing_is_said_unless_a_package_asserts_it(
    story: Story, call: str, count: int
) -> None:
    code = f"import kit, {{ invariant }} from 'kit';\nexport function size(k: string, id?: string): number {{\n  {call} !== undefined, 'none');\n  return id.length;\n}}\n"
    found = claims(story, PROJECT, {"src/size.ts": code})
    assert [c.rule for c in found] == ["tsc/TS18048"] * count


PARTS = """\
import { Base, Sizes } from './kit';
import { Plain } from '@/plain';
export interface Extended extends Base { id: number }
export type Picked = Pick<Extended & Sizes, 'id'>;
export type Mapped = { [K in keyof Sizes]: number };
export interface Holder { id: number; made: Base }
export interface Whole extends Plain { id: number }
"""


@typed
@pytest.mark.parametrize(
    ("name", "count"), [("Extended", 0), ("Picked", 0), ("Mapped", 0), ("Holder", 1), ("Whole", 1)]
)
def test_a_type_that_rests_on_one_of_a_package_is_known_in_part(
    story: Story, name: str, count: int
) -> None:
    aliases = {"compilerOptions": {"strict": True, "paths": {"@/*": ["./src/*"]}}}
    before: Files = {
        "tsconfig.json": json.dumps(aliases),
        "src/kit.ts": "export { Base, Sizes } from 'base-kit';\n",
        "src/plain.ts": "export interface Plain { size: number }\n",
        "src/parts.ts": PARTS,
        "src/make.ts": f"import {{ {name} }} from './parts';\nexport const make = (part: {name}) => part;\n",
    }
    call = "import { make } from './make';\nmake({ id: 1, size: 2, more: 3 });\n"
    found = claims(story, before, {"src/call.ts": call})
    assert len([c for c in found if c.rule.startswith("tsc/")]) == count


@pytest.mark.parametrize(
    ("code", "is_partial"),
    [
        ("interface Props { name: string }\n", False),
        ("import { Props } from './own';\n", False),
        ("import type { Props as P } from './own';\n", False),
        ("import { Props } from './part';\n", True),
        ("import { Props } from './passed';\n", True),
        ("import { Props } from './barrel';\n", False),
        ("import { Props as P } from './all';\n", False),
        ("import { make } from './part';\n", True),
        ("import { Base } from 'kit';\nclass Props extends Base {}\n", False),
        ("import { Base } from 'kit';\nclass Props extends Base.of<Props>() {}\n", True),
        ("import { of } from './own';\nclass Props extends of<Props>() {}\n", False),
    ],
)
def test_a_type_of_the_same_name_elsewhere_is_another_one(code: str, is_partial: bool) -> None:
    sources = {
        "own.ts": b"export interface Props { name: string }\n",
        "part.ts": b"import { BP } from 'kit';\nexport interface Props extends BP { id: number }\n",
        "passed.ts": b"export { Props } from './part';\n",
        "barrel.ts": b"export { Props } from './own';\n",
        "all.ts": b"export * from './barrel';\n",
        "use.ts": code.encode(),
    }
    assert PartialTypes(sources, [*sources], {}).is_partial("Props", "use.ts") is is_partial


def test_types_made_to_be_deep_end_no_review() -> None:
    chain = "".join(f"export interface A{n} extends A{n + 1} {{}}\n" for n in range(900))
    nested = f"export type N = {'(' * 900}A0{')' * 900};\n"
    data = (chain + nested).encode()
    assert PartialTypes({"a.ts": data}, ["a.ts"], {}).is_partial("N", "a.ts") is False


def test_a_file_of_empty_lines_is_read_in_linear_time() -> None:
    assert growth(lambda size: partial(_declares_globally, b"\n" * size)) < 8


@typed
@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ("save(1);\nsave(2);\n", "save(1);\nsave(2);\nsave(3);\n", 0),
        ("save(1);\nsave(2);\nawait save(3);\n", "save(1);\nsave(2);\nsave(3);\n", 1),
        ("", "save(3);\n", 1),
        ("", "export const go = () => {\n  save(3);\n};\n", 0),
        ("", "export const go = async () => {\n  save(3);\n};\n", 1),
        ("async () => {\n  await save(3);\n}\n", "() => {\n  save(3);\n}\n", 1),
        ("void save(1);\nvoid save(2);\n", "void save(1);\nvoid save(2);\nsave(3);\n", 1),
    ],
)
def test_where_nobody_waits_for_promises_a_new_one_is_no_oversight(
    story: Story, before: str, after: str, count: int
) -> None:
    begin = "import { save } from './store';\n"
    habit = f"{begin}save(1);\nsave(2);\n"
    old: Files = {"src/go.ts": begin + before, "src/habit.ts": habit}
    new: Files = {"src/go.ts": begin + after, "src/habit.ts": f"// starts\n{habit}"}
    found = claims(story, {**PROJECT, **old}, new)
    assert [c.rule for c in found] == ["oxlint/typescript/no-floating-promises"] * count


@typed
@pytest.mark.parametrize(("waits", "count"), [(False, 0), (True, 1)])
def test_what_other_files_leave_alone_may_be_left_alone(
    story: Story, waits: bool, count: int
) -> None:
    log = "class Log { async warn(text: string) { return text; } }\nexport const log = new Log();\n"
    begin, call = "import { log } from './log';\n", "await log.warn('a');\n"
    other = f"{begin}log.warn('a');\nlog.warn('b');\n{call if waits else ''}"
    before: Files = {**PROJECT, "src/log.ts": log, "src/other.ts": other}
    found = claims(story, before, {"src/new.ts": f"{begin}log.warn('c');\n"})
    assert [c.rule for c in found] == ["oxlint/typescript/no-floating-promises"] * count


def test_without_the_programs_the_review_says_so(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.change({"a.ts": "\n"}, {"a.ts": "debugger;\n"})
    context = story.context()
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    monkeypatch.setenv("PATH", "/nonexistent")
    (skipped,) = ScriptCheckers().run(context).skipped
    assert "npm install -g oxlint oxlint-tsgolint" in skipped.reason
    with write_temporary_checkout({"a.ts": "debugger;"}) as laid:
        assert json.loads(run_oxlint(laid, ["a.ts"])) == {"diagnostics": []}


@typed
def test_an_error_that_a_line_had_before_it_was_edited_is_not_new(story: Story) -> None:
    before = "const n: number = 'a';\nexport const twice = (m: number) => n * m;\n"
    assert claims(story, {"a.ts": before}, {"a.ts": before.replace("'a'", "('a')")}) == []


@typed
@pytest.mark.parametrize(("message", "count"), [("twice('a')", 0), ("twice()", 1)])
def test_an_error_of_types_that_a_file_has_already_is_not_new(
    story: Story, message: str, count: int
) -> None:
    code = f"const twice = (m: number) => 2 * m;\nexport const all = (m: number) => {message};\n"
    more = f"{code}export const more = (m: number) => {message};\n"
    found = claims(story, {"a.ts": code}, {"a.ts": more})
    assert len(found) == count


@typed
@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.ts", "const d = load();\n", "load().then(show);\n"),
        ("a.js", "if (kind) show();\n", "if (kind === 'a') show();\n"),
        ("a.js", "show(kind);\n", "show(/** @type {!Missing} */ (kind));\n"),
        (
            "a.ts",
            "let p: Promise<number> | null = null;\n",
            "let p: Promise<number> | null = null;\nif (!p) p = load();\n",
        ),
    ],
)
def test_what_a_script_means_to_do_is_not_said(
    story: Story, path: str, before: str, after: str
) -> None:
    story.commit({"tsconfig.json": '{"compilerOptions": {"strict": false}}'})
    begin = "async function load() { return 1; }\nfunction show() {}\nconst kind = () => {};\n"
    found = claims(story, {path: begin + before}, {path: begin + after})
    assert [c.rule for c in found if c.confidence >= 0.8] == []


@typed
@pytest.mark.parametrize(("inside", "count"), [(True, 0), (False, 1)])
def test_a_function_that_replaces_itself_means_to(story: Story, inside: bool, count: int) -> None:
    middle = ("  load = () => 1;\n", "}\n") if inside else ("}\n", "load = () => 1;\n")
    code = f"function load() {{\n{''.join(middle)}load();\n"
    found = claims(story, {"a.js": "\n"}, {"a.js": code})
    assert [c.rule for c in found] == ["oxlint/eslint/no-func-assign"] * count


@typed
@pytest.mark.parametrize(("named", "count"), [("type save", 0), ("save", 1)])
def test_a_variable_may_have_the_name_of_an_imported_type(
    story: Story, named: str, count: int
) -> None:
    own = "let save: number;\n" if count == 0 else ""
    code = f"import {{ {named} }} from './store';\n{own}save = 1;\nexport const n: number = 1;\n"
    found = claims(story, PROJECT, {"src/n.ts": code})
    assert [c.rule for c in found if "import" in c.rule] == [
        "oxlint/eslint/no-import-assign"
    ] * count


@typed
def test_without_a_configuration_the_compiler_is_strict(story: Story) -> None:
    code = "export const size = (list?: number[]) => list?.length;\n"
    (claim,) = claims(story, {"a.ts": code}, {"a.ts": code.replace("?.length", ".length")})
    assert claim.rule == "tsc/TS18048"


@typed
def test_a_flood_of_errors_is_said_in_one_sentence(story: Story) -> None:
    flood = "".join(f"export const n{i}: number = 'a';\n" for i in range(9))
    story.change({"a.ts": "\n"}, {"a.ts": flood})
    report = ScriptCheckers().run(story.context())
    assert report.claims == ()
    assert "more than 8 new errors" in report.skipped[0].reason


def test_a_module_is_read_where_an_import_may_name_it_and_not_where_its_name_is_a_word() -> None:
    _, named = _compile_import("lib/rates.ts")
    for written in ("'./rates'", '"../lib/rates.js"', "'./rates?raw'", "'@shop/rates/'"):
        assert named.search(f"import x from {written};".encode())
    for other in ("'./rates-old'", "'./prorates'", "'./a'; // rates", "'./a'; rates('b')"):
        assert not named.search(f"import x from {other};".encode())
    assert _compile_import("lib/index.ts")[0] == b"lib"
    assert _compile_import("lib/index.ts")[1].search(b"import x from '..'; // lib")
