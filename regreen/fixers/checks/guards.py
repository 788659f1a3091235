"""Words by which code guards itself, in any language: a patch that leaves fewer of them is for a person to see."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.paths import is_document, is_test

_GUARD = re.compile(
    # who may do it
    r"csrf|xsrf|login_required|LoginRequired\w*|requires?_auth\w*|[Pp]ermission\w*|authori[sz]e[drs]?\b|authori[sz]ation|authenticat\w*"
    r"|IsAuthenticated|IsAdmin\w*|is_staff|is_superuser|is_admin|request\.user|current_user|\bg\.user|\bowner\b|tenant\w*|throttl\w*|rate_?limit\w*|limit_req\w*"
    # whether it is what it says
    r"|compare_digest|timingSafeEqual|ConstantTimeCompare|constant_time\w*|secure_compare|raise_for_status|verify\w*|checksums?|sha\d+sum|signature\w*|[Vv]alidator\w*|\bis_valid\b|full_clean"
    r"|StrictHostKeyChecking=yes|safe_load|SafeLoader|mkstemp|NamedTemporaryFile|mkdtemp|\bsecrets\.\w+|SystemRandom|randomBytes|randomUUID|urandom"
    # what text may reach where
    r"|\b\w*escape\w*|saniti[sz]e\w*|bleach\.\w+|secure_filename|\bquote(?:_plus)?\(|encodeURIComponent|DOMPurify|is_relative_to|realpath|normpath|path\.sep"
    # what runs alone, and what stays whole
    r"|select_for_update|\batomic\b|synchronized|\b\w*Lock\(|\.lock\(|\.acquire\(|\bPROTECT\b|\bRESTRICT\b|read_only_fields|readonly_fields"
    # what machines are told
    r"|forbid\(|#!?\[deny\(|no[-_]new[-_]privileges|cap_drop|runAsNonRoot|readOnlyRootFilesystem|Strict-Transport-Security|X-Frame-Options|Content-Security-Policy|nosniff|HttpOnly|SameSite"
    r"|[Tt]imeout|MaxBytes\w*|LimitReader|starttls|\.(?:nonnegative|positive|nonempty|email|strict|required|refine|parse)\(|\.(?:min|max)\(\d"
)
_WEAK = re.compile(
    r"verify(?:_ssl|_certs?)?\s*=\s*False|CERT_NONE|_create_unverified_context|check_hostname\s*=\s*False|\bshell\s*=\s*True|autoescape[\s=]+(?:False|off|false)"
    r"|\b0?o?[0-7]?777\b|rejectUnauthorized\W{1,4}false|InsecureSkipVerify\W{1,4}true|NODE_TLS_REJECT_UNAUTHORIZED|GIT_SSL_NO_VERIFY|StrictHostKeyChecking[= ](?:no|off|accept-new)|UserKnownHostsFile[= ]/dev/null"
    r"|dangerouslySetInnerHTML|innerHTML\s*=|v-html|\|\s*safe\b|\bmark_safe\(|\bMarkup\(|html_safe\b|bypassSecurityTrust|csrf_exempt|AllowAny\b|permit_all|permitAll|AllowAll\b|skip_before_action"
    r"|--no-check-certificate|--allow-unauthenticated|--ignore-missing|--disable-\w*(?:check|verif)\w*|--privileged\b|\bcurl\s(?:[^\n|;]{0,80}\s)?(?:-k|--insecure)\b"
    r"|\bmd5\b|\bsha-?1\b|\bMD5\b|\bSHA-?1\b|\bcrc32\b|\bRC4\b|\b(?:3?DES|ECB)\b|TLSv1(?:[._][01])?(?![\w.])|VersionTLS1[01]\b|VersionSSL\w+|SSLv[23]|PROTOCOL_TLSv1(?:_1)?\b|\balg\W{1,4}none\b"
    r"|yaml\.(?:unsafe_load|full_load|load)\(|(?:Unsafe|Full)Loader|yaml\.Loader|pickle\.loads?\(|jsonpickle|shelve\.open|allow_pickle\s*=\s*True|weights_only\s*=\s*False"
    r"|tempfile\.mktemp\(|Math\.random|math/rand|\"sh\",\s*\"-c\"|child_process|execSync\(|\bnew Function\(|resolve_entities\s*=\s*True|huge_tree\s*=\s*True|load_dtd\s*=\s*True|\.passthrough\(|\bz\.(?:any|unknown)\(|\bsafeParse\(|\.nullish\(|MINIMUM_SUPPORTED|[\"']plaintext[\"']|[\"']none[\"']\s*\]"
    r"|\b(?:query|execute|exec|raw|system|spawn|popen|send|write|innerHTML)\w*\(?\s*=?\s*\(?(?:`[^`\n]{0,300}\$\{|\"[^\"\n]{0,300}#\{|fmt\.Sprintf\()|(?i:\b(?:select|insert into|update|delete from)\b)[^\n]{0,200}(?:\$\{|#\{|[\"']\s*(?:\+|%|\.\.)\s*\w)"
    r"|\b__all__[\"'](?!\s*(?:,|=|:))"
)
_TELLS_SECRETS = re.compile(
    r"(?i:\b(?:print|puts|echo|printf|console\.\w+|fmt\.Print\w*|log(?:ger|ging)?\.\w+|log\.Print\w*)\b[^\n]{0,200}(?:passw|secret|token|api_?key|credential))"
)
_MADE_CONDITIONAL = re.compile(r"^\s*(?:if|unless|when|try|elif|else if)\b")
_MODE = re.compile(r"\b0o?([0-7]{3})\b|\bchmod\s+(?:-R\s+)?0?([0-7]{3})\b")
_DECIDES = re.compile(
    r"is_valid|auth|perm(?:it|ission)|owner|admin|staff|csrf|passw|credential|signature|login|verif|trusted|forbid|allowed",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"^\s*(?:\}\s*)?(?:else\s+)?(?:if|elif|elsif|unless|while|guard|return)\b(?P<asked>.+)"
)
_SKIPPED = re.compile(r"^\s*(?://|#(?!\[|!\[)|\*|/\*|import\s|from\s+\S+\s+import|use\s)")
_LONG = 2000
_MOST = 200


def guards_kept(files: Sequence[FileChange]) -> Iterator[Reason]:
    """Counted over the whole patch, so that a guard may move; what is imported or said in comments does not count."""
    told = [file for file in files if not is_document(file.path) and not is_test(file.path)]
    before = Counter(word for file in told for word in _words(_GUARD, file.removed))
    after = Counter(word for file in told for word in _words(_GUARD, file.added))
    for word in sorted(before - after):
        where = next(file.path for file in told if word in set(_words(_GUARD, file.removed)))
        yield Reason("sensitive_path", f"{where}: a safeguard goes ({word})")
    for file in told:
        fresh = Counter(_words(_WEAK, file.added)) - Counter(_words(_WEAK, file.removed))
        if fresh:
            line = next((one for _, one in file.added if _WEAK.search(one)), min(fresh))
            what = f"{file.path} lowers a safeguard ({line.strip()[:80]})"
            yield Reason("sensitive_path", what)
        if len(_TELLS_SECRETS.findall(file.added_text)) > sum(
            bool(_TELLS_SECRETS.search(line)) for _, line in file.removed
        ):
            yield Reason("sensitive_path", f"{file.path} writes what looks like a secret to a log")
        yield from _wider_modes(file)
        yield from _made_conditional(file)
        yield from _decided_otherwise(file)


def _made_conditional(file: FileChange) -> Iterator[Reason]:
    """A safeguard that stands as before, but under a condition now."""
    for old, new in file.blocks:
        was, now = ([line.strip() for line in side if line.strip()] for side in (old, new))
        guarded = next((line for line in was if _GUARD.search(line[:_LONG])), None)
        if guarded and set(was) <= set(now) and any(map(_MADE_CONDITIONAL.match, now)):
            what = f"{file.path} makes a safeguard depend on a condition ({guarded[:80]})"
            yield Reason("sensitive_path", what)


def _wider_modes(file: FileChange) -> Iterator[Reason]:
    """`0o600` that becomes `0o644`: more people may read or write."""
    before, after = (
        [int(one or other, 8) for _, line in lines for one, other in _MODE.findall(line)]
        for lines in (file.removed, file.added)
    )
    for now in after:
        if now & 0o002 or (before and not any(now & 0o077 & ~was == 0 for was in before)):
            yield Reason("sensitive_path", f"{file.path} opens a file to more people ({now:o})")


def _decided_otherwise(file: FileChange) -> Iterator[Reason]:
    """A condition about access that asks for something else, or has an alternative more."""
    asked = [found["asked"] for _, line in file.added if (found := _ASKS.match(line[:_LONG]))]
    now = [one for one in asked if _DECIDES.search(one)][:_MOST]
    for _, line in file.removed:
        found = _ASKS.match(line)
        if not found or len(line) > _LONG or not _DECIDES.search(found["asked"]):
            continue
        what = f"{file.path} decides otherwise about access ({line.strip()[:80]})"
        if any(_common(found["asked"], one) for one in now):
            yield Reason("sensitive_path", what)


def _common(old: str, new: str) -> bool:
    """Whether two conditions are about the same: they share a word about access."""
    words = {word.casefold() for word in _DECIDES.findall(old)}
    return old != new and bool(words & {word.casefold() for word in _DECIDES.findall(new)})


def _words(pattern: re.Pattern[str], lines: Sequence[tuple[int, str]]) -> Iterator[str]:
    for _, line in lines:
        if len(line) < _LONG and not _SKIPPED.match(line):
            yield from (found.group(0) for found in pattern.finditer(line))
