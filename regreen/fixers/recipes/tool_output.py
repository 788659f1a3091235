"""Finds remedies from a tool's output, where the tool is called by make, a package script or a hook;
stale lock files and snapshots, and the commands that regenerate them.
"""

from __future__ import annotations

import ast
import posixpath
import re
import shlex
import tomllib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from regreen.code.paths import is_document
from regreen.code.python_calls import FunctionNode, parse_python
from regreen.domain.environments import ReadText
from regreen.domain.models import Failure
from regreen.domain.text_limits import strip_terminal_codes
from regreen.fixers.recipes.named_edits import index_path_ends, strip_root
from regreen.languages.python.dependencies import make_compile_script, read_heading_command
from regreen.languages.registry import has_capability
from regreen.packages.popular_names import find_confusable_package
from regreen.shell.called_scripts import call_tool_as_in_setup
from regreen.shell.documented_options import RECORDING_OPTION
from regreen.shell.fixing_tools import FORMAT_CAUSE, LINT_CAUSE, Remedy, split_folder
from regreen.shell.parse import find_commands
from regreen.shell.tools import FixingCompiler, load_tools, split_runner

_BLACK_OUTPUT = re.compile(r"^would reformat (?P<path>\S[^\n]{0,300})$", re.MULTILINE)
_RUFF_FORMAT = re.compile(r"^Would reformat: (?P<path>\S[^\n]{0,300})$", re.MULTILINE)
_PRETTIER_OUTPUT = re.compile(r"^\[warn\] (?P<path>[^\s\[][^\n]{0,300}\.\w{1,8})$", re.MULTILINE)
_RUFF_FIXABLE = re.compile(r"fixable with (?:the )?[`']--fix[`']")
_RUFF_PATH = re.compile(
    r"^(?:[ \t]{0,40}--> )?(?P<path>[\w./-]{1,200}\.(?:py|pyi|ipynb)):\d+:\d+(?::|$)", re.MULTILINE
)
_ESLINT_FIXABLE = re.compile(r"potentially fixable with the `--fix` option")
_ESLINT_PATH = re.compile(r"^(?P<path>/[\w./-]{1,200}\.[cm]?[jt]sx?)$", re.MULTILINE)


def find_remedies_in_output(output: str, failures: Sequence[Failure]) -> Iterator[Remedy]:
    """Remedies for the complaints of formatters and linters, recognised by their output."""
    text = strip_terminal_codes(output)
    unsorted = [failure.path for failure in failures if failure.kind == "isort" and failure.path]
    for name, call, paths in (
        ("ruff format", ["ruff", "format"], _find_paths(_RUFF_FORMAT, text)),
        ("black", ["black", "-q"], _find_paths(_BLACK_OUTPUT, text)),
        ("isort", ["isort"], _safe_paths(unsorted)),
    ):
        if paths:
            yield Remedy(name, shlex.join([*call, *paths]), FORMAT_CAUSE.format(name=name))
    if "Code style issues" in text and (paths := _find_paths(_PRETTIER_OUTPUT, text)):
        yield Remedy(
            "prettier",
            shlex.join(["npx", "--no-install", "prettier", "--write", *paths]),
            FORMAT_CAUSE.format(name="prettier"),
        )
    if _ESLINT_FIXABLE.search(text) and (paths := _find_paths(_ESLINT_PATH, text)):
        yield Remedy(
            "eslint",
            shlex.join(["npx", "--no-install", "eslint", "--fix", *paths]),
            LINT_CAUSE.format(name="eslint"),
        )
    elif _RUFF_FIXABLE.search(text) and (paths := _find_paths(_RUFF_PATH, text)):
        yield Remedy(
            "ruff check",
            shlex.join(["ruff", "check", "--fix", *paths]),
            LINT_CAUSE.format(name="ruff check"),
        )


_COMPILER_APPROVAL = (
    "the compiler names these edits and is not sure of them: look whether they are meant"
)
_BOX_PROGRAM = re.compile(r"@([\w-]+\.cjs)@")


def find_compiler_remedies(output: str, scripts: Sequence[str]) -> Iterator[Remedy]:
    """The fixes that a compiler offers for what it refuses; those that it is not sure of need a person's approval.

    Args:
        output: what the failing command printed.
        scripts: the command and the calls that it comes to make.
    """
    for compiler in load_tools().compilers:
        if not re.search(compiler.says, output[-200_000:]):
            continue
        calls = list(dict.fromkeys(_find_compiler_calls(compiler, scripts)))
        asks = bool(compiler.asks and re.search(compiler.asks, output[-200_000:]))
        for template, needs_person in ((compiler.script, asks), (compiler.guess, True)):
            # first our own program: what the repository's calls hold names none
            whole = _BOX_PROGRAM.sub(_read_box_program, template)
            needs_call = "@TOOL@" in template
            lines = [
                f"({there}{whole.replace('@TOOL@', tool).replace('@OPTIONS@', options)}\n)"
                for there, tool, options in calls or ([] if needs_call else [("", "", "")])
            ]
            if template and lines:
                yield Remedy(
                    compiler.name,
                    "\n".join(lines),
                    f"{compiler.name} offers a fix for what it refuses",
                    approval=_COMPILER_APPROVAL if needs_person else None,
                    title=f"the fixes that {compiler.name} offers",
                )


def _read_box_program(match: re.Match[str]) -> str:
    return (files("regreen.fixers") / "recipes" / match[1]).read_text()


def _find_compiler_calls(
    compiler: FixingCompiler, scripts: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """Of each call of the compiler its folder, as a line, its name, and the options that its fixes need too."""
    for script in scripts:
        folder, rest = split_folder(script)
        for command in find_commands(rest):
            _, words = split_runner(command.arguments)
            name = posixpath.basename(words[0]) if words else ""
            if not {name, " ".join([name, *words[1:2]])} & set(compiler.calls):
                continue
            kept = words[1:]
            if compiler.keep is not None:
                ours = kept[: kept.index("--")] if "--" in kept else kept
                valued = [pair for pair in pairwise(ours) if pair[0] in compiler.keep_values]
                kept = [word for word in ours if word in compiler.keep]
                kept += [word for pair in valued for word in pair]
                kept += [
                    word
                    for word in ours
                    if _is_option_with_joined_value(word, compiler.keep_values)
                ]
            yield f"cd {shlex.quote(folder)}\n" if folder else "", name, shlex.join(kept)


def _is_option_with_joined_value(word: str, options: Sequence[str]) -> bool:
    """Whether a word is one of these options with its value: `--package=x`, `-px`."""
    return any(
        word.startswith(one if len(one) == 2 else f"{one}=") and word != one for one in options
    )


def _find_paths(pattern: re.Pattern[str], text: str) -> list[str]:
    return _safe_paths(
        match["path"].strip().removeprefix("/work/") for match in pattern.finditer(text)
    )


def _safe_paths(paths: Iterable[str]) -> list[str]:
    return [path for path in dict.fromkeys(paths) if _is_path_inside_tree(path)][:400]


def _is_path_inside_tree(path: str) -> bool:
    return not path.startswith(("-", "/")) and ".." not in path.split("/")


# Remedies for flake8, pycodestyle, pylint and yamllint, which fix nothing themselves.

_CHECKER_CODE = re.compile(r"[A-Z]{1,3}\d{3,4}")
_STYLE_CHECKER = re.compile(
    r"(?:^|[\s/;&|(])(?:flake8|pycodestyle|pep8|pylama|pydocstyle|pylint)(?:\s|$)"
)
_LAYOUT_CODES = re.compile(
    r"E(?:1(?:01|1[1-7]|2[1-9]|3[13])|2\d\d|30[1-6]|401|501|502|70[1-4]|71[1-4])|W(?:191|29[1-3]|391|60[1-6])"
)
_OF_PLUGINS = re.compile(r"F541|(?:Q|C4|C8|SIM|PT|PIE|RET|RSE|UP|D)\d{2,3}")
_IMPORT_ORDER_CODES = re.compile(r"I00[1-5]|I1\d\d|I20[12]|C041[12]")
_OF_PYLINT = {
    "W0611": "F401",
    "W0612": "F841",
    "C0303": "W291",
    "C0304": "W292",
    "C0305": "W391",
    "C0410": "E401",
    "W0301": "E703",
    "C0301": "E501",
    "W1309": "F541",
}
_UNUSED_CODES = re.compile(r"F(?:401|841)")
_LINE_LENGTH = re.compile(r"\(\d+ > (\d{2,3}) characters\)")
_VENV_PATH = "/tmp/regreen-style"  # noqa: S108 - inside the box


def make_style_remedy(command: str, failures: Sequence[Failure]) -> Remedy | None:
    """A remedy for all complaints; None if no tool fixes one of them."""
    found = [
        (failure.path, failure)
        for failure in failures
        if failure.path
        and has_capability(failure.path, "checkers", stubs=True)
        and _CHECKER_CODE.fullmatch(failure.kind)
    ]
    if not found or not _STYLE_CHECKER.search(command):
        return None
    codes = {_OF_PYLINT.get(failure.kind, failure.kind) for _, failure in found}
    known = (_LAYOUT_CODES, _IMPORT_ORDER_CODES, _OF_PLUGINS, _UNUSED_CODES)
    if not all(any(kind.fullmatch(code) for kind in known) for code in codes):
        return None
    paths = list(dict.fromkeys(path for path, _ in found))[:200]
    messages = "\n".join(failure.message for _, failure in found)
    script, tools = _make_script(codes, paths, _line_length_option(messages))
    names = " and ".join(tools)
    cause = f"the code breaks rules of style that {names} can repair by itself ({', '.join(sorted(codes)[:6])})"
    return Remedy(
        names,
        script,
        cause,
        network=True,
        writes=tuple(paths),
        title=f"{names} over what was named",
    )


def _make_script(codes: set[str], paths: list[str], longest: str) -> tuple[str, list[str]]:
    """A script that installs the tools in a new environment and runs them, and their names."""
    files = shlex.join(paths)
    layout = sorted(code for code in codes if _LAYOUT_CODES.fullmatch(code))
    order = {code for code in codes if _IMPORT_ORDER_CODES.fullmatch(code)}
    # flake8 plugins whose codes ruff shares
    others = sorted(code for code in codes if _OF_PLUGINS.fullmatch(code))
    lines: list[str] = []
    tools = ["autopep8"] if layout else []
    if codes & {"F401", "F841"}:
        tools.append("autoflake")
    if "F401" in codes:
        lines.append(f"{_VENV_PATH}/bin/autoflake --in-place --remove-all-unused-imports {files}")
    if "F841" in codes:
        lines.append(f"{_VENV_PATH}/bin/autoflake --in-place --remove-unused-variables {files}")
    if others:
        tools.append("ruff")
        for code in others[:40]:
            ours = re.sub(r"^C(?=8\d\d$)", "COM", code)
            lines.append(f"{_VENV_PATH}/bin/ruff check -q --isolated --fix --select {ours} {files}")
    if order:
        tools.append("isort")
        lines.append(f"{_VENV_PATH}/bin/isort -q {files}")
    # a removed import leaves blank lines
    select = ",".join([*layout, "E303", "W391"])
    aggressive = " -a" if codes & {"E711", "E712", "E713", "E714", "E501", "W605"} else ""
    lines.append(
        f"{_VENV_PATH}/bin/autopep8 --in-place{aggressive}{longest} --select={select} {files}"
    )
    wanted = " ".join(dict.fromkeys(["autopep8", *tools]))
    first = f"python -m venv {_VENV_PATH} && {_VENV_PATH}/bin/pip install -q {wanted} || exit 1"
    return "\n".join([first, *lines]), sorted(tools)


_WHITESPACE_RULES = frozenset(
    {"trailing-spaces", "new-line-at-end-of-file", "empty-lines", "new-lines"}
)


def make_whitespace_remedy(failures: Sequence[Failure]) -> Remedy | None:
    """A remedy for whitespace that yamllint reports; None if it reports anything else."""
    if not failures or not all(
        failure.kind in _WHITESPACE_RULES and failure.path for failure in failures
    ):
        return None
    paths = list(dict.fromkeys(failure.path for failure in failures if failure.path))[:200]
    files = shlex.join(paths)
    script = (
        f"python -m venv {_VENV_PATH} && {_VENV_PATH}/bin/pip install -q pre-commit-hooks || exit 1\n"
        f"{_VENV_PATH}/bin/trailing-whitespace-fixer {files}\n{_VENV_PATH}/bin/end-of-file-fixer {files}\n"
        f"{_VENV_PATH}/bin/mixed-line-ending --fix=lf {files}\ntrue"
    )
    cause = "there are blanks at the end of lines, or of files"
    title = f"trailing-whitespace-fixer and end-of-file-fixer over {files}"[:200]
    return Remedy("blanks", script, cause, network=True, writes=tuple(paths), title=title)


def _line_length_option(messages: str) -> str:
    length = _LINE_LENGTH.search(messages)
    return f" --max-line-length={length[1]}" if length else ""


# Commands that a failure names as its remedy: "out of date, run `make generate`".

_PROGRAMS = (
    r"(?:make|npm|npx|pnpm|yarn|bun|python3?|uv|poetry|pdm|hatch|go|cargo|just|task|tox|nox|ruff|black|isort|pre-commit|prek|cog"
    r"|bash|sh|invoke|(?:\./|[\w.-]{1,40}/)[\w./-]{1,80})"
)
_QUOTED_COMMAND = re.compile(
    rf"\b(?:run|running|execute|using|with|use|try)[:\s]{{1,3}}[`'\"]({_PROGRAMS}(?:\s[^`'\"\n]{{1,120}})?)[`'\"]",
    re.IGNORECASE,
)
_UNQUOTED_COMMAND = re.compile(
    rf"\b(?:run|execute):?[ ]({_PROGRAMS}(?: [\w./:=@-]{{1,60}}){{0,6}}?)(?: (?:to|and|first|again|in|then)\b|[.,;!)]|\s*$)",
    re.IGNORECASE | re.MULTILINE,
)
_FIXABLE_WITH = re.compile(
    rf"\b(?:fixable|fixed|updated|regenerated) (?:with|by(?: running)?|using):? ({_PROGRAMS}(?: [\w./:=@-]{{1,60}}){{0,4}})",
    re.IGNORECASE,
)
_NOT_FOR_US = re.compile(
    r"\b(?:install|ci|add|push|publish|upload|login|commit|checkout|reset|clean)\b"
)
_MAX_COMMANDS = 3


def find_suggested_commands(command: str, output: str) -> Iterator[Remedy]:
    """The commands that the output says to run, if they can write files and need no network."""
    text = strip_terminal_codes(output[-20_000:])
    found = [
        match[1].strip()
        for pattern in (_QUOTED_COMMAND, _UNQUOTED_COMMAND, _FIXABLE_WITH)
        for match in pattern.finditer(text)
    ]
    for script in list(dict.fromkeys(found))[:_MAX_COMMANDS]:
        if (
            script != command.strip()
            and not _NOT_FOR_US.search(script)
            and _is_plain_command(script)
        ):
            accepts = any(RECORDING_OPTION.fullmatch(word) for word in script.split())
            approval = (
                "the command accepts what is there: look whether it is wanted" if accepts else None
            )
            cause = f"files are out of date; the failure says to run {script}"
            yield Remedy("told", script, cause, approval=approval)


def _is_plain_command(script: str) -> bool:
    if re.search(r"[|&;<>$`(){}\\]", script):
        return False
    try:
        words = shlex.split(script)
        return len(words) > 1 or "/" in script
    except ValueError:
        return False


# Unused suppression comments, which mypy reports, are removed.

_UNUSED_IGNORE_MESSAGE = 'Unused "type: ignore'
_TYPE_IGNORE_COMMENT = re.compile(
    r"(?:(?<![ \t])[ \t]+)?#[ \t]*type:[ \t]*ignore(?:\[[^\]\n]{0,200}\])?(?P<rest>[^\n]*)"
)


def remove_unused_suppressions(failures: Sequence[Failure], read: ReadText) -> dict[str, str]:
    """The files that mypy named, without their unused suppression comments."""
    lines: dict[str, set[int]] = {}
    for failure in failures:
        if failure.path and failure.line and failure.message.startswith(_UNUSED_IGNORE_MESSAGE):
            lines.setdefault(failure.path, set()).add(failure.line)
    changed: dict[str, str] = {}
    for path, numbers in lines.items():
        text = (
            read(path)
            if has_capability(path, "checkers", stubs=True) and _is_path_inside_tree(path)
            else None
        )
        if text is None:
            continue
        rows = text.split("\n")
        for number in numbers:
            if number <= len(rows):
                rows[number - 1] = _TYPE_IGNORE_COMMENT.sub(_remaining_comment, rows[number - 1])
        if "\n".join(rows) != text:
            changed[path] = "\n".join(rows)
    return changed


def _remaining_comment(match: re.Match[str]) -> str:
    """The rest of the comment, if another comment follows."""
    rest = match["rest"].strip()
    return f"  {rest}" if rest.startswith("#") else ""


# Examples in documents, which doctest compares with what the code prints.

_BLOCK = r"(?: nothing\n|:\n((?>(?:    [^\n]{0,400}\n){1,60})))"
_COMPARED = re.compile(
    rf"""File "(?P<path>[^"\n]{{1,300}})", line (?P<line>\d{{1,6}}), in [^\n]{{0,300}}\nFailed example:\n(?>(?:    [^\n]{{0,400}}\n){{1,60}})Expected{_BLOCK}Got{_BLOCK}"""
    rf"""|Expected{_BLOCK}Got{_BLOCK}\s{{0,3}}(?P<below>[\w./@-]{{1,300}}):(?P<row>\d{{1,6}}): DocTestFailure"""
)


def rewrite_examples(output: str, paths: Collection[str], read: ReadText) -> dict[str, str]:
    """The documents with what their examples print now in the place of what they expect."""
    meant = index_path_ends(paths)
    found: dict[str, dict[int, tuple[str, str]]] = {}
    text = strip_terminal_codes(output[-200_000:]) + "\n"
    for match in _COMPARED.finditer(text.replace("\r\n", "\n")):
        path = meant.get(strip_root(match["path"] or match["below"]))
        expected, got = (match[3], match[4]) if match["path"] else (match[5], match[6])
        is_exact = "..." not in (expected or "")  # which may stand for any text
        is_stable = is_exact and not re.search(r"Traceback \(| at 0x|/tmp/", got or "")
        if path and is_document(path) and is_stable:
            number = int(match["line"] or match["row"])
            found.setdefault(path, {})[number] = expected or "", got or ""
    changed: dict[str, str] = {}
    for path, examples in found.items():
        rows = before = (read(path) or "").split("\n")
        for number, (expected, got) in sorted(examples.items(), reverse=True):
            rows = _rewrite_example(rows, number, expected, got)
        if rows != before:
            changed[path] = "\n".join(rows)
    return changed


def _rewrite_example(rows: list[str], number: int, expected: str, got: str) -> list[str]:
    """The lines with another result of the example of this line; as they are where it expects something else."""
    start = re.match(r"\s*>>>", rows[number - 1]) if 0 < number <= len(rows) else None
    end = number
    while start and end < len(rows) and re.match(r"\s*\.\.\.(?: |$)", rows[end]):
        end += 1
    inset = re.match(r"\s*", rows[number - 1]) if start else None
    wanted, now = ([line[4:] for line in x.splitlines()] for x in (expected, got))
    there = [row.strip() for row in rows[end : end + len(wanted)]]
    tail = "\r" if rows[number - 1 : number] and rows[number - 1].endswith("\r") else ""
    if inset is None or there != [line.strip() for line in wanted]:
        return rows
    written = [f"{inset[0]}{line or '<BLANKLINE>'}{tail}" for line in now]
    return [*rows[:end], *written, *rows[end + len(wanted) :]]


_UNEXPECTED_PASS = re.compile(
    r"(?m)^_{3,200} ((?:\w{1,100}\.)?\w{1,200}) _{3,200}\n\[XPASS\(strict\)\]"
)
_FAILED_TEST = re.compile(
    r"(?m)^FAILED (?P<path>[\w./@-]{1,300})::(?P<name>(?:\w{1,100}::)?\w{1,200})(?= |$)"
)


def drop_strict_xfails(output: str, paths: Collection[str], read: ReadText) -> dict[str, str]:
    """The test files without the marks of pytest that say that a test fails which passes."""
    meant = index_path_ends(paths)
    passed: dict[str, set[str]] = {}
    text = strip_terminal_codes(output[-200_000:])
    names = set(_UNEXPECTED_PASS.findall(text))
    for match in _FAILED_TEST.finditer(text) if names else ():
        name = match["name"].replace("::", ".")
        if name in names and (path := meant.get(strip_root(match["path"]))):
            passed.setdefault(path, set()).add(name)
    changed: dict[str, str] = {}
    for path, own in passed.items():
        rows = (read(path) or "").split("\n")
        tree = parse_python("\n".join(rows))
        tests = {
            f"{owner}{node.name}": node
            for owner, body in _list_bodies(tree)
            for node in body
            if isinstance(node, FunctionNode)
        }
        marks = [
            mark
            for name in own & tests.keys()
            for mark in tests[name].decorator_list
            if ast.unparse(getattr(mark, "func", mark)).endswith("mark.xfail")
        ]
        gone = {at for mark in marks for at in range(mark.lineno, (mark.end_lineno or 0) + 1)}
        if gone:
            changed[path] = "\n".join(row for at, row in enumerate(rows, 1) if at not in gone)
    return changed


def _list_bodies(tree: ast.Module | None) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The statements of a module and of its classes, with what comes before their names."""
    body = tree.body if tree else []
    yield "", body
    yield from ((f"{x.name}.", x.body) for x in body if isinstance(x, ast.ClassDef))


# Golden files of a project's own: the message of the failure says how to regenerate them.
_OFFERED_FLAG = re.compile(
    r"(?i:\bwith|\buse|\bpass|\badd|\brun|\busing|\bpytest) [`'\"]?(?:pytest )?(--[\w-]{0,30}(?:update|regen|accept|record|bless|overwrite|rewrite|refresh|snapshot)[\w-]{0,30}(?:=\w+)?)"
)
_OFFERED_VARIABLE = re.compile(
    r"(?i:\bset|\bwith|\bexport|\brun|\buse)(?i: (?:the )?env(?:ironment)?[ -]?var(?:iable)?)? [`'\"]?([A-Z][A-Z0-9_]{0,30}(?:UPDATE|REGEN|ACCEPT|RECORD|BLESS|OVERWRITE|REWRITE|REFRESH)[A-Z0-9_]{0,30}|(?:UPDATE|REGEN|ACCEPT|RECORD|BLESS|OVERWRITE|REWRITE|REFRESH)[A-Z0-9_]{0,30})(?:=(\w{1,10}))?"
)
# GOLDEN=write accepts; run again with SNAPSHOTS=1 to update them
_WRITING_SWITCH = re.compile(
    r"(?<![\w$])([A-Z][A-Z0-9_]{2,40})=(\w{1,10})\b(?![^\n]{0,60}\b(?:not|cannot|avoid|without|never)\b)(?=[^\n]{0,40}(?i:\b(?:accept|update|updating|write|writing|regenerat|record|bless|overwrit|refresh)))"
)
_UNHASHED_REQUIREMENT = re.compile(
    r"In --require-hashes mode, all requirements must have their versions pinned"
)
_JEST_SNAPSHOT = re.compile(
    r"obsolete snapshot|\d snapshots? failed from|› \d{1,9} snapshots? failed|toMatch(?:Inline)?Snapshot"
)
_VITEST_SNAPSHOT = re.compile(r"Snapshots\s+\d+ failed|Snapshot `[^`\n]{1,200}` mismatched")
_TOX_PASSES = "TOX_OVERRIDE=testenv.pass_env+="  # else it keeps variables from its commands
_SNAPSHOT_CAUSE = "the stored snapshots differ from what the code gives"
_SNAPSHOT_APPROVAL = "snapshots were written anew: look whether the new output is the wanted one"
_NODE_MODULE = re.compile(
    r"(?:Cannot find (?:module|package)|Failed to load url|Failed to resolve import|Could not resolve|Can't resolve) ['\"]?((?:@[\w.-]{1,60}/)?[A-Za-z0-9][\w.-]{0,80})(?:/[^'\"\s]{0,200})?(?:['\"]| \(resolved id: )"
)
_GO_GET = re.compile(r"no required module provides package [\w./~-]{1,200}|to add it:\s+go get ")


@cache
def _load_table() -> dict[str, Any]:
    text = (files("regreen.fixers") / "recipes/stale_files.toml").read_text()
    return tomllib.loads(text)


@cache
def _load_stale_lock_rows() -> list[tuple[re.Pattern[str], str, str, str]]:
    """Each row: what a tool prints, the lock file, the script that regenerates it, and the cause in words."""
    rows = _load_table()["stale_lock"]
    return [(re.compile(row["pattern"]), row["lock"], row["script"], row["cause"]) for row in rows]


@cache
def _snapshot_flags() -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(row["pattern"]), row["flag"]) for row in _load_table()["snapshot"]]


def make_lock_remedies(
    command: str,
    output: str,
    paths: Collection[str],
    setup: str = "",
    *,
    folder: str = "",
    read: ReadText = lambda path: None,  # noqa: ARG005
) -> Iterator[Remedy]:
    """The regenerations that the failure asks for; they need the network, so they run in the setup phase."""
    text = strip_terminal_codes(output)
    for pattern, lock, script, cause in _load_stale_lock_rows():
        if not pattern.search(text):
            continue
        if "lock" in pattern.groupindex:
            named = dict.fromkeys(match["lock"] for match in pattern.finditer(text))
            if writes := tuple(path for path in named if path in paths):
                whole = call_tool_as_in_setup(script, setup)
                yield Remedy(", ".join(writes), whole, cause, network=True, writes=writes)
            continue
        for place in _find_lock_folders(lock, paths, f"{setup}\n{command}"):
            there = f"cd {shlex.quote(place)}\n" if place else ""
            whole = there + call_tool_as_in_setup(script, setup)
            yield Remedy(lock, whole, cause, network=True, writes=(f"{place}{lock}",))
    if _UNHASHED_REQUIREMENT.search(text):
        yield from make_recompile_remedies(paths, read, f"{setup}\n{command}")
    for words in (found.arguments for found in find_commands(command)):
        _, call = split_runner(words)
        if call[:1] == ["pip-compile"]:
            arguments = [word for word in call if word not in {"--check", "--dry-run", "-n"}]
            yield Remedy(
                "pip-compile",
                shlex.join(arguments),
                "the compiled requirements do not match their source",
                network=True,
            )
        if call[:2] == ["uv", "lock"] and {"--check", "--locked"} & set(call):
            yield Remedy(
                "uv.lock", "uv lock", "uv.lock does not match pyproject.toml", network=True
            )
    yield from _add_undeclared_modules(text, paths)
    yield from _make_snapshot_remedies(command, text, folder)


def _add_undeclared_modules(output: str, paths: Collection[str]) -> Iterator[Remedy]:
    """Modules that are imported and not declared, where the package manager itself adds them."""
    if "package.json" in paths:
        for name in dict.fromkeys(_NODE_MODULE.findall(output)):
            if (
                name in _load_table()["node"]["builtin_modules"]
                or find_confusable_package("npm", name) is not None
            ):
                continue
            lock = "package-lock.json" in paths
            script = f"npm install {shlex.quote(name)} {'' if lock else '--no-package-lock '}--ignore-scripts --no-audit --no-fund"
            yield Remedy(
                name,
                script,
                f"{name} is imported but package.json does not declare it",
                network=True,
                writes=("package.json",),
            )
    if "go.mod" in paths and _GO_GET.search(output):
        cause = "a package is imported that go.mod does not require"
        yield Remedy("go.mod", "go mod tidy", cause, network=True, writes=("go.mod", "go.sum"))


def _make_snapshot_remedies(command: str, output: str, folder: str) -> Iterator[Remedy]:
    cause = _SNAPSHOT_CAUSE
    if any(runner in f"{command}\n{output}" for runner in _load_table()["snapshot_runners"]):
        known = [flag for pattern, flag in _snapshot_flags() if pattern.search(output)]
        for flag in dict.fromkeys([*known, *_OFFERED_FLAG.findall(output)]):
            yield make_recording_remedy(flag, command, cause)
    if variable := _OFFERED_VARIABLE.search(output) or _WRITING_SWITCH.search(output):
        setting = f"{variable[1]}={variable[2] or 1}"
        script = f"export {setting} {_TOX_PASSES}{variable[1]}\n{command}"
        title = f"the command with {setting}"
        yield Remedy(
            "snapshots", script, cause, approval=_SNAPSHOT_APPROVAL, untracked=True, title=title
        )
    there = f"cd {shlex.quote(folder)}\n" if folder else ""
    if _VITEST_SNAPSHOT.search(output):
        script = f"{there}npx --no-install vitest run -u"
        yield Remedy("snapshots", script, cause, approval=_SNAPSHOT_APPROVAL)
    elif _JEST_SNAPSHOT.search(output):
        script = f"{there}npx --no-install jest --ci=false -u"
        yield Remedy("snapshots", script, cause, approval=_SNAPSHOT_APPROVAL)


def make_recording_remedy(flag: str, command: str, cause: str = _SNAPSHOT_CAUSE) -> Remedy:
    """The command with an option of pytest that writes expected results anew."""
    script = (
        f'export PYTEST_ADDOPTS="$PYTEST_ADDOPTS {flag}" {_TOX_PASSES}PYTEST_ADDOPTS\n{command}'
    )
    return Remedy(
        "snapshots", script, cause, approval=_SNAPSHOT_APPROVAL, title=f"the command with {flag}"
    )


_GO_GOLDEN_FLAG = re.compile(
    r"""\bflag\.Bool(?:Var)?\((?:&[\w.]{1,60}, ?)?"(update[\w.-]{0,30}|golden|regen\w{0,20}|overwrite)\""""
)
_MAX_GO_TESTS = 300


def make_golden_remedies(
    scripts: Sequence[str], paths: Collection[str], read: ReadText
) -> Iterator[Remedy]:
    """The calls of `go test` with the flag by which the project's own tests write their golden files anew."""
    calls = [script for script in scripts if re.search(r"(?m)^go test\b", script)]
    tests = [path for path in paths if path.endswith("_test.go")][: _MAX_GO_TESTS if calls else 0]
    flags = {flag for path in tests for flag in _GO_GOLDEN_FLAG.findall(read(path) or "")}
    for flag in sorted(flags):
        script = "\n".join(f"(\n{call} -{flag}\n)" for call in calls)
        title = f"go test -{flag}"
        yield Remedy("snapshots", script, _SNAPSHOT_CAUSE, approval=_SNAPSHOT_APPROVAL, title=title)


def _find_lock_folders(lock: str, paths: Collection[str], commands: str) -> list[str]:
    """The folders of such a lock ("web/", or "" for the root): those that the commands name, or else all."""
    if lock == "go.sum" and "go.mod" in paths:
        return [""]
    found = [
        path.removesuffix(lock)
        for path in sorted(paths, key=lambda path: (path.count("/"), path))
        if path == lock or path.endswith(f"/{lock}")
    ]
    named = [
        place
        for place in found
        if place and re.search(rf"(?<![\w/]){re.escape(place.rstrip('/'))}\b", commands)
    ]
    return (named or found)[:3]


# Requirements that pip-compile or uv compiled: the command in their heading regenerates them.


def make_recompile_remedies(
    paths: Collection[str], read: ReadText, commands: str = ""
) -> Iterator[Remedy]:
    """Remedies that recompile requirements; those that `commands` (setup and command) name first."""
    texts = [
        path
        for path in paths
        if path.endswith(".txt") and posixpath.basename(path) != "LICENSE.txt"
    ]
    for path in sorted(texts, key=lambda path: (path not in commands, path))[:40]:
        script = make_compile_script(path, read(path) or "")
        if script:
            cause = f"{path} is not what its source comes to"
            yield Remedy(
                "pip-compile",
                script,
                cause,
                network=True,
                writes=(path,),
                title=read_heading_command(read(path) or ""),
            )
