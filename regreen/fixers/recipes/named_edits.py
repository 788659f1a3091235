"""Edits that the error declares: the successor of a name, and what a compiler says of a line.

What an error only suggests is tried out: see `small_edits`.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import accumulate, takewhile
from typing import Any

from regreen.code.python_calls import is_module, parse_python
from regreen.domain.environments import ReadText
from regreen.domain.models import Failure
from regreen.domain.text_limits import strip_terminal_codes

_MOST_EDITS = 8
_CONTEXT = (
    600  # characters before a suggested name, in which the name that it replaces is looked for
)
_PLACE = re.compile(
    r'(?:File "|^|[\s(])(?:file://)?(?:/work/|\./)?([\w.@/-]{1,200}\.\w{1,12})(?:", line |(?: on)?,? line |[:(])(\d{1,6})',
    re.MULTILINE,
)
# A file in a line of its own, above what is said of its lines.
_PLACES_BELOW = re.compile(
    r"^(?:/work/|\./)?([\w.@/-]{1,200}\.\w{1,12}):?\n((?:[ \t]+\d{1,6}\b[^\n]{0,400}\n?){1,200})",
    re.MULTILINE,
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{1,80}")
_QUOTED = re.compile(r"[`'\"‘“]([\w$@.:/-]{1,80})[`'\"’”]")


@dataclass(frozen=True, slots=True)
class NamedEdit:
    """A name ("" where one is added) and what the error says that stands for it now. `asks` is what a person has to look at, where it is a guess."""

    old: str
    new: str
    cause: str = "a name is no longer there, and the error says which one stands for it"
    asks: str = ""


@dataclass(frozen=True, slots=True)
class EditedFiles:
    """Changed files by path, and the edits that were made in them; `of_lines`: of lines that the error names."""

    texts: Mapping[str, str]
    edits: tuple[NamedEdit, ...]
    of_lines: bool = False


def propose_named_edits(
    output: str, failures: Sequence[Failure], paths: Collection[str], read: ReadText
) -> list[EditedFiles]:
    """The files with the names replaced: in the lines that the failure names, then in the whole of their files."""
    found: list[EditedFiles] = []
    text = read_plain_output(output) + write_failures(failures)
    places = find_named_lines(text, failures, paths)
    lines = {path: (read(path) or "").splitlines(keepends=True) for path in places}
    shown = "".join(
        lines[path][number - 1]
        for path, numbers in places.items()
        for number in numbers
        if 1 <= number <= len(lines[path])
    )
    edits = tuple(dict.fromkeys(_find_edits(text, shown)))[:_MOST_EDITS]
    repaired = (
        _edit_named_lines(text, paths, read),
        _drop_unused_imports(text, paths, read),
        _add_missing_imports(text, paths, read),
        _lengthen_underlines(text, paths, read),
    )
    found += [replace(one, of_lines=True) for one in repaired if one.texts]
    made: list[Mapping[str, str]] = []
    for everywhere in (False, True):
        changed = {
            path: "".join(
                _apply_edits(line, edits) if everywhere or number in places[path] else line
                for number, line in enumerate(of_file, 1)
            )
            for path, of_file in lines.items()
        }
        changed = {path: now for path, now in changed.items() if now != "".join(lines[path])}
        bound = {path: _find_bound_names(now) for path, now in changed.items() if is_module(path)}
        for is_part in _MODULE_PARTS:
            imported = {
                path: _import_modules(changed[path], edits, is_part, bound[path]) for path in bound
            }
            if changed and {**changed, **imported} not in made:
                made.append({**changed, **imported})
    return [*found, *(EditedFiles(texts, edits) for texts in made)]


def read_plain_output(output: str) -> str:
    """The output without codes for terminals, and without the margins of pytest and of TAP beside the lines of a message."""
    margin = r"(?m:^(?:E {3}|# ))" if "TAP version 1" in output else r"(?m:^E {3})"
    return re.sub(margin, "", strip_terminal_codes(output))


def write_failures(failures: Sequence[Failure]) -> str:
    """Failures with a place as lines of the form that most tools print, whatever form theirs had."""
    placed = [one for one in failures if one.path and one.line and one.message]
    return "".join(f"\n{one.path}:{one.line}: {one.message.splitlines()[0]}" for one in placed)


def _find_edits(output: str, shown: str) -> Iterator[NamedEdit]:
    for row in _load_table()["named_edit"]:
        for match in re.finditer(row["pattern"], output):
            old = match.groupdict().get("old") or ""
            new = match["new"].strip(".,:")
            before = output[max(0, match.start() - _CONTEXT) : match.start("new")]
            rows = before.splitlines()[-4:]
            line, near = rows[-1], "\n".join(rows)
            sources = (_join_quoted(line), line, _join_quoted(near), shown, near)
            similar = (_find_most_similar_word(new, source) for source in sources)
            old = (old or next(filter(None, similar), "")).strip(".")
            is_private = new.startswith("_") and not old.startswith("_")  # no successor
            if old and new and old != new and not is_private:
                yield NamedEdit(old, new, asks=row.get("asks", ""))


def index_path_ends(paths: Collection[str]) -> dict[str, str]:
    """Each tracked path by itself, and by each of its ends that can mean no other: tools name paths from a folder."""
    ends: dict[str, str | None] = {}
    for path in paths:
        parts = path.split("/")
        for end in accumulate(reversed(parts), lambda rest, part: f"{part}/{rest}"):
            ends[end] = None if end in ends else path
    return {end: path for end, path in ends.items() if path} | {path: path for path in paths}


def strip_root(named: str) -> str:
    """A path of the output as it is tracked, where the tool named it from the root."""
    return named.removeprefix("/work/").removeprefix("./")


def _edit_named_lines(output: str, paths: Collection[str], read: ReadText) -> EditedFiles:
    """The files with each line that an error names written as the error says."""
    lines: dict[str, list[_MarkedLine]] = {}
    made: list[NamedEdit] = []
    seen: set[tuple[str, ...]] = set()
    for row in _load_table()["line_edit"]:
        for match in re.finditer(row["pattern"], output[-200_000:]):
            groups = {key: text or "" for key, text in match.groupdict().items()}
            escape = re.escape(groups.get("old", ""))
            old = re.compile(row["old"].replace("@OLD@", escape))
            new = row["new"].replace("@NEW@", groups.get("new", "").replace("\\", r"\\"))
            named, at = strip_root(match["path"]), int(match["line"])
            # a tool may say it twice
            said = (row["pattern"], row["old"], named, escape, match["line"])
            if said in seen:
                continue
            edited: list[tuple[str, list[_MarkedLine]]] = []
            for path in [path for path in paths if path == named or path.endswith(f"/{named}")]:
                rows = lines[path] = lines.get(path) or _mark_lines(read(path) or "")
                filled = {**row, "new": new}
                named_rows = rows if row.get("every") else rows[at - 1 :]
                if at and (now := _edit_lines(filled, old, named_rows)):
                    edited.append((path, now))
            if len(edited) == 1:
                path, now = edited[0]
                first = 0 if row.get("every") else at - 1
                lines[path][first : first + len(now)] = now
                made.append(NamedEdit(row["was"], row["now"], row["cause"], row.get("asks", "")))
                seen.add(said)
    texts = {path: "".join(line for line, _ in rows) for path, rows in lines.items()}
    changed = {path: text for path, text in texts.items() if text != read(path)}
    return EditedFiles(changed, tuple(dict.fromkeys(made)))


_MarkedLine = tuple[str, str]  # with a mark for each character, by the letters below
_CODE, _COMMENT, _RAW, _STRING = "c#rs"
_TOKEN = re.compile(
    r"""(?s)#[^\n]*|(?P<prefix>(?<!\w)[bBfFrRtTuU]{1,2})?(?:(?P<long>"{3}|''')(?:\\.|(?!(?P=long)).)*(?:(?P=long))?|(?P<short>["'])(?:\\.|(?!(?P=short))[^\n])*(?:(?P=short))?)"""
)


def _mark_lines(text: str) -> list[_MarkedLine]:
    """The lines, with a mark for each character: whether Python takes it for code, a comment, a raw string or another."""
    marks, at = "", 0
    for token in _TOKEN.finditer(text):
        prefix = (token["prefix"] or "").lower()
        mark = _COMMENT if token[0][0] == "#" else _RAW if "r" in prefix else _STRING
        marks += _CODE * (token.start() - at) + mark * len(token[0])
        at = token.end()
    marks += _CODE * (len(text) - at)
    lines, at = [], 0
    for line in text.splitlines(keepends=True):
        lines.append((line, marks[at : at + len(line)]))
        at += len(line)
    return lines


def _edit_lines(
    row: Mapping[str, Any], old: re.Pattern[str], lines: Sequence[_MarkedLine]
) -> list[_MarkedLine]:
    """The first line as the row of the table writes it, with those of its block; none where it is not as the error says."""
    line, marks = lines[0] if lines else ("", "")
    if row.get("block"):
        if (own := old.match(line)) is None:
            return []
        indent = own[0]
        keeps = re.compile(row.get("keeps", "(?!)"))
        block = list(takewhile(lambda one: one[0].startswith(indent) and one[0].strip(), lines))
        goes_on = [False, *(one.rstrip("\n").endswith("\\") for one, _ in block)]
        return [
            (one, of_one)
            if keeps.match(one.strip()) and not part
            else (row["new"] + one.removeprefix(indent), of_one)
            for (one, of_one), part in zip(block, goes_on, strict=False)
        ]
    if row.get("every"):
        edited = [_edit_line(row, old, one) for one in lines]
        return edited if edited != list(lines) else []
    now = _edit_line(row, old, (line, marks))
    return [now] if now[0] != line else []


def _edit_line(row: Mapping[str, Any], old: re.Pattern[str], marked: _MarkedLine) -> _MarkedLine:
    line, marks = marked
    now, of_now, at = "", "", 0
    for match in old.finditer(line, 0, len(marks.partition(_COMMENT)[0])):
        mark = marks[match.start() : match.start() + 1] or _CODE  # the end of a last line
        if mark == row["within"][:1]:
            new = match.expand(row["new"])
            now += line[at : match.start()] + new
            of_now += marks[at : match.start()] + mark * len(new)
            at = match.end()
    return now + line[at:], of_now + marks[at:]


def _drop_unused_imports(output: str, paths: Collection[str], read: ReadText) -> EditedFiles:
    """The files without the imports of which the compiler says that nothing uses them."""
    lines: dict[str, list[str]] = {}
    dropped: list[NamedEdit] = []
    for pattern in _load_rows("unused_import"):
        for match in pattern.finditer(output[-200_000:]):
            path, number, name = match["path"], int(match["line"]) - 1, match["name"] or ""
            if path not in paths:
                continue
            rows = lines.setdefault(path, (read(path) or "").splitlines(keepends=True))
            row = rows[number] if 0 <= number < len(rows) else ""
            rest = _drop_name(row, name, "".join(rows[max(0, number - 50) : max(0, number)]))
            if rest != row:
                rows[number] = rest
                dropped.append(NamedEdit(name or row.strip(), "nothing", "nothing uses an import"))
    texts = {path: "".join(rows) for path, rows in lines.items()}
    return EditedFiles({x: y for x, y in texts.items() if y != read(x)}, tuple(dropped))


_OPEN_IMPORT = re.compile(r"(?:^|\n)[ \t]*import\b[^;'\"{}]{0,200}\{[^{}]*$")


def _drop_name(row: str, name: str, before: str) -> str:
    """An import without a name; nothing where it imports no other, or is a line of a longer one. What is no import stays."""
    alone = (
        rf"[ \t]*(?:type[ \t]+)?(?:[\w$]+[ \t]+as[ \t]+)?{re.escape(name)}[ \t]*,?[ \t]*(?://.*)?\n"
    )
    if name and re.fullmatch(alone, row) and _OPEN_IMPORT.search(before):
        return ""
    if re.fullmatch(
        rf"[ \t]*(?:import[ \t]+)?(?:[\w.]+[ \t]+)?{re.escape(name)}[ \t]*(?://.*)?\n?", row
    ):
        return ""
    if not (found := re.match(r"[ \t]*import\b([^'\"]*?)\bfrom\b", row)):
        return row
    names = re.findall(r"[\w$]+(?:[ \t]+as[ \t]+[\w$]+)?", found[1].replace("type ", ""))
    if not name or [one.split()[-1] for one in names] == [name]:
        return ""
    braced = rf"(?<![\w$])(?:type[ \t]+)?(?:[\w$]+[ \t]+as[ \t]+)?{re.escape(name)}(?![\w$])"
    rest = re.sub(rf"{braced}[ \t]*,[ \t]*|,[ \t]*{braced}", "", found[1], count=1)
    return row[: found.start(1)] + rest + row[found.end(1) :]


_MAX_IMPORTERS = 400


def _add_missing_imports(output: str, paths: Collection[str], read: ReadText) -> EditedFiles:
    """The files with an import of each name that they lack, as the other files of the repository write it."""
    texts: dict[str, str] = {}
    added: list[NamedEdit] = []
    meant = index_path_ends(paths)
    for row in _load_table()["missing_import"]:
        alike = sorted(path for path in paths if path.endswith(tuple(row["suffixes"])))
        for match in re.finditer(row["pattern"], output[-200_000:]):
            path, name = meant.get(strip_root(match["path"])), match["name"]
            if path not in alike:
                continue
            text = texts.get(path) or read(path) or ""
            known = {one["name"] for one in re.finditer(row["import"], text)}
            others = [one for one in alike if one != path][:_MAX_IMPORTERS]
            if name not in known and (line := _find_import(row, name, others, read)):
                texts[path] = _insert_import(row, text, line)
                said = f"an import of {name}"
                added.append(NamedEdit("", said, row["cause"], row["asks"]))
    return EditedFiles(texts, tuple(dict.fromkeys(added)))


def _find_import(row: Mapping[str, Any], name: str, others: Sequence[str], read: ReadText) -> str:
    """The line that imports the name in the others; where none does, that of the standard library; empty where they differ."""
    lines = {
        found[0].removeprefix(found["head"])
        for other in others
        for found in re.finditer(row["import"], read(other) or "")
        if found["name"] == name
    }
    if not lines and (module := row["standard"].get(name)):
        return str(row["line"]).replace("@NAME@", name).replace("@MODULE@", module)
    return lines.pop() if len(lines) == 1 else ""


def _insert_import(row: Mapping[str, Any], text: str, line: str) -> str:
    """The text with the line behind the import that sorts before it; behind the top of the file where it imports nothing."""
    there = list(re.finditer(row["import"], text))
    if not there:
        top = re.match(row["top"], text)
        at = top.end() if top else 0
        return f"{text[:at]}\n{row['head']}{line}\n{text[at:]}"
    before = [one for one in there if one[0].removeprefix(one["head"]) < line]
    beside = before[-1] if before else there[0]
    at = beside.end() + 1 if before else beside.start()
    return f"{text[:at]}{beside['head']}{line}\n{text[at:]}"


_SHORT_UNDERLINE = re.compile(
    r"(?m)^(?P<path>[^\s:][^:\n]{0,300}):(?P<line>\d{1,6}): [^\n]{0,60}Title (?:under|over)line too short"
)


def _lengthen_underlines(output: str, paths: Collection[str], read: ReadText) -> EditedFiles:
    """The documents with the lines under (and over) their titles as long as the titles."""
    texts: dict[str, str] = {}
    for match in _SHORT_UNDERLINE.finditer(output[-200_000:]):
        path = strip_root(match["path"])
        if path not in paths:
            continue
        rows = (texts.get(path) or read(path) or "").split("\n")
        number = int(match["line"])
        for at in range(max(1, number - 2), min(number + 1, len(rows))):
            line, title = rows[at], rows[at - 1]
            if title.strip() and re.fullmatch(r"([^\w\s])\1*", line) and len(line) < len(title):
                is_over = at >= 2 and rows[at - 2] == line
                rows[at] = line[0] * len(title)
                rows[at - 2] = rows[at] if is_over else rows[at - 2]
        texts[path] = "\n".join(rows)
    edit = NamedEdit("the lines under titles", "longer ones", "a title is longer than its line")
    return EditedFiles({x: y for x, y in texts.items() if y != read(x)}, (edit,))


def _join_quoted(text: str) -> str:
    return " ".join(_QUOTED.findall(text))


def _find_most_similar_word(name: str, text: str) -> str:
    """The identifier of the text that is most like the name; empty if none is."""
    words = _IDENTIFIER.findall(text[-4000:])
    near = [one for one in dict.fromkeys(words) if one != name]
    return next(iter(difflib.get_close_matches(name, near, 1, 0.75)), "")


def _apply_edits(line: str, edits: Sequence[NamedEdit]) -> str:
    for edit in edits:
        module, _, name = edit.new.rpartition(".")
        if module and name == edit.old:  # it moved: the import says from where
            line = re.sub(
                rf"^(\s*from )[\w.]+( import \(?{name}\)?\s*)$", rf"\g<1>{module}\g<2>", line
            )
            continue
        old, new = edit.old, edit.new
        if old not in line and old.rpartition(".")[0] == module:
            old, new = old.rpartition(".")[2], name  # the module has another name here
        word = rf"{re.escape(old)}(?!\w)"
        is_attribute = re.search(rf"\.{word}", line)
        new = name if is_attribute and not old.count(".") else new
        line = re.sub(rf"(?<=\.){word}" if is_attribute else rf"(?<![\w.]){word}", new, line)
    return line


# The parts of a dotted name that may be modules: those before a class, all, or none (no part is blank).
_MODULE_PARTS = (str.islower, str.isidentifier, str.isspace)


def _import_modules(
    text: str, edits: Sequence[NamedEdit], is_part: Callable[[str], bool], bound: _BoundNames | None
) -> str:
    """The text with an import of each module that was written in full and that nothing binds, in place of one left unused."""
    for edit in edits:
        module = ".".join(takewhile(is_part, edit.new.split(".")[:-1]))
        is_written = re.search(rf"(?<![\w.]){re.escape(edit.new)}(?!\w)", text)
        if not module or not is_written or bound is None or bound.includes(module):
            continue
        rows = text.splitlines(keepends=True)
        imports = [at for at, row in enumerate(rows) if re.match(r"import \w", row)]
        if imports:
            line = f"import {module}\n"
            after = [at for at in imports if rows[at] < line]
            rows.insert(max(after) + 1 if after else imports[0], line)
            former = edit.old.partition(".")[0]
            if len(re.findall(rf"(?<![\w.]){re.escape(former)}(?!\w)", text)) == 1:
                rows = [row for row in rows if row != f"import {former}\n"]  # it served this name
            text = "".join(rows)
    return text


@dataclass(frozen=True, slots=True)
class _BoundNames:
    """What a file binds, in whatever scope: names, and the modules that it imports by their full names."""

    names: frozenset[str]
    modules: frozenset[str]

    def includes(self, module: str) -> bool:
        """Whether the file can write the module in full, or its first name means something else there."""
        return module in self.modules or module.partition(".")[0] in self.names


def _find_bound_names(text: str) -> _BoundNames | None:
    """The names that a file binds and those that are built in; None for a file that cannot be read."""
    if (tree := parse_python(text)) is None:
        return None
    names, modules = set(dir(builtins)), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname is None:  # it imports the packages of the module, too
                    modules.update(accumulate(alias.name.split("."), "{}.{}".format))
                else:
                    names.add(alias.asname)
        elif isinstance(node, ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif not isinstance(node, ast.keyword | ast.alias):
            # an argument, a class, a function, an exception that is caught, a pattern
            names.add(getattr(node, "arg", None) or getattr(node, "name", None) or "")
    return _BoundNames(frozenset(names), frozenset(modules))


def find_named_lines(
    output: str, failures: Sequence[Failure], paths: Collection[str]
) -> dict[str, set[int]]:
    """The lines of tracked files that the failure names, also by a path from a folder if it can mean one file only."""
    found: dict[str, set[int]] = {}
    named = [(frame.path, frame.line) for failure in failures for frame in failure.frames]
    named += [(failure.path, failure.line) for failure in failures if failure.path and failure.line]
    named += [(match[1], int(match[2])) for match in _PLACE.finditer(output[-200_000:])]
    named += [
        (match[1], int(number))
        for match in _PLACES_BELOW.finditer(output[-200_000:])
        for number in re.findall(r"(?m)^[ \t]+(\d{1,6})\b", match[2])
    ]
    meant = index_path_ends(paths)
    for path, line in named:
        if line and (tracked := meant.get(path) or meant.get(strip_root(path))):
            found.setdefault(tracked, set()).add(line)
    return found


@cache
def _load_table() -> dict[str, Any]:
    table = tomllib.loads((files("regreen.fixers") / "recipes/named_edits.toml").read_text())
    for row in (*table["line_edit"], *table["missing_import"]):
        for name, pattern in table["place"].items():
            row["pattern"] = row["pattern"].replace(f"@{name}@", pattern)
    return table


@cache
def _load_rows(name: str) -> list[re.Pattern[str]]:
    return [re.compile(row["pattern"]) for row in _load_table()[name]]
