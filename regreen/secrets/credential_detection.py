"""Credentials in text: by format, by checksum, and by what the line says around a random value.

What a finding carries is masked: the value itself never leaves this module.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from urllib.parse import unquote

from regreen.code.paths import is_document, is_example, is_lock_file, is_test
from regreen.domain.text_limits import MAX_LINE
from regreen.secrets.credential_formats import (
    CredentialFormat,
    FormatHints,
    find_possible_formats,
)

URL_CREDENTIALS = "credentials in a URL"
_KINDS_BY_NAME = frozenset({"password", "secret", URL_CREDENTIALS})
_OVERLAP_CHARACTERS = 1000
_MAX_FINDINGS = 200
_MAX_FINDINGS_PER_LINE = 1000

_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:(?:RSA|EC|DSA|OPENSSH|ENCRYPTED|PGP|SSH2 ENCRYPTED) )?PRIVATE KEY(?: BLOCK)?-----"
)
_JWK_KEY = re.compile(r"[\"']kty[\"']\s{0,4}:\s{0,4}[\"'](?:EC|RSA|OKP|oct)[\"']")
_JWK_PART = re.compile(r"[\"'](?:d|k)[\"']\s{0,4}:\s{0,4}[\"']([\w-]{40,700})[\"']")
_SEALED_SECRET = re.compile(r"^kind:\s*SealedSecret\b", re.MULTILINE)  # what is in it is encrypted
_KEY_BODY = re.compile(r"[A-Za-z0-9+/]{40,}")
_CREDENTIAL_URL = re.compile(
    r"\b([a-z][a-z0-9+]{2,20})://([^\s:/@'\"<>{}$]{0,64}):([^\s@'\"<>]{3,200})@([^\s/:'\"<>?#,;)]{1,200})",
    re.IGNORECASE,
)
_SECRET_KEY = re.compile(
    r"(?i)passw(?:or)?d|passwd|passphrase|\bpwd|_pwd|\bpass$|_pass$|secret|token|api_?-?key|apikey|access_?-?key|auth_?-?key|private_?-?key|"
    r"credential|client_?-?key|encryption_?-?key|signing_?-?key|master_?-?key|account_?-?key|license_?-?key|service_?-?key|"
    r"\bauth$|_auth$|auth_?token|bearer|_pat$|\bpat$|requirepass|masterauth|\bbind_?pw|webhook_?key|hmac_?key|salt$|session_?-?key|deploy_?-?key|shared_?-?key|consumer_?-?key|app_?-?key$"
)
# What every line has that names a credential: most have none of it, and need no closer look.
_CREDENTIAL_WORD = re.compile(
    r"(?i)pass|pwd|secret|token|key|credential|auth|bearer|salt|pat\b|bind_?pw|identified|login|curl|mysql"
)
_PASSWORD_KEY = re.compile(r"(?i)passw(?:or)?d|passwd|passphrase|pwd|_?pass$|masterauth|bind_?pw")
_INNOCENT_KEY = re.compile(
    r"(?i)hash|digest|checksum|encrypted|cipher|sha\d|md5|fingerprint|integrity|public|pub_?key|token_?(?:type|url|uri|endpoint|name|id$|limit|count|expir|ttl|field|header|kind|class|s$)|"
    r"tokens?_?(?:used|per|total|max)|max_?tokens?|num_?tokens?|(?:eos|bos|pad|unk|cls|sep|mask|stop|special|csrf|xsrf|next|page|continuation|pagination|sync|cursor|cancel|cancellation|sub|start|end|prompt|input|output)_?token|tokeniz|"
    r"secret_?(?:name|id$|arn|ref|path|key_?ref|manager|store|type|version)|password_?(?:field|hash|reset|change|policy|length|label|hint|input|min|max|confirm|expir|url|file|path|name)|"
    r"key_?(?:name|id$|path|file|type|size|len|ring|board|word|usage|vault)|_?(?:file|path|name|url|uri|regex|pattern|prefix|suffix|header|label|placeholder|env|var|field|column|title|description|help|message|error|example|class|type|mode|length|count|format|scheme|endpoint|selector|template)$|"
    r"etag|commit|revision|version|nonce|uuid|guid|author|authority|authoriz"
)
_PLACEHOLDER_VALUE = re.compile(
    r"(?i)example|sample|dummy|placeholder|changeme|change[-_]?(?:me|this|it)|replace[-_]?(?:me|this|with)|your[-_]?|<[^<>]*>|\bxxx|x{4,}|\*{3,}|\.{3,}|…|todo|fixme|insert[-_]|enter[-_]|"
    r"redacted|masked|hidden|removed|fake|mock|test[-_]?(?:key|token|secret|pass|value|only)|not[-_]?(?:a[-_]?)?(?:real|secret)|(?<![a-z0-9])(?:foo(?:bar)?|bar|baz)(?![a-z0-9])|foobar|lorem|deadbeef|0123456789|123456789|abcdef(?:gh|12)|qwerty|"
    r"my[-_]?(?:secret|password|token|key|super)|super[-_]?secret|s3cr3t|p[a@]ssw[o0]rd|letmein|none|null|undefined|default|\bsecret\b|insecure|unsafe|dev(?:elopment)?[-_]|local(?:host|dev)?[-_]?|demo|(?:^|[-_])test(?:ing|s)?(?:$|[-_\d])|aaaa|1111|0000"
)
_REFERENCE_VALUE = re.compile(
    r"^\$|\$\{|\{\{|\}\}|%\(|%[sd]\b|\{[\w.]*\}|\{[\w.]+\(|^@|^env[.:(]|^process\.|^os\.|getenv|environ|^secrets?\.|^vars\.|^vault[:.]|^ref[:+]|^arn:|^projects/|^ssm:|^sm://|^op://|^<|^\[|^/|^\./|^~/|^https?://|^file:|\(\)|\.(?:get|read|value|decode|encode|format|json|ya?ml|py|js|ts|txt|pem|key|crt|html|com|org|net|io)\b|::|->|=>|\)$|^self\.|^this\.|^config\."
)
_TEMPLATE_VALUE = re.compile(r"^\$|\$\{|\{\{|\}\}|%\(|://|^/")
_UUID = re.compile(r"(?i)^[{(]?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}[)}]?$")
_PLAIN_WORDS = re.compile(r"^[A-Za-z]+(?:[-_. /:][A-Za-z]+)*\d{0,2}$")
_IDENTIFIER = re.compile(
    r"^[a-z]+(?:[A-Z][a-z]+)+\d{0,2}$|^[A-Z][a-z]+(?:[A-Z][a-z]+)+\d{0,2}$|^[A-Z]+(?:_[A-Z0-9]+)+$|^[a-z]+(?:_[a-z0-9]+)+$|^[a-z]+(?:-[a-z0-9]{1,8}){1,6}$"
)
# an account of a blockchain; a regular expression
_NO_SECRET = re.compile(r"^0x[0-9a-fA-F]{40}$|\[\^?(?:a-z|A-Z|0-9|\\w)|\(\?[=!:<]")
_HEX_NUMBER = re.compile(r"(?i)^(?:0x)?[0-9a-f]+$")
_HASH = re.compile(
    r"(?i)^(?:sha(?:1|256|384|512)[-:]|md5[-:]|\$2[aby]\$|\$argon2|\$pbkdf2|\$[156]\$|pbkdf2[:_]|scrypt:|bcrypt|\{SSHA\}|ENC\[|AQICA|vault:v\d+:|gAAAAA)"
)
_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}|^\d++(?>(?:\.\d++)+)[\w.-]*+$|^[\d.,:/-]+$")
_LOCAL_HOST = re.compile(
    r"(?i)^(?:localhost|127\.|0\.0\.0\.0|\[?::1|host\.docker|db$|database$|postgres$|mysql$|redis$|mongo(?:db)?$|rabbitmq$|host$|hostname$|server$|.*\.(?:example|test|local|invalid|localhost)$|.*example\.(?:com|org|net)$)"
)
_UNREAD_SUFFIXES = (
    ".min.js",
    ".min.css",
    ".map",
    ".svg",
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".pdf",
    ".ico",
    ".woff",
    ".woff2",
)


@dataclass(frozen=True, slots=True)
class FoundSecret:
    """A credential in line `line` (1-based). `masked` may be shown; `digest` distinguishes two credentials without revealing them."""

    kind: str
    line: int
    masked: str
    confidence: float
    digest: int

    @property
    def has_known_format(self) -> bool:
        """Whether its format identifies it; other values are identified by their name."""
        return self.kind not in _KINDS_BY_NAME


@dataclass(frozen=True, slots=True)
class _Match:
    kind: str
    start: int
    end: int
    value: str
    confidence: float


def find_secrets(text: str, path: str = "") -> tuple[FoundSecret, ...]:
    """Every credential in a file's text, in the order of its lines."""
    if _is_unread(path) or _SEALED_SECRET.search(text):
        return ()
    found: list[FoundSecret] = []
    is_demonstration = _is_demonstration(path)
    formats = find_possible_formats(text)
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        best: dict[str, _Match] = {}
        for match in islice(_find_in_line(line, path, formats), _MAX_FINDINGS_PER_LINE):
            known = best.get(match.value)
            if known is None or match.confidence > known.confidence:
                best[match.value] = match
        found.extend(
            _make_secret(match, number) for match in _drop_overlapping_matches(list(best.values()))
        )
        if (
            _PRIVATE_KEY.search(line)
            and _has_key_body(lines, number - 1)
            and not _is_placeholder_key(lines, number - 1)
        ):
            sure = 0.6 if is_demonstration else 0.97
            found.append(
                FoundSecret(
                    "private key",
                    number,
                    "-----BEGIN … PRIVATE KEY-----",
                    sure,
                    hash(lines[min(number, len(lines) - 1)]),
                )
            )
        found.extend(_find_key_files(lines, number, 0.6 if is_demonstration else 0.95))
        if len(found) >= _MAX_FINDINGS:
            break
    return tuple(found)


def _is_unread(path: str) -> bool:
    return is_lock_file(path) or path.lower().endswith(_UNREAD_SUFFIXES)


def _is_demonstration(path: str) -> bool:
    """Whether values are made up where this file stands: the same text elsewhere would be a credential."""
    return is_test(path) or is_document(path) or is_example(path)


def _find_key_files(lines: list[str], number: int, sure: float) -> Iterator[FoundSecret]:
    """A private key in PuTTY's own file, or as a JSON web key."""
    line = lines[number - 1]
    if line.startswith("Private-Lines:") and lines[0].startswith("PuTTY-User-Key-File"):
        body = "".join(lines[number : number + 1])
        if not _is_example(body):
            yield FoundSecret("private key", number, "Private-Lines: …", sure, hash(body))
    near = "\n".join(lines[max(0, number - 12) : number + 11]) if _JWK_PART.search(line) else ""
    for match in _JWK_PART.finditer(line) if _JWK_KEY.search(near) else ():
        if not _is_example(match[1]):
            yield FoundSecret("private key", number, mask_value(match[1]), sure, hash(match[1]))


def mask_credentials(text: str) -> str:
    """The text with every credential masked, for logs, prompts and comments."""
    formats = find_possible_formats(text)
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if len(line) > MAX_LINE:
            lines[index] = _redact_long_line(line, formats)
        else:
            for match in sorted(
                _find_in_line(line, "", formats), key=lambda match: match.start, reverse=True
            ):
                lines[index] = lines[index].replace(
                    match.value, mask_value(match.value, match.kind)
                )
        if _PRIVATE_KEY.search(line):
            _blank_key_body(lines, index)
    return "\n".join(lines)


def _redact_long_line(line: str, formats: FormatHints) -> str:
    """A long line, read in pieces that overlap by more than a name and its value can take."""
    found = list(_find_in_line(line, "", formats))
    for at in range(0, len(line), MAX_LINE - _OVERLAP_CHARACTERS):
        piece = _find_in_line(line[at : at + MAX_LINE], "", formats)
        found += [replace(match, start=at + match.start, end=at + match.end) for match in piece]
    kept_lines: list[str] = []
    done = 0
    for match in sorted(found, key=lambda match: (match.start, -match.end)):
        if match.end > done:
            kept_lines += [line[done : max(done, match.start)], mask_value(match.value, match.kind)]
            done = match.end
    return "".join([*kept_lines, line[done:]])


def masks_by_credential(text: str, path: str = "") -> dict[str, str]:
    """What to write instead of each credential in a file's text, wherever that quotes it. It is not for showing."""
    if _is_unread(path) or _SEALED_SECRET.search(text):
        return {}
    formats = find_possible_formats(text)
    return {
        match.value: mask_value(match.value, match.kind)
        for line in text.split("\n")
        for match in _find_in_line(line, path, formats)
    }


def mask_value(value: str, kind: str = "") -> str:
    """What may be shown of a value: the prefix that names its kind, nothing random."""
    prefix = re.match(r"(?:[A-Za-z0-9]{2,6}[-_.]){1,2}|AKIA|ASIA|AIza", value)
    shown = prefix.group() if prefix is not None and kind and kind not in _KINDS_BY_NAME else ""
    return f"{shown}…[{len(value)} characters]"


def _blank_key_body(lines: list[str], index: int) -> None:
    for at in range(index, min(len(lines), index + 120)):
        lines[at] = _KEY_BODY.sub("…", lines[at])
        if "-----END" in lines[at]:
            break


def _make_secret(match: _Match, number: int) -> FoundSecret:
    return FoundSecret(
        match.kind, number, mask_value(match.value, match.kind), match.confidence, hash(match.value)
    )


def _drop_overlapping_matches(found: list[_Match]) -> list[_Match]:
    """A token inside a URL or an assignment is one secret, with the highest confidence."""
    kept_lines: list[_Match] = []
    for match in sorted(found, key=lambda f: -f.confidence):
        if not any(match.start < other.end and other.start < match.end for other in kept_lines):
            kept_lines.append(match)
    return sorted(kept_lines, key=lambda f: f.start)


def _find_in_line(line: str, path: str, formats: FormatHints) -> Iterator[_Match]:
    for _, form in find_possible_formats(line, formats):
        yield from _find_formatted(form, line, path)
    if len(line) > MAX_LINE:
        return
    if "://" in line:
        yield from _find_in_urls(line, path)
    if _CREDENTIAL_WORD.search(line) or path.endswith("pgpass"):
        yield from _find_assigned(line, path)


def _find_formatted(form: CredentialFormat, line: str, path: str) -> Iterator[_Match]:
    for match in form.pattern.finditer(line):
        group = 1 if match.re.groups else 0
        value = match[group]
        sure = form.confidence if form.check is None else form.check(value)
        if (
            not sure
            or _is_example(value)
            or entropy_bits(value) < form.min_entropy
            or "integrity" in line[max(0, match.start() - 40) : match.start()]
        ):
            continue
        if is_document(path):
            sure *= 0.86 if sure >= 0.94 else 0.5
        elif _is_demonstration(path):
            sure *= 0.8 if sure >= 0.93 else 0.5
        yield _Match(form.kind, match.start(group), match.end(group), value, round(sure, 3))


def _is_example(value: str) -> bool:
    """Values from documentation, and values that are not random."""
    lowered = value.lower()
    if any(
        word in lowered
        for word in (
            "example",
            "xxxx",
            "your",
            "placeholder",
            "changeme",
            "dummy",
            "redacted",
            "1234567890",
            "abcdefgh",
            "fake",
            "sample",
            "deadbeef",
        )
    ):
        return True
    body = re.sub(r"^(?:[A-Za-z0-9]{2,8}[-_.]){1,2}", "", value)
    return len(set(body)) <= 5 or _is_repetitive(body)


def _is_repetitive(text: str) -> bool:
    """`abcabcabc...`: made of one short piece."""
    return any(
        len(text) >= 3 * size and text == (text[:size] * (len(text) // size + 1))[: len(text)]
        for size in range(1, 9)
    )


def _find_in_urls(line: str, path: str) -> Iterator[_Match]:
    for match in _CREDENTIAL_URL.finditer(line):
        user, password, host = match.groups()[1:]
        if (
            _REFERENCE_VALUE.search(password)
            or _is_example(match[0])
            or _PLACEHOLDER_VALUE.search(unquote(password))
        ):
            continue
        if password.lower() in {
            user.lower(),
            "password",
            "pass",
            "pwd",
            "secret",
            "admin",
            "root",
            "guest",
            "test",
            "token",
            "user",
        }:
            continue
        if _LOCAL_HOST.search(host) and len(password) < 16:
            continue
        if _PLAIN_WORDS.match(password) and len(password) < 12 and entropy_bits(password) < 3.0:
            continue
        sure = 0.9 if not _is_demonstration(path) else 0.5
        yield _Match(URL_CREDENTIALS, match.start(3), match.end(3), password, sure)


def _find_assigned(line: str, path: str) -> Iterator[_Match]:
    for match in _find_named_values(line, path):
        sure = _score_value(match.key, match.value, path)
        if sure:
            kind = "password" if _PASSWORD_KEY.search(match.key) else "secret"
            yield _Match(kind, match.start, match.end, match.value, sure)


def _score_value(key: str, value: str, path: str) -> float:
    """The confidence that a value is a credential, from its name and its randomness."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)
    if not _SECRET_KEY.search(name) or _INNOCENT_KEY.search(name):
        return 0.0
    if _is_demonstration(path):
        return 0.0
    if key == _NETRC_KEY and _UUID.match(value):
        return 0.85
    if _is_not_random(value):
        return 0.0
    sure = _score_password(value) if _PASSWORD_KEY.search(name) else _score_token(value)
    return round(sure, 3)


def _is_not_random(value: str) -> bool:
    if _is_surely_random(value):
        return _HASH.match(value) is not None
    return bool(
        _PLACEHOLDER_VALUE.search(value)
        or _REFERENCE_VALUE.search(value)
        or _NO_SECRET.search(value)
        or _UUID.match(value)
        or _HASH.match(value)
        or _DATE.match(value)
        or _IDENTIFIER.match(value)
        or _is_repetitive(value)
    )


def _is_surely_random(value: str) -> bool:
    """Whether letters, digits and signs are mixed as only a generator mixes them, whatever words occur in it."""
    classes = all(re.search(p, value) for p in (r"[a-z]", r"[A-Z]|[^\w]", r"\d", r"[^\w]"))
    return (
        classes
        and len(value) >= 40
        and entropy_bits(value) >= 4.6
        and _TEMPLATE_VALUE.search(value) is None
        and re.search(r"[a-z]{7}|[A-Z]{7}", value) is None
    )


def _score_password(value: str) -> float:
    classes = sum(bool(re.search(p, value)) for p in (r"[a-z]", r"[A-Z]", r"\d", r"[^\w]"))
    if len(value) < 8 or len(set(value)) < 5:
        return 0.0
    if _PLAIN_WORDS.match(value) and classes < 3:
        return 0.0
    if classes >= 3 and entropy_bits(value) >= 2.7:
        return 0.87
    if classes >= 2 and len(value) >= 10 and entropy_bits(value) >= 3.0 and re.search(r"\d", value):
        return 0.84
    return 0.0


def _score_token(value: str) -> float:
    if len(value) < 16 or len(set(value)) < 8:
        return 0.0
    if _HEX_NUMBER.match(value):
        return 0.86 if len(value) >= 24 and entropy_bits(value) >= 2.9 else 0.0
    if not re.search(r"\d", value) or not re.search(r"[A-Za-z]", value):
        return (
            0.84
            if len(value) >= 32 and entropy_bits(value) >= 4.2 and not _PLAIN_WORDS.match(value)
            else 0.0
        )
    if _looks_like_joined_words(value):
        return 0.0
    return 0.88 if entropy_bits(value) >= 3.4 else 0.0


def _looks_like_joined_words(value: str) -> bool:
    """Words joined by signs, as people name things: `prod-eu-west-1-main-key`."""
    words = re.split(r"[-_./:+ ]", value)
    return (
        len(words) >= 3
        and sum(len(word) <= 12 and word.isalpha() for word in words) * 2 >= len(words) + 1
    )


def entropy_bits(text: str) -> float:
    """Bits a letter, by how often each occurs."""
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())


def _has_key_body(lines: list[str], index: int) -> bool:
    after = lines[index].partition("PRIVATE KEY")[2]
    if _KEY_BODY.search(after.replace("\\n", " ")):
        return True
    following = lines[index + 1 : index + 14]
    return any(_KEY_BODY.search(line) for line in following[:8])


def _is_placeholder_key(lines: list[str], index: int) -> bool:
    body = "".join(re.sub(r"[^A-Za-z0-9+/=]", "", line) for line in lines[index + 1 : index + 4])
    return bool(body) and (
        len(set(body)) <= 8 or _is_repetitive(body[:64]) or "EXAMPLE" in body.upper()
    )


# Where in a line a value stands that has a name: assignments, options, headers, elements, statements, addresses.

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
_NETRC_KEY = "netrc password"


@dataclass(frozen=True, slots=True)
class _NamedValue:
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
    (_NETRC_LINE, _NETRC_KEY),
)


def _find_named_values(line: str, path: str) -> Iterator[_NamedValue]:
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


def _find_all(pattern: re.Pattern[str], line: str, key: str | None) -> Iterator[_NamedValue]:
    for match in pattern.finditer(line):
        yield _make_named_value(match, key or match["key"])


def _make_named_value(match: re.Match[str], key: str) -> _NamedValue:
    return _NamedValue(key, match["value"], match.start("value"), match.end("value"))
