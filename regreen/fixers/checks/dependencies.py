"""Check 7: what a patch does to the project's dependencies."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from regreen.codebase.packages import look_alike
from regreen.fixers.checks.change import FileChange, Reason

LOCKS = (
    "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock",
    "pnpm-lock.yaml", "bun.lockb", "Cargo.lock", "go.sum", "Gemfile.lock", "composer.lock", "pixi.lock",
)  # fmt: skip
_MANIFESTS = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "Pipfile",
    "package.json",
    "go.mod",
    "Cargo.toml",
    "Gemfile",
)
_REQUIREMENTS = re.compile(
    r"^(?:.*[-_.])?(?:requirements|constraints|reqs|deps)(?:[-_.].*)?\.(?:txt|in)$|^requirements/.*\.(?:txt|in)$"
)
_ELSEWHERE = re.compile(
    r"--(?:extra-)?index-url|--find-links|--trusted-host|(?:git|hg|svn|bzr)\+|@\s*(?:https?|file|git|ssh):|\"(?:https?|git|file|ssh|github):"
    r"|^\s*-[if]\s+\S|index\s*=\s*[\"{]|url\s*=\s*[\"']|\bgit\s*=\s*[\"']|registry\s*=",
    re.MULTILINE,
)
_HASH = re.compile(r"--hash=|sha(?:256|512)[:-]")


def dependencies_kept(files: Sequence[FileChange], *, rung: str | None = None) -> list[Reason]:
    """Check 7: nothing from elsewhere, hashes kept, every new name to a person, locks only by their tool."""
    reasons: list[Reason] = []
    for file in files:
        name = file.path.rsplit("/", 1)[-1]
        if name in LOCKS:
            if rung == "model":
                reasons.append(
                    Reason(
                        "dependencies", f"{file.path} may only be written by its own tool", "deny"
                    )
                )
            elif rung != "recipe":
                reasons.append(
                    Reason(
                        "dependencies",
                        f"{file.path} changes; regenerate it with its own tool to compare",
                    )
                )
            if _lost_hashes(file):
                reasons.append(Reason("dependencies", f"{file.path} loses hashes", "deny"))
        elif name in _MANIFESTS or _REQUIREMENTS.match(name) or _REQUIREMENTS.match(file.path):
            reasons.extend(_manifest(file))
    return reasons


def _manifest(file: FileChange) -> Iterator[Reason]:
    if len(_ELSEWHERE.findall(file.added_text)) > sum(
        len(_ELSEWHERE.findall(line)) for _, line in file.removed
    ):
        yield Reason(
            "dependencies",
            f"{file.path} takes a package from somewhere else than its usual index",
            "deny",
        )
    if _lost_hashes(file):
        yield Reason("dependencies", f"{file.path} loses hashes", "deny")
    before, after = declared(file.path, file.old), declared(file.path, file.new)
    for name in sorted(after.keys() - before.keys()):
        twin = look_alike("npm" if file.path.endswith(".json") else "pypi", name)
        if twin is not None:
            looks = f"{file.path} adds {name}, which looks like {twin.of} ({twin.how})"
            yield Reason("dependencies", looks, "deny")
        else:
            yield Reason("dependencies", f"{file.path} adds the dependency {name}")
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            yield Reason(
                "dependencies",
                f"{file.path} changes {name} from {before[name] or 'any'} to {after[name] or 'any'}",
            )
    for name in sorted(before.keys() - after.keys()):
        yield Reason("dependencies", f"{file.path} drops the dependency {name}")


def _lost_hashes(file: FileChange) -> bool:
    """Hashes may change with the versions they belong to, but not go."""
    return (
        file.new is not None and bool(_HASH.search(file.old or "")) and not _HASH.search(file.new)
    )


def declared(path: str, text: str | None) -> dict[str, str]:
    """Dependency name to its version specifier, for the manifests that we can read."""
    name = path.rsplit("/", 1)[-1]
    if text is None:
        return {}
    if name == "pyproject.toml":
        return _pyproject(text)
    if name == "package.json":
        return _package_json(text)
    if name.endswith((".txt", ".in")):
        return _requirements(text.splitlines())
    if name in {"setup.cfg", "setup.py"}:
        return _requirements(
            re.findall(r"[\"']([A-Za-z][\w.\-\[\]]{0,60}\s*(?:[<>=!~][^\"']{0,80})?)[\"']", text)
            if name == "setup.py"
            else _cfg(text)
        )
    return {}


def _cfg(text: str) -> list[str]:
    found: list[str] = []
    active = False
    for line in text.splitlines():
        if re.match(r"\S", line):
            active = bool(
                re.match(r"(install_requires|tests_require|setup_requires)\s*=", line)
            ) or (active and line.startswith("#"))
            key = re.match(r"[\w-]+\s*=", line)
            active = active or (key is not None and found[:1] == ["<extras>"])
        elif active:
            found.append(line.strip())
    return found


def _pyproject(text: str) -> dict[str, str]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}
    project = document.get("project", {})
    lines: list[object] = list(project.get("dependencies", []))
    for group in project.get("optional-dependencies", {}).values():
        lines += group
    for group in document.get("dependency-groups", {}).values():
        lines += group
    lines += document.get("build-system", {}).get("requires", [])
    found = _requirements([line for line in lines if isinstance(line, str)])
    poetry = document.get("tool", {}).get("poetry", {})
    tables = [poetry.get("dependencies", {}), poetry.get("dev-dependencies", {})]
    tables += [group.get("dependencies", {}) for group in poetry.get("group", {}).values()]
    for table in tables:
        found |= {
            canonicalize_name(key): str(value) for key, value in table.items() if key != "python"
        }
    return found


def _package_json(text: str) -> dict[str, str]:
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    found: dict[str, str] = {}
    for key in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
        table = document.get(key, {}) if isinstance(document, dict) else {}
        found |= (
            {str(name): str(version) for name, version in table.items()}
            if isinstance(table, dict)
            else {}
        )
    return found


def _requirements(lines: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        text = line.split(" #")[0].split("--hash")[0].strip().rstrip("\\").strip()
        if not text or text.startswith(("#", "-")):
            continue
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        found[canonicalize_name(requirement.name)] = (
            f"{requirement.specifier}{requirement.url or ''}"
        )
    return found
