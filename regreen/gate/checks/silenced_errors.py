"""Finds silenced errors: disabled checks, handlers, defaults, fixed waits, wider limits."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from regreen.code.file_change import CheckReason, PatchedFile, ReasonLevel
from regreen.code.paths import is_document, is_test
from regreen.code.python_calls import last_name, parse_syntax_tree
from regreen.gate.facts import (
    count_gained,
    exclude_tests_and_documents,
    find_changed_products,
    find_new_nodes,
    find_nodes,
    is_parsed,
    literal_parts,
    read_settings,
    walk_functions,
    walk_scopes,
)
from regreen.gate.words import find_broken_rules, name_set, suffix_group, word_pattern

_THRESHOLD = re.compile(
    r"\b(fail_under|fail-under|cov-fail-under|min_coverage|minimum_coverage|branches|lines|statements|functions"
    r"|max-line-length|line-length|max-complexity|max-warnings|tolerance|rtol|atol|rel_tol|abs_tol)\b[\"']?\s*+(?:[:=]\s*+)?(\d+(?:\.\d+)?(?:e-?\d+)?)"
)
_IGNORE_LIST = re.compile(
    r"^\s*[\"']?(extend-ignore|ignore|extend-exclude|exclude|disable|per-file-ignores|ignore_errors|ignore_missing_imports|omit|skip)[\"']?\s*="
)
_BROAD_EXCEPTIONS = {"Exception", "BaseException"}


def check_silenced_errors(
    files: Sequence[PatchedFile], kinds: Sequence[str] = (), tree: Collection[str] = ()
) -> list[CheckReason]:
    """Check 4; `kinds` are the exception types that failing tests raised, `tree` the paths before the patch."""
    reasons: list[CheckReason] = []
    for file in files:
        if is_document(file.path):
            continue
        thresholds = list(_find_lowered_thresholds(file))
        silenced = [
            *_describe_broken_rules(file, "suppressed"),
            *_find_ignore_lists(file, tree),
            *_find_swallowed_errors(file, kinds),
        ]
        if not is_test(file.path) and not word_pattern("passed_on").search(file.added_text):
            silenced += _describe_broken_rules(file, "quiet")
        is_all = bool(thresholds or silenced) and _only_silences_errors(file, files)
        certain: ReasonLevel = "deny"
        level: ReasonLevel = certain if is_all else "needs_human"
        tail = ", and does nothing else" if is_all else ""
        lines = [(what, level) for what in silenced] + [(what, certain) for what in thresholds]
        moved = [
            x for at, line in file.added_lines for x in _find_moved_entries(file, at, line, tree)
        ]
        reasons += [
            CheckReason(
                "silenced", f"{file.path}: what is left out follows a file ({x})", "needs_human"
            )
            for x in moved
        ]
        reasons += [
            CheckReason("silenced", f"{file.path}: {what}{tail}", weight) for what, weight in lines
        ]
    return reasons


def _describe_broken_rules(file: PatchedFile, family: str) -> Iterator[str]:
    for rule in find_broken_rules(file, family):
        yield f"{rule.says} ({rule.line.strip()[:80]})"


def _find_lowered_thresholds(file: PatchedFile) -> Iterator[str]:
    if file.suffix not in suffix_group("thresholds") and not is_test(file.path):
        return
    before, after = (
        [(name, float(value)) for _, line in lines for name, value in _THRESHOLD.findall(line)]
        for lines in (file.removed_lines, file.added_lines)
    )
    earlier = dict(before)
    for name, value in after:
        was = earlier.get(name, value)
        if value > was if name in name_set("rising_thresholds") else value < was:
            yield f"the threshold {name} goes from {was:g} to {value:g}"


def _find_ignore_lists(file: PatchedFile, tree: Collection[str]) -> Iterator[str]:
    if file.suffix in {".toml", ".ini", ".cfg"}:
        for number, line in file.added_lines:
            is_move = _find_moved_entries(file, number, line, tree)
            if _IGNORE_LIST.match(line) and not is_move:
                yield f"leaves something out of the check ({line.strip()[:80]})"


_ENTRY_PATH = re.compile(r"[\w./-]+")


def _find_moved_entries(
    file: PatchedFile, number: int, after: str, tree: Collection[str]
) -> list[str]:
    """The entries in which a line differs from the one that it replaces; none if one of them is no file that moved.

    A file moved if its old path is gone and exactly one file has its name, at the new path.
    """
    before = dict(file.removed_lines).get(number, "")
    rests = [_ENTRY_PATH.split(line) for line in (before, after)]
    names = [_ENTRY_PATH.findall(line) for line in (before, after)]
    if rests[0] != rests[1] or re.search(r"[*?!^]", after) or not _IGNORE_LIST.match(after):
        return []
    moved = [pair for pair in zip(*names, strict=True) if pair[0] != pair[1]]
    is_move = all(
        was.strip("./") not in tree
        and [x for x in tree if x.rpartition("/")[2] == was.rpartition("/")[2]] == [now]
        for was, now in moved
    )
    return [f"{was} is {now}" for was, now in moved] if is_move else []


def _find_swallowed_errors(file: PatchedFile, kinds: Sequence[str]) -> Iterator[str]:
    if file.old_tree is None and file.old is not None:
        return
    before = Counter(ast.dump(node) for node in _find_swallowers(file.old_tree))
    raised = {kind.rsplit(".", 1)[-1] for kind in kinds}
    for node in _find_swallowers(file.new_tree):
        dump = ast.dump(node)
        if before[dump]:
            before[dump] -= 1
            continue
        caught = _names_of_caught_types(node)
        if caught & _BROAD_EXCEPTIONS or not caught:
            yield f"line {node.lineno} swallows every exception"
        elif caught & raised:
            yield f"line {node.lineno} swallows the very exception that the test saw"


def _find_swallowers(
    tree: ast.Module | None,
) -> Iterator[ast.ExceptHandler | ast.With | ast.AsyncWith]:
    """Handlers and blocks that swallow an exception."""
    names = _suppress_names(tree)
    for node in find_nodes(tree, ast.AST):
        match node:
            case ast.ExceptHandler():
                is_broad = node.type is None or bool(
                    _names_of_caught_types(node) & _BROAD_EXCEPTIONS
                )
                if _has_trivial_body(node.body) or (is_broad and not _uses_exception(node)):
                    yield node
            case ast.With() | ast.AsyncWith():
                if _find_suppressed_types(node, names) is not None:
                    yield node
            case ast.Try(finalbody=[first, *_] as body):
                # a `return` in `finally` discards the exception
                if any(
                    isinstance(statement, ast.Return | ast.Break | ast.Continue)
                    for statement in body
                ):
                    yield ast.ExceptHandler(None, None, body, lineno=first.lineno)
            case ast.FunctionDef(name="__exit__" | "__aexit__", body=body):
                if _returns_true(node):
                    yield ast.ExceptHandler(None, None, body, lineno=node.lineno)
            case _:
                pass


def _uses_exception(node: ast.ExceptHandler) -> bool:
    """Whether the handler raises or uses the exception."""
    return (
        _raises(node)
        or _uses_caught_name(node)
        or any(
            part.attr in {"exc_info", "format_exc", "print_exc"}
            for statement in node.body
            for part in find_nodes(statement, ast.Attribute)
        )
    )


def _raises(node: ast.ExceptHandler) -> bool:
    return any(find_nodes(node, ast.Raise))


def _uses_caught_name(node: ast.ExceptHandler) -> bool:
    return node.name is not None and any(
        part.id == node.name for statement in node.body for part in find_nodes(statement, ast.Name)
    )


def _returns_true(node: ast.FunctionDef) -> bool:
    return any(
        isinstance(answer.value, ast.Constant) and bool(answer.value.value)
        for answer in find_nodes(node, ast.Return)
    )


def _suppress_names(tree: ast.Module | None) -> set[str]:
    """The names that `contextlib.suppress` goes by."""
    return {"suppress"} | {
        alias.asname
        for node in find_nodes(tree, ast.ImportFrom)
        if node.module == "contextlib"
        for alias in node.names
        if alias.name == "suppress" and alias.asname
    }


def _has_trivial_body(body: Sequence[ast.stmt]) -> bool:
    """Whether a body does nothing with the error: pass, constants, log lines."""
    return all(_is_trivial_statement(node) for node in body)


def _is_trivial_statement(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Continue() | ast.Break() | ast.Expr():
            return True
        case ast.Return(value=value) | ast.Assign(value=value):
            return value is None or _is_constant_or_empty(value)
        case _:
            return False


def _is_constant_or_empty(node: ast.expr) -> bool:
    match node:
        case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
            return True
        case _:
            return _is_empty_collection(node)


def _is_empty_collection(node: ast.expr) -> bool:
    match node:
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(args=[], func=ast.Name(id="set" | "dict" | "list" | "tuple" | "str")):
            return True
        case _:
            return False


def _find_suppressed_types(
    node: ast.With | ast.AsyncWith, names: Collection[str] = ("suppress",)
) -> set[str] | None:
    """The types that a `with suppress(...)` suppresses, None for other blocks; `names` are the aliases of `suppress`."""
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call) and last_name(call.func) in names:
            return {last_name(argument) for argument in call.args}
    return None


def _names_of_caught_types(node: ast.ExceptHandler | ast.With | ast.AsyncWith) -> set[str]:
    match node:
        case ast.ExceptHandler(type=None):
            return set()
        case ast.ExceptHandler(type=ast.Tuple(elts=kinds)):
            return {last_name(kind) for kind in kinds}
        case ast.ExceptHandler(type=ast.expr() as kind):
            return {last_name(kind)}
        case ast.With(items=items) | ast.AsyncWith(items=items):
            calls = [item.context_expr for item in items if isinstance(item.context_expr, ast.Call)]
            return {last_name(argument) for argument in calls[0].args} if calls else set()
        case _:
            return set()


def _only_silences_errors(file: PatchedFile, files: Sequence[PatchedFile]) -> bool:
    """Whether the patch does nothing but silence errors."""
    if any(other is not file for other in exclude_tests_and_documents(files)):
        return False
    if is_parsed(file):
        before, after = (
            _SilencingUnwrapper().visit(parse_syntax_tree(text or ""))
            for text in (file.old, file.new)
        )
        return ast.dump(before) == ast.dump(after)
    return len([line for _, line in file.added_lines if line.strip()]) <= 2


class _SilencingUnwrapper(ast.NodeTransformer):
    """Removes quiet handlers and suppressions from a tree."""

    def visit_Try(self, node: ast.Try) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        loud = [handler for handler in node.handlers if not _has_trivial_body(handler.body)]
        if loud or node.finalbody or not node.handlers:
            return node
        return [*node.body, *node.orelse]

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        is_silence = _find_suppressed_types(node) is not None and len(node.items) == 1
        return list(node.body) if is_silence else node

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        return None if [alias.name for alias in node.names] == ["contextlib"] else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module == "contextlib" else node


# Fallbacks where the program used to fail: defaults, empty values, wider handlers, wider limits.

_LONG_NUMBER_DIGITS = 7
_MAX_GROWTH = 2.0
_EMPTY_VALUES = {"None", "False", "True", "''", "b''"}


def check_fallbacks(files: Sequence[PatchedFile]) -> list[CheckReason]:
    """What failed should still fail: a fallback in its place needs a person."""
    reasons: list[CheckReason] = []
    for file in find_changed_products(files):
        silenced = [f": {what}" for what in _describe_broken_rules(file, "dulled")]
        answers: list[str] = []
        special: list[str] = []
        if is_parsed(file):
            silenced += [*_find_hidden_mistakes(file), *_find_wider_exception_values(file)]
            silenced += _find_more_than_doubled_limits(file)
            answers += [
                *_find_new_defaults(file),
                *_find_empty_fallbacks(file),
                *_find_quiet_handlers(file),
                *_find_new_suppressors(file),
                *_find_left_out_items(file),
                *_find_stand_in_numbers(file),
            ]
            special += [*_find_tuned_factors(file), *_find_unreachable_code(file)]
        for check, words in (("silenced", silenced), ("size", answers), ("special_case", special)):
            reasons += [CheckReason(check, f"{file.path}{what}") for what in words]
    return reasons


def _find_new_defaults(file: PatchedFile) -> Iterator[str]:
    """`d["k"]` that becomes `d.get("k", "")`: the lookup no longer fails."""
    lost = Counter(_find_lookups(file.old_tree)) - Counter(_find_lookups(file.new_tree))
    soft_keys = {key for _, key in count_gained(file, _find_soft_lookups)}
    for owner, key in lost:
        if key in soft_keys:
            yield f": a lookup that could fail answers a default now ({owner[:40]}[{key[:40]}])"


def _find_lookups(tree: ast.Module | None) -> Iterator[tuple[str, str]]:
    for node in find_nodes(tree, ast.Subscript):
        if isinstance(node.ctx, ast.Load):
            yield ast.unparse(node.value), ast.unparse(node.slice)


def _find_soft_lookups(tree: ast.Module | None) -> Iterator[tuple[str, str]]:
    for node in find_nodes(tree, ast.Call):
        match node:
            case (
                ast.Call(
                    func=ast.Attribute(value=owner, attr="get" | "pop" | "setdefault"),
                    args=[key, *_],
                )
                | ast.Call(func=ast.Name(id="getattr"), args=[owner, key, _])
            ):
                yield ast.unparse(owner), ast.unparse(key)
            case _:
                pass


def _find_empty_fallbacks(file: PatchedFile) -> Iterator[str]:
    """`return load()` that becomes `return load() if there else {}`, or `load() or {}`."""
    lost = Counter(_find_returned_calls(file.old_tree))
    lost -= Counter(_find_returned_calls(file.new_tree))
    for node in find_nodes(file.new_tree, ast.IfExp, ast.BoolOp):
        match node:
            case ast.IfExp(body=call, orelse=other) if _is_empty_value(other):
                pass
            case ast.IfExp(body=other, orelse=call) if _is_empty_value(other):
                pass
            case ast.BoolOp(op=ast.Or(), values=[call, other]) if _is_empty_value(other):
                pass
            case _:
                continue
        if ast.unparse(call) in lost:
            yield f":{node.lineno} answers nothing where it called {ast.unparse(call)[:60]}"


def _find_returned_calls(tree: ast.Module | None) -> Iterator[str]:
    for node in find_nodes(tree, ast.stmt):
        match node:
            case (
                ast.Return(value=ast.Call() as call)
                | ast.Assign(value=ast.Call() as call)
                | ast.AnnAssign(value=ast.Call() as call)
            ):
                yield ast.unparse(call)
            case _:
                pass


def _is_empty_value(node: ast.expr) -> bool:
    """A constant, or an empty collection."""
    return _is_empty_collection(node) or bool(literal_parts(node))


def _new_silent_handlers(file: PatchedFile) -> Iterator[ast.ExceptHandler]:
    """The new handlers that raise nothing."""
    handlers = find_new_nodes(file, lambda tree: find_nodes(tree, ast.ExceptHandler))
    return (node for node in handlers if not _raises(node))


def _find_quiet_handlers(file: PatchedFile) -> Iterator[str]:
    """New handlers that return a fixed value or continue silently."""
    for node in _new_silent_handlers(file):
        answers = [
            literal
            for statement in node.body
            if isinstance(statement, ast.Return | ast.Assign) and statement.value is not None
            for literal in literal_parts(statement.value)
        ]
        if any(literal not in _EMPTY_VALUES for literal in answers):
            yield f":{node.lineno} answers {answers[0][:40]} in place of an error"
        elif answers or _has_trivial_body(node.body):
            what = ast.unparse(node.type)[:60] if node.type else "anything"
            yield f":{node.lineno} goes on after {what} as if nothing had been"


def _find_hidden_mistakes(file: PatchedFile) -> Iterator[str]:
    for node in _new_silent_handlers(file):
        mistakes = _names_of_caught_types(node) & name_set("bug_exceptions")
        if mistakes and not _uses_caught_name(node):
            names = ", ".join(sorted(mistakes))
            yield f":{node.lineno} goes on after {names}, which mistakes raise"


def _find_new_suppressors(file: PatchedFile) -> Iterator[str]:
    for text in count_gained(file, _find_suppressors):
        yield f": goes on as if nothing had been ({text[:80]})"


def _find_suppressors(tree: ast.Module | None) -> Iterator[str]:
    for node in find_nodes(tree, ast.With, ast.AsyncWith):
        if _find_suppressed_types(node) is not None:
            yield ast.unparse(node.items[0])


def _find_left_out_items(file: PatchedFile) -> Iterator[str]:
    """`if key not in table: continue` before `table[key]`: failing items are now skipped."""
    lookups = set(_find_lookups(file.old_tree))
    for node in find_new_nodes(file, _find_skipping_conditions):
        match node.test:
            case ast.Compare(left=key, ops=[ast.NotIn()], comparators=[owner]) if (
                ast.unparse(owner),
                ast.unparse(key),
            ) in lookups:
                yield f":{node.lineno} passes over {ast.unparse(key)[:40]} where the lookup failed"
            case _:
                pass


def _find_skipping_conditions(tree: ast.Module | None) -> Iterator[ast.If]:
    for node in find_nodes(tree, ast.If):
        if isinstance(node.body[-1], ast.Continue | ast.Return | ast.Pass):
            yield node


def _find_stand_in_numbers(file: PatchedFile) -> Iterator[str]:
    """`x / (n or 1)`: a number that stands in for one that is zero or missing."""
    for text in count_gained(file, _find_numeric_or_defaults):
        yield f": a fixed number stands in ({text[:60]})"


def _find_numeric_or_defaults(tree: ast.Module | None) -> Iterator[str]:
    for node in find_nodes(tree, ast.BoolOp):
        last = node.values[-1]
        if not isinstance(node.op, ast.Or) or not isinstance(last, ast.Constant):
            continue
        if last.value and type(last.value) in {int, float}:
            yield ast.unparse(node)


def _find_wider_exception_values(file: PatchedFile) -> Iterator[str]:
    """`on=(OSError,)` that becomes `on=(Exception,)`: errors are chosen by value, too."""
    if fresh := count_gained(file, _find_broad_exceptions_as_values):
        yield f": {min(fresh)} is named as what may be caught"


def _find_broad_exceptions_as_values(tree: ast.Module | None) -> Iterator[str]:
    for node in find_nodes(tree, ast.AST):
        match node:
            case ast.arguments(defaults=defaults, kw_defaults=others):
                values = [*defaults, *(value for value in others if value is not None)]
            case ast.keyword(value=value) | ast.Assign(value=value):
                values = [value]
            case _:
                continue
        for value in values:
            names = map(last_name, value.elts if isinstance(value, ast.Tuple) else [value])
            yield from (name for name in names if name in _BROAD_EXCEPTIONS)


def _find_tuned_factors(file: PatchedFile) -> Iterator[str]:
    """A new factor with many digits is usually derived from the expected answer."""
    fresh = set(_find_long_numbers(file.new_tree)) - set(_find_long_numbers(file.old_tree))
    for number in sorted(fresh):
        yield f" brings in {number}, a number of many digits"


def _find_long_numbers(tree: ast.Module | None) -> Iterator[str]:
    for name, function in walk_functions(tree):
        for node in find_nodes(function, ast.Constant):
            if isinstance(node.value, float):
                digits = repr(node.value).split("e")[0].replace(".", "").strip("0")
                if len(digits) >= _LONG_NUMBER_DIGITS:
                    yield f"{node.value!r} (in {name})"


def _find_more_than_doubled_limits(file: PatchedFile) -> Iterator[str]:
    """A tolerance, a time limit or a number of attempts that more than doubles."""
    before, after = _read_limits(file.old_tree), _read_limits(file.new_tree)
    for key, now in after.items():
        was = before.get(key, now)
        if now > max(was, was * _MAX_GROWTH):
            yield f": {key[1]} goes from {was:g} to {now:g}"


def _read_limits(tree: ast.Module | None) -> dict[tuple[str, str, int], float]:
    """Numbers that bound something: by their name, or compared with `abs(...)`."""
    limits: dict[tuple[str, str, int], float] = {
        key: setting.value
        for key, setting in read_settings(tree).items()
        if isinstance(setting.value, int | float) and not isinstance(setting.value, bool)
        if word_pattern("tolerances").search(key[1])
    }
    counts: Counter[str] = Counter()
    for scope, node in walk_scopes(tree):
        match node:
            case ast.Compare(
                left=ast.Call(func=ast.Name(id="abs")),
                ops=[ast.Lt() | ast.LtE()],
                comparators=[ast.Constant(value=int() | float() as value)],
            ):
                counts[scope] += 1
                limits[scope, "the tolerance", counts[scope]] = float(value)
            case _:
                pass
    return limits


def _find_unreachable_code(file: PatchedFile) -> Iterator[str]:
    for node in find_new_nodes(file, _unreachable_statements):
        yield f":{node.lineno} can no longer be reached"


def _unreachable_statements(tree: ast.Module | None) -> Iterator[ast.stmt]:
    """The first statement after one that leaves the block, and the body of `if False`."""
    for node in find_nodes(tree, ast.AST):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            for leaving, following in pairwise(body if isinstance(body, list) else ()):
                leaves = isinstance(leaving, ast.Return | ast.Raise | ast.Continue | ast.Break)
                if leaves and not _is_yield(following):
                    yield following
        match node:
            case (
                ast.If(test=ast.Constant(value=value), body=[first, *_])
                | ast.While(test=ast.Constant(value=value), body=[first, *_])
            ) if not value:
                yield first
            case _:
                pass


def _is_yield(node: ast.stmt) -> bool:
    """`return` before a `yield` is how an empty generator is written."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom)
