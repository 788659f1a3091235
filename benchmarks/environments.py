"""How often the environment of a repository is inferred, and its tests start, with nothing said about either.

Each argument is a repository, or REPOSITORY@REVISION. For each, `regreen env` infers the environment, sets it up and
runs the test command in the sandbox: the row says whether that was inferred, whether tests were collected and run,
the reason where they were not, and the seconds. A summary line closes the table.

    python benchmarks/environments.py --minutes 10 CLONE CLONE@v1.2 ...
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time


def measure(place: str, minutes: float, sandbox: str) -> dict[str, object]:
    repo, _, rev = place.partition("@")
    argv = [sys.executable, "-m", "regreen", "env", "--repo", repo, "--rev", rev or "HEAD"]
    argv += ["--format", "json", "--max-minutes", str(minutes), "--sandbox", sandbox]
    started = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - started
    try:
        document = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines() or ["no output"]
        document = {"works": False, "reason": lines[-1], "setup": None}
    return {"repo": place, "seconds": round(seconds), **document}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", nargs="+", metavar="REPOSITORY[@REVISION]")
    parser.add_argument("--minutes", type=float, default=10.0, help="For one repository.")
    parser.add_argument("--sandbox", default="auto", help="As of `regreen env`.")
    parser.add_argument("--json", action="store_true", help="One JSON document a line.")
    options = parser.parse_args()
    rows = []
    for place in options.places:
        row = measure(place, options.minutes, options.sandbox)
        rows.append(row)
        inferred = "yes" if row.get("setup") or row.get("test") else "no"
        starts = "yes" if row["works"] else "no"
        name = place.rstrip("/").rsplit("/", 1)[-1]
        text = f"{name:<24} inferred {inferred:<3}  starts {starts:<3}  {row['seconds']:>4} s  {row['reason']}"
        print(json.dumps(row) if options.json else text, flush=True)
    started = sum(row["works"] is True for row in rows)
    slow = sum(int(str(row["seconds"])) > options.minutes * 60 + 30 for row in rows)
    print(
        f"{started} of {len(rows)} start; {slow} ran past {options.minutes:g} minutes",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
