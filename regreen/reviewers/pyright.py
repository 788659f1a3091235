"""basedpyright over a change's Python files, with our own rules, and the repository's files as data around them.

It never sees an interpreter or an installed package: what a library offers is unknown to it, and it is silent
where it does not know.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from regreen.errors import OutsideError
from regreen.reviewers.fresh import Hit
from regreen.reviewers.materialise import laid_out

_SECONDS = 240


def hits(
    files: Mapping[str, str | bytes] | Iterable[tuple[str, str | bytes]],
    targets: Sequence[str],
    rules: Sequence[str],
    *,
    python: str = "3.13",
) -> list[Hit]:
    """What basedpyright finds in `targets`, with all of `files` there to be imported.

    Raises:
        OutsideError: it failed or took too long.
    """
    if not targets:
        return []
    with laid_out(files) as (root, written):
        config = {
            "include": sorted(set(targets) & set(written.values())),
            "typeCheckingMode": "off",
            "pythonVersion": python,
            "pythonPlatform": "All",
            "useLibraryCodeForTypes": False,
            "extraPaths": [p for p in ("src", "lib") if (root / p).is_dir()],
            **dict.fromkeys(rules, "error"),
        }
        place = root / "regreen-pyright.json"
        place.write_text(json.dumps(config))
        output = _run(["--outputjson", "-p", place.name], root)
    return [h for row in _rows(output) if (h := _hit(row, written)) and h.rule in rules]


def _run(options: Sequence[str], root: Path) -> bytes:
    command = [sys.executable, "-I", "-m", "basedpyright", *options]
    # no PATH: with an interpreter in sight it would look into that interpreter's packages
    environment = {
        "PATH": "/nonexistent",
        "HOME": str(root),
        "NODE_OPTIONS": "--max-old-space-size=1536",
    }
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        message = f"basedpyright took more than {_SECONDS} s"
        raise OutsideError(message) from None
    if done.returncode not in {0, 1}:
        message = f"basedpyright failed: {done.stderr.decode('utf-8', 'replace')[-300:]}"
        raise OutsideError(message)
    return done.stdout


def _rows(output: bytes) -> list[dict[str, object]]:
    try:
        rows = json.loads(output)["generalDiagnostics"]
    except (ValueError, KeyError) as error:
        raise OutsideError("basedpyright answered with something else than JSON") from error
    return [r for r in rows if isinstance(r, dict)]


def _hit(row: dict[str, object], written: Mapping[str, str]) -> Hit | None:
    path = written.get(str(Path(str(row["file"])).resolve()))
    place = row["range"]
    if path is None or not isinstance(place, dict):
        return None
    first, last = int(place["start"]["line"]) + 1, int(place["end"]["line"]) + 1
    return Hit(str(row.get("rule", "")), path, first, last, str(row["message"]))
