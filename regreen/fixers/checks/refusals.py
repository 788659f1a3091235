"""Places where a program refuses bad input or state: how many a patch leaves, and whether they refuse as much."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.conditions import refuses_as_much
from regreen.fixers.checks.functions import functions
from regreen.fixers.checks.paths import is_document, is_test

_C_LIKE = re.compile(
    r"\bthrow\b|\breject\(|\b(?:send)?[sS]tatus\(\s*[45]\d\d|\bnext\(\s*\w*[eE]rr\w*\s*\)|\bassert\w*\(|\b(?:requireNonNull|checkNotNull|checkArgument|checkState|invariant)\(|process\.exit\(\s*[1-9]"
)
_REFUSES = {
    **dict.fromkeys((".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".vue", ".svelte", ".java", ".kt", ".cs", ".cpp", ".cc", ".hpp", ".php", ".swift", ".scala", ".dart"), _C_LIKE),
    ".go": re.compile(r"\breturn\b[^\n]*\b(?:err|Err\w*|errors\.New|fmt\.Errorf)\b|\bhttp\.Error\(|\bpanic\(|\blog\.Fatal|\bos\.Exit\(\s*[1-9]"),
    ".rs": re.compile(r"\bErr\(|\?\s*[;,)]|\b(?:panic|bail|ensure|assert\w*|unreachable)!|\b(?:map_err|ok_or|ok_or_else|unwrap|expect)\("),
    **dict.fromkeys((".rb", ".rake", ".ex", ".exs"), re.compile(r"\braise\b|\bfail\b|\bhead\s+:(?:forbidden|unauthorized|not_found|bad_request)")),
    **dict.fromkeys((".sh", ".bash"), re.compile(r"\b(?:exit|return)\s+[1-9]|\|\|\s*(?:exit|return|die|fail)\b|\bset\s+-\w*e|\bpipefail\b|\berrexit\b|\$\{\w+:?\?|--fail\b|--check\b")),
}  # fmt: skip
_REFUSING_CALLS = {"abort", "fail", "raise_for_status", "exit", "_exit"}
_IF = re.compile(
    r"^\s*(?:\}\s*)?(?:else\s+)?(?:if|elif|elsif|unless)\b\s*(?P<asked>.+?)\s*(?:\{|:|;?\s*then)?\s*$"
)
_COMMENT = re.compile(r"^\s*(?://|#(?!\[|!\[)|\*|/\*)")
_LONG = 2000


def refusals_kept(files: Sequence[FileChange]) -> list[Reason]:
    """A refusal fewer, or one that lets more through than before, is for a person to see."""
    reasons: list[Reason] = []
    for file in files:
        if is_test(file.path) or is_document(file.path) or file.old is None or file.new is None:
            continue
        if file.is_python and (file.old_tree is None or file.new_tree is None):
            continue
        before, after = _count(file, old=True), _count(file, old=False)
        if after < before:
            what = (
                f"{file.path}: of {before} places that refuse bad input or state, {after} are left"
            )
            reasons.append(Reason("size", what))
        reasons += _weaker(file)
    return reasons


def _count(file: FileChange, *, old: bool) -> int:
    tree, text = (file.old_tree, file.old) if old else (file.new_tree, file.new)
    if file.is_python:
        return sum(is_refusal(node) for node in (ast.walk(tree) if tree else ()))
    pattern = _REFUSES.get(file.suffix)
    return sum(len(pattern.findall(line)) for line in _code(text)) if pattern else 0


def is_refusal(node: ast.AST) -> bool:
    """`raise`, `assert`, `abort(403)`, `sys.exit(1)`, an answer with a status of 400 and more."""
    match node:
        case ast.Raise() | ast.Assert():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args) if (
            name in _REFUSING_CALLS
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
    """What `exit` says to the shell: nothing, 0, None and False are success."""
    return not args or (isinstance(args[0], ast.Constant) and not args[0].value)


def _weaker(file: FileChange) -> Iterator[Reason]:
    before, after = _guarded(file, old=True), _guarded(file, old=False)
    for refusal, old in before.items():
        gone = list((Counter(old) - Counter(after.get(refusal, []))).elements())
        fresh = list((Counter(after.get(refusal, [])) - Counter(old)).elements())
        for asked in gone:
            if fresh and not any(refuses_as_much(asked, now) for now in fresh):
                what = f"{file.path}: what was refused where `{asked[:60]}` is refused only where `{fresh[0][:60]}`"
                yield Reason("size", what)


def _guarded(file: FileChange, *, old: bool) -> dict[str, list[str]]:
    """For every refusal the conditions under which it is made."""
    found: dict[str, list[str]] = defaultdict(list)
    if file.is_python:
        for name, function in functions(file.old_tree if old else file.new_tree):
            for node in ast.walk(function):
                if isinstance(node, ast.If) and _ends_in_refusal(node.body):
                    found[f"{name}: {ast.dump(node.body[-1])}"].append(ast.unparse(node.test))
        return found
    pattern = _REFUSES.get(file.suffix)
    lines = list(_code(file.old if old else file.new)) if pattern else []
    for number, line in enumerate(lines[:-1]):
        asked = _IF.match(line)
        following = lines[number + 1].strip()
        if asked and pattern and pattern.search(following):
            found[following].append(asked["asked"])
    return found


def _ends_in_refusal(body: Sequence[ast.stmt]) -> bool:
    last = body[-1]
    return isinstance(last, ast.Raise | ast.Expr | ast.Return) and any(
        is_refusal(node) for node in ast.walk(last)
    )


def _code(text: str | None) -> Iterator[str]:
    """The lines that run, near enough: comments of a whole line are left out."""
    return (
        line
        for line in (text or "").split("\n")
        if line.strip() and len(line) < _LONG and not _COMMENT.match(line)
    )
