"""Keeps secrets out of whatever leaves: prompts, comments, kept results, logs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from regreen.secrets import credential_detection
from regreen.secrets.credential_formats import CredentialFormat, find_possible_formats

CleanText = Callable[[str], str]

HIDDEN_MARK = "[hidden]"
_MIN_VALUE_CHARACTERS = 8
# What must occur (in small letters), and what goes. A pattern with a group consumes what may be the start of a
# credential, so that no letter of it is looked at again; it is one where the group matches.
_SECRET_PATTERNS = (
    ("gh", re.compile(r"gh[pousr]_[A-Za-z0-9_.\-]{16,}")),  # old and new ("ghs_APPID_JWT") forms
    ("github_pat_", re.compile(r"github_pat_[A-Za-z0-9_]{20,}")),
    ("v1.", re.compile(r"(?<![A-Za-z0-9])v1\.[0-9a-f]{40}(?![0-9a-f])")),  # GitHub, before those
    ("sk-ant-", re.compile(r"sk-ant-[A-Za-z0-9_\-]{16,}")),
    ("sk-", re.compile(r"sk-[A-Za-z0-9_\-]{32,}")),
    ("ia", re.compile(r"A[KS]IA[0-9A-Z]{16}")),
    ("xox", re.compile(r"xox[a-z]-[A-Za-z0-9\-]{10,}")),
    ("xapp-", re.compile(r"xapp-[A-Za-z0-9\-]{20,}")),
    ("hf_", re.compile(r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{30,}")),
    ("eyj", re.compile(r"eyJ[A-Za-z0-9_\-]{8,}+(\.[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]*+)?")),  # JWT
    # credentials in a URL; a template's {user}:{password} is code, and none
    ("://", re.compile(r"(?<=://)[^/\s:@{}<>]{0,256}:(?![$%<{*])[^/\s@{}<>]{1,256}(?=@)")),
    ("://", re.compile(r"(?<=://)[A-Za-z0-9_.~\-]{20,256}(?=@)")),  # a token where the user stands
    ("authorization: ", re.compile(r"(?i)(?<=authorization: )[^\r\n]{8,512}")),
    ("cookie: ", re.compile(r"(?i)(?<=cookie: )[^\r\n]{8,4096}")),
)
# As long as any format is; each is looked for in what has the length alone, not in all of a log.
_VALUE_RUN = re.compile(r"[A-Za-z0-9_.\-/:+=@?&%]{18,}+")
_PEM_HEADER = "-----BEGIN "
# A value behind the name of a secret; `looks_random` decides whether it is one.
_SECRET_WORDS = (
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
_NAMED_SECRET = re.compile(
    r"(?i)(?:token|secret|passw(?:or)?d|passphrase|pwd|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key"
    r"|credential|auth(?!or)|bearer)[a-z0-9_\-]{0,30}"
    r"(?:[\"'\\]{0,2}\s{0,4}[=:,]>?\s{0,4}[\"'\\]{0,2}|\s{1,4})(?:(?:bearer|token|basic)\s{1,4})?"
    r"(?P<value>[A-Za-z0-9+/_.~=%!@$^&*#\-]{12,512}+)(?![(\[])"
)
_CURL_USER = re.compile(
    r"(?:\s-u|--user)[= ]?[\"']?[\w.@\-]{1,64}:(?P<value>[A-Za-z0-9+/_.~=%!@$^&*#\-]{8,256})"
)
_PART_SEPARATOR = re.compile(r"[_\-./=&?:]")
_WORD = re.compile(r"[A-Za-z]{0,40}\d{0,4}|\d{1,40}")
_CASE_TURN = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_MIN_CASE_TURNS = 4


def redact_secrets(text: str) -> str:
    """The text without credentials: those of a known shape, and random values that a line calls secret."""
    return credential_detection.mask_credentials(redact_quickly(text))


def redact_quickly(text: str) -> str:
    """The text without credentials, as far as that is quick: for logs of many megabytes."""
    lowered = text.lower()
    for hint, pattern in _SECRET_PATTERNS:
        if hint in lowered:
            text = pattern.sub(_replace_whole_match, text)
    text = _VALUE_RUN.sub(_hide_credential_formats, text)
    if any(name in lowered for name in _SECRET_WORDS):
        text = _NAMED_SECRET.sub(_hide_random, text)
    if "-u" in lowered:
        text = _CURL_USER.sub(_hide_random, text)
    return _cut_private_keys(text)


def make_value_hider(own: Iterable[str], clean: CleanText = redact_secrets) -> CleanText:
    """`clean` that takes out these values too, whatever they look like: the operator's own secrets."""
    values = sorted({v for v in own if len(v) >= _MIN_VALUE_CHARACTERS}, key=len, reverse=True)

    def cleaner(text: str) -> str:
        for value in values:
            text = text.replace(value, HIDDEN_MARK)
        return clean(text)

    return cleaner


def _replace_whole_match(match: re.Match[str]) -> str:
    return match[0] if match.re.groups and match[1] is None else HIDDEN_MARK


def _hide_credential_formats(match: re.Match[str]) -> str:
    text = match[0]
    for _, form in find_possible_formats(text):
        text = form.pattern.sub(partial(_hide_value, form), text)
    return text


def _hide_value(form: CredentialFormat, match: re.Match[str]) -> str:
    group = 1 if match.re.groups else 0
    if form.check is not None and not form.check(match[group]):
        return match[0]
    at = match.start()
    return match[0][: match.start(group) - at] + HIDDEN_MARK + match[0][match.end(group) - at :]


def _hide_random(match: re.Match[str]) -> str:
    value = match["value"]
    return match[0].replace(value, HIDDEN_MARK) if looks_random(value) else match[0]


def looks_random(value: str) -> bool:
    """Whether a value looks random: names, paths, versions and numbers consist of words."""
    if len(_CASE_TURN.findall(value)) >= _MIN_CASE_TURNS:
        return True
    return any(
        len(part) >= _MIN_VALUE_CHARACTERS and _WORD.fullmatch(part) is None
        for part in _PART_SEPARATOR.split(value)
    )


def redact_all(value: Any, clean: CleanText = redact_secrets) -> Any:
    """A JSON value with every text in it redacted."""
    match value:
        case str():
            return clean(value)
        case dict():
            return {key: redact_all(item, clean) for key, item in value.items()}
        case list() | tuple():
            return [redact_all(item, clean) for item in value]
        case _:
            return value


def _cut_private_keys(text: str) -> str:
    """Cut PEM private keys, by search and not by a pattern that could run long on hostile text."""
    kept_lines: list[str] = []
    done, at = 0, text.find(_PEM_HEADER)
    while at >= 0:
        head_end = text.find("-----", at + len(_PEM_HEADER))
        stop = at + len(_PEM_HEADER)
        if head_end >= 0 and "PRIVATE KEY" in text[at:head_end]:
            end = text.find("-----END ", head_end)
            tail = text.find("-----", end + 9) if end >= 0 else -1
            stop = tail + 5 if tail >= 0 else len(text)
            kept_lines += [text[done:at], HIDDEN_MARK]
            done = stop
        at = text.find(_PEM_HEADER, stop)
    return "".join([*kept_lines, text[done:]])
