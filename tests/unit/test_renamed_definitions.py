"""A definition that a commit renamed or moved, followed to the places that a compiler names."""

from __future__ import annotations

from pathlib import Path

import pytest

from regreen.fixers.recipes.renamed_definitions import (
    follow_change,
    follow_renamed_definitions,
)
from tests.unit.repairs import Repository

GO = "package tax\n\n// {0} adds tax.\nfunc {0}(net int) int {{ return net * 119 / 100 }}\n"
BILL = (
    'package bill\n\nimport "example.org/tax"\n\nfunc Bill(net int) int { return tax.Grs(net) }\n'
)
SUMS = "export function twice(value: number): number {\n  return value + value\n}\n"
ONE = "export const one = (): number => 1\n"
USE = "import { one, twice } from '../lib/tools';\n\nexport const two = twice(one())\n"


def test_a_renamed_function_of_go(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"tax/tax.go": GO.format("Grs"), "bill/bill.go": BILL})
    culprit = repository.commit("name it", {"tax/tax.go": GO.format("Gross")})
    rev = repository.commit("note", {"a.txt": ""})
    said = "bill/bill.go:5:37: undefined: tax.Grs\n"
    found = follow_renamed_definitions(repository.open(), rev, None, said, {"bill/bill.go": {5}})
    assert found is not None
    assert (found.culprit, found.summary, found.is_guess) == (culprit, "Grs is Gross", False)
    assert found.texts == {"bill/bill.go": BILL.replace("Grs", "Gross")}


CONSTANTS = [
    ("tax.rs", "const {0}: u64 = 119;\nconst BASE: u64 = 100;\nfn gross(net: u64) -> u64 {{ net * {1} / BASE }}\n",
     "error[E0425]: cannot find value `RATE` in this scope\n --> tax.rs:3:38\n"),
    ("tax.go", "package tax\n\nconst {0} = 119\nfunc gross(net int) int {{ return net * {1} / 100 }}\n", "tax.go:4:41: undefined: RATE\n"),
    ("Tax.java", "class Tax {{\n  static final int {0} = 119;\n  int gross(int net) {{ return net * {1} / 100; }}\n}}\n",
     "Tax.java:3: error: cannot find symbol\n    symbol:   variable RATE\n"),
    ("tax.ts", "export const {0} = 119;\nexport function gross(net: number) {{ return net * {1} / 100 }}\n", "tax.ts(2,51): error TS2304: Cannot find name 'RATE'.\n"),
]  # fmt: skip


@pytest.mark.parametrize("row", CONSTANTS, ids=[row[0] for row in CONSTANTS])
def test_a_renamed_constant_is_followed_and_one_of_another_value_is_not(
    tmp_path: Path, row: tuple[str, str, str]
) -> None:
    path, text, said = row
    line = 1 + text.partition("{1}")[0].count("\n")
    for new, follows in ((text, True), (text.replace("119", "107"), False)):
        repository = Repository(tmp_path / str(follows))
        repository.commit("start", {path: text.format("RATE", "RATE")})
        rev = repository.commit("name it", {path: new.format("PERCENT", "RATE")})
        found = follow_renamed_definitions(repository.open(), rev, None, said, {path: {line}})
        wanted = {path: new.format("PERCENT", "PERCENT")} if follows else None
        assert (found.texts if found else None) == wanted


def test_a_method_is_followed_beside_a_field_of_its_name(tmp_path: Path) -> None:
    text = "class Box {{\n  private int size = 1;\n  int {0}() {{ return this.size; }}\n}}\n"
    use = "class Use {{\n  int twice(Box box) {{ return 2 * box.{0}(); }}\n}}\n"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"Box.java": text.format("size"), "Use.java": use.format("size")})
    rev = repository.commit("name it", {"Box.java": text.format("count")})
    said = "Use.java:2: error: cannot find symbol\n    symbol:   method size()\n"
    found = follow_renamed_definitions(repository.open(), rev, None, said, {"Use.java": {2}})
    assert found is not None
    assert found.texts == {"Use.java": use.format("count")}


def test_a_field_without_a_value_is_followed_for_a_person(tmp_path: Path) -> None:
    """Two fields of one type may have nothing else in common."""
    text = "class Box {{\n  int {0};\n  int read() {{ return {1}; }}\n}}\n"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"Box.java": text.format("size", "size")})
    rev = repository.commit("name it", {"Box.java": text.format("limit", "size")})
    said = "Box.java:3: error: cannot find symbol\n    symbol:   variable size\n"
    found = follow_renamed_definitions(repository.open(), rev, None, said, {"Box.java": {3}})
    assert found is not None
    assert found.is_guess


def test_a_rename_that_meets_more_than_calls_is_a_guess(tmp_path: Path) -> None:
    """A key, a text or a member of something else can bear the same word."""
    repository = Repository(tmp_path / "repo")
    lib = "export function {0}(xs) {{\n  return xs.length + 1\n}}\n"
    use = "import {{ total }} from './lib.js'\nexport const card = xs => ({0})\n"
    repository.commit("start", {"lib.js": lib.format("total"), "use.js": use.format("total(xs)"), "card.js": use.format("{ total: total(xs) }")})  # fmt: skip
    rev = repository.commit("name it", {"lib.js": lib.format("sum")})
    guesses = {}
    for path in ("use.js", "card.js"):
        said = f"{path}:1: SyntaxError: './lib.js' does not provide an export named 'total'\n"
        found = follow_renamed_definitions(repository.open(), rev, None, said, {path: {1}})
        guesses[path] = found.is_guess if found else None
    assert guesses == {"use.js": False, "card.js": True}


@pytest.mark.parametrize("ending", ["", ".js", ".ts"])
def test_a_moved_export_of_typescript(tmp_path: Path, ending: str) -> None:
    repository = Repository(tmp_path / "repo")
    use = USE.replace("tools'", f"tools{ending}'")
    repository.commit("start", {"src/lib/tools.ts": ONE + SUMS, "src/app/use.ts": use})
    rev = repository.commit("move", {"src/lib/tools.ts": ONE, "src/lib/sums.ts": SUMS})
    said = f"src/app/use.ts(1,15): error TS2305: Module '\"../lib/tools{ending}\"' has no exported member 'twice'.\n"
    found = follow_renamed_definitions(repository.open(), rev, None, said, {"src/app/use.ts": {1}})
    assert found is not None
    assert found.texts["src/app/use.ts"] == (
        f"import {{ one }} from '../lib/tools{ending}';\nimport {{ twice }} from '../lib/sums{ending}';\n\nexport const two = twice(one())\n"
    )


def test_what_was_taken_away_for_good_is_not_followed(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"tax/tax.go": GO.format("Grs"), "bill/bill.go": BILL})
    rev = repository.commit("other", {"tax/tax.go": "package tax\n\nfunc Log(text string) { println(text); println(text) }\n"})  # fmt: skip
    said = "bill/bill.go:5:37: undefined: tax.Grs\n"
    assert follow_renamed_definitions(repository.open(), rev, None, said, {"bill/bill.go": {5}}) is None  # fmt: skip


def test_members_of_another_object_keep_the_name_of_a_renamed_function(tmp_path: Path) -> None:
    text = "function {0}(to, key) {{\n  to[key] = 1;\n}}\n\nexport const a = new Map();\na.set('x', 1);\n{1}(a, 'y', ...{1}());\n"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"full.js": text.format("set", "set")})
    rev = repository.commit("say what it does", {"full.js": text.format("define", "set")})
    found = follow_change(repository.open(), rev, None, "full.js:7: set is not defined\n", {"full.js": {7}})  # fmt: skip
    assert found is not None
    assert found.texts == {"full.js": text.format("define", "define")}
    assert found.is_guess


GROWN = [
    ("tax.go", "func gross(net int{0}) int {{ return net }}\n", ", loud bool", ("a := gross(1{0})\n", "b := gross(2{0})\n"), ", false",
     "tax.go:3:10: not enough arguments in call to gross\n\thave (number)\n\twant (int, bool)\n"),
    ("Tax.java", "  int gross(int net{0}) {{ return net; }}\n", ", boolean loud", ("  int a() {{ return gross(1{0}); }}\n", "  int b() {{ return gross(2{0}); }}\n"), ", false",
     "Tax.java:3: error: method gross in class Tax cannot be applied to given types;\n"),
    ("tax.ts", "function gross(net: number{0}) {{ return net }}\n", ", loud: boolean", ("const a = gross(f(1){0})\n", "const b = gross(f(2){0})\n"), ", false",
     "tax.ts(3,11): error TS2554: Expected 2 arguments, but got 1.\n"),
    ("tax.rs", "fn gross({0}) {{}}\n", "loud: bool", ("fn a() {{ gross({0}) }}\n", "fn b() {{ gross({0}) }}\n"), "false",
     "error[E0061]: this function takes 1 argument but 0 arguments were supplied\n --> tax.rs:3:10\n"),
]  # fmt: skip


@pytest.mark.parametrize("row", GROWN, ids=[row[0] for row in GROWN])
def test_a_call_gets_the_argument_that_all_other_calls_got(
    tmp_path: Path, row: tuple[str, str, str, tuple[str, str], str, str]
) -> None:
    path, definition, parameter, calls, argument, said = row

    def write(grown: str, given: str, forgotten: str) -> str:
        return definition.format(grown) + calls[0].format(given) + calls[1].format(forgotten)

    repository = Repository(tmp_path / "repo")
    repository.commit("start", {path: write("", "", "")})
    rev = repository.commit("loud", {path: write(parameter, argument, "")})
    found = follow_change(repository.open(), rev, None, said, {path: {1, 3}})  # and the definition
    assert found is not None
    assert found.texts == {path: write(parameter, argument, argument)}
    assert found.is_guess


@pytest.mark.parametrize("row", GROWN, ids=[row[0] for row in GROWN])
def test_a_call_loses_the_argument_that_a_commit_took_from_the_function(
    tmp_path: Path, row: tuple[str, str, str, tuple[str, str], str, str]
) -> None:
    path, definition, parameter, calls, argument, said = row

    def write(grown: str, given: str, forgotten: str) -> str:
        return definition.format(grown) + calls[0].format(given) + calls[1].format(forgotten)

    repository = Repository(tmp_path / "repo")
    repository.commit("start", {path: write(parameter, argument, argument)})
    rev = repository.commit("quiet", {path: write("", "", argument)})
    said = said.replace("not enough", "too many")
    found = follow_change(repository.open(), rev, None, said, {path: {3}})
    assert found is not None
    assert found.texts == {path: write("", "", "")}
    assert found.is_guess


def test_the_argument_that_a_method_lost_is_the_one_at_its_place(tmp_path: Path) -> None:
    text = "    fn gross(&self, {0}net: u8) {{}}\n    fn a(&self) {{ self.gross({1}1) }}\n    fn b(&self) {{ self.gross({2}pair(1, 2)) }}\n"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"tax.rs": text.format("loud: bool, ", "true, ", "f(1, 2), ")})
    rev = repository.commit("quiet", {"tax.rs": text.format("", "", "f(1, 2), ")})
    said = "error[E0061]: this method takes 1 argument but 2 arguments were supplied\n --> tax.rs:3:10\n"
    found = follow_change(repository.open(), rev, None, said, {"tax.rs": {3}})
    assert found is not None
    assert found.texts == {"tax.rs": text.format("", "", "")}


def test_calls_that_got_different_arguments_name_none(tmp_path: Path) -> None:
    text = "func gross(net int{0}) int {{ return net }}\na := gross(1{1})\nb := gross(2{2})\nc := gross(3)\n"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"tax.go": text.format("", "", "")})
    rev = repository.commit("loud", {"tax.go": text.format(", loud bool", ", true", ", false")})
    said = "tax.go:4:10: not enough arguments in call to gross\n"
    assert follow_change(repository.open(), rev, None, said, {"tax.go": {4}}) is None


GO_HELPER = "// low tells the smaller one.\nfunc low(a, b int) int {\n\tif a < b {\n\t\treturn a\n\t}\n\treturn b\n}\n\n"
GO_USE = "package tax\n\n%sfunc Cap(n int) int { return low(n, 9) }\n"
TS_HELPER = "  function skip() {\n    at++\n  }\n\n"
TS_USE = "export function parse(text: string) {\n  let at = 0\n\n%s  skip()\n  return text[at]\n}\n"


@pytest.mark.parametrize(
    ("path", "text", "helper", "said"),
    [
        ("tax.go", GO_USE, GO_HELPER, "./tax.go:4:30: undefined: low\n"),
        ("parse.ts", TS_USE, TS_HELPER, "parse.ts(5,3): error TS2304: Cannot find name 'skip'.\n"),
    ],
)
def test_a_function_that_a_commit_took_from_its_callers_is_given_back(
    tmp_path: Path, path: str, text: str, helper: str, said: str
) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {path: text % helper})
    culprit = repository.commit("tidy up", {path: text % "" + "// more\n"})
    rev = repository.commit("note", {path: "// note\n" + text % "" + "// more\n"})
    found = follow_change(repository.open(), rev, None, said, {path: {4}})
    assert found is not None
    assert (found.culprit, found.is_guess) == (culprit, True)
    assert found.summary in {"low given back", "skip given back"}
    assert found.texts == {path: "// note\n" + text % helper + "// more\n"}


def test_what_stands_in_the_place_of_a_function_is_kept(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"tax.go": GO_USE % GO_HELPER})
    high = "func high(a, b int) (int, error) {\n\treturn max(a, b), nil\n}\n\n"
    rev = repository.commit("other", {"tax.go": GO_USE % high})
    said = "./tax.go:7:30: undefined: low\n"
    assert follow_change(repository.open(), rev, None, said, {"tax.go": {7}}) is None


@pytest.mark.parametrize(
    "said",
    [
        "Cannot find module '../src/equal' from 'test/equal.spec.ts'\n",
        "test/equal.spec.ts(1,24): error TS2307: Cannot find module '../src/equal' or its corresponding type declarations.\n",
        'Error: Failed to resolve import "../src/equal" from "test/equal.spec.ts". Does the file exist?\n',
    ],
)
def test_the_imports_of_a_moved_script_follow_it(tmp_path: Path, said: str) -> None:
    repository = Repository(tmp_path / "repo")
    test = "import { isEqual } from '../src/equal';\nimport { one } from '../src/one';\njest.mock('../src/equal');\n"
    source = "import { one } from './one';\n\nexport const isEqual = (a, b) =>\n  one(a) === one(b);\n\nexport default isEqual;\n"
    repository.commit("start", {"test/equal.spec.ts": test, "src/equal.ts": source, "src/one.ts": ONE})  # fmt: skip
    culprit = repository.commit("sort", {"src/equal.ts": None, "src/core/equal.ts": source})
    rev = repository.commit("note", {"src/two.ts": ONE})
    places = {"test/equal.spec.ts": {1}, "src/core/equal.ts": {1}}
    found = follow_change(repository.open(), rev, None, said, places)
    assert found is not None
    assert (found.culprit, found.is_guess) == (culprit, False)
    assert found.texts == {
        "test/equal.spec.ts": test.replace("src/equal", "src/core/equal"),
        "src/core/equal.ts": source.replace("./one", "../one"),
    }


def test_a_script_that_is_gone_for_good_is_not_followed(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    test = "import { one } from '../src/one';\n"
    repository.commit("start", {"test/a.spec.ts": test, "src/one.ts": ONE})
    rev = repository.commit("other", {"src/one.ts": None, "src/sums.ts": SUMS})
    said = "Cannot find module '../src/one' from 'test/a.spec.ts'\n"
    assert follow_change(repository.open(), rev, None, said, {"test/a.spec.ts": {1}}) is None


@pytest.mark.parametrize(
    ("path", "text", "word", "said"),
    [
        ("index.js", "const own = 1;\n\n%sfunction unflatten (x) {\n  return x;\n}\n", "export ", "SyntaxError: The requested module './index.js' does not provide an export named 'unflatten'\n"),
        ("src/tax.rs", "const OWN: u8 = 1;\n\n%sfn gross(n: u64) -> u64 {\n    n\n}\n", "pub(crate) ", "error[E0603]: function `gross` is private\n"),
        ("Tax.java", "class Tax {\n  %sint gross(int n) {\n    return n;\n  }\n}\n", "public ", "Use.java:3: error: gross(int) is not public in Tax; cannot be accessed from outside package\n"),
    ],
)  # fmt: skip
def test_a_definition_that_a_commit_hid_from_its_users_is_given_back(
    tmp_path: Path, path: str, text: str, word: str, said: str
) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {path: text % word})
    culprit = repository.commit("tidy up", {path: text % ""})
    rev = repository.commit("note", {path: "// note\n" + text % ""})
    found = follow_change(repository.open(), rev, None, said, {path: {4}})
    assert found is not None
    assert (found.culprit, found.is_guess) == (culprit, True)
    assert found.texts == {path: "// note\n" + text % word}


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("hooks.ts", "function each({0}) {{ return 1 }}\neach({1});\neach({1});\n  each({2});\n", "hooks.ts(4,8): error TS2345: Argument of type 'A' is not assignable to parameter of type 'B'.\n"),
        ("hooks.go", "package hooks\nfunc each({0}) {{ use({1}) }}\nfunc a() {{ each({1}) }}\nfunc b() {{ each({2}) }}\n", "./hooks.go:4:17: cannot use list (variable of type A) as B value in argument to each\n"),
    ],
)  # fmt: skip
def test_arguments_that_a_commit_put_in_another_order_are_so_in_a_forgotten_call(
    tmp_path: Path, path: str, text: str, said: str
) -> None:
    old, new = "list, f(1, 2), event", "event, list, f(1, 2)"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {path: text.format("a, b, c", old, old)})
    rev = repository.commit("the event comes first", {path: text.format("c, a, b", new, old)})
    found = follow_change(repository.open(), rev, None, said, {path: {4}})
    assert found is not None
    assert found.is_guess
    assert found.texts == {path: text.format("c, a, b", new, new)}


def test_functions_of_rust_that_moved_to_another_module_are_imported(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    helpers = "fn one(x: u8) -> u8 {\n    x - b'0'\n}\n\nfn two(x: u8, y: u8) -> u8 {\n    one(x) * 10 + one(y)\n}\n"
    rest = "//! Dates.\n\nuse std::fmt;\n\n%spub fn day(x: u8, y: u8) -> u8 {\n    one(x) + two(x, y)\n}\n"
    repository.commit("start", {"core/src/date.rs": rest % f"{helpers}\n", "core/src/lib.rs": "mod date;\n"})  # fmt: skip
    moved = helpers.replace("fn one", "pub(crate) fn one").replace("fn two", "pub(crate) fn two")
    rev = repository.commit("move", {"core/src/date.rs": rest % "", "core/src/read/digits.rs": moved})  # fmt: skip
    said = "error[E0425]: cannot find function `one` in this scope\n --> core/src/date.rs:6:5\nerror[E0425]: cannot find function `two` in this scope\n"
    found = follow_change(repository.open(), rev, None, said, {"core/src/date.rs": {6}})
    assert found is not None
    added = "use crate::read::digits::two;\nuse crate::read::digits::one;\n"
    assert found.texts == {"core/src/date.rs": (rest % "").replace("use std", f"{added}use std")}


@pytest.mark.parametrize("imported", [True, False])
def test_a_class_of_java_that_moved_to_another_package_is_imported(
    tmp_path: Path, *, imported: bool
) -> None:
    repository = Repository(tmp_path / "repo")
    body = "public class Money {\n  int cents;\n  int whole() {\n    return cents / 100;\n  }\n}\n"
    place = "till" if imported else "old"
    old, new, use = (f"src/main/java/shop/{x}.java" for x in ("old/Money", "sums/Money", f"{place}/Till"))  # fmt: skip
    header = f"package shop.{place};\n" + ("\nimport shop.old.Money;\n" if imported else "")
    text = f"{header}\nclass Till {{\n  Money sum;\n}}\n"
    repository.commit("start", {old: f"package shop.old;\n\n{body}", use: text})
    rev = repository.commit("move", {old: None, new: f"package shop.sums;\n\n{body}"})
    said = f"{use}:4: error: cannot find symbol\n  symbol:   class Money\n"
    found = follow_change(repository.open(), rev, None, said, {use: {4}})
    assert found is not None
    assert "\nimport shop.sums.Money;\n" in found.texts[use]
    assert "shop.old.Money" not in found.texts[use]
    assert found.texts[use].startswith(f"package shop.{place};\n")


def test_the_value_that_a_commit_gave_to_all_other_calls_is_given_to_a_forgotten_one(
    tmp_path: Path,
) -> None:
    text = "package radix\n\nfunc edge({0}) {{}}\n\nfunc a(s string) {{ edge({1}) }}\n\nfunc b(s string) {{ edge({1}) }}\n\nfunc c(s string, l byte) {{ edge({2}) }}\n\nfunc d(s string) {{ edge({3}) }}\n"
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"radix.go": text.format("l byte", "s[0]", "l", "s[0]")})
    rev = repository.commit("ask", {"radix.go": text.format("s string", "s", "s", "s[0]")})
    said = "./radix.go:11:27: cannot use s[0] (value of type byte) as string value in argument to edge\n"
    found = follow_change(repository.open(), rev, None, said, {"radix.go": {11}})
    assert found is not None
    assert found.is_guess
    assert found.texts == {"radix.go": text.format("s string", "s", "s", "s")}


def test_a_function_that_lies_in_another_file_now_is_not_given_back(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit("start", {"tax.go": GO_USE % GO_HELPER, "low/low.go": "package low\n"})
    moved = "package low\n\n" + GO_HELPER.replace("return a", "return b")
    rev = repository.commit("move", {"tax.go": GO_USE % "", "low/low.go": moved})
    said = "./tax.go:4:30: undefined: low\n"
    found = follow_change(repository.open(), rev, None, said, {"tax.go": {4}})
    assert found is None


def test_the_file_that_a_function_left_imports_it(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    text = "import { one } from './one.js';\n\n%sexport const two = twice(one());\n"
    repository.commit("start", {"src/use.ts": text % f"{SUMS}\n", "src/one.ts": ONE})
    rev = repository.commit("move", {"src/use.ts": text % "", "src/lib/sums.ts": SUMS})
    said = "src/use.ts(3,20): error TS2304: Cannot find name 'twice'.\n"
    found = follow_change(repository.open(), rev, None, said, {"src/use.ts": {3}})
    assert found is not None
    assert found.texts == {"src/use.ts": "import { twice } from './lib/sums.js';\n" + text % ""}
