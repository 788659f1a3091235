"""What a commit did elsewhere and left undone in one place: the old name in a text, a field in data, an entry in a list.

No syntax tells such a place. Each edit repeats what the commit, or whoever wrote its siblings, wrote beside it, and a run decides.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, pairwise, takewhile

from regreen.code.file_languages import has_outline
from regreen.code.paths import is_document, is_lock_file, is_source, is_test, is_vendored
from regreen.code.python_calls import (
    add_import,
    is_module,
    is_package,
    parse_python,
    reads_unbound,
)
from regreen.code.symbols import read_outline
from regreen.domain.languages import CompletedChange
from regreen.domain.ports import Git
from regreen.fixers.recipes.renamed_definitions import compare_lines, find_moved_files

_MAX_COMMITS = 20
_MAX_PATHS = 50
_MAX_BYTES = 300_000
_MIN_LINE_RATIO = 0.5

# Words that hyphens join are one, and so are options: `plot-detail` and `show-plot` share no part.
_TOKEN = re.compile(r"(?:--)?[A-Za-z_$][\w$]*(?:-[A-Za-z_][\w]*)*|\d[\w.]*|[ \t]+|[^\w \t]")
_VALUES = {"True", "False", "None", "true", "false", "null"}
_WORD = re.compile(r"--[A-Za-z][\w-]{1,80}|[A-Za-z_$][\w$]{2,80}|\d+(?:\.\d+)+")
# Wider than what one line is chosen by: a line too many costs a run, one too few the repair.
_COMPLAINS = re.compile(
    r"(?i)error|exception|fail|\bnot\b|no such|missing|unexpected|undefined|^E "
)
_MAX_RUN, _MAX_BLOCK = 40, 40
_MIN_RATIO = 0.7
_MIN_BEGINNING = 4  # tokens
_MAX_FILES, _MAX_EDITED = 3000, 8
_MAX_LINES = 100_000
_MAX_EXCHANGES, _MAX_QUOTED = 300, 200
_MIN_MOVED = 0.5  # of the lines, as git finds what was renamed
_MAX_CANDIDATES = 8


def fill_left_places(
    git: Git,
    rev: str,
    base: str | None,
    output: str,
    places: Mapping[str, Collection[int]],
    *,
    is_asserted: bool,
) -> list[CompletedChange]:
    """What the failure suggests that a commit left undone: links (`follow_links`), then an exchange (`repeat_edits`), then an entry of a list (`add_to_lists`).

    Args:
        git: the repository.
        rev: the failing commit.
        base: where the change under repair starts; the last commits are searched where None.
        output: what the command printed.
        places: lines of tracked files that it names.
        is_asserted: a test asks for another value; then only the named lines of a test are changed, and only as `repeat_edits` says.
    """
    arguments = git, rev, base, output, {**_find_mentioned_documents(git, rev, output), **places}
    found = [
        *follow_links(git, rev, base, output),
        *repeat_edits(*arguments, is_asserted=is_asserted),
        *add_to_lists(*arguments, is_asserted=is_asserted),
    ]
    return [one for at, one in enumerate(found) if one.texts not in [x.texts for x in found[:at]]]


def _find_mentioned_documents(git: Git, rev: str, output: str) -> dict[str, range]:
    """The documents whose name the complaints quote, with all of their lines."""
    quoted = set(_QUOTED_TEXT.findall("\n".join(_list_complaints(output))))
    names = {posixpath.basename(text) for text in quoted}
    documents = (x.path for x in git.tree(rev) if posixpath.basename(x.path) in names)
    return {path: range(1, _MAX_LINES) for path in documents if is_document(path)}


def repeat_edits(
    git: Git,
    rev: str,
    base: str | None,
    output: str,
    places: Mapping[str, Collection[int]],
    *,
    is_asserted: bool,
) -> list[CompletedChange]:
    """What a commit wrote in the place of something else, written where it left that, likeliest first.

    The newest commit is taken that exchanged what the failure speaks of. First the files that the failure names are
    changed, of those that the commit changed itself the named lines alone; then all that it left alone. Before these comes
    what the failure quotes, where it stands in quotes.
    `is_asserted`: a test asks for another value. Then the failure must show both sides, and of a test the named lines are
    changed, if the commit's message has the new word.
    """
    said = _find_blamed_words(git, rev, output, places)
    texts_in_quotes = _QUOTED_TEXT.findall("\n".join(_list_complaints(output)))
    quoted = [*dict.fromkeys(texts_in_quotes)][-_MAX_QUOTED:]
    for commit in reversed(git.commits(base, rev)[-_MAX_COMMITS:]):
        edits = [
            (x, sorted(text for text in quoted if x.write(text, everywhere=True) != text))
            for x in _find_exchanges(git, commit.sha, commit.parents)
        ]
        edits = [x for x in edits if x[1] or _is_said(x[0], said, both=is_asserted)]
        if not edits:
            continue
        place = _LeftPlace(_read_sources(git, rev), places, git.changed_paths(commit.sha))
        found: list[CompletedChange] = []
        for edit, texts in edits:
            words = f"wrote {edit.new.strip()} instead of {edit.old.strip()} there too"
            changes = [
                x
                for text in texts
                for x in place.exchange_text(edit, text, is_asserted=is_asserted)
            ]
            if _is_said(edit, said, both=is_asserted):
                changes += place.exchange(edit, is_asserted=is_asserted)
            for changed in changes:
                if changed and changed not in [x.texts for x in found]:
                    found.append(CompletedChange(commit.sha, changed, words, is_guess=True))
            if len(found) >= _MAX_CANDIDATES:
                break
        if found:
            return found[:_MAX_CANDIDATES]
    return []


@dataclass(frozen=True, slots=True)
class _Exchange:
    """What a commit wrote in the place of what.

    `is_meant`: its message has the new word; `is_member`: behind a dot, once at least.
    """

    old: str
    new: str
    is_meant: bool = True
    is_member: bool = True

    def write(
        self, text: str, lines: Collection[int] | None = None, *, everywhere: bool = False
    ) -> str:
        """The text with the exchange: in these lines alone where there are any, behind a dot only as the commit did."""
        old, new = self.old, self.new
        dot = "" if everywhere or self.is_member or not old.isidentifier() else "."
        more = re.escape(new[len(old) :]) if new.startswith(old) else r"[\w$]"
        end = r"(?![\w$])" if old[-1:].isalnum() or old.endswith("_") else ""
        start = rf"(?<![\w${dot}])" if re.match(r"[\w$]", old) else ""
        if dot:  # at the end of a dotted name in quotes it is no member
            start = f"(?:{start}|(?<=\\.)(?={old}['\"`]))"
        word = re.compile(rf"{start}{re.escape(old)}{end}(?!{more})")
        if lines is None:
            return word.sub(lambda _: new, text)
        rows = text.split("\n")
        return "\n".join(
            word.sub(lambda _: new, row) if number in lines else row
            for number, row in enumerate(rows, 1)
        )


@dataclass(frozen=True, slots=True)
class _LeftPlace:
    """Where an exchange may have been left out: the texts of the failing commit, the lines that the failure names, and what the commit changed itself."""

    texts: Mapping[str, str]
    places: Mapping[str, Collection[int]]
    own: Collection[str]

    def exchange(self, edit: _Exchange, *, is_asserted: bool) -> Iterator[dict[str, str]]:
        """The files with the exchange, likeliest first: those that are named, others one by one, all.

        Of a file that the commit changed itself, and of a test that asserts, the named lines alone, then the definitions
        around them.
        """
        edited, wider = dict[str, str](), dict[str, str]()
        for path, text in self.texts.items():
            lines = self.places.get(path)
            is_whole = path not in self.own and not (is_asserted and is_test(path))
            may_change = self._may_change(path, edit, is_asserted=is_asserted)
            if edit.old not in text or not may_change or (lines is None and not is_whole):
                continue
            new = edit.write(text, None if is_whole else lines)
            if new != text:
                edited[path] = new
            elif lines and (around := _list_lines_around(path, text, lines)):
                new = edit.write(text, around)
                wider |= {path: new} if new != text else {}
        named = edited.keys() & self.places.keys()
        # data and texts are seldom named where what reads them fails
        others = sorted(edited.keys() - named, key=lambda path: (has_outline(path), path))
        scopes = [named, *({path} for path in others), edited.keys()]
        for scope in scopes if len(edited) <= _MAX_EDITED else scopes[:1]:
            texts = {path: self._bring_in(path, edited[path], edit.new) for path in sorted(scope)}
            yield texts if len(texts) <= _MAX_EDITED else {}
        yield wider

    def exchange_text(
        self, edit: _Exchange, quoted: str, *, is_asserted: bool
    ) -> Iterator[dict[str, str]]:
        """The files with the exchange in what the failure quotes, where they quote it: all, and line by line.

        Of a file that the commit changed itself it left some lines on purpose: these come line by line first.
        """
        new = edit.write(quoted, everywhere=True)
        if not _PLAIN_TEXT.fullmatch(new):
            return
        in_quotes = re.compile(rf"""(['"`]){re.escape(quoted)}\1""")
        spots: list[tuple[str, int, str]] = []
        for path, text in self.texts.items():
            is_left = quoted in text and not (is_asserted and is_test(path))
            if not (is_left and self._may_change(path, edit, is_asserted=is_asserted)):
                continue
            for at, row in enumerate(text.split("\n")):
                line = in_quotes.sub(lambda match: match[1] + new + match[1], row)
                if line != row:
                    spots.append((path, at, line))
                if len(spots) > _MAX_SPOTS:
                    return
        paths = {path for path, *_ in spots}
        every = [spots] if len(paths) <= _MAX_EDITED else []
        each = [[spot] for spot in spots] if 1 < len(spots) <= _MAX_EDITED else []
        for some in [*each, *every] if paths & set(self.own) else [*every, *each]:
            rows = {path: self.texts[path].split("\n") for path, *_ in some}
            for path, at, line in some:
                rows[path][at] = line
            yield {path: "\n".join(lines) for path, lines in rows.items()}

    def _may_change(self, path: str, edit: _Exchange, *, is_asserted: bool) -> bool:
        """Whether an exchange may be written there: in a test that asserts where the commit says that it is meant."""
        if is_lock_file(path):
            return False
        if is_test(path):
            return not is_asserted or edit.is_meant
        return path in self.places or not is_document(path)

    def _bring_in(self, path: str, text: str, name: str) -> str:
        """A module that has a new name, with the import of it that other modules have."""
        tree = parse_python(text) if is_module(path) and name.isidentifier() else None
        if tree is None or not reads_unbound(tree, name):
            return text
        word = re.escape(name)
        imports = re.compile(rf"(?m)^from (\w[\w.]*) import (?:.*[ ,])?{word}(?=[ ,\n]|$)")
        modules = Counter(
            x[1] for other in self.texts.values() if name in other for x in imports.finditer(other)
        )
        if not modules:
            return text
        return add_import(text, tree, f"from {modules.most_common(1)[0][0]} import {name}")


def _list_lines_around(path: str, text: str, lines: Collection[int]) -> set[int]:
    """The lines of the functions and classes that begin at, or hold, one of these."""
    around = [
        range(x.start, x.end + 1)
        for x in read_outline(path, text.encode("utf-8", "surrogateescape")).definitions
        if x.kind != "constant" and any(x.start <= line <= x.end for line in lines)
    ]
    innermost = {min((x for x in around if line in x), key=len, default=range(0)) for line in lines}
    return {line for one in innermost for line in one}


_QUOTED_TEXT = re.compile(r"""['"`]([\w./:#-]{2,100})['"`]""")
_PLAIN_TEXT = re.compile(r"[\w./:#-]{1,200}")
_MAX_SPOTS = 200


def _list_complaints(output: str) -> list[str]:
    return [line[:500] for line in output[-100_000:].splitlines() if _COMPLAINS.search(line)]


def _find_blamed_words(
    git: Git, rev: str, output: str, places: Mapping[str, Collection[int]]
) -> set[str]:
    """The words of the lines that complain, and of the places that they name."""
    lines = [*_list_complaints(output), *places]
    for path, numbers in places.items():
        rows = (git.show(rev, path, _MAX_BYTES) or b"").decode("utf-8", "replace").split("\n")
        lines += [rows[number - 1][:500] for number in numbers if 0 < number <= len(rows)]
    return {word for line in lines for word in _WORD.findall(line)}


def _list_own(one: str, other: str) -> set[str]:
    """The words that one side alone has; any of its words where it has none of its own."""
    mine, others = (set(_WORD.findall(side)) for side in (one, other))
    return mine - others or mine


def _is_said(edit: _Exchange, said: Collection[str], *, both: bool) -> bool:
    """Whether what is complained of has a word of its own of one side, or of both."""
    sides = _list_own(edit.old, edit.new), _list_own(edit.new, edit.old)
    shown = [not words.isdisjoint(said) for words in sides]
    return all(shown) if both else any(shown)


def _find_exchanges(git: Git, sha: str, parents: Collection[str]) -> list[_Exchange]:
    """What the commit wrote in lines, and named files and their folders, in the place of what, the most frequent first."""
    found = Counter(find_moved_files(git, sha, parents, lambda _: True, _MIN_MOVED))
    for old, new in list(found):
        (folder, name), (other, same) = posixpath.split(old), posixpath.split(new)
        if name == same and folder and other:
            found[f"{folder}/", f"{other}/"] += 1
        if is_module(old) and is_module(new):
            found[_write_dotted(old), _write_dotted(new)] += 1
    members = set(found)
    for path in git.changed_paths(sha)[:_MAX_PATHS] if parents else ():
        versions = [git.show(at, path, _MAX_BYTES) for at in (next(iter(parents)), sha)]
        old_rows, new_rows = ((x or b"").decode("utf-8", "replace").splitlines() for x in versions)
        for tag, start, stop, first, last in compare_lines(old_rows, new_rows).get_opcodes():
            lines = old_rows[start:stop], new_rows[first:last]
            for before, after in _pair_lines(*lines) if tag == "replace" else ():
                pairs = set(_compare_tokens(before, after))
                pairs |= set(_compare_headings(before, after) if is_document(path) else ())
                found.update(pairs)
                members |= {pair for pair in pairs if f".{pair[0]}" in before}
    message = set(_WORD.findall(git.message(sha))) - _VALUES
    return [
        _Exchange(
            *pair,
            is_meant=any(len(x) > 3 for x in message & _list_own(*pair[::-1])),
            is_member=pair in members,
        )
        for pair, _ in found.most_common(_MAX_EXCHANGES)
    ]


def _write_dotted(path: str) -> str:
    """A module as code names it."""
    return posixpath.splitext(_read_place(path.removeprefix("src/")))[0].replace("/", ".")


def _read_place(path: str) -> str:
    """What a file is named by: a package by its folder."""
    return posixpath.dirname(path) if is_package(path) else path


def _pair_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The lines that stand for each other: one by one, or each old one with the new one most like it."""
    if len(old) == len(new):
        yield from zip(old, new, strict=True)
    elif max(len(old), len(new)) <= _MAX_BLOCK:
        for line in old:
            near = difflib.get_close_matches(line, new, 1, _MIN_RATIO)
            yield from ((line, other) for other in near)


def _compare_headings(before: str, after: str) -> Iterator[tuple[str, str]]:
    """The anchors of two headings of Markdown."""
    slugs = [
        re.sub(r"[^\w -]", "", line[:500].strip("# \t")).strip().lower().replace(" ", "-")
        for line in (before, after)
        if re.match(r"#{1,6}[ \t]", line)
    ]
    if len(slugs) == 2 and slugs[0] != slugs[1]:
        yield f"#{slugs[0]}", f"#{slugs[1]}"


def _compare_tokens(before: str, after: str) -> Iterator[tuple[str, str]]:
    """The runs of tokens in which two lines differ; with the word before it, where one has nothing there."""
    old, new = (_TOKEN.findall(line[:500]) for line in (before, after))
    pairs = difflib.SequenceMatcher(None, old, new, autojunk=False)
    if pairs.ratio() < _MIN_LINE_RATIO:
        # another word behind the same beginning, and more behind it
        same = len([*takewhile(lambda two: two[0] == two[1], zip(old, new, strict=False))])
        words = old[same : same + 1], new[same : same + 1]
        if same > _MIN_BEGINNING and all(map(_WORD.fullmatch, words[0] + words[1])):
            yield from zip(*words, strict=False)
        return
    for tag, start, stop, first, last in pairs.get_opcodes():
        shift = int(tag in {"delete", "insert"} and start > 0 and first > 0)
        was = "".join(old[start - shift : stop])
        now = "".join(new[first - shift : last])
        is_other = now.strip() not in {"", was.strip()}
        if tag != "equal" and _WORD.match(was) and is_other and len(was + now) <= 2 * _MAX_RUN:
            yield was, now


def _read_sources(git: Git, rev: str) -> dict[str, str]:
    """The texts of a commit that people write, in UTF-8."""
    wanted = [one for one in git.tree(rev) if not is_vendored(one.path)][:_MAX_FILES]
    texts: dict[str, str] = {}
    for entry, data in zip(wanted, git.blobs([one.sha for one in wanted]), strict=True):
        if data is not None and len(data) <= _MAX_BYTES and b"\0" not in data:
            with suppress(UnicodeDecodeError):
                texts[entry.path] = data.decode()
    return texts


# --- links between files ------------------------------------------------------------------------------------------------

_PATH = re.compile(r"(?<![\w./:@-])(?:\.{1,2}/){0,9}[\w-][\w./-]{0,200}\.\w{1,5}(?![\w/-])")
_LINK = re.compile(r"""[(<"'`=]$|(?:\]|:): ?$|^[ \t]*[-*]?[ \t]*$""")  # before a path in a document
_IS_HISTORY = re.compile(r"(?i)(?:.*/)?(?:change|news|history|release)")


def follow_links(git: Git, rev: str, base: str | None, output: str) -> list[CompletedChange]:
    """Documents and data with their relative paths of what the newest fitting commit moved, and the moved files with their own."""
    for commit in reversed(git.commits(base, rev)[-_MAX_COMMITS:]):
        found = find_moved_files(git, commit.sha, commit.parents, lambda _: True, _MIN_MOVED)
        moves = {old: new for old, new in found if posixpath.basename(old) in output}
        if not moves:
            continue
        before = {entry.path for entry in git.tree(commit.parents[0])}
        changed = {
            path: new
            for path, text in _read_sources(git, rev).items()
            if not (has_outline(path) or is_lock_file(path) or _IS_HISTORY.match(path))
            and (new := _follow_paths(path, text, moves, before)) != text
        }
        named = {x: text for x, text in changed.items() if posixpath.basename(x) in output}
        if changed and len(changed) <= _MAX_EDITED:
            words = ", ".join(f"{old} is {new}" for old, new in sorted(moves.items()))[:140]
            return [
                CompletedChange(commit.sha, one, f"followed links: {words}", is_guess=True)
                for one in (named, changed)
                if one
            ]
    return []


def _follow_paths(path: str, text: str, moves: Mapping[str, str], before: Collection[str]) -> str:
    """The text with each relative path that meant a file before and means none now, as it is written from here now."""
    was = next((old for old, new in moves.items() if new == path), path)

    def follow(match: re.Match[str]) -> str:
        old = posixpath.normpath(posixpath.join(posixpath.dirname(was), match[0]))
        meant = moves.get(old, old)
        here = posixpath.dirname(path)
        line = text[max(0, match.start() - 100) : match.start()].rpartition("\n")[2]
        if is_document(path) and not _LINK.search(line):
            return match[0]
        if old not in before or posixpath.normpath(posixpath.join(here, match[0])) == meant:
            return match[0]
        place = posixpath.relpath(meant, here or ".")
        return f"./{place}" if match[0].startswith("./") and place[0] != "." else place

    return _PATH.sub(follow, text)


# --- entries of lists ---------------------------------------------------------------------------------------------------


def add_to_lists(
    git: Git,
    rev: str,
    base: str | None,
    output: str,
    places: Mapping[str, Collection[int]],
    *,
    is_asserted: bool,
) -> list[CompletedChange]:
    """What a commit added and the failure names, written into the lists that have its siblings, likeliest first.

    Siblings of a file are those of its folder and ending, of a definition those of its file and kind. A file that lacks
    the comments that all others of its ending begin with gets them. No test is changed where one asserts (`is_asserted`).
    """
    said = output[-100_000:]
    for commit in reversed(git.commits(base, rev)[-_MAX_COMMITS:]):
        named = (x for x in _find_additions(git, commit.sha, commit.parents) if x.is_named(said))
        added = list(islice(named, _MAX_ADDED))
        texts = _read_sources(git, rev) if added else {}
        found: list[tuple[tuple[bool, float, str], dict[str, str]]] = []
        for path, text in texts.items():
            if is_lock_file(path) or (is_asserted and is_test(path)):
                continue
            share = 0.0
            variants = [text, text]  # all lists of the file, and the first alone
            words = {x.strip("./-") for x in _PATH_WORD.findall(text)}
            for one in added:
                best = one.find_listing(path, words)
                share = max(share, best.share)
                variants = [
                    _extend_lists(x, best, most, is_code=has_outline(path))
                    for x, most in zip(variants, (9, 1), strict=True)
                ]
            is_named = path in places or f"/{path}" in f"/{said}"
            found += [
                ((not is_named, -share, path), {path: new})
                for new in dict.fromkeys(variants)
                if new != text
            ]
        heads = {x.path: new for x in added if (new := _share_first_lines(x, texts))}
        ordered = [texts for _, texts in sorted(found, key=lambda one: one[0])]
        every = {path: new for one in reversed(ordered) for path, new in one.items()}
        changes = [*([heads] if heads else []), *ordered[: _MAX_CANDIDATES - 1]]
        if 1 < len(every) <= _MAX_EDITED:
            changes.append(every)
        if changes:
            listed = f"listed {', '.join(x.name for x in added)} there too"[:160]
            headed = "wrote the comments that the other files begin with"
            return [
                CompletedChange(commit.sha, x, headed if x is heads else listed, is_guess=True)
                for x in changes
            ]
    return []


@dataclass(frozen=True, slots=True)
class _Listing:
    """The word for an addition in the lists of a file, the words of its siblings there, and which share of them it has."""

    word: str = ""
    siblings: frozenset[str] = frozenset()
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class _Addition:
    """A file or a definition that a commit added, with its word in each form, and those of its siblings in the same form."""

    name: str
    path: str
    forms: Mapping[str, frozenset[str]]
    is_file: bool

    def is_named(self, output: str) -> bool:
        """Whether the output has one of its words."""
        return any(
            len(x) > 2 and x in output and _compile_words([x], beside="").search(output)
            for x in self.forms
        )

    def find_listing(self, path: str, words: Collection[str]) -> _Listing:
        """The form in which a file of these words has most of the siblings."""
        best = _Listing()
        own = _write_forms(path) if self.is_file else []  # an index does not list itself
        for word, every in self.forms.items() if path != self.path or not self.is_file else ():
            siblings = every.difference(own)
            listed = siblings.intersection(words)
            share = len(listed) / max(1, len(siblings))
            if (
                (len(listed) > 1 or share == 1)
                and share > best.share
                and len(listed) <= _MAX_LISTED
            ):
                best = _Listing(word, listed, share)
        return best


def _find_additions(git: Git, sha: str, parents: Collection[str]) -> Iterator[_Addition]:
    """The files, the definitions at the top of files and the entries of lists that a commit added beside others of their kind."""
    if not parents:
        return
    parent = next(iter(parents))
    here = {entry.path for entry in git.tree(sha)}
    before = {entry.path for entry in git.tree(parent)}
    folders: dict[str, list[str]] = {}
    for path in sorted(here):
        folders.setdefault(posixpath.dirname(path), []).append(path)
    for path in git.changed_paths(sha)[:_MAX_PATHS]:
        if path not in here:
            continue
        if path not in before:
            own = _write_forms(path)
            near = here if is_package(path) else folders[posixpath.dirname(path)]
            others = [_write_forms(one) for one in near if _are_siblings(one, path)]
            forms = {
                word: siblings
                for at, word in enumerate(own)
                if (siblings := frozenset(x[at] for x in others if at < len(x) and x[at] != word))
            }
            if forms:
                yield _Addition(path, path, forms, is_file=True)
            continue
        old, new = (git.show(at, path, _MAX_BYTES) or b"" for at in (parent, sha))
        names = [
            {(x.kind, x.name) for x in read_outline(path, data).definitions if "." not in x.name}
            for data in (old, new)
        ]
        found = {
            name: {x for its, x in names[0] & names[1] if its == kind}
            for kind, name in names[1] - names[0]
        }
        rows = [data.decode("utf-8", "replace").splitlines() for data in (old, new)]
        for name, others_of_kind in {**dict(_find_added_entries(*rows)), **found}.items():
            if others_of_kind:
                yield _Addition(name, path, {name: frozenset(others_of_kind)}, is_file=False)


def _find_added_entries(old: list[str], new: list[str]) -> Iterator[tuple[str, set[str]]]:
    """The entries that came into lists, each with those beside it: of a line, or lines alike."""
    for tag, start, stop, first, last in compare_lines(old, new).get_opcodes():
        if tag == "replace" and stop - start == last - first:
            for before, after in zip(old[start:stop], new[first:last], strict=True):
                entries, there = _list_entries(after), _list_entries(before)
                if len(entries) == len(there) + 1 and set(there) < set(entries):
                    yield from ((x, set(there)) for x in set(entries) - set(there))
        elif tag == "insert" and last - first == 1:
            higher = reversed(new[max(0, first - _MAX_BESIDE) : first])
            above = takewhile(bool, (_compare_entries(new[first], x) for x in higher))
            below = takewhile(
                bool, (_compare_entries(new[first], x) for x in new[last : last + _MAX_BESIDE])
            )
            pairs = [pair for pair in (*above, *below) if pair]
            if len({word for word, _ in pairs}) == 1:
                yield pairs[0][0], {other for _, other in pairs}


def _compare_entries(line: str, other: str) -> tuple[str, str] | None:
    """The only word in which two lines differ, of each."""
    one, two = (_ENTRY.findall(x[:500]) for x in (line, other))
    own = {pair for pair in zip(one, two, strict=False) if pair[0] != pair[1]}
    return own.pop() if len(one) == len(two) and len(own) == 1 else None


def _list_entries(line: str) -> list[str]:
    """The quoted entries of a line, or else its words between commas."""
    quoted = re.findall(r"""(['"])([\w./-]{2,60})\1""", line[:500])
    return [x[1] for x in quoted] or [
        x.strip()
        for x in re.split(r"[,()\[\]{}|]|\bimport ", line[:500])
        if _ENTRY.fullmatch(x.strip())
    ]


_ENTRY = re.compile(r"[\w./-]{2,60}")
_MAX_BESIDE = 40


def _are_siblings(one: str, path: str) -> bool:
    """Whether two files stand beside each other with one ending; packages also where one holds the other."""
    if one == path:
        return False
    (folder, name), (own_folder, own_name) = posixpath.split(one), posixpath.split(path)
    if is_package(one) and is_package(path):
        above = posixpath.dirname(own_folder)
        return above in {posixpath.dirname(folder), folder} - {""}
    is_alike = posixpath.splitext(name)[1] == posixpath.splitext(own_name)[1]
    return folder == own_folder and is_alike and not is_package(one) and not is_package(path)


_PATH_WORD = re.compile(r"[\w./-]{2,300}")
_MAX_LISTED, _MAX_ADDED = 300, 20  # entries of one list; additions of a commit


def _write_forms(path: str) -> list[str]:
    """A file as lists may name it: from each of its folders on, with dots and with slashes, with its ending and without.

    A package comes with dots first, as settings name it: a sibling of a single word is the same in every form.
    """
    parts = _read_place(path).split("/")
    bare = [*parts[:-1], posixpath.splitext(parts[-1])[0]]
    orders = [[(bare, "."), (parts, "/"), (bare, "/")], [(parts, "/"), (bare, "/"), (bare, ".")]]
    order = orders[not is_package(path)]
    return [joint.join(names[at:]) for at in range(len(parts)) for names, joint in order]


def _compile_words(words: Collection[str], beside: str = "/") -> re.Pattern[str]:
    """Any of the words where it stands alone, as a whole path or dotted name; not `beside` these characters either."""
    either = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    return re.compile(rf"(?<![\w{beside}-])(?<!\w\.)(?:{either})(?![\w{beside}-])(?!\.\w)")


def _extend_lists(text: str, listing: _Listing, most: int, *, is_code: bool) -> str:
    """The text with the word in the first lists that have several siblings and not it: lines alike, or entries of a line."""
    if not listing.siblings:
        return text
    entry = _compile_words({*listing.siblings, listing.word})
    lines = text.split("\n")
    found = [list(entry.finditer(line)) if len(line) <= _MAX_ROW else [] for line in lines]
    at = 0
    while at < len(lines) and most:
        end = at + 1
        while end < len(lines) and found[end] and _is_same_line(lines, found, at, end):
            end += 1
        held = {match[0] for row in found[at:end] for match in row}
        made: list[str] | None = None
        if held and listing.word not in held:
            is_only = held == listing.siblings and _ONLY_ENTRY.fullmatch(lines[at]) is not None
            if is_only or (end - at > 1 and len(held) == end - at):
                made = _extend_lines(
                    lines[at:end], [row[0][0] for row in found[at:end]], listing.word
                )
            elif _goes_on(lines, found, end):
                pass
            elif len(held) > 1 or held == listing.siblings:
                row = _extend_row(lines[end - 1], found[end - 1], listing.word, is_code=is_code)
                made = [*lines[at : end - 1], row] if row else None
        if made is not None:
            lines[at:end], found[at:end] = made, [[]] * len(made)
            end, most = at + len(made), most - 1
        at = end
    return "\n".join(lines)


# An entry of its own line, where it is the only one.
_ONLY_ENTRY = re.compile(r"""(?:[ \t]+|[ \t]*[-*][ \t]+)(['"]?)[\w./-]{2,300}\1,?[ \t]*""")


def _goes_on(lines: Sequence[str], found: Sequence[Sequence[re.Match[str]]], end: int) -> bool:
    """Whether the line has more entries of the list whose last line ended there."""
    insets = [re.match(r"[ \t]*", line) for line in lines[end - 1 : end + 1]]
    inset, *more = [match[0] for match in insets if match]
    return bool(inset and more == [inset] and found[end])


def _is_same_line(
    lines: Sequence[str], found: Sequence[Sequence[re.Match[str]]], at: int, other: int
) -> bool:
    """Whether two lines are the same but for the one sibling that each names."""
    bare = [
        _compile_words([found[x][0][0]]).sub("\0", lines[x]).rstrip(_LINE_END)
        for x in (at, other)
        if found[x] and len(lines[x]) <= _MAX_ROW
    ]
    return len(bare) == 2 and bare[0] == bare[1]


def _extend_lines(rows: Sequence[str], words: Sequence[str], new: str) -> list[str]:
    """The lines with one more for the new word, in their order."""
    at = bisect(words, new) if list(words) == sorted(words) else len(words)
    like = rows[0]
    line = _compile_words([words[0]]).sub(lambda _: new, like)
    made = [*rows[:at], line, *rows[at:]]
    if at == len(rows):  # an ending that only the last line has, or lacks
        endings = [row[len(row.rstrip(_LINE_END)) :] for row in (rows[0], rows[-1])]
        made[-2] = made[-2].rstrip(_LINE_END) + endings[0]
        made[-1] = made[-1].rstrip(_LINE_END) + endings[1]
    return made


_LINE_END = " \t\r\n,"
_MAX_ROW = 2000


def _extend_row(
    row: str, entries: Sequence[re.Match[str]], new: str, *, is_code: bool
) -> str | None:
    """The line with one entry more; None where what stands between its entries is more than a separator.

    In code only texts and imported names are entries.
    """
    if is_code and not re.search(rf"""import\b|['"`]{re.escape(entries[0][0])}['"`]""", row):
        return None
    spans = []
    for match in entries:
        quote = row[match.start() - 1 : match.start()]
        is_quoted = quote in {"'", '"', "`"} and row[match.end() : match.end() + 1] == quote
        spans.append((match.start() - is_quoted, match.end() + is_quoted))
    between = {row[one[1] : two[0]] for one, two in pairwise(spans)}
    is_list = re.search(r"(?:[\[({,]|\bimport)\s*$", row[: spans[0][0]]) is not None
    separator = between.pop() if len(between) == 1 else ", "
    if between or not re.fullmatch(r"\s*[,;]?\s*", separator) or (len(spans) == 1 and not is_list):
        return None
    words = [match[0] for match in entries]
    at = bisect(words, new) if len(words) > 1 and words == sorted(words) else len(words)
    first, last = spans[0], spans[0][1]
    written = row[first[0] : entries[0].start()] + new + row[entries[0].end() : last]
    if at < len(spans):
        return row[: spans[at][0]] + written + separator + row[spans[at][0] :]
    return row[: spans[-1][1]] + separator + written + row[spans[-1][1] :]


def _share_first_lines(added: _Addition, texts: Mapping[str, str]) -> str:
    """The text of an added file with the comments that all files of its ending begin with; empty where there are none."""
    text = texts.get(added.path, "")
    own = text.replace("\r\n", "\n").split("\n")
    ending = posixpath.splitext(added.path)[1]
    others = [
        other.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
        for path, other in texts.items()
        if path != added.path and path.endswith(ending or "/") and other.strip() and is_source(path)
    ]
    starts = [rows[1:] if rows[0].startswith("#!") else rows for rows in others]
    columns = zip(*starts, strict=False) if added.is_file and len(others) > 1 else ()
    shared = [column[0] for column in takewhile(lambda rows: len({*rows}) == 1, columns)]
    head = [*takewhile(lambda row: not row.strip() or _HEAD_LINE.match(row), shared)]
    is_missing = any(map(str.strip, head)) and not {x for x in head if x.strip()} & set(own[:40])
    if not is_missing or own[0].startswith(("<?", "\ufeff")):
        return ""
    first = int(own[0].startswith("#!"))
    line_end = "\r\n" if "\r\n" in text else "\n"
    return line_end.join([*own[:first], *head, *own[first:]])


_HEAD_LINE = re.compile(r"\s*(?:#(?!!)|//|/\*|\*|--|;|<!--|from __future__ import )")
