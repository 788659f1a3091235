"""Tells which lines of a script install or fetch something: those need the network phase."""

from __future__ import annotations

import re

_INSTALL = re.compile(
    r"(?:^|[\s;&|(`/}\"'])(?:sudo (?:-\S+ )*)?(?:"
    r"(?:python[\d.]*|py|\$\{?\w+\}?)[\"']? (?:-[IXWusEB]\S* )*-I?m (?:pip|ensurepip|venv|virtualenv|uv|playwright|build|pre_commit install)\b"
    r"|pip[\d.]* (?:-\S+ )*(?:install|download|wheel|sync)|\$\{?\w*(?:pip|PIP)\w*\}?[\"']? install|pip-sync|pipx (?:install|inject)|pipenv (?:install|sync)"
    r"|uv (?:pip|sync|tool install|venv|python install|add|lock|build|export)|uvx? (?:pip)\b|rye sync|pdm (?:install|sync)"
    r"|poetry (?:install|sync|lock|self|update|add)|hatch (?:env|dep|build)|python[\d.]* -m hatch build|conda |mamba |micromamba |flit build"
    r"|npm (?:ci|i|install|add|rebuild|install-\S+|clean-install|run (?:install|bootstrap))\b|yarn(?: install| --\S+|\s*$)|yarn (?:add|global|set)"
    r"|pnpm (?:i|install|add|fetch)\b|bun (?:i|install|add)\b|corepack |nvm |n \d"
    r"|apt(?:-get)? |dpkg -i|apk add|dnf |yum |brew |snap "
    r"|cargo (?:install|fetch|update|generate-lockfile|binstall)|rustup |go (?:mod (?:download|tidy)|get|install|generate)\b"
    r"|bundle (?:install|config)|gem install|composer install|mvn [^\n]*dependency:|gradle [^\n]*dependencies"
    r"|curl |wget |git (?:clone|fetch|pull|submodule|ls-remote)|playwright install|docker |gh "
    r"|tox (?:run )?[^\n]*--notest|nox [^\n]*--install-only|pre-commit (?:install|autoupdate)|nltk\.downloader|python -m spacy download"
    r")",
    re.MULTILINE,
)
COMPOUND = re.compile(
    r"^\s*(?:if|for|while|until|case|function|\{|\(|select)\b|^\s*\w+\s*\(\)|<<|^\s*(?:fi|done|esac)\b",
    re.MULTILINE,
)
KEEPS_STATE = re.compile(
    r"^\s*(?:cd|pushd|popd|export|source|\.|set|unset|umask|ulimit|shopt|alias|\w+=\S*\s*$)(?:\s|$)|^\s*\w+="
)


def installs(script: str) -> bool:
    """Whether a script installs or fetches anything."""
    return bool(_INSTALL.search(script))


def logical_lines(script: str) -> list[str]:
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


def install_lines(script: str) -> list[str]:
    """The lines that install, out of a script that somebody calls; each can be run by itself.

    What the shell keeps between lines (a directory, a variable) comes along; compound commands are left out, for
    half of one is none.
    """
    found: list[str] = []
    depth = 0
    for line in logical_lines(script):
        bare = line.strip().lstrip("@-+").strip()
        depth += len(_OPENS.findall(bare)) - len(_CLOSES.findall(bare))
        if bare.startswith("#"):
            continue
        alone = installs(bare) and not COMPOUND.search(bare)
        if alone or (depth <= 0 and _ASSIGNS.match(bare)):
            found.append(bare)
    return found if any(installs(line) for line in found) else []


_OPENS = re.compile(
    r"(?:^|[;&|]\s*|\bthen\s+|\belse\s+|\bdo\s+)(?:if|for|while|until|case|select)\b"
)
_CLOSES = re.compile(r"(?:^|[;&|]\s*)(?:fi|done|esac)\b")
_ASSIGNS = re.compile(r"^(?:export\s+)?\w+=(?!.*(?:\$\(|`))|^cd\s+\S+$")
