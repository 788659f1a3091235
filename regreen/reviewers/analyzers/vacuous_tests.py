"""Tests that can no longer fail: their assertions are gone, never reached, swallowed, or always true."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from regreen.code.diff import FileChange
from regreen.code.paths import is_test
from regreen.code.python_calls import FunctionNode, is_module, last_name, parse_python
from regreen.languages.registry import find_file_tests
from regreen.reviewers.analyzers.baseline import make_analyzer_claim
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.secrets.markdown_sanitizer import count_noun

_CHECK_WORDS = (
    "assert",
    "expect",
    "check",
    "verify",
    "should",
    "raises",
    "warns",
    "fail",
    "ensure",
)
_CHECK_NAMES = frozenset({"eq_", "ok_"})  # nose.tools
_MAX_ATOMS = 8
_BROAD_TYPES = frozenset({"Exception", "BaseException"})
_SWALLOWING_TYPES = {"AssertionError", "Exception", "BaseException"}


class VacuousTests:
    """Looks at the tests that a change touches, in Python at each of their assertions."""

    name = "vacuous tests"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report tests that lost the power to fail by this change."""
        files = [f for f in context.files if is_module(f.path) and is_test(f.path)]
        claims = [c for f in files for c in _check_file(f, context)]
        others = [f for f in context.files if is_test(f.path) and find_file_tests(f.path)]
        claims += [c for f in others for c in _find_tests_without_assertions_left(f, context)]
        count = len(files) + len(others)
        read = f"assertions of {count_noun(count, 'test file')}" if count else ""
        return ReviewerReport(tuple(claims), read, is_narrow=True)


def _check_file(file: FileChange, context: ReviewContext) -> Iterator[Claim]:
    after = parse_python(context.head_text(file.path) or "")
    before = parse_python(context.base_text(file.old_path) or "")
    if after is None:
        return
    old = dict(_find_tests(before)) if before else {}
    yield from _find_uncollected(file, after, old)
    for name, test in _find_tests(after):
        end = test.end_lineno or test.lineno
        first = min([d.lineno for d in test.decorator_list], default=test.lineno)
        changed = file.touches_lines(first, end) or _has_removed_line_between(file, first, end)
        if changed:
            yield from _test_claims(file, name, test, old.get(name))


def _find_tests_without_assertions_left(
    file: FileChange, context: ReviewContext
) -> Iterator[Claim]:
    """Tests that held something like an assertion, and hold nothing like it now."""
    runner = find_file_tests(file.path)
    before, after = (
        runner.list_tests(text or "") if runner else {}
        for text in (context.base_text(file.old_path), context.head_text(file.path))
    )
    for title, test in after.items():
        if not test.asserts and title in before and before[title].asserts:
            yield _make_claim(
                file,
                title,
                test.line,
                confidence=0.85,
                title=f"`{title}` no longer asserts anything",
                body="It had assertions and now passes whatever the code does.",
                base=before[title].source[:200],
            )


def _find_uncollected(
    file: FileChange, after: ast.Module, old: dict[str, FunctionNode]
) -> Iterator[Claim]:
    """A test that is renamed so that no runner collects it, and that nothing calls."""
    new = {name for name, _ in _find_tests(after)}
    gone = {
        ast.dump(ast.Module(t.body, [])): n for n, t in old.items() if n not in new and "." not in n
    }
    words = Counter(n.id for n in ast.walk(after) if isinstance(n, ast.Name))
    for node in after.body:
        if not isinstance(node, FunctionNode) or node.decorator_list or words[node.name]:
            continue
        was = gone.get(ast.dump(ast.Module(node.body, [])))
        if was is not None and any(True for _ in _find_checks(node)):
            yield _make_claim(
                file,
                node.name,
                node.lineno,
                confidence=0.88,
                title=f"`{was}` is called `{node.name}` now, and is no longer run",
                body="Test runners look for functions whose name begins with `test`, and nothing else calls this one.",
                base=was,
            )


def _has_removed_line_between(file: FileChange, start: int, end: int) -> bool:
    """Whether a line was removed between these lines of the file afterwards."""
    for hunk in file.hunks:
        at = hunk.new_start
        for line in hunk.lines:
            if line.kind == "-" and start <= at <= end + 1:
                return True
            at = line.new + 1 if line.new is not None else at
    return False


def _find_tests(tree: ast.Module) -> Iterator[tuple[str, FunctionNode]]:
    for node in tree.body:
        if isinstance(node, FunctionNode) and node.name.startswith("test"):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for child in node.body:
                if isinstance(child, FunctionNode) and child.name.startswith("test"):
                    yield f"{node.name}.{child.name}", child


def _test_claims(
    file: FileChange, name: str, test: FunctionNode, old: FunctionNode | None
) -> Iterator[Claim]:
    checks = list(_find_checks(test))
    had = list(_find_checks(old)) if old is not None else []
    if had and not checks:
        count = f"{len(had)} assertion{'s' if len(had) > 1 else ''}"
        yield _make_claim(
            file,
            name,
            test.lineno,
            confidence=0.85,
            title=f"`{test.name}` no longer asserts anything",
            body=f"It had {count} and now passes whatever the code does.",
            base=ast.unparse(had[0])[:200],
        )
    dead = _find_early_return(test)
    if dead and not (old is not None and _find_early_return(old)):
        yield _make_claim(
            file,
            name,
            dead.lineno,
            confidence=0.88,
            title=f"The assertions of `{test.name}` are never reached",
            body="The test returns before them on every path.",
        )
    for line, why in (*_find_hollow_checks(test), *_find_unreachable_checks(test)):
        if file.touches_lines(line, line):
            title = f"This assertion of `{test.name}` cannot fail"
            yield _make_claim(file, name, line, confidence=0.85, title=title, body=why)


def _make_claim(
    file: FileChange,
    name: str,
    line: int,
    *,
    confidence: float,
    title: str,
    body: str,
    base: str | None = None,
) -> Claim:
    return make_analyzer_claim(
        "tests/cannot-fail",
        "medium",
        file.path,
        (line, line),
        title=title,
        body=body,
        confidence=confidence,
        excerpt=name,
        source="syntax of the test on head and base",
        base=base,
        symbol=name,
        anywhere=True,
    )


def _find_checks(test: FunctionNode) -> Iterator[ast.stmt | ast.expr]:
    """The nodes that can make the test fail on purpose: assert statements, and calls named like a check."""
    for node in ast.walk(test):
        if isinstance(node, ast.Assert | ast.Raise):
            yield node
        elif isinstance(node, ast.Call):
            name = last_name(node.func).lower()
            if _is_check_name(name):
                yield node


ONLY_NOTICES_ERRORS = "its assertions only notice that something is raised"


def explain_hollow(test: FunctionNode, helpers: Collection[str]) -> str:
    """Why no assertion of a test can fail; "" where one can.

    `helpers` are functions known to assert something, methods of the test's class as `self.name`.
    """
    assigned = sorted(
        (node for node in ast.walk(test) if isinstance(node, ast.Assign)),
        key=lambda node: node.lineno,
    )
    swallowed = {
        id(inner)
        for node in ast.walk(test)
        if isinstance(node, ast.Try) and any(map(_swallows_failure, node.handlers))
        for statement in node.body
        for inner in ast.walk(statement)
    }
    alarms = {
        id(inner)
        for node in ast.walk(test)
        if isinstance(node, ast.ExceptHandler) and _catches_anything(node)
        for statement in node.body
        for alarm in ast.walk(statement)
        if _always_fails(alarm)
        for inner in ast.walk(alarm)
    }
    checks = [
        node
        for node in _find_checks(test)
        if not isinstance(node, ast.Raise) and id(node) not in alarms
    ]
    calls = (node for node in ast.walk(test) if isinstance(node, ast.Call))
    checks += [node for node in calls if _name_callee(node.func) in helpers]
    if not checks:
        return ONLY_NOTICES_ERRORS if alarms else "it asserts nothing"
    left = [node for node in checks if id(node) not in swallowed]
    if not left:
        return "what its assertions raise is caught"
    # after what may change a state, the value that was kept is compared with another one
    acting = [
        node.lineno
        for node in ast.walk(test)
        if isinstance(node, ast.stmt) and _has_effect_beside_check(node)
    ]
    rebound = [
        node
        for node in ast.walk(test)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    ]
    for check in left:
        last = max((line for line in acting if line < check.lineno), default=0)
        before = (
            node
            for node in assigned
            if node.lineno <= check.lineno
            and (node.lineno > last or _keeps_constant_until(node, rebound, check.lineno))
        )
        if not _compares_nothing(check, _read_values(before)):
            return ""
    return "its assertions are true whatever the code does"


def _keeps_constant_until(assigned: ast.Assign, rebound: Sequence[ast.Name], until: int) -> bool:
    """Whether a name keeps the constant that it is given up to a line, whatever runs between."""
    names = {one.id for one in assigned.targets if isinstance(one, ast.Name)}
    return isinstance(assigned.value, ast.Constant) and not any(
        one.id in names and assigned.lineno < one.lineno <= until for one in rebound
    )


def _name_callee(func: ast.expr) -> str:
    match func:
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            return f"self.{name}"
        case _:
            return last_name(func)


def _is_check_name(name: str) -> bool:
    return name.lower() in _CHECK_NAMES or any(word in name.lower() for word in _CHECK_WORDS)


def _has_effect_beside_check(node: ast.stmt) -> bool:
    """Whether a statement does something beside giving names their values, and is no check."""
    match node:
        case ast.Expr(value=ast.Call() as call):
            return not _is_check_name(last_name(call.func))
        case ast.Expr(value=ast.Await()) | ast.Delete() | ast.AugAssign() | ast.With():
            return True
        case ast.AsyncWith() | ast.For() | ast.AsyncFor() | ast.While():
            return True
        case ast.Assign(targets=targets):
            return any(isinstance(one, ast.Attribute | ast.Subscript) for one in targets)
        case _:
            return False


def _read_values(assigned: Iterable[ast.Assign]) -> dict[str, ast.expr]:
    """What each name was given last; one that was given another name has the value which that one had then."""
    values: dict[str, ast.expr] = {}
    for node in assigned:
        given = node.value
        if isinstance(given, ast.Name):
            given = values.get(given.id, given)
        values |= {target.id: given for target in node.targets if isinstance(target, ast.Name)}
    return values


def _compares_nothing(check: ast.stmt | ast.expr, values: Mapping[str, ast.expr]) -> bool:
    """Whether a check holds for every value: of constants only, or of one expression with itself."""
    match check:
        case ast.Assert(test=test):
            return _explain_always_true(test) is not None or _is_trivial(test, values)
        case ast.Call(func=ast.Attribute(attr="assertTrue" | "assertIsNotNone"), args=[test, *_]):
            return _is_trivial(test, values)
        case ast.Call(
            func=ast.Attribute(attr="assertEqual" | "assertEquals" | "assertIs"),
            args=[left, right, *_],
        ):
            return _spell_out(left, values) == _spell_out(right, values)
        case _:
            return False


def _is_trivial(test: ast.expr, values: Mapping[str, ast.expr]) -> bool:
    """Whether a condition is true whatever its comparisons give: all that they may give is tried."""
    atoms: dict[str, bool] = {}
    _evaluate(test, values, atoms)
    if len(atoms) > _MAX_ATOMS:
        return False
    worlds = itertools.product((True, False), repeat=len(atoms))
    return all(_evaluate(test, values, dict(zip(atoms, world, strict=True))) for world in worlds)


def _evaluate(test: ast.expr, values: Mapping[str, ast.expr], atoms: dict[str, bool]) -> bool:
    """A condition where each comparison has the value of `atoms`; those that are missing are added."""
    match test:
        case ast.Constant(value=value):
            holds = bool(value)
        case ast.BoolOp(op=op, values=parts):
            found = [_evaluate(part, values, atoms) for part in parts]
            holds = any(found) if isinstance(op, ast.Or) else all(found)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            holds = not _evaluate(inner, values, atoms)
        case ast.Call(func=ast.Name(id="bool"), args=[inner], keywords=[]):
            holds = _evaluate(inner, values, atoms)
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, ast.Name(id="object")]):
            holds = True
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            one, other = _spell_out(left, values), _spell_out(right, values)
            same = one == other and isinstance(op, ast.Eq | ast.Is | ast.LtE | ast.GtE)
            name = type(op).__name__
            atom = f"{one} {name.replace('Not', '')} {other}"
            holds = same or atoms.setdefault(atom, True) is not ("Not" in name)
        case _:
            holds = atoms.setdefault(_spell_out(test, values), True)
    return holds


def _spell_out(node: ast.expr, values: Mapping[str, ast.expr]) -> str:
    """An expression with the value that a bare name was given."""
    return ast.unparse(values.get(node.id, node) if isinstance(node, ast.Name) else node)


def _find_early_return(test: FunctionNode) -> ast.stmt | None:
    """The statement that ends the test before all of its assertions, None where some are reached."""
    for i, node in enumerate(test.body):
        if any(True for _ in _find_checks_in_body([node])):
            return None
        if isinstance(node, ast.Return) and any(
            True for _ in _find_checks_in_body(test.body[i + 1 :])
        ):
            return node
    return None


def _find_checks_in_body(body: list[ast.stmt]) -> Iterator[ast.stmt | ast.expr]:
    holder = ast.FunctionDef(
        name="_", args=ast.arguments([], [], None, [], [], None, []), body=body, decorator_list=[]
    )
    return _find_checks(holder)


def _find_hollow_checks(test: FunctionNode) -> Iterator[tuple[int, str]]:
    """Assertions that are always true, or whose failure is swallowed."""
    for node in ast.walk(test):
        if isinstance(node, ast.Assert) and (why := _explain_always_true(node.test)):
            yield node.lineno, why
        elif isinstance(node, ast.Try):
            for handler in node.handlers:
                if _swallows_failure(handler) and any(
                    isinstance(n, ast.Assert) for s in node.body for n in ast.walk(s)
                ):
                    yield handler.lineno, "This handler catches the failed assertion and goes on."


def _find_unreachable_checks(test: FunctionNode) -> Iterator[tuple[int, str]]:
    """Assertions behind the statement that must raise, and `pytest.raises` without a body."""
    for node in ast.walk(test):
        match node:
            case ast.Expr(value=ast.Call(args=[_], keywords=[]) as call) if _is_raises(call):
                yield node.lineno, "Without `with`, or the call to try, nothing is tried here."
            case ast.With(
                items=[ast.withitem(context_expr=ast.Call(args=[kind, *_]) as call)],
                body=[_, *_, ast.Assert() as last],
            ):
                if (
                    _is_raises(call)
                    and not {
                        last_name(k)
                        for k in ast.walk(kind)
                        if isinstance(k, ast.Name | ast.Attribute)
                    }
                    & _SWALLOWING_TYPES
                ):
                    yield (
                        last.lineno,
                        "When the statement above raises, as it has to, this line is not reached.",
                    )
            case _:
                pass


def _is_raises(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id="pytest"), attr="raises"):
            return True
        case ast.Attribute(value=ast.Name(id="self"), attr="assertRaises"):
            return True
        case _:
            return False


def _explain_always_true(test: ast.expr) -> str | None:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        constants = [v for v in test.values if isinstance(v, ast.Constant) and v.value]
        if constants:
            return f"`or {ast.unparse(constants[0])}` makes it true whatever stands before."
    if isinstance(test, ast.Compare) and len(test.comparators) == 1:
        left, right = ast.unparse(test.left), ast.unparse(test.comparators[0])
        same = isinstance(test.ops[0], ast.Eq | ast.Is | ast.LtE | ast.GtE)
        # an attribute may give another object each time: `x.y is x.y` checks that it does not
        may_differ = (
            (ast.Call, ast.Attribute, ast.Subscript)
            if isinstance(test.ops[0], ast.Is)
            else (ast.Call,)
        )
        computed = any(isinstance(n, may_differ) for n in ast.walk(test.left))
        if same and left == right and not computed:
            return "Both sides are the same expression."
    return None


def _always_fails(node: ast.AST) -> bool:
    """Fails in any case, as a handler does for an error that must not come."""
    match node:
        case ast.Raise() | ast.Assert(test=ast.Constant()):
            return True
        case ast.Call():
            return last_name(node.func) == "fail"
        case _:
            return False


def _catches_anything(handler: ast.ExceptHandler, among: Collection[str] = _BROAD_TYPES) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return handler.type is None or any(isinstance(k, ast.Name) and k.id in among for k in kinds)


def _swallows_failure(handler: ast.ExceptHandler) -> bool:
    caught = _catches_anything(handler, _SWALLOWING_TYPES)
    return caught and all(isinstance(n, ast.Pass | ast.Continue) for n in handler.body)
