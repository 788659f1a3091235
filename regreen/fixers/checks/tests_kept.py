"""Checks 2 and 3: no existing test, nor the way tests are run, changes; new tests may be added."""

from __future__ import annotations

import ast
import re
import unittest
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from regreen.fixers.checks.change import FileChange, Level, Reason
from regreen.fixers.checks.inline_tests import inline_tests_kept
from regreen.fixers.checks.paths import is_source, is_test, is_test_config
from regreen.fixers.checks.test_config import config_changed, test_sections_kept

_SKIP_CALLS = {
    "skip",
    "skipif",
    "skipIf",
    "skipUnless",
    "xfail",
    "importorskip",
    "expectedFailure",
    "skipTest",
    "SkipTest",
}
_SKIP_TEXT = re.compile(
    r"\b(?:it|test|describe|context|suite)\.(?:skip|only|todo|fixme|failing|fails|skipIf|runIf)\b|\bx(?:it|describe|test)\b|\bf(?:it|describe)\("
    r"|\bt\.Skip(?:f|Now)?\(|^//\s*(?:go:build|\+build)\b|#\[(?:ignore|should_panic)|@(?:Disabled\w*|Ignore)\b|enabled\s*=\s*false|\bSkip\s*=\s*\""
    r"|\bmarkTest(?:Skipped|Incomplete)\b|\bpending\b",
    re.MULTILINE,
)
_ASSERT_TEXT = re.compile(
    r"\b(?:expect|assert\w*!?|should\w*|t\.(?:Error|Fatal)f?|require\.\w+)\s*\("
)

# What unittest and pytest ask a module or a case for, beside its tests.
_DECIDES = re.compile(r"load_tests$|pytest_(?!plugins)\w+$|run$|debug$|__getattr\w*__$")


def existing_tests_kept(
    files: Sequence[FileChange],
    *,
    machine: bool,
    tool: bool = False,
    failing: Sequence[str] = (),
    given: Sequence[str] = (),
) -> list[Reason]:
    """Check 2. `machine` patches may not touch an existing test at all; a person's may, but a person must look.

    What a formatter or a safe lint fix (`tool`) did to a test is only noted, as long as no assertion goes. Where a
    person changes the source too, and most assertions stay, tests that go are a matter of looking.
    `failing` are the ids of failing tests, `given` the paths of tests that are the specification.
    """
    usual: Level = "note" if tool else "deny" if machine else "needs_human"
    reasons: list[Reason] = []
    for file in files:
        if file.path in given:
            reasons.append(
                Reason(
                    "tests_unchanged",
                    f"{file.path} is the given specification; it may not change",
                    "deny",
                )
            )
        elif file.path.rsplit("/", 1)[-1] == "conftest.py" or is_test_config(file.path):
            reasons.append(config_changed(file, usual))
        elif is_test(file.path):
            reasons.extend(
                _test_file(file, usual, failing, whole=machine or tool or not _works(files))
            )
        else:
            reasons.extend(test_sections_kept(file, usual))
            reasons.extend(inline_tests_kept(file, usual))
    return reasons


def _works(files: Sequence[FileChange]) -> bool:
    """Whether the patch does anything beside the tests."""
    return any(is_source(file.path) and file.new is not None for file in files)


def _most_stay(file: FileChange) -> bool:
    before, after = census(file, old=True), census(file, old=False)
    kept = ("assertions", "cases", "tests")
    return file.new is not None and all(after[what] * 2 >= before[what] for what in kept)


def _test_file(
    file: FileChange, usual: Level, failing: Sequence[str], *, whole: bool
) -> Iterator[Reason]:
    if file.old is None:
        return
    if file.new is None:
        yield Reason("tests_unchanged", f"the test file {file.path} is removed", "deny")
        return
    if file.is_python and file.old_tree is not None and file.new_tree is not None:
        yield from _python_tests(file, usual, failing, strictly=whole or not _most_stay(file))
        return
    gone = [line for _, line in file.removed if line.strip()]
    if gone:
        yield Reason(
            "tests_unchanged",
            f"{file.path}: an existing line of a test changes: {gone[0].strip()[:80]}",
            usual,
        )


def _python_tests(
    file: FileChange, usual: Level, failing: Sequence[str], *, strictly: bool
) -> Iterator[Reason]:
    before, after = _definitions(file.old_tree), _definitions(file.new_tree)
    fewer = strictly and _fewer(file)
    for name, versions in before.items():
        now = after.get(name, [])
        if now == versions:
            continue
        again = len(now) > len(versions)
        how = "is removed" if not now else "is defined again" if again else "changes"
        worse = again or (not now and fewer) or _is_failing(name, failing)
        level: Level = "deny" if worse and usual != "note" else usual
        yield Reason("tests_unchanged", f"{file.path}: the existing {name} {how}", level)
    lost = _loose(file.old_tree) - _loose(file.new_tree)
    if lost:
        yield Reason(
            "tests_unchanged", f"{file.path}: a statement outside its tests changes", usual
        )
    gained = _loose(file.new_tree) - _loose(file.old_tree)
    if any(
        "pytestmark" in one or "monkeypatch" in one or "Attribute" in one.split("value=", 1)[0]
        for one in gained
    ):
        yield Reason(
            "tests_unchanged", f"{file.path}: a new statement changes how its tests run", "deny"
        )
    for name in after.keys() - before.keys():
        if name.rsplit(".", 1)[-1] in {
            "setUp",
            "setUpClass",
            "setup_method",
            "setup_module",
            "setup_function",
            "setUpModule",
            "asyncSetUp",
            "tearDown",
        }:
            yield Reason(
                "tests_unchanged", f"{file.path}: the new {name} runs around existing tests", usual
            )
        elif _decides(name.rsplit(".", 1)[-1]):
            what = f"the new {name} decides which tests there are, or what they assert"
            yield Reason("tests_unchanged", f"{file.path}: {what}", "deny")
        elif any("autouse" in text for text in after[name]):
            yield Reason(
                "tests_unchanged",
                f"{file.path}: the new fixture {name} runs around existing tests",
                usual,
            )


def _decides(name: str) -> bool:
    """Whether a new function of this name speaks for the tests around it."""
    own = name == "fail" or (name.startswith("assert") and hasattr(unittest.TestCase, name))
    return own or bool(_DECIDES.match(name))


def _is_failing(name: str, failing: Sequence[str]) -> bool:
    short = name.rsplit(".", 1)[-1]
    return any(re.split(r"::|\.", test.split("[", 1)[0])[-1] == short for test in failing)


def _fewer(file: FileChange) -> bool:
    before, after = census(file, old=True), census(file, old=False)
    return any(after[what] < before[what] for what in ("assertions", "tests"))


def _definitions(tree: ast.Module | None) -> dict[str, list[str]]:
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
                loose = [
                    ast.dump(part)
                    for part in node.body
                    if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                ]
                found.setdefault(f"{prefix}{node.name}", []).append(repr(head + loose))
                visit(node.body, f"{prefix}{node.name}.")

    visit(tree.body if tree else [], "")
    return found


def _loose(tree: ast.Module | None) -> Counter[str]:
    """Statements at module level that are neither imports nor definitions nor documentation."""
    return Counter(
        ast.dump(node)
        for node in (tree.body if tree else [])
        if not isinstance(
            node,
            ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom,
        )
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    )


def assertions_kept(files: Sequence[FileChange], *, person: bool = False) -> list[Reason]:
    """Check 3: in no test file fewer assertions or cases, in no file a new skip.

    A `person` who mends the source as well may take a few away, if another looks.
    """
    reasons: list[Reason] = []
    lenient = person and _works(files)
    for file in files:
        if not is_test(file.path) or file.old is None:
            reasons.extend(_new_skips(file))
            continue
        before, after = census(file, old=True), census(file, old=False)
        for what in ("assertions", "cases", "tests"):
            if after[what] < before[what]:
                gone = f"{file.path}: {what} go from {before[what]} to {after[what]}"
                level: Level = "needs_human" if lenient and _most_stay(file) else "deny"
                reasons.append(Reason("assertions", gone, level))
        reasons.extend(_new_skips(file))
    return reasons


def _new_skips(file: FileChange) -> Iterator[Reason]:
    """A skip counts where it can hit a test that was there before, and anywhere in the product's source."""
    if file.old is None and is_test(file.path):
        return
    before, after = _skips(file, file.old_tree, file.old), _skips(file, file.new_tree, file.new)
    if after > before and (is_test(file.path) or file.suffix in {".py", ".pyi", ".rs"}):
        told = f"{file.path}: a test is skipped, or expected to fail, that was not"
        yield Reason("assertions", told, "deny")


def _skips(file: FileChange, tree: ast.Module | None, text: str | None) -> int:
    if tree is None:
        return 0 if file.is_python else len(_SKIP_TEXT.findall(text or ""))
    known = _definitions(file.old_tree)
    return sum(
        isinstance(node, ast.Attribute | ast.Name) and _is_skip(node)
        for part in _old_parts(tree.body, "", known)
        for node in ast.walk(part)
    )


def _old_parts(
    body: Sequence[ast.stmt], prefix: str, known: Mapping[str, list[str]]
) -> Iterator[ast.AST]:
    """Everything but the functions and classes that are new."""
    for node in body:
        if isinstance(node, ast.ClassDef) and f"{prefix}{node.name}" in known:
            yield from node.decorator_list
            yield from _old_parts(node.body, f"{prefix}{node.name}.", known)
        elif (
            not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            or f"{prefix}{node.name}" in known
        ):
            yield node


def census(file: FileChange, *, old: bool) -> Counter[str]:
    """How many tests, assertions, parametrized cases and skips one side of a file holds."""
    tree, text = (file.old_tree, file.old) if old else (file.new_tree, file.new)
    if tree is None:
        body = text or ""
        if file.is_python:
            return Counter()
        return Counter(
            skips=len(_SKIP_TEXT.findall(body)), assertions=len(_ASSERT_TEXT.findall(body))
        )
    counts: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            counts["assertions"] += 1
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
            "test"
        ):
            counts["tests"] += 1
        elif isinstance(node, ast.Call):
            name = _last_name(node.func)
            counts["assertions"] += name.startswith("assert") or name in {"raises", "warns", "fail"}
            counts["cases"] += _cases(node) if name == "parametrize" else 0
        if isinstance(node, ast.Attribute | ast.Name) and _is_skip(node):
            counts["skips"] += 1
    return counts


def _is_skip(node: ast.Attribute | ast.Name) -> bool:
    """`pytest.skip`, `mark.xfail`, `unittest.SkipTest`, `self.skipTest`; not any attribute called `skip`."""
    if isinstance(node, ast.Name):
        return node.id in {"SkipTest", "skipIf", "skipUnless", "expectedFailure", "importorskip"}
    if node.attr not in _SKIP_CALLS:
        return False
    owner = _last_name(node.value)
    return owner in {"pytest", "mark", "unittest", "case", "self"} and not (
        owner == "self" and node.attr != "skipTest"
    )


def _cases(call: ast.Call) -> int:
    return (
        len(call.args[1].elts)
        if len(call.args) > 1 and isinstance(call.args[1], ast.List | ast.Tuple)
        else 0
    )


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
