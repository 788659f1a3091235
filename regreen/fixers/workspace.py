"""The workspace of one candidate: its edits as text on the host, and a warm box that runs commands."""

from __future__ import annotations

import ast
import difflib
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from regreen.code.file_languages import has_outline
from regreen.code.hunks import diff_files
from regreen.code.paths import is_test, is_test_config, matches_glob
from regreen.code.symbols import read_outline
from regreen.domain.errors import OutsideError
from regreen.domain.ports import Box
from regreen.fixers.case import RepairCase
from regreen.gate.checks.lint import find_new_errors
from regreen.languages.registry import has_capability

_FATAL_RULES = "E9,F821,F822,F823,F406,F407,F632,F701,F702,F704,F706,F707"
_MAX_FILE_BYTES = 2 * 1024 * 1024
MAX_OUTPUT_CHARS = 10_000


class ToolCallRefused(Exception):
    """A tool call that cannot be carried out; the text goes back to the model."""


class Workspace:
    """Reads, edits and runs one candidate. Nothing the model asks for touches the host."""

    def __init__(self, case: RepairCase) -> None:
        self.case = case
        self.edits: dict[str, str] = {}
        self._known = {entry.path: entry for entry in case.git.tree(case.rev)}
        self._box: Box | None = None
        self._dirty: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close_box()

    def current_text(self, path: str) -> str | None:
        """The current text of a file; None if there is no such text file."""
        if path in self.edits:
            return self.edits[path]
        return read_original(self.case, path)

    def make_patch(self) -> str:
        """The diff of all edits against the commit under repair."""
        before = {path: self.case.git.show(self.case.rev, path) for path in self.edits}
        after: Mapping[str, bytes | None] = {
            path: text.encode() for path, text in self.edits.items()
        }
        return diff_files(before, after)

    def read(self, path: str, start: int = 1, end: int | None = None) -> str:
        """Numbered lines of a file, at most 400."""
        path = _normalize_path(path)
        text = self.current_text(path)
        if text is None:
            msg = f"there is no text file {path}. {self._suggest_paths(path)}"
            raise ToolCallRefused(msg)
        lines = text.splitlines()
        first = max(1, start)
        last = min(len(lines), end or first + 199, first + 399)
        shown = "\n".join(
            f"{number:5d}  {lines[number - 1][:400]}" for number in range(first, last + 1)
        )
        more = f"\n({len(lines)} lines in all)" if last < len(lines) or first > 1 else ""
        return f"{path}\n{shown}{more}"

    def search(self, pattern: str, path: str = "") -> str:
        """Lines that match an extended regular expression, over the tracked files. Runs in the box."""
        place = _normalize_path(path)
        left_out = ("--exclude-dir=.git", "--exclude-dir=node_modules")
        argv = ["grep", "-rnIE", "-m", "40", *left_out, "-e", pattern, "--", place]
        code, out = self.run_argv(argv, 30)
        lines = [line.removeprefix("./")[:240] for line in out.splitlines()]
        if code not in {0, 1}:
            msg = f"the search failed: {out[:300]}"
            raise ToolCallRefused(msg)
        if not lines:
            return "no match"
        more = f"\n({len(lines)} matches; the first 80 are shown)" if len(lines) > 80 else ""
        return "\n".join(lines[:80]) + more

    def list_symbols(self, name: str = "", path: str = "") -> str:
        """What a file defines, or where a name is defined and called."""
        path = _normalize_path(path) if path else ""
        if path and not name:
            text = self.current_text(path)
            if text is None:
                msg = f"there is no text file {path}. {self._suggest_paths(path)}"
                raise ToolCallRefused(msg)
            rows = [
                f"{definition.start}-{definition.end} {definition.kind} {definition.name}"
                for definition in read_outline(path, text.encode()).definitions[:300]
            ]
            return "\n".join(rows) or "nothing"
        lines = list(self._find_uses(name, path))
        return "\n".join(lines[:80]) or f"no definition and no call of {name}"

    def _find_uses(self, name: str, under: str) -> Iterator[str]:
        short = name.rsplit(".", 1)[-1]
        for path in self._known:
            if not path.startswith(under) or not has_outline(path):
                continue
            text = self.current_text(path)
            if text is None or short not in text:
                continue
            found = read_outline(path, text.encode())
            for definition in found.definitions:
                if definition.short_name == short or definition.name == name:
                    yield f"{path}:{definition.start}-{definition.end} defines {definition.kind} {definition.name}"
            for call in found.calls:
                if call.name.rsplit(".", 1)[-1] == short:
                    yield f"{path}:{call.line} calls it in {call.inside or 'the module'}"

    def edit(self, path: str, old: str, new: str) -> str:
        """Replace one unique text; undone at once if it brings new certain errors.

        Raises:
            ToolCallRefused: with what to do instead.
        """
        return self.edit_all([(path, old, new)])

    def edit_all(self, edits: Sequence[tuple[str, str, str]]) -> str:
        """Make edits (path, old, new) that belong together, and look for new errors after the last of them.

        Raises:
            ToolCallRefused: with what to do instead; then none of them was made.
        """
        after: dict[str, str] = {}
        for given, old, new in edits:
            path = _normalize_path(given)
            after[path] = self._text_with_edit(
                path, after.get(path, self.current_text(path)), old, new
            )
        errors = [
            line for path, text in after.items() for line in self._find_new_errors(path, text)
        ]
        if errors:
            raise ToolCallRefused(
                "the edit was taken back, it brings new errors:\n" + "\n".join(errors[:8])
            )
        before = {path: self.current_text(path) for path in after}
        for path, text in after.items():
            if text == read_original(self.case, path):
                self.edits.pop(path, None)
            else:
                self.edits[path] = text
            self._dirty.add(path)
        # only this change: the whole patch after every edit would fill the conversation
        was = {path: text.encode() for path, text in before.items() if text is not None}
        now = {path: text.encode() for path, text in after.items()}
        return f"done:\n{clip_text(diff_files(was, now))}"

    def _text_with_edit(self, path: str, text: str | None, old: str, new: str) -> str:
        """The file's text with one edit made."""
        self._check_editable(path)
        if text is not None:
            return _replace_unique(path, text, old, new)
        if old:
            msg = f"there is no text file {path}; give an empty `old` to create it. {self._suggest_paths(path)}"
            raise ToolCallRefused(msg)
        return new

    def _find_new_errors(self, path: str, changed: str) -> list[str]:
        """Certain errors that the edits bring to the file."""
        if not has_capability(path, "checkers"):
            return []
        found = find_new_errors(path, self.current_text(path) or "", changed, _FATAL_RULES)
        where = _find_syntax_error(path, changed) if found else ""
        return [f"{path}: {error}" for error in found] + ([where] if where else [])

    def run(self, command: str, timeout: float = 120) -> str:
        """Run a shell command over the candidate, in the warm box."""
        code, out = self.run_argv(["bash", "-c", command], min(timeout, 120))
        return f"exit {code}\n{clip_text(out)}"

    def run_argv(self, argv: list[str], timeout: float) -> tuple[int | str, str]:
        """Run in the warm box; the exit code, or the word for another ending."""
        self.case.stop.check_cancelled()
        box = self._ensure_box()
        try:
            self._sync_box(box)
            result = box.run(
                argv, timeout=timeout, env=dict(self.case.trial.env), cancel=self.case.stop.cancel
            )
        except OutsideError:
            self._close_box()
            raise
        if result.ended != "exit":
            self._close_box()
        code = result.exit_code if result.exit_code is not None else result.ended
        return code, f"{result.stdout}\n{result.stderr}".strip()

    def _ensure_box(self) -> Box:
        if self._box is None:
            self._box = self.case.open_box()
            self._dirty = set(self.edits)
        return self._box

    def _sync_box(self, box: Box) -> None:
        current = {path: self.current_text(path) for path in self._dirty}
        files = {path: text.encode() for path, text in current.items() if text is not None}
        if files:
            box.write(files)
        gone = [path for path, text in current.items() if text is None]
        if gone:
            box.run(["rm", "-f", "--", *gone], timeout=30)
        self._dirty.clear()

    def _close_box(self) -> None:
        if self._box is not None:
            self._box.close()
            self._box = None

    def _check_editable(self, path: str) -> None:
        if ".git" in path.split("/") or path == ".":
            raise ToolCallRefused("`path` must name a file of the repository")
        if path in self.case.trial.overlay or path in self.case.job.given_tests:
            msg = f"{path} is the given specification; it may not change"
            raise ToolCallRefused(msg)
        if (path in self._known and is_test(path)) or is_test_config(path):
            msg = f"{path} is an existing test or says how tests run; it may not change. If the test itself is wrong, call give_up"
            raise ToolCallRefused(msg)
        if matches_glob(path, self.case.job.protected_paths):
            msg = f"{path} is protected; if the cure lies there, call give_up and say so"
            raise ToolCallRefused(msg)
        entry = self._known.get(path)
        if entry is not None and entry.mode not in {"100644", "100755"}:
            msg = f"{path} is no ordinary file"
            raise ToolCallRefused(msg)

    def _suggest_paths(self, path: str) -> str:
        name = path.rsplit("/", 1)[-1]
        same = [known for known in self._known if known.rsplit("/", 1)[-1] == name][:5]
        close = same or difflib.get_close_matches(path, list(self._known)[:5000], 3)
        return f"Did you mean {', '.join(close)}?" if close else ""


def read_original(case: RepairCase, path: str) -> str | None:
    """A file at the commit under repair, the overlay included; None where it is no text."""
    data = case.trial.overlay.get(path)
    if data is None:
        data = case.git.show(case.rev, path, _MAX_FILE_BYTES)
    if data is None or b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _normalize_path(path: str) -> str:
    """The path relative to the repository, from a path with a leading `./` or `/work/`."""
    plain = posixpath.normpath(path.removeprefix("/work/") or ".")
    if plain.startswith(("/", "../")) or plain == "..":
        raise ToolCallRefused("paths are relative to the repository's root and stay inside it")
    return plain


def _find_syntax_error(path: str, text: str) -> str:
    """The place of a syntax error; empty if there is none."""
    try:
        ast.parse(text)
    except SyntaxError as error:
        return f"{path}:{error.lineno}: {error.msg}: {(error.text or '').strip()[:200]}"
    except (ValueError, RecursionError):
        return ""
    return ""


def _replace_unique(path: str, text: str, old: str, new: str) -> str:
    if "\r\n" in text and "\r" not in old + new:
        # the model saw plain line ends; the file keeps its own
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    if not old:
        msg = f"{path} exists; `old` must quote the text to replace"
        raise ToolCallRefused(msg)
    times = text.count(old)
    if times == 1:
        return text.replace(old, new)
    if times > 1:
        where = [str(text.count("\n", 0, at) + 1) for at in _find_positions(text, old)][:10]
        msg = f"`old` stands {times} times in {path} (lines {', '.join(where)}); quote more around the one you mean"
        raise ToolCallRefused(msg)
    if new and text.count(new) == 1:
        msg = f"`old` is not in {path}, but `new` is already"
        raise ToolCallRefused(msg)
    msg = f"`old` is not in {path} letter by letter, blanks included{_find_nearest_text(text, old)}"
    raise ToolCallRefused(msg)


def _find_nearest_text(text: str, old: str) -> str:
    """The closest match of a text that is not in the file: the same lines with other whitespace, or similar lines."""
    lines, wanted = text.splitlines(), [line.strip() for line in old.strip().splitlines()]
    bare = [line.strip() for line in lines]
    for at in range(len(lines) - len(wanted) + 1) if any(wanted) else ():
        if bare[at : at + len(wanted)] == wanted:
            same = "\n".join(lines[at : at + len(wanted)])
            return f"\nThe same lines with other blanks stand from line {at + 1}:\n{same[:2000]}"
    first = next((line for line in wanted if line), "")
    close = difflib.get_close_matches(first, bare, 3, 0.6)
    found = [f"{bare.index(line) + 1}: {lines[bare.index(line)]}" for line in close]
    return "\nThe nearest lines are:\n" + "\n".join(found) if found else ""


def _find_positions(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def clip_text(text: str, limit: int = MAX_OUTPUT_CHARS) -> str:
    """Head and tail of a long output."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... {len(text) - limit} characters left out ...\n{text[-half:]}"
