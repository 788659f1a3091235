"""What tools that install while they test (tox, nox, uv, pre-commit) fetch, said as commands for the network phase."""

from __future__ import annotations

import re
import shlex

from regreen.fixers.installs import logical_lines

_TOX = re.compile(r"^((?:\w+=\S* )*(?:python\S* (?:-[XIWusEB]\S* )*-I?m )?tox)\b(.*)$", re.DOTALL)
_NOX = re.compile(
    r"^((?:\w+=\S* )*(?:(?:python\S* -I?m |pipx run (?:--\S+ )*))?nox)\b(.*)$", re.DOTALL
)
_PRE_COMMIT = re.compile(r"^((?:\w+=\S* )*python\S* -I?m )pre_commit run\b")
_UV_WITH_VALUE = frozenset({
    "--with", "--extra", "--group", "--only-group", "--no-group", "--python", "-p", "--with-requirements", "--with-editable",
    "--package", "--index", "--index-url", "--extra-index-url", "--default-index", "--project", "--directory", "--env-file",
    "--resolution", "--prerelease", "--upgrade-package", "-P", "--from", "--no-extra", "--isolated-with", "--exclude-newer",
    "--find-links", "-f", "--config-setting", "-C", "--reinstall-package", "--color", "-m", "--module", "-w", "-c", "--constraints",
    "--overrides", "--python-platform", "--link-mode", "--cache-dir", "--config-file",
})  # fmt: skip


def warm_up(script: str) -> str:
    """Commands for the network phase that fetch what the script's tools would fetch while testing."""
    found: list[str] = []
    for line in logical_lines(script):
        parts = re.split(r"\s*(?:&&|\|\||;|\|)\s*", line.replace("\\\n", " "))
        found += [command for part in parts if (command := _warmed(part.strip().lstrip("@-")))]
    return "\n".join(dict.fromkeys(found))


def _warmed(command: str) -> str:
    """One command's warm-up; empty where it needs none."""
    if hooks := _PRE_COMMIT.match(command):
        return f"{hooks[1]}pre_commit install-hooks"
    if tox := _TOX.match(command):
        return f"{tox[1]}{_without_subcommand(tox[2].partition(' -- ')[0])} --notest"
    if nox := _NOX.match(command):
        return f"{nox[1]}{nox[2].partition(' -- ')[0]} --install-only"
    words = _words(command)
    assigned = []
    while words and re.fullmatch(r"\w+=.*", words[0]):
        assigned.append(words[0])
        words = words[1:]
    warmed = _of_words(words)
    return " ".join([*assigned, warmed]) if warmed else ""


def _of_words(words: list[str]) -> str:  # noqa: PLR0911 - one line a tool
    match words[:2]:
        case ["uv", "run"]:
            return _uv_run(words)
        case ["uvx", *_]:
            return _uvx(["uvx"], words[1:])
        case ["uv", "tool"] if words[2:3] == ["run"]:
            return _uvx(["uvx"], words[3:])
        case ["pipx", "run"]:
            return shlex.join(["pipx", "run", *_pipx_flags(words[2:]), "--rg-prepare"])
        case ["pre-commit" | "prek", "run"]:
            return f"{words[0]} install-hooks"
        case ["cargo", "test" | "build" | "check" | "clippy" | "nextest"]:
            return "cargo fetch"
        case ["go", "test" | "build" | "vet" | "run"]:
            return "go mod download"
        case ["hatch", "test"]:
            return "hatch env create hatch-test"
        case ["hatch", "run"] if len(words) > 2:
            return _hatch(words[2:])
        case ["npx", _]:
            return _npx(words[1:])
        case _:
            return ""


def _without_subcommand(arguments: str) -> str:
    return re.sub(r"^\s+(?:run|r|p|run-parallel)(?=\s|$)", "", arguments).rstrip()


def _flags(words: list[str]) -> tuple[list[str], list[str]]:
    """Options of uv itself, and the command behind them."""
    at, flags = 0, []
    while (
        at < len(words) and words[at].startswith("-") and words[at] not in {"--", "-m", "--module"}
    ):
        takes = words[at] in _UV_WITH_VALUE
        flags += words[at : at + 2] if takes else words[at : at + 1]
        at += 2 if takes else 1
    rest = words[at:]
    return flags, rest[1:] if rest[:1] == ["--"] else rest


def _uv_run(words: list[str]) -> str:
    """`uv run OPTIONS COMMAND` with a command that only prepares."""
    flags, rest = _flags(words[2:])
    if rest[:1] in (["-m"], ["--module"]):
        rest = ["python", *rest]
    inner = _warmed(shlex.join(rest)) if rest else ""
    if inner:
        return f"{shlex.join(['uv', 'run', *flags])} {inner}"
    if rest[:1] and rest[0].endswith(".py"):
        return f"{shlex.join(['uv', 'sync', '--script', rest[0]])} || true"
    return shlex.join(["uv", "run", *flags, "python", "-c", "pass"])


def _uvx(call: list[str], words: list[str]) -> str:
    """`uvx OPTIONS TOOL ARGUMENTS` with the tool's own warm-up, or with Python instead of the tool."""
    flags, rest = _flags(words)
    if not rest:
        return ""
    tool, _, version = rest[0].partition("@")
    inner = (
        _warmed(shlex.join([tool, *rest[1:]]))
        if tool in {"tox", "nox", "pre-commit", "prek"}
        else ""
    )
    if inner:
        return f"{shlex.join([*call, *flags])} {shlex.quote(rest[0])}{inner.removeprefix(tool)}"
    if "--from" in flags or any(flag.startswith("--from=") for flag in flags):
        return shlex.join([*call, *flags, "python", "-c", "pass"])
    wanted = f"{tool}=={version}" if version and version != "latest" else tool
    return shlex.join([*call, *flags, "--from", wanted, "python", "-c", "pass"])


def _pipx_flags(words: list[str]) -> list[str]:
    at, kept = 0, []
    while at < len(words) and words[at].startswith("-"):
        takes = words[at] in {"--spec", "--python", "--pip-args", "--with"}
        kept += words[at : at + 2] if takes else words[at : at + 1]
        at += 2 if takes else 1
    return [*kept, *words[at : at + 1]]


def _hatch(words: list[str]) -> str:
    """`hatch run +py=3.12 test:cov`: the environments that it selects; with Python in place of what it would run."""
    called = next((at for at, word in enumerate(words) if not word.startswith(("+", "-"))), None)
    if called is None:
        return ""
    environment, colon, _ = words[called].partition(":")
    selected = [word for word in words[:called] if re.fullmatch(r"[+-][\w-]+=\S+", word)]
    if selected:
        python = f"{environment if colon else 'default'}:python"
        return shlex.join(["hatch", "run", *selected, python, "-c", "pass"])
    return f"hatch env create {shlex.quote(environment)}" if colon else "hatch env create"


def _npx(words: list[str]) -> str:
    """Fetches what npx would fetch; nothing where the package is there already."""
    flags = [word for word in words if word.startswith(("-y", "--yes", "--package"))]
    name = next((word for word in words if not word.startswith("-")), "")
    if not name or "/" in name.lstrip("@").partition("/")[2]:
        return ""
    return f"npm exec --yes {shlex.join(flags)} --call true --package {shlex.quote(name)} || true".replace(
        "  ", " "
    )


_NOX_RUNS = re.compile(
    r"(?m)(^|[;&|]\s*|\b(?:uv run|uvx|uv tool run) (?:\S+ )*?|-m )nox(?=\s|$)(?! -[rR])"
)


def offline(script: str) -> str:
    """The script as it has to be said once its tools were warmed up: nox would make its environments again."""
    return _NOX_RUNS.sub(r"\1nox ${RG_NOX:--R}", script)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return command.split()
