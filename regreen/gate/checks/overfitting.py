"""Check 5: code fitted to the failing test: its answers, its inputs, its numbers, or the fact that it runs."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from regreen.code.file_change import CheckReason, PatchedFile
from regreen.code.python_calls import parse_python
from regreen.gate.checks.removed_behaviour import find_emptied_bodies, find_idle_parameters
from regreen.gate.checks.shadowing import find_monkeypatches, find_odd_comparisons
from regreen.gate.facts import (
    count_gained,
    documentation_nodes,
    evaluate_number,
    exclude_tests_and_documents,
    find_new_nodes,
    find_nodes,
    is_parsed,
    literal_parts,
    walk_functions,
)
from regreen.gate.words import find_broken_rules, name_set, suffix_group, word_pattern

_TRIVIAL_LITERALS = {
    repr(value)
    for value in (0, 1, -1, 2, 0.0, 1.0, "", b"", None, True, False, "utf-8", "\n", " ", ".", ",")
}


def check_overfitting(files: Sequence[PatchedFile], tests: Sequence[str] = ()) -> list[CheckReason]:
    """Check 5; `tests` are the sources of the failing tests, whose literals must not reappear as answers."""
    trees = [parse_python(text) for text in tests]
    known = {literal for tree in trees for literal in _find_literals(tree)} - _TRIVIAL_LITERALS
    reasons: list[CheckReason] = []
    for file in exclude_tests_and_documents(files):
        reasons += [
            CheckReason(
                "special_case", f"{file.path} {rule.says} ({rule.line.strip()[:80]})", rule.level
            )
            for rule in find_broken_rules(file, "evasion")
        ]
        reasons += _find_fixed_values(file)
        if not file.has_syntax_tree:
            reasons += _find_answers_in_text(file, tests)
            reasons += _find_answers_in_data(file, tests)
        elif file.new_tree is not None and (file.old is None or is_parsed(file)):
            reasons += _find_literal_answers(file, known)
            reasons += _find_copied_literals(file, known, trees)
            reasons += find_emptied_bodies(file, known)
            reasons += find_idle_parameters(file)
            reasons += find_odd_comparisons(file)
            reasons += find_monkeypatches(file)
            reasons += _find_test_names(file)
            reasons += _find_fixed_numbers(file, trees)
            reasons += _find_fixed_lengths(file, trees)
    return reasons


@dataclass(frozen=True, slots=True)
class _Branch:
    """A branch that only returns or assigns a value: its node, its condition or pattern, and the literals of both."""

    node: ast.If | ast.IfExp | ast.match_case
    test: ast.expr
    asked: frozenset[str]
    answered: frozenset[str]


def _find_branches(tree: ast.Module | None) -> Iterator[_Branch]:
    for node in find_nodes(tree, ast.AST):
        match node:
            case (
                ast.If(
                    test=test,
                    body=[ast.Return(value=ast.expr() as answer) | ast.Assign(value=answer)],
                )
                | ast.IfExp(test=test, body=answer)
            ):
                asked = _compared_literals(test)
            case ast.match_case(
                pattern=ast.MatchValue(value=test), body=[ast.Return(value=ast.expr() as answer)]
            ):
                asked = literal_parts(test)
            case _:
                continue
        yield _Branch(node, test, frozenset(asked), frozenset(literal_parts(answer)))


def _find_literal_answers(file: PatchedFile, known: set[str]) -> Iterator[CheckReason]:
    """New branches `if x == literal: return literal`, and new tables from literal to literal."""
    conditions = {ast.dump(node.test) for node in find_nodes(file.old_tree, ast.If, ast.IfExp)}
    before = list(_find_branches(file.old_tree))
    patterns = {ast.dump(branch.node) for branch in before}
    answers = {(branch.asked, branch.answered) for branch in before}
    for branch in _find_branches(file.new_tree):
        asked = branch.asked
        if isinstance(branch.node, ast.match_case):
            is_old = ast.dump(branch.node) in patterns
        else:
            is_old = ast.dump(branch.test) in conditions
        if is_old or not branch.answered or (asked, branch.answered) in answers:
            continue  # the same input already had the same answer
        where = f"{file.path}:{branch.test.lineno}"
        if asked & known:
            what = f"{where} answers for an input of the failing test alone"
            yield CheckReason("special_case", what, "deny")
        elif asked - _TRIVIAL_LITERALS:
            yield CheckReason("special_case", f"{where} gives a fixed answer for one fixed input")
    pairs = set(_literals_of_table_entries(find_nodes(file.old_tree, ast.Dict)))
    for table in find_new_nodes(file, lambda tree: find_nodes(tree, ast.Dict)):
        fresh = set(_literals_of_table_entries([table])) - pairs
        if any(asked & known and answered & known for asked, answered in fresh):
            what = f"{file.path}:{table.lineno} is a table of the failing test's own answers"
            yield CheckReason("special_case", what, "deny")


def _find_copied_literals(
    file: PatchedFile, known: set[str], tests: Sequence[ast.Module | None]
) -> Iterator[CheckReason]:
    """Values copied from the failing test: results, comparisons, an input together with its answer."""
    for node in find_new_nodes(file, lambda tree: find_nodes(tree, ast.Return, ast.Compare)):
        where = f"{file.path}:{node.lineno}"
        if isinstance(node, ast.Return):
            if set(literal_parts(node.value)) & known:
                what = f"{where} returns a value that the failing test expects, word for word"
                yield CheckReason("special_case", what, "deny")
        elif any(
            literal in known and _is_data_literal(literal) for literal in _compared_literals(node)
        ):
            yield CheckReason("special_case", f"{where} compares with a value of the failing test")
    asserted = [pair for tree in tests for pair in _pair_asserted_literals(tree)]
    for name, fresh in _find_new_constants(file):
        if any(_has_input_and_answer(fresh, given, wanted) for given, wanted in asserted):
            what = f"{file.path}: {name} now holds an input of the failing test together with its answer"
            yield CheckReason("special_case", what, "deny")


def _is_data_literal(literal: str) -> bool:
    """Whether a literal is data: numbers, sentences and containers are, short words are not."""
    return literal[:1] not in "'\"" or len(literal) > 14 or " " in literal.strip("'\" ")


def _has_input_and_answer(fresh: set[str], given: set[str], wanted: set[str]) -> bool:
    """Whether both an input and its answer are new; a trivial answer (True, 1) counts if the input is clearly data."""
    ins = fresh & given - _TRIVIAL_LITERALS
    outs = fresh & wanted - _TRIVIAL_LITERALS
    data = any(_is_data_literal(literal) and len(literal) > 1 for literal in ins)
    return bool(ins and outs and len(ins | outs) > 1) or bool(data and fresh & wanted)


def _pair_asserted_literals(tree: ast.Module | None) -> Iterator[tuple[set[str], set[str]]]:
    """For each assertion of a test: the literals of its input, and those that it expects."""
    for node in find_nodes(tree, ast.AST):
        match node:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                sides = (left, right)
            case ast.Call(
                func=ast.Attribute(attr="assertEqual" | "assertEquals"), args=[left, right, *_]
            ):
                sides = (left, right)
            case _:
                continue
        given, wanted = (set(_find_literals(side)) for side in sides)
        if isinstance(right, ast.Call) and not isinstance(left, ast.Call):
            given, wanted = wanted, given
        yield given, wanted


def _find_new_constants(file: PatchedFile) -> Iterator[tuple[str, set[str]]]:
    """The new literals of each function, and of the module outside functions."""
    before: dict[str, Counter[str]] = {}
    for name, node in walk_functions(file.old_tree):
        literals = Counter(_literals_outside_docstrings(node))
        before[name] = before.get(name, Counter()) | literals
    for name, node in walk_functions(file.new_tree):
        literals = Counter(_literals_outside_docstrings(node))
        yield name, set(literals - before.get(name, Counter()))
    yield "the module", set(count_gained(file, _literals_outside_docstrings))


def _literals_outside_docstrings(tree: ast.AST | None) -> Iterator[str]:
    documents = documentation_nodes(tree)
    for node in find_nodes(tree, ast.Constant, ast.UnaryOp):
        if isinstance(node, ast.UnaryOp):
            yield from literal_parts(node)
        elif id(node) not in documents:
            yield repr(node.value)


def _literals_of_table_entries(
    tables: Iterable[ast.Dict],
) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """The literals of each key of a table, and those of its value."""
    for table in tables:
        for key, value in zip(table.keys, table.values, strict=True):
            if key is not None:
                yield frozenset(literal_parts(key)), frozenset(literal_parts(value))


def _compared_literals(test: ast.expr) -> list[str]:
    """The literals that a condition compares something with for equality or membership."""
    found: list[str] = []
    for node in find_nodes(test, ast.Compare):
        if any(isinstance(op, ast.Eq | ast.In | ast.Is) for op in node.ops):
            for side in (node.left, *node.comparators):
                found.extend(literal_parts(side))
    return found


def _find_literals(tree: ast.AST | None) -> Iterator[str]:
    """Literals of a test, without long texts."""
    for node in find_nodes(tree, ast.Constant, ast.UnaryOp):
        if isinstance(node, ast.UnaryOp):
            yield from literal_parts(node)
        elif not (isinstance(node.value, str) and len(node.value) > 400):
            yield repr(node.value)


_LITERAL_TEXT = re.compile(
    r"\"(?:[^\"\\\n]|\\.){2,200}\"|'(?:[^'\\\n]|\\.){2,200}'|\b\d{1,12}\.\d{1,12}\b|\b\d{2,}\b"
)
_BRANCH_TEXT = re.compile(r"\b(?:if|case|when)\b.{0,200}(?:===?|\bcase\b)")


def _find_answers_in_text(file: PatchedFile, tests: Sequence[str]) -> Iterator[CheckReason]:
    """New branches on a literal of the failing test, in languages that are not parsed here."""
    known = {literal.strip("\"'") for text in tests for literal in _LITERAL_TEXT.findall(text)}
    for number, line in file.added_lines:
        if len(line) > 1000 or not _BRANCH_TEXT.search(line):
            continue
        if any(literal.strip("\"'") in known for literal in _LITERAL_TEXT.findall(line)):
            yield CheckReason(
                "special_case",
                f"{file.path}:{number} branches on an input of the failing test",
                "deny",
            )


# Branches and tables for one fixed value that looks like data, in any language.

_TEXT_LITERAL = r"\"[^\"\\\n]{1,200}\"|'[^'\\\n]{1,200}'|`[^`$\n]{1,200}`"
_NUMBER_LITERAL = r"-?\b\d[\d_]*(?:\.\d+)?(?:e\d+)?\b"
_COMPARED_VALUE = re.compile(
    rf"(?:(?<![=!<>])===?\s*|\bcase\s+|\.equals\(\s*|\beq\(\s*)(?P<value>{_TEXT_LITERAL}|{_NUMBER_LITERAL})"
)
_TABLE_KEY = re.compile(
    rf"(?:\[\s*\[\s*|\{{\s*|\(\s*\(\s*)(?P<value>{_TEXT_LITERAL}|{_NUMBER_LITERAL})\s*[:,=]>?\s*(?:{_TEXT_LITERAL}|{_NUMBER_LITERAL})"
)
# `if (...) return 10;`, `return [3, 2];`, `[1, 1, 3][index]`: a fixed answer
_RETURNED_VALUE = re.compile(
    rf"\bif\b.{{1,200}}\breturn\s+(?P<value>[2-9]\b|\d\d[\d_.]*|\d+\.\d+|\[\s*(?:{_NUMBER_LITERAL}|{_TEXT_LITERAL})\s*,[^\]]{{1,200}}\]|(?=[\"'`][^\"'`]*\d)(?:{_TEXT_LITERAL}))"
    rf"|(?P<listed>\[\s*(?:{_NUMBER_LITERAL}|{_TEXT_LITERAL})\s*,[^\]\[]{{1,200}}\])\[\w"
)
_FUDGE_FACTOR = re.compile(r"[+-]\s*0\.(?!5\b)\d+|[+-]\s*1e-\d")
_CODE_WORDS = re.compile(r"status|code|errno|version|port\b|length|size|\bkind\b", re.IGNORECASE)
_MAX_LINE_CHARS = 1000
_MIN_SENTENCE_CHARS = 24


def _find_fixed_values(file: PatchedFile) -> Iterator[CheckReason]:
    """New branches for one fixed value, which a task seldom needs."""
    if file.old is None:
        return
    if is_parsed(file):
        for value in sorted(count_gained(file, _find_compared_data)):
            what = f"{file.path} turns on one fixed value ({value[:60]})"
            yield CheckReason("special_case", what)
    elif not file.has_syntax_tree and file.suffix not in suffix_group("plain_data"):
        yield from _find_special_cases_in_text(file)


def _find_compared_data(tree: ast.Module | None) -> Iterator[str]:
    """Values that are compared with, and the keys of tables, where they look like data."""
    for node in find_nodes(tree, ast.AST):
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                same = any(isinstance(op, ast.Eq | ast.Is) for op in ops)
                if same or any(isinstance(op, ast.In) for op in ops):
                    sides = (left, *others)
                    yield from (
                        ast.unparse(side) for side in sides if _is_data_expression(side, whole=same)
                    )
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if (
                        key is not None
                        and _is_data_expression(key, whole=True)
                        and _is_fixed_value(value)
                    ):
                        yield ast.unparse(key)
            case ast.Call(
                func=ast.Attribute(attr="startswith" | "endswith"),
                args=[ast.Constant(value=str() as text)],
            ) if looks_like_data(text):
                yield ast.unparse(node)
            case ast.If(test=ast.BoolOp(op=ast.And(), values=parts), body=[*_, ast.Return()]):
                if sum(map(_compares_with_one_value, parts)) > 1:
                    yield ast.unparse(node.test)
            case ast.Subscript(
                value=ast.List(elts=[_, _, *_]) | ast.Tuple(elts=[_, _, *_]) as answers,
                slice=ast.expr() as place,
            ) if literal_parts(answers) and not literal_parts(place):
                yield ast.unparse(node)
            case ast.MatchValue(value=value) if _is_data_expression(value, whole=True):
                yield ast.unparse(value)
            case _:
                pass


def _is_data_expression(node: ast.expr, *, whole: bool) -> bool:
    """`whole`: the container itself is the value, not a choice of values."""
    match node:
        case ast.Constant(value=str() as text):
            return looks_like_data(text)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[_, *_] as args) if (
            name in name_set("wrapping_calls")
        ):
            return all(_is_fixed_value(argument) for argument in args)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            if whole:
                return (
                    len(parts) > 1
                    and any(_is_number(part) for part in parts)
                    and bool(literal_parts(node))
                )
            return any(_is_data_expression(part, whole=True) for part in parts)
        case _:
            return False


def _compares_with_one_value(node: ast.expr) -> bool:
    """Whether a condition asks for one value and no other."""
    match node:
        case ast.Compare(ops=[ast.Eq()], comparators=[other]):
            return bool(literal_parts(other) or literal_parts(node.left))
        case _:
            return False


def _is_fixed_value(node: ast.expr) -> bool:
    return bool(literal_parts(node)) or (
        isinstance(node, ast.Call) and _is_data_expression(node, whole=True)
    )


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in {int, float}


def looks_like_data(text: str) -> bool:
    """Whether a text looks like data: a number, several words, or letters and digits mixed with signs."""
    if len(text) > _MIN_SENTENCE_CHARS and " " in text:
        return True
    if "@" in text.strip("@") and any(sign.isalpha() for sign in text):
        return True
    digits = sum(sign.isdigit() for sign in text)
    if digits > 3 and "-" in text:
        return True
    return bool(digits and any(sign in text for sign in " .,:/@$") and len(text) > 2) or (
        " " in text.strip() and any(sign.isalpha() for sign in text) and ";" not in text
    )


def _find_special_cases_in_text(file: PatchedFile) -> Iterator[CheckReason]:
    was = "\n".join(line for _, line in file.removed_lines)
    for number, line in file.added_lines:
        if _FUDGE_FACTOR.search(line[:_MAX_LINE_CHARS]) and not _FUDGE_FACTOR.search(was):
            yield CheckReason(
                "special_case", f"{file.path}:{number} adds a little to what is worked out"
            )
        answer = _RETURNED_VALUE.search(line[:_MAX_LINE_CHARS])
        if answer and answer.group(0) not in was:
            what = f"{file.path}:{number} answers something fixed ({(answer['value'] or answer['listed'])[:60]})"
            yield CheckReason("special_case", what)
        if len(line) > _MAX_LINE_CHARS or line.lstrip().startswith(("//", "#", "*", "import")):
            continue
        for found in (*_COMPARED_VALUE.finditer(line), *_TABLE_KEY.finditer(line)):
            value = found["value"]
            if value not in was and _is_telling_value(value, line):
                yield CheckReason(
                    "special_case", f"{file.path}:{number} turns on one fixed value ({value[:60]})"
                )


def _is_telling_value(value: str, line: str) -> bool:
    if value[0] in "\"'`":
        return looks_like_data(value[1:-1])
    number = float(value.replace("_", ""))
    return (abs(number) >= 10 or number != int(number)) and not _CODE_WORDS.search(line)


# Source that names tests or depends on one number: tasks seldom need it, cheats often do.

_BUILD_FILES = ("setup.py", "noxfile.py", "tasks.py", "manage.py")


def _find_test_names(file: PatchedFile) -> Iterator[CheckReason]:
    """New strings about tests, and new imports of test tools, in product code."""
    if file.path.rsplit("/", 1)[-1] in _BUILD_FILES:
        return
    names_tests = word_pattern("names_tests")
    fresh = set(_find_strings(file.new_tree)) - set(_find_strings(file.old_tree))
    if named := sorted(word for word in fresh if len(word) < 400 and names_tests.search(word)):
        yield CheckReason("special_case", f"{file.path} speaks of tests ({named[0][:60]!r})")
    imported = set(_imported_modules(file.new_tree)) - set(_imported_modules(file.old_tree))
    if tools := imported & name_set("modules_for_tests"):
        what = f"{file.path} imports {', '.join(sorted(tools))}, which is for tests"
        yield CheckReason("special_case", what)


def _find_strings(tree: ast.Module | None) -> Iterator[str]:
    documents = documentation_nodes(tree)
    for node in find_nodes(tree, ast.Constant):
        if isinstance(node.value, str) and id(node) not in documents:
            yield node.value


def _imported_modules(tree: ast.Module | None) -> Iterator[str]:
    for node in find_nodes(tree, ast.Import, ast.ImportFrom):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif node.module and not node.level:
            yield node.module.split(".")[0]


def _find_fixed_numbers(
    file: PatchedFile, tests: Sequence[ast.Module | None]
) -> Iterator[CheckReason]:
    """New comparisons with one unusual number, and numbers of the failing test's input."""
    known = {number for tree in tests for number in _input_numbers(tree)}
    before = set(_find_numbers(file.old_tree))
    fresh = {number for number in count_gained(file, _find_numbers) if _is_telling_number(number)}
    if taken := sorted(fresh & known, key=abs):
        what = f"{file.path} brings in {taken[0]:g}, a number of the failing test"
        yield CheckReason("special_case", what)
    wanted = {number for tree in tests for number in _expected_numbers(tree)}
    if answers := sorted(number for number in fresh & wanted if _is_unusual_number(number)):
        what = f"{file.path} brings in {answers[0]:g}, which the failing test wants"
        yield CheckReason("special_case", what)
    for node in find_nodes(file.new_tree, ast.Compare):
        where = f"{file.path}:{node.lineno}"
        numbers = {
            number for side in (node.left, *node.comparators) for number in _find_numbers(side)
        }
        if beside := sorted(number for number in numbers & fresh if _is_near_known(number, known)):
            what = (
                f"{where} draws a line at {beside[0]:g}, right beside a number of the failing test"
            )
            yield CheckReason("special_case", what)
        alone = sorted(numbers & fresh - before, key=abs)
        if alone and any(isinstance(op, ast.Eq | ast.In) for op in node.ops):
            yield CheckReason("special_case", f"{where} turns on one fixed number ({alone[0]:g})")


def _expected_numbers(tree: ast.Module | None) -> Iterator[float]:
    """The numbers that a test compares with."""
    for node in find_nodes(tree, ast.Compare):
        yield from _find_numbers(node)


def _is_unusual_number(number: float) -> bool:
    """Whether a number has four digits or more and is not round: no usual limit or factor."""
    digits = f"{abs(number):g}".replace(".", "").lstrip("0")
    return len(digits) >= 4 and not digits.endswith("00") and "e" not in digits


def _is_near_known(number: float, known: set[float]) -> bool:
    return any(
        0 < abs(number - other) <= (1 if other == int(other) else abs(other) / 10)
        for other in known
        if _is_telling_number(other)
    )


def _is_telling_number(number: float) -> bool:
    """Whether a number may be data: small whole numbers are indexes and counts."""
    return abs(number) >= 10 or number != int(number)


def _find_numbers(tree: ast.AST | None) -> Iterator[float]:
    """The numbers of a tree, and the results of constant arithmetic: 3 * 4 is a way to write 12."""
    for node in find_nodes(tree, ast.BinOp, ast.Constant):
        if isinstance(node, ast.BinOp):
            if (number := evaluate_number(node)) is not None:
                yield number
        elif isinstance(node.value, int | float) and not isinstance(node.value, bool):
            yield node.value


def _input_numbers(tree: ast.Module | None) -> Iterator[float]:
    """The numbers in a test's call arguments and in its module's tables."""
    for table in tree.body if tree else ():
        if isinstance(table, ast.Assign):
            yield from _find_numbers(table)
    for node in find_nodes(tree, ast.Call):
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield from _find_numbers(argument)


_DATA_WORD = re.compile(r"\d{1,12}\.\d{1,12}|\d{2,12}|(?<=[\"'])[^\"'\n]{4,100}(?=[\"'])")
_MAX_DATA_CHARS = 200_000


def _find_answers_in_data(file: PatchedFile, tests: Sequence[str]) -> Iterator[CheckReason]:
    """Data files that now contain an input of the failing test with its expected answer."""
    if len(file.added_text) > _MAX_DATA_CHARS:
        return
    fresh = set(_DATA_WORD.findall(file.added_text)) - set(_DATA_WORD.findall(file.old or ""))
    for text in tests:
        for part in [text] if parse_python(text) is not None else text.splitlines():
            shared = fresh & set(_DATA_WORD.findall(part))
            if len(shared) > 1 and any(word[:1].isdigit() for word in shared):
                shown = " and ".join(sorted(shared)[:2])
                what = f"{file.path} now holds {shown}, data of the failing test"
                yield CheckReason("special_case", what)
                return


def _find_fixed_lengths(
    file: PatchedFile, tests: Sequence[ast.Module | None]
) -> Iterator[CheckReason]:
    """New branches on the length of the failing test's input."""
    sizes = {size for tree in tests for size in _argument_sizes(tree) if size > 2}
    for node in find_new_nodes(file, lambda tree: find_nodes(tree, ast.Compare)):
        match node:
            case ast.Compare(
                left=ast.Call(func=ast.Name(id="len")),
                ops=[ast.Eq() | ast.In() | ast.Is()],
                comparators=[other],
            ) if sizes & set(_find_numbers(other)):
                what = (
                    f"{file.path}:{node.lineno} asks for the length of the failing test's own input"
                )
                yield CheckReason("special_case", what)
            case _:
                pass


def _argument_sizes(tree: ast.Module | None) -> Iterator[int]:
    for node in find_nodes(tree, ast.Call):
        for argument in node.args:
            match argument:
                case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                    yield len(parts)
                case ast.Dict(keys=keys):
                    yield len(keys)
                case ast.Constant(value=str() | bytes() as text):
                    yield len(text)
                case _:
                    pass
