"""Makes `regreen/secrets/published_formats.toml` from the rules of gitleaks, which stay under their own licence.

    python scripts/make_credential_formats.py gitleaks.toml LICENSE v8.30.1 > regreen/secrets/published_formats.toml

A rule becomes a row where a fixed text within the value identifies it. What is left out, with the reason, goes to the
error output. The patterns are written for Go's linear-time engine; here every repetition gets a limit instead.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

MAX_REPEATS = 2000
"""Where a rule names no upper limit; a credential of this length in one place is none."""
MIN_FIXED_CHARACTERS = 3
MAX_ALTERNATIVES = 100
MAX_LETTERS = 6
"""In a set of letters that counts as so many alternatives."""

REFUSED = {
    "flutterwave-public-key": "public by design",
    "mapbox-api-token": "public by design",
    "mailgun-pub-key": "public by design",
    "lob-pub-api-key": "public by design",
    "new-relic-browser-api-token": "public by design",
    "aws-amazon-bedrock-api-key-short-lived": "matches the beginning of the value alone",
    "dropbox-long-lived-api-token": "zeros in any Base64 look alike",
    "gocardless-api-token": "ordinary names look alike",
    "private-key": "read with its body elsewhere",
    "jwt": "needs its content to be checked",
    "jwt-base64": "needs its content to be checked",
    "curl-auth-header": "a value that only its name identifies",
    "curl-auth-user": "a value that only its name identifies",
    "freemius-secret-key": "a value that only its name identifies",
    "kubernetes-secret-yaml": "a value that only its name identifies",
    "nuget-config-password": "a value that only its name identifies",
    "square-access-token": "ordinary Base64 begins alike",
    "sidekiq-sensitive-url": "read as credentials in a URL",
}

# What rules that name a product put between its name and the value, and what may follow any value.
_NAME_TO_VALUE = re.compile(r"\(\?:\[ \\t\\w\.-\]\{0,20\}\)\[\\s'\"\]\{0,3\}\)?\(\?:=.{1,40}?\)\[\\x60'\"\\s=\]\{0,5\}")  # fmt: skip
_BEFORE = ("\\b", r"""(?:^|[\\'"\x60\s>=:(,)])""")
_BEHIND = (
    r"""(?:[\x60'"\s;]|\\[nr]|$)""",
    r"""(?:[\x60'"\s;]|\\[nr]|$|\b)""",
    r"""(?:$|[\\'"\x60\s<),])""",
    r"(?:[^\w-]|\z)",
    r"(?:[^a-zA-Z0-9+/]|\z)",
    "\\b",
)
_TOKEN = re.compile(
    r"(?P<flags>\(\?[a-z-]+\))|(?P<open>\((?:\?(?:P<\w+>|[a-z-]*:))?)|(?P<close>\))|(?P<or>\|)"
    r"|(?P<repeat>(?:[*+]|\{\d+,\})\??)|(?P<other>\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Row:
    """A rule as it is written into the table. `hints` are small letters, one of which every match contains."""

    rule: str
    kind: str
    hints: tuple[str, ...]
    pattern: str
    min_entropy: float


def main() -> None:
    """Print the table of the rules in a file."""
    rules, licence, version = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    print(f"# The credential formats of gitleaks {version} (https://github.com/gitleaks/gitleaks), made by")  # fmt: skip
    print("# scripts/make_credential_formats.py: do not edit. `hints`: one of them stands, in any case, in every match.")  # fmt: skip
    print("# `min_entropy`: bits for each character. The rules are used under this licence:\n#")
    print("\n".join(f"# {line}".rstrip() for line in licence.read_text("utf-8").splitlines()))
    for rule in tomllib.loads(rules.read_text("utf-8"))["rules"]:
        row = make_row(rule)
        if isinstance(row, str):
            print(f"{rule['id']}: {row}", file=sys.stderr)
            continue
        print(f"\n[{json.dumps(row.rule)}]\nkind = {json.dumps(row.kind)}")
        print(f"hints = {json.dumps(row.hints)}\npattern = '''{row.pattern}'''")
        if row.min_entropy:
            print(f"min_entropy = {row.min_entropy}")


def make_row(rule: dict[str, Any]) -> Row | str:
    """The row of a rule, or why there is none."""
    if rule["id"] in REFUSED or "regex" not in rule:
        return REFUSED.get(rule["id"], "no pattern")
    pattern = convert_pattern(_value_pattern(rule["regex"]))
    kept, hints = [], set()
    for alternative in _split_alternatives(pattern):
        fixed = {max(texts, key=len, default="") for texts in _fixed_texts(alternative)}
        if min(map(len, fixed)) >= MIN_FIXED_CHARACTERS:
            kept.append(alternative)
            hints |= {text.lower() for text in fixed}
    if not kept:
        return "no fixed text identifies the value"
    pattern = kept[0] if len(kept) == 1 else f"(?:{'|'.join(kept)})"
    smallest = tuple(sorted(h for h in hints if not any(o in h for o in hints - {h})))
    return Row(rule["id"], _name_kind(rule), smallest, pattern, float(rule.get("entropy", 0)))


def _value_pattern(pattern: str) -> str:
    """The part of a pattern that matches the value itself, without what stands before and behind it."""
    flags = "(?i)" if pattern.startswith("(?i)") else ""
    pattern = _NAME_TO_VALUE.split(pattern.removeprefix("(?i)"))[-1]
    before = None
    while pattern != before:
        before = pattern
        for text in _BEFORE:
            pattern = pattern.removeprefix(text)
        for text in _BEHIND:
            pattern = pattern.removesuffix(text)
        group = re.match(r"\((?:\?:|(?!\?))", pattern)
        if group is not None and _closing(pattern) == len(pattern) - 1:
            pattern = pattern[group.end() : -1]
    return flags + pattern


def _closing(pattern: str) -> int:
    depth = 0
    for token in _TOKEN.finditer(pattern):
        depth += (token.lastgroup == "open") - (token.lastgroup == "close")
        if depth == 0:
            return token.start()
    return -1


def convert_pattern(pattern: str) -> str:
    """A pattern of Go as one of Python, without captures and without unlimited repetition."""
    made: list[str] = []
    # Flags in the middle hold until the group ends: for each open group, the flags that were set in it.
    flags: list[list[str]] = [[]]
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        match token.lastgroup:
            case "flags":
                flags[-1].append(f"{text[:-1]}:")
                made.append(flags[-1][-1])
            case "open":
                flags.append([])
                made.append("(?:" if text == "(" or text.startswith("(?P<") else text)
            case "close":
                made.append(")" * (len(flags.pop()) + 1))
            case "or":
                made.append(f"{')' * len(flags[-1])}|{''.join(flags[-1])}")
            case "repeat":
                least = {"*": 0, "+": 1}.get(text[0])
                least = int(text[1:].partition(",")[0]) if least is None else least
                made.append(f"{{{least},{MAX_REPEATS}}}")
            case _:
                made.append(text.replace("[:alnum:]", "A-Za-z0-9").replace(r"\z", r"\Z"))
    return "".join(made) + ")" * len(flags.pop())


def _split_alternatives(pattern: str) -> list[str]:
    """What stands between the bars that belong to no group."""
    depth, parts = 0, [""]
    for token in _TOKEN.finditer(pattern):
        depth += (token.lastgroup == "open") - (token.lastgroup == "close")
        if token.lastgroup == "or" and depth == 0:
            parts.append("")
        else:
            parts[-1] += token[0]
    return parts


def _fixed_texts(pattern: str) -> Iterator[list[str]]:
    """For each way through the pattern's alternatives, the fixed texts that such a match contains."""
    for way in _expand(parser.parse(pattern)):
        yield "".join(way).split("\0")


def _expand(tree: Sequence[tuple[Any, Any]]) -> list[list[str]]:
    ways: list[list[str]] = [[]]
    for op, value in tree:
        match op:
            case ops.LITERAL:
                ends = [[chr(value)]]
            case ops.IN if len(value) <= MAX_LETTERS and all(
                item is ops.LITERAL for item, _ in value
            ):
                ends = [[chr(letter)] for _, letter in value]
            case ops.SUBPATTERN:
                ends = _expand(value[3])
            case ops.BRANCH:
                ends = [way for branch in value[1] for way in _expand(branch)]
            case _:
                ends = [["\0"]]
        ways = [way + end for way in ways for end in ends]
        if len(ways) > MAX_ALTERNATIVES:
            return [["\0"]]
    return ways


_SPELLED = {
    "ad": "AD", "amazon": "", "api": "API", "aws": "AWS", "base64": "Base64", "cicd": "CI/CD",
    "clickhouse": "ClickHouse", "flyio": "Fly.io", "frameio": "Frame.io", "gcp": "GCP", "huggingface": "Hugging Face",
    "id": "ID", "jwt": "JWT", "kubernetes": "Kubernetes", "npm": "npm", "oauth": "OAuth", "pat": "access token",
    "personnal": "personal", "ptt": "pipeline trigger token", "readme": "ReadMe", "rrt": "runner token",
    "tf": "Terraform", "url": "URL", "v2": "",
}  # fmt: skip


def _name_kind(rule: dict[str, Any]) -> str:
    """The rule's id in words, the product spelled as the rule's description spells it."""
    first, *words = rule["id"].split("-")
    described = {word.strip(".,()").lower(): word.strip(".,()") for word in rule["description"].split()}  # fmt: skip
    spelled = _SPELLED.get(first) or described.get(first, first)
    names = [spelled.capitalize() if spelled == first != "npm" else spelled]
    for word in words:
        spelled = described.get(word, word)
        names.append(_SPELLED.get(word, spelled.lower() if spelled.istitle() else spelled))
    return " ".join(filter(None, names))


if __name__ == "__main__":
    main()
