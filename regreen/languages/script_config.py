"""What a repository's tsconfig.json and package.json files say of its types: options, path aliases, workspace packages."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

ReadFile = Callable[[str], str | None]
_MAX_EXTENDS = 5
_MAX_CHARACTERS = 200_000
_MAX_PACKAGES = 200
_KEPT_OPTIONS = frozenset(
    {
        "strict",
        "strictNullChecks",
        "noImplicitAny",
        "strictFunctionTypes",
        "strictBindCallApply",
        "strictPropertyInitialization",
        "useUnknownInCatchVariables",
        "exactOptionalPropertyTypes",
        "noUncheckedIndexedAccess",
        "noImplicitReturns",
        "noImplicitThis",
        "noImplicitOverride",
        "lib",
        "experimentalDecorators",
        "emitDecoratorMetadata",
        "useDefineForClassFields",
        "erasableSyntaxOnly",
    }
)
_JSONC = re.compile(r'"(?>(?:[^"\\\n]|\\.)*)"|//[^\n]*+|/\*(?>(?:[^*]|\*(?!/))*)\*/|,(?=\s*+[}\]])')


def load_jsonc(text: str) -> dict[str, Any]:
    """A JSON object that may have comments and trailing commas; empty for anything else."""
    bare = _JSONC.sub(lambda m: m[0] if m[0].startswith('"') else " ", text[:_MAX_CHARACTERS])
    try:  # a comma before a comment is only trailing once the comment is gone
        value = json.loads(_JSONC.sub(lambda m: m[0] if m[0].startswith('"') else " ", bare))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read_compiler_options(
    path: str, read: ReadFile, workspace: Mapping[str, list[str]]
) -> dict[str, object]:
    """Options for checking the files beside a tsconfig.json as data: its strictness and aliases, and nothing emitted.

    `workspace` maps names of the repository's own packages to their files. A configuration that extends an installed
    package, which nobody can read here, counts as strict, and so does none at all, as for the compiler since version 6.
    """
    folder = posixpath.dirname(path)
    kept: dict[str, object] = {}
    paths: dict[str, list[str]] = {}
    current: str | None = path
    for _ in range(_MAX_EXTENDS):
        document = load_jsonc(read(current) or "") if current else {}
        options = document.get("compilerOptions")
        options = options if isinstance(options, dict) else {}
        for name in _KEPT_OPTIONS & options.keys():
            kept.setdefault(name, options[name])
        here = posixpath.dirname(current or "")
        root = posixpath.join(here, str(options.get("baseUrl", "")))
        aliases = options.get("paths")
        for alias, places in aliases.items() if isinstance(aliases, dict) else ():
            if isinstance(places, list):
                paths.setdefault(
                    alias, [_relate(posixpath.join(root, str(p)), folder) for p in places]
                )
        if "baseUrl" in options:
            paths.setdefault("*", [_relate(posixpath.join(root, "*"), folder)])
        current = _find_extended(document.get("extends"), here)
        if current == "":
            kept.setdefault("strict", True)
        if not current:
            break
    if read(path) is None:
        kept.setdefault("strict", True)
    for name, places in workspace.items():
        paths.setdefault(name, [_relate(p, folder) for p in places])
    kept.setdefault("strict", False)
    return {
        **kept,
        "paths": paths,
        "allowJs": True,
        "checkJs": True,
        "noEmit": True,
        "skipLibCheck": True,
        "types": [],
        "module": "preserve",
        "moduleResolution": "bundler",
        "target": "esnext",
        "jsx": "preserve",
        "resolveJsonModule": True,
        "allowImportingTsExtensions": True,
        "allowArbitraryExtensions": True,
    }


def _find_extended(extends: object, folder: str) -> str | None:
    """The file that a configuration extends; "" for one of an installed package, None for none."""
    if isinstance(extends, list):
        extends = extends[-1] if extends else None
    if not isinstance(extends, str):
        return None
    if not extends.startswith("."):
        return ""
    place = posixpath.normpath(posixpath.join(folder, extends))
    return place if place.endswith(".json") else f"{place}.json"


def _relate(place: str, folder: str) -> str:
    related = posixpath.relpath(posixpath.normpath(place), folder or ".")
    return related if related.startswith(".") else f"./{related}"


def read_workspace_paths(paths: Collection[str], read: ReadFile) -> dict[str, list[str]]:
    """The files that each package of the repository may mean by its name, the likeliest first."""
    found: dict[str, list[str]] = {}
    manifests = [p for p in paths if posixpath.basename(p) == "package.json"]
    for path in sorted(p for p in manifests if "node_modules" not in p.split("/"))[:_MAX_PACKAGES]:
        package, folder = load_jsonc(read(path) or ""), posixpath.dirname(path)
        name = package.get("name")
        if not isinstance(name, str) or not name:
            continue
        entry_points = [package.get(k) for k in ("source", "types", "module", "main")]
        exports = package.get("exports")
        entry_points += [exports] if isinstance(exports, str) else []
        mains = [posixpath.join(folder, s) for s in entry_points if isinstance(s, str)]
        inside = [posixpath.join(folder, s) for s in ("src/index", "index")]
        found[name] = [*(m for m in mains if posixpath.normpath(m) in paths), *inside]
        found[f"{name}/*"] = [posixpath.join(folder, s) for s in ("src/*", "*")]
    return found
