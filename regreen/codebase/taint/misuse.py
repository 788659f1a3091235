"""Calls that are unsafe whatever flows into them: broken hashes and ciphers, cookies that travel in the clear."""

from __future__ import annotations

import ast
import re

from regreen.codebase.taint.run import Flow, Frame, Run
from regreen.codebase.taint.sinks import Arguments
from regreen.codebase.taint.values import Step

_WEAK_HASHES = frozenset({"md5", "md4", "md2", "sha1", "sha", "ripemd160", "sha-1", "md5-sha1"})
_HASH_NAMES = re.compile(
    r"(?:hashlib|Crypto\.Hash\.\w+|Cryptodome\.Hash\.\w+|cryptography\.hazmat\.primitives\.hashes)\.(\w+)\Z",
    re.IGNORECASE,
)
_CIPHERS = re.compile(
    r"(?:Crypto|Cryptodome)\.Cipher\.(DES3?|ARC[24]|Blowfish|CAST)\.new\Z"
    r"|cryptography\.hazmat\.primitives\.ciphers\.(?:algorithms\.(ARC4|Blowfish|IDEA|TripleDES|CAST5|SEED)|modes\.(ECB))\Z"
)
_SECURITY = re.compile(
    r"(?i)passw|secret|token|credential|signature|\bsign|auth|login|session|sensitive|certificate|hmac|crypt|api_?key"
)


def check(run: Run, frame: Frame, node: ast.Call, names: tuple[str, ...], args: Arguments) -> None:
    """Report the call where it is a misuse by itself."""
    for name in names:
        broken = _broken_hash(name, args)
        if broken is not None and args.keywords.get("usedforsecurity", args.get(99)) is None:
            _report(run, frame, node, "weak-hash", broken, certain=_about_security(frame))
        cipher = _CIPHERS.search(name)
        if cipher is not None:
            _report(
                run, frame, node, "weak-cipher", next(g for g in cipher.groups() if g), certain=True
            )
        if name.endswith(".new") and ".Cipher.AES" in name and _is_ecb(args):
            _report(run, frame, node, "weak-cipher", "AES in ECB mode", certain=True)
        if name.endswith(".set_cookie"):
            _cookie(run, frame, node, args)


def _broken_hash(name: str, args: Arguments) -> str | None:
    match = _HASH_NAMES.match(name)
    if match is None:
        return None
    wanted = match[1].lower()
    if wanted == "new":
        algorithm = args.get(0, "name")
        text = algorithm.text if algorithm is not None else None
        wanted = (text or "").lower() if name.startswith("hashlib") else name.split(".")[2].lower()
    return wanted if wanted in _WEAK_HASHES else None


def _is_ecb(args: Arguments) -> bool:
    mode = args.get(1, "mode")
    return mode is not None and any(name.endswith("MODE_ECB") for name in mode.names())


def _cookie(run: Run, frame: Frame, node: ast.Call, args: Arguments) -> None:
    secure = args.get(6, "secure")
    if args.spread is not None:
        return
    if secure is None:
        _report(run, frame, node, "insecure-cookie", "no `secure=True`", certain=False)
    elif secure.only in ((False,), (None,)):
        _report(run, frame, node, "insecure-cookie", "`secure=False`", certain=True)


def _about_security(frame: Frame) -> bool:
    """Whether the function speaks of passwords, tokens and the like; a cache key needs no strong hash."""
    if isinstance(frame.node, ast.Module):
        return False
    words: list[str] = [getattr(frame.node, "name", "")]
    for index, node in enumerate(ast.walk(frame.node)):
        if index > 2000:
            break
        if isinstance(node, ast.Name):
            words.append(node.id)
        elif isinstance(node, ast.Attribute):
            words.append(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.append(node.value[:200])
    return _SECURITY.search("\n".join(words)) is not None


def _report(run: Run, frame: Frame, node: ast.Call, rule: str, what: str, *, certain: bool) -> None:
    end = node.end_lineno or node.lineno
    step = Step(frame.path, node.lineno, what)
    run.flows.setdefault(
        (rule, frame.path, node.lineno),
        Flow(rule, frame.path, node.lineno, end, what, "code", what, certain, (step,)),
    )
