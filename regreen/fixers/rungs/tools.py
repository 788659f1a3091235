"""Checkers that can mend what they complain about: how a call that checks becomes a call that writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from regreen.fixers.shell_words import Call, calls, parts, read_call, split_runner


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


FORMAT = "the code is not formatted the way {name} wants it"
LINT = "the code breaks rules that {name} can mend by itself"
_TOOLS: dict[str, _Tool] = {
    "ruff format": _Tool(("--check", "--diff"), drop_values=("--output-format",), what=FORMAT),
    "ruff check": _Tool(
        ("--no-fix", "--diff", "--show-fixes", "--statistics", "--watch", "--unsafe-fixes"),
        ("--fix",),
        LINT,
        drop_values=("--output-format",),
    ),
    "black": _Tool(("--check", "--diff", "--color", "--no-color"), what=FORMAT),
    "isort": _Tool(("-c", "--check", "--check-only", "--diff", "--df", "-d"), what="the imports are not sorted the way {name} wants them"),
    "yapf": _Tool(("-d", "--diff", "-q", "--quiet"), ("-i",), FORMAT),
    "autopep8": _Tool(("-d", "--diff", "--exit-code"), ("--in-place",), FORMAT),
    "autoflake": _Tool(("-c", "--check", "-cd", "--check-diff"), ("--in-place",), LINT),
    "docformatter": _Tool(("-c", "--check", "--diff"), ("--in-place",), FORMAT),
    "pyupgrade": _Tool(what=LINT),
    "blacken-docs": _Tool(("--check",), what=FORMAT),
    "usort check": _Tool(rename=(("check", "format"),), what="the imports are not sorted the way {name} wants them"),
    "usort diff": _Tool(rename=(("diff", "format"),), what="the imports are not sorted the way {name} wants them"),
    "ufmt check": _Tool(rename=(("check", "format"),), what=FORMAT),
    "cog": _Tool(("--check", "--diff"), ("-r",), "the generated parts are out of date"),
    "pyproject-fmt": _Tool(("--check",), what=FORMAT),
    "toml-sort": _Tool(("--check",), ("--in-place",), FORMAT),
    "taplo fmt": _Tool(("--check", "--diff"), what=FORMAT),
    "taplo format": _Tool(("--check", "--diff"), what=FORMAT),
    "mdformat": _Tool(("--check",), what=FORMAT),
    "djlint": _Tool(("--check", "--lint"), ("--reformat",), FORMAT),
    "sqlfluff lint": _Tool(rename=(("lint", "fix"),), what=LINT),
    "unimport": _Tool(("--check", "--diff", "-c", "-d"), ("--remove",), LINT),
    "codespell": _Tool(("-i",), ("-w",), "words are misspelt", approval="a spelling tool chose the words"),
    "typos": _Tool(("--diff",), ("-w",), "words are misspelt", approval="a spelling tool chose the words"),
    "check-manifest": _Tool((), ("-u",), "MANIFEST.in does not name all that belongs into a release"),
    "prettier": _Tool(("--check", "-c", "--list-different", "-l"), ("--write",), FORMAT),
    "eslint": _Tool((), ("--fix",), LINT),
    "standard": _Tool((), ("--fix",), LINT),
    "xo": _Tool((), ("--fix",), LINT),
    "stylelint": _Tool((), ("--fix",), LINT),
    "oxlint": _Tool((), ("--fix",), LINT),
    "markdownlint": _Tool((), ("--fix",), LINT),
    "markdownlint-cli2": _Tool((), ("--fix",), LINT),
    "biome check": _Tool((), ("--write",), LINT),
    "biome lint": _Tool((), ("--write",), LINT),
    "biome format": _Tool((), ("--write",), FORMAT),
    "biome ci": _Tool((), ("--write",), FORMAT, rename=(("ci", "check"),)),
    "dprint check": _Tool(rename=(("check", "fmt"),), what=FORMAT),
    "deno fmt": _Tool(("--check",), what=FORMAT),
    "gofmt": _Tool(("-l", "-d", "-s"), ("-w",), FORMAT),
    "gofumpt": _Tool(("-l", "-d"), ("-w",), FORMAT),
    "goimports": _Tool(("-l", "-d"), ("-w",), FORMAT),
    "cargo fmt": _Tool(("--check",), what=FORMAT),
    "rustfmt": _Tool(("--check",), what=FORMAT),
    "clang-format": _Tool(("--dry-run", "-n", "-Werror", "--Werror"), ("-i",), FORMAT),
    "shfmt": _Tool(("-d", "-l"), ("-w",), FORMAT),
    "terraform fmt": _Tool(("-check", "-diff"), what=FORMAT),
    "buf format": _Tool(("-d", "--diff", "--exit-code"), ("-w",), FORMAT),
    "rubocop": _Tool((), ("-a",), LINT),
    "standardrb": _Tool((), ("--fix",), LINT),
    "hatch fmt": _Tool(("--check",), what=FORMAT),
    "gradlew spotlessCheck": _Tool(rename=(("spotlessCheck", "spotlessApply"),), what=FORMAT),
    "gradle spotlessCheck": _Tool(rename=(("spotlessCheck", "spotlessApply"),), what=FORMAT),
    "mvn spotless:check": _Tool(rename=(("spotless:check", "spotless:apply"),), what=FORMAT),
    "golangci-lint run": _Tool((), ("--fix",), LINT),
    "cargo clippy": _Tool((), ("--fix", "--allow-no-vcs", "--allow-dirty", "--allow-staged"), LINT),
    "php-cs-fixer fix": _Tool(("--dry-run", "--diff"), what=FORMAT),
    "mix format": _Tool(("--check-formatted", "--dry-run"), what=FORMAT),
    "dotnet format": _Tool(("--verify-no-changes",), what=FORMAT),
    "swiftformat": _Tool(("--lint",), what=FORMAT),
    "stylua": _Tool(("--check",), what=FORMAT),
    "zig fmt": _Tool(("--check",), what=FORMAT),
    "buildifier": _Tool(("-mode=check", "--mode=check"), ("-mode=fix",), FORMAT),
    "tofu fmt": _Tool(("-check", "-diff"), what=FORMAT),
    "yamlfmt": _Tool(("-lint", "-dry"), what=FORMAT),
    "ktlint": _Tool((), ("-F",), FORMAT),
    "dart format": _Tool(("--set-exit-if-changed",), drop_values=("-o", "--output"), what=FORMAT),
}  # fmt: skip
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


def remedies(*scripts: str) -> tuple[Remedy, ...]:
    """What could mend the failure, best first, of the checkers that a command, and the scripts behind it, name."""
    each = [list(_of_script(script)) for script in scripts]
    plain = [[one for one in of_one if not one.approval] for of_one in each]
    single = [remedy for of_one in each for remedy in of_one]
    found = [*_together(plain), *single, *_together(each)]
    first: dict[str, Remedy] = {}
    for remedy in found:
        first.setdefault(remedy.script, remedy)
    return tuple(first.values())


def _together(each: Sequence[Sequence[Remedy]]) -> Iterator[Remedy]:
    """The widest remedy of every script, one after the other, where there are several scripts."""
    widest = [max(of_one, key=lambda one: len(one.script)) for of_one in each if of_one]
    if len({one.script for one in widest}) > 1:
        names = " and ".join(dict.fromkeys(one.name for one in widest))
        whole = "\n".join(f"(\n{one.script}\n)" for one in widest)
        approval = next((one.approval for one in widest if one.approval), None)
        title = "; ".join(dict.fromkeys(one.title or one.script for one in widest))[:200]
        cause = f"the code is not as {names} want it"
        yield Remedy(names, f"{whole}\n{whole}", cause, approval=approval, title=title)


_CD = re.compile(r"\s*cd\s+(?P<folder>[\w./-]{1,200}?)/?\s*(?:\n|&&|;)\s*")


def in_folder(script: str) -> tuple[str, str]:
    """The folder that a script goes to first ("web/", or nothing), and the rest of it."""
    folder = ""
    while (match := _CD.match(script)) and not match["folder"].startswith(("/", "..")):
        inner = match["folder"].removeprefix("./")
        folder, script = f"{folder}{inner}/" if inner != "." else folder, script[match.end() :]
    return folder, script


def _of_script(script: str) -> Iterator[Remedy]:
    """All its checkers in their places, where loops, pipes and variables are part of a call; then each by itself."""
    folder, rest = in_folder(script)
    there = f"cd {folder.rstrip('/')}\n" if folder else ""
    single = [remedy for call in calls(rest) if (remedy := _writing(call)) is not None]
    several = len([remedy for remedy in single if not remedy.approval]) > 1
    lone = [replace(remedy, script=f"{there}{remedy.script}") for remedy in single]
    if not several:
        yield from lone
    for with_words in (False, True):  # words that a tool chose are for a person to look at
        rewritten, kept = _in_place(rest, with_words=with_words)
        if kept and (len(kept) > 1 or " ".join(rewritten.split()) != f"{kept[0].script} || true"):
            names = " and ".join(dict.fromkeys(one.name for one in kept))
            approval = next((one.approval for one in kept if one.approval), None)
            cause = kept[0].cause if len(kept) == 1 else f"the code is not as {names} want it"
            # a linter behind a formatter undoes its work: running them twice settles it
            whole = f"(\n{rewritten}\n)\n(\n{rewritten}\n)" if len(kept) > 1 else rewritten
            title = "; ".join(dict.fromkeys(one.script for one in kept))[:200]
            yield Remedy(names, f"{there}{whole}", cause, approval=approval, title=title)
        if several and not with_words:
            yield from lone


_IDLE = frozenset({"pytest", "py.test", "coverage", "mypy", "pyright", "tox", "nox", "make", "npm", "yarn", "pnpm", "docker", "cargo", "go", "jest", "vitest", "tsc", "exit"})  # fmt: skip


def _in_place(script: str, *, with_words: bool) -> tuple[str, list[Remedy]]:
    """The script with every checker in its writing form; what only tests or builds is left out."""
    kept: list[Remedy] = []
    rewritten = parts(script)
    for at in range(0, len(rewritten), 2):
        call = read_call(rewritten[at])
        if call is None:
            continue
        remedy = _writing(call)
        _, inner = split_runner(call.words)
        if remedy is not None and (with_words or not remedy.approval):
            kept.append(remedy)
            rewritten[at] = f" {call.before} {remedy.script} || true {call.after} "
        elif remedy is None and inner[:1] and inner[0].rsplit("/", 1)[-1] in _IDLE:
            rewritten[at] = f" {call.before} true {call.after} "
    return "".join(rewritten), kept


def _writing(call: Call) -> Remedy | None:
    """The call that writes what this call checks; None where the words are no checker of ours."""
    before, words = split_runner(call.words)
    if not words:
        return None
    # a task runner may name the environment before the tool: `hatch run lint:black`
    name = re.sub(r"^[\w.-]+:(?=\w)", "", words[0]).rsplit("/", 1)[-1]
    flags = words[1:]
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
    script = call.said([*before, words[0], *kept])
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
    r"\b(?:pre[-_]commit run|prek run|lefthook run|lint-staged|pyupgrade|[\w-]+-fixer|mixed-line-ending|pretty-format-json|file-contents-sorter"
    r"|add-trailing-comma|reorder-python-imports|pyproject-fmt|setup-cfg-fmt|--exit-non-zero-on-fix|--exit-non-zero-on-format|git (?:[^\n;&|]{0,60} )?(?:diff|status))\b"
)


def mends_itself(command: str) -> bool:
    """Whether the command leaves the files as it wants them when it fails: hooks, and generators before a `git diff`."""
    return bool(_SELF_MENDING.search(command))


_LOOKING = frozenset({"--check", "--check-only", "--dry-run", "--verify", "--diff", "--no-write", "--fail-on-diff"})  # fmt: skip


def unlooking(*scripts: str) -> Iterator[Remedy]:
    """Calls of the repository's own that were told only to look (`gen.py --check`), without being told so."""
    for script in scripts:
        folder, rest = in_folder(script)
        for call in calls(rest):
            _, words = split_runner(call.words)
            kept = [word for word in call.words if word not in _LOOKING]
            own = words[:1] and (
                "/" in words[0] or ".py" in " ".join(words[:2]) or "-m" in call.words
            )
            if own and len(kept) < len(call.words) and _writing(call) is None:
                there = f"cd {folder.rstrip('/')}\n" if folder else ""
                line = call.said(kept)
                yield Remedy(
                    "told",
                    f"{there}{line}",
                    f"files are not as {line} writes them",
                    untracked=True,
                    title=line,
                )


_ASKS_FOR_NEW = re.compile(r"\bgit (?:[^\n;&|]{0,60} )?(?:status|add|ls-files)\b")


def asks_for_new_files(command: str) -> bool:
    """Whether the command minds files that git does not know."""
    return bool(_ASKS_FOR_NEW.search(command))
