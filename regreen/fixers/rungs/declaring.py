"""Declares what is missing: which manifest should name it, where in there, and what is made from that manifest."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Sequence

from packaging.utils import canonicalize_name

from regreen.fixers.checks.change import parse_python
from regreen.fixers.checks.dependencies import declared
from regreen.fixers.rungs.compiled import compiling, source_of
from regreen.fixers.rungs.locks import POETRY_LOCK, as_called
from regreen.fixers.rungs.missing import Missing, imported_by_source
from regreen.fixers.rungs.task_runners import Read


def build_additions(missing: Sequence[Missing], read: Read) -> Iterator[tuple[dict[str, str], str]]:
    """`build-system.requires` with what building the project itself imports and nobody declared."""
    text = read("pyproject.toml")
    head = re.search(r"^\[build-system\][^\n]*\n", text or "", re.MULTILINE)
    entry = (
        re.search(r"^requires\s*=\s*\[", text[head.end() :], re.MULTILINE)
        if text and head
        else None
    )
    if text is None or head is None or entry is None:
        return
    for one in missing:
        changed = _into_list(text, head.end() + entry.end(), one.requirement)
        if changed is not None:
            yield (
                {"pyproject.toml": changed},
                f"building needs {one.distribution}, which build-system.requires does not name",
            )


def additions(
    missing: Sequence[Missing], files: Sequence[str], read: Read, setup: str
) -> Iterator[tuple[dict[str, str], str]]:
    """Changed manifests, one set after the other, each with what to say about it; those that `setup` installs first."""
    used_by_source = {
        one.distribution for one in missing if imported_by_source(one.module, files, read)
    }
    for path in _manifests(files, read, setup, is_source=bool(used_by_source)):
        text = read(path)
        if text is None:
            continue
        have = declared(path, text)
        with_extra = _with_extras(text, [one for one in missing if one.extra])
        if with_extra != text:
            names = ", ".join(one.requirement for one in missing if one.extra)
            yield {path: with_extra}, f"{names} is needed, and {path} declares it without the extra"
            continue
        wanted = [one for one in missing if canonicalize_name(one.distribution) not in have]
        if not wanted:
            continue
        changed = _add(path, text, wanted, used_by_source, setup)
        if changed is not None and changed != text:
            names = ", ".join(one.distribution for one in wanted)
            yield {path: changed}, f"{names} is imported but {path} does not declare it"


def _with_extras(text: str, wanted: Sequence[Missing]) -> str:
    """The manifest with the missing extras added to what it declares already."""
    for one in wanted:
        loose = re.sub(r"[-_.]+", "[-_.]+", one.distribution)
        text = re.sub(
            rf"(?im)((?:^|[\"'\s,]){loose})(?=\s*(?:[\"'<>=~!;,]|$))",
            rf"\g<1>{one.extra}",
            text,
            count=1,
        )
    return text


_REQUIREMENTS = re.compile(
    r"(?:^|/)[\w.-]*(?:requirements|reqs)[\w./-]*\.(?:txt|in)$|(?:^|/)requirements/[^/]+\.(?:txt|in)$"
)
_INCLUDED = re.compile(r"^-r[ =]?([^\s#]+)|^--requirement[ =]([^\s#]+)", re.MULTILINE)


def _manifests(files: Sequence[str], read: Read, setup: str, *, is_source: bool) -> list[str]:
    """Where it may be declared, the likeliest first: what the setup installs, or for the product what that includes."""
    names = [path for path in files if _REQUIREMENTS.search(path)]
    packages = [
        path for path in files if path in {"pyproject.toml", "setup.cfg", "setup.py", "Pipfile"}
    ]
    named = [path for path in names if path in setup]
    named.sort(key=setup.find)
    included = [path for one in named for path in _includes(one, read) if path in names]
    project = re.search(r"(?:^|[\s'\"])\.(?:\[|['\"\s]|$)", setup)
    tools = re.search(r"\b(?:uv (?:sync|run)|poetry|pdm|pipenv|--group)\b", setup)
    listed = [*included, *named] if is_source else [*named, *included]
    first = [*packages, *listed] if project or tools else [*listed, *packages]
    ordered = [*first, *names]
    # what was compiled from another file is declared there
    sources = {
        path: source_of(path, read(path) or "", files) for path in ordered if path.endswith(".txt")
    }
    return list(dict.fromkeys(sources.get(path) or path for path in ordered))[:6]


def _includes(path: str, read: Read) -> Iterator[str]:
    for one, other in _INCLUDED.findall(read(path) or ""):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(path), one or other))


def made_from(
    path: str, files: Collection[str], read: Read, setup: str
) -> Iterator[tuple[str, str]]:
    """The locks that follow from a manifest, each with the script that writes it anew."""
    for lock, script in _LOCKS.get(path, ()):
        if lock in files:
            yield lock, as_called(script, setup)
    for other in files:
        if path.endswith(".in") and other.endswith(".txt"):
            text = read(other) or ""
            if source_of(other, text, files) == path:
                yield other, compiling(other, text)


_LOCKS = {
    "pyproject.toml": (
        ("uv.lock", "uv lock"),
        ("poetry.lock", POETRY_LOCK),
        ("pdm.lock", "pdm lock --update-reuse"),
    ),
    "Pipfile": (("Pipfile.lock", "pipenv lock"),),
}


def _add(path: str, text: str, wanted: Sequence[Missing], used: set[str], setup: str) -> str | None:
    if path.endswith((".txt", ".in")):
        if "--hash=" in text:
            return None
        for one in wanted:
            text = _into_lines(text, one.requirement)
        return text
    for one in wanted:
        group = "" if one.distribution in used else _installed_group(path, text, setup)
        changed = _added(path, text, one, group, is_for_tests=one.distribution not in used)
        if changed is None and group:
            changed = _added(path, text, one, "", is_for_tests=False)
        if changed is None:
            return None
        text = changed
    return text


def _added(path: str, text: str, one: Missing, group: str, *, is_for_tests: bool) -> str | None:
    match path:
        case "pyproject.toml" if "[tool.poetry.dependencies]" in text:
            table = (
                f"tool.poetry.group.{group}.dependencies" if group else "tool.poetry.dependencies"
            )
            return _add_to_table(text, table, one)
        case "pyproject.toml":
            return _add_to_toml(text, one.requirement, group)
        case "Pipfile":
            name = "dev-packages" if is_for_tests and "[dev-packages]" in text else "packages"
            return _add_to_table(text, name, one)
        case _:
            return _add_to_list(path, text, one.requirement, group)


def _add_to_table(text: str, table: str, one: Missing) -> str | None:
    """A line `name = "*"` at the end of a table, as Poetry and Pipenv declare what they need."""
    head = re.search(rf"^\[{re.escape(table)}\][^\n]*\n", text, re.MULTILINE)
    if head is None:
        return None
    stop = re.compile(r"^\[", re.MULTILINE).search(text, head.end())
    end = stop.start() if stop else len(text)
    body = text[head.end() : end].rstrip("\n")
    extra = one.extra.strip("[]")
    version = one.bound or "*"
    value = f'{{version = "{version}", extras = ["{extra}"]}}' if extra else f'"{version}"'
    line = f"{one.distribution} = {value}\n"
    return f"{text[: head.end()]}{body}{chr(10) if body else ''}{line}{text[head.end() + len(body) + 1 if body else head.end() :]}"


_SECTION = {
    "pyproject.toml": (
        r"\[(?:project\.optional-dependencies|dependency-groups)\][^\[]*?(?<=\n)[\"']?{group}[\"']?[ \t]*=",
        r"\[tool\.poetry\.group\.{group}\.dependencies\]",
        r"\[tool\.pdm\.dev-dependencies\][^\[]*?(?<=\n)[\"']?{group}[\"']?[ \t]*=",
    ),
    "setup.cfg": (r"\[options\.extras_require\][^\[]*?(?<=\n){group}[ \t]*=",),
    "setup.py": (r"extras_require[^\n]*=[^=][\s\S]*?[\"']{group}[\"'][ \t]*:",),
}


def _into_lines(text: str, requirement: str) -> str:
    """A line of its own: where the alphabet has it in a list that is sorted, else at the end."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    named = [(line.lower(), at) for at, line in enumerate(lines) if re.match(r"[A-Za-z0-9]", line)]
    later = [at for line, at in named if line > requirement.lower()]
    is_sorted = len(named) > 2 and named == sorted(named)
    lines.insert(later[0] if is_sorted and later else len(lines), f"{requirement}\n")
    return "".join(lines)


def _installed_group(path: str, text: str, setup: str) -> str:
    """The extra or dependency group that the setup installs, for what only tests need."""
    named = re.findall(
        r"\[([\w,.\s-]{1,200})\]|(?:--(?:extra|group|with|only|only-group)|-G)[= ]([\w,.-]+)", setup
    )
    words = [word.strip() for pair in named for part in pair for word in part.split(",")]
    if re.search(r"\b(?:uv (?:sync|run)|pdm (?:install|sync)|poetry (?:install|sync))\b", setup):
        words += ["dev", "test", "tests"]
    for word in map(str, words):
        for pattern in _SECTION.get(path, ()) if word else ():
            if re.search(
                r"(?m)^" * (path != "setup.py") + pattern.format(group=re.escape(word)), text
            ):
                return word
    return ""


def _add_to_toml(text: str, name: str, group: str) -> str | None:
    """Add to `dependencies`, or to the extra or group called `group`, keeping the file's own layout."""
    tables = (r"project\.optional-dependencies", r"dependency-groups") if group else (r"project",)
    key = re.escape(group) if group else "dependencies"
    for table in tables:
        head = re.search(rf"^\[{table}\][^\n]*\n", text, re.MULTILINE)
        if head is None:
            continue
        stop = re.compile(r"^\[", re.MULTILINE).search(text, head.end())
        end = stop.start() if stop else len(text)
        entry = re.compile(rf"^[\"']?{key}[\"']?\s*=\s*\[", re.MULTILINE).search(
            text, head.end(), end
        )
        if entry is None:
            if group:
                continue
            line = f'dependencies = ["{name}"]\n'
            return (
                text[: head.end()] + line + text[head.end() :]
                if "dynamic" not in text[head.end() : end]
                else None
            )
        return _into_list(text, entry.end(), name)
    return None


def _into_list(text: str, start: int, name: str) -> str | None:
    """Put a string at the end of the list whose `[` ends at `start`."""
    end = _closing(text, start)
    if end is None:
        return None
    inside = text[start:end]
    quote = "'" if "'" in inside and '"' not in inside else '"'
    if "\n" not in inside:
        gap = (
            ", "
            if inside.strip() and not inside.rstrip().endswith(",")
            else " "
            if inside.strip()
            else ""
        )
        return f"{text[:start]}{inside.rstrip()}{gap}{quote}{name}{quote}{text[end:]}"
    last = [line for line in inside.split("\n") if line.strip()]
    indent = re.match(r"\s*", last[-1]).group(0) if last else "    "  # type: ignore[union-attr]  # always matches
    body = inside.rstrip()
    comma = "" if not body.strip() or re.sub(r"#[^\n]*$", "", body).rstrip().endswith(",") else ","
    tail = inside[len(body) :]
    return f"{text[:start]}{body}{comma}\n{indent or '    '}{quote}{name}{quote},{tail}{text[end:]}"


def _closing(text: str, start: int) -> int | None:
    depth, quote = 1, ""
    position = start
    while position < len(text):
        char = text[position]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "#":
            position = text.find("\n", position)
            if position < 0:
                return None
        elif char in "[]":
            depth += 1 if char == "[" else -1
            if depth == 0:
                return position
        position += 1
    return None


def _add_to_list(path: str, text: str, name: str, group: str) -> str | None:
    if path == "setup.py":
        entry = re.search(
            rf"extras_require[^\n]*=[^=][\s\S]*?[\"']{re.escape(group)}[\"']\s*:\s*\["
            if group
            else r"install_requires\s*=\s*\[",
            text,
        )
        return _into_list(text, entry.end(), name) if entry and parse_python(text) else None
    section = "options.extras_require" if group else "options"
    head = re.search(rf"^\[{re.escape(section)}\][^\n]*\n", text, re.MULTILINE)
    key = re.escape(group) if group else "install_requires"
    entry = (
        re.compile(rf"^{key}[ \t]*=[ \t]*([^\n]*)\n", re.MULTILINE).search(text, head.end())
        if head
        else None
    )
    if entry is None:
        return None
    block = re.compile(r"(?:[ \t]+[^\n]*\n|\n)*").match(text, entry.end())
    end = block.end() if block else entry.end()
    body = text[entry.end() : end].rstrip("\n")
    indent = re.match(r"[ \t]*", body).group(0) if body else "    "  # type: ignore[union-attr]  # always matches
    first = f"{indent or '    '}{entry[1]}\n" if entry[1].strip() else ""  # one line becomes a list
    start = entry.start(1) if first else entry.end()
    gap = "\n" if first else ""
    rest = text[entry.end() + len(body) + (1 if body else 0) :]
    return f"{text[:start].rstrip(' ') if first else text[:start]}{gap}{first}{body}{chr(10) if body else ''}{indent or '    '}{name}\n{rest}"
