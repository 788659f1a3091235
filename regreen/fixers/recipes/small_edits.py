"""Small edits that a failure suggests, whatever its sentence: from the lines that it names and the words that it offers.

Nothing here is believed. The edits come in an order, fewest assumptions first, and a run decides between them.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import keyword
import posixpath
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import accumulate, islice, takewhile
from typing import Any

from regreen.code.paths import is_test, is_test_config
from regreen.code.python_calls import add_import, is_module, parse_python, reads_unbound
from regreen.code.symbols import read_outline
from regreen.domain.environments import ReadText
from regreen.fixers.recipes.named_edits import index_path_ends, read_plain_output, strip_root
from regreen.languages.python.dependencies import register_marks

_MOST_OUTPUT = 40_000
_MOST_LINES = 400
_MOST_KNOWN = 2000
_MOST_ASSUMED = 2.3
_LONGEST_LINE = 1000
_LONGEST_CODE = 400
_LONGEST_ROW = 1000
_LONGEST_FILE = 400_000
_LINES_BEFORE, _LINES_AFTER = 20, 25  # of a place, in which the output speaks of it


@dataclass(frozen=True, slots=True)
class SmallEdit:
    """One edit: the files with it (None: the path goes), how it is told, and how much it assumes."""

    texts: Mapping[str, str | None]
    words: str
    rank: float
    drops: bool = False


def propose_small_edits(
    output: str, paths: Collection[str], read: ReadText, most: int, command: str = ""
) -> list[SmallEdit]:
    """Edits that the output suggests, those first that assume least; it may mean a file that only the command names."""
    text = read_plain_output(
        output[-_MOST_OUTPUT:].replace("·", " ")
    )  # a blank, as some tools show it
    said = [line[:_LONGEST_LINE].expandtabs(1) for line in text.splitlines()[-_MOST_LINES:]]
    found: dict[tuple[tuple[str, str | None], ...], SmallEdit] = {}
    if marks := register_marks(text, paths, read):
        found[tuple(marks.items())] = SmallEdit(marks, "registered a mark of pytest", 0.0)
    places = _find_places(said, paths, read)
    if not places and command:
        said.append(command[:_LONGEST_LINE])
        places = _find_places(said, paths, read)
    shown = {
        row.strip()
        for path in {one.path for one in places}
        for row in (read(path) or "").splitlines()
    }
    for order, place in enumerate(places):
        source = read(place.path) or ""
        if len(source) > _LONGEST_FILE:
            continue
        for edit in _Suggestions(said, place, source, paths, shown).propose():
            key = tuple(sorted(edit.texts.items(), key=lambda one: one[0]))
            ranked = replace(edit, rank=edit.rank + order * 0.15)
            if edit.texts.get(place.path) != source and (
                key not in found or found[key].rank > ranked.rank
            ):
                found[key] = ranked
    ordered = sorted(found.values(), key=lambda edit: edit.rank)
    kept = [edit for edit in ordered if not edit.drops and edit.rank < _MOST_ASSUMED]
    dropping = [edit for edit in ordered if edit.drops][: most // 4]
    return [*kept[: most - len(dropping)], *dropping]


# What stands at one place, and what the output says near it.

# Lines of a traceback through files that are not the repository's, and of pytest's summary.
_FOREIGN = re.compile(
    r'^\s{0,8}(?:g?make(?:\[\d{1,3}\])?: |File "|<frozen |at |/\S{1,300}:\d+: |\S{1,300}:\d+: in |(?:FAILED|ERROR) \S{1,300}(?: - |$)|={4}|_{4})'
)
_FRAME = re.compile(r'\s{0,8}File "')  # above a line of code
_LINE_WORD = re.compile(
    r"-{0,2}[$@%&]?[^\W\d][\w$@.:/-]{0,100}|\.{1,2}/[\w./-]{1,100}|\d[\w.]{0,40}|%[-+ #0-9.]{0,6}[a-zA-Z]"
)


class _Suggestions:
    """What the output suggests for one place."""

    def __init__(
        self,
        said: Sequence[str],
        place: _OutputPlace,
        source: str,
        paths: Collection[str],
        shown: Collection[str],
    ) -> None:
        self.place, self.source, self.paths = place, source, paths
        self.said, self.shown = said, shown
        self.rows = source.splitlines(keepends=True) or [""]
        self.at = min(place.line, len(self.rows)) - 1
        self.row = self.rows[self.at].rstrip("\r\n")
        self.code = _strip_comment(self.row)
        self.table = _load_table()
        self.is_called = bool(_list_files_with_calls([place.path]))
        start, end = max(0, place.at - _LINES_BEFORE), place.at + _LINES_AFTER
        self.near = [(at, said[at]) for at in range(start, min(end, len(said)))]
        tail = range(max(end, len(said) - 12), len(said))
        self.far = [(at, said[at]) for at in tail]
        self.column = self._find_column()

    def propose(self) -> Iterator[SmallEdit]:
        """Every kind of edit; in a test only another word, and none in what it asks for."""
        yield from self._create_empty_files()
        is_tested = is_test(self.place.path)
        asks = is_tested and re.search(r"\bassert|\bexpect\b|\bshould\b", self.row)
        if asks or len(self.row) > _LONGEST_ROW:
            return
        yield from self._take_shown_lines()
        yield from self._name_missing_files()
        yield from self._write_offered_code()
        yield from self._replace_words()
        if is_tested:
            return
        yield from self._insert_statements()
        yield from self._insert_words()
        yield from self._add_keywords()
        yield from self._name_causes()
        yield from self._count_anew()
        yield from self._change_quotes()
        yield from self._change_blanks()
        yield from self._rename_file()
        yield from self._delete_words()
        yield from self._delete_definition()

    @cached_property
    def top(self) -> int:
        """The number of lines before the first statement."""
        return _find_first_statement(self.place.path, self.source)

    @cached_property
    def message(self) -> str:
        """What the output says near the place, without the source that it shows."""
        return "\n".join(line for _, line in self._list_message_lines())

    def _speaks_of(self, topic: str) -> bool:
        """Whether the message has a word of a topic, by the table's row of that name."""
        return bool(re.search(self.table[topic], self.message))

    def _list_message_lines(self) -> list[tuple[int, str]]:
        return [
            (at, line)
            for at, line in (*self.near, *self.far)
            if _GUTTER.sub("", line).strip() not in self.shown
            and not re.fullmatch(r"[\s^~|_=*-]*", line)
            and not _FOREIGN.match(line)
            and not (at and _FRAME.match(self.said[at - 1]))
        ]

    @cached_property
    def words(self) -> list[_OfferedWord]:
        """What the message offers; the file that it is about is no word for that file."""
        offered = _list_offered_words(self._list_message_lines(), self.place.at)
        own = f"/{self.place.path}"
        return [one for one in offered if "." not in one.text or not own.endswith(f"/{one.text}")]

    def _find_column(self) -> int:
        """The column that is named, or that a mark below the shown line points at; from one, nought if unknown."""
        if self.place.column:
            is_quote = self.row[self.place.column - 1 : self.place.column] in {"'", '"', "`"}
            return min(self.place.column + is_quote, len(self.row) + 1)
        bare = self.row.strip()
        for at, line in self.near:
            if bare and bare in line and at + 1 < len(self.said):
                mark = re.match(r"[\s|│>]*([\^~])", self.said[at + 1])
                if mark:
                    inset = len(self.row) - len(self.row.lstrip())
                    column = mark.start(1) - line.index(bare) + inset + 1
                    return column if 0 < column <= len(self.row) + 1 else 0
        return 0

    def _with_row(
        self, row: str, words: str, rank: float, at: int | None = None, **more: bool
    ) -> Iterator[SmallEdit]:
        at = self.at if at is None else at
        before = self.rows[at]
        ending = before[len(before.rstrip("\r\n")) :]
        after = f"{row}{ending}" if row or not more.get("drops") else ""
        if after != before:
            text = "".join([*self.rows[:at], after, *self.rows[at + 1 :]])
            yield SmallEdit({self.place.path: text}, words, rank, **more)

    # -- a line that the output shows in place of the one that is there

    def _take_shown_lines(self) -> Iterator[SmallEdit]:
        bare = self.row.strip()
        if len(bare) < 4:
            return
        inset = self.row[: len(self.row) - len(self.row.lstrip())]
        for number, (_, line) in enumerate(self.near):
            content = _GUTTER.sub("", line).strip()
            is_shown = content in self.shown or re.sub(r"^\d+\s+", "", content) in self.shown
            if is_shown or len(content) < 4 or _FOREIGN.match(line):
                continue
            ratio = difflib.SequenceMatcher(None, bare, content).ratio()
            if ratio > 0.7 and not re.search(self.table["severity"], content):
                yield from self._with_row(inset + content, f"wrote `{content}`", 0.6 - 0.3 * ratio)
                below = (row for _, row in self.near[number + 1 :][:3])
                rest = [row.strip() for row in takewhile(str.strip, below)]
                if rest and line == line.lstrip() and ratio < 1:
                    whole = "\n".join(inset + row for row in (content, *rest))
                    yield from self._with_row(
                        whole, f"wrote `{content}` and more", 0.7 - 0.3 * ratio
                    )

    # -- Python that the message offers, for what stands there and speaks of the same

    def _write_offered_code(self) -> Iterator[SmallEdit]:
        tree = parse_python(self.source) if is_module(self.place.path) else None
        held = [
            (node, _list_names(node))
            for node in (ast.walk(tree) if tree is not None else ())
            if isinstance(node, ast.expr | ast.stmt) and not isinstance(node, ast.Name)
            if node.lineno <= self.at + 1 <= (node.end_lineno or 0)
        ]
        data, starts = _index_lines(self.source)
        known = {name for _, own in held for name in own} | _PYTHON_WORDS
        lines = [x for x in self._list_message_lines() if abs(x[0] - self.place.at) < 4]
        for at, text in ((at, text) for at, line in lines for text in _list_code(line)):
            if not known.issuperset(_IDENTIFIER.findall(_TEXT.sub("", text))):
                continue
            body = found.body if (found := parse_python(text)) else []
            new = body[0] if len(body) == 1 else None
            kind = ast.expr if isinstance(new, ast.Expr) else ast.stmt
            names = _list_names(new) if new else set[str]()
            spans = [
                _find_span(x, starts) for x, own in held if isinstance(x, kind) and own == names
            ]
            wide = sorted(spans if names else (), key=lambda span: span[0] - span[1])
            for number, (start, end) in enumerate(wide[:3]):
                written = (data[:start] + text.encode() + data[end:]).decode()
                rank = 0.3 + 0.05 * abs(at - self.place.at) + 0.1 * number
                yield SmallEdit({self.place.path: written}, f"wrote `{text}`", rank)

    # -- a file beside the one that is named

    def _create_empty_files(self) -> Iterator[SmallEdit]:
        for name in self.table["empty_files"]:
            asked = self.table["adds_file"].replace("@NEW@", re.escape(name))
            path = posixpath.join(posixpath.dirname(self.place.path), name)
            if path not in self.paths and re.search(asked, self.message):
                yield SmallEdit({path: ""}, f"added an empty {path}", 0.1)

    # -- one word for another

    def _replace_words(self) -> Iterator[SmallEdit]:
        for old, is_named, is_pointed in self._list_old_words():
            for word in self.words:
                rank = self._rank_pair(old, word, is_named=is_named, is_pointed=is_pointed)
                if rank is not None:
                    yield from self._replace_word(old, word.text, rank)
            if old.isidentifier() and self._speaks_of("syntax"):
                for new in difflib.get_close_matches(old, self.table["keywords"], 1, 0.7):
                    yield from self._replace_word(old, new, 1.5)
            if self._is_unknown(old, is_pointed=is_pointed):
                for new in difflib.get_close_matches(old, self.known, 2, 0.8):
                    yield from self._replace_word(old, new, 1.2)
            if (is_pointed or is_named) and self._may_be_idle(old):
                yield from self._replace_word(f"{old} :=", "_ =", 0.8)
                yield from self._replace_word(old, "_", 0.9)
                yield from self._replace_word(old, f"_{old}", 1.0)
            for style, pattern in self.table["style"].items():
                if (is_named or is_pointed) and re.search(pattern, self.message):
                    yield from self._replace_word(old, _write_in_style(old, style), 0.6)

    def _name_missing_files(self) -> Iterator[SmallEdit]:
        """For a file that is said to be missing, the one most like it in its folder, as seen from the place or the root."""
        if not self._speaks_of("missing_file"):
            return
        for old, *_ in self._list_old_words():
            lead, name = posixpath.split(old)
            ending = posixpath.splitext(name)[1]
            if not ending or old not in self.message:
                continue
            alike = [path for path in self.paths if path.endswith(ending)]
            for number, base in enumerate((posixpath.dirname(self.place.path), "")):
                start = f"{posixpath.normpath(posixpath.join(base, lead))}/".removeprefix("./")
                within = (path.removeprefix(start) for path in alike if path.startswith(start))
                names = [one for one in within if "/" not in one]
                others = [one for one in names if start + one != self.place.path]
                found = [] if name in names else difflib.get_close_matches(name, others, 1, 0.6)
                for new in found:
                    whole = posixpath.join(lead, new)
                    yield from self._replace_word(old, whole, 0.2 + number * 0.1)

    def _is_asked_for(self, word: _OfferedWord) -> bool:
        """Whether the message says in so many words that it should be there."""
        asked = self.table["asked"].replace("@NEW@", re.escape(word.text))
        return bool(re.search(asked, self.said[word.at]))

    @cached_property
    def known(self) -> list[str]:
        """The names of the file."""
        return list(dict.fromkeys(_IDENTIFIER.findall(self.source)))[:_MOST_KNOWN]

    def _is_unknown(self, name: str, *, is_pointed: bool) -> bool:
        """Whether the message may say that there is no such name."""
        if len(name) < 4 or not name.isidentifier():
            return False
        is_refused = any(one.refused for one in self.words if one.text == name)
        return is_refused or (is_pointed and self._speaks_of("unknown"))

    def _may_be_idle(self, name: str) -> bool:
        """Whether the message may say that nothing reads a variable of this name."""
        is_name = name.isidentifier() and name not in self.table["little_words"]
        is_import = re.fullmatch(self.table["import"], self.row.strip())
        return is_name and not is_import and self._speaks_of("idle")

    def _rank_pair(
        self, old: str, word: _OfferedWord, *, is_named: bool, is_pointed: bool
    ) -> float | None:
        """How much it assumes that the word stands for the old one; None if nothing speaks for it."""
        new = word.text
        if new == old or word.refused or not _may_stand_for(old, new):
            return None
        likeness = _measure_likeness(old, new)
        likeness = likeness if likeness > 0.6 else 0.0
        is_offered = word.quoted or (word.cued and word.far < 10)
        is_asked = word.quoted and word.cued and word.far < 4 and self._is_asked_for(word)
        if not (likeness or (is_offered and (is_named or is_pointed)) or is_asked):
            return None
        if not word.quoted and likeness < (0.0 if word.cued else 0.75):
            return None
        if not word.quoted and not likeness and new in self.table["little_words"]:
            return None
        rank = 0.4 + _weigh_word(word) + (0.0 if word.quoted or likeness else 0.4)
        rank += 0.0 if is_named else 0.3 if is_pointed else 0.7 if likeness else 1.2
        rank += -0.3 if is_pointed else 0.3 if self.column else 0.0
        rank -= 0.2 if any(one.at == word.at for one in self.words if one.text == old) else 0.0
        rank -= 0.3 if any(one.refused for one in self.words if one.text == old) else 0.0
        rank += 0.0 if is_pointed or likeness or re.search(r"\W", old + new) else 0.3
        return rank - 0.9 * likeness + (0.6 if _compile_word(new).search(self.row) else 0.0)

    def _replace_word(self, old: str, new: str, rank: float) -> Iterator[SmallEdit]:
        """Where the column points, on the whole line, in one place of several, and in the whole file."""
        if old == new:
            return
        whole = _compile_word(old)
        words = f"wrote `{new}` instead of `{old}`"
        every = list(whole.finditer(self.row))
        here = [m for m in every if m.start() < self.column <= m.end()]
        singles = [*here, *(every[-1:] + every[:1] if len(every) > 1 else [])]
        rows = [self.row[: m.start()] + new + self.row[m.end() :] for m in singles]
        rows.insert(len(here), whole.sub(lambda _: new, self.row))
        for number, row in enumerate(dict.fromkeys(rows)):
            yield from self._with_row(row, words, rank + number * 0.1)
        if len(whole.findall(self.source)) > len(every) and re.match(r"\w", old) and len(old) > 2:
            text = whole.sub(lambda _: new, self.source)
            yield SmallEdit({self.place.path: text}, f"{words} in the whole file", rank + 0.25)

    def _list_old_words(self) -> list[tuple[str, bool, bool]]:
        """What stands on the line and may be wrong, whether the message has it, and whether the column points at it."""
        offered = {word.text for word in self.words}
        found: dict[str, tuple[bool, bool]] = {}
        for match in _LINE_WORD.finditer(self.row):
            text = match[0].rstrip(".:/-")
            parts = [text.rpartition(".")[0], text.partition(".")[2]]
            inner = [text, *filter(None, parts), *_IDENTIFIER.findall(text)]
            for one in inner:
                at = self.row.find(one, match.start())
                is_pointed = at < self.column <= at + len(one)
                found[one] = (one in offered, is_pointed or found.get(one, (False, False))[1])
        for word in self.words:
            is_more = word.quoted or not word.text.isalnum()
            if (
                is_more
                and (word.cued or not word.named)
                and word.text in self.row
                and len(word.text) < 120
            ):
                at = self.row.find(word.text)
                found[word.text] = (True, at < self.column <= at + len(word.text))
        if self.column and (found_at := re.match(r"[^\w\s]{1,3}", self.row[self.column - 1 :])):
            found.setdefault(found_at[0], (found_at[0] in offered, True))
            found.setdefault(found_at[0][0], (found_at[0][0] in offered, True))
        return [(text, *facts) for text, facts in found.items()][:60]

    # -- a line of its own

    def _insert_statements(self) -> Iterator[SmallEdit]:
        for statement, rank in self._list_statements():
            if statement in {row.strip() for row in self.rows}:
                continue
            words = f"added `{statement}`"
            first = "from|import" if is_module(self.place.path) else re.escape(statement.split()[0])
            like = [
                at
                for at, row in enumerate(self.rows)
                if re.match(rf"(?:{first})(?!\w)", row) and "__future__" not in row
            ]
            top = self.top
            for number, at in enumerate(dict.fromkeys([like[0] if like else top, top, self.at])):
                inset = re.match(r"\s*", self.rows[at] if at < len(self.rows) else "")
                line = f"{inset[0].strip(chr(10)) if inset and at == self.at else ''}{statement}\n"
                text = "".join([*self.rows[:at], line, *self.rows[at:]])
                yield SmallEdit({self.place.path: text}, words, rank + number * 0.2)
        for key in re.findall(r'"[\w$-]{1,60}": ?(?:"[^"\n]{1,80}"|\w{1,20})', self.message):
            if self.place.path.endswith(".json") and key not in self.source:
                text = self.source.replace("{\n", "{\n  " + key + ",\n", 1)
                yield SmallEdit({self.place.path: text}, f"added `{key}`", 0.8)

    def _list_statements(self) -> Iterator[tuple[str, float]]:
        """Statements that the message holds, and those that bring in a name which it says to bring in."""
        for pattern in self.table["statements"]:
            for match in re.finditer(pattern, self.message):
                yield match[0].strip(), 0.5
        ending = posixpath.splitext(self.place.path)[1].lstrip(".").lower()
        template = self.table["bring_in"].get(ending)
        if template and self._speaks_of("brings_in"):
            for word in self.words:
                name = word.text.strip("<>")
                if word.quoted and re.fullmatch(r"[A-Za-z_][\w.:/-]{1,80}", name):
                    rank = (0.6 if name.split(".")[-1] in self.row else 1.2) + _weigh_word(word)
                    yield template.replace("@NAME@", name), rank
                    module, _, last = name.rpartition(".")
                    if module and ending == "py":
                        yield f"from {module} import {last}", rank + 0.1
        for word in self.words:
            if (
                word.quoted
                and (word.cued or word.far < 2)
                and not word.named
                and not (self.is_called and re.search(r"\w", word.text))
                and re.search(r"\W", word.text)
                and _is_whole_line(word.text)
            ):
                yield word.text, 1.4 + _weigh_word(word)

    # -- a word more on the line

    def _insert_words(self) -> Iterator[SmallEdit]:
        for word in self.words:
            new = word.text
            if (
                not word.quoted
                or word.refused
                or len(new) > 60
                or re.search(r"\s{2}|\w/\w|^/", new)
            ):
                continue
            beside = self.table["adds_beside"].replace("@NEW@", re.escape(new))
            if re.search(r"\w", new) and not self._may_be_missing(word):
                continue
            if re.search(r"\w", new) and self.is_called and not re.search(beside, self.message):
                continue
            base = 0.9 + _weigh_word(word) + (0.5 if word.named and not word.cued else 0.0)
            base -= 0.4 if re.search(beside, self.message) else 0.0
            if called := _CALL_FORM.fullmatch(new):
                yield from self._wrap_by_call(called[1], base - 0.3)
            for number, (row, at) in enumerate(self._insert_word(new)):
                yield from self._with_row(row, f"added `{new}`", base + number * 0.15, at)
            if re.fullmatch(r"[a-z]{2,8}|[})\]]+", new):
                text = f"{self.source.rstrip()}\n{new}\n"
                yield SmallEdit({self.place.path: text}, f"added `{new}` at the end", base + 0.2)
        yield from self._wrap_shown_texts()
        yield from self._close_quotes()
        yield from self._close_file()
        if self._speaks_of("parsing"):
            is_told = any(len(word.text) == 1 and not word.text.isalnum() for word in self.words)
            for number, mark in enumerate((";", ",", ":")):
                rank = (1.8 if is_told else 1.0) + number * 0.1
                for row, at in self._end_previous_row(mark):
                    yield from self._with_row(row, f"added `{mark}`", rank, at)
                row = f"{self.code}{mark}{self.row[len(self.code) :]}"
                yield from self._with_row(row, f"added `{mark}`", rank + 0.1)

    def _close_file(self) -> Iterator[SmallEdit]:
        """The file with what it leaves open closed at its end."""
        if not self._speaks_of("end_of_file"):
            return
        closers = [
            two[1]
            for two in ("()", "[]", "{}")
            if self.source.count(two[0]) > self.source.count(two[1])
        ]
        ending = posixpath.splitext(self.place.path)[1].lstrip(".")
        for number, closer in enumerate((*closers, *self.table["closer"].get(ending, ()))):
            text = f"{self.source.rstrip()}\n{closer}\n"
            rank = 0.9 + number * 0.1
            yield SmallEdit({self.place.path: text}, f"added `{closer}` at the end", rank)

    def _may_be_missing(self, word: _OfferedWord) -> bool:
        is_form = "..." in word.text or "…" in word.text
        return is_form or self._speaks_of("adds")

    def _close_quotes(self) -> Iterator[SmallEdit]:
        if self._speaks_of("open_string"):
            for quote in "\"'`":
                for number, (row, at) in enumerate(self._insert_word(quote)):
                    if self.code.count(quote) % 2:
                        yield from self._with_row(row, f"added {quote}", 0.7 + number * 0.1, at)

    def _insert_word(self, new: str) -> Iterator[tuple[str, int]]:
        """The line with the word at each place that is likely, and the line before with it at its end."""
        if "..." in new or "…" in new:
            return
        code, rest = self.code, self.row[len(self.code) :]
        found = re.finditer(r"(?<![\w.'\"])(?<!def )[a-zA-Z_][\w.]*\(", code)
        calls = [match.start() for match in found]
        spots = [*(reversed(calls[:9]) if new in self.table["before_calls"] else ()), len(code)]
        trail = len(code.rstrip(" ;:{},)]\"'"))
        spots += range(len(code) - 1, trail - 1, -1)
        if self.column:
            here = re.match(r"\w+", self.row[self.column - 1 :])
            spots = [self.column - 1, *([self.column - 1 + here.end()] if here else []), *spots]
        for word in self.words[:20]:
            if word.quoted and not word.named and word.text != new and word.text in code:
                at = code.index(word.text)
                spots += [at, at + len(word.text)]
        inset = len(code) - len(code.lstrip())
        closes = new in {";", ",", ":", ")", "]", "}"}
        if closes and self.column - 1 <= inset:
            yield from self._end_previous_row(new)
        spots.append(inset)
        for at in dict.fromkeys(spots):
            if (inset if closes else -1) < at <= len(code):
                yield _join_words(code[:at], new, code[at:]) + rest, self.at
        yield from self._end_previous_row(new)

    def _end_previous_row(self, new: str) -> Iterator[tuple[str, int]]:
        previous = next((at for at in range(self.at - 1, -1, -1) if self.rows[at].strip()), None)
        if previous is not None:
            row = self.rows[previous].rstrip("\r\n")
            before = _strip_comment(row)
            yield before + new + row[len(before) :], previous

    def _wrap_by_call(self, name: str, rank: float) -> Iterator[SmallEdit]:
        words = f"wrote `{name}(...)` around it"
        if match := re.search(rf"\b{re.escape(name)}[ \t]+(?![=(])(\S.*?)(;?)$", self.code):
            row = f"{self.code[: match.start()]}{name}({match[1]}){match[2]}{self.row[len(self.code) :]}"
            yield from self._with_row(row, words, rank)
        for match in list(
            re.finditer(r"""[fbr]?"(?:\\.|[^"\\])*"|[fbr]?'(?:\\.|[^'\\])*'""", self.code)
        )[:4]:
            if not self.code[: match.start()].endswith(f"{name}("):
                row = f"{self.row[: match.start()]}{name}({match[0]}){self.row[match.end() :]}"
                yield from self._with_row(row, words, rank + 0.1)

    def _wrap_shown_texts(self) -> Iterator[SmallEdit]:
        """A text in the call in which the message asks for it, and the import from the library that raised."""
        shown = _CALL_OF_TEXT.search(self.message)
        tree = parse_python(self.source) if shown and is_module(self.place.path) else None
        if shown is None or tree is None:
            return
        name, library = shown["name"], _LIBRARY.search(self.message)
        wrapped = {
            id(argument)
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and ast.unparse(call.func) == name
            for argument in call.args
        }
        near = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and abs(node.lineno - self.at - 1) < _LINES_BEFORE
            if isinstance(node.value, str) and node.value.startswith(shown["begin"])
            if id(node) not in wrapped
        ]
        data, starts = _index_lines(self.source)
        for node in sorted(near, key=lambda node: abs(node.lineno - self.at - 1))[:2]:
            start, end = _find_span(node, starts)
            text = data[start:end].decode()
            written = (data[:start] + f"{name}({text})".encode() + data[end:]).decode()
            module = parse_python(written)
            if library and module and reads_unbound(module, name):
                written = add_import(written, module, f"from {library[1]} import {name}")
            words = f"wrote `{name}(...)` around it"
            yield SmallEdit({self.place.path: written}, words, 0.4)

    def _add_keywords(self) -> Iterator[SmallEdit]:
        """Arguments that the message writes with their names, last in the calls of the line."""
        given = dict.fromkeys(_KEYWORD.findall(self.message)) if "(" in self.code else {}
        for new in [x for x in given if x not in self.code][:3]:
            ends = [at for at, character in enumerate(self.code) if character == ")"]
            for number, end in enumerate(reversed(ends[-5:])):
                comma = "" if self.code[:end].rstrip().endswith("(") else ", "
                row = f"{self.row[:end]}{comma}{new}{self.row[end:]}"
                yield from self._with_row(row, f"added `{new}`", 0.5 + number * 0.1)

    def _name_causes(self) -> Iterator[SmallEdit]:
        """What the line raises with the caught error as its cause, where the message shows `raise ... from NAME`."""
        shown = re.search(r"\braise\b.{1,300}? from (?!None)(\w{1,40})", self.message)
        tree = parse_python(self.source) if shown and is_module(self.place.path) else None
        if shown is None or tree is None:
            return
        data, starts = _index_lines(self.source)
        for handler in ast.walk(tree):
            if not isinstance(handler, ast.ExceptHandler) or handler.type is None:
                continue
            name = handler.name or shown[1]
            _, caught = _find_span(handler.type, starts)
            raised = (node for node in ast.walk(handler) if isinstance(node, ast.Raise))
            for node in (x for x in raised if x.exc and not x.cause):
                if node.lineno <= self.at + 1 <= (node.end_lineno or 0):
                    _, end = _find_span(node, starts)
                    named = b"" if handler.name else f" as {name}".encode()
                    parts = (data[:caught], named, data[caught:end], f" from {name}".encode())
                    text = (b"".join(parts) + data[end:]).decode()
                    words = f"named `{name}` as the cause"
                    yield SmallEdit({self.place.path: text}, words, 0.3)

    # -- another number

    def _count_anew(self) -> Iterator[SmallEdit]:
        said = " ".join(
            line for at, line in self._list_message_lines() if abs(at - self.place.at) < 6
        )
        spoken = re.sub(_POSITION, " ", said)
        numbers = [int(one) for one in re.findall(r"(?<![\w.])\d{1,4}(?![\w.]*\w)", spoken)][:6]
        inset = len(self.row) - len(self.row.lstrip(" "))
        if re.search(self.table["indentation"], said):
            block = [self.at, *takewhile(self._is_deeper, range(self.at + 1, len(self.rows)))]
            previous = next((row for row in reversed(self.rows[: self.at]) if row.strip()), "")
            level = len(previous) - len(previous.lstrip(" "))
            for number, wide in enumerate(
                dict.fromkeys(
                    [*numbers, level, level + 4, level + 2, max(level - 4, 0), max(level - 2, 0)]
                )
            ):
                moved = dict.fromkeys(block)
                rows = [
                    _indent(row, wide - inset) if at in moved else row
                    for at, row in enumerate(self.rows)
                ]
                words = f"indented a line by {wide} blanks"
                if wide < 80:
                    is_said = number < len(numbers)
                    rank = 0.5 if is_said and inset in numbers else 0.8 if is_said else 1.3
                    yield SmallEdit({self.place.path: "".join(rows)}, words, rank + number * 0.1)
        for old in numbers:
            for new in numbers:
                if old != new and re.search(rf"(?<![\w.]){old}(?![\w.])", self.row):
                    row = re.sub(rf"(?<![\w.]){old}(?![\w.])", str(new), self.row)
                    yield from self._with_row(row, f"wrote {new} instead of {old}", 1.0)
        for kind, verb in self.table["verb"].items():
            if re.search(rf"\b{kind}\b", said):
                for match in re.finditer(r"%[-+ #0-9.]{0,6}[a-zA-Z]", self.row):
                    row = self.row[: match.start()] + verb + self.row[match.end() :]
                    yield from self._with_row(row, f"wrote {verb} instead of {match[0]}", 0.3)

    def _is_deeper(self, at: int) -> bool:
        own = len(self.row) - len(self.row.lstrip())
        row = self.rows[at]
        return not row.strip() or len(row) - len(row.lstrip()) >= max(own, 1)

    # -- the name of the file

    def _rename_file(self) -> Iterator[SmallEdit]:
        path = self.place.path
        folder, name = posixpath.split(path)
        stem, ending = posixpath.splitext(name)
        offered = [word.text.rsplit("/", 1)[-1] for word in self.words]
        if self._speaks_of("names"):
            offered += [
                f"{one}{ending}"
                for one in offered
                if re.fullmatch(r"[\w-]{2,80}", one) and _measure_likeness(one, stem) > 0.6
            ]
            styles = self.table["style"].items()
            offered += [
                f"{_write_in_style(stem, style)}{ending}"
                for style, pattern in styles
                if re.search(pattern, self.message)
            ]
        for new in dict.fromkeys(offered):
            target = posixpath.join(folder, new)
            if (
                ending
                and new.endswith(ending)
                and re.fullmatch(r"[\w.-]{3,100}", new)
                and target not in self.paths
            ):
                rank = 0.5 if self._speaks_of("file_name") else 1.6
                yield SmallEdit({path: None, target: self.source}, f"named the file {new}", rank)

    # -- a word less

    def _delete_words(self) -> Iterator[SmallEdit]:
        if not self._speaks_of("drops"):
            return
        base = 1.6 if self.is_called or is_test_config(self.place.path) else 1.2
        if self.column and (mark := re.match(r"[^\w\s]", self.row[self.column - 1 :])):
            row = self.row[: self.column - 1] + self.row[self.column :]
            yield from self._with_row(row, f"dropped `{mark[0]}`", base, drops=True)
        comments = re.split(r"(?<!\s)(?=\s+(?:#|//))", self.row[len(self.code) :])
        for word in self.words:
            bare = word.text.strip("#/ ")
            kept = [comment for comment in comments if bare not in comment]
            if word.quoted and len(bare) > 3 and len(kept) < len(comments):
                row = f"{self.code}{''.join(kept)}"
                yield from self._with_row(row, f"dropped `{bare}`", base, drops=True)
            whole = _compile_word(word.text)
            if (
                not word.text.strip()
                or not (word.quoted or word.refused)
                or not whole.search(self.row)
            ):
                continue
            entry = re.search(_ENTRY.replace("@NAME@", re.escape(word.text)), self.code)
            pattern = re.escape(entry[0]) if entry else whole.pattern
            rank = base + min(_weigh_word(word), 0.5)
            line = self.table["declaration"].replace("@NAME@", re.escape(word.text))
            if re.fullmatch(line, self.row.strip()):
                words = f"dropped `{self.row.strip()[:80]}`"
                several = "," in self.row
                yield from self._with_row("", words, rank + (0.5 if several else 0.0), drops=True)
            for number, (before, after) in enumerate(
                (
                    ("", r"(?:\s?=[^,;()=]{1,60})?\s*,\s*"),
                    (r"\s*,\s*", ""),
                    (r"", r"\s+"),
                    (r"\s+", ""),
                    ("", ""),
                )
            ):
                for match in list(re.finditer(f"{before}{pattern}{after}", self.code))[-1:]:
                    row = self.row[: match.start()] + self.row[match.end() :]
                    row = row if row.strip() else ""
                    words = f"dropped `{word.text}`"
                    yield from self._with_row(row, words, rank + 0.2 + number * 0.1, drops=True)

    def _delete_definition(self) -> Iterator[SmallEdit]:
        """Without the function or class of this line that nothing uses."""
        if not self._speaks_of("idle"):
            return
        for one in read_outline(self.place.path, self.source.encode()).definitions:
            starts_here = one.start <= self.at + 1 <= one.end and one.kind != "constant"
            if starts_here and re.search(rf"\b{re.escape(one.short_name)}\b", self.message):
                above, below = self.rows[: one.start - 1], self.rows[one.end :]
                blank = [*takewhile(lambda row: not row.strip(), reversed(above))]
                text = "".join([*above[: len(above) - len(blank)], *below])
                words = f"dropped `{one.short_name}`"
                yield SmallEdit({self.place.path: text}, words, 1.3, drops=True)

    # -- blanks

    def _change_quotes(self) -> Iterator[SmallEdit]:
        for name, quote, other in (("single", "'", '"'), ("double", '"', "'")):
            if re.search(rf"(?i)\b{name}[ -]?quote", self.message):
                row = re.sub(rf"{other}([^'\"\\]*){other}", rf"{quote}\1{quote}", self.row)
                yield from self._with_row(row, f"wrote {name} quotes", 0.6)
                bare = re.sub(r"([:=]\s)([\w./-]+)$", rf"\1{quote}\2{quote}", self.code)
                yield from self._with_row(bare, f"added {name} quotes", 0.8)

    def _change_blanks(self) -> Iterator[SmallEdit]:
        if self._speaks_of("line_break"):
            text = f"{self.source.rstrip()}\n"
            yield SmallEdit({self.place.path: text}, "ended the file with one line break", 0.7)
        if not self._speaks_of("blanks"):
            return
        inset = len(self.row) - len(self.row.lstrip())
        at = self.column - 1
        spots = [
            at,
            *(m.end() for m in re.finditer(r"[:,;#={]", self.row)),
            *(m.start() for m in re.finditer(r"[{(=#}]", self.row)),
        ]
        yield from self._with_row(self.row.rstrip(), "dropped blanks at the end of a line", 0.6)
        once = self.row[:inset] + re.sub(r"(?<=\S) {2,}(?=\S)", " ", self.row[inset:])
        yield from self._with_row(once, "wrote one blank for several", 0.7)
        for number, spot in enumerate(dict.fromkeys(spots)):
            if inset < spot < len(self.row):
                bare = self.row[:spot].rstrip(" ") + self.row[spot:].lstrip(" ")
                blank = f"{self.row[:spot].rstrip(' ')} {self.row[spot:].lstrip(' ')}"
                rank = 0.8 + number * 0.1
                yield from self._with_row(bare, "dropped a blank", rank)
                yield from self._with_row(blank, "added a blank", rank)


_POSITION = re.compile(r"(?<![\w./-])[\w./-]{1,200}[:(]\d{1,6}(?:[:,]\d{1,6})?|\b\d{1,6}:\d{1,6}\b")
# In a list, also of requirements with their versions.
_ENTRY = r"""(?<=[\[(,\s])(["'])@NAME@(?:\s?[\[<>=!~;][^"'\n]{0,80})?\1(?=[\]),]|$)"""
_KEYWORD = re.compile(
    r"""(?<![\w.])[a-z_]\w{2,40}=(?:True|False|None|\d{1,6}|'[\w.-]{1,40}'|"[\w.-]{1,40}")(?!\w)"""
)
_CALL_OF_TEXT = re.compile(
    r"""(?i:\b(?:should|must|use|wrap|declare)\b)[^\n]{0,60}?\b(?P<name>[A-Za-z_]\w{0,60})\((?P<quote>['"])(?P<begin>[^'"\n]{8,200}?)(?:\.{3}|…)?(?P=quote)\)"""
)
_LIBRARY = re.compile(r"(?<![\w.])([a-z]\w{1,40})(?:\.\w{1,60}){1,5}(?:Error|Exception|Warning)\b")
_CALL_FORM = re.compile(r"([\w.]{1,60})\(\s?(?:['\"]?(?:\.{3}|…)['\"]?)?\s?\)")


_PYTHON_WORDS = frozenset([*keyword.kwlist, *dir(builtins)])
_TEXT = re.compile(r"""'[^']*'|"[^"]*\"""")
_CODE_START = re.compile(
    r"""(?<=['"`])|(?:(?<=\bto)|(?<=\b(?:be|is|by))|(?<=\buse)|(?<=\bwith)|(?<=:))[ ](?=[\w({\[])"""
)
_CODE_END = re.compile(r"""(?=['"`])|(?=,? instead\b|[.;]?\s*$|[.;,]? \()""")
_MOST_CODE = 200  # of one line


def _list_code(line: str) -> Iterator[str]:
    """What may be code in a message, quoted or behind a word that offers it, the longest of each start first."""
    ends = [match.start() for match in _CODE_END.finditer(line)]
    pairs = (
        line[match.end() : end]
        for match in _CODE_START.finditer(line)
        for end in reversed(ends)
        if 3 < end - match.end() < _LONGEST_CODE
    )
    return (x for x in islice(pairs, _MOST_CODE) if re.search(r"\W", x.strip()))


def _index_lines(source: str) -> tuple[bytes, list[int]]:
    """A text as bytes, and where each of its lines begins in them, behind a mark of the byte order."""
    data = source.encode()
    mark = len(data) - len(data.removeprefix("\ufeff".encode()))
    return data, [mark, *accumulate(map(len, data.splitlines(keepends=True)))]


def _find_span(node: ast.expr | ast.stmt, starts: Sequence[int]) -> tuple[int, int]:
    """Where a piece of code begins and ends, in bytes."""
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return starts[node.lineno - 1] + node.col_offset, starts[end_line - 1] + end_column


def _list_names(node: ast.AST) -> set[str]:
    """The names and values of a piece of code, without those of Python itself."""
    every = [getattr(x, "id", getattr(x, "attr", None)) for x in ast.walk(node)]
    values = [repr(x.value) for x in ast.walk(node) if isinstance(x, ast.Constant)]
    return {*(x for x in every if x and x not in _PYTHON_WORDS), *values}


def _measure_likeness(old: str, new: str) -> float:
    if abs(len(old) - len(new)) > max(len(old), len(new)) * 0.6:
        return 0.0
    return difflib.SequenceMatcher(None, old.lower(), new.lower()).ratio()


def _may_stand_for(old: str, new: str) -> bool:
    """Whether the two are of a kind: a number is no name, and a name no operator."""
    is_sentence = re.search(r"[/#]", old) and re.search(r"\s|^\d+$", new)  # in place of a path
    if (
        is_sentence
        or len(new) > 120
        or not old.strip()
        or re.search(r"(?:^|\s)--?(?:help|version|h)\b", new)
    ):
        return False
    if re.fullmatch(r"[\w-]+\.\w{1,5}", new) and "." not in old:
        return False  # a file's name
    if not re.search(r"\w", old):
        return not re.search(r"\w", new) or len(old) > 1
    if not re.search(r"\w", new):
        return False
    if old.isidentifier() or re.fullmatch(r"[\w.$@%&:/-]+", old):
        return bool(re.match(r"[\w$@%&./-]", new)) and old[:1].isdigit() == new[:1].isdigit()
    return True


def _write_in_style(name: str, style: str) -> str:
    parts = [one.lower() for one in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]
    if not parts:
        return name
    joined: dict[str, str] = {
        "snake": "_".join(parts),
        "upper": "_".join(parts).upper(),
        "kebab": "-".join(parts),
        "pascal": "".join(one.capitalize() for one in parts),
        "camel": parts[0] + "".join(one.capitalize() for one in parts[1:]),
        "lower": name.lower(),
    }
    return joined.get(style) or name


def _join_words(before: str, new: str, after: str) -> str:
    """The word between two others with the blanks that keep it apart."""
    if re.search(r"\w$", new) and re.match(r"\w", after):
        after = f" {after}"
    if re.match(r"[\w-]\S", new) and re.search(r"[\w)\]]$", before):
        before = f"{before} "
    return before + new + after


def _strip_comment(row: str) -> str:
    """The line without a comment at its end, and without blanks."""
    bare = re.sub(
        r"""^((?:[^"'#/\n]|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|/(?!/)|(?<!\s)#)*)\s(?:#|//).*$""",
        r"\1",
        row,
    )
    return bare.rstrip()


def _is_whole_line(text: str) -> bool:
    return len(text) > 2 and not re.search(r"\.{3}|…|[<>]{1}\w+>$", text) and text[0] != "/"


def _indent(row: str, by: int) -> str:
    if not row.strip():
        return row
    return " " * by + row if by > 0 else re.sub(rf"^ {{0,{-by}}}", "", row)


def _find_first_statement(path: str, text: str) -> int:
    """The number of lines before the first statement, the comments and the docstring of a module among them."""
    tree = parse_python(text) if is_module(path) else None
    if tree and tree.body and ast.get_docstring(tree, clean=False) is not None:
        return tree.body[0].end_lineno or 0
    return sum(1 for _ in takewhile(lambda one: one.startswith("#"), text.splitlines()))


# The places that the output names in any common form: a path with a line behind or below it, a line that is shown.

_MOST_PLACES = 8
_MOST_CALLING = 100


@dataclass(frozen=True, slots=True)
class _OutputPlace:
    """A line of a tracked file, the column from one (nought if unknown), and the line of the output that names it."""

    path: str
    line: int
    column: int = 0
    at: int = 0


_PATH_WORD = re.compile(r"[\w@~+./-]{1,200}")
_LINE_BEHIND = re.compile(
    r"""["'`)\]]?(?:[:(]|,? [(\[]?(?:on |at )?line |:? line |, )[ ]?(\d{1,6})(?:[ ]?[:,.-][ ]?(?:col(?:umn)? ?)?(\d{1,5}))?"""
)
_LINE_BELOW = re.compile(
    r"(?i)(?:^\s{0,12}|\bline |^L:?[ ]{0,4})(\d{1,6})(?:[:,]? ?(?:col(?:umn)? ?)?(\d{1,5})|(?=[:,\s)\]]|$))"
)
_LINES_BELOW = 40  # a path
_OF_MAKE = re.compile(r"\s{0,8}g?make(?:\[\d{1,3}\])?: ")
_GUTTER = re.compile(r"^\s{0,12}(?:[>|│]\s{1,2})?(?:\d{1,6}\s{0,3}[|│:+-]\s?|[|│+]\s)?")


def _find_places(said: Sequence[str], paths: Collection[str], read: ReadText) -> list[_OutputPlace]:
    """The places that the output names, those of errors first and those in tests last; then lines with its words."""
    placed, mentioned = _read_places(said, paths)
    sources = {path: (read(path) or "").splitlines() for path in [*mentioned][:20]}
    found = placed or [*_find_shown_rows(said, sources)]
    says_error = re.compile(_load_table()["error"])
    found = sorted(found, key=lambda one: (is_test(one.path), not says_error.search(said[one.at])))
    calls = [*sources, *(path for path in _list_files_with_calls(paths) if path not in sources)]
    more = _find_lines_with_words(said, calls, read, refused_only=bool(found))
    placed_paths = {one.path for one in found}
    whole = [
        _OutputPlace(path, 1, 0, at) for path, at in mentioned.items() if path not in placed_paths
    ]
    every = [*found[:_MOST_PLACES], *more, *whole[:_MOST_PLACES]]
    known = {(one.path, one.line): one for one in reversed(every) if one.line}
    first = [one for one in reversed(known.values()) if not _is_generated(one.path)]
    return first[: 2 * _MOST_PLACES]


def _read_places(
    said: Sequence[str], paths: Collection[str]
) -> tuple[list[_OutputPlace], dict[str, int]]:
    """The paths with a line behind or below them, and where each path is mentioned first."""
    ends = index_path_ends(paths)
    places: dict[tuple[str, int], _OutputPlace] = {}
    mentioned: dict[str, int] = {}
    current = ""
    for at, line in enumerate(said):
        if _OF_MAKE.match(line):
            continue
        is_placed = False
        for match in _PATH_WORD.finditer(line):
            if path := ends.get(_strip_path(match[0])):
                current = path
                mentioned.setdefault(path, at)
                if behind := _LINE_BEHIND.match(line, match.end()):
                    place = _OutputPlace(path, int(behind[1]), int(behind[2] or 0), at)
                    places.setdefault((path, place.line), place)
                    is_placed = True
        below = None if is_placed else _LINE_BELOW.search(line)
        if current and below and at - mentioned[current] < _LINES_BELOW:
            place = _OutputPlace(current, int(below[1]), int(below[2] or 0), at)
            places.setdefault((current, place.line), place)
    if not places and len(mentioned) == 1:
        lines = [(at, _LINE_BELOW.search(line)) for at, line in enumerate(said)]
        found = [_OutputPlace(current, int(m[1]), int(m[2] or 0), at) for at, m in lines if m]
        return found, mentioned
    return [*places.values()], mentioned


def _find_shown_rows(
    said: Sequence[str], sources: Mapping[str, Sequence[str]]
) -> Iterator[_OutputPlace]:
    """The lines of the mentioned files that the output shows."""
    for path, rows in sources.items():
        shown = {row.strip(): number for number, row in enumerate(rows, 1) if len(row.strip()) > 7}
        for at, line in enumerate(said):
            if number := shown.get(_GUTTER.sub("", line).strip()):
                yield _OutputPlace(path, number, 0, at)


def _list_files_with_calls(paths: Collection[str]) -> list[str]:
    """The first files that call checks or configure them."""
    calls = re.compile(_load_table()["files_with_calls"])
    found = [path for path in paths if calls.fullmatch(path)]
    return sorted(found, key=lambda path: (path.count("/"), path))[:_MOST_CALLING]


def _is_generated(path: str) -> bool:
    return path.endswith((".lock", "-lock.json", "-lock.yaml", ".min.js", ".svg"))


def _find_lines_with_words(
    said: Sequence[str], paths: Sequence[str], read: ReadText, *, refused_only: bool
) -> Iterator[_OutputPlace]:
    """Lines that hold what the output quotes or refuses, in files that it names without a line or that call checks."""
    words = [(m[1], at) for at, line in enumerate(said) for m in _REFUSED_WORD.finditer(line)]
    if not refused_only:
        quoted = [(at, text) for at, line in enumerate(said) for text, *_ in _list_quoted(line)]
        words = [*((strip_root(text), at) for at, text in quoted if len(text) > 2), *words]
    texts = {path: read(path) or "" for path in paths[:120]}
    for word, at in [*dict(reversed(words)).items()][-40:]:
        found = [
            _OutputPlace(path, number, 0, at)
            for path, text in texts.items()
            if word in text
            for number, row in enumerate(text.splitlines()[:5000], 1)
            if len(row) < 2000 and _compile_word(word).search(row)
        ]
        yield from found if len(found) < 4 else ()


_REFUSED_WORD = re.compile(
    r"(?i)\b(?:unknown|unrecogni[sz]ed|no such|invalid|unsupported|undefined|unexpected)(?: [a-z]{1,20}){0,3}:? ['\"`‘“]?([\w$@./-]{3,80}\w)"
)


def _strip_path(word: str) -> str:
    return strip_root(word).lstrip("/").rstrip(".:-")


# The words that the output offers, and what the words beside them say of them.

_MOST_WORDS = 60
_NEW_CUE_WINDOW = 60


@dataclass(frozen=True, slots=True)
class _OfferedWord:
    """What a message offers. `cued`: the words beside it say that it is the one to write, or `refused`: that it is wrong.

    `at`: the line of the output, `far` how far that is from the place.
    """

    text: str
    quoted: bool
    cued: bool
    at: int
    far: int
    refused: bool = False
    named: bool = False  # by a name of a character, or as the partner of a bracket


_QUOTED = re.compile(
    r"""`([^`'\n]{1,160})'|`{1,2}([^`\n]{1,160})`{1,2}|(?<![\w'])'([^'\n]{1,160})'(?!\w)|(?<![\w"])"([^"\n]{1,160})"(?!\w)|‘([^’\n]{1,160})’|“([^”\n]{1,160})”"""
)
# code that no quotes set off: behind a word that says to write it, or a call
_CODE = re.compile(
    r"(?i)\b(?:use|replaced? (?:by|with)|should be|to be|written as|consider|prefer|write|with|instead of)(?: using)? ([^\s'\"`‘“][^`‘“\n]{1,80}?)(?=,? (?:instead|rather than|in place of)\b| at \S{1,200} line \d|[.;:]?\s*$|[;,] )"
    r"|(?<![\w.'\"`])([a-z_][\w.]{1,80}\([^()\n]{0,60}\))"
)
_MARK = re.compile(
    r"(?i)\b(missing|expect(?:ed|ing)?|(?:unexpected )?token|character|unmatched) ([()\[\]{};:,])(?=[\s.,]|$)"
)
_PLAIN = re.compile(r"""[^\s'"`‘’“”(),;\[\]{}<>|│]{1,80}|[<>=!|&]{2,3}""")
_QUOTE = re.compile(r"\s{0,2}[`'\"‘“]")
_IDENTIFIER = re.compile(r"[^\W\d]\w{0,80}")


def _list_quoted(line: str) -> Iterator[tuple[str, int, int]]:
    """What stands in quotes, from where to where, and what stands in quotes in it."""
    for match in _QUOTED.finditer(line):
        text = next(group for group in match.groups() if group is not None)
        yield text, match.start(), match.end()
        if len(text) > 2:  # quotes within quotes
            start = match.start() + 1
            for inner, at, end in _list_quoted(text):
                yield inner, start + at, start + end
            if re.fullmatch(r"(['\"`\[(]).+['\"`\])]", text):
                yield text[1:-1], match.start(), match.end()


def _compile_word(word: str) -> re.Pattern[str]:
    """The word as a whole: none of its ends goes on."""
    before = after = ""
    if re.match(r"[\w$@-]", word):
        before = r"(?<![\w$@-])"
    elif not re.match(r"[\s(){}\[\]'\"]", word):
        before = r"(?<![=!<>+*/&|:;-])"
    if re.search(r"\w$", word):
        after = r"(?![\w-])"
    elif re.search(r"[=!<>+*/&|:-]$", word):
        after = r"(?![=<>&|])"
    return re.compile(f"{before}{re.escape(word)}{after}")


_PARTNERS = {"(": ")", ")": "(", "[": "]", "]": "[", "{": "}", "}": "{"}


def _list_phrases(line: str) -> Iterator[tuple[str, int, int, bool]]:
    """Code that no quotes set off, from where to where, and whether a word before says to write it."""
    for match in _CODE.finditer(line):
        text = match[1] or match[2]
        if re.search(r"[^\w\s,-]", text) and len(text) > 3:
            yield text, match.start(1 if match[1] else 2), match.end(), bool(match[1])


def _list_marks(line: str) -> Iterator[tuple[str, bool]]:
    """Marks that no quotes set off, and whether they are too much."""
    for match in _MARK.finditer(line):
        yield match[2], match[1].lower() not in {"missing", "expect", "expected", "expecting"}


def _list_offered_words(lines: Sequence[tuple[int, str]], near: int) -> list[_OfferedWord]:
    """Each word once, as it is offered best, for the place that line `near` names; `lines` with their numbers."""
    table = _load_table()
    found: dict[str, _OfferedWord] = {}

    def add(word: _OfferedWord) -> None:
        best = found.get(word.text)
        if best is None or (word.cued, word.quoted) > (best.cued, best.quoted):
            found[word.text] = word

    names: Mapping[str, Sequence[str]] = table["character"]
    for at, line in lines:
        far = abs(at - near)
        for text, start, end in _list_quoted(line):
            cued, refused = _judge_word(line, start, end)
            cued = cued or (not refused and not line[:start].strip())
            add(_OfferedWord(text, True, cued, at, far, refused))
            if partner := _PARTNERS.get(text):
                add(_OfferedWord(partner, True, False, at, far, named=True))
        for text, start, end, is_asked in _list_phrases(line):
            cued, refused = _judge_word(line, start, end, is_bare=True)
            cued = cued or is_asked
            add(_OfferedWord(text, cued or refused, cued, at, far, refused and not is_asked))
        for mark, is_wrong in _list_marks(line):
            add(_OfferedWord(mark, True, not is_wrong, at, far, is_wrong))
        bare = _QUOTED.sub(lambda m: " " * len(m[0]), line)
        for match in _PLAIN.finditer(bare):
            text = match[0].strip(".:?!,")
            if not text or "://" in text or re.search(r":\d|^/", text):
                continue
            cued, refused = _judge_word(line, match.start(), match.end(), is_bare=True)
            cued = cued or line.strip() == text
            if text in table["little_words"] and not cued:
                continue
            add(_OfferedWord(text, False, cued, at, far, refused))
            name = "" if _QUOTE.match(line, match.end()) else text.lower()
            for character in names.get(name, names.get(name.rstrip("s"), ())):
                add(_OfferedWord(character, True, True, at, far, named=True))
    return sorted(found.values(), key=_weigh_word)[:_MOST_WORDS]


def _judge_word(line: str, start: int, end: int, *, is_bare: bool = False) -> tuple[bool, bool]:
    """Whether the words beside it say that it is the one to write, and whether that it is wrong."""
    table = _load_table()
    before, after = line[max(0, start - _NEW_CUE_WINDOW) : start], line[end : end + 30]
    if re.match(table["refused_behind"], after):
        return False, True
    lead = line[max(0, start - 300) : start]
    if (
        re.search(table["cue_before"], before)
        or re.match(table["cue_behind"], after)
        or re.search(table["cue_of_list"], lead)
    ):
        return True, False
    is_refused = bool(re.search(table["refused"], before))
    is_cued = not is_bare and not is_refused and re.search(table["cue_of_quoted"], before)
    return bool(is_cued), is_refused


def _weigh_word(word: _OfferedWord) -> float:
    """How little speaks for a word: from nought."""
    weight = 0.0 if word.cued else 0.5
    weight += 0.0 if word.quoted else 0.5
    weight += 0.6 if word.refused else 0.2 * min(word.text.count(" "), 2)
    return weight + (0.0 if word.far < 4 else 0.3 if word.far < 10 else 0.9)


@cache
def _load_table() -> dict[str, Any]:
    """The words of messages that say something of another, and what is known of files and names."""
    table = tomllib.loads((files("regreen.fixers") / "recipes/small_edits.toml").read_text())
    table["keywords"] = table["keywords"].split()
    table["little_words"] = frozenset(table["little_words"].split())
    return table
