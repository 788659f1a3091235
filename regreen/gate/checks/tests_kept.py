"""Checks 2 and 3: existing tests and their configuration stay; new tests may be added."""

from __future__ import annotations

import ast
import doctest
import json
import re
import tomllib
import unittest
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass
from itertools import accumulate, islice

from regreen.code.config_loaders import load_toml
from regreen.code.file_change import CheckReason, PatchedFile, ReasonLevel
from regreen.code.file_languages import language_row
from regreen.code.paths import is_source, is_test, is_test_config
from regreen.code.python_calls import last_name
from regreen.gate.facts import PythonFunction, find_nodes, is_parsed
from regreen.gate.words import name_set, word_pattern

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Names that unittest and pytest look up in a module or case, beside its tests.
_DECIDING_NAME = re.compile(r"load_tests$|pytest_(?!plugins)\w+$|run$|debug$|__getattr\w*__$")


def check_existing_tests(
    files: Sequence[PatchedFile],
    *,
    machine: bool,
    tool: bool = False,
    failing: Sequence[str] = (),
    given: Sequence[str] = (),
) -> list[CheckReason]:
    """Check 2. `machine` patches may not touch an existing test at all; a person's may, but a person must look.

    What a formatter or a safe lint fix (`tool`) did to a test is only noted, as long as no assertion goes. Where a
    person changes the source too, and most assertions stay, tests that go are a matter of looking.
    `failing` are the ids of failing tests, `given` the paths of tests that are the specification.
    """
    usual: ReasonLevel = "note" if tool else "deny" if machine else "needs_human"
    is_whole = machine or tool or not _changes_more_than_tests(files)
    found: list[tuple[str, ReasonLevel]] = []
    for file in files:
        if file.path in given:
            found.append((f"{file.path} is the given specification; it may not change", "deny"))
        elif is_test_config(file.path):
            found.append(_describe_config_change(file, usual))
        elif is_test(file.path):
            found += _find_changed_tests(file, usual, failing, whole=is_whole)
        else:
            found += _find_changed_sections(file, usual)
            found += [(what, usual) for what in _find_changed_inline_tests(file)]
    return [CheckReason("tests_unchanged", what, level) for what, level in found]


def _changes_more_than_tests(files: Sequence[PatchedFile]) -> bool:
    """Whether the patch changes product source too."""
    return any(is_source(file.path) and file.new is not None for file in files)


def _keeps_most_tests(file: PatchedFile) -> bool:
    before, after = _count_elements_of_sides(file)
    elements = ("assertions", "cases", "tests")
    return file.new is not None and all(after[what] * 2 >= before[what] for what in elements)


def _find_changed_tests(
    file: PatchedFile, usual: ReasonLevel, failing: Sequence[str], *, whole: bool
) -> Iterator[tuple[str, ReasonLevel]]:
    if file.old is None:
        return
    if file.new is None:
        yield f"the test file {file.path} is removed", "deny"
    elif is_parsed(file):
        is_strict = whole or not _keeps_most_tests(file)
        for what, level in (
            *_find_changed_definitions(file, usual, failing, strictly=is_strict),
            *_find_changed_statements(file, usual),
            *_find_new_definitions(file, usual),
        ):
            yield f"{file.path}: {what}", level
    elif removed := [line.strip() for _, line in file.removed_lines if line.strip()]:
        yield f"{file.path}: an existing line of a test changes: {removed[0][:80]}", usual


def _find_changed_definitions(
    file: PatchedFile, usual: ReasonLevel, failing: Sequence[str], *, strictly: bool
) -> Iterator[tuple[str, ReasonLevel]]:
    after = _dump_definitions(file.new_tree)
    fewer = strictly and _has_fewer_tests(file)
    for name, versions in _dump_definitions(file.old_tree).items():
        now = after.get(name, [])
        if now == versions:
            continue
        again = len(now) > len(versions)
        how = "is removed" if not now else "is defined again" if again else "changes"
        worse = again or (not now and fewer) or _is_failing(name, failing)
        yield f"the existing {name} {how}", "deny" if worse and usual != "note" else usual


def _find_changed_statements(
    file: PatchedFile, usual: ReasonLevel
) -> Iterator[tuple[str, ReasonLevel]]:
    before, after = _module_statements(file.old_tree), _module_statements(file.new_tree)
    if before - after:
        yield "a statement outside its tests changes", usual
    if any(
        "pytestmark" in dump or "monkeypatch" in dump or "Attribute" in dump.split("value=", 1)[0]
        for dump in after - before
    ):
        yield "a new statement changes how its tests run", "deny"


def _find_new_definitions(
    file: PatchedFile, usual: ReasonLevel
) -> Iterator[tuple[str, ReasonLevel]]:
    before, after = _dump_definitions(file.old_tree), _dump_definitions(file.new_tree)
    for name in after.keys() - before.keys():
        short = name.rsplit(".", 1)[-1]
        if short in name_set("setup_functions"):
            yield f"the new {name} runs around existing tests", usual
        elif _is_deciding_name(short):
            yield f"the new {name} decides which tests there are, or what they assert", "deny"
        elif any("autouse" in text for text in after[name]):
            yield f"the new fixture {name} runs around existing tests", usual


def _is_deciding_name(name: str) -> bool:
    """Whether a new function of this name changes how the tests around it run or assert."""
    own = name == "fail" or (name.startswith("assert") and hasattr(unittest.TestCase, name))
    return own or bool(_DECIDING_NAME.match(name))


def _is_failing(name: str, failing: Sequence[str]) -> bool:
    short = name.rsplit(".", 1)[-1]
    return any(re.split(r"::|\.", test.split("[", 1)[0])[-1] == short for test in failing)


def _has_fewer_tests(file: PatchedFile) -> bool:
    before, after = _count_elements_of_sides(file)
    return any(after[what] < before[what] for what in ("assertions", "tests"))


def _dump_definitions(tree: ast.Module | None) -> dict[str, list[str]]:
    """Every function by its dotted name, as dumps (a name may be defined twice), class headers included."""
    found: dict[str, list[str]] = {}

    def visit(body: Sequence[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.setdefault(f"{prefix}{node.name}", []).append(ast.dump(node))
            elif isinstance(node, ast.ClassDef):
                head = [
                    ast.dump(part) for part in (*node.bases, *node.keywords, *node.decorator_list)
                ]
                loose = [ast.dump(part) for part in node.body if not isinstance(part, _DEFINITIONS)]
                found.setdefault(f"{prefix}{node.name}", []).append(repr(head + loose))
                visit(node.body, f"{prefix}{node.name}.")

    visit(tree.body if tree else [], "")
    return found


def _module_statements(tree: ast.Module | None) -> Counter[str]:
    """Statements at module level that are neither imports nor definitions nor documentation."""
    return Counter(
        ast.dump(node)
        for node in (tree.body if tree else [])
        if not isinstance(node, (*_DEFINITIONS, ast.Import, ast.ImportFrom))
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    )


def check_assertions(files: Sequence[PatchedFile], *, person: bool = False) -> list[CheckReason]:
    """Check 3: in no test file fewer assertions or cases, in no file a new skip of what exists.

    A `person` who changes the source too may remove a few, if another person looks.
    """
    reasons: list[CheckReason] = []
    lenient = person and _changes_more_than_tests(files)
    for file in files:
        if is_test(file.path) and file.old is not None:
            before, after = _count_elements_of_sides(file)
            level: ReasonLevel = "needs_human" if lenient and _keeps_most_tests(file) else "deny"
            reasons += [
                CheckReason(
                    "assertions",
                    f"{file.path}: {what} go from {before[what]} to {after[what]}",
                    level,
                )
                for what in ("assertions", "cases", "tests")
                if after[what] < before[what]
            ]
        reasons += _find_new_skips(file)
    return reasons


def _find_new_skips(file: PatchedFile) -> Iterator[CheckReason]:
    """New skips of existing tests and cases, and new skips in existing product source."""
    if file.old is None and is_test(file.path):
        return
    before, after = _count_skips(file)
    gained = {
        owner: after[owner] - before[owner]
        for owner in after
        if after[owner].total() > before[owner].total()
    }
    # a mark that moves from a class to its tests skips none that was not skipped
    kept = {
        owner
        for owner, marks in gained.items()
        if not _was_inherited_from_outer(owner, marks, before, after)
    }
    if kept and (is_test(file.path) or _may_hold_tests(file)):
        what = f"{file.path}: a test is skipped, or expected to fail, that was not"
        yield CheckReason("assertions", what, "deny")


_Skips = defaultdict[str, Counter[str]]
"""How often a definition (its dotted name; "" is the module) is skipped by each mark, which is written out."""


def _was_inherited_from_outer(
    owner: str, marks: Counter[str], before: _Skips, after: _Skips
) -> bool:
    """Whether what the definition stands in has lost each of these marks, as it is written."""
    outer = ["", *accumulate(owner.split(".")[:-1], lambda up, name: f"{up}.{name}")]
    lost = {mark for up in outer for mark in before[up] if before[up][mark] > after[up][mark]}
    return owner != "" and lost.issuperset(marks)


def _count_skips(file: PatchedFile) -> tuple[_Skips, _Skips]:
    """How often each definition is skipped before, and how often each of the same is skipped after."""
    before, after = _Skips(Counter), _Skips(Counter)
    if not file.has_syntax_tree:
        pattern = word_pattern("skipped_tests")
        for counts, text in ((before, file.old), (after, file.new)):
            counts[""][""] = len(pattern.findall(text or ""))
        return before, after
    if not any(word in (file.new or "") for word in name_set("skip_calls")):
        return before, after
    old, new = (
        _SkippingModule(tree, nests=is_test(file.path)) for tree in (file.old_tree, file.new_tree)
    )
    gone = {body: name for name, body in old.bodies.items() if name not in new.bodies}
    known = {
        name: name if name in old.bodies else gone[body]
        for name, body in new.bodies.items()
        if name in old.bodies or body in gone
    }
    old_helpers = old.find_skipping_helpers(new.bodies.keys())
    new_helpers = new.find_skipping_helpers(known.keys())
    for use in old.uses:
        if use.skips(old.marks | old_helpers):
            before[use.owner][use.mark] += 1
    for use in new.uses:
        if use.owner in known and use.skips(new.marks | new_helpers):
            name = known[use.owner]
            if not (
                use.case and _is_added_case(use, old.list_cases(name), new.list_cases(use.owner))
            ):
                after[name][use.mark] += 1
    return before, after


def _is_added_case(use: _NameUse, before: Counter[str], after: Counter[str]) -> bool:
    """Whether a skipped case is a new one: all that ran before still run. Cases that cannot be read may be any."""
    return bool(before) and use.case not in before and not before - after


@dataclass(frozen=True, slots=True)
class _NameUse:
    """A name that is used in a definition; the call or name as it is written; the parametrized case around it, "" for none."""

    owner: str
    case: str
    mark: str
    node: ast.Attribute | ast.Name | ast.arg

    def skips(self, names: Set[str]) -> bool:
        """Whether it skips what it is used in: by itself, or as a mark or a helper that is called so."""
        match self.node:
            case ast.arg(arg=name) | ast.Name(id=name) if name in names:
                return True
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if f"{owner}.{name}" in names:
                return True
            case ast.Name() | ast.Attribute() as node:
                return _is_skip(node)
            case _:
                return False


class _SkippingModule:
    """The definitions of a module by dotted name ("" is the module itself), and the names that each of them uses.

    `marks` are the names that stand for a mark. Where no function `nests`, one inside another is a part of it.
    """

    def __init__(self, tree: ast.Module | None, *, nests: bool) -> None:
        self.bodies = {"": ""}
        self.marks: set[str] = set()
        self.uses: list[_NameUse] = []
        self._cases: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._called_names: dict[str, str] = {}
        self._calls = {id(call.func): call for call in find_nodes(tree, ast.Call)}
        defined = {n.name for n in find_nodes(tree, ast.AST) if isinstance(n, _DEFINITIONS)}
        functions: set[str] = set()
        waiting: list[tuple[ast.AST, str, str, bool]] = [(tree, "", "", True)] if tree else []
        while waiting:
            node, owner, case, opens = waiting.pop()
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_named_skip_mark(
                    name, value, defined
                ):
                    self.marks.add(name)
                    continue
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if (
                    opens and not _runs_around_tests(node)
                ):
                    owner = f"{owner}.{node.name}" if owner else node.name
                    self.bodies[owner] = "\n".join(ast.dump(part) for part in node.body)
                    self._called_names[owner] = _fixture_name(node)
                    opens = nests or isinstance(node, ast.ClassDef)
                    if not isinstance(node, ast.ClassDef):
                        functions.add(owner)
                    for decorator in node.decorator_list:
                        self._add_cases(owner, decorator)
                case ast.Call(func=func, args=args) if last_name(func) == "param":
                    case = _dump_case(args)
                case ast.Call(func=func, args=args) if last_name(func) == "usefixtures":
                    named = [one.value for one in args if isinstance(one, ast.Constant)]
                    self.uses += [
                        _NameUse(owner, case, name, ast.arg(name)) for name in map(str, named)
                    ]
                case ast.Assign(value=value) if owner not in functions:
                    self._add_cases(owner, value)
                case ast.Attribute() | ast.Name() | ast.arg():
                    mark = ast.dump(self._calls.get(id(node), node))
                    self.uses.append(_NameUse(owner, case, mark, node))
                case _:
                    pass
            waiting += [(part, owner, case, opens) for part in ast.iter_child_nodes(node)]

    def find_skipping_helpers(self, others: Collection[str]) -> set[str]:
        """The names of what skips, by itself or by another helper, and is not among the other module's definitions.

        A method's name stands behind that of its class, or `self`.
        """
        names: set[str] = set()
        while True:
            skipping = {one.owner for one in self.uses if one.skips(names)}.difference(others)
            found = set[str]()
            for owner in skipping:
                above, _, name = owner.rpartition(".")
                is_method = above in self.bodies and above != ""
                owners = (above.rpartition(".")[2], "self", "cls") if is_method else ()
                found |= {name, self._called_names[owner]} | {f"{one}.{name}" for one in owners}
            if found - {""} <= names:
                return names
            names |= found - {""}

    def _add_cases(self, owner: str, node: ast.expr) -> None:
        for group in find_nodes(node, ast.List, ast.Tuple):
            self._cases[owner].update(_list_running_cases(group.elts))

    def list_cases(self, owner: str) -> Counter[str]:
        """The arguments of all that may be a parametrized case of a definition and is not skipped."""
        return self._cases[owner]


def _list_running_cases(elements: Sequence[ast.expr]) -> Iterator[str]:
    for element in elements:
        match element:
            case ast.Call(func=func, args=args) if last_name(func) == "param":
                if not any(_is_skip(x) for x in find_nodes(element, ast.Attribute, ast.Name)):
                    yield _dump_case(args)
            case ast.Tuple(elts=values):
                yield _dump_case(values)
            case _:
                yield _dump_case([element])


def _runs_around_tests(node: PythonFunction | ast.ClassDef) -> bool:
    """Whether it runs around the tests that it stands beside, so that a skip in it is one of theirs."""
    in_use = any("autouse" in ast.dump(decorator) for decorator in node.decorator_list)
    return in_use or node.name in name_set("setup_functions")


def _fixture_name(node: PythonFunction | ast.ClassDef) -> str:
    """The name that `@fixture(name=...)` gives; "" without one."""
    given = (
        keyword.value.value
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant)
    )
    return str(next(given, ""))


def _dump_case(arguments: Sequence[ast.expr]) -> str:
    return repr([ast.dump(one) for one in arguments])


def _is_named_skip_mark(name: str, value: ast.expr, defined: Set[str]) -> bool:
    """Whether an assignment names a mark, and puts it on none of what is defined; `pytestmark` skips the module."""
    names = find_nodes(value, ast.Attribute, ast.Name)
    skips = [node for node in names if _is_skip(node)]
    applied = any(isinstance(node, ast.Name) and node.id in defined for node in names)
    return (
        bool(skips)
        and name not in {"pytestmark", *defined}
        and not applied
        and all(map(_is_decorator, skips))
    )


def _is_decorator(node: ast.Attribute | ast.Name) -> bool:
    """`mark.skip` and `skipIf` wait for the test that they are put on; `pytest.skip` and `SkipTest` do not."""
    of_mark = isinstance(node, ast.Attribute) and last_name(node.value) == "mark"
    return of_mark or last_name(node) in name_set("skip_decorators")


def _count_elements_of_sides(file: PatchedFile) -> tuple[Counter[str], Counter[str]]:
    """How many tests, assertions and parametrized cases a file holds before and after."""
    if not file.has_syntax_tree:
        pattern = word_pattern("assertions")
        before, after = (len(pattern.findall(text or "")) for text in (file.old, file.new))
        return Counter(assertions=before), Counter(assertions=after)
    return _count_elements(file.old_tree), _count_elements(file.new_tree)


def _count_elements(tree: ast.Module | None) -> Counter[str]:
    counts: Counter[str] = Counter()
    for node in find_nodes(tree, ast.AST):
        match node:
            case ast.Assert():
                counts["assertions"] += 1
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                counts["tests"] += name.startswith("test")
            case ast.Call(func=func):
                name = last_name(func)
                asserts = name.startswith("assert") or name in {"raises", "warns", "fail"}
                counts["assertions"] += asserts
                counts["cases"] += _count_cases(node) if name == "parametrize" else 0
            case _:
                pass
    return counts


def _is_skip(node: ast.Attribute | ast.Name) -> bool:
    """`pytest.skip`, `mark.xfail`, `unittest.SkipTest`, `self.skipTest`; not any attribute called `skip`."""
    if isinstance(node, ast.Name):
        return node.id in name_set("skip_names")
    if node.attr not in name_set("skip_calls"):
        return False
    owner = last_name(node.value)
    return owner in name_set("skip_owners") and not (owner == "self" and node.attr != "skipTest")


def _count_cases(call: ast.Call) -> int:
    return (
        len(call.args[1].elts)
        if len(call.args) > 1 and isinstance(call.args[1], ast.List | ast.Tuple)
        else 0
    )


# Tests in product source: examples in docstrings, and tests in a Rust module.


def _may_hold_tests(file: PatchedFile) -> bool:
    """Whether tests stand in sources of the file's language."""
    return file.has_syntax_tree or bool(language_row(file.path).inline_tests)


def _find_changed_inline_tests(file: PatchedFile) -> Iterator[str]:
    """Existing examples and inline tests stay as they are; new ones may be added."""
    if file.old is None or file.new is None:
        return
    inline = language_row(file.path).inline_tests
    start = re.search(inline, file.old, re.MULTILINE) if inline else None
    if start is not None:
        first = file.old.count("\n", 0, start.start()) + 1
        lines = (line for number, line in file.removed_lines if number >= first and line.strip())
        for line in islice(lines, 1):
            yield f"{file.path}: an existing line of a test changes: {line.strip()[:80]}"
    after = _docstring_examples(file.new_tree) if is_parsed(file) else {}
    for name, examples in _docstring_examples(file.old_tree).items():
        lost = [source for source, want in examples if (source, want) not in after.get(name, [])]
        if lost and name in after:
            yield f"{file.path}: an example of {name}'s documentation changes: {lost[0].strip()[:60]}"


def _docstring_examples(tree: ast.Module | None) -> dict[str, list[tuple[str, str]]]:
    """The doctest examples by the name of the documented object; unparsable docstrings have none."""
    found: dict[str, list[tuple[str, str]]] = {}
    for node in find_nodes(tree, ast.AST):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node) or ""
        if ">>>" not in text:
            continue
        try:
            examples = doctest.DocTestParser().get_examples(text)
        except ValueError:
            continue
        name = getattr(node, "name", "the module")
        found.setdefault(name, []).extend((example.source, example.want) for example in examples)
    return found


# Test configuration: whole files, and sections of other files.

_DECIDING_HOOKS = re.compile(
    r"def (pytest_(?:collection_modifyitems|runtest_\w+|sessionfinish|ignore_collect|pyfunc_call|report\w*|"
    r"exception_interact|unconfigure|cmdline_main|configure|deselected|make\w*|assertrepr_compare|collection\w*))\b"
)


def _describe_config_change(file: PatchedFile, usual: ReasonLevel) -> tuple[str, ReasonLevel]:
    """The reason against a change of a conftest or of test configuration."""
    name = file.path.rsplit("/", 1)[-1]
    if name in {"sitecustomize.py", "usercustomize.py"} or name.endswith(".pth"):
        return f"{file.path} runs before every Python program, tests included", "deny"
    hook = _DECIDING_HOOKS.search(file.added_text)
    if hook or "os._exit" in file.added_text or "exitstatus" in file.added_text:
        what = hook.group(1) if hook else "the exit status"
        return f"{file.path} gains {what}, which can decide what a test run says", "deny"
    if file.new is None:
        return f"{file.path}, which says how tests run, is removed", "deny"
    return f"{file.path} says how tests run, and changes", usual


def _find_changed_sections(
    file: PatchedFile, usual: ReasonLevel
) -> Iterator[tuple[str, ReasonLevel]]:
    """Changed sections about tests in shared configuration files."""
    if (file.new or "").count("pytest11") > (file.old or "").count("pytest11"):
        yield f"{file.path} brings a plugin that every test run loads", "deny"
    read = _SECTION_READERS.get(file.path.rsplit("/", 1)[-1])
    before, after = (read(file.old), read(file.new)) if read else ({}, {})
    for section in sorted(before.keys() | after.keys()):
        if before.get(section) != after.get(section):
            yield f"{file.path}: [{section}], which says how tests run, changes", usual


def _toml_test_tables(text: str | None) -> dict[str, str]:
    try:
        tools = load_toml(text or "").get("tool", {})
    except tomllib.TOMLDecodeError:
        return {}
    names = name_set("pyproject_tools")
    return {
        f"tool.{name}": repr(_without_build_tables(tools[name])) for name in names if name in tools
    }


def _without_build_tables(table: object) -> object:
    """Leave out the tables of packaging tools that only concern building."""
    if isinstance(table, dict):
        return {
            key: value
            for key, value in table.items()
            if key not in {"version", "build", "metadata", "source"}
        }
    return table


def _ini_test_sections(text: str | None) -> dict[str, str]:
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text or "")
    except ConfigError:
        return {}
    wanted = [
        name for name in parser.sections() if name.startswith(tuple(name_set("ini_sections")))
    ]
    return {name: repr(sorted(parser.items(name))) for name in wanted}


def _json_test_sections(text: str | None) -> dict[str, str]:
    try:
        document = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(document, dict):
        return {}
    return {
        name: repr(document[name]) for name in name_set("package_json_keys") if name in document
    }


_SECTION_READERS: Mapping[str, Callable[[str | None], dict[str, str]]] = {
    "pyproject.toml": _toml_test_tables,
    "setup.cfg": _ini_test_sections,
    "package.json": _json_test_sections,
}
