"""Takes shell scripts apart into simple commands and words, as far as a reader needs it that runs nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_RUNNERS: tuple[tuple[str, ...], ...] = (
    ("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("hatch", "run"), ("rye", "run"), ("pixi", "run"),
    ("uvx",), ("pipx", "run"), ("python", "-m"), ("python3", "-m"), ("npx",), ("pnpm", "exec"), ("pnpm",), ("yarn", "run"), ("yarn",),
    ("bunx",), ("bun", "x"), ("npm", "exec", "--"), ("npm", "exec"), ("bundle", "exec"), ("nbqa",), ("time",), ("env",), ("command",), ("exec",), ("sudo",),
)  # fmt: skip
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
_XARGS_VALUES = {
    "-n",
    "-P",
    "-I",
    "-d",
    "-L",
    "-a",
    "-s",
    "--max-args",
    "--max-procs",
    "--delimiter",
}
_RUNNER_FLAG_VALUES = {"--with", "--group", "--extra", "--python", "-p", "--package", "--from"}


@dataclass(frozen=True, slots=True)
class Call:
    """One simple command: its words, each word as it was written (quotes and globs mean something), what stands around it.

    `before` are the assignments, reserved words and brackets in front of it; `after` the brackets behind it.
    """

    words: list[str]
    written: dict[str, str] = field(default_factory=dict)
    before: str = ""
    after: str = ""

    def said(self, words: Sequence[str]) -> str:
        """The words as a line of shell; those that the call has itself as they were written there."""
        return " ".join(self.written.get(word, shlex.quote(word)) for word in words)


_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""")
# What an operator in it does not end: substitutions, quoted text, an escaped character.
_ATOM = r"""\$\([^()\n]{0,400}\)|`[^`\n]{0,400}`|'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|\\."""
_CUT = re.compile(rf"(?:{_ATOM})|(?P<cut>\n|;|&&|\|\||\|)")
_INNER = re.compile(r"\$\(([^()\n]{1,400})\)|`([^`\n]{1,400})`")
_RESERVED = {"!", "then", "do", "else", "elif", "if", "while", "(", "{"}


def simple_commands(script: str) -> Iterator[list[str]]:
    """The simple commands of a shell script, as words; what cannot be read is left out."""
    for call in calls(script):
        yield call.words


def calls(script: str) -> Iterator[Call]:
    """The simple commands of a shell script, those in substitutions last."""
    joined = script.replace("\\\n", " ")
    inner = [one or other for one, other in _INNER.findall(joined)]
    for part in [*parts(script)[::2], *inner]:
        call = read_call(part)
        if call is not None:
            yield call


def parts(script: str) -> list[str]:
    """The script cut at its operators and line ends: every second part is one of those."""
    joined = script.replace("\\\n", " ")
    found: list[str] = []
    start = 0
    for match in _CUT.finditer(joined):
        if match["cut"]:
            found += [joined[start : match.start()], match["cut"]]
            start = match.end()
    return [*found, joined[start:]]


def read_call(part: str) -> Call | None:
    """The simple command that a part of a script is; None where there is none, or it cannot be read."""
    try:
        words = shlex.split(part, comments=True)
    except ValueError:
        return None
    found = list(_WORD.finditer(part))[: len(words)]
    raw = [one[0] for one in found]
    if not words or len(raw) != len(words):
        return Call(words) if words and not _is_before(words[0]) else None
    at = 0
    while at < len(words) and _is_before(words[at]):
        at += 1
    if at == len(words):
        return None
    head = re.match(r"[@\-(]*", words[at])
    lead = head[0] if head and not words[at].startswith("--") else ""
    before = part[: found[at].start()] + lead
    words, raw = words[at:], raw[at:]
    words[0], raw[0] = words[0][len(lead) :], raw[0].removeprefix(lead)
    after = ""
    while raw and raw[-1].endswith(")") and part.count(")") - len(after) > part.count("("):
        after += ")"
        words[-1], raw[-1] = words[-1].removesuffix(")"), raw[-1].removesuffix(")")
        if not raw[-1]:
            words.pop()
            raw.pop()
    if not words or not words[0]:
        return None
    return Call(words, dict(zip(words, raw, strict=True)), before, after)


def _is_before(word: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z_]\w*=.*|[@\-(]+", word, re.DOTALL)) or word in _RESERVED


def split_runner(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split `uv run --frozen ruff check .` into the runner and the call."""
    rest = list(words)
    before: list[str] = []
    if rest[:1] == ["xargs"]:
        at = next(
            (
                at
                for at, word in enumerate(rest[1:], 1)
                if not word.startswith("-") and rest[at - 1] not in _XARGS_VALUES
            ),
            1,
        )
        before, rest = rest[:at], rest[at:]
    elif rest[:1] == ["find"] and {"-exec", "-execdir"} & set(rest):
        at = next(at for at, word in enumerate(rest, 1) if word in {"-exec", "-execdir"})
        before, rest = rest[:at], rest[at:]
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
