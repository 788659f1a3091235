"""coverage.py, laid into the box: nothing has to be installed there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from regreen.domain.languages import MeasuredFile

_FOLDER = ".regreen"


class PythonCoverage:
    """Makes every Python in the box trace the given files."""

    report_path = f"{_FOLDER}/report.json"
    report_command = (
        "sh",
        "-c",
        "exec $(command -v python || command -v python3) .regreen/report.py",
    )

    def make_programs(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        """coverage.py itself, what starts it, and what writes the report."""
        include = "".join(f"\n    /work/{path}" for path in paths)
        config = (
            "[run]\nbranch = True\nparallel = True\ndynamic_context = test_function\n"
            f"disable_warnings = no-data-collected\ninclude ={include}\n"
        )
        full_paths = json.dumps([f"/work/{path}" for path in paths])
        own = {
            f"{_FOLDER}/coveragerc": config.encode("utf-8", "surrogateescape"),
            f"{_FOLDER}/data/.keep": b"",
            f"{_FOLDER}/site/sitecustomize.py": _START_CODE.encode(),
            f"{_FOLDER}/report.py": _REPORT_CODE.replace("PATHS", full_paths).encode(
                "utf-8", "replace"
            ),
        }
        return {**own, **_coverage_package()}

    def extend_environment(self, env: Mapping[str, str], *, traced: bool) -> dict[str, str]:
        """`env` with what the report needs and, where the run is traced, with what starts the tracer."""
        start = {"COVERAGE_PROCESS_START": f"/work/{_FOLDER}/coveragerc"} if traced else {}
        rest = f":{env['PYTHONPATH']}" if env.get("PYTHONPATH") else ""
        return {
            **env,
            "PYTHONPATH": f"/work/{_FOLDER}/site{rest}",
            "COVERAGE_FILE": f"/work/{_FOLDER}/data/coverage",
            **start,
        }

    def parse_report(self, data: bytes) -> dict[str, MeasuredFile] | None:
        """Read what the box wrote; None for anything else, since the tests could write there too."""
        try:
            rows = json.loads(data)
            return {str(p).removeprefix("/work/"): _parse_file(row) for p, row in rows.items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None


_START_CODE = """\
try:
    import coverage
    coverage.process_startup()
except Exception:  # an older Python than coverage.py knows: the tests still run
    pass
"""
_REPORT_CODE = """\
import json, os, coverage
os.chdir("/work")
cov = coverage.Coverage(config_file="/work/.regreen/coveragerc")
cov.combine(["/work/.regreen/data"], strict=True)
data = cov.get_data()
out = {}
for path in PATHS:
    try:
        _, statements, excluded, missing, _ = cov.analysis2(path)
    except Exception as error:
        continue
    arcs = {}
    try:
        arcs = cov._analyze(path).missing_branch_arcs()
    except Exception:
        pass
    contexts = sorted({c for cs in data.contexts_by_lineno(path).values() for c in cs if c})
    out[path] = {
        "statements": statements, "missing": missing, "tests": contexts[:50],
        "branches": [[a, b] for a, bs in arcs.items() for b in bs],
    }
with open("/work/.regreen/report.json", "w") as file:
    json.dump(out, file)
"""


@cache
def _coverage_package() -> Mapping[str, bytes]:
    """Our own coverage.py as files: nothing has to be installed in the box."""
    import coverage

    root = Path(coverage.__file__).parent
    wanted = [
        p for p in root.rglob("*") if p.suffix in {".py", ".so"} and "htmlfiles" not in p.parts
    ]
    return {
        f"{_FOLDER}/site/coverage/{p.relative_to(root).as_posix()}": p.read_bytes() for p in wanted
    }


def _parse_file(row: dict[str, Any]) -> MeasuredFile:
    return MeasuredFile(
        statements=frozenset(int(n) for n in row["statements"]),
        missing=frozenset(int(n) for n in row["missing"]),
        branches=tuple((int(a), int(b)) for a, b in row["branches"]),
        tests=tuple(str(t)[:200] for t in row["tests"][:50]),
    )
