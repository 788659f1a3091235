"""Coverage of JavaScript and TypeScript: jest's and vitest's own where they run, else what V8 counts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files

from regreen.domain.languages import MeasuredFile

_FOLDER = ".regreen"
_PROGRAMS = files("regreen.languages").joinpath("box_programs")
_ROW = re.compile(
    r"^(?:SF:(?P<path>.{1,4096})|DA:(?P<line>\d{1,7}),(?P<hits>\d{1,18})(?:,.*)?)$", re.MULTILINE
)


class ScriptCoverage:
    """Starts beside every Node process; nothing has to be installed for it."""

    report_path = f"{_FOLDER}/lcov.info"
    report_command = ("node", f"{_FOLDER}/script_coverage_report.cjs")

    def make_programs(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        """What asks the runners for coverage, what writes the report, and the files that are meant."""
        names = ("script_coverage_start.cjs", "script_coverage_report.cjs")
        listed = json.dumps([f"/work/{path}" for path in paths])
        return {
            f"{_FOLDER}/paths.json": listed.encode(),
            **{f"{_FOLDER}/{name}": _PROGRAMS.joinpath(name).read_bytes() for name in names},
        }

    def extend_environment(self, env: Mapping[str, str], *, traced: bool) -> dict[str, str]:
        """`env` with what starts the measurement, where the run is traced."""
        if not traced:
            return dict(env)
        start = f"--require /work/{_FOLDER}/script_coverage_start.cjs"
        options = f"{env.get('NODE_OPTIONS', '')} {start}".strip()
        return {**env, "NODE_OPTIONS": options, "NODE_V8_COVERAGE": f"/work/{_FOLDER}/v8"}

    def parse_report(self, data: bytes) -> dict[str, MeasuredFile] | None:
        """Read the report; None for anything else, since the tests could write there too."""
        return parse_lcov(data.decode("utf-8", "replace"))


def parse_lcov(text: str) -> dict[str, MeasuredFile] | None:
    """The lines of each file below /work in an LCOV trace, of which a file may have several; None without any."""
    hits: dict[str, dict[int, int]] = {}
    lines: dict[int, int] = {}
    for row in _ROW.finditer(text):
        if row["path"]:
            lines = hits.setdefault(row["path"].removeprefix("/work/"), {})
        else:
            number = int(row["line"])
            lines[number] = lines.get(number, 0) + int(row["hits"])
    found = {
        path: MeasuredFile(frozenset(ran), frozenset(n for n, times in ran.items() if not times), (), ())
        for path, ran in hits.items()
    }  # fmt: skip
    return found or None
