"""What actions of the Python world mean: interpreters, installers, tools that pip brings."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable

from regreen.fixers.action_words import PIP, Files, Inputs, Meaning, exactly, given, unless


def setup_python(inputs: Inputs, files: Files) -> Meaning:
    """CPython, as `python-version` or its file asks."""
    asked = given(inputs, "python-version").splitlines()
    if not asked and (path := given(inputs, "python-version-file") or ".python-version"):
        asked = _version_file(path, files)
    versions = tuple(one for text in asked if (one := python_version(text)))
    odd = [text for text in asked if re.match(r"\s*(?:pypy|graalpy)", text)]
    if odd and not versions:
        return Meaning("unsupported", f"{odd[0].strip()} is no CPython")
    if odd:
        return Meaning("unsupported", f"{odd[-1].strip()} is no CPython")
    python = versions[-1] if versions else None
    outputs = {"python-version": python or "", "cache-hit": "", "python-path": "python"}
    asks = f"pip install {wanted}" if (wanted := given(inputs, "pip-install")) else ""
    return Meaning(
        "setup",
        f"Python {python or 'as the image has it'}",
        run=asks,
        outputs=outputs,
        python=python,
        pythons=versions,
        asks=asks,
    )


def python_version(text: str) -> str | None:
    """The minor version that a version, range or name asks for: '3.11', '>=3.9 <3.13', '3.13t', 'py312', '3.x'."""
    text = text.strip().strip("\"'").removeprefix("python").removeprefix("cpython-")
    if tagged := re.fullmatch(r"py(\d)(\d{1,2})", text):
        return f"{tagged[1]}.{tagged[2]}"
    if text in {"3.x", "3", "3.*", "*", "x"}:
        return "3"
    below = re.search(r"<\s*3\.(\d{1,2})(?:\.\d+)?", text)
    least = re.search(r"3\.(\d{1,2})", text)
    if below:
        return f"3.{int(below[1]) - 1}"
    if re.match(r"\s*(?:>=|\^|~=|>)", text) and least:
        return "3" if not text.lstrip().startswith("~=") else f"3.{least[1]}"
    return f"3.{least[1]}" if least and not text.startswith("2") else None


def _version_file(path: str, files: Files) -> list[str]:
    content = (files(path) or b"").decode("utf-8", "replace")
    if path.endswith(".toml"):
        found = re.search(
            r"^\s*(?:requires-python|python)\s*=\s*[\"']([^\"']+)", content, re.MULTILINE
        )
        return [found[1]] if found else []
    return [
        line for line in content.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ][:1]


def setup_uv(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001 - all actions are asked alike
    """uv, and the interpreter that it is told to take."""
    version = given(inputs, "version")
    exact = exactly(version)
    run = f"{unless('uv')}{PIP} 'uv{exact}'"
    asked = given(inputs, "python-version")
    python = python_version(asked)
    env = {"UV_PYTHON": asked} if asked and python else {}
    if given(inputs, "activate-environment").lower() == "true":
        run += '\nuv venv\necho "$PWD/.venv/bin" >> "$GITHUB_PATH"\necho "VIRTUAL_ENV=$PWD/.venv" >> "$GITHUB_ENV"'
    return Meaning(
        "setup",
        f"uv {version or 'latest'}",
        run=run,
        env=env,
        python=python,
        outputs={"cache-hit": ""},
    )


def pip_tool(
    package: str, tool: str, version_input: str = "version"
) -> Callable[[Inputs, Files], Meaning]:
    """A tool that pip installs."""

    def known(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
        version = given(inputs, version_input)
        exact = exactly(version)
        return Meaning(
            "setup",
            f"{tool} {version or 'latest'}",
            run=f"{unless(tool)}{PIP} '{package}{exact}'",
        )

    return known


def poetry(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    """Poetry with its two usual settings."""
    version = given(inputs, "version", "poetry-version")
    exact = exactly(version)
    run = f"{unless('poetry')}{PIP} 'poetry{exact}'"
    for name in ("virtualenvs-create", "virtualenvs-in-project"):
        if value := given(inputs, name):
            run += f"\npoetry config {name.replace('-', '.', 1)} {shlex.quote(value)}"
    return Meaning("setup", f"poetry {version or 'latest'}", run=run)


def pre_commit(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    """pre-commit, run over what it is asked to."""
    arguments = given(inputs, "extra_args", "extra-args") or "--all-files"
    check = f"pre-commit run --show-diff-on-failure --color=always {arguments}"
    return Meaning(
        "setup", "pre-commit", run=f"{unless('pre-commit')}{PIP} pre-commit\n{check}", asks=check
    )


def ruff(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    """ruff, run."""
    version = given(inputs, "version")
    exact = exactly(version)
    arguments = given(inputs, "args") or "check"
    source = given(inputs, "src") or "."
    return Meaning(
        "setup", "ruff", run=f"{unless('ruff')}{PIP} 'ruff{exact}'\nruff {arguments} {source}"
    )


def black(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    """black, run."""
    version = given(inputs, "version")
    exact = exactly(version)
    arguments = given(inputs, "options") or "--check --diff"
    source = given(inputs, "src") or "."
    return Meaning(
        "setup", "black", run=f"{unless('black')}{PIP} 'black{exact}'\nblack {arguments} {source}"
    )


def both(
    one: Callable[[Inputs, Files], Meaning],
    other: Callable[[Inputs, Files], Meaning],
    inputs: Inputs,
    files: Files,
) -> Meaning:
    """An action that sets up an interpreter and a tool."""
    first, second = one(inputs, files), other({}, files)
    if first.kind == "unsupported":
        return first
    return Meaning(
        "setup",
        f"{first.why}, {second.why}",
        run=second.run,
        outputs=first.outputs,
        python=first.python,
    )


def sdist(inputs: Inputs, files: Files) -> Meaning:  # noqa: ARG001
    """The tree instead of its source distribution."""
    return Meaning("setup", "the tree stands for the source distribution")


def build_and_inspect(inputs: Inputs, files: Files) -> Meaning:
    """Builds the packages; says what the classifiers say, which matrices are made of."""
    store = f"/env/artifacts/Packages{given(inputs, 'upload-name-suffix')}"
    path = shlex.quote(given(inputs, "path") or ".")
    asks = f"python -m build --outdir '{store}' {path}"
    run = f"{PIP} build\nmkdir -p '{store}'\n{asks}"
    manifest = (files("pyproject.toml") or b"").decode("utf-8", "replace")
    versions = re.findall(r"Programming Language :: Python :: (3\.\d+)\b", manifest)
    ordered = sorted(set(versions), key=lambda text: int(text.split(".")[1]))
    outputs = {"dist": store}
    if ordered:
        outputs["supported_python_classifiers_json_array"] = json.dumps(ordered)
        outputs["supported_python_classifiers_json_job_matrix_value"] = json.dumps(
            {"python-version": ordered}
        )
    return Meaning("setup", "builds the packages", run=run, outputs=outputs, asks=asks)
