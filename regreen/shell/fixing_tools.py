"""Checkers that can fix what they report: how a call that checks becomes a call that writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from regreen.shell.parse import ShellCommand, find_commands, parse_script
from regreen.shell.tools import FixingTool, load_tools, split_runner


@dataclass(frozen=True, slots=True)
class Remedy:
    """A shell script that should fix the failure, and how to describe it.

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
    unknown: bool = False  # the tool's own help offered it


FORMAT_CAUSE = "the code is not formatted the way {name} wants it"
LINT_CAUSE = "the code breaks rules that {name} can repair by itself"
_UNSAFE_APPROVAL = "the tool calls these fixes unsafe: look whether the code still does the same"
_CAUSES = {"format": FORMAT_CAUSE, "lint": LINT_CAUSE}
_RUFF_COMMANDS = frozenset(
    {
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
)


def find_remedies(*scripts: str) -> tuple[Remedy, ...]:
    """The remedies for the checkers that a command and the scripts behind it call, best first."""
    each = [list(_find_remedies_of_script(script)) for script in scripts]
    plain = [[one for one in of_one if not one.approval] for of_one in each]
    single = [remedy for of_one in each for remedy in of_one]
    found = [*combine_remedies(plain), *single, *combine_remedies(each)]
    first: dict[str, Remedy] = {}
    for remedy in found:
        first.setdefault(remedy.script, remedy)
    return tuple(first.values())


def find_recorded_remedies(calls: Sequence[str]) -> Iterator[Remedy]:
    """The remedies for calls of checkers that were seen, all of them at once; what needs a person is added last."""
    each = [list(_find_remedies_of_script(call)) for call in calls]
    for of_all in ([[one for one in of_one if not one.approval] for of_one in each], each):
        found = [of_one for of_one in of_all if of_one]
        yield from found[0] if len(found) == 1 else combine_remedies(found)


def add_unsafe_fixes(remedies: Sequence[Remedy]) -> Iterator[Remedy]:
    """The remedies whose tools have further fixes that they call unsafe, with these; a person has to agree."""
    for remedy in remedies:
        parsed = parse_script(remedy.script)
        pieces, end, names = [], 0, []
        for command in parsed.commands if parsed.is_complete else ():
            _, words = split_runner(command.arguments)
            found = _find_tool(words) if words and command.start >= end else None
            added = found[1].add[-1:] if found and found[1].unsafe else ()
            if found is None or not added or added[0] not in words:
                continue
            at = command.arguments.index(added[0]) + 1
            line = [*command.arguments[:at], *found[1].unsafe, *command.arguments[at:]]
            assigned = command.words[: len(command.words) - len(command.arguments)]
            written = " ".join([*(one.source for one in assigned), command.format_words(line)])
            pieces += [parsed.source[end : command.start].decode(), written]
            end = command.end
            names.append(" ".join([found[0], *found[1].unsafe]))
        if names:
            script = "".join([*pieces, parsed.source[end:].decode()])
            title = "; ".join(dict.fromkeys(names))
            yield replace(remedy, script=script, approval=_UNSAFE_APPROVAL, title=title)


def combine_remedies(each: Sequence[Sequence[Remedy]]) -> Iterator[Remedy]:
    """One remedy of all: the widest remedy of every script, one after the other, where there are several scripts."""
    widest = [max(of_one, key=lambda remedy: len(remedy.script)) for of_one in each if of_one]
    if len({remedy.script for remedy in widest}) > 1:
        names = " and ".join(dict.fromkeys(remedy.name for remedy in widest))
        whole = "\n".join(f"(\n{remedy.script}\n)" for remedy in widest)
        approval = next((remedy.approval for remedy in widest if remedy.approval), None)
        title = "; ".join(dict.fromkeys(remedy.title or remedy.script for remedy in widest))[:200]
        cause = f"the code is not as {names} want it"
        yield Remedy(
            names,
            f"{whole}\n{whole}",
            cause,
            approval=approval,
            title=title,
            unknown=any(remedy.unknown for remedy in widest),
        )


_CD_LINE = re.compile(r"\s*cd\s+(?P<folder>[\w./-]{1,200}?)/?\s*(?:\n|&&|;)\s*")


def split_folder(script: str) -> tuple[str, str]:
    """The folder that a script goes to first ("web/", or nothing), and the rest of it."""
    folder = ""
    while (match := _CD_LINE.match(script)) and not match["folder"].startswith(("/", "..")):
        inner = match["folder"].removeprefix("./")
        folder, script = f"{folder}{inner}/" if inner != "." else folder, script[match.end() :]
    return folder, script


def _find_remedies_of_script(script: str) -> Iterator[Remedy]:
    """All its checkers in their places, where loops, pipes and variables are part of a call; then each by itself."""
    folder, rest = split_folder(script)
    there = f"cd {folder.rstrip('/')}\n" if folder else ""
    single = [
        remedy for call in find_commands(rest) if (remedy := _make_writing_remedy(call)) is not None
    ]
    several = len([remedy for remedy in single if not remedy.approval]) > 1
    lone = [replace(remedy, script=f"{there}{remedy.script}") for remedy in single]
    if not several:
        yield from lone
    for with_words in (False, True):  # a person has to look at words that a tool chose
        rewritten, flags = _rewrite_checkers(rest, with_words=with_words)
        if flags and (
            len(flags) > 1 or " ".join(rewritten.split()) != f"{flags[0].script} || true"
        ):
            names = " and ".join(dict.fromkeys(remedy.name for remedy in flags))
            approval = next((remedy.approval for remedy in flags if remedy.approval), None)
            cause = flags[0].cause if len(flags) == 1 else f"the code is not as {names} want it"
            # a linter behind a formatter undoes its work: running them twice settles it
            whole = f"(\n{rewritten}\n)\n(\n{rewritten}\n)" if len(flags) > 1 else rewritten
            title = "; ".join(dict.fromkeys(remedy.script for remedy in flags))[:200]
            yield Remedy(names, f"{there}{whole}", cause, approval=approval, title=title)
        if several and not with_words:
            yield from lone


def _rewrite_checkers(script: str, *, with_words: bool) -> tuple[str, list[Remedy]]:
    """The script with every checker in its writing form; what only tests or builds is left out."""
    kept_lines: list[Remedy] = []
    parsed = parse_script(script)
    non_writing = load_tools().programs["non_writing"]
    pieces: list[str] = []
    end = 0
    for command in parsed.commands if parsed.is_complete else ():
        if command.start < end or not command.arguments:
            continue  # it stands in a substitution
        remedy = _make_writing_remedy(command)
        _, inner = split_runner(command.arguments)
        replacement = parsed.source[command.start : command.end].decode()
        if remedy is not None and (with_words or not remedy.approval):
            kept_lines.append(remedy)
            assigned = command.words[: len(command.words) - len(command.arguments)]
            replacement = " ".join(
                [*(word.source for word in assigned), f"{remedy.script} || true"]
            )
        elif remedy is None and inner[:1] and inner[0].rsplit("/", 1)[-1] in non_writing:
            replacement = "true"
        pieces += [parsed.source[end : command.start].decode(), replacement]
        end = command.end
    return "".join([*pieces, parsed.source[end:].decode()]), kept_lines


def _find_tool(words: Sequence[str]) -> tuple[str, FixingTool, str] | None:
    """The row of a call with its name, and the argument that is part of the name; None where the words are no checker of ours."""
    # a task runner may name the environment before the tool: `hatch run lint:black`
    name = re.sub(r"^[\w.-]+:(?=\w)", "", words[0]).rsplit("/", 1)[-1]
    flags = words[1:]
    tools = load_tools().fixing
    first = next((word for word in flags if not word.startswith("-")), "")
    options = (word for word in flags if word.startswith("-"))
    sub = next((word for word in (first, *options) if f"{name} {word}" in tools), first)
    key = f"{name} {sub}" if f"{name} {sub}" in tools else name
    if name == "ruff" and sub not in _RUFF_COMMANDS:
        key = "ruff check"  # as ruff was called before it had subcommands: ruff src
    tool = tools.get(key)
    return None if tool is None or (name in {"ruff", "biome"} and key == name) else (key, tool, sub)


def _make_writing_remedy(call: ShellCommand) -> Remedy | None:
    """The call that writes what this call checks."""
    before, words = split_runner(call.arguments)
    found = _find_tool(words) if words else None
    if found is None:
        return None
    key, tool, sub = found
    flags = words[1:]
    kept = _drop_checking_flags(flags, tool)
    renames = tool.rename
    kept = [renames.get(word, word) if word in flags[:3] else word for word in kept]
    where = kept.index(renames.get(sub, sub)) + 1 if " " in key and sub else 0
    added = [flag for flag in tool.add if flag not in kept]
    kept[where:where] = added
    script = call.format_words([*before, words[0], *kept])
    cause = _CAUSES.get(tool.cause, tool.cause).format(name=key)
    return Remedy(key, script, cause, approval=tool.approval)


def _drop_checking_flags(flags: Sequence[str], tool: FixingTool) -> list[str]:
    kept_lines: list[str] = []
    words = iter(flags)
    for word in words:
        if word in tool.drop_values:
            next(words, None)
        elif word not in tool.drop and not word.startswith(
            tuple(f"{flag}=" for flag in tool.drop_values or ("\0",))
        ):
            kept_lines.append(word)
    return kept_lines


_SELF_MENDING = re.compile(
    r"\b(?:pre[-_]commit run|prek run|lefthook run|lint-staged|pyupgrade|[\w-]+-fixer|mixed-line-ending|pretty-format-json|file-contents-sorter"
    r"|add-trailing-comma|reorder-python-imports|pyproject-fmt|setup-cfg-fmt|--exit-non-zero-on-fix|--exit-non-zero-on-format|git (?:[^\n;&|]{0,60} )?(?:diff|status))\b"
)


def fixes_files_itself(command: str) -> bool:
    """Whether the command leaves the files as it wants them when it fails: hooks, and generators before a `git diff`."""
    return bool(_SELF_MENDING.search(command))


_CHECK_ONLY_FLAGS = frozenset(
    {"--check", "--check-only", "--dry-run", "--verify", "--diff", "--no-write", "--fail-on-diff"}
)


def find_generator_remedies(*scripts: str) -> Iterator[Remedy]:
    """The repository's own generators in checking mode (`gen.py --check`), without that mode."""
    runners = set(load_tools().programs["own_runners"])
    for script in scripts:
        folder, rest = split_folder(script)
        for call in find_commands(rest):
            _, words = split_runner(call.arguments)
            flags = [word for word in call.arguments if word not in _CHECK_ONLY_FLAGS]
            own = (
                words[:1]
                and (
                    any("/" in word or ".py" in word for word in words[:2])
                    or "-m" in call.arguments
                    # some of these are runners whose own words were split off
                    or not runners.isdisjoint((" ".join(words[:2]), " ".join(call.arguments[:2])))
                )
            )
            if own and len(flags) < len(call.arguments) and _make_writing_remedy(call) is None:
                there = f"cd {folder.rstrip('/')}\n" if folder else ""
                line = call.format_words(flags)
                yield Remedy(
                    "told",
                    f"{there}{line}",
                    f"files are not as {line} writes them",
                    untracked=True,
                    title=line,
                )


# Stands before `diff` and `cmp`: what a file of the repository is compared with is written into it.
_TAKES_MADE = r"""#!/bin/sh
kept=; made=
for word; do
  case $word in
    -|/dev/fd/*|/proc/self/fd/*) made=$word;;
    -*) ;;
    *) if [ -f "$word" ] && git ls-files --error-unmatch -- "$word" >/dev/null 2>&1; then kept=$word; else made=$word; fi;;
  esac
done
# not only in front: an environment that is activated later puts itself there
PATH=$(printf %s "$PATH" | tr : '\n' | grep -vxF /tmp/regreen-takes | paste -sd: -); export PATH
[ -n "$kept" ] && [ -n "$made" ] && [ ! -d "$made" ] || exec "${0##*/}" "$@"
if [ "$made" = - ]; then cat; else cat -- "$made"; fi > /tmp/regreen-made
[ ! -s /tmp/regreen-made ] || cat /tmp/regreen-made > "$kept"
"""


def make_comparison_remedy(command: str, calls: Sequence[str]) -> Remedy | None:
    """The command, with what it compares a file of the repository with written into the file; None if it compares none.

    Args:
        command: the failing command as a script.
        calls: the command and the calls that it comes to make.
    """
    found = (split_runner(one.arguments)[1] for call in calls for one in find_commands(call))
    if not any(words[:1] in (["diff"], ["cmp"]) and len(words) > 2 for words in found):
        return None
    lines = (
        "mkdir -p /tmp/regreen-takes",
        f"cat > /tmp/regreen-takes/diff <<'REGREEN_END'\n{_TAKES_MADE}REGREEN_END",
        "chmod 755 /tmp/regreen-takes/diff && cp /tmp/regreen-takes/diff /tmp/regreen-takes/cmp",
        f'export PATH="/tmp/regreen-takes:$PATH"\n{command}',
    )
    cause = "a file is not what the command makes and compares it with"
    title = "the command, and kept what it compares with the file"
    return Remedy("told", "\n".join(lines), cause, title=title, unknown=True)


_ASKS_FOR_NEW = re.compile(r"\bgit (?:[^\n;&|]{0,60} )?(?:status|add|ls-files)\b")


def asks_for_new_files(command: str) -> bool:
    """Whether the command minds files that git does not know."""
    return bool(_ASKS_FOR_NEW.search(command))
