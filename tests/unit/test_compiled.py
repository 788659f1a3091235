"""JavaScript, TypeScript and Go: what a change takes away from others, and syntax that it breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from regreen.reviewers.analyzers.baseline import Diagnostic
from regreen.reviewers.analyzers.compiled.compiler_checks import _was_used_before
from tests.unit.changes import Files, Story


def said(root: Path, before: Files, after: Files) -> list[tuple[str, str, int, str]]:
    story = Story(root / "repo")
    story.change(before, after)
    return [
        (f.rule, f.path, f.line, f.side)
        for f in story.review().findings
        if f.dimension == "correctness"
    ]


REMOVED, BROKEN, SYNTAX = "contracts/removed-still-used", "contracts/broken-caller", "syntax/error"
TS = "export function area(w: number, h: number): number {\n  return w * h;\n}\nexport const unit = 'm';\n"
GO_MOD = "module example.com/shop\n\ngo 1.22\n"
GO = "package price\n\nfunc Total(net int, tax int) int {\n\treturn net + tax\n}\n\nfunc Round(x int) int { return x }\n"

FOUND: list[tuple[str, Files, Files, tuple[str, str, int, str]]] = [
    (
        "an export that is removed and still imported",
        {"src/area.ts": TS, "src/app.ts": "import { unit } from './area';\nconsole.log(unit);\n"},
        {"src/area.ts": TS.replace("export const unit = 'm';\n", "")},
        (REMOVED, "src/area.ts", 4, "LEFT"),
    ),
    (
        "an export that is renamed and still re-exported",
        {"src/area.js": "export const a = 1;\n", "src/index.js": "export { a as b } from './area.js';\n"},
        {"src/area.js": "export const c = 1;\n"},
        (REMOVED, "src/area.js", 1, "LEFT"),
    ),
    (
        "a default export that is gone",
        {"a/x.tsx": "export default function X() {\n  return <p/>;\n}\n", "b/y.tsx": "import X from '../a/x';\nexport const Y = () => <X/>;\n"},
        {"a/x.tsx": "export function X() {\n  return <p/>;\n}\n"},
        (REMOVED, "a/x.tsx", 1, "LEFT"),
    ),
    (
        "a module that is deleted and still required",
        {"lib/x.js": "export const x = 1;\n", "app.js": "const m = require('./lib/x');\nm.x;\n"},
        {"lib/x.js": None},
        (REMOVED, "lib/x.js", 1, "LEFT"),
    ),
    (
        "a parameter that callers do not pass",
        {"src/area.ts": TS, "src/app.ts": "import { area as size } from './area.js';\nexport const s = size(1, 2);\n"},
        {"src/area.ts": TS.replace("h: number)", "h: number, unit: string)")},
        (BROKEN, "src/area.ts", 1, "RIGHT"),
    ),
    (
        "a Go function that takes one more",
        {"go.mod": GO_MOD, "price/price.go": GO, "main.go": 'package main\n\nimport "example.com/shop/price"\n\nfunc main() { println(price.Total(1, 2)) }\n'},
        {"price/price.go": GO.replace("tax int)", "tax int, fee int)")},
        (BROKEN, "price/price.go", 3, "RIGHT"),
    ),
    (
        "a Go function that is removed and used in its own package",
        {"go.mod": GO_MOD, "price/price.go": GO, "price/other.go": "package price\n\nfunc twice(x int) int { return 2 * Round(x) }\n"},
        {"price/price.go": GO.replace("Round", "RoundUp")},
        (REMOVED, "price/price.go", 7, "LEFT"),
    ),
    (
        "a brace that is lost",
        {"a.go": "package a\n\nfunc f() {\n\tx := 1\n\t_ = x\n}\n"},
        {"a.go": "package a\n\nfunc f() {\n\tx := (1\n\t_ = x\n}\n"},
        (SYNTAX, "a.go", 4, "RIGHT"),
    ),
    (
        "a colon that is lost",
        {"a.py": "def f(x):\n    return x\n"},
        {"a.py": "def f(x)\n    return x\n"},
        (SYNTAX, "a.py", 1, "RIGHT"),
    ),
    (
        "a bracket that is lost in Rust",
        {"a.rs": "fn f() -> i32 {\n    g(1)\n}\n"},
        {"a.rs": "fn f() -> i32 {\n    g(1\n}\n"},
        (SYNTAX, "a.rs", 2, "RIGHT"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("what", "before", "after", "expected"), FOUND, ids=[f[0] for f in FOUND])
def test_it_is_said(
    tmp_path: Path, what: str, before: Files, after: Files, expected: tuple[str, str, int, str]
) -> None:
    assert said(tmp_path, before, after) == [expected], what


SILENT: list[tuple[str, Files, Files]] = [
    (
        "every importer was changed too",
        {"a.ts": TS, "b.ts": "import { unit } from './a';\n"},
        {"a.ts": TS.replace("unit", "units"), "b.ts": "import { units } from './a';\n"},
    ),
    (
        "the name comes from elsewhere now",
        {"a.ts": TS, "b.ts": "import { unit } from './a';\n"},
        {"a.ts": TS.replace("export const unit = 'm';\n", "export * from './c';\n"), "c.ts": "export const unit = 'm';\n"},
    ),
    (
        "another module of that name is meant",
        {"a/x.ts": TS, "b/x.ts": "export const unit = 1;\n", "b/y.ts": "import { unit } from './x';\n"},
        {"a/x.ts": TS.replace("export const unit = 'm';\n", "")},
    ),
    (
        "a new parameter is optional, or the caller is plain JavaScript",
        {"a.ts": TS, "b.ts": "import { area } from './a';\narea(1, 2);\n", "c.js": "import { area } from './a';\narea(1);\n"},
        {"a.ts": TS.replace("h: number)", "h: number, deep?: number)")},
    ),
    (
        "the caller's name is its own",
        {"a.ts": TS, "b.ts": "import { area } from './a';\nexport function f(area: (x: number, y: number) => void) { area(1, 2); }\n"},
        {"a.ts": TS.replace("w: number, h: number", "w: number").replace("w * h", "w")},
    ),
    (
        "a module moved and an index took its place",
        {"a/x.js": "export const x = 1;\n", "b.js": "import { x } from './a/x';\n"},
        {"a/x.js": None, "a/x/index.js": "export const x = 1;\n"},
    ),
    (
        "a module that speaks CommonJS too",
        {"a.js": "export const x = 1;\nmodule.exports = { x };\n", "b.js": "import { x } from './a';\n"},
        {"a.js": "module.exports = { x: 1 };\n"},
    ),
    (
        "a Go name that moved to another file of its package",
        {"go.mod": GO_MOD, "p/a.go": "package p\n\nfunc F() {}\n", "p/b.go": "package p\n\nfunc g() { F() }\n"},
        {"p/a.go": "package p\n\nfunc H() {}\n", "p/c.go": "package p\n\nfunc F() {}\n"},
    ),
    (
        "a Go name that the caller shadows, and one result that is many arguments",
        {"go.mod": GO_MOD, "price/a.go": GO, "price/b.go": "package price\n\nfunc two() (int, int) { return 1, 2 }\nfunc f() int { return Total(two()) }\nfunc g() { Round := func() {}; Round() }\n"},
        {"price/a.go": GO.replace("tax int)", "tax ...int)").replace("net + tax", "net + tax[0]").replace("Round(x int)", "Round(x, y int)")},
    ),
    (
        "Go for one system only",
        {"go.mod": GO_MOD, "p/a_linux.go": "package p\n\nfunc F() {}\n", "p/b.go": "package p\n\nfunc g() { F() }\n"},
        {"p/a_linux.go": "package p\n\nfunc F(x int) {}\n"},
    ),
    (
        "syntax that was broken before",
        {"a.js": "const x = (1;\n", "t.py": "print 'x'\n"},
        {"a.js": "const y = (1;\n", "t.py": "print 'y'\n"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("what", "before", "after"), SILENT, ids=[f[0] for f in SILENT])
def test_nothing_is_said(tmp_path: Path, what: str, before: Files, after: Files) -> None:
    assert said(tmp_path, before, after) == [], what


def test_a_function_that_newer_versions_of_go_have_is_not_missed(tmp_path: Path) -> None:
    own = "func {}(a, b int) int {{\n\tif a < b {{\n\t\treturn a\n\t}}\n\treturn b\n}}\n"
    use = "package a\n\nfunc F() int {{ return {}(1, 2) }}\n\n"
    for name, count in (("min", 0), ("lower", 1)):
        text = use.format(name)
        found = said(
            tmp_path / name, {"go.mod": GO_MOD, "a.go": text + own.format(name)}, {"a.go": text}
        )
        assert len(found) == count


@pytest.mark.parametrize(
    ("before", "looked"),
    [
        ("if err := save(a); err != nil {\n\t\tpanic(err)\n\t}", True),
        ("err := save(a)\n\tuse(err)", True),
        ("return save(a)", True),
        ("_ = save(a)", False),
        ("save(a)", False),
        ("defer save(a)", False),
        ("other(a)", False),
    ],
)
def test_a_value_is_lost_only_where_it_was_looked_at_before(
    before: str, looked: bool, tmp_path: Path
) -> None:
    story = Story(tmp_path / "repo")
    file = "package a\n\nfunc run(a, b int) {{\n\t{}\n}}\n"
    story.change({"a.go": file.format(before)}, {"a.go": file.format("_ = save(a, b)")})
    hit = Diagnostic("blank-error", "a.go", 4, 4, "the error of `save` is thrown away")
    assert _was_used_before(hit, story.context()) is looked
