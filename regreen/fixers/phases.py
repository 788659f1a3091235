"""Cuts a job in two: what needs a network (installing) and what must do without (testing)."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace

from regreen.fixers.workflow import Step

_INSTALL = re.compile(
    r"(?:^|[\s;&|(`])(?:sudo (?:-\S+ )*)?(?:"
    r"(?:python[\d.]*|py|\$\{?\w+\}?) -I?m (?:pip|ensurepip|venv|uv|playwright|build|pre_commit install)\b"
    r"|pip[\d.]* (?:install|download|wheel|sync)|pip-sync|pipx (?:install|inject)|pipenv (?:install|sync)"
    r"|uv (?:pip|sync|tool install|venv|python install|add|lock|build|export)|uvx? (?:pip)\b|rye sync|pdm (?:install|sync)"
    r"|poetry (?:install|sync|lock|self|update|add)|hatch (?:env|dep)|conda |mamba |micromamba "
    r"|npm (?:ci|i|install|add|rebuild|install-\S+|run (?:install|bootstrap))\b|yarn(?: install| --\S+|\s*$)|yarn (?:add|global|set)"
    r"|pnpm (?:i|install|add|fetch)\b|bun (?:i|install|add)\b|corepack |nvm |n \d"
    r"|apt(?:-get)? |dpkg -i|apk add|dnf |yum |brew |snap "
    r"|cargo (?:install|fetch|update|generate-lockfile|binstall)|rustup |go (?:mod (?:download|tidy)|get|install|generate)\b"
    r"|bundle (?:install|config)|gem install|composer install|mvn [^\n]*dependency:|gradle [^\n]*dependencies"
    r"|curl |wget |git (?:clone|fetch|pull|submodule|ls-remote)|playwright install|docker |gh "
    r"|tox (?:run )?[^\n]*--notest|nox [^\n]*--install-only|pre-commit (?:install|autoupdate)|nltk\.downloader|python -m spacy download"
    r")",
    re.MULTILINE,
)
_COMPOUND = re.compile(
    r"^\s*(?:if|for|while|until|case|function|\{|\(|select)\b|^\s*\w+\s*\(\)|<<|^\s*(?:fi|done|esac)\b",
    re.MULTILINE,
)
_KEEPS_STATE = re.compile(
    r"^\s*(?:cd|pushd|popd|export|source|\.|set|unset|umask|ulimit|shopt|alias|\w+=\S*\s*$)(?:\s|$)|^\s*\w+="
)


@dataclass(frozen=True)
class Phases:
    """Steps for the network phase, and steps after it; the target step may stand in both, a part in each."""

    setup: tuple[Step, ...]
    command: tuple[Step, ...]


def phases(steps: tuple[Step, ...], target: int) -> Phases:
    """Split the steps up to `target` at the last one that needs a network.

    Steps before that one run in the network phase too: they are what it builds on. A script that installs and
    then tests is split between its lines; tools that install when they test (tox, uv run) are warmed up first.
    """
    reached = [step for step in steps if step.number <= target]
    aims = next((step for step in reached if step.number == target), None)
    if aims is None:
        return Phases(tuple(reached), ())
    before = [step for step in reached if step.number < target]
    install, rest = split_script(aims)
    warm = warm_up(rest)
    needs = max((at for at, step in enumerate(before) if needs_network(step)), default=-1)
    if install or warm:
        needs = len(before) - 1
    setup = before[: needs + 1]
    if install or warm:
        both = "\n".join(part for part in (install, warm) if part)
        setup = [*setup, replace(aims, run=both, name=f"{aims.name} (preparing)")]
    if warm:
        rest = offline(rest)
        aims = replace(aims, env={**OFFLINE_ENV, **aims.env}, own_env=(*aims.own_env, *OFFLINE_ENV))
    command = [*before[needs + 1 :], replace(aims, run=rest)]
    return Phases(tuple(setup), tuple(command))


def needs_network(step: Step) -> bool:
    """Whether a step installs or fetches something."""
    if step.kind == "setup":
        return bool(step.run)
    return step.kind == "run" and bool(_INSTALL.search(step.run))


def split_script(step: Step) -> tuple[str, str]:
    """The lines of a step's script that install, and the lines to run after them.

    Only a script of plain lines is split; one with compound commands, or of another shell, that installs is
    taken as installing as a whole where nothing in it is told apart.
    """
    script = step.run
    if not _INSTALL.search(script):
        return "", script
    if "python" in step.shell.split()[:1]:
        return script, "pass"
    lines = _logical_lines(script)
    if _COMPOUND.search(script):
        return _split_compound(lines, script)
    last = max(at for at, line in enumerate(lines) if _INSTALL.search(line))
    first, after = lines[: last + 1], lines[last + 1 :]
    install_part, test_part = _split_line(first[-1])
    first[-1] = install_part
    if test_part:
        after = [test_part, *after]
    kept = [line for line in first if _KEEPS_STATE.match(line)]
    return "\n".join(first), "\n".join([*kept, *after]) or ":"


def _split_compound(lines: list[str], script: str) -> tuple[str, str]:
    """A script with compound commands: split only where all that installs stands before the first of them."""
    first_compound = next(at for at, line in enumerate(lines) if _COMPOUND.search(line))
    installs = [at for at, line in enumerate(lines) if _INSTALL.search(line)]
    if installs and max(installs) < first_compound:
        cut = max(installs) + 1
        kept = [line for line in lines[:cut] if _KEEPS_STATE.match(line)]
        return "\n".join(lines[:cut]), "\n".join([*kept, *lines[cut:]])
    return script, ":"


def _split_line(line: str) -> tuple[str, str]:
    """`pip install x && pytest` in two, at the last command that installs."""
    parts = re.split(r"\s*&&\s*", line) if not re.search(r"[\"'`]", line) else [line]
    last = max(
        (at for at, part in enumerate(parts) if _INSTALL.search(part)), default=len(parts) - 1
    )
    return " && ".join(parts[: last + 1]), " && ".join(parts[last + 1 :])


def _logical_lines(script: str) -> list[str]:
    """Lines, those joined by a backslash as one."""
    found: list[str] = []
    open_line = False
    for line in script.splitlines():
        if open_line and found:
            found[-1] += "\n" + line
        elif line.strip():
            found.append(line)
        open_line = line.endswith("\\")
    return found


def warm_up(script: str) -> str:
    """Commands for the network phase that fetch what the script's tools would fetch while testing."""
    found: list[str] = []
    for line in _logical_lines(script):
        parts = re.split(r"\s*(?:&&|\|\||;|\|)\s*", line.replace("\\\n", " "))
        found += [command for part in parts if (command := _warmed(part.strip()))]
    return "\n".join(dict.fromkeys(found))


_TOX = re.compile(r"^((?:\w+=\S* )*(?:python\S* -I?m )?tox)\b(.*)$")
_NOX = re.compile(r"^((?:\w+=\S* )*(?:python\S* -I?m )?nox)\b(.*)$")
_UV_WITH_VALUE = frozenset({
    "--with", "--extra", "--group", "--only-group", "--no-group", "--python", "-p", "--with-requirements", "--with-editable",
    "--package", "--index", "--index-url", "--extra-index-url", "--default-index", "--project", "--directory", "--env-file",
    "--resolution", "--prerelease", "--upgrade-package", "-P", "--from", "--no-extra", "--isolated-with", "--exclude-newer",
    "--find-links", "-f", "--config-setting", "-C", "--reinstall-package", "--color", "-m", "--module",
})  # fmt: skip


def _warmed(command: str) -> str:  # noqa: PLR0911 - one line a tool
    """One command's warm-up; empty where it needs none."""
    if tox := _TOX.match(command):
        before, posargs, _ = tox[2].partition(" -- ")
        del posargs
        return f"{tox[1]}{_without_subcommand(before)} --notest"
    if nox := _NOX.match(command):
        return f"{nox[1]}{nox[2].partition(' -- ')[0]} --install-only"
    words = _words(command)
    while words and re.fullmatch(r"\w+=\S*", words[0]):
        words = words[1:]
    match words[:2]:
        case ["uv", "run"]:
            return _uv_run(words)
        case ["uvx", *_]:
            return _uvx(words)
        case ["pre-commit" | "prek", "run"]:
            return f"{words[0]} install-hooks"
        case ["cargo", "test" | "build" | "check" | "clippy" | "nextest"]:
            return "cargo fetch"
        case ["go", "test" | "build" | "vet"]:
            return "go mod download"
        case ["hatch", "test"]:
            return "hatch env create hatch-test"
        case ["hatch", "run"] if len(words) > 2 and ":" in words[2]:
            return f"hatch env create {shlex.quote(words[2].split(':')[0])}"
        case ["hatch", "run"]:
            return "hatch env create"
        case _:
            return ""


def _without_subcommand(arguments: str) -> str:
    return re.sub(r"^\s+(?:run|r|p|run-parallel)(?=\s|$)", "", arguments).rstrip()


def _uv_run(words: list[str]) -> str:
    """`uv run OPTIONS COMMAND` with a command that does nothing."""
    at, flags = 2, []
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        takes = words[at] in _UV_WITH_VALUE
        if words[at] in {"-m", "--module"}:
            break
        flags += words[at : at + 2] if takes else words[at : at + 1]
        at += 2 if takes else 1
    inner = _warmed(shlex.join(words[at:])) if at < len(words) else ""
    if inner:
        return f"{shlex.join(['uv', 'run', *flags])} {inner}"
    return shlex.join(["uv", "run", *flags, "python", "-c", "pass"])


_NOX_RUNS = re.compile(r"(?m)(^|[;&|]\s*|\buv run (?:\S+ )*?|-m )nox(?=\s|$)(?! -R)")


def offline(script: str) -> str:
    """The script as it has to be said once its tools were warmed up: nox would install again, others obey the environment."""
    return _NOX_RUNS.sub(r"\1nox -R", script)


OFFLINE_ENV = {"UV_NO_SYNC": "1", "TOX_SKIP_PKG_INSTALL": "1"}
"""After a warm-up, so that uv and tox take what the network phase installed."""


def _uvx(words: list[str]) -> str:
    at, flags = 1, []
    while at < len(words) and words[at].startswith("-"):
        takes = words[at] in _UV_WITH_VALUE
        flags += words[at : at + 2] if takes else words[at : at + 1]
        at += 2 if takes else 1
    tool = words[at] if at < len(words) else ""
    return shlex.join(["uv", "tool", "install", *flags, tool]) if tool else ""


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return command.split()
