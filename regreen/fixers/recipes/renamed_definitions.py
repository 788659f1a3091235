"""Follows a definition that a commit renamed, moved, or gave or took a parameter to the places that a compiler names, and gives back one that it took away, in any language with outlines.

Python's own callers are followed by its syntax trees (`languages/python/forgotten_callers`). What no syntax tells, a
field in data or a name in a text, is written as the commit wrote it elsewhere (`left_places`).
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from regreen.code.paths import is_source
from regreen.code.python_calls import is_module
from regreen.code.symbols import Definition, read_outline
from regreen.domain.languages import CompletedChange
from regreen.domain.ports import Git
from regreen.languages.registry import find_language
from regreen.languages.script import is_script, resolve_import, write_relative_place

_SAYS_GONE = re.compile(
    r"(?i)undefined|undeclared|not (?:find|found|defined|declared|a function)|no (?:exported member|such|field|method|function)|does not (?:exist|provide)"
    r"|has no|unresolved|unknown|implicit declaration|cannot find|symbol:|is private|private access|not public|not exported"
)
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]{1,80}")
_NO_MODULE = re.compile(
    r"(?i)cannot find module|could ?n.t resolve|(?:not|failed to) resolve|unresolved"
)
_RELATIVE_PLACE = re.compile(r"""(?P<quote>['"])(?P<place>\.{1,2}/[^'"\n]{1,200})(?P=quote)""")
_VISIBLE = re.compile(
    r"^([ \t]*)(?:export (?:default )?|pub(?:\([\w ]{1,40}\))? |public |protected )"
)
_MAX_COMMITS = 20
_MAX_PATHS = 50
_MAX_BYTES = 300_000
_MIN_RATIO = 0.8
_MAX_COMPARED_LINES = 2000


@dataclass(frozen=True, slots=True)
class _Home:
    """A definition by its file and name, with its text in which its own name is left out."""

    path: str
    definition: Definition
    body: str

    @property
    def key(self) -> tuple[str, str, bool]:
        """What tells it from others of its file and name: a field may have the name of its method."""
        return self.path, self.definition.name, self.definition.kind == "constant"


def follow_change(
    git: Git, rev: str, base: str | None, output: str, places: Mapping[str, Collection[int]]
) -> CompletedChange | None:
    """The files that the failure names with what a commit renamed or moved, or with the argument that it gave to, or took from, other calls; or the definition that it took away, given back."""
    arguments = git, rev, base, output, places
    return (
        follow_renamed_definitions(*arguments)
        or follow_moved_scripts(*arguments)
        or follow_changed_arguments(*arguments)
        or give_back_definitions(git, rev, base, output)
    )


def follow_renamed_definitions(
    git: Git, rev: str, base: str | None, output: str, places: Mapping[str, Collection[int]]
) -> CompletedChange | None:
    """The files that the failure names with what the newest fitting commit renamed or moved; None if it did not.

    Args:
        git: the repository.
        rev: the failing commit.
        base: where the change under repair starts; the last commits are searched where None.
        output: what the compiler printed.
        places: lines of tracked files that it names.
    """
    words = _find_missing_names(output)
    texts = {
        path: data.decode("utf-8", "surrogateescape")
        for path in places
        if is_source(path) and not is_module(path) and (data := git.show(rev, path)) is not None
    }
    for commit in reversed(git.commits(base, rev)[-_MAX_COMMITS:] if words and texts else ()):
        changed, summary, is_guess = dict(texts), [], False
        for gone, new, is_unclear in _find_moved_definitions(
            git, commit.sha, commit.parents, words
        ):
            old, before, is_doubtful = gone.definition.short_name, dict(changed), is_unclear
            if new.path == gone.path:
                name = new.definition.short_name
                changed = {
                    path: _rename(text, old, name, places[path]) for path, text in before.items()
                }
                is_doubtful |= any(
                    _has_other_uses_of_word(text, old, places[path])
                    for path, text in before.items()
                )
            else:
                name = new.path
                changed = {
                    path: _redirect_import(path, text, gone, new) for path, text in before.items()
                }
            if changed != before:
                summary.append(f"{old} is {name}")
                is_guess = is_guess or is_doubtful
        changed = {path: text for path, text in changed.items() if text != texts[path]}
        if changed:
            return CompletedChange(commit.sha, changed, ", ".join(summary), is_guess)
    return None


def follow_moved_scripts(
    git: Git, rev: str, base: str | None, output: str, places: Mapping[str, Collection[int]]
) -> CompletedChange | None:
    """The scripts that the failure names with their relative imports of a file that a commit moved, and the moved file with its own; None if none was."""
    named = [path for path in places if is_script(path)] if _NO_MODULE.search(output) else []
    texts = {
        path: data.decode("utf-8", "surrogateescape")
        for path in named
        if (data := git.show(rev, path)) is not None
    }
    here = {entry.path for entry in git.tree(rev)} if texts else set()
    for commit in reversed(git.commits(base, rev)[-_MAX_COMMITS:] if texts else ()):
        moves = {
            old: new
            for old, new in find_moved_files(git, commit.sha, commit.parents)
            if old not in here and new in here
        }
        changed = {path: _follow_moves(path, text, moves, here) for path, text in texts.items()}
        changed = {path: text for path, text in changed.items() if text != texts[path]}
        if changed:
            summary = ", ".join(f"{old} is {new}" for old, new in sorted(moves.items()))[:200]
            return CompletedChange(commit.sha, changed, summary, is_guess=False)
    return None


def find_moved_files(
    git: Git,
    sha: str,
    parents: Collection[str],
    is_meant: Callable[[str], bool] = is_script,
    least: float = _MIN_RATIO,
) -> Iterator[tuple[str, str]]:
    """The files that a commit took from one place and put into a single other, with this share of their lines at `least`."""
    paths = [x for x in git.changed_paths(sha) if is_meant(x)][:_MAX_PATHS] if parents else []
    before, after = (
        {path: data for path in paths if (data := git.show(at, path, _MAX_BYTES)) is not None}
        for at in (next(iter(parents), sha), sha)
    )
    came = sorted(after.keys() - before.keys())
    for old in sorted(before.keys() - after.keys()):
        # another ending or another name, not both
        own = set(posixpath.splitext(posixpath.basename(old)))
        near = [x for x in came if own & set(posixpath.splitext(posixpath.basename(x))) - {""}]
        same = [x for x in near if after[x] == before[old]]
        alike = same or [x for x in near if _is_moved(before[old], after[x], least)]
        if len(alike) == 1:
            yield old, alike[0]


def _is_moved(old: bytes, new: bytes, least: float) -> bool:
    """Whether so many lines are the same; none where there are more than can be compared."""
    was, now = old.splitlines(), new.splitlines()
    if max(len(was), len(now)) > _MAX_COMPARED_LINES:
        return False
    pair = difflib.SequenceMatcher(None, was, now)
    bounds = pair.real_quick_ratio, pair.quick_ratio, pair.ratio  # the last one takes long
    return all(bound() >= least for bound in bounds)


def _follow_moves(path: str, text: str, moves: Mapping[str, str], here: Collection[str]) -> str:
    """The text with the relative places that mean a moved file, or that a moved file writes from where it was."""
    was = next((old for old, new in moves.items() if new == path), path)

    def follow(match: re.Match[str]) -> str:
        place = match["place"]
        if resolve_import(place, path, here) is not None:
            return match[0]
        meant = resolve_import(place, was, {*here, *moves})
        target = moves.get(meant, meant) if meant else None
        if target is None:
            return match[0]
        return f"{match['quote']}{write_relative_place(path, target, place)}{match['quote']}"

    return _RELATIVE_PLACE.sub(follow, text)


def _find_missing_names(output: str) -> set[str]:
    """The words of the lines that say that something is not there."""
    complaints = [line[:500] for line in output[-100_000:].splitlines() if _SAYS_GONE.search(line)]
    return {word for line in complaints for word in _IDENTIFIER.findall(line)}


def give_back_definitions(
    git: Git, rev: str, base: str | None, output: str
) -> CompletedChange | None:
    """The definitions that are missing now and that the newest fitting commit hid, or took away without anything in their place, where they were; None if none did."""
    words = _find_missing_names(output)
    for commit in reversed(git.commits(base, rev)[-_MAX_COMMITS:] if words else ()):
        paths = [x for x in git.changed_paths(commit.sha) if is_source(x) and not is_module(x)]
        changed: dict[str, str] = {}
        names: set[str] = set()
        anywhere = {  # what moved is not gone
            one.short_name
            for path in paths[:_MAX_PATHS]
            if len(data := git.show(commit.sha, path) or b"") <= _MAX_BYTES
            for one in read_outline(path, data).definitions
        }
        for path in paths[:_MAX_PATHS] if commit.parents else ():
            versions = [git.show(at, path) for at in (commit.parents[0], commit.sha, rev)]
            if any(data is None or len(data) > _MAX_BYTES for data in versions):
                continue
            old, new, now = (data or b"" for data in versions)
            here = {one.short_name for one in read_outline(path, now).definitions}
            gone = [
                one
                for one in read_outline(path, old).definitions
                if one.short_name in words - here - anywhere
            ]
            hidden = [x for x in read_outline(path, new).definitions if x.short_name in words]
            if not gone and not hidden:
                continue
            texts = [x.decode("utf-8", "surrogateescape").split("\n") for x in (old, new, now)]
            text, given_back = _undo_deletions(texts, gone, hidden)
            if given_back:
                changed[path] = text
                names |= given_back
        if changed:
            summary = f"{', '.join(sorted(names))} given back"
            return CompletedChange(commit.sha, changed, summary, is_guess=True)
    return None


def _undo_deletions(
    versions: Sequence[list[str]], gone: Collection[Definition], hidden: Collection[Definition]
) -> tuple[str, set[str]]:
    """The last of three versions with what the second took from the first, and the names of that.

    Blocks that hold a definition of `gone` and of which nothing is left, and the word that let others use one of
    `hidden`, which are definitions of the second.
    """
    before, after, lines = (list(text) for text in versions)
    kept = compare_lines(after, lines).get_matching_blocks()
    moved = {x.a + offset: x.b + offset for x in kept for offset in range(x.size)}
    starts = {one.start - 1: one.short_name for one in hidden}
    names: set[str] = set()
    for tag, start, stop, first, last in reversed(compare_lines(before, after).get_opcodes()):
        held = {one.short_name for one in gone if start < one.start and one.end <= stop}
        if tag == "delete" and held and first in moved:
            lines[moved[first] : moved[first]] = before[start:stop]
            names |= held
        for at, (was, line) in enumerate(zip(before[start:stop], after[first:last], strict=False)):
            number = first + at
            if number in starts and number in moved and _VISIBLE.sub(r"\1", was) == line != was:
                lines[moved[number]] = was
                names.add(starts[number])
    return "\n".join(lines), names


def compare_lines(old: list[str], new: list[str]) -> difflib.SequenceMatcher[str]:
    """A comparison in which blank lines alone do not hold two texts together."""
    return difflib.SequenceMatcher(lambda line: not line.strip(), old, new, autojunk=False)


_WRONG_COUNT = re.compile(
    r"(?i)(?:not enough|too many) arguments in call to (?:[\w.]{1,80}\.)?(?P<go>\w{1,80})|(?:method|constructor) (?P<java>\w{1,80}) in (?:class|enum|record|interface) \S{1,200} cannot be applied"
    r"|error TS(?:2554|2345):|error\[E0(?:061|308)\]|in argument to (?:[\w.]{1,80}\.)?(?P<go_type>\w{1,80})|incompatible types:"
)


@dataclass(frozen=True, slots=True)
class _ChangedArgument:
    """What a commit did to the arguments of a function: `added` behind the last, the one at `dropped` of `count` taken away, all in another `order`, or a `value` in the place of another."""

    added: str = ""
    dropped: int = 0
    count: int = 0
    order: tuple[int, ...] = ()
    value: tuple[str, str] | None = None

    def describe(self) -> str:
        """What other calls have now."""
        if self.added:
            return f"with {self.added}"
        if self.value:
            return "with another value"
        return "with its arguments in another order" if self.order else "with an argument less"

    def change_call(self, arguments: list[str]) -> list[str]:
        """The arguments of another call, changed alike where they fit."""
        if self.added:
            return [*arguments, self.added]
        if self.value:
            return [self.value[1] if one == self.value[0] else one for one in arguments]
        if len(arguments) == len(self.order):
            return [arguments[at] for at in self.order]
        is_full = len(arguments) == self.count
        return [one for at, one in enumerate(arguments) if not is_full or at != self.dropped]


def follow_changed_arguments(
    git: Git, rev: str, base: str | None, output: str, places: Mapping[str, Collection[int]]
) -> CompletedChange | None:
    """The named lines with the last argument that a commit gave to every other call of a function, or without the one that it took away; None if it did not do the same everywhere."""
    said = list(_WRONG_COUNT.finditer(output[-100_000:]))
    names = {name for match in said for name in match.groups() if name}
    texts = {
        path: data.decode("utf-8", "surrogateescape")
        for path in (places if said else ())
        if is_source(path) and not is_module(path) and (data := git.show(rev, path)) is not None
    }
    defined = {  # a compiler also names the definition that a call does not fit
        path: _list_defined(path, text.encode("utf-8", "surrogateescape"))
        for path, text in texts.items()
    }
    for commit in reversed(git.commits(base, rev)[-_MAX_COMMITS:] if texts else ()):
        found = _find_changed_arguments(git, commit.sha, commit.parents)
        for name in sorted(found.keys() & names if names else found.keys()):
            # values of single calls say nothing where all calls got another shape
            shapes = {x for x in found[name] if not x.value}
            changes = shapes or found[name]
            changed = {
                path: "\n".join(
                    _change_arguments(line, name, changes)
                    if number in places[path] and (number, name) not in defined[path]
                    else line
                    for number, line in enumerate(text.split("\n"), 1)
                )
                for path, text in texts.items()
            }
            changed = {path: text for path, text in changed.items() if text != texts[path]}
            if changed and len(shapes) <= 1:
                words = f"{name} is called {next(iter(changes)).describe()} too"
                return CompletedChange(commit.sha, changed, words, is_guess=True)
    return None


def _find_changed_arguments(
    git: Git, sha: str, parents: Collection[str]
) -> dict[str, set[_ChangedArgument]]:
    """By function, the arguments that the commit added behind those of its calls, or took from its calls or its definition."""
    found: dict[str, set[_ChangedArgument]] = {}
    for path in [x for x in git.changed_paths(sha) if is_source(x)][:_MAX_PATHS]:
        data = git.show(sha, path) or b""
        was = git.show(next(iter(parents)), path) if parents else None
        if was is None or max(len(data), len(was)) > _MAX_BYTES:
            continue
        old, new = (text.decode("utf-8", "replace").splitlines() for text in (was, data))
        defined = _list_defined(path, data)
        pairs = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for tag, start, stop, first, last in pairs.get_opcodes():
            lines = zip(old[start:stop], new[first:last], strict=False)
            for number, (before, after) in enumerate(lines if tag == "replace" else (), first + 1):
                for name, change in _compare_arguments(before, after):
                    if change.count or (number, name) not in defined:
                        found.setdefault(name, set()).add(change)
    return found


def _list_defined(path: str, data: bytes) -> set[tuple[int, str]]:
    return {(one.start, one.short_name) for one in read_outline(path, data).definitions}


def _compare_arguments(before: str, after: str) -> Iterator[tuple[str, _ChangedArgument]]:
    """The calls of two lines whose only difference is an argument behind the last, or one that is gone."""
    for name, opens, close in _list_calls(before):
        added = after[close : close + len(after) - len(before)]
        if added and after == f"{before[:close]}{added}{before[close:]}":
            yield name, _ChangedArgument(added.removeprefix(",").strip())
            continue
        arguments = _split_arguments(before[opens:close])
        for dropped in reversed(range(len(arguments))):
            rest = [*arguments[:dropped], *arguments[dropped + 1 :]]
            if after == f"{before[:opens]}{', '.join(rest)}{before[close:]}":
                own = [one for one in arguments if re.fullmatch(r"&?(?:mut )?self", one)]
                place = dropped - len(own)  # which the calls of a method do not write
                yield name, _ChangedArgument("", place, len(arguments) - len(own))
                break
        there = _split_arguments(after[opens : len(after) - len(before) + close])
        is_same_beside = after.startswith(before[:opens]) and after.endswith(before[close:])
        if is_same_beside and there != arguments and sorted(there) == sorted(set(arguments)):
            yield name, _ChangedArgument(order=tuple(map(arguments.index, there)))
        other = [pair for pair in zip(arguments, there, strict=False) if pair[0] != pair[1]]
        if is_same_beside and len(there) == len(arguments) and len(other) == 1:
            yield name, _ChangedArgument(value=other[0])


def _list_calls(line: str) -> Iterator[tuple[str, int, int]]:
    """The calls of a line that end in it: name, and where the parenthesis opens and closes."""
    for match in re.finditer(r"(?<![\w$])([A-Za-z_$][\w$]{0,80})\(", line[:500]):
        depth = 1
        for at in range(match.end(), len(line)):
            depth += (line[at] == "(") - (line[at] == ")")
            if not depth:
                yield match[1], match.end(), at
                break


def _split_arguments(text: str) -> list[str]:
    """What stands between commas that are in no bracket; commas of a string divide it too, so that nothing fits it then."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _change_arguments(line: str, name: str, changes: Collection[_ChangedArgument]) -> str:
    for called, opens, close in reversed(list(_list_calls(line))):
        arguments = _split_arguments(line[opens:close])
        made = (x.change_call(arguments) for x in sorted(changes, key=repr) if called == name)
        new = next((x for x in made if x != arguments), arguments)
        if arguments and new[:-1] == arguments:  # what stands there is kept as it is written
            line = f"{line[:close]}, {new[-1]}{line[close:]}"
        elif new != arguments:
            line = f"{line[:opens]}{', '.join(new)}{line[close:]}"
    return line


def _find_moved_definitions(
    git: Git, sha: str, parents: Collection[str], words: Collection[str]
) -> Iterator[tuple[_Home, _Home, bool]]:
    """Definitions of these names that the commit took away, and what stands for them now."""
    if not parents:
        return
    parent = next(iter(parents))
    paths = [x for x in git.changed_paths(sha) if is_source(x) and not is_module(x)][:_MAX_PATHS]
    before, after = (
        {y for x in paths for y in _read_definitions_with_bodies(git, at, x)}
        for at in (parent, sha)
    )
    kept = {x.key for x in before} & {x.key for x in after}
    gone = [x for x in before if x.key not in kept]
    came = [x for x in after if x.key not in kept]
    for old in sorted(gone, key=lambda home: (home.path, home.definition.start)):
        if old.definition.short_name not in words:
            continue
        alike = sorted(
            (
                (difflib.SequenceMatcher(None, old.body, new.body, autojunk=False).ratio(), new)
                for new in came
                if new.definition.kind == old.definition.kind
                and (new.path == old.path or new.definition.name == old.definition.name)
            ),
            key=lambda pair: -pair[0],
        )
        least = 1 if old.definition.kind == "constant" else _MIN_RATIO  # its value is all it has
        if alike and alike[0][0] >= least:
            tie = len(alike) > 1 and alike[1][0] == alike[0][0]
            is_bare = old.definition.kind == "constant" and "=" not in old.body
            yield old, alike[0][1], tie or alike[0][0] < 1 or is_bare


def _read_definitions_with_bodies(git: Git, rev: str, path: str) -> Iterator[_Home]:
    data = git.show(rev, path)
    if data is None or len(data) > _MAX_BYTES:
        return
    lines = data.decode("utf-8", "replace").splitlines()
    for definition in read_outline(path, data).definitions:
        body = "\n".join(lines[definition.start - 1 : definition.end])[:5000]
        name = re.escape(definition.short_name)
        yield _Home(path, definition, re.sub(rf"(?<![\w$]){name}(?![\w$])", "_", body))


def _rename(text: str, old: str, new: str, named: Collection[int]) -> str:
    """The text with the word exchanged; members of other objects stay where no line that the failure names has it as a member."""
    lines = text.split("\n")
    shown = "\n".join(lines[number - 1] for number in named if 0 < number <= len(lines))
    word = rf"{re.escape(old)}(?![\w$])"
    member = r"(?<!\.)\."  # three of them spread what follows
    free = "" if re.search(member + word, shown) else rf"(?<!{member})"
    return re.sub(rf"(?<![\w$]){free}{word}", new, text)


def _has_other_uses_of_word(text: str, old: str, named: Collection[int]) -> bool:
    """Whether a line that the failure does not name has the word as anything but a plain call or an import: a key, a text, another object's member."""
    plain = re.compile(rf"(?<![\w$.]){re.escape(old)}(?=[ \t]*\()")
    word = re.compile(rf"(?<![\w$]){re.escape(old)}(?![\w$])")
    return any(
        number not in named
        and word.search(plain.sub("", line))
        and not re.match(r"\s*(?:import|use|from)\b", line)
        for number, line in enumerate(text.split("\n"), 1)
    )


def _redirect_import(path: str, text: str, gone: _Home, new: _Home) -> str:
    """The text with a name imported from the file of its language that has it now."""
    own, other = find_language(path), find_language(new.path)
    follow = own.import_moved if own else None
    if follow is None or other is None or other.import_moved is not follow:
        return text
    return follow(path, text, new.definition.short_name, (gone.path, new.path))
