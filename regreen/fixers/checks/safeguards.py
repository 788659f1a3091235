"""Safeguards that a patch takes down: checks of certificates, permissions, strictness, values kept apart from SQL."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.functions import functions
from regreen.fixers.checks.paths import is_document, is_test

_LOWERED = re.compile(
    r"\bverify(?:_ssl|_certs?)?\s*=\s*False|CERT_NONE|_create_unverified_context|check_hostname\s*=\s*False|\bshell\s*=\s*True"
    r"|\bautoescape\s*=\s*False|\b0o?777\b|rejectUnauthorized\W{1,4}false|InsecureSkipVerify\W{1,4}true|NODE_TLS_REJECT_UNAUTHORIZED"
    r"|dangerouslySetInnerHTML|--no-check-certificate|\bcurl\s(?:[^\n|;]{0,80}\s)?(?:-k|--insecure)\b|\bmark_safe\(|csrf_exempt"
)
_GUARDS = re.compile(
    r"login|permission|auth|csrf|require|protected|staff|admin|role|scope|throttle|validat",
    re.IGNORECASE,
)
_STRICT = re.compile(
    r"strict|verif|validat|check|secure|security|enforce|safe|assert|escape|sanit", re.IGNORECASE
)
_RUNS_SQL = {"execute", "executemany", "executescript", "raw", "read_sql", "read_sql_query"}


def safeguards_kept(files: Sequence[FileChange]) -> list[Reason]:
    """Fewer safeguards than before are for a person to agree to."""
    reasons: list[Reason] = []
    for file in files:
        if is_document(file.path) or is_test(file.path):
            continue
        if len(_LOWERED.findall(file.new or "")) > len(_LOWERED.findall(file.old or "")):
            line = next((one for _, one in file.added if _LOWERED.search(one)), "")
            what = f"{file.path} lowers a safeguard ({line.strip()[:80]})"
            reasons.append(Reason("sensitive_path", what))
        if file.old_tree is not None and file.new_tree is not None:
            reasons += _lost_guards(file)
            reasons += _loosened(file)
        if file.new_tree is not None:
            reasons += _sql_text(file)
    return reasons


def _lost_guards(file: FileChange) -> Iterator[Reason]:
    before = {name: _guards(node) for name, node in functions(file.old_tree)}
    for name, node in functions(file.new_tree):
        for lost in before.get(name, Counter[str]()) - _guards(node):
            yield Reason("sensitive_path", f"{file.path}: {name} loses its @{lost}")


def _guards(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Counter[str]:
    words = (ast.unparse(one).split("(", maxsplit=1)[0] for one in node.decorator_list)
    return Counter(word for word in words if _GUARDS.search(word))


def _loosened(file: FileChange) -> Iterator[Reason]:
    """`STRICT = True` that becomes False, as a name, an argument or a default."""
    before, after = _switches(file.old_tree), _switches(file.new_tree)
    for name, were_on in before.items():
        if after[name] < were_on:
            off = _switches(file.new_tree, on=False)[name]
            if off > _switches(file.old_tree, on=False)[name]:
                yield Reason("silenced", f"{file.path}: {name} goes from True to False")


def _switches(tree: ast.Module | None, *, on: bool = True) -> Counter[str]:
    found: Counter[str] = Counter()
    for node in ast.walk(tree) if tree else ():
        match node:
            case (
                ast.Assign(
                    targets=[ast.Name(id=name) | ast.Attribute(attr=name)],
                    value=ast.Constant(value=bool() as value),
                )
                | ast.keyword(arg=str() as name, value=ast.Constant(value=bool() as value))
            ):
                pairs = [(name, value)]
            case ast.arguments():
                pairs = list(_defaults(node))
            case _:
                continue
        found.update(name for name, value in pairs if value is on and _STRICT.search(name))
    return found


def _defaults(node: ast.arguments) -> Iterator[tuple[str, bool]]:
    plain = [*node.posonlyargs, *node.args]
    pairs = [
        *zip(plain[len(plain) - len(node.defaults) :], node.defaults, strict=True),
        *zip(node.kwonlyargs, node.kw_defaults, strict=True),
    ]
    for argument, default in pairs:
        if isinstance(default, ast.Constant) and isinstance(default.value, bool):
            yield argument.arg, default.value


def _sql_text(file: FileChange) -> Iterator[Reason]:
    fresh = Counter(_put_into_sql(file.new_tree)) - Counter(_put_into_sql(file.old_tree))
    for call in fresh:
        yield Reason("sensitive_path", f"{file.path} puts values into SQL text ({call[:80]})")


def _put_into_sql(tree: ast.Module | None) -> Iterator[str]:
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.Call(func=ast.Attribute(attr=attr), args=[text, *_]) if attr in _RUNS_SQL:
                mixed = isinstance(text, ast.JoinedStr) and any(
                    isinstance(part, ast.FormattedValue) for part in text.values
                )
                if mixed or isinstance(text, ast.BinOp):
                    yield ast.unparse(node)
            case _:
                pass
