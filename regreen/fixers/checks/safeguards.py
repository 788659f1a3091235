"""Safeguards that a patch takes down: words and settings that guard, decorators, values kept apart from what is run."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.functions import functions
from regreen.fixers.checks.guards import guards_kept
from regreen.fixers.checks.paths import is_document, is_test
from regreen.fixers.checks.settings_kept import settings_kept

_GUARDS = re.compile(
    r"login|permission|auth|csrf|require|protected|staff|admin|role|scope|throttle|validat",
    re.IGNORECASE,
)
_RUNS = {
    "execute", "executemany", "executescript", "raw", "extra", "read_sql", "read_sql_query", "text",
    "render_template_string", "from_string", "Template", "Markup", "HTMLResponse", "HttpResponse", "format_html",
    "system", "popen", "Popen", "run", "call", "check_call", "check_output", "getoutput", "eval", "exec",
}  # fmt: skip


def safeguards_kept(files: Sequence[FileChange]) -> list[Reason]:
    """Fewer safeguards than before are for a person to agree to."""
    reasons = [*guards_kept(files), *settings_kept(files)]
    for file in files:
        if is_document(file.path) or is_test(file.path):
            continue
        if file.old_tree is not None and file.new_tree is not None:
            reasons += _lost_guards(file)
        if file.new_tree is not None:
            reasons += _text_run(file)
    return reasons


def _lost_guards(file: FileChange) -> Iterator[Reason]:
    before = {name: _guards(node) for name, node in functions(file.old_tree)}
    for name, node in functions(file.new_tree):
        for lost in before.get(name, Counter[str]()) - _guards(node):
            yield Reason("sensitive_path", f"{file.path}: {name} loses its @{lost}")


def _guards(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Counter[str]:
    words = (ast.unparse(one).split("(", maxsplit=1)[0] for one in node.decorator_list)
    return Counter(word for word in words if _GUARDS.search(word))


def _text_run(file: FileChange) -> Iterator[Reason]:
    fresh = Counter(_put_into_text(file.new_tree)) - Counter(_put_into_text(file.old_tree))
    for call in fresh:
        what = f"{file.path} puts values into text that is run or shown as it is ({call[:80]})"
        yield Reason("sensitive_path", what)


def _put_into_text(tree: ast.Module | None) -> Iterator[str]:
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[text, *_]) if (
                name in _RUNS
            ):
                mixed = isinstance(text, ast.JoinedStr) and any(
                    isinstance(part, ast.FormattedValue) for part in text.values
                )
                if mixed or isinstance(text, ast.BinOp):
                    yield ast.unparse(node)
            case _:
                pass
