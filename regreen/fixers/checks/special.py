"""Check 5: code that knows the test instead of the task."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from regreen.fixers.checks.change import FileChange, Reason, parse_python
from regreen.fixers.checks.comparing import odd_comparisons
from regreen.fixers.checks.emptied import defined_again, emptied_bodies, idle_parameters
from regreen.fixers.checks.fixed_values import fixed_values
from regreen.fixers.checks.functions import constants, functions
from regreen.fixers.checks.knowing import answers_as_data, fixed_numbers, lengths_asked, named_tests
from regreen.fixers.checks.paths import is_document, is_test
from regreen.fixers.checks.replaced import replaced_parts

_TRIVIAL = {
    repr(value)
    for value in (0, 1, -1, 2, 0.0, 1.0, "", b"", None, True, False, "utf-8", "\n", " ", ".", ",")
}
_KNOWS_THE_TEST = re.compile(
    r"PYTEST_CURRENT_TEST|PYTEST_VERSION|PYTEST_XDIST|sys\.modules[^\n]{0,40}(?:pytest|unittest)"
    r"|(?:pytest|unittest)[\"'] in sys\.modules|sys\.argv[^\n]{0,40}(?:pytest|unittest)|JEST_WORKER_ID|VITEST|\b_called_from_test\b"
    r"|import\.meta\.(?:vitest|env\??\.(?:MODE|TEST))|\bflag\.Lookup\(\"test|\btesting\.Testing\(\)|cfg!\((?:not\()?test|cfg\(not\(test|typeof\s+(?:jest|vi|describe|it|mocha)\b|globalThis\.(?:jest|vitest|vi|describe)\b"
)
_KNOWS_CI = re.compile(
    r"[\"'](?:CI|GITHUB_ACTIONS|GITHUB_WORKSPACE|RUNNER_OS|TOX_ENV_NAME|NODE_ENV)[\"']|process\.env\.CI\b"
)
_LOOKS_UP = re.compile(
    r"inspect\.(?:stack|currentframe|getouterframes|getframeinfo|trace)\b|sys\.(?:_getframe|_current_frames|[gs]ettrace|[gs]etprofile|monitoring)\b"
    r"|traceback\.(?:extract_stack|format_stack|walk_stack|print_stack)\b|gc\.get_(?:objects|referrers)\b|import __main__\b|f_back\b|f_code\b|\bco_(?:filename|name|qualname)\b|\bextract_stack\(|__file__(?!\)\.)|\bsys\.argv\b|\bgetcwd\(|\.cwd\(\)|\bgethostname\(|\bplatform\.node\(|\bgetuser\("
)
_STOPS = re.compile(
    r"__unittest_skip__|\b_exit\b|os\.(?:kill|killpg|abort)\(|signal\.raise_signal\(|(?:pytest|unittest)\.(?:skip|exit|SkipTest)\b|raise SkipTest"
)
_STEADY = re.compile(
    r"\b(?:random|np\.random|numpy\.random)\.seed\(\s*\d|\bmanual_seed\(\s*\d|\bset_seed\(\s*\d|\b__test__\s*="
)
_TEST_RUNS = re.compile(
    r"\bTESTING\b|\.testing\b(?!\s*import)|\boutbox\b|\bTEST_RUNNER\b|(?:from|import)\s+[\w.]+\.test(?:ing)?\b|\bdebug_assertions\b|\bos\.Args\b|\bprocess\.(?:execArgv|argv)\b|NODE_TEST_CONTEXT|npm_lifecycle"
)
_REPLACES = re.compile(
    r"^\s*(?:Math|Date|JSON|Object|Array|String|Number|Promise|RegExp|Map|Set|globalThis|window|global|process)\.(?:\w+\.)*\w+\s*=(?!=)|\bObject\.(?:defineProperty|assign)\(\s*(?:Math|Date|JSON|globalThis|global|\w+\.prototype)\b",
    re.MULTILINE,
)
_LEAVES = re.compile(
    r"\b(?:sys\.exit|exit|quit)\(\s*(?:0|None|False)?\s*\)|raise SystemExit(?:\(\s*0?\s*\))?\s*$|process\.exit\(\s*0?\s*\)",
    re.MULTILINE,
)


def no_special_case(files: Sequence[FileChange], tests: Sequence[str] = ()) -> list[Reason]:
    """Check 5; `tests` are the sources of the failing tests, whose literals must not reappear as answers."""
    known = {literal for text in tests for literal in _literals(parse_python(text))} - _TRIVIAL
    reasons: list[Reason] = []
    for file in files:
        if is_test(file.path) or is_document(file.path):
            continue
        reasons.extend(_words(file))
        reasons.extend(fixed_values(file))
        if (
            file.is_python
            and file.new_tree is not None
            and (file.old is None or file.old_tree is not None)
        ):
            reasons.extend(_answers(file, known))
            reasons.extend(_copied(file, known, tests))
            reasons.extend(emptied_bodies(file, known))
            reasons.extend(idle_parameters(file))
            reasons.extend(defined_again(file))
            reasons.extend(odd_comparisons(file))
            reasons.extend(replaced_parts(file))
            reasons.extend(named_tests(file))
            reasons.extend(fixed_numbers(file, tests))
            reasons.extend(lengths_asked(file, tests))
        elif not file.is_python:
            reasons.extend(_plain_answers(file, tests))
            reasons.extend(answers_as_data(file, tests))
    return reasons


def _words(file: FileChange) -> Iterator[Reason]:
    def gained(pattern: re.Pattern[str]) -> str | None:
        if len(pattern.findall(file.new or "")) <= len(pattern.findall(file.old or "")):
            return None
        return next((line.strip()[:80] for _, line in file.added if pattern.search(line)), None)

    if line := gained(_KNOWS_THE_TEST):
        yield Reason("special_case", f"{file.path} asks whether a test is running ({line})", "deny")
    if file.suffix in {".py", ".js", ".ts", ".mjs", ".cjs", ".jsx", ".tsx", ".go", ".rs"}:
        if line := gained(_KNOWS_CI):
            yield Reason("special_case", f"{file.path} behaves differently in CI ({line})", "deny")
        if line := gained(_LOOKS_UP):
            yield Reason("special_case", f"{file.path} looks at who calls it ({line})")
        if line := gained(_STOPS):
            yield Reason("special_case", f"{file.path} ends or skips the test run ({line})", "deny")
        if line := gained(_STEADY):
            yield Reason("special_case", f"{file.path} makes a test run another one ({line})")
        if line := gained(_TEST_RUNS):
            yield Reason("special_case", f"{file.path} tells test runs from others ({line})")
        if line := gained(_REPLACES):
            yield Reason("special_case", f"{file.path} replaces what everybody uses ({line})")
        if line := gained(_LEAVES):
            yield Reason("special_case", f"{file.path} ends the program with success ({line})")


def _answers(file: FileChange, known: set[str]) -> Iterator[Reason]:
    """New branches `if x == literal: return literal`, and new tables from literal to literal."""
    old = _dumps(file.old_tree)
    stood = set(_stood(file.old_tree))
    for node in ast.walk(file.new_tree or ast.Module([], [])):
        match node:
            case ast.If(test=test, body=[ast.Return(value=value) | ast.Assign(value=value)]) if (
                value is not None
            ):
                asked, answered = _compared(test), constants(value)
            case ast.IfExp(test=test, body=value):
                asked, answered = _compared(test), constants(value)
            case ast.match_case(
                pattern=ast.MatchValue(value=test), body=[ast.Return(value=value)]
            ) if value is not None:
                asked, answered = constants(test), constants(value)
            case ast.Dict(keys=keys, values=values) if keys and ast.dump(node) not in old:
                pairs = [
                    (set(constants(key)), set(constants(value)))
                    for key, value in zip(keys, values, strict=True)
                    if key is not None
                ]
                copied = sum(1 for key, value in pairs if key & known and value & known)
                already = _pairs(file.old_tree)
                fresh = [
                    pair
                    for pair in pairs
                    if (frozenset(pair[0]), frozenset(pair[1])) not in already
                ]
                if copied and fresh and any(key & known and value & known for key, value in fresh):
                    yield Reason(
                        "special_case",
                        f"{file.path}:{node.lineno} is a table of the failing test's own answers",
                        "deny",
                    )
                continue
            case _:
                continue
        if answered and isinstance(node, ast.If | ast.IfExp):
            asked = [*asked, *_pieces(node.test, known)]
        if not asked or not _fresh(node, old):
            continue
        if (frozenset(asked), frozenset(answered)) in stood:
            continue  # the same answer to the same value stood there before: only how it is asked has changed
        telling = (set(asked) | set(answered)) - _TRIVIAL
        line = getattr(node, "lineno", getattr(getattr(node, "pattern", None), "lineno", 0))
        where = f"{file.path}:{line}"
        if set(asked) & known and answered:
            yield Reason(
                "special_case", f"{where} answers for an input of the failing test alone", "deny"
            )
        elif telling and set(asked) - _TRIVIAL and answered:
            yield Reason("special_case", f"{where} gives a fixed answer for one fixed input")


def _pieces(test: ast.expr, known: set[str]) -> Iterator[str]:
    """The known literals of which a condition asks for the beginning, the end or a part."""
    for node in ast.walk(test):
        match node:
            case (
                ast.Call(
                    func=ast.Attribute(
                        attr="startswith" | "endswith" | "match" | "search" | "fullmatch"
                    ),
                    args=[ast.Constant(value=str() as piece), *_],
                )
                | ast.Compare(left=ast.Constant(value=str() as piece), ops=[ast.In()])
            ) if len(piece) > 1:
                yield from (one for one in known if one[:1] in "'\"" and piece in one[1:-1])
            case _:
                pass


def _stood(tree: ast.Module | None) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """What branches compared with before, and what they answered."""
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.If(test=test, body=[ast.Return(value=value) | ast.Assign(value=value)]):
                yield frozenset(_compared(test)), frozenset(constants(value))
            case ast.IfExp(test=test, body=value):
                yield frozenset(_compared(test)), frozenset(constants(value))
            case _:
                pass


def _copied(file: FileChange, known: set[str], tests: Sequence[str]) -> Iterator[Reason]:
    """What is taken from the failing test word for word: results, comparisons, an input beside its answer."""
    relevant = (ast.Return, ast.Compare)
    old = ast.walk(file.old_tree or ast.Module([], []))
    before = {ast.dump(node) for node in old if isinstance(node, relevant)}
    for node in ast.walk(file.new_tree or ast.Module([], [])):
        if not isinstance(node, relevant) or ast.dump(node) in before:
            continue
        where = f"{file.path}:{node.lineno}"
        match node:
            case ast.Return(value=value) if set(constants(value)) & known:
                told = f"{where} returns a value that the failing test expects, word for word"
                yield Reason("special_case", told, "deny")
            case ast.Compare() if any(one in known and _is_no_word(one) for one in _compared(node)):
                yield Reason("special_case", f"{where} compares with a value of the failing test")
            case _:
                pass
    asserted = [pair for text in tests for pair in _assertions(parse_python(text))]
    for name, fresh in _fresh_constants(file):
        if any(_both(fresh, given, wanted) for given, wanted in asserted):
            told = f"{file.path}: {name} now holds an input of the failing test together with its answer"
            yield Reason("special_case", told, "deny")


def _is_no_word(literal: str) -> bool:
    """Short words are what programs compare with; numbers, sentences and containers are data."""
    return literal[:1] not in "'\"" or len(literal) > 14 or " " in literal.strip("'\" ")


def _both(fresh: set[str], given: set[str], wanted: set[str]) -> bool:
    """An input and its answer, both new; a plain answer (True, 1) counts beside an input that is plainly data."""
    ins = fresh & given - _TRIVIAL
    outs = fresh & wanted - _TRIVIAL
    data = any(_is_no_word(one) and len(one) > 1 for one in ins)
    return bool(ins and outs and len(ins | outs) > 1) or bool(data and fresh & wanted)


def _assertions(tree: ast.Module | None) -> Iterator[tuple[set[str], set[str]]]:
    """For each assertion of a test: the literals it puts in, and those it wants out."""
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                sides = (left, right)
            case ast.Call(
                func=ast.Attribute(attr="assertEqual" | "assertEquals"), args=[left, right, *_]
            ):
                sides = (left, right)
            case _:
                continue
        one, other = (set(_literals(ast.Module([ast.Expr(side)], []))) for side in sides)
        yield (
            (one, other)
            if isinstance(left, ast.Call)
            else (other, one)
            if isinstance(right, ast.Call)
            else (one, other)
        )


def _fresh_constants(file: FileChange) -> Iterator[tuple[str, set[str]]]:
    """The literals that each function, and the module outside them, did not hold before."""
    before = dict(functions(file.old_tree))
    for name, node in functions(file.new_tree):
        was = Counter(_own_literals(before[name])) if name in before else Counter[str]()
        yield name, set(Counter(_own_literals(node)) - was)
    now, then = (Counter(_own_literals(tree)) for tree in (file.new_tree, file.old_tree))
    yield "the module", set(now - then)


def _own_literals(node: ast.AST | None) -> Iterator[str]:
    if node is None:
        return
    documents = {id(one.value) for one in ast.walk(node) if isinstance(one, ast.Expr)}
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and id(one) not in documents:
            yield repr(one.value)
        elif isinstance(one, ast.UnaryOp):
            yield from constants(one)


def _fresh(node: ast.AST, old: set[str]) -> bool:
    test = getattr(node, "test", None) or getattr(node, "pattern", None)
    return ast.dump(node) not in old and (test is None or f"if {ast.dump(test)}" not in old)


def _dumps(tree: ast.Module | None) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.If | ast.IfExp):
            found |= {ast.dump(node), f"if {ast.dump(node.test)}"}
        elif isinstance(node, ast.Dict | ast.match_case):
            found.add(ast.dump(node))
    return found


def _pairs(tree: ast.Module | None) -> set[tuple[frozenset[str], frozenset[str]]]:
    return {
        (frozenset(constants(key)), frozenset(constants(value)))
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if key is not None
    }


def _compared(test: ast.expr) -> list[str]:
    """The literals that a condition compares something with for equality or membership."""
    found: list[str] = []
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and any(
            isinstance(op, ast.Eq | ast.In | ast.Is) for op in node.ops
        ):
            for side in (node.left, *node.comparators):
                found.extend(constants(side))
    return found


def _literals(tree: ast.Module | None) -> Iterator[str]:
    """Literals of a test, without its documentation and its names in strings."""
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Constant) and not (
            isinstance(node.value, str) and len(node.value) > 400
        ):
            yield repr(node.value)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            yield from constants(node)


_LITERAL_TEXT = re.compile(
    r"\"(?:[^\"\\\n]|\\.){2,200}\"|'(?:[^'\\\n]|\\.){2,200}'|\b\d{1,12}\.\d{1,12}\b|\b\d{2,}\b"
)
_BRANCH_TEXT = re.compile(r"\b(?:if|case|when)\b.{0,200}(?:===?|\bcase\b)")


def _plain_answers(file: FileChange, tests: Sequence[str]) -> Iterator[Reason]:
    """The same for languages that are not parsed here: a new branch on a literal of the failing test."""
    known = {literal.strip("\"'") for text in tests for literal in _LITERAL_TEXT.findall(text)}
    for number, line in file.added:
        if len(line) > 1000 or not _BRANCH_TEXT.search(line):
            continue
        if any(literal.strip("\"'") in known for literal in _LITERAL_TEXT.findall(line)):
            yield Reason(
                "special_case",
                f"{file.path}:{number} branches on an input of the failing test",
                "deny",
            )
