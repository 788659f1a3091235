"""Checkers that can mend what they complain about: how a call that checks becomes a call that writes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Remedy:
    """A shell script that should make the failure go away, and what to say about it.

    `network` scripts run in the preparation phase, and what they write into `writes` counts too, beside lock files;
    `title` names it for people where its first line does not; `approval` names why a person must agree; `untracked` says that new files which git sees count as well.
    """

    name: str
    script: str
    cause: str
    network: bool = False
    approval: str | None = None
    writes: tuple[str, ...] = ()
    untracked: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True)
class _Tool:
    """Flags to leave out, flags to add after the tool's name, subcommands that this is about."""

    drop: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    what: str = "the formatter"
    drop_values: tuple[str, ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    approval: str | None = None


_FORMAT = "the code is not formatted the way {name} wants it"
_LINT = "the code breaks rules that {name} can mend by itself"
_TOOLS: dict[str, _Tool] = {
    "ruff format": _Tool(("--check", "--diff"), drop_values=("--output-format",), what=_FORMAT),
    "ruff check": _Tool(
        ("--no-fix", "--diff", "--show-fixes", "--statistics", "--watch", "--unsafe-fixes"),
        ("--fix",),
        _LINT,
        drop_values=("--output-format",),
    ),
    "black": _Tool(("--check", "--diff", "--color", "--no-color"), what=_FORMAT),
    "isort": _Tool(("-c", "--check", "--check-only", "--diff", "--df", "-d"), what="the imports are not sorted the way {name} wants them"),
    "yapf": _Tool(("-d", "--diff", "-q", "--quiet"), ("-i",), _FORMAT),
    "autopep8": _Tool(("-d", "--diff", "--exit-code"), ("--in-place",), _FORMAT),
    "autoflake": _Tool(("-c", "--check", "-cd", "--check-diff"), ("--in-place",), _LINT),
    "docformatter": _Tool(("-c", "--check", "--diff"), ("--in-place",), _FORMAT),
    "pyupgrade": _Tool(what=_LINT),
    "blacken-docs": _Tool(("--check",), what=_FORMAT),
    "usort check": _Tool(rename=(("check", "format"),), what="the imports are not sorted the way {name} wants them"),
    "usort diff": _Tool(rename=(("diff", "format"),), what="the imports are not sorted the way {name} wants them"),
    "ufmt check": _Tool(rename=(("check", "format"),), what=_FORMAT),
    "cog": _Tool(("--check", "--diff"), ("-r",), "the generated parts are out of date"),
    "pyproject-fmt": _Tool(("--check",), what=_FORMAT),
    "toml-sort": _Tool(("--check",), ("--in-place",), _FORMAT),
    "taplo fmt": _Tool(("--check", "--diff"), what=_FORMAT),
    "taplo format": _Tool(("--check", "--diff"), what=_FORMAT),
    "mdformat": _Tool(("--check",), what=_FORMAT),
    "djlint": _Tool(("--check", "--lint"), ("--reformat",), _FORMAT),
    "sqlfluff lint": _Tool(rename=(("lint", "fix"),), what=_LINT),
    "unimport": _Tool(("--check", "--diff", "-c", "-d"), ("--remove",), _LINT),
    "codespell": _Tool(("-i",), ("-w",), "words are misspelt", approval="a spelling tool chose the words"),
    "prettier": _Tool(("--check", "-c", "--list-different", "-l"), ("--write",), _FORMAT),
    "eslint": _Tool((), ("--fix",), _LINT),
    "standard": _Tool((), ("--fix",), _LINT),
    "xo": _Tool((), ("--fix",), _LINT),
    "stylelint": _Tool((), ("--fix",), _LINT),
    "oxlint": _Tool((), ("--fix",), _LINT),
    "markdownlint": _Tool((), ("--fix",), _LINT),
    "markdownlint-cli2": _Tool((), ("--fix",), _LINT),
    "biome check": _Tool((), ("--write",), _LINT),
    "biome lint": _Tool((), ("--write",), _LINT),
    "biome format": _Tool((), ("--write",), _FORMAT),
    "biome ci": _Tool((), ("--write",), _FORMAT, rename=(("ci", "check"),)),
    "dprint check": _Tool(rename=(("check", "fmt"),), what=_FORMAT),
    "deno fmt": _Tool(("--check",), what=_FORMAT),
    "gofmt": _Tool(("-l", "-d", "-s"), ("-w",), _FORMAT),
    "gofumpt": _Tool(("-l", "-d"), ("-w",), _FORMAT),
    "goimports": _Tool(("-l", "-d"), ("-w",), _FORMAT),
    "cargo fmt": _Tool(("--check",), what=_FORMAT),
    "rustfmt": _Tool(("--check",), what=_FORMAT),
    "clang-format": _Tool(("--dry-run", "-n", "-Werror", "--Werror"), ("-i",), _FORMAT),
    "shfmt": _Tool(("-d", "-l"), ("-w",), _FORMAT),
    "terraform fmt": _Tool(("-check", "-diff"), what=_FORMAT),
    "buf format": _Tool(("-d", "--diff", "--exit-code"), ("-w",), _FORMAT),
    "rubocop": _Tool((), ("-a",), _LINT),
    "standardrb": _Tool((), ("--fix",), _LINT),
    "hatch fmt": _Tool(("--check",), what=_FORMAT),
    "gradlew spotlessCheck": _Tool(rename=(("spotlessCheck", "spotlessApply"),), what=_FORMAT),
    "gradle spotlessCheck": _Tool(rename=(("spotlessCheck", "spotlessApply"),), what=_FORMAT),
    "mvn spotless:check": _Tool(rename=(("spotless:check", "spotless:apply"),), what=_FORMAT),
    "golangci-lint run": _Tool((), ("--fix",), _LINT),
    "cargo clippy": _Tool((), ("--fix", "--allow-no-vcs", "--allow-dirty", "--allow-staged"), _LINT),
    "php-cs-fixer fix": _Tool(("--dry-run", "--diff"), what=_FORMAT),
    "mix format": _Tool(("--check-formatted", "--dry-run"), what=_FORMAT),
    "dotnet format": _Tool(("--verify-no-changes",), what=_FORMAT),
    "swiftformat": _Tool(("--lint",), what=_FORMAT),
    "stylua": _Tool(("--check",), what=_FORMAT),
    "zig fmt": _Tool(("--check",), what=_FORMAT),
    "buildifier": _Tool(("-mode=check", "--mode=check"), ("-mode=fix",), _FORMAT),
    "tofu fmt": _Tool(("-check", "-diff"), what=_FORMAT),
    "yamlfmt": _Tool(("-lint", "-dry"), what=_FORMAT),
    "ktlint": _Tool((), ("-F",), _FORMAT),
    "dart format": _Tool(("--set-exit-if-changed",), drop_values=("-o", "--output"), what=_FORMAT),
}  # fmt: skip
_RUNNERS: tuple[tuple[str, ...], ...] = (
    ("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("hatch", "run"), ("rye", "run"), ("pixi", "run"),
    ("uvx",), ("pipx", "run"), ("python", "-m"), ("python3", "-m"), ("npx",), ("pnpm", "exec"), ("pnpm",), ("yarn", "run"), ("yarn",),
    ("bunx",), ("bun", "x"), ("npm", "exec", "--"), ("npm", "exec"), ("bundle", "exec"), ("nbqa",), ("time",), ("env",), ("command",), ("exec",), ("sudo",),
)  # fmt: skip
_RUFF_COMMANDS = {
    "",
    "format",
    "check",
    "rule",
    "config",
    "linter",
    "clean",
    "server",
    "analyze",
    "version",
    "help",
}
_RUNNER_FLAGS = {
    "--frozen",
    "--locked",
    "--no-sync",
    "--all-extras",
    "--dev",
    "-y",
    "--yes",
    "--no-install",
    "--isolated",
    "--active",
    "--",
}
_RUNNER_FLAG_VALUES = {"--with", "--group", "--extra", "--python", "-p", "--package", "--from"}


def remedies(command: str, output: str) -> tuple[Remedy, ...]:
    """What could mend the failure, best first: the tools that the command names, then those the output betrays."""
    found = [*_from_command(command), *_from_output(output)]
    return tuple({remedy.script: remedy for remedy in reversed(found)}.values())[::-1]


def _from_command(command: str) -> Iterator[Remedy]:
    whole: list[str] = []
    causes: list[str] = []
    for line, raw in _calls(command):
        remedy = _writing(line, raw)
        if remedy is not None:
            yield remedy
            whole.append(remedy.script)
            causes.append(remedy.name)
    if len(whole) > 1:
        # linters first and the formatter last would need an order; running them twice settles it
        yield Remedy(
            " and ".join(dict.fromkeys(causes)),
            "\n".join([*whole, *whole]),
            f"the code is not as {' and '.join(dict.fromkeys(causes))} want it",
        )


_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""")
_INNER = re.compile(r"\$\(([^()\n]{1,400})\)|`([^`\n]{1,400})`")


def simple_commands(script: str) -> Iterator[list[str]]:
    """The simple commands of a shell script, as words; what cannot be read is left out."""
    for words, _ in _calls(script):
        yield words


def _calls(script: str) -> Iterator[tuple[list[str], dict[str, str]]]:
    """The simple commands as words, with each word as it was written: quotes and globs mean something."""
    joined = script.replace("\\\n", " ")
    lines = re.split(r"\n|;|&&|\|\||\|", joined)
    inner = [one or other for one, other in _INNER.findall(joined)]
    for line in [*lines, *inner]:
        try:
            words = shlex.split(line, comments=True)
            raw = _WORD.findall(line)
        except ValueError:
            continue
        written = dict(zip(words, raw, strict=True)) if len(words) == len(raw) else {}
        while words and (
            re.fullmatch(r"[A-Za-z_]\w*=.*", words[0])
            or words[0] in {"!", "then", "do", "else", "if", "(", "{"}
            or words[0].startswith(("@", "-@"))
        ):
            if words[0].lstrip("-@") and words[0].startswith(("@", "-@")):
                words[0] = words[0].lstrip("-@")  # a line of a Makefile that is not echoed
                break
            words = words[1:]
        if words:
            yield words, written


def _joined(words: Sequence[str], written: dict[str, str]) -> str:
    return " ".join(written.get(word, shlex.quote(word)) for word in words)


def _writing(words: Sequence[str], written: dict[str, str]) -> Remedy | None:
    """The call that writes what this call checks; None where the words are no checker of ours."""
    before, call = split_runner(words)
    if not call:
        return None
    name = call[0].rsplit("/", 1)[-1]
    flags = call[1:]
    sub = next((word for word in flags if not word.startswith("-")), "")
    key = f"{name} {sub}" if f"{name} {sub}" in _TOOLS else name
    if name == "ruff" and sub not in _RUFF_COMMANDS:
        key = "ruff check"  # as ruff was called before it had subcommands: ruff src
    tool = _TOOLS.get(key)
    if tool is None or (name in {"ruff", "biome"} and key == name):
        return None
    kept = _kept(flags, tool)
    renames = dict(tool.rename)
    kept = [renames.get(word, word) if word == sub else word for word in kept]
    where = kept.index(renames.get(sub, sub)) + 1 if " " in key and sub else 0
    added = [flag for flag in tool.add if flag not in kept]
    kept[where:where] = added
    script = _joined([*before, call[0], *kept], written)
    return Remedy(key, script, tool.what.format(name=key), approval=tool.approval)


def _kept(flags: Sequence[str], tool: _Tool) -> list[str]:
    kept: list[str] = []
    words = iter(flags)
    for word in words:
        if word in tool.drop_values:
            next(words, None)
        elif word not in tool.drop and not word.startswith(
            tuple(f"{flag}=" for flag in tool.drop_values or ("\0",))
        ):
            kept.append(word)
    return kept


_SELF_MENDING = re.compile(
    r"\b(?:pre-commit run|prek run|lefthook run|lint-staged|pyupgrade|end-of-file-fixer|trailing-whitespace-fixer|add-trailing-comma"
    r"|reorder-python-imports|pyproject-fmt|setup-cfg-fmt|--exit-non-zero-on-fix|--exit-non-zero-on-format|git (?:[^\n;&|]{0,60} )?(?:diff|status))\b"
)


def mends_itself(command: str) -> bool:
    """Whether the command leaves the files as it wants them when it fails: hooks, and generators before a `git diff`."""
    return bool(_SELF_MENDING.search(command))


_ASKS_FOR_NEW = re.compile(r"\bgit (?:[^\n;&|]{0,60} )?(?:status|add|ls-files)\b")


def asks_for_new_files(command: str) -> bool:
    """Whether the command minds files that git does not know."""
    return bool(_ASKS_FOR_NEW.search(command))


def split_runner(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split `uv run --frozen ruff check .` into the runner and the call."""
    rest = list(words)
    before: list[str] = []
    changed = True
    while changed and rest:
        changed = False
        for runner in _RUNNERS:
            head = [rest[0].rsplit("/", 1)[-1], *rest[1 : len(runner)]]
            if tuple(head) == runner or (
                runner == ("python", "-m")
                and re.fullmatch(r"python3?(\.\d+)?", head[0])
                and rest[1:2] == ["-m"]
            ):
                before += rest[: len(runner)]
                rest = rest[len(runner) :]
                while runner == ("env",) and rest and re.fullmatch(r"[A-Za-z_]\w*=.*", rest[0]):
                    before.append(rest.pop(0))
                while rest and (rest[0] in _RUNNER_FLAGS or rest[0] in _RUNNER_FLAG_VALUES):
                    take = 2 if rest[0] in _RUNNER_FLAG_VALUES else 1
                    before += rest[:take]
                    rest = rest[take:]
                changed = True
                break
    return before, rest


_BLACK = re.compile(r"^would reformat (?P<path>\S[^\n]{0,300})$", re.MULTILINE)
_RUFF_FORMAT = re.compile(r"^Would reformat: (?P<path>\S[^\n]{0,300})$", re.MULTILINE)
_ISORT = re.compile(
    r"^ERROR: (?P<path>\S[^\n]{0,300}) Imports are incorrectly sorted", re.MULTILINE
)
_PRETTIER = re.compile(r"^\[warn\] (?P<path>[^\s\[][^\n]{0,300}\.\w{1,8})$", re.MULTILINE)
_RUFF_FIXABLE = re.compile(
    r"\[\*\] \d+ (?:potentially )?fixable with the [`']--fix[`'] option|fixable with the [`']--fix[`'] option"
)
_RUFF_PATH = re.compile(
    r"^(?:\s*--> )?(?P<path>[\w./-]{1,200}\.(?:py|pyi|ipynb)):\d+:\d+(?::|$)", re.MULTILINE
)
_ESLINT_FIXABLE = re.compile(r"potentially fixable with the `--fix` option")
_ESLINT_PATH = re.compile(r"^(?P<path>/[\w./-]{1,200}\.[cm]?[jt]sx?)$", re.MULTILINE)


def _from_output(output: str) -> Iterator[Remedy]:
    """Tools hidden behind make, tox, nox or a package script, known by what they print."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output)
    for pattern, name, call in (
        (_RUFF_FORMAT, "ruff format", ["ruff", "format"]),
        (_BLACK, "black", ["black", "-q"]),
        (_ISORT, "isort", ["isort"]),
    ):
        paths = _paths(pattern, text)
        if paths:
            yield Remedy(name, shlex.join([*call, *paths]), _FORMAT.format(name=name))
    if "Code style issues" in text and (paths := _paths(_PRETTIER, text)):
        yield Remedy(
            "prettier",
            shlex.join(["npx", "--no-install", "prettier", "--write", *paths]),
            _FORMAT.format(name="prettier"),
        )
    if _ESLINT_FIXABLE.search(text) and (paths := _paths(_ESLINT_PATH, text)):
        yield Remedy(
            "eslint",
            shlex.join(["npx", "--no-install", "eslint", "--fix", *paths]),
            _LINT.format(name="eslint"),
        )
    elif _RUFF_FIXABLE.search(text) and (paths := _paths(_RUFF_PATH, text)):
        yield Remedy(
            "ruff check",
            shlex.join(["ruff", "check", "--fix", *paths]),
            _LINT.format(name="ruff check"),
        )


def _paths(pattern: re.Pattern[str], text: str) -> list[str]:
    found = (match["path"].strip().removeprefix("/work/") for match in pattern.finditer(text))
    return [
        path
        for path in dict.fromkeys(found)
        if not path.startswith(("-", "/")) and ".." not in path.split("/")
    ][:400]
