"""What is known of failing tests before they run again: how each is linked to the change, and how it fails."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from regreen import isolation
from regreen.causes.posterior import Circumstances, Link
from regreen.code.diff import parse_bounded
from regreen.code.paths import is_document, is_source
from regreen.code.symbols import read_outline
from regreen.domain.errors import AnalysisFailed
from regreen.domain.models import Failure
from regreen.domain.ports import Git
from regreen.languages.registry import split_test_name
from regreen.logs import failure_signature
from regreen.runs.test_runs import CommandRun

_WORD = re.compile(r"\w{3,100}")
_NO_CODE = re.compile(r"\s*(?:$|#|//)")
_MAX_FILE = 1024 * 1024
_ORDER: tuple[Link, ...] = ("line", "statement", "test", "file", "none")
# Errors of code that does not fit together: it cannot fit in one run and not in the next.
_FIXED_KINDS = frozenset({"ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "NameError"})  # fmt: skip


@dataclass(frozen=True)
class _ChangedCode:
    """A change: its paths, the added lines and the lines of the functions around what changed, and their names."""

    paths: frozenset[str]
    lines: Mapping[str, frozenset[int]]
    spans: Mapping[str, tuple[range, ...]]
    names: frozenset[str]


def read_circumstances(
    git: Git, base: str, head: str, run: CommandRun, names: Sequence[str]
) -> dict[str, Circumstances]:
    """The circumstances of each failing test of a run on head; the name "" is the command as a whole."""
    failures = {name: [one for one in run.failures if not name or one.test in {name, name.partition("::")[0]}] for name in names}  # fmt: skip
    signature = failure_signature.read_signature(run.result) if run.failed else None
    extra = frozenset(signature.paths if signature and "" in names else ())
    try:
        paths, links, new = isolation.run_in_child(_read_links, git, base, head, failures, extra)
    except AnalysisFailed:
        paths, links, new = frozenset(), {}, frozenset()
    limited = run.failed and run.result.ended != "exit"
    if limited and any(is_source(path) for path in paths):
        links = dict.fromkeys(names, "file")
    return {
        name: Circumstances(
            link="file" if name in new else links.get(name, "none"),
            documents_only=bool(paths) and all(is_document(path) for path in paths),
            together=len(names),
            is_new=name in new,
            is_fixed=bool(failures[name]) and all(one.kind in _FIXED_KINDS for one in failures[name]),
            is_limit=limited,
        )
        for name in names
    }  # fmt: skip


def _read_links(
    git: Git,
    base: str,
    head: str,
    failures: Mapping[str, Sequence[Failure]],
    extra: frozenset[str],
) -> tuple[frozenset[str], dict[str, Link], frozenset[str]]:
    """The paths of the change, each test's link to it, and the tests that the base does not have."""
    change = _read_change(git, base, head)
    links: dict[str, Link] = {}
    for name, its in failures.items():
        found = [_link_failure(git, head, change, one) for one in its]
        path = split_test_name(name)[0]
        if (extra | {path}) & change.paths or (path and _names_changed_file(_show(git, head, path), change.paths)):  # fmt: skip
            found.append("file")
        links[name] = min(found, key=_ORDER.index, default="none")
    new = frozenset(
        name
        for name in failures
        if name and _has_test(git, head, name) and not _has_test(git, base, name)
    )
    return change.paths, links, new


def _read_change(git: Git, base: str, head: str) -> _ChangedCode:
    lines: dict[str, frozenset[int]] = {}
    spans: dict[str, tuple[range, ...]] = {}
    names: set[str] = set()
    files = parse_bounded(git.diff(base, head, context=0)).files
    for file in files:
        code = [line for hunk in file.hunks for line in hunk.lines if not _NO_CODE.match(line.text)]
        added = frozenset(line.new for line in code if line.kind == "+" and line.new)
        removed = frozenset(line.old for line in code if line.kind == "-" and line.old)
        lines[file.path] = added
        sides = ((head, file.path, added), (base, file.old_path, removed))
        for rev, path, numbers in sides:
            definitions = read_outline(path, _show(git, rev, path)).definitions if numbers else ()
            around = {
                max((one for one in definitions if one.start <= number <= one.end), key=lambda one: (one.start, -one.end), default=None)
                for number in numbers
            } - {None}  # fmt: skip
            for one in around:
                assert one is not None  # noqa: S101 - for mypy
                words = one.name.split(".")
                names.add(next((word for word in reversed(words) if not word.startswith("__")), words[-1]))  # fmt: skip
                if rev == head and one.kind not in {"class", "constant"}:
                    spans[path] = (*spans.get(path, ()), range(one.start, one.end + 1))
    paths = frozenset(path for file in files for path in (file.path, file.old_path) if path)
    return _ChangedCode(paths, lines, spans, frozenset(name for name in names if len(name) > 2))


def _link_failure(git: Git, head: str, change: _ChangedCode, failure: Failure) -> Link:
    """How one failure is linked to the change: by where its traceback goes, else by what its test names."""
    places = {(frame.path.removeprefix("/work/"), frame.line) for frame in failure.frames}
    if failure.path and failure.line:
        places.add((failure.path.removeprefix("/work/"), failure.line))
    if any(line in change.lines.get(path, ()) for path, line in places):
        return "line"
    said, around = [failure.message[:2000]], []
    for path, line in places:
        data = _show(git, head, path)
        source = data.decode("utf-8", "replace").split("\n")
        said += source[line - 1 : line]
        test = read_outline(path, data).definition_at(line)
        around += source[test.start - 1 : test.end] if test else []
    inside = any(line in span for path, line in places for span in change.spans.get(path, ()))
    if inside or change.names & _find_words(said):
        return "statement"
    if change.names & _find_words(around):
        return "test"
    return "file" if change.paths & {path for path, _ in places} else "none"


def _find_words(lines: Iterable[str]) -> set[str]:
    return {word for line in lines for word in _WORD.findall(line)}


def _has_test(git: Git, rev: str, name: str) -> bool:
    """Whether a commit's files have a test of this name; True where that cannot be told."""
    path, short = split_test_name(name)
    if not path:
        return True
    data = _show(git, rev, path)
    if not data:
        return git.tree_id(rev, path) is not None
    return re.split(r"[\[ ]", short, maxsplit=1)[0].encode() in data


def _names_changed_file(data: bytes, changed: Iterable[str]) -> bool:
    """Whether a test's file holds the name of a changed source file, as an import does."""
    words = set(re.findall(rb"[\w-]+", data))
    stems = (path.rpartition("/")[2].partition(".")[0] for path in changed if is_source(path))
    return any(stem.encode() in words for stem in stems)


def _show(git: Git, rev: str, path: str) -> bytes:
    return git.show(rev, path, _MAX_FILE) or b""
