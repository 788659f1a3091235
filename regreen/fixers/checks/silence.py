"""Check 4: ways of making an error quiet instead of mending it."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence

from regreen.codebase.python_code import syntax_tree
from regreen.fixers.checks.change import FileChange, Level, Reason
from regreen.fixers.checks.other_languages import made_quiet
from regreen.fixers.checks.paths import is_document, is_test

_MARKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"#\s*type:\s*ignore|#\s*pyright:\s*ignore|#\s*mypy:\s*ignore"),
        "switches the type checker off",
    ),
    (
        re.compile(r"#\s*(?:ruff:\s*|flake8:\s*)?noqa|#\s*pylint:\s*disable|#\s*nosec"),
        "switches the linter off",
    ),
    (
        re.compile(
            r"eslint-disable|@ts-(?:ignore|nocheck|expect-error)|biome-ignore|prettier-ignore"
        ),
        "switches a checker off",
    ),
    (
        re.compile(
            r"//\s*nolint|#!?\[allow\(|@SuppressWarnings|@Suppress\(|#pragma (?:warning disable|GCC diagnostic ignored)|//\s*NOLINT|NOSONAR"
            r"|(?:rubocop|shellcheck|swiftlint|detekt|credo|phpcs|stylelint|markdownlint)[:\s-]{1,3}(?:disable|ignore)|@phpstan-ignore|@psalm-suppress|hadolint ignore"
        ),
        "switches a checker off",
    ),
    (re.compile(r"\bcast\(\s*[\"']?(?:typing\.)?Any\b"), "switches the type checker off"),
    (
        re.compile(r"PYTHONOPTIMIZE|\bpython[\d.]* -OO?\b"),
        "turns assertions off",
    ),
    (
        re.compile(
            r"logging\.disable\(|\bseterr\(|\berrors\s*=\s*[\"']ignore[\"']|return_exceptions\s*=\s*True"
        ),
        "keeps errors from being seen",
    ),
    (
        re.compile(
            r"<(?:skipTests|skip|testFailureIgnore|maven\.test\.skip)>\s*true|-DskipTests|ignoreFailures\s*=\s*true|failOnError\W{1,3}false"
        ),
        "leaves something out of the check",
    ),
    (
        re.compile(r"pragma:\s*no\s*cover|istanbul ignore|c8 ignore"),
        "takes code out of the coverage count",
    ),
    (
        re.compile(r"#\s*fmt:\s*(?:off|skip)|#\s*yapf:\s*disable|#\s*isort:\s*(?:skip|off)"),
        "switches the formatter off",
    ),
    (
        re.compile(r"\|\|\s*(?:true|:)(?:\s|$|[;&)\"'])"),
        "turns a failing command into a passing one",
    ),
    (
        re.compile(
            r"continue-on-error\s*:\s*true|allow_failure\s*:\s*true|ignore_outcome\s*=\s*true"
        ),
        "lets a failing step pass",
    ),
    (
        re.compile(r"(?:^|[\s;&|])(?:exit|return)\s+0\s*(?:$|[;&#])"),
        "says success whatever happened",
    ),
    (
        re.compile(r"(?:^|[\s;&])set\s+\+e\b|--exit-zero\b|--passWithNoTests\b|--no-verify\b"),
        "ignores failures",
    ),
    (re.compile(r"^\t-\s*\w|^\s*-\s*\w[^\n]*\{posargs"), "lets a failing step pass"),
    (
        re.compile(r"warnings\.(?:simplefilter|filterwarnings)\(\s*[\"']ignore|-W\s*ignore"),
        "silences warnings",
    ),
    (
        re.compile(r"--(?:ignore|deselect|maxfail|exclude)[= ]|collect_ignore"),
        "leaves something out of the check",
    ),
)
_SHELLISH = (
    ".sh",
    ".bash",
    ".yml",
    ".yaml",
    ".mk",
    ".toml",
    ".ini",
    ".cfg",
    ".json",
    ".xml",
    ".gradle",
    ".kts",
    "",
)
_ONLY_SHELL = {"says success whatever happened", "ignores failures"}
_LOWERED = re.compile(
    r"\b(fail_under|fail-under|cov-fail-under|min_coverage|minimum_coverage|branches|lines|statements|functions"
    r"|max-line-length|line-length|max-complexity|max-warnings|tolerance|rtol|atol|rel_tol|abs_tol)\b[\"']?\s*[:=]?\s*(\d+(?:\.\d+)?(?:e-?\d+)?)"
)
_RISES = {
    "max-line-length",
    "line-length",
    "max-complexity",
    "max-warnings",
    "tolerance",
    "rtol",
    "atol",
    "rel_tol",
    "abs_tol",
}
_IGNORE_LIST = re.compile(
    r"^\s*[\"']?(extend-ignore|ignore|extend-exclude|exclude|disable|per-file-ignores|ignore_errors|ignore_missing_imports|omit|skip)[\"']?\s*="
)
_BROAD = {"Exception", "BaseException"}


def nothing_silenced(files: Sequence[FileChange], kinds: Sequence[str] = ()) -> list[Reason]:
    """Check 4; `kinds` are the exception types that failing tests raised."""
    reasons: list[Reason] = []
    for file in files:
        if is_document(file.path):
            continue
        found = [*_marks(file), *_thresholds(file), *_swallowed(file, kinds)]
        if not is_test(file.path):
            found += [(what, False) for what in made_quiet(file)]
        if not found:
            continue
        whole = _nothing_else(file, files)
        for what, always in found:
            level: Level = "deny" if whole or always else "needs_human"
            tail = ", and does nothing else" if whole else ""
            reasons.append(Reason("silenced", f"{file.path}: {what}{tail}", level))
    return reasons


def _marks(file: FileChange) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    for mark, what in _MARKS:
        if what in _ONLY_SHELL and file.suffix not in _SHELLISH:
            continue
        if file.is_python and what == "turns a failing command into a passing one":
            continue
        now = sum(len(mark.findall(line)) for _, line in file.added)
        then = sum(len(mark.findall(line)) for _, line in file.removed)
        if now > then:
            line = next(line for _, line in file.added if mark.search(line))
            found.append((f"{what} ({line.strip()[:80]})", False))
    return found


def _thresholds(file: FileChange) -> list[tuple[str, bool]]:
    if file.suffix not in {
        ".toml",
        ".ini",
        ".cfg",
        ".json",
        ".yml",
        ".yaml",
        ".js",
        ".ts",
        ".mk",
        "",
    } and not is_test(file.path):
        return []
    found: list[tuple[str, bool]] = []
    before = {
        name: float(value) for _, line in file.removed for name, value in _LOWERED.findall(line)
    }
    for _, line in file.added:
        for name, value in _LOWERED.findall(line):
            was = before.get(name)
            if was is not None and (float(value) > was if name in _RISES else float(value) < was):
                found.append((f"the threshold {name} goes from {was:g} to {float(value):g}", True))
        if _IGNORE_LIST.match(line) and file.suffix in {".toml", ".ini", ".cfg"}:
            found.append((f"leaves something out of the check ({line.strip()[:80]})", False))
    return found


def _swallowed(file: FileChange, kinds: Sequence[str]) -> list[tuple[str, bool]]:
    if file.old_tree is None and file.old is not None:
        return []
    new = _swallowers(file.new_tree)
    old = [ast.dump(node) for node in _swallowers(file.old_tree)]
    found: list[tuple[str, bool]] = []
    for node in new:
        if ast.dump(node) in old:
            old.remove(ast.dump(node))
            continue
        caught = _caught(node)
        if caught & _BROAD or not caught:
            found.append((f"line {node.lineno} swallows every exception", False))
        elif caught & {kind.rsplit(".", 1)[-1] for kind in kinds}:
            found.append(
                (f"line {node.lineno} swallows the very exception that the test saw", False)
            )
    return found


def _swallowers(tree: ast.Module | None) -> list[ast.ExceptHandler | ast.With | ast.AsyncWith]:
    found: list[ast.ExceptHandler | ast.With | ast.AsyncWith] = []
    names = _suppressors(tree)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ExceptHandler):
            if is_quiet(node.body) or (_is_broad(node) and not _tells_of(node)):
                found.append(node)
        elif isinstance(node, ast.With | ast.AsyncWith):
            if suppressed(node, names) is not None:
                found.append(node)
        elif isinstance(node, ast.Try) and _leaves(node.finalbody):
            found.append(
                ast.ExceptHandler(None, None, node.finalbody, lineno=node.finalbody[0].lineno)
            )
        elif (
            isinstance(node, ast.FunctionDef)
            and node.name in {"__exit__", "__aexit__"}
            and _agrees(node)
        ):
            found.append(ast.ExceptHandler(None, None, node.body, lineno=node.lineno))
    return found


def _is_broad(node: ast.ExceptHandler) -> bool:
    return node.type is None or bool(_caught(node) & _BROAD)


def _tells_of(node: ast.ExceptHandler) -> bool:
    """Whether the handler raises, or does something with the exception it was given."""
    inner = [part for statement in node.body for part in ast.walk(statement)]
    return any(
        isinstance(part, ast.Raise)
        or (isinstance(part, ast.Name) and node.name is not None and part.id == node.name)
        or (
            isinstance(part, ast.Attribute) and part.attr in {"exc_info", "format_exc", "print_exc"}
        )
        for part in inner
    )


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """A `return` in `finally` throws the exception away."""
    return any(isinstance(node, ast.Return | ast.Break | ast.Continue) for node in body)


def _agrees(node: ast.FunctionDef) -> bool:
    """An `__exit__` that returns True swallows whatever was raised inside."""
    return any(
        isinstance(one, ast.Return)
        and isinstance(one.value, ast.Constant)
        and bool(one.value.value)
        for one in ast.walk(node)
    )


def _suppressors(tree: ast.Module | None) -> set[str]:
    """The names that `contextlib.suppress` goes by."""
    found = {"suppress"}
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ImportFrom) and node.module == "contextlib":
            found |= {
                alias.asname for alias in node.names if alias.name == "suppress" and alias.asname
            }
    return found


def is_quiet(body: Sequence[ast.stmt]) -> bool:
    """Nothing but pass, a constant, a return of one, a log line: the error leaves no trace in the result."""
    return all(_leaves_no_trace(node) for node in body)


def _leaves_no_trace(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Continue() | ast.Break() | ast.Expr():
            return True
        case ast.Return(value=value) | ast.Assign(value=value):
            return value is None or _is_plain(value)
        case _:
            return False


def _is_plain(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(func=ast.Name(id="set" | "dict" | "list" | "tuple" | "str"), args=[]):
            return True
        case _:
            return False


def suppressed(
    node: ast.With | ast.AsyncWith, names: Collection[str] = ("suppress",)
) -> set[str] | None:
    """What a `with suppress(...)` lets go, None for any other; `names` are those that `suppress` goes by."""
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call) and _name(call.func) in names:
            return {_name(argument) for argument in call.args}
    return None


def _caught(node: ast.ExceptHandler | ast.With | ast.AsyncWith) -> set[str]:
    if isinstance(node, ast.ExceptHandler):
        kinds = (
            node.type.elts if isinstance(node.type, ast.Tuple) else [node.type] if node.type else []
        )
        return {_name(kind) for kind in kinds}
    anything = next(
        (one for item in node.items if isinstance(one := item.context_expr, ast.Call)), None
    )
    return {_name(argument) for argument in anything.args} if anything else set()


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _nothing_else(file: FileChange, files: Sequence[FileChange]) -> bool:
    """Whether the patch is the silence alone: without it, the code is what it was."""
    if any(
        other is not file and not is_document(other.path) and not is_test(other.path)
        for other in files
    ):
        return False
    if file.old_tree is not None and file.new_tree is not None:
        before, after = syntax_tree(file.old or ""), syntax_tree(file.new or "")
        return ast.dump(_Unwrap().visit(before)) == ast.dump(_Unwrap().visit(after))
    return len([line for _, line in file.added if line.strip()]) <= 2


class _Unwrap(ast.NodeTransformer):
    """Takes away quiet handlers, so that what remains is the work alone."""

    def visit_Try(self, node: ast.Try) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        loud = [handler for handler in node.handlers if not is_quiet(handler.body)]
        if loud or node.finalbody or not node.handlers:
            return node
        return [*node.body, *node.orelse]

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return list(node.body) if suppressed(node) is not None and len(node.items) == 1 else node

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        return None if [alias.name for alias in node.names] == ["contextlib"] else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module == "contextlib" else node
