"""What a repository says of its types: options, path aliases and workspace packages, and which types rest on others that are not at hand."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from regreen.code.file_languages import language_of, parser_for
from regreen.code.symbols import node_text, walk_nodes
from regreen.languages.script import is_typed_script, parse_script_module, resolve_import

if TYPE_CHECKING:
    from tree_sitter import Node

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
_JSONC = re.compile(
    r'"(?>(?:[^"\\\n]|\\.)*)"?|//[^\n]*+|/\*(?>(?:[^*]|\*(?!/))*)(?:\*/)?|,(?=\s*+[}\]])'
)


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
    Node's types, which are such a package, have most of what a browser has as globals, so the browser's stand in for them.
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
    libraries = kept.get("lib")
    if isinstance(libraries, list) and not any(
        str(name).lower().startswith(("dom", "webworker")) for name in libraries
    ):
        kept["lib"] = [*libraries, "dom"]
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


_MAX_TYPES = 200
_TYPE_DECLARATION = re.compile(rb"\b(?:interface|class|type(?=\s+\S+\s*[<=]))\s+([A-Za-z_$][\w$]*)")
_CONTAINERS = frozenset(
    {"Array", "ReadonlyArray", "Map", "ReadonlyMap", "Set", "ReadonlySet", "Promise", "Record"}
)
"""Generic types whose members are the same, whatever they hold."""
_DECLARATIONS = frozenset(
    {
        "interface_declaration",
        "type_alias_declaration",
        "class_declaration",
        "abstract_class_declaration",
        "class",
    }
)
_OWN_MEMBERS = frozenset(
    {"function_type", "constructor_type", "array_type", "tuple_type", "implements_clause"}
)


class PartialTypes:
    """Tells which types have members or alternatives that a package declares, so that the compiler knows only a part of them.

    An interface is one where it extends such a type, an alias where it is made of one. A member of such a type makes
    nothing partial: it is of any type, which fits everywhere, and so is a class that such a class extends. One that
    extends what a call gives is partial if the call has such a type; in plain JavaScript it always is: a guess.
    """

    def __init__(
        self, sources: Mapping[str, bytes], paths: Collection[str], aliases: Mapping[str, list[str]]
    ) -> None:
        self._sources, self._paths, self._aliases = sources, paths, aliases
        self._known: dict[tuple[str, str], bool] = {}
        self._parse = cache(parse_script_module)

    def is_partial(self, name: str, path: str) -> bool:
        """Whether this is such a type: as this file or an import of it declares it, otherwise as any file does."""
        declaring = self._paths_declaring_types.get(name, [])
        module = self._parse(path, self._sources.get(path, b"")) if declaring else None
        imports = module.imports if module and path not in declaring else ()
        places = [(i.local, path) for i in imports if i.local and i.name == name]
        anywhere = [(name, p) for p in ([path] if path in declaring else [path, *declaring])]
        return any(self._rests_on_unknown(*place) for place in places or anywhere[:10])

    @cached_property
    def _paths_declaring_types(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path, data in self._sources.items():
            for name in _TYPE_DECLARATION.findall(data):
                found.setdefault(name.decode(), []).append(path)
        return found

    def _rests_on_unknown(self, name: str, path: str) -> bool:
        key = (name, path)
        if key not in self._known and len(self._known) < _MAX_TYPES and path in self._sources:
            self._known[key] = False  # a type may rest on itself
            self._known[key] = self._rests_on_unknown_uncached(name, path)
        return self._known.get(key, False)

    def _rests_on_unknown_uncached(self, name: str, path: str) -> bool:
        data = self._sources[path]
        module = self._parse(path, data)
        if module is None:
            return False
        root = parser_for(language_of(path) or "").parse(data).root_node
        parts = list(_find_parts(name, root))
        if not is_typed_script(path) and any(part.type == "class_heritage" for part in parts):
            return True
        used = [n for part in parts for n in _read_type_names(part)]
        if parts:
            return any(self._rests_on_unknown(n, path) for n in used if n != name)
        space, _, member = name.partition(".")
        for item in module.imports:
            if item.local != space and (item.local or item.name not in {"", name}):
                continue
            target = self._resolve(item.source, path)
            if target is None:
                if item.name:
                    return True
            elif self._rests_on_unknown(member if item.name == "*" else item.name or name, target):
                return True
        return False

    def _resolve(self, source: str, path: str) -> str | None:
        if source.startswith("."):
            return resolve_import(source, path, self._paths)
        for alias, places in self._aliases.items():
            start, star, end = alias.partition("*")
            if source == alias or (star and source.startswith(start) and source.endswith(end)):
                rest = source[len(start) : len(source) - len(end)]
                found = (
                    resolve_import(f"./{p.replace('*', rest)}", "", self._paths) for p in places
                )
                if target := next(filter(None, found), None):
                    return target
        return None


def _find_parts(name: str, root: Node) -> Iterator[Node]:
    """Where the members or alternatives of a declared type come from: itself, then what it extends or is made of."""
    for node in walk_nodes(root):
        if node.type not in _DECLARATIONS:
            continue
        named = node.child_by_field_name("name")
        if named is not None and node_text(named) == name:
            yield named
            value = node.child_by_field_name("value")
            clauses = [
                c
                for c in node.named_children
                if c.type == "extends_type_clause"
                or (c.type == "class_heritage" and any(map(_is_call, walk_nodes(c))))
            ]
            yield from [value] if value is not None else clauses


def _is_call(node: Node) -> bool:
    return node.type == "call_expression"


def _read_type_names(root: Node) -> Iterator[str]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type in {"type_identifier", "identifier", "nested_type_identifier"}:
            yield node_text(node)
        elif node.type == "object_type":
            inside = (n for c in node.named_children for n in c.named_children)
            waiting += [n for n in inside if n.type == "mapped_type_clause"]
        elif node.type not in _OWN_MEMBERS:
            is_container = node_text(node.child_by_field_name("name")) in _CONTAINERS
            waiting += [] if is_container else node.named_children
