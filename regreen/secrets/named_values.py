"""Where in a line a value stands that has a name: assignments, options, headers, elements, statements, addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# "key" = "value", in the spelling of most languages
_ASSIGNMENT = re.compile(
    r"""(?P<key>[A-Za-z_][\w.\-]{0,60})["'`]?\]?
    (?:\s{0,4}:\s{0,4}&?(?:'\w{1,20}\s)?[A-Za-z][\w.<>?]{0,40}(?=\s{0,4}=)|\sstring(?=\s{0,4}=))?
    \s{0,8}(?:=>|:=|==|=|\|\||\?\?|:(?!:))\s{0,8}
    (?:(?:\[\]byte|Buffer\.from|(?:new\s)?String(?:::from)?|bytes|str|Some|Secret\w{0,9}(?:::new)?|(?:base64\.)?b64decode)?\(\s{0,4})?
    (?:[rbuf]{0,2})(?P<quote>["'`])(?P<value>(?:(?!(?P=quote))\S){6,512})(?P=quote)""",
    re.VERBOSE,
)
# define("KEY", "value")
_QUOTED_PAIR = re.compile(
    r"""(?P<key>[A-Za-z_][\w.\-]{0,60})["'`]\s{0,4},\s{0,4}(?P<quote>["'`])(?P<value>(?:(?!(?P=quote))\S){6,512})(?P=quote)"""
)
# setPassword("value"), with_token("value")
_SETTER_CALL = re.compile(
    r"(?i)\b(?:set|with|use)_?(?P<key>\w{3,40})\(\s{0,4}[\"'](?P<value>[^\"'\s]{6,512})[\"']\s{0,4}\)"
)
_BARE_ASSIGNMENT = re.compile(
    r"^\s{0,20}(?:export\s+|-\s+|set\s+|ENV\s+|ARG\s+)?(?P<key>[A-Za-z_][\w.\-]{0,60})\s{0,8}[=:]\s{0,8}(?P<value>[^\s\"'#;,][^\s\"';,]{5,511})\s*(?:[#;].{0,200})?$"
)
_BARE_FILES = re.compile(
    r"(?i)(?:^|/)(?:\.env[\w.]*|[\w.-]*\.env|[\w.-]+\.(?:ya?ml|ini|cfg|conf|properties|toml|tfvars|npmrc|pypirc|netrc|envrc|config)|\.npmrc|\.pypirc|\.envrc|dockerfile[\w.]*|credentials)$"
)
# `requirepass value`, `ENV TOKEN value`
_SPACED_ASSIGNMENT = re.compile(
    r"^\s{0,20}(?:ENV\s+)?(?P<key>[A-Za-z_][\w.\-]{2,60})\s+(?P<value>[^\s\"'#;,{}$<>]{8,512})\s*$"
)
_SPACED_FILES = re.compile(r"(?i)(?:\.(?:conf|cfg|cnf)|(?:^|/)dockerfile[\w.]*)$")
# KEY=value before a command or in an address, a log, an option; in a program only inside a text
_INLINE_ASSIGNMENT = re.compile(
    r"(?P<before>^|[\s\"'`?&;(]|-D)(?P<key>[A-Za-z_][\w.\-]{2,60})=(?P<value>[^\s\"'`&;,<>(){}\[\]|\\$]{8,512})(?=[\s\"'`&;)]|$)"
)
_PROGRAM_PATH = re.compile(
    r"(?i)\.(?:py|pyi|js|jsx|ts|tsx|mjs|cjs|java|kt|scala|go|rs|rb|php|cs|swift|dart|c|h|cc|cpp|hpp|m|vue|svelte|lua|pl|ex|exs|clj|r|jl|html?|css|scss)$"
)
# ${key:value}, ${KEY:-value}: the default value
_SHELL_DEFAULT = re.compile(
    r"\$\{(?P<key>[A-Za-z_][\w.\-]{2,60}):-?(?P<value>[^\s{}\"'$?]{8,512})\}"
)
_HEADER = re.compile(
    r"(?i)\b(?:authorization|x-api-key|api-key|x-auth-token|x-[\w-]{2,30}-(?:token|key|secret))[\"']?\]?\s{0,4}[:=,]\s{0,4}[\"']?(?:(?:bearer|token|basic|[a-z]{3,10})\s+)?(?P<value>[A-Za-z0-9+/_.~=-]{16,512})"
)
_PASSWORD_FLAG = re.compile(
    r"(?:\s|^)--?(?P<key>password|passwd|token|api-?key|secret|auth-?(?:token|key)|access-?(?:token|key)|client-?secret)[= ][\"']?(?P<value>[^\s\"'$<>{}]{8,256})"
)
_CURL_USER = re.compile(
    r"\bcurl\b.{0,300}?\s(?:-u|--user)[= ]?[\"']?(?P<name>[\w.@-]{1,64}):(?P<value>[^\s\"'$<>{}]{6,256})"
)
_SHORT_PASSWORD_OPTION = re.compile(
    r"\b(?:sshpass\s+-p\s?|mysql\w*\s.{0,200}?\s-p|ConvertTo-SecureString\s+(?:-String\s+)?)[\"']?(?P<value>[^\s\"'$<>{}]{6,256})"
)
# `Server=...;User Id=sa;Password=...;` inside a text
_CONNECTION_STRING = re.compile(
    r"(?i)[;\"'](?P<key>password|pwd|accountkey|sharedaccesskey)\s?=\s?(?P<value>[^;\"'\s{}$<>]{6,256})(?=[;\"'])"
)
_XML_ELEMENT = re.compile(
    r"<(?P<key>[A-Za-z_][\w:.\-]{2,60})>\s{0,4}(?P<value>[^<>\s]{6,512})\s{0,4}</"
)
_XML_ATTRIBUTE = re.compile(
    r"\b(?:key|name|id)=[\"'](?P<key>[\w:.\-]{3,60})[\"']\s+value=[\"'](?P<value>[^\"'\s]{6,512})[\"']"
)
_SQL_STATEMENT = re.compile(
    r"(?i)\b(?:identified\s+(?:with\s+\w+\s+)?by|(?:encrypted\s+)?password)\s+'(?P<value>[^'\s]{6,256})'"
)
# auth=("user", "value")
_LOGIN_PAIR = re.compile(
    r"\bauth\s{0,4}[=:]\s{0,4}[(\[]\s{0,4}[\"'][^\"'\s]{1,64}[\"']\s{0,4},\s{0,4}[\"'](?P<value>[^\"'\s]{6,256})[\"']"
)
_NETRC_LINE = re.compile(r"\blogin\s+\S{1,100}\s+password\s+(?P<value>[^\s\"'$<>{}]{6,256})")
_PGPASS_LINE = re.compile(r"^[^:\s]+:(?:\d+|\*):[^:]+:[^:]+:(?P<value>[^:\s]{6,256})$")


# The password of a `.netrc`, which may be any text at all.
NETRC_KEY = "netrc password"


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A value with what it is called, and where in the line it stands."""

    key: str
    value: str
    start: int
    end: int


_PATTERNS_WITH_KEYS: tuple[tuple[re.Pattern[str], str | None], ...] = (
    (_ASSIGNMENT, None),
    (_QUOTED_PAIR, None),
    (_SETTER_CALL, None),
    (_SHELL_DEFAULT, None),
    (_PASSWORD_FLAG, None),
    (_CONNECTION_STRING, None),
    (_XML_ELEMENT, None),
    (_XML_ATTRIBUTE, None),
    (_HEADER, "token"),
    (_CURL_USER, "password"),
    (_SHORT_PASSWORD_OPTION, "password"),
    (_SQL_STATEMENT, "password"),
    (_LOGIN_PAIR, "password"),
    (_NETRC_LINE, NETRC_KEY),
)


def find_named_values(line: str, path: str) -> Iterator[NamedValue]:
    """All values in a line that have a name; a value may occur more than once."""
    for pattern, key in _PATTERNS_WITH_KEYS:
        yield from _find_all(pattern, line, key)
    if _BARE_FILES.search(path):
        yield from _find_all(_BARE_ASSIGNMENT, line, None)
    if _SPACED_FILES.search(path):
        yield from _find_all(_SPACED_ASSIGNMENT, line, None)
    if path.endswith("pgpass"):
        yield from _find_all(_PGPASS_LINE, line, "password")
    is_program = _PROGRAM_PATH.search(path) is not None or not path
    for match in _INLINE_ASSIGNMENT.finditer(line):
        if not is_program or match["before"] in {'"', "'", "`", "?", "&", ";", "-D"}:
            yield _make_named_value(match, match["key"])


def _find_all(pattern: re.Pattern[str], line: str, key: str | None) -> Iterator[NamedValue]:
    for match in pattern.finditer(line):
        yield _make_named_value(match, key or match["key"])


def _make_named_value(match: re.Match[str], key: str) -> NamedValue:
    return NamedValue(key, match["value"], match.start("value"), match.end("value"))
