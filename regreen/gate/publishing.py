"""Decides whether a working patch may be published or waits for a person."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from regreen.code.file_change import CheckReason, PatchedFile
from regreen.code.paths import is_document, is_test
from regreen.code.python_calls import last_name
from regreen.code.symbols import read_outline
from regreen.domain.models import Failure
from regreen.gate.facts import PythonFunction, find_nodes, pair_functions, walk_functions
from regreen.logs.ci_log import failure_kinds_in

TAKES_BACK = frozenset({"revert", "shrink"})
"""Rungs that only undo what somebody did."""
CheckKind = Literal["behaviour", "unclear", "form"]


@dataclass(frozen=True, slots=True)
class PatchFacts:
    """The facts about a patch that makes the failing command pass.

    `check` is what the command checks, and `why_unclear` why it is not known to run tests of behaviour.
    `passed_before`: what fails passed before the culprit; that costs a run, and is looked up last. `alone` says why
    the failing step alone was held against the patch, `is_whole` that all the project's tests ran before and after;
    `ran` says in words what ran. `is_layout`: a tool wrote the same otherwise. `lost` is what the patch takes away;
    `unnoticed` are places of a followed rename or signature that may be undone without a test noticing; `mended` is the line of the culprit's message that says that it mended something.
    """

    rung: str | None
    ran: str
    check: CheckKind = "form"
    why_unclear: str = ""
    passed_before: bool = True
    is_whole: bool = False
    alone: str = ""
    is_layout: bool = False
    lost: tuple[str, ...] = ()
    mended: str = ""
    unnoticed: tuple[str, ...] = ()


def find_reasons_to_wait(facts: PatchFacts) -> list[CheckReason]:
    """Why a person has to approve; empty if the patch may be published."""
    reasons: list[CheckReason] = []
    if facts.alone and not facts.is_layout:
        words = f"only the failing step was held against it: {facts.alone}; run with the patch: {facts.ran}"
        reasons.append(CheckReason("suite", words))
    if facts.unnoticed:
        words = f"no test notices what was changed at {', '.join(facts.unnoticed[:5])}"
        reasons.append(CheckReason("evidence", words))
    if facts.rung not in TAKES_BACK:
        return reasons
    if not facts.alone and not facts.is_whole:
        reasons.append(CheckReason("suite", f"not all of the project's tests ran: {facts.ran}"))
    lines: list[str] = []
    if facts.check == "form":
        lines.append("the failing command runs no tests of behaviour")
    elif facts.check == "unclear":
        lines.append(f"it is not known that the command tests behaviour: {facts.why_unclear}")
    elif not facts.passed_before:
        lines.append("what fails did not pass before the change that is taken back")
    if facts.lost:
        lines.append(f"this would be lost: {'; '.join(facts.lost[:10])}")
    if facts.mended:
        lines.append(f"the change says that it repaired something: {facts.mended}")
    return [*reasons, *(CheckReason("takes_back", line) for line in lines)]


# --- facts --------------------------------------------------------------------------------------------------------------

_SAYS_MENDED = re.compile(
    r"\b(?:fix(?:e[sd]|ing)?\b|bug(?:s|fix\w*)?\b|security\b|insecure|CVE|regress\w+|vulnerab\w+|(?:close[sd]?|closing|resolve[sd]?|resolving):?[ ]{1,3}[\w./-]{0,100}#\d)",
    re.IGNORECASE,
)
_OPTION_NAME = re.compile(r"--?[a-zA-Z][\w-]{0,60}")
_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9]{0,40}_[A-Z0-9_]{1,60}")
_SNAPSHOT_FAILURE = re.compile(
    r"(?i)\b\d+ snapshots? (?:\w+ )?(?:failed|obsolete|unused)|\b(?:to)?match\w*snapshots?\b"
    r"|(?:\bnot|n't) match (?:the )?(?:\w+ )?snapshots?\b|\bsnapshot assertion\b[^\n]{0,200}\bfailed\b"
)
_NAME = re.compile(r"\w+")
_CODE = re.compile(r"`([^`]{1,2000})`")
_PYTEST_ERROR_LINE = re.compile(r"(?m)^E +(?:\w{1,60}(?:Error|Exception): )?(.*)$")


def classify_check(  # noqa: PLR0917 - arguments for a child process
    failures: Sequence[Failure],
    outcomes: Mapping[str, str],
    touched: Mapping[str, Sequence[str]],
    output: str,
    given: bool,
    tracked: Collection[str],
) -> tuple[CheckKind, str]:
    """What the failing command checks, and the reason if that is unclear; in doubt it does not test behaviour.

    Args:
        failures: what failed, as its output tells.
        outcomes: how each test ended that pytest or unittest ran behind it.
        touched: what each failing test read or started.
        output: what it printed.
        given: a file of the caller's own is laid over every checkout and is the specification.
        tracked: the repository's files.
    """
    kinds = failure_kinds_in(output)
    error_kinds = failure_kinds_in("\n".join(_PYTEST_ERROR_LINE.findall(output)))
    if _SNAPSHOT_FAILURE.search(output) or (kinds | error_kinds) & {
        "lint",
        "type",
        "dependency",
        "infra",
    }:
        return "form", ""
    failing = [test for test, word in outcomes.items() if word == "failed"]
    seen = {path for test in failing for path in touched.get(test, ())}
    if "no test function" in seen or any(is_document(path) for path in seen & set(tracked)):
        # a linter that runs as a test, or a test that compares documents with the code
        return ("form", "")
    if outcomes and (failing or any(failure.test in tracked for failure in failures)):
        why = next(
            filter(None, (_find_other_dependency(test, touched, tracked) for test in failing)), ""
        )
        return ("unclear" if why else "behaviour"), why
    frames = {frame.path for failure in failures for frame in failure.frames}
    crashed = any(path in tracked and not is_test(path) for path in frames)
    if given or crashed or "build" in kinds or ("test" in kinds and not outcomes):
        return "unclear", "no test of it could be watched"
    return "form", ""


def _find_other_dependency(
    test: str, touched: Mapping[str, Sequence[str]], tracked: Collection[str]
) -> str:
    """What a test depends on beside code: recorded results, documents, other programs; empty if nothing."""
    if test not in touched:
        return f"what {test} does could not be seen"
    other = next((path for path in touched[test] if path in tracked or " " in path), "")
    return f"{test} looks at {other[:100]}" if other else ""


def find_fix_claim(message: str) -> str:
    """The line of a commit's message that claims a fix; empty if there is none."""
    lines = (line.strip() for line in message.splitlines())
    return next((line[:200] for line in lines if _SAYS_MENDED.search(line[:1000])), "")


def find_losses(
    files: Sequence[PatchedFile],
    came_with: Sequence[PatchedFile],
    used: Collection[str],
    documents: Mapping[str, str] = MappingProxyType({}),
    failure_text: str = "",
) -> tuple[str, ...]:
    """The public names, options, values and documented features that reverting a change removes.

    Args:
        files: what the patch does.
        came_with: what the change did.
        used: words that stand elsewhere in the repository.
        documents: the repository's documents as they are now.
        failure_text: what the failing tests say.
    """
    described = [f"what {file.path} says of it" for file in came_with if is_document(file.path)]
    came = {file.path: file for file in came_with}
    for file in files:
        described += [
            *_find_outdated_docstrings(file, came.get(file.path)),
            *_find_lost_names(file, used),
        ]
        described += _find_lost_values(file, failure_text)
    gone = {word for file in files for word in _find_removed_words(file)}.difference(used)
    for path, text in documents.items():
        spoken = {word for code in _CODE.findall(text) for word in _NAME.findall(code)}
        described += [f"{word}, of which {path} speaks" for word in sorted(gone & spoken)]
    return tuple(dict.fromkeys(described))


def _find_outdated_docstrings(file: PatchedFile, came: PatchedFile | None) -> Iterator[str]:
    """Docstrings of the change that stay while what they describe is removed."""
    was = walk_functions(came.old_tree if came else None)
    known = {(name, ast.get_docstring(node)) for name, node in was}
    for name, old, node in pair_functions(file) if came else ():
        text = ast.get_docstring(node)
        is_new = text and text == ast.get_docstring(old) and (name, text) not in known
        if is_new and ast.dump(node) != ast.dump(old):
            yield f"what the documentation of {name} says of it"


def _find_removed_words(file: PatchedFile) -> set[str]:
    """Words that the patch removes from all source files."""
    words = (set(_NAME.findall(text or "")) for text in (file.old, file.new))
    return set[str]() if is_test(file.path) or is_document(file.path) else next(words) - next(words)


def _find_lost_names(file: PatchedFile, used: Collection[str]) -> Iterator[str]:
    if is_document(file.path):
        return
    if is_test(file.path):
        yield f"tests in {file.path}"
        return
    before, after = _defined_names(file.path, file.old), _defined_names(file.path, file.new)
    for name in sorted(before - after):
        short = name.rpartition(".")[2]
        if not short.startswith("_") or short in used:
            yield f"{name} of {file.path}"
    now = {name: _parameter_names(node) for name, node in walk_functions(file.new_tree)}
    for name, node in walk_functions(file.old_tree):
        if name in now and (gone := _parameter_names(node) - now[name]):
            yield f"the parameter {min(gone)} of {name}"
    old, new = _find_promised_words(file.old_tree), _find_promised_words(file.new_tree)
    yield from (f"{words} of {file.path}" for words in sorted(old - new))
    # an option, parameter or variable that remains and that nothing reads any more
    offered = {word.lstrip("-").replace("-", "_") for word in new if word.startswith("-")}
    for _, node in walk_functions(file.new_tree):
        offered |= _parameter_names(node) | _find_used_names(node, ast.Store)
    for name in sorted(
        (_find_used_names(file.old_tree) - _find_used_names(file.new_tree)) & offered
    ):
        yield f"what {file.path} does with {name}"


def _find_lost_values(file: PatchedFile, failure_text: str) -> Iterator[str]:
    """Values that the change wrote down: a test that does not expect them may be older than they are.

    Texts and entries of lists that nothing replaces, and whatever stands in the failure itself.
    """
    if is_test(file.path):
        return
    old, new = _count_written_values(file.old_tree), _count_written_values(file.new_tree)
    gone, put = old - new, new - old
    for value, is_entry in gone:
        word = value.strip("'\"")
        is_seen = len(value) > 1 and word in failure_text
        if _OPTION_NAME.fullmatch(word) or _VARIABLE_NAME.fullmatch(word):
            continue  # a promise, and named as one
        if is_seen or (is_entry and gone.total() > put.total()):
            yield f"the value {value[:100]} of {file.path}"


def _count_written_values(tree: ast.Module | None) -> Counter[tuple[str, bool]]:
    """Texts, numbers, and entries of lists, as they are written; numbers elsewhere are no entries."""
    documentation = {id(node.value) for node in find_nodes(tree, ast.Expr)}
    found = {
        id(node): (ast.unparse(node), isinstance(node.value, str))
        for node in find_nodes(tree, ast.Constant)
        if isinstance(node.value, str | int | float) and id(node) not in documentation
    }
    for listing in find_nodes(tree, ast.expr):
        entries: Sequence[ast.expr | None] = ()
        if isinstance(listing, ast.Dict):
            entries = listing.keys
        elif isinstance(listing, ast.List | ast.Tuple | ast.Set):
            entries = listing.elts
        for node in filter(None, entries):
            is_plain = isinstance(node, ast.Constant | ast.Name | ast.Attribute)
            found[id(node)] = (ast.unparse(node), is_plain)
    return Counter(found.values())


def _defined_names(path: str, text: str | None) -> set[str]:
    found = read_outline(path, (text or "").encode()).definitions
    return {
        definition.name
        for definition in found
        if definition.kind != "constant" or "." not in definition.name
    }


def _parameter_names(node: PythonFunction) -> set[str]:
    given = node.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return {item.arg for item in every if item is not None}


def _find_used_names(tree: ast.AST | None, context: type[ast.expr_context] = ast.Load) -> set[str]:
    return {
        last_name(node)
        for node in find_nodes(tree, ast.Name, ast.Attribute)
        if isinstance(node.ctx, context)
    }


def _find_promised_words(tree: ast.Module | None) -> set[str]:
    """Options, environment variables, and promises of docstrings."""
    texts = {node.value for node in find_nodes(tree, ast.Constant) if isinstance(node.value, str)}
    found = {
        text for text in texts if _OPTION_NAME.fullmatch(text) or _VARIABLE_NAME.fullmatch(text)
    }
    for node in find_nodes(tree, ast.AST):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            described = " ".join((ast.get_docstring(node) or "").split())
            found |= {f"the documentation '{described[:100]}'"} if described else set()
    return found
