"""Complaints of flake8, pycodestyle, pylint and yamllint, which mend nothing themselves: which tool mends which code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from regreen.fixers.rungs.tools import Remedy
from regreen.models import Failure

_LINE = re.compile(
    r"^(?:\./)?(?P<path>[\w./-]{1,200}\.pyi?):\d{1,7}:\d{1,6}: (?P<code>[A-Z]{1,3}\d{3,4})\b(?P<words>[^\n]{0,200})",
    re.MULTILINE,
)
_TOOL = re.compile(r"(?:^|[\s/;&|(])(?:flake8|pycodestyle|pep8|pylama|pydocstyle|pylint)(?:\s|$)")
_LAYOUT = re.compile(
    r"E(?:1(?:01|1[1-7]|2[1-9]|3[13])|2\d\d|30[1-6]|401|501|502|70[1-4]|71[1-4])|W(?:191|29[1-3]|391|60[1-6])"
)
_OF_PLUGINS = re.compile(r"(?:Q|C4|C8|SIM|PT|PIE|RET|RSE|UP|D)\d{2,3}")
_ORDER = re.compile(r"I00[1-5]|I1\d\d|I20[12]|C041[12]")
_OF_PYLINT = {"W0611": "F401", "W0612": "F841", "C0303": "W291", "C0304": "W292", "C0305": "W391", "C0410": "E401", "W0301": "E703", "C0301": "E501"}  # fmt: skip
_UNUSED = re.compile(r"F(?:401|841)")
_LENGTH = re.compile(r"\(\d+ > (\d{2,3}) characters\)")
_HOME = "/tmp/regreen-style"  # noqa: S108 - inside the box


def style_remedy(command: str, output: str) -> Remedy | None:
    """What mends all that was complained about; None where somebody has to think about one of the complaints."""
    found = list(_LINE.finditer(output))
    if not found or not _TOOL.search(command):
        return None
    codes = {_OF_PYLINT.get(one["code"], one["code"]) for one in found}
    known = (_LAYOUT, _ORDER, _OF_PLUGINS, _UNUSED)
    if not all(any(kind.fullmatch(code) for kind in known) for code in codes):
        return None
    paths = list(dict.fromkeys(one["path"] for one in found))[:200]
    script, tools = _script(codes, paths, _longest(output))
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


def _script(codes: set[str], paths: list[str], longest: str) -> tuple[str, list[str]]:
    """The tools in a place of their own, so that the project's environment stays what it is, and their names."""
    files = shlex.join(paths)
    layout = sorted(code for code in codes if _LAYOUT.fullmatch(code))
    order = {code for code in codes if _ORDER.fullmatch(code)}
    # what plugins of flake8 say under the code that ruff has for it too
    others = sorted(code for code in codes if _OF_PLUGINS.fullmatch(code))
    lines: list[str] = []
    tools = ["autopep8"] if layout else []
    if codes & {"F401", "F841"}:
        tools.append("autoflake")
    if "F401" in codes:
        lines.append(f"{_HOME}/bin/autoflake --in-place --remove-all-unused-imports {files}")
    if "F841" in codes:
        lines.append(f"{_HOME}/bin/autoflake --in-place --remove-unused-variables {files}")
    if others:
        tools.append("ruff")
        for code in others[:40]:
            ours = re.sub(r"^C(?=8\d\d$)", "COM", code)
            lines.append(f"{_HOME}/bin/ruff check -q --isolated --fix --select {ours} {files}")
    if order:
        tools.append("isort")
        lines.append(f"{_HOME}/bin/isort -q {files}")
    # an import that goes leaves blank lines behind
    select = ",".join([*layout, "E303", "W391"])
    aggressive = " -a" if codes & {"E711", "E712", "E713", "E714", "E501", "W605"} else ""
    lines.append(f"{_HOME}/bin/autopep8 --in-place{aggressive}{longest} --select={select} {files}")
    wanted = " ".join(dict.fromkeys(["autopep8", *tools]))
    first = f"python -m venv {_HOME} && {_HOME}/bin/pip install -q {wanted} || exit 1"
    return "\n".join([first, *lines]), sorted(tools)


_BLANKS = frozenset({"trailing-spaces", "new-line-at-end-of-file", "empty-lines", "new-lines"})


def blank_remedy(failures: Sequence[Failure]) -> Remedy | None:
    """What mends blanks that yamllint complains about; None where it says something else too."""
    if not failures or not all(one.kind in _BLANKS and one.path for one in failures):
        return None
    paths = list(dict.fromkeys(one.path for one in failures if one.path))[:200]
    files = shlex.join(paths)
    script = (
        f"python -m venv {_HOME} && {_HOME}/bin/pip install -q pre-commit-hooks || exit 1\n"
        f"{_HOME}/bin/trailing-whitespace-fixer {files}\n{_HOME}/bin/end-of-file-fixer {files}\n"
        f"{_HOME}/bin/mixed-line-ending --fix=lf {files}\ntrue"
    )
    cause = "there are blanks at the end of lines, or of files"
    title = f"trailing-whitespace-fixer and end-of-file-fixer over {files}"[:200]
    return Remedy("blanks", script, cause, network=True, writes=tuple(paths), title=title)


def _longest(output: str) -> str:
    length = _LENGTH.search(output)
    return f" --max-line-length={length[1]}" if length else ""
