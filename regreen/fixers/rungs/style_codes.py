"""Complaints of flake8 and pycodestyle, which mend nothing themselves: by which tool each of their codes is mended."""

from __future__ import annotations

import re
import shlex

from regreen.fixers.rungs.tools import Remedy

_LINE = re.compile(
    r"^(?:\./)?(?P<path>[\w./-]{1,200}\.pyi?):\d{1,7}:\d{1,6}: (?P<code>[A-Z]{1,3}\d{3,4})\b(?P<words>[^\n]{0,200})",
    re.MULTILINE,
)
_TOOL = re.compile(r"(?:^|[\s/;&|(])(?:flake8|pycodestyle|pep8|pylama)(?:\s|$)")
_LAYOUT = re.compile(
    r"E(?:1(?:01|1[1-7]|2[1-9]|3[13])|2\d\d|30[1-6]|401|501|502|70[1-4]|71[1-4])|W(?:191|29[13]|391|60[1-6])"
)
_UNUSED = re.compile(r"F(?:401|841)")
_LENGTH = re.compile(r"\(\d+ > (\d{2,3}) characters\)")
_HOME = "/tmp/regreen-style"  # noqa: S108 - inside the box


def style_remedy(command: str, output: str) -> Remedy | None:
    """What mends all that was complained about; None where somebody has to think about one of the complaints."""
    found = list(_LINE.finditer(output))
    if not found or not _TOOL.search(command):
        return None
    codes = {one["code"] for one in found}
    if not all(_LAYOUT.fullmatch(code) or _UNUSED.fullmatch(code) for code in codes):
        return None
    paths = list(dict.fromkeys(one["path"] for one in found))[:200]
    script = _script(codes, paths, _longest(output))
    names = " and ".join(
        sorted({"autoflake" if _UNUSED.fullmatch(code) else "autopep8" for code in codes})
    )
    cause = f"the code breaks rules of style that {names} can mend by itself ({', '.join(sorted(codes)[:6])})"
    return Remedy(
        names,
        script,
        cause,
        network=True,
        writes=tuple(paths),
        title=f"{names} over what was named",
    )


def _script(codes: set[str], paths: list[str], longest: str) -> str:
    """The tools in a place of their own, so that the project's environment stays what it is."""
    files = shlex.join(paths)
    layout = sorted(code for code in codes if _LAYOUT.fullmatch(code))
    lines = [
        f"python -m venv {_HOME} && {_HOME}/bin/pip install -q autopep8 autoflake || exit 1",
    ]
    if "F401" in codes:
        lines.append(f"{_HOME}/bin/autoflake --in-place --remove-all-unused-imports {files}")
    if "F841" in codes:
        lines.append(f"{_HOME}/bin/autoflake --in-place --remove-unused-variables {files}")
    # an import that goes leaves blank lines behind
    select = ",".join([*layout, "E303", "W391"])
    aggressive = " -a" if codes & {"E711", "E712", "E713", "E714", "E501", "W605"} else ""
    lines.append(f"{_HOME}/bin/autopep8 --in-place{aggressive}{longest} --select={select} {files}")
    return "\n".join(lines)


def _longest(output: str) -> str:
    length = _LENGTH.search(output)
    return f" --max-line-length={length[1]}" if length else ""
