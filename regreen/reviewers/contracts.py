"""Contracts with the rest of the repository: callers that a changed signature breaks, removed names still used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from regreen.codebase.diff import FileChange
from regreen.codebase.python_code import Callable, Module, module, parse_python
from regreen.codebase.python_uses import Modules, uses
from regreen.codebase.sources import sources
from regreen.models import Evidence, Skipped
from regreen.reviewers.context import Claim, Report, ReviewContext
from regreen.reviewers.named_elsewhere import (
    Place,
    asked_for,
    lost_fixtures,
    named_in_calls,
    named_in_settings,
)
from regreen.reviewers.scope import is_test

_SHOWN = 3


class Contracts:
    """Holds what a change takes away or asks for against everyone in the repository who relies on it."""

    name = "contracts"

    def run(self, context: ReviewContext) -> Report:
        """Report broken callers and removed names that are still used, each with the place that breaks."""
        if context.git is None:
            return Report(skipped=(Skipped(self.name, "needs the repository, not a patch alone"),))
        changes = [
            c for f in context.files if f.path.endswith(".py") and (c := _change(f, context))
        ]
        wanted = [c for c in changes if c.signatures or c.removed or c.gone]
        if not changes:
            return Report()
        read = f"callers of what changed in {len(changes)} Python files"
        if not wanted:
            return Report(read=read)
        places = list(_uses(context, wanted))
        claims = [claim for c in wanted for claim in _claims(c, places)]
        return Report(claims=tuple(claims), read=read)


@dataclass(frozen=True)
class _Changed:
    """What one file's change means to others."""

    file: FileChange
    signatures: dict[str, tuple[Callable, Callable]] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    gone: bool = False
    fixtures: frozenset[str] = frozenset()


def _change(file: FileChange, context: ReviewContext) -> _Changed | None:
    was = context.before(file.old_path)
    before, after = _module(was), _module(context.after(file.path))
    if before is None or file.status in {"added", "copied"}:
        return None
    if file.status == "deleted":
        return _Changed(file, removed=dict(before.definitions), gone=True)
    if after is None:
        return None
    signatures = {
        name: (old, after.callables[name])
        for name, old in before.callables.items()
        if name in after.callables and old.parameters != after.callables[name].parameters
    }
    removed = {
        name: line
        for name, line in before.definitions.items()
        if name not in after.names and not after.open and line in file.removed_lines
    }
    return _Changed(file, signatures, removed, fixtures=lost_fixtures(was or "", after, removed))


def _module(text: str | None) -> Module | None:
    tree = parse_python(text) if text is not None else None
    return module(tree) if tree else None


def _uses(context: ReviewContext, changes: Sequence[_Changed]) -> Iterator[Place]:
    """Every place at the head that uses a name in question; only files that contain the word are parsed."""
    assert context.git is not None  # noqa: S101 - `run` has looked
    names = {n.rpartition(".")[2] for c in changes for n in c.signatures} - {"__init__"}
    names |= {
        n.rpartition(".")[0] for c in changes for n in c.signatures if n.endswith(".__init__")
    }
    names |= {n for c in changes for n in c.removed}
    words = [n.encode() for n in names if n]
    paths = [e.path for e in context.tree]
    gone = {c.file.old_path for c in changes if c.gone}
    modules = Modules.of([*paths, *gone])
    removed = {(c.file.old_path, n) for c in changes for n in c.removed}
    fixtures = {(c.file.old_path, n) for c in changes for n in c.fixtures}
    yield from named_in_settings(context, modules, removed)
    yield from asked_for(context, fixtures)
    for path, data in sources(context.git, context.head, lambda p: p.endswith(".py")):
        if not any(w in data for w in words):
            continue
        tree = parse_python(data)
        rows = data.decode("utf-8", "surrogateescape").split("\n")
        if tree:
            yield from named_in_calls(tree, path, rows, modules, removed)
        for use in uses(tree, path, modules) if tree else ():
            yield Place(path, use, rows[use.line - 1].strip() if use.line <= len(rows) else "")


def _claims(change: _Changed, places: Sequence[Place]) -> Iterator[Claim]:
    path = change.file.path
    for name, (old, new) in change.signatures.items():
        broken = [
            (p, why)
            for p in places
            if (p.use.module, p.use.name) == (path, name)
            and p.use.passed is not None
            and old.parameters.refuses(p.use.passed) is None
            and (why := new.parameters.refuses(p.use.passed))
            and not p.use.guarded
        ]
        if broken and not _is_inner_duplicate(name, change):
            yield _broken_callers(change.file, old, new, broken)
    for name, line in change.removed.items():
        left = [
            p
            for p in places
            if p.use.module == change.file.old_path
            and p.use.name.split(".", maxsplit=1)[0] == name
            and p.path != path
            and not p.use.guarded
            and (change.gone or change.file.old_path == path)
        ]
        if left:
            yield _still_used(change, name, line, left)


def _is_inner_duplicate(name: str, change: _Changed) -> bool:
    """`C.__init__` and `C` are one change: it is said once, of `C`."""
    return name.endswith(".__init__") and name.removesuffix(".__init__") in change.signatures


def _broken_callers(
    file: FileChange, old: Callable, new: Callable, broken: Sequence[tuple[Place, str]]
) -> Claim:
    first, why = broken[0]
    shown = "\n".join(f"{p.path}:{p.use.line}: {p.code}" for p, _ in broken[:_SHOWN])
    count = f"{len(broken)} callers" if len(broken) > 1 else f"{first.path}:{first.use.line}"
    return Claim(
        "correctness",
        "contracts/broken-caller",
        "high",
        file.path,
        new.line,
        max(new.line, new.end),
        title=f"`{new.name}` no longer accepts the call in {first.path}"
        if len(broken) == 1
        else f"`{new.name}` no longer accepts {len(broken)} of its callers",
        body=f"The signature was `{old.shown}` and is now `{new.shown}`. {count} still passes what the old one "
        f"took: `{first.code[:160]}` raises `TypeError`, {why}.",
        confidence=0.9 if any(not is_test(p.path) for p, _ in broken) else 0.85,
        evidence=(
            Evidence("analyzer", shown, "call graph", head=why, base="the call was accepted"),
        ),
        symbol=new.name,
        code=new.name,
        anywhere=True,
    )


def _still_used(change: _Changed, name: str, line: int, left: Sequence[Place]) -> Claim:
    left = list({(p.path, p.use.line): p for p in left}.values())
    shown = "\n".join(f"{p.path}:{p.use.line}: {p.code}" for p in left[:_SHOWN])
    first = left[0]
    what = "its module is deleted" if change.gone else "it is removed"
    more = f" ({len(left)} places in all)" if len(left) > 1 else ""
    return Claim(
        "correctness",
        "contracts/removed-still-used",
        "high",
        change.file.path,
        line,
        line,
        title=f"`{name}` is removed here and still used in {first.path}",
        body=f"`{first.code[:160]}` in {first.path}:{first.use.line}{more} fails, because {what} by this change.",
        confidence=0.92,
        side="LEFT",
        evidence=(Evidence("analyzer", shown, "call graph", head="not defined", base="defined"),),
        symbol=name,
        code=name,
    )
