"""What each rule means: its number in the CWE, how bad it is, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass

from regreen.models import Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of harm. `confidence` holds for a value that surely comes from a request."""

    cwe: int
    title: str
    severity: Severity
    confidence: float
    harm: str
    mend: str


RULES: dict[str, Rule] = {
    "command-injection": Rule(
        78, "Command injection", "critical", 0.93, "The sender can run any command on this machine.",
        "Pass a list of arguments without `shell=True`, or quote each with `shlex.quote`.",
    ),
    "code-injection": Rule(
        94, "Code injection", "critical", 0.94, "The sender can run any Python here.",
        "Use `ast.literal_eval`, `json.loads` or a table of the allowed operations.",
    ),
    "sql-injection": Rule(
        89, "SQL injection", "critical", 0.93, "The sender can read or change any row.",
        "Put a placeholder into the statement and pass the value as a parameter.",
    ),
    "path-traversal": Rule(
        22, "Path traversal", "high", 0.88, "With `../` or an absolute path the sender reaches files outside.",
        "Resolve the path and refuse it unless it `is_relative_to` the intended folder, or use `secure_filename`.",
    ),
    "xss": Rule(
        79, "Cross-site scripting", "high", 0.9, "The sender's markup and scripts run in a visitor's browser.",
        "Render it through a template, or escape it with `markupsafe.escape`.",
    ),
    "template-injection": Rule(
        1336, "Template injection", "critical", 0.93, "The sender writes template code, which can run Python.",
        "Keep the template constant and pass the value as a variable.",
    ),
    "open-redirect": Rule(
        601, "Open redirect", "medium", 0.88, "A link to this site can lead to any other site.",
        "Allow only paths of this site, or hosts from a fixed list.",
    ),
    "unsafe-deserialization": Rule(
        502, "Unsafe deserialization", "critical", 0.93, "Loading it can run any code.",
        "Use JSON, or `yaml.safe_load` for YAML.",
    ),
    "xpath-injection": Rule(
        643, "XPath injection", "high", 0.9, "The sender can change what is selected.",
        "Use an XPath variable (`xpath('...=$name', name=value)`).",
    ),
    "ldap-injection": Rule(
        90, "LDAP injection", "high", 0.9, "The sender can change which entries match.",
        "Escape it with `ldap3.utils.conv.escape_filter_chars`.",
    ),
    "xxe": Rule(
        611, "XML external entities", "high", 0.9, "The document can read local files and reach internal hosts.",
        "Leave external entities off, or parse with `defusedxml`.",
    ),
    "ssrf": Rule(
        918, "Server-side request forgery", "high", 0.86, "The sender chooses which host this server calls.",
        "Take the host from a fixed list and only the path from the request.",
    ),
    "log-injection": Rule(
        117, "Log injection", "low", 0.5, "Line breaks in it forge log entries.",
        "Log it with `%r`, or remove line breaks.",
    ),
    "header-injection": Rule(
        113, "Header injection", "medium", 0.6, "Line breaks in it add headers of the sender's choice.",
        "Remove `\\r` and `\\n`, or let the framework set the header.",
    ),
    "trust-boundary": Rule(
        501, "Trust boundary violation", "medium", 0.82, "Code that reads the session will trust what the sender wrote.",
        "Check the value against what is allowed before it is stored.",
    ),
    "weak-random": Rule(
        330, "Predictable secret", "high", 0.88, "`random` can be predicted from a few of its outputs.",
        "Use `secrets.token_urlsafe()` or `random.SystemRandom`.",
    ),
    "weak-hash": Rule(
        328, "Broken hash", "medium", 0.82, "Collisions can be computed; as a password hash it falls to guessing.",
        "Use SHA-256 (for passwords argon2 or scrypt), or say `usedforsecurity=False` where nothing depends on it.",
    ),
    "weak-cipher": Rule(
        327, "Broken cipher", "high", 0.9, "What is encrypted with it can be read or altered.",
        "Use AES-GCM or ChaCha20-Poly1305.",
    ),
    "insecure-cookie": Rule(
        614, "Cookie without `Secure`", "medium", 0.86, "The cookie travels in the clear when a link says `http:`.",
        "Pass `secure=True`.",
    ),
}  # fmt: skip

# How much a sink's confidence is worth for a source that an attacker seldom controls.
ORIGINS: dict[str, float] = {
    "web": 1.0,
    "weak-random": 1.0,
    "code": 1.0,
    "network": 0.9,
    "input": 0.55,
    "environment": 0.45,
    "argv": 0.5,
    "file": 0.5,
}
DOUBTFUL = 0.65


def confidence(rule: str, origin: str, *, certain: bool) -> float:
    """The share of such flows that are real defects."""
    prior = RULES[rule].confidence * ORIGINS.get(origin, 0.5)
    return round(prior if certain else prior * DOUBTFUL, 3)
