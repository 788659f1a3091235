"""Which upgrade broke it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial

from regreen.bisect.bisection import find_blamed_upgrade
from regreen.bisect.commit_runner import FailureJudge
from regreen.bisect.verdict_memory import CommitRun
from regreen.logs.failure_signature import FailureSignature
from regreen.packages.lock_edits import (
    PackageUpgrade,
    apply_first_upgrades,
    find_upgrades,
    is_matching_manifest,
    pins_versions,
)
from regreen.runs.trial import Trial
from tests.growth import growth

OLD = "# pinned\na==1.0\nB.c==2.0 \\\n    --hash=sha256:aa\nd[x]==3.0 ; python_version > '3'\ngone==1\n"
NEW = "# pinned\na==1.1\nB.c==2.1 \\\n    --hash=sha256:bb\nd[x]==3.1 ; python_version > '3'\ncome==1\n"


def test_upgrades_are_read_from_two_files() -> None:
    assert find_upgrades("requirements.txt", OLD, NEW) == (
        PackageUpgrade("come", None, "1"),
        PackageUpgrade("a", "1.0", "1.1"),
        PackageUpgrade("b-c", "2.0", "2.1"),
        PackageUpgrade("d", "3.0", "3.1"),
        PackageUpgrade("gone", "1", None),
    )
    assert str(PackageUpgrade("gone", "1", None)) == "gone 1 -> removed"


def test_a_file_can_be_upgraded_in_part() -> None:
    assert apply_first_upgrades("requirements.txt", OLD, NEW, 5) == NEW
    half = apply_first_upgrades("requirements.txt", OLD, NEW, 3)
    assert (
        find_upgrades("requirements.txt", OLD, half)
        == find_upgrades("requirements.txt", OLD, NEW)[:3]
    )
    assert "--hash=sha256:bb" in half
    assert (
        find_upgrades(
            "requirements.txt", OLD, apply_first_upgrades("requirements.txt", OLD, NEW, 0)
        )
        == ()
    )


UV = """version = 1
requires-python = ">=3.11"

[[package]]
name = "{first}"
version = "{one}"
source = {{ registry = "index" }}

[package.optional-dependencies]
more = [{{ name = "other" }}]

[[package]]
name = "other"
version = "{two}"
"""
PIPFILE = {"_meta": {"hash": {}}, "default": {"a": {"version": "==1"}, "b": {"version": "==1"}}}
NPM = {
    "lockfileVersion": 2,
    "packages": {"": {"name": "us"}, "node_modules/a": {"version": "1"}, "node_modules/b": {"version": "1"}},
    "dependencies": {"a": {"version": "1"}, "b": {"version": "1"}},
}  # fmt: skip


def test_locks_of_uv_and_poetry_are_taken_apart_by_package() -> None:
    old = UV.format(first="a", one="1.0", two="1.0")
    new = UV.format(first="a", one="2.0", two="3.0")
    for path in ("uv.lock", "sub/poetry.lock"):
        assert find_upgrades(path, old, new) == (
            PackageUpgrade("a", "1.0", "2.0"),
            PackageUpgrade("other", "1.0", "3.0"),
        )
        assert apply_first_upgrades(path, old, new, 1) == UV.format(first="a", one="2.0", two="1.0")
        assert apply_first_upgrades(path, old, new, 0) == old
        assert apply_first_upgrades(path, old, new, 2) == new


def test_locks_in_json_are_taken_apart_by_package() -> None:
    moved = json.loads(json.dumps(PIPFILE).replace("==1", "==2"))
    half = json.loads(
        apply_first_upgrades("Pipfile.lock", json.dumps(PIPFILE), json.dumps(moved), 1)
    )
    assert half["default"] == {"a": {"version": "==2"}, "b": {"version": "==1"}}
    newer = json.loads(json.dumps(NPM).replace('"version": "1"', '"version": "2"'))
    half = json.loads(
        apply_first_upgrades("package-lock.json", json.dumps(NPM), json.dumps(newer), 1)
    )
    assert half["packages"]["node_modules/a"] == {"version": "2"}
    assert half["packages"]["node_modules/b"] == half["dependencies"]["b"] == {"version": "1"}


def test_a_lock_that_is_no_json_names_nothing() -> None:
    assert find_upgrades("Pipfile.lock", "{", "[]") == ()


def test_the_upgrade_that_breaks_it_is_found() -> None:
    old = "".join(f"p{at}==1\n" for at in range(20))
    new = "".join(f"p{at}==2\n" for at in range(20))

    def run(trial: Trial) -> CommitRun:
        broken = re.search(r"^p13==2$", trial.overlay["requirements.txt"].decode(), re.MULTILINE)
        seen = FailureSignature("exit", 1) if broken else None
        return CommitRun("s", "fail" if broken else "pass", seen, 0.1, "exit 1")

    found = find_blamed_upgrade(
        Trial(("x",)), "requirements.txt", old, new, run=run, judge=FailureJudge("exit")
    )
    assert found.upgrade == PackageUpgrade("p13", "1", "2")
    assert found.tests < 16


def test_a_line_that_goes_on_without_end_is_read_in_linear_time() -> None:
    def prepare(size: int) -> Callable[[], object]:
        return partial(find_upgrades, "requirements.txt", "a\\\n" * (size // 3), "")

    assert growth(prepare, 300_000) < 6


def test_a_lock_that_is_nested_without_end_pins_nothing() -> None:
    assert find_upgrades("package-lock.json", "[" * 200_000, "{}") == ()


def test_files_that_pin_are_told_from_others() -> None:
    for path in (
        "requirements/dev-requirements.txt",
        "constraints.txt",
        "a/uv.lock",
        "package-lock.json",
    ):
        assert pins_versions(path)
    assert not pins_versions("src/requirements.py")
    assert not pins_versions("pyproject.toml")
    assert is_matching_manifest("pyproject.toml")
