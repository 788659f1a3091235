"""Measures `regreen why` on made scenes: released projects' own code and tests with a planted cause, whose label is known.

    python benchmarks/why.py [--scenes N] [--seed S] [--kinds change,main,...] [--minutes M] [--sdists DIR]
        [--project RELEASE,MODULE,TESTS ...]

Each scene is a repository with a base and a change. The planted fault is run once in the sandbox: one that no test notices
is replaced, and its output is the log of CI. A fault beside a flaky test is run without that test's flakiness first, one of
memory or time as an error in the same place. Prints one JSON line a scene and a summary. `--sdists` keeps what was fetched.
"""  # fmt: skip

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from regreen.languages.registry import find_mutation

# release, module, the tests of that module
PROJECTS = (
    ("cachetools==5.5.0", "src/cachetools/__init__.py", "tests/test_cache.py"),
    ("funcy==2.0", "funcy/seqs.py", "tests/test_seqs.py"),
    ("isodate==0.7.2", "src/isodate/duration.py", "tests/test_duration.py"),
    ("jmespath==1.0.1", "jmespath/lexer.py", "tests/test_parser.py"),
    ("parse==1.20.2", "parse.py", "tests/test_parse.py"),
    ("pathspec==0.12.1", "pathspec/util.py", "tests/test_01_util.py"),
    ("portion==2.5.0", "portion/interval.py", "tests/test_interval.py"),
    ("tabulate==0.9.0", "tabulate/__init__.py", "test/test_output.py"),
    ("uritemplate==4.1.1", "uritemplate/variable.py", "tests/test_uritemplate.py"),
    ("webcolors==24.8.0", "src/webcolors/_conversion.py", "tests/test_conversion.py"),
    ("funcy==2.0", "funcy/colls.py", "tests/test_colls.py"),
    ("portion==2.5.0", "portion/dict.py", "tests/test_dict.py"),
)
RIGHT = {
    "change": {"change"},
    "main": {"main"},
    "flaky": {"flaky"},
    "near_flake": {"flaky"},  # the change is harmless, in the module that the flaky test tests
    "world": {"world"},
    "memory": {"change"},
    "timeout": {"change"},
    "pair": {"change"},  # a fault of the change beside a flaky test
    "main_pair": {"main"},  # a fault of the base beside a flaky test
    "vanished": {"flaky", "unknown", "infrastructure"},
    "other_failure": {"change"},
    "new_test": {"change"},
}
KINDS = tuple(RIGHT)
REAL = set(KINDS) - {"flaky", "near_flake", "vanished"}
SETUP = "pip install -q pytest sortedcontainers whatever"
WHEELS = f"{SETUP} && pip install -q --no-index --find-links wheels scenedep"
PYTEST = (
    "python",
    "-m",
    "pytest",
    "-q",
    "-o",
    "addopts=",
    "-o",
    "pythonpath=. src",
)  # a project's own options ask for plugins
FAULTS = ("raise KeyError('scene')", "return None", "return 17", "raise ValueError('wrong')")
MEMORY = "return len([bytearray(64 * 1024**2).replace(b'0', b'1') for _ in range(128)])"


class NoScene(Exception):
    """A project's tests notice none of the faults that were tried."""


def fetch(releases: set[str], folder: Path, work: Path) -> dict[str, Path]:
    """The trees of the releases, by requirement, below `work`; `folder` holds what was fetched."""
    pip = shutil.which("pip")  # a virtual environment need not have one of its own
    trees = {}
    for name in sorted(releases):
        stem = name.replace("==", "-")
        if not (folder / f"{stem}.tar.gz").exists():
            words = [pip or "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(folder), name]  # fmt: skip
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"not fetched: {name}: {done.stderr[-200:]}", file=sys.stderr)
                continue
        with tarfile.open(folder / f"{stem}.tar.gz") as archive:
            archive.extractall(work / "trees", filter="data")
        trees[name] = work / "trees" / stem
    if not trees:
        sys.exit("no release could be fetched: pip has to reach a package index")
    return trees


def git(repo: Path, *words: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(repo), *identity, *words], check=True, capture_output=True)


def commit(repo: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    git(repo, "add", "-A", "-f")
    git(repo, "commit", "-qm", message)


def make_wheel(folder: Path, version: str, factor: int) -> None:
    folder.mkdir(exist_ok=True)
    info = f"scenedep-{version}.dist-info"
    with zipfile.ZipFile(folder / f"scenedep-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr("scenedep.py", f"FACTOR = {factor}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: scenedep\nVersion: {version}\n")  # fmt: skip
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: scene\nRoot-Is-Purelib: true\nTag: py3-none-any\n")  # fmt: skip
        archive.writestr(f"{info}/RECORD", f"scenedep.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")  # fmt: skip


def plant(text: str, line: str, dice: random.Random, names: set[str] | None = None) -> str:
    """The module with `line` as the first statement of one function; `names`: one of these."""
    found = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and (names is None or node.name in names)
        if node.body[-1].lineno > node.lineno and not node.name.startswith("__")
    ]
    if not found:
        raise NoScene("no function fits")
    node = dice.choice(sorted(found, key=lambda one: one.lineno))
    first = node.body[1] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body[0]  # fmt: skip
    lines = text.splitlines(keepends=True)
    lines.insert(first.lineno - 1, f"{' ' * first.col_offset}{line}\n")
    return "".join(lines)


def make_faults(module: str, text: str, names: set[str]) -> list[str]:
    """The module with one small fault in a function that has one of these names."""
    make_mutants = find_mutation(module)
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    lines = [number for node in functions if node.name in names for number in range(node.lineno + 1, (node.end_lineno or 0) + 1)]  # fmt: skip
    return [edit.apply_to(text) for edit in make_mutants(text, lines)] if make_mutants else []


def run_tests(tree: Path, tests: str, setup: str, home: dict[str, str]) -> tuple[str, bool]:
    """The output of the tests of a tree in the sandbox, and whether they failed."""
    words = ["sandbox", "--tree", str(tree), "--setup", setup, "--timeout", "60", "--format", "json"]  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "regreen", *words, "--", *PYTEST, tests], capture_output=True, text=True, check=False, env=home)  # fmt: skip
    answer = json.loads(done.stdout)
    return answer["stdout"], answer["exit_code"] == 1


def run_with(files: dict[str, str], repo: Path, place: Path, *, tests: str, setup: str, home: dict[str, str]) -> tuple[str, bool]:  # fmt: skip
    """The output of the tests of a repository's files with some replaced, and whether they failed."""
    shutil.copytree(repo, place, ignore=shutil.ignore_patterns(".git"))
    for name, text in files.items():
        (place / name).write_text(text)
    output, failed = run_tests(place, tests, setup, home)
    shutil.rmtree(place)
    return output, failed


def make(  # noqa: C901, PLR0912, PLR0915, PLR0917 - one case a kind of scene
    kind: str, project: tuple[str, str, str], tree: Path, place: Path, dice: random.Random, home: dict[str, str]
) -> list[str]:  # fmt: skip
    """Make the scene's repository; returns further options."""
    _, module, tests = project
    repo = place / "repo"
    good, checks = (tree / module).read_text(), (tree / tests).read_text()
    used = set(re.findall(r"\w+", checks))
    rate = dice.choice([0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
    fault, other = dice.sample(FAULTS, 2)
    setup, more = SETUP, []

    def spoil(line: str, text: str = good) -> str:
        if dice.random() < 0.5 and line in FAULTS and (edits := make_faults(module, text, used)):
            return dice.choice(edits)
        return plant(text, line, dice, used)

    def make_flaky(chance: float) -> str:
        line = f"import random; assert random.SystemRandom().random() >= {chance}"
        return plant(checks, line, dice, {name for name in used if name.startswith("test")})

    state = dice.getstate()
    for _ in range(8):
        base: dict[str, str] = {"scene_notes.md": "one\n"}
        change: dict[str, str] = {"scene_notes.md": "two\n"}
        red: dict[str, str] = {}  # what makes the log of CI red; default: the change
        proof: dict[str, str] | None = (
            None  # what shows that the planted fault alone is noticed, where the log does not
        )
        match kind:
            case "change":
                change = {module: spoil(fault)}
            case "main":
                base[module], change = spoil(fault), {"scene_other.py": "X = 1\n"}
            case "flaky":
                state = dice.getstate()
                base[tests], change = make_flaky(rate), {"scene_other.py": "X = 1\n"}
                dice.setstate(state)
                red = {tests: make_flaky(1.0)}
            case "near_flake":
                state = dice.getstate()
                base[tests], change = make_flaky(rate), {module: spoil("_scene = None")}
                dice.setstate(state)
                red = {tests: make_flaky(1.0)}
            case "world":
                for version, factor in (("1.2", 2), ("1.3", 3)):
                    make_wheel(place / "wheels", version, factor)
                setup = WHEELS
                base[module] = spoil("import scenedep; assert scenedep.FACTOR == 2")
            case "memory" | "timeout":
                line, more = MEMORY, []
                if kind == "timeout":
                    line, more = "import time; time.sleep(10_000)", ["--timeout", "20"]
                state = dice.getstate()
                change = {module: plant(good, line, dice, used)}
                dice.setstate(state)
                proof = {module: plant(good, "raise KeyError('scene')", dice, used)}
            case "pair":
                base[tests], change, proof = (
                    make_flaky(rate),
                    {module: spoil(fault)},
                    {tests: checks},
                )
            case "main_pair":
                base |= {tests: make_flaky(rate), module: spoil(fault)}
                proof = {tests: checks}
            case "vanished":
                red = {module: spoil(fault)}
            case "other_failure":
                state = dice.getstate()
                base[module] = spoil("raise OSError('the base is red')")
                dice.setstate(state)
                change = {module: spoil(other)}
            case "new_test":
                change = {"tests_new/test_new.py": "def test_new():\n    assert 1 + 1 == 3\n"}
        shutil.rmtree(repo, ignore_errors=True)
        shutil.copytree(tree, repo)
        if kind == "world":
            shutil.copytree(place / "wheels", repo / "wheels")
        git(repo, "init", "-q", "-b", "main")
        commit(repo, {"scene_notes.md": "zero\n"}, "first")
        commit(repo, base, "base")
        git(repo, "checkout", "-q", "-b", "change")
        commit(repo, change, "change")
        how: dict[str, Any] = {
            "tests": "tests_new" if kind == "new_test" else tests,
            "setup": setup,
            "home": home,
        }
        if proof is not None and not run_with(proof, repo, place / "proof", **how)[1]:
            continue
        if kind in {"memory", "timeout"}:
            return ["--base", "main", "--setup", setup, *more]
        output, failed = run_with(red, repo, place / "ci", **how)
        if failed and ("flak" not in kind or re.search(r"(?m)^=* ?1 failed", output)):
            (place / "red.log").write_text(output)
            if kind == "world":
                (place / "green.log").write_text("Successfully installed scenedep-1.2\n")
                more = ["--green-log", str(place / "green.log")]
            return ["--base", "main", "--setup", setup, "--log", str(place / "red.log"), *more]
    message = f"no test of {module} notices a fault"
    raise NoScene(message)


def summarize(rows: list[dict[str, object]]) -> dict[str, object]:
    decided = [row for row in rows if row["verdict"] not in {"unknown", "error"}]
    real = [row for row in rows if row["kind"] in REAL]
    return {
        "scenes": len(rows),
        "decided": round(len(decided) / len(rows), 3),
        "right_of_decided": round(sum(bool(row["right"]) for row in decided) / max(1, len(decided)), 3),
        "real_called_flaky": f"{sum(row['verdict'] == 'flaky' for row in real)} of {len(real)}",
        "flakes_blamed": f"{sum('flak' in str(row['kind']) and row['verdict'] in {'change', 'main'} for row in rows)} of {sum('flak' in str(row['kind']) for row in rows)}",
        "real_median_runs": sorted(int(str(row["runs"])) for row in real)[len(real) // 2] if real else 0,
        "median_runs": sorted(int(str(row["runs"])) for row in rows)[len(rows) // 2],
        "median_seconds": sorted(float(str(row["seconds"])) for row in rows)[len(rows) // 2],
        "by_kind": {kind: Counter(str(row["verdict"]) for row in rows if row["kind"] == kind) for kind in KINDS},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--sdists", type=Path)
    parser.add_argument("--project", action="append", type=lambda text: tuple(text.split(",")))
    options = parser.parse_args()
    dice, folder, end = random.Random(options.seed), Path(mkdtemp(prefix="why-")), time.monotonic() + 60 * options.minutes  # fmt: skip
    chosen = options.project or PROJECTS
    trees = fetch({project[0] for project in chosen}, options.sdists or folder, folder)
    kinds = options.kinds.split(",")
    home, rows = os.environ | {"REGREEN_HOME": str(folder / "home")}, []
    projects = [project for project in chosen if project[0] in trees]
    is_green: dict[tuple[str, str, str], bool] = {}
    for number in range(options.scenes):
        if time.monotonic() > end:
            break
        kind, place = kinds[number % len(kinds)], folder / str(number)
        place.mkdir()
        for project in dice.sample(projects, len(projects)):
            if project not in is_green:
                output, _ = run_tests(trees[project[0]], project[2], SETUP, home)
                is_green[project] = bool(re.search(r"(?m)^=* ?\d+ passed", output)) and " failed" not in output  # fmt: skip
                print(f"{project[1]}: {'used' if is_green[project] else 'red as it is: ' + output[-200:]}", file=sys.stderr)  # fmt: skip
            if not is_green[project]:
                continue
            try:
                words = make(kind, project, trees[project[0]], place, dice, home)
                break
            except NoScene as error:
                print(error, file=sys.stderr)
        tests = ["tests_new", project[2]] if kind == "new_test" else [project[2]]
        started = time.monotonic()
        command = [sys.executable, "-m", "regreen", "why", "--repo", str(place / "repo"), "--format", "json", "-q", *words, "--", *PYTEST, *tests]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=home)
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            answer = {"verdict": "error", "reason": done.stderr[-300:], "runs": []}
        row = {
            "kind": kind,
            "module": project[1],
            "verdict": answer["verdict"],
            "right": answer["verdict"] in RIGHT[kind],
            "runs": len(answer["runs"]),
            "seconds": round(time.monotonic() - started, 1),
            "reason": answer["reason"],
            "ran": " ".join(f"{run['where']}:{run['outcome']}" for run in answer["runs"]),
            "package": answer.get("package"),
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
        shutil.rmtree(place)
    print(json.dumps(summarize(rows)))
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
