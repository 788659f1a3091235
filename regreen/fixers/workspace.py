"""The candidate under work: files as text on our side, a warm box to try commands in, edits that must hold to stay."""

from __future__ import annotations

import ast
import difflib
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from regreen.codebase.symbols import outline
from regreen.codebase.trial import open_box
from regreen.errors import OutsideError
from regreen.fixers.case import Case
from regreen.fixers.checks.lint import new_findings
from regreen.fixers.checks.paths import is_test, is_test_config, matches
from regreen.fixers.diffs import diff_files
from regreen.ports import Box

_FATAL = "E9,F821,F822,F823,F406,F407,F632,F701,F702,F704,F706,F707"
_LARGEST = 2 * 1024 * 1024
SHOWN = 10_000


class Refused(Exception):
    """A tool call that cannot be carried out; the text goes back to the model."""


class Workspace:
    """Reads, edits and runs one candidate. Nothing the model asks for touches the host."""

    def __init__(self, case: Case) -> None:
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
        self._close()

    def text(self, path: str) -> str | None:
        """A file as it stands now; None where there is no such text file."""
        if path in self.edits:
            return self.edits[path]
        return original(self.case, path)

    def patch(self) -> str:
        """What was changed so far, against the commit under repair."""
        before = {path: self.case.git.show(self.case.rev, path) for path in self.edits}
        after: Mapping[str, bytes | None] = {
            path: text.encode() for path, text in self.edits.items()
        }
        return diff_files(before, after)

    def read(self, path: str, start: int = 1, end: int | None = None) -> str:
        """Numbered lines of a file, at most 400."""
        path = _inside(path)
        text = self.text(path)
        if text is None:
            msg = f"there is no text file {path}. {self._near(path)}"
            raise Refused(msg)
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
        place = _inside(path)
        argv = [
            "grep",
            "-rnIE",
            "-m",
            "40",
            "--exclude-dir=.git",
            "--exclude-dir=node_modules",
            "-e",
            pattern,
            "--",
            place,
        ]
        code, out = self.run_argv(argv, 30)
        lines = [line.removeprefix("./")[:240] for line in out.splitlines()]
        if code not in {0, 1}:
            msg = f"the search failed: {out[:300]}"
            raise Refused(msg)
        if not lines:
            return "no match"
        more = f"\n({len(lines)} matches; the first 80 are shown)" if len(lines) > 80 else ""
        return "\n".join(lines[:80]) + more

    def symbols(self, name: str = "", path: str = "") -> str:
        """What a file defines, or where a name is defined and called."""
        path = _inside(path) if path else ""
        if path and not name:
            text = self.text(path)
            if text is None:
                msg = f"there is no text file {path}. {self._near(path)}"
                raise Refused(msg)
            found = outline(path, text.encode())
            return (
                "\n".join(
                    f"{one.start}-{one.end} {one.kind} {one.name}"
                    for one in found.definitions[:300]
                )
                or "nothing"
            )
        lines = list(self._uses(name, path))
        return "\n".join(lines[:80]) or f"no definition and no call of {name}"

    def _uses(self, name: str, under: str) -> Iterator[str]:
        short = name.rsplit(".", 1)[-1]
        for path in self._known:
            if not path.startswith(under) or not path.endswith(
                (".py", ".js", ".ts", ".tsx", ".go", ".rs", ".java", ".rb")
            ):
                continue
            text = self.text(path)
            if text is None or short not in text:
                continue
            found = outline(path, text.encode())
            for one in found.definitions:
                if one.short == short or one.name == name:
                    yield f"{path}:{one.start}-{one.end} defines {one.kind} {one.name}"
            for call in found.calls:
                if call.name.rsplit(".", 1)[-1] == short:
                    yield f"{path}:{call.line} calls it in {call.inside or 'the module'}"

    def edit(self, path: str, old: str, new: str) -> str:
        """Replace one unique stretch of text; taken back at once where it brings new sure errors.

        Raises:
            Refused: with what to do instead.
        """
        return self.edit_all([(path, old, new)])

    def edit_all(self, edits: Sequence[tuple[str, str, str]]) -> str:
        """Make edits (path, old, new) that belong together, and look for new errors after the last of them.

        Raises:
            Refused: with what to do instead; then none of them was made.
        """
        after: dict[str, str] = {}
        for given, old, new in edits:
            path = _inside(given)
            after[path] = self._changed(path, after.get(path, self.text(path)), old, new)
        errors = [line for path, text in after.items() for line in self._errors(path, text)]
        if errors:
            raise Refused(
                "the edit was taken back, it brings new errors:\n" + "\n".join(errors[:8])
            )
        before = {path: self.text(path) for path in after}
        for path, text in after.items():
            if text == original(self.case, path):
                self.edits.pop(path, None)
            else:
                self.edits[path] = text
            self._dirty.add(path)
        # what changed by this alone: the whole patch again with every edit would fill the conversation
        was = {path: text.encode() for path, text in before.items() if text is not None}
        now = {path: text.encode() for path, text in after.items()}
        return f"done:\n{clipped(diff_files(was, now))}"

    def _changed(self, path: str, text: str | None, old: str, new: str) -> str:
        """The file's text with one edit made."""
        self._may_edit(path)
        if text is not None:
            return _replaced(path, text, old, new)
        if old:
            msg = f"there is no text file {path}; give an empty `old` to create it. {self._near(path)}"
            raise Refused(msg)
        return new

    def _errors(self, path: str, changed: str) -> list[str]:
        """Sure errors that the file has with the edits and had not before them."""
        if not path.endswith(".py"):
            return []
        found = new_findings(path, self.text(path) or "", changed, _FATAL)
        where = _syntax(path, changed) if found else ""
        return [f"{path}: {one}" for one in found] + ([where] if where else [])

    def undo(self) -> None:
        """Back to the commit under repair."""
        self.edits.clear()
        self._close()

    def run(self, command: str, timeout: float = 120) -> str:
        """Run a shell command over the candidate, in the warm box."""
        code, out = self.run_argv(["bash", "-c", command], min(timeout, 120))
        return f"exit {code}\n{clipped(out)}"

    def run_argv(self, argv: list[str], timeout: float) -> tuple[int | str, str]:
        """Run in the warm box; the exit code, or the word for another ending."""
        self.case.stop.check()
        box = self._opened()
        try:
            self._bring_up_to_date(box)
            result = box.run(
                argv, timeout=timeout, env=dict(self.case.trial.env), cancel=self.case.stop.cancel
            )
        except OutsideError:
            self._close()
            raise
        if result.ended != "exit":
            self._close()
        code = result.exit_code if result.exit_code is not None else result.ended
        return code, f"{result.stdout}\n{result.stderr}".strip()

    def _opened(self) -> Box:
        if self._box is None:
            self._box = open_box(
                self.case.trial,
                self.case.rev,
                git=self.case.git,
                sandbox=self.case.sandbox,
                cancel=self.case.stop.cancel,
            )
            self._dirty = set(self.edits)
        return self._box

    def _bring_up_to_date(self, box: Box) -> None:
        current = {path: self.text(path) for path in self._dirty}
        files = {path: text.encode() for path, text in current.items() if text is not None}
        if files:
            box.write(files)
        gone = [path for path, text in current.items() if text is None]
        if gone:
            box.run(["rm", "-f", "--", *gone], timeout=30)
        self._dirty.clear()

    def _close(self) -> None:
        if self._box is not None:
            self._box.close()
            self._box = None

    def _may_edit(self, path: str) -> None:
        if ".git" in path.split("/") or path == ".":
            raise Refused("`path` must name a file of the repository")
        if path in self.case.trial.overlay or path in self.case.job.given_tests:
            msg = f"{path} is the given specification; it may not change"
            raise Refused(msg)
        if (
            (path in self._known and is_test(path))
            or path.endswith("conftest.py")
            or is_test_config(path)
        ):
            msg = f"{path} is an existing test or says how tests run; it may not change. If the test itself is wrong, call give_up"
            raise Refused(msg)
        if matches(path, self.case.job.protected_paths):
            msg = f"{path} is protected; if the cure lies there, call give_up and say so"
            raise Refused(msg)
        entry = self._known.get(path)
        if entry is not None and entry.mode not in {"100644", "100755"}:
            msg = f"{path} is no ordinary file"
            raise Refused(msg)

    def _near(self, path: str) -> str:
        name = path.rsplit("/", 1)[-1]
        same = [known for known in self._known if known.rsplit("/", 1)[-1] == name][:5]
        close = same or difflib.get_close_matches(path, list(self._known)[:5000], 3)
        return f"Did you mean {', '.join(close)}?" if close else ""


def original(case: Case, path: str) -> str | None:
    """A file at the commit under repair, the overlay included; None where it is no text."""
    data = case.trial.overlay.get(path)
    if data is None:
        data = case.git.show(case.rev, path, _LARGEST)
    if data is None or b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _inside(path: str) -> str:
    """The path as git knows it, where it was given with a leading `./` or as it stands in the box."""
    plain = posixpath.normpath(path.removeprefix("/work/") or ".")
    if plain.startswith(("/", "../")) or plain == "..":
        raise Refused("paths are relative to the repository's root and stay inside it")
    return plain


def _syntax(path: str, text: str) -> str:
    """Where a file stops being Python; empty where it is."""
    try:
        ast.parse(text)
    except SyntaxError as error:
        return f"{path}:{error.lineno}: {error.msg}: {(error.text or '').strip()[:200]}"
    except (ValueError, RecursionError):
        return ""
    return ""


def _replaced(path: str, text: str, old: str, new: str) -> str:
    if "\r\n" in text and "\r" not in old + new:
        # what was shown ends its lines in the plain way; the file keeps its own
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    if not old:
        msg = f"{path} exists; `old` must quote the text to replace"
        raise Refused(msg)
    times = text.count(old)
    if times == 1:
        return text.replace(old, new)
    if times > 1:
        where = [str(text.count("\n", 0, at) + 1) for at in _positions(text, old)][:10]
        msg = f"`old` stands {times} times in {path} (lines {', '.join(where)}); quote more around the one you mean"
        raise Refused(msg)
    if new and text.count(new) == 1:
        msg = f"`old` is not in {path}, but `new` is already"
        raise Refused(msg)
    msg = f"`old` is not in {path} letter by letter, blanks included{_nearest(text, old)}"
    raise Refused(msg)


def _nearest(text: str, old: str) -> str:
    """What of a file comes close to a text that is not in it: the same lines with other blanks, or lines like its first."""
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


def _positions(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def clipped(text: str, limit: int = SHOWN) -> str:
    """Head and tail of a long output."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... {len(text) - limit} characters left out ...\n{text[-half:]}"
