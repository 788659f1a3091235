"""What a change takes away from others and syntax that it breaks; which errors of Java missing classes may cause."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from regreen.languages.compilers import JavaCompiler
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
        "the module has a form for each platform now",
        {"a.ts": TS, "b.ts": "import { unit } from './a';\n"},
        {"a.ts": None, "a.native.ts": TS, "a.web.ts": TS},
    ),
    (
        "a generic function is what a generic type is of",
        {"a.ts": "export {};\n"},
        {"a.ts": "export const all = (() => []) as unknown as Array<<T>(x: T) => T>;\nexport const shifted = 1 << 2;\n"},
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


def test_a_field_is_not_the_method_of_its_name(tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    file = "class Box {{\n  boolean run = true;\n  void run() {{\n    {}\n  }}\n}}\n"
    story.change(
        {"Box.java": file.format("check(save(1));")}, {"Box.java": file.format("save(1);")}
    )
    hit = Diagnostic("lost", "Box.java", 4, 4, "the value of `save` is thrown away")
    assert _was_used_before(hit, story.context())


KNOWN_JAVA = """package known;
public class Type extends RuntimeException {
    public static class Checked extends Exception {}
    public interface Face { void face(); }
    public @interface Mark {}
}
"""
TWINS: list[tuple[str, str, str]] = [
    ("a method of a class that inherits", "class A extends Type {} class B { void b(A a) { a.gone(); } }", "cant.resolve.location.args"),
    ("a field of a class that inherits", "class A extends Type {} class B { int b(A a) { return a.gone; } }", "cant.resolve.location"),
    ("a method of a class that is marked for a processor", "@Type.Mark class A {} class B { void b(A a) { a.gone(); } }", "cant.resolve.location.args"),
    ("a method that is inherited", "class A extends Type { void b() { gone(); } }", "cant.resolve.location.args"),
    ("a method that an outer class inherits", "class A extends Type { class B { void b() { gone(); } } }", "cant.resolve.location.args"),
    ("a method of a type parameter", "class A extends Type {} class B { <T extends A> void b(T a) { a.gone(); } }", "cant.resolve.location.args"),
    ("a static method where an instance method is named", "class A extends Type { void a() {} } class B { void b() { A.a(); } }", "non-static.cant.be.ref"),
    ("a constructor of a class that is marked for a processor", "@Type.Mark class A { A(int n) {} } class B { Object b() { return new A(1, 2); } }", "cant.apply.symbol"),
    ("a parameter", 'class A { void a(Type it) {} void b() { a(""); } }', "prob.found.req"),
    ("a parameter of one candidate", 'class A { void a(Type it) {} void a(int n) {} void b() { a(""); } }', "cant.apply.symbols"),
    ("an array of any type that a parameter holds", 'class A { void a(java.util.List<? extends Type[]> it) {} void b() { a(""); } }', "prob.found.req"),
    ("an argument that inherits", "class C extends Type {} class A { void a(Comparable<?> it) {} void b(C c) { a(c); } }", "prob.found.req"),
    ("an argument that inherits, for two candidates", "class C extends Type {} class A { void a(Comparable<?> it) {} void a(int n) {} void b(C c) { a(c); } }", "cant.apply.symbols"),
    ("an argument that is a method reference", "class A { int c(Type it, int n) { return 1; } void a(Runnable it) {} void a(int n) {} void b() { a(this::c); } }", "cant.apply.symbols"),
    ("a value that a lambda decides", 'class A { String b(java.util.stream.Stream<String> all, Type it) { return all.map(x -> { Type y = it; return y; }).collect(java.util.stream.Collectors.joining("")); } }', "cant.apply.symbols"),
    ("a parameter of a constructor", "class A { A(Type it) {} } class B { Object b() { return new A(1); } }", "prob.found.req"),
    ("a parameter of the parent's constructor", "class A { A(Type it) {} } class B extends A { B() { super(1); } }", "prob.found.req"),
    ("a constructor of a marked parent, called unsaid", "@Type.Mark class A { A(int n) {} } class B extends A { B() {} }", "cant.apply.symbol"),
    ("a value that inherits", "class C extends Type {} class A { Comparable<?> b(C c) { return c; } }", "prob.found.req"),
    ("a part of a value", 'class A { Object a(Object x) { return x; } int b(Type it) { return a(it); } }', "prob.found.req"),
    ("a method that an override may be of", "interface A { void a(int n, Type it); } class B implements A { @Override public void a(String s, Type it) {} public void a(int n, Type it) {} }", "method.does.not.override.superclass"),
    ("a parent that an override may be of", "class A extends Type {} class B extends A { @Override public void gone() {} }", "method.does.not.override.superclass"),
    ("an interface that an override may be of", "class A implements Type.Face { @Override public void face() {} @Override public void gone() {} }", "method.does.not.override.superclass"),
    ("a method of a type parameter with two bounds", "class A extends Type {} class B { <T extends A & java.io.Serializable> void b(T a) { a.gone(); } }", "cant.resolve.location.args"),
    ("a marked parent that an override may be of", "@Type.Mark class A {} class B extends A { @Override public void gone() {} }", "method.does.not.override.superclass"),
    ("the result of an override", "class A { Type a() { return null; } } class B extends A { int a() { return 1; } }", "override.incompatible.ret"),
    ("a method that a class must have", "interface A { void a(Type it); } class B implements A { public void a(String s) {} }", "does.not.override.abstract"),
    ("a parent that may have the method", "interface C { void a(); } abstract class A extends Type {} class B extends A implements C {}", "does.not.override.abstract"),
    ("the result of a method reference", "class A { static Type a(String s) { return null; } java.util.function.Function<Integer, Type> b() { return A::a; } }", "prob.found.req"),
    ("a parameter of a method reference", "class A { static int a(Type it, int n) { return 1; } java.util.function.Function<Integer, Integer> b() { return A::a; } }", "prob.found.req"),
    ("what takes a lambda of other parameters", "class A { void a(java.util.function.Supplier<Type> it) {} void b() { a(x -> null); } }", "prob.found.req"),
    ("what takes a lambda that throws", "class A { void a(Runnable it, Type other) {} void b() { a(() -> { throw new Exception(); }, null); } }", "unreported.exception.need.to.catch.or.throw"),
    ("what takes a lambda of another result", 'class A { void a(java.util.function.Supplier<Integer> it, Type other) {} void b() { a(() -> "", null); } }', "prob.found.req"),
    ("an exception that is thrown", "class C extends Type.Checked {} class A { void b(C c) { throw c; } }", "unreported.exception.need.to.catch.or.throw"),
    ("an exception that a call throws", "class C extends Type.Checked {} class A { void a() throws C {} void b() { a(); } }", "unreported.exception.need.to.catch.or.throw"),
    ("a call that may throw what is caught", "class A { void b(Type it) { try { it.hashCode(); } catch (java.io.IOException e) {} } }", "except.never.thrown.in.try"),
]  # fmt: skip
SURE: list[tuple[str, str, list[str]]] = [
    ("an argument of an unknown method", "class A { void b(Type it) { it.call(new A().gone()); } }", ["cant.resolve.location.args"]),
    ("two errors in one call", "class A { void a(int x, int y) {} void b() { a(new A().gone(), new A().lost()); } }", ["cant.resolve.location.args", "cant.resolve.location.args"]),
    ("another number of arguments", "class A { void a(Type it) {} void b() { a(null, 1); } }", ["cant.apply.symbol"]),
    ("a constructor, which nothing inherits", "class A extends Type { A(int n) {} } class B { Object b() { return new A(1, 2); } }", ["cant.apply.symbol"]),
    ("a call in a lambda for an unknown method", "class A { void b() { Type.call(() -> new A().gone()); } }", ["cant.resolve.location.args"]),
    ("an override in a class that is marked itself", "@Type class A { @Override public void gone() {} }", ["method.does.not.override.superclass"]),
    ("a statement among unknown ones", 'class A { void b() { Type.call(); int n = ""; if (n > 1) { Type.call(); } } }', ["prob.found.req"]),
    ("a lambda for a known method", 'class A { Type it; void a(java.util.function.Supplier<Integer> it) {} void b() { a(() -> ""); } }', ["prob.found.req"]),
    ("a lambda for a method that is imported by its name", "import static java.util.Objects.requireNonNullElseGet; class A { int b() { return requireNonNullElseGet(1, () -> { throw new Exception(); }); } }", ["unreported.exception.need.to.catch.or.throw"]),
    ("a lambda beside a wrong argument", 'class A { void a(int n, java.util.function.Function<String, Integer> it) {} void b() { a("", x -> x.length()); } }', ["prob.found.req"]),
    ("a class that lacks a method, with unknown members", "interface C { void a(); } class A implements C { Type it; void b() { it.call(); } }", ["does.not.override.abstract"]),
    ("a class", "class A { Gone it; }", ["cant.resolve.location"]),
    ("a method without its return", "class A { int b() { Type.call(); } }", ["missing.ret.stmt"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def java_errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What the compiler said of each file, all compiled at once: the key of each error that does not name a missing class."""
    if shutil.which("javac") is None:
        pytest.skip("javac is not installed")
    root = tmp_path_factory.mktemp("java")
    files = {
        "known/Type.java": KNOWN_JAVA,
        "left/NewTest.java": "package left; class NewTest { void a() { OldTest.gone(); } }",
        "named/A.java": "package named; import static missing.Type.run; class A { void b() { run(() -> { throw new Exception(); }); } }",
        "left/OldTest.java": "package left; class OldTest {}",
        "one/Same.java": "package same; class Same {}",
        "two/Same.java": "package same; class Same {}",
    }
    for group, rows in (("twin", [x[1] for x in TWINS]), ("sure", [x[1] for x in SURE])):
        for number, code in enumerate(rows):
            for package in ("known", "missing"):
                name = f"{group}{number}.{package}"
                text = re.sub(r"\bType\b", f"{package}.Type", code)
                files[f"{name.replace('.', '/')}/A.java"] = f"package {name};\n{text}\n"
    plan = JavaCompiler().plan_run(set(files) - {"left/OldTest.java"}, list(files), files.get)
    programs = {**plan.programs, **plan.files}
    for path, text in {**files, **{p: data.decode() for p, data in programs.items()}}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    command = f"{plan.setup} && {plan.command}".replace("/env/java", str(root / "classes"))
    done = subprocess.run(
        ["sh", "-c", command], cwd=root, capture_output=True, text=True, check=True
    )
    found: dict[str, list[str]] = {path: [] for path in files}
    for hit in JavaCompiler().parse_output(done.stdout):
        if hit.rule.startswith("compiler.err."):
            found[hit.path].append(hit.rule.removeprefix("compiler.err."))
    return found


@pytest.mark.parametrize("number", range(len(TWINS)), ids=[x[0] for x in TWINS])
def test_an_error_in_java_that_may_come_from_a_missing_class_is_dropped(
    java_errors: dict[str, list[str]], number: int
) -> None:
    said = {which: java_errors[f"twin{number}/{which}/A.java"] for which in ("missing", "known")}
    assert said == {"missing": [], "known": [TWINS[number][2]]}


@pytest.mark.parametrize("number", range(len(SURE)), ids=[x[0] for x in SURE])
def test_an_error_in_java_that_no_missing_class_explains_is_reported(
    java_errors: dict[str, list[str]], number: int
) -> None:
    assert java_errors[f"sure{number}/missing/A.java"] == SURE[number][2]


def test_classes_that_are_left_out_or_there_twice_are_no_errors_in_java(
    java_errors: dict[str, list[str]],
) -> None:
    paths = ("left/NewTest.java", "one/Same.java", "two/Same.java")
    assert [java_errors[path] for path in paths] == [[], [], []]


def test_a_lambda_for_an_imported_method_that_is_missing_may_throw_in_java(
    java_errors: dict[str, list[str]],
) -> None:
    assert java_errors["named/A.java"] == ["cant.resolve.location.args"]
