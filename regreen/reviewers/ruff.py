"""ruff over a change's Python files, with our own rules and never the repository's configuration."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from regreen.errors import OutsideError
from regreen.reviewers.fresh import Hit
from regreen.reviewers.materialise import laid_out

SYNTAX = "invalid-syntax"
_SECONDS = 300


def hits(files: Mapping[str, str], rules: Sequence[str], *, python: str = "py313") -> list[Hit]:
    """What ruff finds in these files; a file that does not parse has one hit named `SYNTAX`.

    Raises:
        OutsideError: ruff itself failed.
    """
    if not files:
        return []
    with laid_out(files) as (root, written):
        command = [
            *(_ruff(), "check", "--isolated", "--no-cache", "--preview", "--exit-zero", "--quiet"),
            *("--output-format", "json", "--target-version", python, "--select", ",".join(rules)),
            *("--config", "lint.explicit-preview-rules = true", "."),
        ]
        try:
            done = subprocess.run(
                command, cwd=root, capture_output=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            message = f"ruff took more than {_SECONDS} s"
            raise OutsideError(message) from None
        if done.returncode != 0:
            message = f"ruff failed: {done.stderr.decode('utf-8', 'replace')[:300]}"
            raise OutsideError(message)
        return [hit for row in json.loads(done.stdout) if (hit := _hit(row, written))]


def _ruff() -> str:
    from ruff import find_ruff_bin  # type: ignore[import-untyped]

    return str(find_ruff_bin())


def _hit(row: dict[str, object], written: Mapping[str, str]) -> Hit | None:
    path = written.get(str(Path(str(row["filename"])).resolve()))
    start, end = row["location"], row["end_location"]
    if path is None or not isinstance(start, dict) or not isinstance(end, dict):
        return None
    rule = str(row["code"] or SYNTAX)
    return Hit(rule, path, int(start["row"]), int(end["row"]), str(row["message"]))
