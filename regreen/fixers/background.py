"""What lies behind a failure: who last touched the suspect lines, what the dependencies did, what is not there yet."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence

from regreen.errors import UserError
from regreen.fixers.case import Case
from regreen.fixers.checks.change import parse_python
from regreen.fixers.checks.dependencies import LOCKS
from regreen.fixers.checks.paths import is_source
from regreen.fixers.verify_patch import failing_sources
from regreen.models import Frame

_FRAMES = 4
_AROUND = 2
_BUILTIN = {
    "builtin_function_or_method",
    "coroutine",
    "function",
    "generator",
    "method",
    "module",
    *dir(builtins),
}
"""Kinds of object that no repository adds a function to: what is looked for there belongs elsewhere."""
_ABSENT = (
    re.compile(r"cannot import name '(\w{1,80})' from '([\w.]{1,120})'"),
    re.compile(r"module '([\w.]{1,120})' has no attribute '(\w{1,80})'"),
    re.compile(r"'(\w{1,80})' object has no attribute '(\w{1,80})'"),
    re.compile(r"type object '(\w{1,80})' has no attribute '(\w{1,80})'"),
)


def last_touched(case: Case, frames: Sequence[Frame]) -> str:
    """The commits that last touched the lines on the failing path, those of the change under repair marked."""
    ours = {one.sha for one in case.git.commits(case.base, case.rev)} if case.base else set[str]()
    lines: list[str] = []
    for frame in [one for one in frames if is_source(one.path)][:_FRAMES]:
        first, last = max(1, frame.line - _AROUND), frame.line + _AROUND
        try:
            shas = case.git.blame(case.rev, frame.path, first, last)
        except UserError:
            continue  # the line lies beyond the file as it is committed
        for sha in dict.fromkeys(shas):
            commit = case.git.commit(sha)
            mark = (
                ", the culprit"
                if case.culprit and case.culprit.sha == sha
                else ", in this change"
                if sha in ours
                else ""
            )
            lines.append(
                f"{frame.path}:{first}-{last}: {sha[:12]} {commit.date:%Y-%m-%d} {commit.subject[:100]}{mark}"
            )
    return "\n".join(dict.fromkeys(lines))


def dependency_delta(case: Case) -> str:
    """What the change did to manifests and locks; a package that moved explains what no line of the source does."""
    if case.base is None:
        return ""
    paths = [
        path
        for path in {entry.path for entry in case.git.tree(case.rev)}
        if path.rsplit("/", 1)[-1]
        in {*LOCKS, "pyproject.toml", "setup.cfg", "setup.py", "package.json", "go.mod"}
        or re.search(r"(^|/)(requirements|constraints)[^/]*\.(txt|in)$", path)
    ]
    return case.git.diff(case.base, case.rev, paths=sorted(paths), context=0) if paths else ""


def skeletons(case: Case) -> str:
    """Functions that the failing tests use and that are not there: their heads, as far as the calls tell them."""
    sources = failing_sources(case.git, case.rev, case.trial, case.before.failures)
    said = "\n".join([case.output[-8000:], *(failure.message for failure in case.before.failures)])
    absent = (one for one in dict.fromkeys(_absent(said)) if one[0] not in _BUILTIN)
    found = [_skeleton(owner, name, sources) for owner, name in absent]
    return "\n\n".join(one for one in found if one)


def _absent(said: str) -> Iterator[tuple[str, str]]:
    """(where, what): what is looked for and missing."""
    for number, pattern in enumerate(_ABSENT):
        for match in pattern.finditer(said):
            yield (match[2], match[1]) if number == 0 else (match[1], match[2])


def _skeleton(owner: str, name: str, sources: Sequence[str]) -> str:
    calls = [node for text in sources for node in _calls(text, name)]
    if not calls:
        return f"# {owner}.{name} is used, and not there"
    longest = max(calls, key=lambda call: len(call.args))
    arguments = [_argument(part, number) for number, part in enumerate(longest.args, 1)]
    keywords = sorted({one.arg for call in calls for one in call.keywords if one.arg})
    star = ["*"] if keywords else []
    head = ", ".join([*arguments, *star, *(f"{word}=..." for word in keywords)])
    used = "\n".join(f"# used as {ast.unparse(call)[:160]}" for call in calls[:4])
    return f"# in {owner}\n{used}\ndef {name}({head}):\n    raise NotImplementedError"


def _argument(node: ast.expr, number: int) -> str:
    return node.id if isinstance(node, ast.Name) else f"argument_{number}"


def _calls(text: str, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(parse_python(text) or ast.Module([], [])):
        if isinstance(node, ast.Call) and (
            (isinstance(node.func, ast.Name) and node.func.id == name)
            or (isinstance(node.func, ast.Attribute) and node.func.attr == name)
        ):
            yield node
