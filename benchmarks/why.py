"""Measures `regreen why` on made scenes: real projects' trees with a planted cause, whose label is known.

    python benchmarks/why.py [--scenes N] [--seed S] [--kinds change,main,...] [--minutes M]

Each scene is a repository with a base and a change on a released project's tree (fetched with pip as an sdist). Prints one JSON line
a scene and a summary. A verdict is right where it is the label; a vanished failure may be flaky or unknown.
"""  # fmt: skip

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter
from pathlib import Path
from tempfile import mkdtemp

PROJECTS = ("toolz==1.0.0", "inflection==0.5.1", "iniconfig==2.0.0", "sortedcontainers==2.4.0")
KINDS = (
    "change",
    "main",
    "flaky",
    "world",
    "memory",
    "timeout",
    "pair",
    "vanished",
    "other_failure",
    "new_test",
)
RIGHT = {
    "change": {"change"},
    "main": {"main"},
    "flaky": {"flaky"},
    "world": {"world"},
    "memory": {"change"},
    "timeout": {"change"},
    "pair": {"change"},
    "vanished": {"flaky", "unknown", "infrastructure"},
    "other_failure": {"change"},
    "new_test": {"change"},
}
REAL = {"change", "main", "world", "memory", "timeout", "pair", "other_failure", "new_test"}
TEST = "from scene_part import compute\n\n\ndef test_compute():\n    assert compute(20) == 42\n\n\ndef test_zero():\n    assert compute(-1) == 0\n"
GOOD = "def compute(value):\n    return 2 * (value + 1)\n"


def fetch(folder: Path) -> list[Path]:
    trees = []
    for name in PROJECTS:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--no-binary",
                ":all:",
                "--no-build-isolation",
                "-d",
                str(folder),
                name,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        found = sorted(folder.glob(f"{name.partition('==')[0]}-*.tar.gz"))
        if not found:
            print(f"not fetched: {name}: {done.stderr[-200:]}", file=sys.stderr)
            continue
        with tarfile.open(found[0]) as archive:
            archive.extractall(folder / "trees", filter="data")
        trees.append(folder / "trees" / found[0].name.removesuffix(".tar.gz"))
    return trees


def git(repo: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-C", str(repo), "-c", "user.name=A", "-c", "user.email=a@b", *words],
        check=True,
        capture_output=True,
    )


def write(repo: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)


def wheel(folder: Path, version: str, factor: int) -> None:
    folder.mkdir(exist_ok=True)
    info = f"scenedep-{version}.dist-info"
    with zipfile.ZipFile(folder / f"scenedep-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr("scenedep.py", f"FACTOR = {factor}\n")
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: scenedep\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: scene\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(
            f"{info}/RECORD", f"scenedep.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )


def flake(rate: float) -> str:
    return f"import random\n\n\ndef test_sometimes():\n    assert random.SystemRandom().random() >= {rate}\n"


def make(kind: str, tree: Path, place: Path, dice: random.Random) -> list[str]:
    """Make the scene's repository; returns further options."""
    repo = place / "repo"
    shutil.copytree(tree, repo)
    git(repo, "init", "-q", "-b", "main")
    bad = dice.choice(
        [
            "def compute(value):\n    return 2 * (value + 2)\n",
            "def compute(value):\n    raise KeyError('scene')\n",
            "def compute(value):\n    return value.missing\n",
        ]
    )
    rate = dice.choice([0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
    setup, more = "pip install -q pytest", []
    base = {
        "scene_part.py": GOOD,
        "scene_tests/test_scene.py": TEST,
        "conftest.py": "",
        "scene_notes.md": "one\n",
    }
    change = {"scene_notes.md": "two\n"}
    match kind:
        case "change":
            change = {"scene_part.py": bad}
        case "main":
            base["scene_part.py"] = bad
            change["scene_other.py"] = "X = 1\n"
        case "flaky":
            base["scene_tests/test_more.py"] = flake(rate)
            change["scene_other.py"] = "X = 1\n"
        case "world":
            wheel(repo / "wheels", "1.2", 2)
            wheel(repo / "wheels", "1.3", 3)
            base["scene_part.py"] = (
                "import scenedep\n\n\ndef compute(value):\n    return scenedep.FACTOR * (value + 1)\n"
            )
            setup = (
                "pip install -q pytest && pip install -q --no-index --find-links wheels scenedep"
            )
            (place / "green.log").write_text("Successfully installed scenedep-1.2\n")
            more = ["--green-log", str(place / "green.log")]
        case "memory":
            change = {
                "scene_part.py": "def compute(value):\n    return len(bytearray(b'x' * (6 * 1024**3)))\n"
            }
        case "timeout":
            change = {"scene_part.py": "def compute(value):\n    while True:\n        pass\n"}
            more = ["--timeout", "8"]
        case "pair":
            base["scene_tests/test_more.py"] = flake(rate)
            change = {"scene_part.py": bad}
        case "vanished":
            (place / "red.log").write_text(
                "scene_tests/test_scene.py::test_compute FAILED\n=== short test summary info ===\nFAILED scene_tests/test_scene.py::test_compute - AssertionError: assert 1 == 42\n=== 1 failed, 1 passed in 0.10s ===\n"
            )
            more = ["--log", str(place / "red.log")]
        case "other_failure":
            base["scene_part.py"] = "def compute(value):\n    raise OSError('the base is red')\n"
            change = {"scene_part.py": "def compute(value):\n    return 2 * (value + 2)\n"}
        case "new_test":
            change = {
                "scene_tests/test_new.py": "from scene_part import compute\n\n\ndef test_new():\n    assert compute(3) == 9\n"
            }
    write(repo, base)
    git(repo, "add", "-A", "-f")
    git(repo, "commit", "-qm", "base")
    git(repo, "checkout", "-q", "-b", "change")
    write(repo, change)
    git(repo, "add", "-A", "-f")
    git(repo, "commit", "-qm", "change")
    return ["--base", "main", "--setup", setup, *more]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()
    dice, folder, end = (
        random.Random(options.seed),
        Path(mkdtemp(prefix="why-")),
        time.monotonic() + 60 * options.minutes,
    )
    trees, kinds = fetch(folder), options.kinds.split(",")
    rows = []
    for number in range(options.scenes):
        if time.monotonic() > end:
            break
        kind, place = kinds[number % len(kinds)], folder / str(number)
        place.mkdir()
        words = make(kind, trees[number % len(trees)], place, dice)
        started = time.monotonic()
        command = [
            sys.executable,
            "-m",
            "regreen",
            "why",
            "--repo",
            str(place / "repo"),
            "--format",
            "json",
            "-q",
            *words,
            "--",
            "python",
            "-m",
            "pytest",
            "-q",
            "scene_tests",
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"REGREEN_HOME": str(folder / "home")},
        )
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            answer = {"verdict": "error", "reason": done.stderr[-300:], "runs": []}
        row = {
            "kind": kind,
            "verdict": answer["verdict"],
            "right": answer["verdict"] in RIGHT[kind],
            "runs": len(answer["runs"]),
            "seconds": round(time.monotonic() - started, 1),
            "reason": answer["reason"],
            "package": answer.get("package"),
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
        shutil.rmtree(place / "repo")
    decided = [row for row in rows if row["verdict"] not in {"unknown", "error"}]
    real = [row for row in rows if row["kind"] in REAL]
    print(
        json.dumps(
            {
                "scenes": len(rows),
                "decided": len(decided) / len(rows),
                "right_of_decided": sum(row["right"] for row in decided) / max(1, len(decided)),
                "real_called_flaky": sum(row["verdict"] == "flaky" for row in real)
                / max(1, len(real)),
                "flakes_blamed_on_change": sum(
                    row["kind"] == "flaky" and row["verdict"] == "change" for row in rows
                ),
                "median_runs": sorted(row["runs"] for row in rows)[len(rows) // 2],
                "by_kind": {
                    kind: Counter(row["verdict"] for row in rows if row["kind"] == kind)
                    for kind in kinds
                },
            }
        )
    )
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
