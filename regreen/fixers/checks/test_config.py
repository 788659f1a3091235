"""How the tests are run: files that only say that, and the sections about it in files that are about more."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from configparser import Error as ConfigError

from regreen.fixers.checks.change import FileChange, Level, Reason

_HOOKS = re.compile(
    r"def (pytest_(?:collection_modifyitems|runtest_\w+|sessionfinish|ignore_collect|pyfunc_call|report\w*|"
    r"exception_interact|unconfigure|cmdline_main|configure|deselected|make\w*|assertrepr_compare|collection\w*))\b"
)


def config_changed(file: FileChange, usual: Level) -> Reason:
    """Why a change of a conftest or of test configuration cannot pass unseen."""
    name = file.path.rsplit("/", 1)[-1]
    hook = _HOOKS.search(file.added_text)
    if name in {"sitecustomize.py", "usercustomize.py"} or name.endswith(".pth"):
        return Reason(
            "tests_unchanged",
            f"{file.path} runs before every Python program, tests included",
            "deny",
        )
    if hook or "os._exit" in file.added_text or "exitstatus" in file.added_text:
        what = hook.group(1) if hook else "the exit status"
        return Reason(
            "tests_unchanged",
            f"{file.path} gains {what}, which can decide what a test run says",
            "deny",
        )
    if file.new is None:
        return Reason(
            "tests_unchanged", f"{file.path}, which says how tests run, is removed", "deny"
        )
    return Reason("tests_unchanged", f"{file.path} says how tests run, and changes", usual)


def test_sections_kept(file: FileChange, usual: Level) -> Iterator[Reason]:
    """The sections about tests inside files that are about more."""
    name = file.path.rsplit("/", 1)[-1]
    if (file.new or "").count("pytest11") > (file.old or "").count("pytest11"):
        yield Reason(
            "tests_unchanged", f"{file.path} brings a plugin that every test run loads", "deny"
        )
    if name == "pyproject.toml":
        before, after = _toml_test_tables(file.old), _toml_test_tables(file.new)
    elif name == "setup.cfg":
        before, after = _ini_test_sections(file.old), _ini_test_sections(file.new)
    elif name == "package.json":
        before, after = _json_scripts(file.old), _json_scripts(file.new)
    else:
        return
    for section in sorted(before.keys() | after.keys()):
        if before.get(section) != after.get(section):
            yield Reason(
                "tests_unchanged",
                f"{file.path}: [{section}], which says how tests run, changes",
                usual,
            )


def _toml_test_tables(text: str | None) -> dict[str, str]:
    try:
        tools = tomllib.loads(text or "").get("tool", {})
    except tomllib.TOMLDecodeError:
        return {}
    names = ("pytest", "coverage", "tox", "nox", "hatch", "pdm", "poe", "taskipy", "ruff", "mypy", "pyright", "basedpyright", "pylint", "bandit", "flake8")  # fmt: skip
    return {f"tool.{name}": repr(_about_running(tools[name])) for name in names if name in tools}


def _about_running(table: object) -> object:
    """Leave out what a packaging tool says about building."""
    if isinstance(table, dict):
        return {
            key: value
            for key, value in table.items()
            if key not in {"version", "build", "metadata", "source"}
        }
    return table


def _ini_test_sections(text: str | None) -> dict[str, str]:
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text or "")
    except ConfigError:
        return {}
    wanted = [
        name
        for name in parser.sections()
        if name.startswith(
            ("tool:pytest", "pytest", "coverage:", "tox", "mypy", "flake8", "pylint")
        )
    ]
    return {name: repr(sorted(parser.items(name))) for name in wanted}


def _json_scripts(text: str | None) -> dict[str, str]:
    try:
        document = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(document, dict):
        return {}
    return {
        name: repr(document[name])
        for name in ("scripts", "jest", "vitest", "mocha")
        if name in document
    }
