"""Keeps secrets out of whatever leaves: prompts, comments, kept results, logs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from regreen.codebase import secret_patterns
from regreen.codebase.secret_formats import FORMATS, Format

Clean = Callable[[str], str]

_HIDDEN = "[hidden]"
_SHORTEST = 8
# What must occur (in small letters), and what goes. Each pattern is linear: one class repeated once, no alternatives
# inside a repetition.
_SECRETS = (
    ("gh", re.compile(r"gh[pousr]_[A-Za-z0-9_.\-]{16,}")),  # old and new ("ghs_APPID_JWT") forms
    ("github_pat_", re.compile(r"github_pat_[A-Za-z0-9_]{20,}")),
    ("v1.", re.compile(r"(?<![A-Za-z0-9])v1\.[0-9a-f]{40}(?![0-9a-f])")),  # GitHub, before those
    ("sk-ant-", re.compile(r"sk-ant-[A-Za-z0-9_\-]{16,}")),
    ("sk-", re.compile(r"sk-[A-Za-z0-9_\-]{32,}")),
    ("ia", re.compile(r"A[KS]IA[0-9A-Z]{16}")),
    ("xox", re.compile(r"xox[a-z]-[A-Za-z0-9\-]{10,}")),
    ("xapp-", re.compile(r"xapp-[A-Za-z0-9\-]{20,}")),
    ("hf_", re.compile(r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{30,}")),
    ("eyj", re.compile(r"eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*")),  # JWT
    # credentials in a URL; a template's {user}:{password} is code, and none
    ("://", re.compile(r"(?<=://)[^/\s:@{}<>]{0,256}:(?![$%<{*])[^/\s@{}<>]{1,256}(?=@)")),
    ("://", re.compile(r"(?<=://)[A-Za-z0-9_.~\-]{20,256}(?=@)")),  # a token where the user stands
    ("authorization: ", re.compile(r"(?i)(?<=authorization: )[^\r\n]{8,512}")),
    ("cookie: ", re.compile(r"(?i)(?<=cookie: )[^\r\n]{8,4096}")),
)
# As long as any format is; each is looked for in what has the length alone, not in all of a log.
_RUN = re.compile(r"[A-Za-z0-9_.\-/:+=@?&%]{18,}+")
_PEM = "-----BEGIN "
# What stands behind a name that says what it is. Whether it is a secret, `_is_random` says.
_NAMES = (
    "token",
    "secret",
    "passw",
    "passphrase",
    "pwd",
    "api",
    "key",
    "credential",
    "auth",
    "bearer",
)
_NAMED = re.compile(
    r"(?i)(?:token|secret|passw(?:or)?d|passphrase|pwd|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key"
    r"|credential|auth(?!or)|bearer)[a-z0-9_\-]{0,30}"
    r"(?:[\"'\\]{0,2}\s{0,4}[=:,]>?\s{0,4}[\"'\\]{0,2}|\s{1,4})(?:(?:bearer|token|basic)\s{1,4})?"
    r"(?P<value>[A-Za-z0-9+/_.~=%!@$^&*#\-]{12,512}+)(?![(\[])"
)
_USER = re.compile(
    r"(?:\s-u|--user)[= ]?[\"']?[\w.@\-]{1,64}:(?P<value>[A-Za-z0-9+/_.~=%!@$^&*#\-]{8,256})"
)
_PART = re.compile(r"[_\-./=&?:]")
_WORD = re.compile(r"[A-Za-z]{0,40}\d{0,4}|\d{1,40}")
_TURN = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_MANY_TURNS = 4


def redact(text: str) -> str:
    """The text without credentials: those of a known shape, and random values that a line calls secret."""
    return secret_patterns.redact(redact_known(text))


def redact_known(text: str) -> str:
    """The text without credentials, as far as that is quick: for logs of many megabytes."""
    lowered = text.lower()
    for hint, pattern in _SECRETS:
        if hint in lowered:
            text = pattern.sub(_HIDDEN, text)
    text = _RUN.sub(_hide_formats, text)
    if any(name in lowered for name in _NAMES):
        text = _NAMED.sub(_hide_random, text)
    if "-u" in lowered:
        text = _USER.sub(_hide_random, text)
    return _without_keys(text)


def hiding(own: Iterable[str], clean: Clean = redact) -> Clean:
    """`clean` that takes out these values too, whatever they look like: the operator's own secrets."""
    values = sorted({v for v in own if len(v) >= _SHORTEST}, key=len, reverse=True)

    def cleaner(text: str) -> str:
        for value in values:
            text = text.replace(value, _HIDDEN)
        return clean(text)

    return cleaner


def _hide_formats(match: re.Match[str]) -> str:
    text = match[0]
    for form in FORMATS:
        if form.hint in text:
            text = form.pattern.sub(partial(_hide_value, form), text)
    return text


def _hide_value(form: Format, match: re.Match[str]) -> str:
    group = 1 if match.re.groups else 0
    if form.check is not None and not form.check(match[group]):
        return match[0]
    at = match.start()
    return match[0][: match.start(group) - at] + _HIDDEN + match[0][match.end(group) - at :]


def _hide_random(match: re.Match[str]) -> str:
    value = match["value"]
    return match[0].replace(value, _HIDDEN) if _is_random(value) else match[0]


def _is_random(value: str) -> bool:
    """Whether nobody would have made this up: names, paths, versions and numbers are made of words."""
    if len(_TURN.findall(value)) >= _MANY_TURNS:
        return True
    return any(
        len(part) >= _SHORTEST and _WORD.fullmatch(part) is None for part in _PART.split(value)
    )


def redact_all(value: Any, clean: Clean = redact) -> Any:
    """A JSON value with every text in it redacted."""
    match value:
        case str():
            return clean(value)
        case dict():
            return {key: redact_all(one, clean) for key, one in value.items()}
        case list() | tuple():
            return [redact_all(one, clean) for one in value]
        case _:
            return value


def _without_keys(text: str) -> str:
    """Cut PEM private keys, by search and not by a pattern that could run long on hostile text."""
    at = text.find(_PEM)
    while at >= 0:
        head_end = text.find("-----", at + len(_PEM))
        if head_end >= 0 and "PRIVATE KEY" in text[at:head_end]:
            end = text.find("-----END ", head_end)
            tail = text.find("-----", end + 9) if end >= 0 else -1
            stop = tail + 5 if tail >= 0 else len(text)
            text = text[:at] + _HIDDEN + text[stop:]
            at = text.find(_PEM, at + len(_HIDDEN))
        else:
            at = text.find(_PEM, at + len(_PEM))
    return text
