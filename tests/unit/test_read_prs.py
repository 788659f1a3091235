"""The benchmark that has a model read pull requests: its usage is what it takes."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

READ = Path(__file__).parents[2] / "benchmarks" / "read_prs.py"


def test_the_sets_may_stand_behind_an_option_as_the_usage_shows_them(tmp_path: Path) -> None:
    sets = [tmp_path / name for name in ("bug.jsonl.gz", "clean.jsonl.gz")]
    for path in sets:
        path.write_bytes(gzip.compress(b""))
    done = subprocess.run(
        [sys.executable, READ, "run", tmp_path / "out", "--only-model", *sets],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
