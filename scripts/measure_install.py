"""Measures what `pip install regreen` puts on a machine: its size, and the CPU time until `--help` is printed.

Builds the wheel of this checkout, installs it with the versions of requirements.lock into a fresh environment, and
prints one JSON document. `--extra types` measures the installation with an extra. Needs `make setup` and an index.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).parents[1]
HELP_PAGES = ((), ("review",), ("fix",), ("bisect",))
REPEATS = 7


def main() -> None:
    """Install, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extra", action="append", default=[], help="An extra to install as well.")
    extras = parser.parse_args().extra
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        packages = install(place, build_wheel(place), extras)
        sizes = {item.name: disk_usage(item) for item in packages.iterdir()}
        largest = sorted(sizes.items(), key=lambda item: -item[1])[:8]
        program = place / "venv/bin/regreen"
        document = {
            "extras": extras,
            "megabytes": round(disk_usage(place / "venv") / 1e6, 1),
            "megabytes_of_bytecode": round(
                sum(disk_usage(folder) for folder in place.rglob("__pycache__")) / 1e6, 1
            ),
            "largest_packages": {name: round(size / 1e6, 1) for name, size in largest},
            "cpu_seconds": {
                " ".join(("regreen", *page, "--help")): measure_cpu([program, *page, "--help"])
                for page in HELP_PAGES
            },
            "python": sys.version.split()[0],
        }
    print(json.dumps(document, indent=1))


def build_wheel(place: Path) -> Path:
    """The wheel of this checkout."""
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(argv, cwd=TOP, check=True, capture_output=True)
    return next(place.glob("*.whl"))


def install(place: Path, wheel: Path, extras: list[str]) -> Path:
    """Install the wheel into a fresh environment; return where its packages lie."""
    pins = re.findall(r"^[a-z0-9][^ ]*==[^ ]+(?: ;[^\\\n]*)?", (TOP / "requirements.lock").read_text(), re.MULTILINE)  # fmt: skip
    (place / "pins.txt").write_text("\n".join(pins))
    uv, python = str(TOP / ".uv/bin/uv"), str(place / "venv/bin/python")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(place / "venv")], check=True)  # fmt: skip
    wanted = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    # By pip, which compiles every module: uv does not, and installs less.
    subprocess.run(
        [str(TOP / ".uv/bin/python"), "-m", "pip", "--python", python, "install", "--quiet",
         "--constraint", str(place / "pins.txt"), wanted],
        check=True,
    )  # fmt: skip
    return next((place / "venv/lib").glob("python3*/site-packages"))


def disk_usage(place: Path) -> int:
    """The bytes that a file or folder takes on the disk."""
    paths = [place, *place.rglob("*")] if place.is_dir() and not place.is_symlink() else [place]
    return sum(path.lstat().st_blocks * 512 for path in paths)


def measure_cpu(argv: list[str | Path]) -> float:
    """The least CPU time of several runs, in seconds."""
    times = []
    for _ in range(REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(argv, check=True, capture_output=True, env={"PATH": os.defpath})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return round(min(times), 3)


if __name__ == "__main__":
    main()
