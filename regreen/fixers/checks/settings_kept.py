"""What a patch makes of settings that guard something: switches, limits, lists of what is allowed or checked.

A setting is a name with a plain value, wherever it stands: an assignment, an argument, a default, an entry of a
mapping, a line of a configuration file.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regreen.fixers.checks.change import FileChange, Reason
from regreen.fixers.checks.functions import defaults, scoped
from regreen.fixers.checks.knowing import worked_out
from regreen.fixers.checks.paths import is_document, is_test

_ON_IS_SAFE = re.compile(
    r"strict|verif|validat|check|secure|security|enforce|safe|assert|escape|sanit|httponly|samesite|ssl|tls|csrf|auth|require|read_?only|encrypt|protect|unique|sandbox",
    re.IGNORECASE,
)
_OFF_IS_SAFE = re.compile(
    r"debug|insecure|unsafe|allow_|^allow|skip|ignore|silent|force|redirect|trust|privileg|disable|anonymous|bypass|exempt|expose|hostnetwork|allow[A-Z]",
    re.IGNORECASE,
)
_LESS_IS_SAFE = re.compile(
    r"limit|max|attempt|rate|throttl|ttl|expir|max_?age|quota|lifetime", re.IGNORECASE
)
_MORE_IS_SAFE = re.compile(
    r"round|iteration|pbkdf2|bcrypt|scrypt|argon|work_?factor|entropy|salt|key_?(?:size|length|bits)|nbytes|token_(?:hex|bytes|urlsafe)|min(?:imum)?_?(?:length|version|size)",
    re.IGNORECASE,
)
_BOUND = re.compile(r"timeout|deadline|max|limit|ttl|expir|attempts|retries", re.IGNORECASE)
_LETS_IN = re.compile(
    r"allow|trusted|origin|host|permit|scope|exempt|public|white_?list|safe_?list|cors|fields$|exclude$",
    re.IGNORECASE,
)
_KEEPS_OUT = re.compile(
    r"middleware|validat|permission|authenticat|throttle|required|forbid|block|deny|protect|read_?only|sensitive|checks|rules|cap_drop|security|exclude$",
    re.IGNORECASE,
)
_ANYTHING = {"*", "__all__", "0.0.0.0", "0.0.0.0/0", "::", ".*", "all", "ALL", "none"}  # noqa: S104  # looked for, not bound to
_SECRET = re.compile(r"secret|password|passwd|api_?key|token$|private_?key", re.IGNORECASE)
_SEED = re.compile(r"^(?:random_)?(?:seed|state)$|^random_state$", re.IGNORECASE)
_GUARDS_A_SETTING = re.compile(
    r"auth|security|secure|ssl|tls|cert|cors|csrf|secret|token|passw|permission|role|privileg|cap_|limit|rate|max_|ttl|timeout|expir|origin|allow|deny|debug|verif|strict|require|encrypt|cookie|session|header|listen|^ports?$|^bind$|^user$",
    re.IGNORECASE,
)
_GROWN = 2.0
_OUT_OF_SIZE = 9.0
_CONFIGURATION = {".yml", ".yaml", ".toml", ".ini", ".cfg", ".conf", ".json", ".env", ".properties"}
_LINE = re.compile(
    r"""["']?(?P<key>[A-Za-z_][\w.-]{0,60})["']?\s*(?::=|[:=])\s*["']?(?P<value>true|false|yes|no|on|off|null|none|\*|\d[\d_]*(?:\.\d+)?\s?(?:[kKmMgG]i?[bB]?|ms|s|m|h|d)?)\b""",
    re.IGNORECASE,
)
_KEYED = re.compile(r"^\s*(?:-\s+)?[\"']?(?P<key>[A-Za-z_][\w.-]{0,60})[\"']?(?:\s*[:=]\s*|\s+)\S")
_FORBIDS = re.compile(r"[:=]\s*[\"']?(?:deny|forbid|error|strict|always|required)\b")
_REPEATS = re.compile(r"\{(\d{1,6}),(\d{0,6})\}")
_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9}
_LONG = 500


@dataclass(frozen=True, slots=True)
class Setting:
    """A plain value (None: none, or nothing that can be read here) or a list's parts under a name."""

    value: bool | float | str | None
    parts: tuple[str, ...] | None = None


Key = tuple[str, str, int]


def settings_kept(files: Sequence[FileChange]) -> list[Reason]:
    """Settings that guard less than before are for a person to agree to."""
    reasons: list[Reason] = []
    for file in files:
        if is_document(file.path) or is_test(file.path) or file.old is None or file.new is None:
            continue
        if file.is_python:
            before, after = dict(_settings(file.old_tree)), dict(_settings(file.new_tree))
        else:
            before = dict(_numbered((file.path, one) for one in _lines(file.removed)))
            after = dict(_numbered((file.path, one) for one in _lines(file.added)))
        for key, now in after.items():
            was = before.get(key)
            what = _worse(key[1], was, now) if was != now else ""
            if what:
                reasons.append(Reason("silenced", f"{file.path}: {what}"))
        reasons += _longer(file)
        if file.suffix in _CONFIGURATION:
            reasons += _lines_gone(file)
    return reasons


def _worse(path: str, was: Setting | None, now: Setting) -> str:
    """In words, how the setting guards less; empty where it does not."""
    name = path.rsplit(".", 1)[-1]
    opens = bool(_OFF_IS_SAFE.search(name)) and not _ON_IS_SAFE.search(name)
    what = ""
    if now.value in _ANYTHING and _LETS_IN.search(path):
        what = f"lets anything in ({now.value})"
    elif was is None:
        what = "is switched on" if now.value is True and opens else ""
    elif was.parts is not None and now.parts is not None:
        what = _list_worse(path, was.parts, now.parts)
    elif isinstance(was.value, bool) and isinstance(now.value, bool):
        worse = opens if now.value else _ON_IS_SAFE.search(name)
        what = f"goes from {was.value} to {now.value}" if worse else ""
    elif isinstance(was.value, int | float) and isinstance(now.value, int | float):
        what = _number_worse(path, was.value, now.value)
    elif isinstance(was.value, int | float) and now.value is None and _BOUND.search(name):
        what = f"goes from {was.value:g} to no bound"
    elif was.value is None and isinstance(now.value, int) and _SEED.search(name):
        what = f"is fixed at {now.value}, which makes every run the same"
    elif was.value is None and isinstance(now.value, str) and _SECRET.search(name):
        what = "becomes a fixed text"
    return f"{path} {what}" if what else ""


def _number_worse(path: str, was: float, now: float) -> str:
    bounds = _BOUND.search(path) or _LESS_IS_SAFE.search(path)
    if was > 0 and (now > was * _OUT_OF_SIZE or (0 < now * _OUT_OF_SIZE < was and not bounds)):
        return f"goes from {was:g} to {now:g}"
    grown, fallen = now > was * _GROWN, now * _GROWN < was
    worse = (grown and _LESS_IS_SAFE.search(path)) or (fallen and _MORE_IS_SAFE.search(path))
    return f"goes from {was:g} to {now:g}" if worse else ""


def _list_worse(path: str, was: tuple[str, ...], now: tuple[str, ...]) -> str:
    more, fewer = Counter(now) - Counter(was), Counter(was) - Counter(now)
    if any(one.strip("'\"") in _ANYTHING for one in more):
        return "lets anything in"
    if more and _LETS_IN.search(path) and not _KEEPS_OUT.search(path):
        return f"lets more in ({min(more)[:60]})"
    if fewer and _KEEPS_OUT.search(path):
        return f"no longer holds {min(fewer)[:60]}"
    return ""


def _settings(tree: ast.Module | None) -> Iterator[tuple[Key, Setting]]:
    return _numbered((scope, pair) for scope, node in scoped(tree) for pair in _pairs_of(node))


def _numbered(
    found: Iterator[tuple[str, tuple[str, Setting]]],
) -> Iterator[tuple[Key, Setting]]:
    """One name may hold many values in one scope: they are told apart by their order."""
    seen: Counter[tuple[str, str]] = Counter()
    for scope, (name, setting) in found:
        seen[scope, name] += 1
        yield (scope, name, seen[scope, name]), setting


def _pairs_of(node: ast.AST) -> Iterator[tuple[str, Setting]]:
    match node:
        case (
            ast.Assign(targets=[target], value=value)
            | ast.AnnAssign(target=target, value=ast.expr() as value)
        ):
            if name := _name(target):
                yield from _under(name, value)
        case ast.keyword(arg=str() as name, value=value):
            yield from _under(name, value)
        case ast.arguments():
            for name, value in defaults(node):
                yield from _under(name, value)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args):
            for place, value in enumerate(args):
                if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
                    yield f"{name}.{place}", _setting(value)
        case _:
            return


def _under(name: str, value: ast.expr) -> Iterator[tuple[str, Setting]]:
    if isinstance(value, ast.Dict):
        for key, inner in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield from _under(f"{name}.{key.value}", inner)
    else:
        yield name, _setting(value)


def _setting(value: ast.expr) -> Setting:
    match value:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return Setting(None, tuple(ast.unparse(part) for part in parts))
        case ast.Constant(value=bool() | int() | float() as plain):
            return Setting(plain)
        case ast.BinOp():
            return Setting(worked_out(value))
        case ast.Constant(value=str() as text):
            number = re.match(r"^(\d+)(?:\s*/\s*\w+|\s*[kKmMgG][bB]?)$", text)
            return Setting(_number(text.split("/", 1)[0]) if number else text)
        case _:
            return Setting(None)


def _name(target: ast.expr) -> str:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str() as name)):
            return name
        case _:
            return ""


def _lines(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[str, Setting]]:
    for _, line in lines:
        for found in _LINE.finditer(line) if len(line) < _LONG else ():
            yield found["key"], Setting(_read(found["value"]))


def _read(text: str) -> bool | float | str | None:
    match text.lower():
        case "true" | "yes" | "on":
            return True
        case "false" | "no" | "off":
            return False
        case "null" | "none":
            return None
        case "*":
            return text
        case _:
            return _number(text)


def _number(text: str) -> float:
    found = re.match(r"(\d[\d_]*(?:\.\d+)?)\s?([kKmMgG]?)", text)
    if found is None:
        return 0.0
    return float(found[1].replace("_", "")) * _UNITS.get(found[2].lower(), 1)


def _longer(file: FileChange) -> Iterator[Reason]:
    """A pattern's `{1,64}` that lets longer text in, or none at all."""
    was = [found for _, line in file.removed for found in _REPEATS.findall(line[:_LONG])]
    now = [found for _, line in file.added for found in _REPEATS.findall(line[:_LONG])]
    for (least, most), (low, high) in zip(was, now, strict=False):
        if int(low) < int(least) or (most and int(high or 10**9) > int(most) * _GROWN):
            what = f"a pattern lets more in ({{{least},{most}}} becomes {{{low},{high}}})"
            yield Reason("silenced", f"{file.path}: {what}")


def _lines_gone(file: FileChange) -> Iterator[Reason]:
    """In a configuration file, whatever a guarding key said and says no longer."""
    now = Counter(line.strip().rstrip(",") for _, line in file.added)
    for _, line in file.removed:
        found = _KEYED.match(line)
        if not found or len(line) > _LONG or line.strip().startswith("#"):
            continue
        guards = _GUARDS_A_SETTING.search(found["key"]) or _FORBIDS.search(line)
        if guards and not now[line.strip().rstrip(",")]:
            yield Reason("sensitive_path", f"{file.path}: {found['key']} changes, or goes")
