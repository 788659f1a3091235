"""Finds removed behaviour: a step, a part of a condition, a function's work, a check of bad input."""

from __future__ import annotations

import ast
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set

from regreen.code.file_change import CheckReason, PatchedFile
from regreen.gate.facts import (
    PythonFunction,
    drop_docstring,
    exclude_tests_and_documents,
    find_changed_products,
    find_nodes,
    is_parsed,
    list_parameters,
    literal_parts,
    pair_functions,
    walk_functions,
)
from regreen.gate.words import name_set, refusal_pattern

_TOKEN_PATTERN = re.compile(r"\w+|[^\w\s]")
_NO_CODE = re.compile(
    r"^\s*(?:$|#(?!\[|!\[|include)|//|/?\*|--\s|<!--|\"\"\"|'''|import\b|from\s+\S+\s+import\b|use\s|using\s|require\b|package\b|export\s+\*|[\])}>;,]+$|else\b|pass$|end$)"
)
# A call made for its effect, or a `with` block; removed computations are not counted.
_STEP_LINE = re.compile(
    r"^\s*(?:(?:await|yield|defer|go)\s+)?(?!print|log|super|assert|console|fmt\.Print|System\.out)[\w.]+(?:\([^=]*\)?)?\(.*[),;({]?\s*$|^\s*(?:async\s+)?with\s"
)
_TRAILING_COMMENT = re.compile(r"\s(?:#|//).*$")
_WORD_CHARACTER = re.compile(r"\w")
_MAX_CHARS = 4000
_MAX_REASONS = 3


def check_removed_behaviour(files: Sequence[PatchedFile]) -> list[CheckReason]:
    """Steps that a patch removes without a replacement need a person.

    Lines that the patch adds elsewhere were moved.
    """
    moved = {
        line.strip() for file in exclude_tests_and_documents(files) for _, line in file.added_lines
    }
    reasons: list[CheckReason] = []
    for file in find_changed_products(files):
        lost = [words for words in _find_removed_steps(file, moved) if words]
        reasons += [
            CheckReason("size", f"{file.path}: taken away, with nothing in its place: {words[:80]}")
            for words in lost[:_MAX_REASONS]
        ]
    return reasons


def _find_removed_steps(file: PatchedFile, moved: set[str]) -> Iterator[str]:
    for old, new in file.changed_blocks:
        gone = [line for line in old if not _NO_CODE.match(line)]
        if not new:
            steps = (line.strip() for line in gone if _STEP_LINE.match(line[:_MAX_CHARS]))
            yield next((step for step in steps if step not in moved), "")
            continue
        before, after = (
            _tokenize_lines(gone),
            _tokenize_lines([line for line in new if not _NO_CODE.match(line)]),
        )
        if _is_subsequence(after, before):
            yield _removed_words(before, after)


def _tokenize_lines(lines: Sequence[str]) -> list[str]:
    return _TOKEN_PATTERN.findall(
        "\n".join(_TRAILING_COMMENT.sub("", line[:_MAX_CHARS]) for line in lines)[:_MAX_CHARS]
    )


def _is_subsequence(few: Sequence[str], many: Sequence[str]) -> bool:
    """Whether the first sequence is a shorter subsequence of the second."""
    rest = iter(many)
    return len(few) < len(many) and all(token in rest for token in few)


def _removed_words(before: Sequence[str], after: Sequence[str]) -> str:
    """The removed tokens; empty if they are punctuation only."""
    rest, gone = list(after), []
    for token in before:
        if rest and rest[0] == token:
            rest.pop(0)
        else:
            gone.append(token)
    return " ".join(gone) if any(_WORD_CHARACTER.match(token) for token in gone) else ""


# Functions whose work a patch removes: a constant, an exception or nothing remains.


def find_emptied_bodies(file: PatchedFile, known: Set[str]) -> Iterator[CheckReason]:
    """Functions that no longer compute anything; `known` are the failing test's literals."""
    for name, old, node in pair_functions(file):
        if _is_overload(node) or ast.dump(old) == ast.dump(node):
            continue
        now, then = drop_docstring(node.body), drop_docstring(old.body)
        if len(now) > 1 or _is_empty(then) or not _reads_any_name(then):
            continue
        answer = literal_parts(now[0].value) if now and isinstance(now[0], ast.Return) else []
        if set(answer) & known:
            what = "returns what the failing test expects, computed from nothing"
            yield CheckReason("special_case", f"{file.path}: {name} {what}", "deny")
        elif answer:
            what = "now returns a constant, whatever it is given"
            yield CheckReason("special_case", f"{file.path}: {name} {what}")
        elif _is_empty(now):
            yield CheckReason("special_case", f"{file.path}: {name} no longer does anything")


def find_idle_parameters(file: PatchedFile) -> Iterator[CheckReason]:
    """Parameters that a function used and no longer uses."""
    for name, old, node in pair_functions(file):
        if len(node.body) == 1:
            continue  # `find_emptied_bodies` looks at those, and stubs may ignore what they get
        for idle in sorted((_used_names(old) & _parameter_names(node)) - _used_names(node)):
            what = f"{file.path}: {name} is given {idle} and no longer uses it"
            yield CheckReason("special_case", what)


def _parameter_names(node: PythonFunction) -> set[str]:
    names = {argument.arg for argument in list_parameters(node)}
    return {name for name in names if not name.startswith("_")} - {"self", "cls"}


def _used_names(node: PythonFunction) -> set[str]:
    return {name.id for statement in node.body for name in find_nodes(statement, ast.Name)}


def _is_overload(node: PythonFunction) -> bool:
    return any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)


def _is_empty(body: Sequence[ast.stmt]) -> bool:
    """Whether a body does no work: empty, an exception, or a constant."""
    match list(body):
        case [] | [ast.Pass()] | [ast.Raise()] | [ast.Return(value=None)]:
            return True
        case [ast.Expr(value=ast.Constant())]:
            return True
        case [ast.Return(value=value)]:
            return bool(literal_parts(value))
        case _:
            return False


def _reads_any_name(body: Sequence[ast.stmt]) -> bool:
    return any(
        isinstance(name.ctx, ast.Load)
        for statement in body
        for name in find_nodes(statement, ast.Name)
    )


# Checks of bad input or state: how many a patch keeps, and whether they still reject as much.

_CONDITION_LINE = re.compile(
    r"^\s*(?:\}\s*)?(?:else\s+)?(?:if|elif|elsif|unless)\b\s*(?P<asked>.+?)\s*(?:\{|:|;?\s*then)?\s*$"
)
_COMMENT_LINE = re.compile(r"^\s*(?://|#(?!\[|!\[)|\*|/\*)")
_MAX_LINE_CHARS = 2000


def check_refusals(files: Sequence[PatchedFile]) -> list[CheckReason]:
    """A removed check of bad input, or one that accepts more than before, needs a person."""
    reasons: list[CheckReason] = []
    for file in find_changed_products(files):
        if file.has_syntax_tree and not is_parsed(file):
            continue
        before, after = (_count_refusals(file, old=side) for side in (True, False))
        if after < before:
            what = f"of {before} places that refuse bad input or state, {after} are left"
            reasons.append(CheckReason("size", f"{file.path}: {what}"))
        reasons += _find_weaker_refusals(file)
    return reasons


def _count_refusals(file: PatchedFile, *, old: bool) -> int:
    if file.has_syntax_tree:
        tree = file.old_tree if old else file.new_tree
        return sum(map(_is_refusal, find_nodes(tree, ast.AST)))
    pattern = refusal_pattern(file.suffix)
    lines = _code_lines(file.old if old else file.new)
    return sum(len(pattern.findall(line)) for line in lines) if pattern else 0


def _is_refusal(node: ast.AST) -> bool:
    """`raise`, `assert`, `abort(403)`, `sys.exit(1)`, an answer with a status of 400 and more."""
    match node:
        case ast.Raise() | ast.Assert():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args) if (
            name in name_set("refusing_calls")
        ):
            return not (name.endswith("exit") and _is_success(args))
        case (
            ast.keyword(arg="status" | "status_code", value=ast.Constant(value=int() as status))
            | ast.Return(value=ast.Tuple(elts=[_, ast.Constant(value=int() as status), *_]))
        ):
            return 400 <= status < 600
        case _:
            return False


def _is_success(args: Sequence[ast.expr]) -> bool:
    """Whether `exit` reports success: no argument, 0, None and False do."""
    return not args or (isinstance(args[0], ast.Constant) and not args[0].value)


def _find_weaker_refusals(file: PatchedFile) -> Iterator[CheckReason]:
    before, after = (_refusal_conditions(file, old=side) for side in (True, False))
    for refusal, old in before.items():
        new = after.get(refusal, [])
        gone, fresh = (
            list((Counter(these) - Counter(other)).elements())
            for these, other in ((old, new), (new, old))
        )
        for asked in gone:
            if fresh and not any(_implies_refusal(asked, now) for now in fresh):
                what = f"{file.path}: what was refused where `{asked[:60]}` is refused only where `{fresh[0][:60]}`"
                yield CheckReason("size", what)


def _refusal_conditions(file: PatchedFile, *, old: bool) -> dict[str, list[str]]:
    """For every refusal, the conditions under which it happens."""
    found: dict[str, list[str]] = defaultdict(list)
    if file.has_syntax_tree:
        for name, function in walk_functions(file.old_tree if old else file.new_tree):
            for node in find_nodes(function, ast.If):
                if _ends_in_refusal(node.body):
                    found[f"{name}: {ast.dump(node.body[-1])}"].append(ast.unparse(node.test))
        return found
    pattern = refusal_pattern(file.suffix)
    lines = list(_code_lines(file.old if old else file.new)) if pattern else []
    for number, line in enumerate(lines[:-1]):
        asked = _CONDITION_LINE.match(line)
        following = lines[number + 1].strip()
        if asked and pattern and pattern.search(following):
            found[following].append(asked["asked"])
    return found


def _ends_in_refusal(body: Sequence[ast.stmt]) -> bool:
    last = body[-1]
    return isinstance(last, ast.Raise | ast.Expr | ast.Return) and any(
        _is_refusal(node) for node in find_nodes(last, ast.AST)
    )


def _code_lines(text: str | None) -> Iterator[str]:
    """The lines without blank lines and whole-line comments."""
    return (
        line
        for line in (text or "").split("\n")
        if line.strip() and len(line) < _MAX_LINE_CHARS and not _COMMENT_LINE.match(line)
    )


# Implication between conditions, decided from their texts.

_OPERATOR_FUNCTIONS = {
    "===": operator.eq,
    "!==": operator.ne,
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_COMPARISON = re.compile(
    r"^(?P<left>.*?\S)\s*(?P<op>===|!==|==|!=|<=|>=|<|>)\s*(?P<number>-?\d[\d_]*(?:\.\d+)?)$"
)
_MAX_CONDITION_CHARS = 2000
_COMPARISON_SIDES = re.compile(r"^(?P<left>[^<>=!]++)(?P<op>==|!=|<=|>=|<|>)(?P<right>[^<>=!]+)$")
# the comparisons of the same two sides that follow from one
_IMPLIED_OPERATORS = {
    ">": (">", ">=", "!="),
    "<": ("<", "<=", "!="),
    "==": ("==", ">=", "<="),
    ">=": (">=",),
    "<=": ("<=",),
    "!=": ("!=",),
}
_OR, _AND = re.compile(r"\|\||\bor\b"), re.compile(r"&&|\band\b")


def _implies_refusal(old: str, new: str) -> bool:
    """Whether `old` implies `new`; False may also mean that it cannot be decided.

    Both are conditions in a C-like language or in Python: alternatives are held against each other part by part,
    comparisons with numbers by their ranges. Conditions too long to be written by hand are not compared.
    """
    if len(old) + len(new) > _MAX_CONDITION_CHARS:
        return old == new
    alternatives = [
        list(_split_outside_brackets(part, _AND)) for part in _split_outside_brackets(new, _OR)
    ]
    return all(
        any(
            _implies_all(list(_split_outside_brackets(part, _AND)), other) for other in alternatives
        )
        for part in _split_outside_brackets(old, _OR)
    )


def _implies_all(held: list[str], asked: list[str]) -> bool:
    return all(any(_implies_condition(condition, other) for condition in held) for other in asked)


def _implies_condition(held: str, asked: str) -> bool:
    """Whether one plain condition follows from another."""
    if _strip_blanks(held) == _strip_blanks(asked):
        return True
    nothing = held.removesuffix(" is None") if held.endswith(" is None") else None
    if nothing is not None and asked == f"not {nothing}":
        return True
    sides, wanted = _COMPARISON_SIDES.match(held), _COMPARISON_SIDES.match(asked)
    if sides and wanted and _have_same_sides(sides, wanted):
        return wanted["op"] in _IMPLIED_OPERATORS.get(sides["op"], ())
    left, other = _COMPARISON.match(held), _COMPARISON.match(asked)
    if left is None or other is None or _strip_blanks(left["left"]) != _strip_blanks(other["left"]):
        return False
    limits = [float(found["number"].replace("_", "")) for found in (left, other)]
    points = [limit + step for limit in limits for step in (-0.5, 0, 0.5)]
    first, second = _OPERATOR_FUNCTIONS[left["op"]], _OPERATOR_FUNCTIONS[other["op"]]
    return all(second(point, limits[1]) for point in points if first(point, limits[0]))


def _have_same_sides(first: re.Match[str], other: re.Match[str]) -> bool:
    return all(
        _strip_blanks(first[side]) == _strip_blanks(other[side]) for side in ("left", "right")
    )


def _strip_blanks(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _split_outside_brackets(text: str, splitter: re.Pattern[str]) -> Iterator[str]:
    """Split where the splitter matches outside brackets and strings."""
    text = _strip_parentheses(text.strip())
    start = 0
    for found in splitter.finditer(text):
        if _is_outside_brackets(text[: found.start()]):
            yield _strip_parentheses(text[start : found.start()].strip())
            start = found.end()
    yield _strip_parentheses(text[start:].strip())


def _strip_parentheses(text: str) -> str:
    while text.startswith("(") and text.endswith(")") and _is_outside_brackets(text[1:-1]):
        inner = text[1:-1]
        depth = 0
        for sign in inner:
            depth += {"(": 1, ")": -1}.get(sign, 0)
            if depth < 0:
                return text
        text = inner.strip()
    return text


def _is_outside_brackets(before: str) -> bool:
    brackets = sum(before.count(sign) for sign in "([{") - sum(before.count(sign) for sign in ")]}")
    return brackets == 0 and before.count("'") % 2 == 0 and before.count('"') % 2 == 0
