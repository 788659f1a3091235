"""Finds remedies from a tool's output, where the tool is called by make, a package script or a hook."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from regreen.domain.environments import ReadText
from regreen.domain.models import Failure
from regreen.languages.registry import has_capability
from regreen.shell.fixing_tools import FORMAT_CAUSE, LINT_CAUSE, Remedy

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
    text = re.sub(r"\x1b\[[0-9;]*m", "", output)
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


_UNSAFE_FIXES_HINT = re.compile(
    r"fix(?:es)? (?:can be enabled|available) with (?:the )?`(?:--fix )?--unsafe-fixes`"
)
_RUFF_FIX_CALL = re.compile(r"(?<!\S)(ruff\b(?:(?!\sruff\b| --fix\b)[^\n;&|])*+ --fix)\b")


def add_unsafe_fixes(checkers: Sequence[Remedy], output: str) -> Iterator[Remedy]:
    """Ruff's calls with unsafe fixes, if ruff offers them; these need a person's approval."""
    if _UNSAFE_FIXES_HINT.search(output):
        for remedy in checkers:
            script = _RUFF_FIX_CALL.sub(r"\1 --unsafe-fixes", remedy.script)
            if script != remedy.script:
                why = "ruff calls these fixes unsafe: look whether the code still does the same"
                yield replace(
                    remedy, script=script, approval=why, title="ruff check --fix --unsafe-fixes"
                )


def _find_paths(pattern: re.Pattern[str], text: str) -> list[str]:
    return _safe_paths(
        match["path"].strip().removeprefix("/work/") for match in pattern.finditer(text)
    )


def _safe_paths(paths: Iterable[str]) -> list[str]:
    return [path for path in dict.fromkeys(paths) if _is_inside(path)][:400]


def _is_inside(path: str) -> bool:
    return not path.startswith(("-", "/")) and ".." not in path.split("/")


# Remedies for flake8, pycodestyle, pylint and yamllint, which fix nothing themselves.

_CHECKER_CODE = re.compile(r"[A-Z]{1,3}\d{3,4}")
_STYLE_CHECKER = re.compile(
    r"(?:^|[\s/;&|(])(?:flake8|pycodestyle|pep8|pylama|pydocstyle|pylint)(?:\s|$)"
)
_LAYOUT_CODES = re.compile(
    r"E(?:1(?:01|1[1-7]|2[1-9]|3[13])|2\d\d|30[1-6]|401|501|502|70[1-4]|71[1-4])|W(?:191|29[1-3]|391|60[1-6])"
)
_OF_PLUGINS = re.compile(r"(?:Q|C4|C8|SIM|PT|PIE|RET|RSE|UP|D)\d{2,3}")
_IMPORT_ORDER_CODES = re.compile(r"I00[1-5]|I1\d\d|I20[12]|C041[12]")
_OF_PYLINT = {"W0611": "F401", "W0612": "F841", "C0303": "W291", "C0304": "W292", "C0305": "W391", "C0410": "E401", "W0301": "E703", "C0301": "E501"}  # fmt: skip
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
    cause = f"the code breaks rules of style that {names} can mend by itself ({', '.join(sorted(codes)[:6])})"
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
    r"|bash|sh|invoke|\./[\w./-]{1,80})"
)
_QUOTED_COMMAND = re.compile(
    rf"\b(?:run|running|execute|using|with|use|try)[:\s]{{1,3}}[`'\"]({_PROGRAMS}\s[^`'\"\n]{{1,120}})[`'\"]",
    re.IGNORECASE,
)
_UNQUOTED_COMMAND = re.compile(
    rf"\b(?:run|execute):?[ ]({_PROGRAMS} [\w./:=@-]{{1,60}}(?: [\w./:=@-]{{1,60}}){{0,5}}?)(?: (?:to|and|first|again|in|then)\b|[.,;!)]|\s*$)",
    re.IGNORECASE | re.MULTILINE,
)
_NOT_FOR_US = re.compile(
    r"\b(?:install|ci|add|push|publish|upload|login|commit|checkout|reset|clean)\b"
)
_MAX_COMMANDS = 3


def find_suggested_commands(command: str, output: str) -> Iterator[Remedy]:
    """The commands that the output says to run, if they can write files and need no network."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output[-20_000:])
    found = [
        match[1].strip()
        for pattern in (_QUOTED_COMMAND, _UNQUOTED_COMMAND)
        for match in pattern.finditer(text)
    ]
    for script in list(dict.fromkeys(found))[:_MAX_COMMANDS]:
        if (
            script != command.strip()
            and not _NOT_FOR_US.search(script)
            and _is_plain_command(script)
        ):
            yield Remedy("told", script, f"files are out of date; the failure says to run {script}")


def _is_plain_command(script: str) -> bool:
    if re.search(r"[|&;<>$`(){}\\]", script):
        return False
    try:
        return len(shlex.split(script)) > 1
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
            if has_capability(path, "checkers", stubs=True) and _is_inside(path)
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
