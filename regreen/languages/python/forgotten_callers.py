"""Callers that a change forgot: what it renamed or moved is followed to where it is still used.

The failure only says which names to look for. What stands for them now is read from the newest commit that changed them.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from regreen.code.paths import is_document, is_vendored
from regreen.code.python_calls import FunctionNode, is_module, module_stem, parse_python
from regreen.domain.languages import CompletedChange
from regreen.domain.ports import Git
from regreen.languages.python.imports import ModuleMap, find_rebound_names

_MAX_COMMITS, _MAX_PATHS, _MAX_ROUNDS = 50, 60, 3
_MAX_CHARS, _MAX_DIFF = 400_000, 4_000_000
_MIN_RATIO = 0.6
_SAYS_GONE = re.compile(
    r"""cannot import name ['"](\w{1,80})"""
    r"""|(?:has no attribute|does not have the attribute) ['"](\w{1,80})"""
    r"""|[Nn]ame [`'"](\w{1,80})[`'"] is not defined|Undefined name [`'"](\w{1,80})"""
    r"""|No module named ['"]([\w.]{1,200})['"]|abstract methods? ['"]?(\w{1,80})"""
    r"""|got an unexpected keyword argument ['"](\w{1,80})"""
)
_BUILTIN_NAMES = frozenset(
    x for kind in (str, bytes, list, dict, set, int, float) for x in dir(kind)
)
_Definitions = dict[tuple[str, str], ast.AST]


@dataclass(frozen=True, slots=True)
class _Change:
    """A definition (class, name) with the name and file that it has now; a whole module where it has no name."""

    path: str
    owner: str
    old: str
    new_path: str
    new: str
    is_sure: bool = True


def complete_change(git: Git, rev: str, base: str | None, output: str) -> CompletedChange | None:
    """The newest change that the failure speaks of, followed to its forgotten callers; None if there is nothing to follow."""
    found = (match.groups() for match in _SAYS_GONE.finditer(output[-200_000:]))
    words = {word for groups in found for group in groups for word in (group or "").split(".")}
    words.discard("")
    for commit in reversed(git.commits(base, rev)[-_MAX_COMMITS:] if words else ()):
        changes = (
            list(_read_changes(git, commit.sha, commit.parents[0], words)) if commit.parents else []
        )
        if changes:
            return _apply_changes_to_callers(git, rev, commit.sha, changes)
    return _follow_named_arguments(git, rev, base, output)


def _apply_changes_to_callers(
    git: Git, rev: str, sha: str, changes: Sequence[_Change]
) -> CompletedChange | None:
    texts = before = _read_texts(git, rev)
    for change in changes:
        uses = _Uses(texts, change)
        texts = {path: uses.follow(path, text) for path, text in texts.items()}
    is_guess = not all(change.is_sure for change in changes)
    changed = {path: text for path, text in texts.items() if text != before[path]}
    summary = ", ".join(
        f"{x.old or x.path} is {x.new if x.new != x.old else x.new_path}" for x in changes
    )[:160]
    return CompletedChange(sha, changed, summary, is_guess) if changed else None


def _read_texts(git: Git, rev: str) -> dict[str, str]:
    """The modules, documents and settings of a commit."""
    wanted = [
        one
        for one in git.tree(rev)
        if not is_vendored(one.path)
        and (is_module(one.path) or is_document(one.path) or one.path.endswith((".toml", ".cfg")))
    ]
    blobs = git.blobs([entry.sha for entry in wanted])
    return {
        entry.path: data.decode("utf-8", "surrogateescape")
        for entry, data in zip(wanted, blobs, strict=True)
        if data is not None and len(data) <= _MAX_CHARS
    }


def _parse(text: str) -> ast.Module:
    return parse_python(text) or ast.Module([], [])


# --- what the commit changed ----------------------------------------------------------------------------------------------


def _read_changes(git: Git, sha: str, parent: str, words: set[str]) -> Iterator[_Change]:
    """What the commit did to definitions of these names."""
    if words.isdisjoint(re.findall(r"\w+", git.diff(parent, sha, context=0)[:_MAX_DIFF])):
        return
    paths = [path for path in git.changed_paths(sha) if is_module(path)][:_MAX_PATHS]
    both = [{x: git.show(at, x, _MAX_CHARS) for x in paths} for at in (parent, sha)]
    old, new = (
        {x: data.decode("utf-8", "replace") for x, data in one.items() if data is not None}
        for one in both
    )
    homes = {path: path for path in old if path in new}
    for path in old.keys() - homes.keys():
        ratios = [
            (_text_similarity(old[path].splitlines(), new[other].splitlines()), other)
            for other in new.keys() - old.keys()
        ]
        ratio, homes[path] = max(ratios, default=(0.0, path))
        if ratio >= _MIN_RATIO and not words.isdisjoint(re.findall(r"\w+", path)):
            yield _Change(path, "", "", homes[path], "")
    before = {path: _read_definitions(_parse(text)) for path, text in old.items()}
    after = {path: _read_definitions(_parse(text)) for path, text in new.items()}
    came = {(path, *key) for path in new for key in after[path] if key not in before.get(path, {})}
    for path, definitions in before.items():
        for (owner, name), node in definitions.items():
            home = homes[path]
            found = _Change(path, owner, name, home, name)
            if (owner, name) not in after.get(home, {}):
                found = _find_replacing_definition(found, node, after, came)
            other = after.get(found.new_path, {}).get((owner, found.new))
            if (
                other is not None
                and words & {name, found.new}
                and (home, name) != (found.new_path, found.new)
            ):
                yield found


def _read_definitions(tree: ast.Module) -> _Definitions:
    """Functions, classes, variables and attributes by class and name."""
    found: _Definitions = {}
    classes: list[tuple[str, ast.Module | ast.ClassDef]] = [("", tree)]
    classes += [(x.name, x) for x in tree.body if isinstance(x, ast.ClassDef)]
    for owner, around in classes:
        own = (x for x in ast.walk(around) if owner and isinstance(x, ast.Assign | ast.AnnAssign))
        for node in (*around.body, *own):
            if isinstance(node, FunctionNode | ast.ClassDef):
                found.setdefault((owner, node.name), node)
            for target in _list_targets(node):
                words = ast.unparse(target).removeprefix("self." if owner else "")
                if words.isidentifier() and (node in around.body or words != ast.unparse(target)):
                    found.setdefault((owner, words), node)
    return found


def _list_targets(node: ast.AST) -> Sequence[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else ()


def _find_replacing_definition(
    gone: _Change,
    node: ast.AST,
    after: Mapping[str, _Definitions],
    came: Collection[tuple[str, str, str]],
) -> _Change:
    """What stands for a definition that is gone: the new one that is most like it, here, or elsewhere by its name."""
    ratios = sorted(
        (_compare_nodes(node, after[path][owner, new], gone.old, new), new == gone.old, path, new)
        for path, owner, new in came
        if owner == gone.owner and (path == gone.new_path or (new == gone.old and not owner))
    )
    if not ratios or ratios[-1][0] < _MIN_RATIO:
        return gone
    ratio, is_same, path, new = ratios[-1]
    tie = len(ratios) > 1 and ratios[-2][0] == ratio
    # a body that changed with its name may do something else now
    return replace(gone, new_path=path, new=new, is_sure=not tie and (ratio == 1 or is_same))


def _compare_nodes(one: ast.AST, other: ast.AST, old: str, new: str) -> float:
    """How alike two definitions are, without documentation, if the one had the other's name."""
    if type(one) is not type(other):
        return 0.0
    first, second = (
        ", ".join([repr(name), *map(ast.dump, _list_body_without_docstring(node))])
        for node, name in ((one, old), (other, new))
    )
    return _text_similarity(first.replace(f"'{old}'", f"'{new}'").split(", "), second.split(", "))


def _text_similarity(one: Sequence[str], other: Sequence[str]) -> float:
    if one == other:
        return 1.0
    return min(
        0.99, difflib.SequenceMatcher(None, one[:3000], other[:3000], autojunk=False).ratio()
    )


def _list_body_without_docstring(node: ast.AST) -> list[ast.AST]:
    """What a definition does, without its documentation."""
    body = list(getattr(node, "body", [node]))
    is_text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    arguments = [node.args] if isinstance(node, FunctionNode) else []
    return [*arguments, *(body[1:] if is_text else body)]


# --- arguments that go by name now ----------------------------------------------------------------------------------------

_TOO_MANY = re.compile(
    r"""(?:\b(\w{1,80})\.)?(\w{1,80})\(\) takes [^\n]{1,40}positional arguments? but \d"""
    r"""|Too many positional arguments for "(\w{1,80})"(?: of "(\w{1,80})")?"""
)


def _follow_named_arguments(
    git: Git, rev: str, base: str | None, output: str
) -> CompletedChange | None:
    """Calls that still give by position what the newest fitting commit lets be given by name only; None if there are none."""
    said = [x.groups() for x in _TOO_MANY.finditer(output[-200_000:])]
    names = {word for groups in said for word in groups if word} - {"__init__"}
    for commit in reversed(git.commits(base, rev)[-_MAX_COMMITS:] if names else ()):
        for home in git.changed_paths(commit.sha)[:_MAX_PATHS] if commit.parents else ():
            versions = (git.show(at, home, _MAX_CHARS) for at in (commit.parents[0], commit.sha))
            old, new = (
                _read_definitions(_parse((data or b"").decode("utf-8", "replace")))
                for data in (versions if is_module(home) else (None, None))
            )
            for owner, name in old.keys() & new.keys():
                called = owner if name == "__init__" else name
                if called not in names:
                    continue
                order, kept, by_name = _read_moved_parameters(
                    old[owner, name], new[owner, name], owner
                )
                if kept < len(order) and by_name.issuperset(order[kept:]):
                    texts = _read_texts(git, rev)
                    if not _is_only_definition(texts, called):
                        continue
                    changed = {
                        path: written
                        for path, text in texts.items()
                        if is_module(path)
                        and called in text
                        and (
                            written := _NamedArguments(
                                called, order, kept, {module_stem(home), owner}
                            ).write(text)
                        )
                        != text
                    }
                    words = f"{called} takes {', '.join(order[kept:])} by name"
                    if changed:
                        # an object of another package may have the name too
                        return CompletedChange(commit.sha, changed, words[:160], is_guess=True)
    return None


def _is_only_definition(texts: Mapping[str, str], name: str) -> bool:
    """Whether one function or class alone has the name, and no object of Python's own."""
    found = [
        key
        for path, text in texts.items()
        if is_module(path) and name in text
        for key in _read_definitions(_parse(text))
        if key[1] == name
    ]
    return len(found) == 1 and name not in _BUILTIN_NAMES


def _read_moved_parameters(
    before: ast.AST, after: ast.AST, owner: str
) -> tuple[list[str], int, set[str]]:
    """The parameters by position before, how many are so now, and those by name now; of a class its fields."""
    if isinstance(before, FunctionNode) and isinstance(after, FunctionNode):
        is_static = "staticmethod" in map(ast.unparse, after.decorator_list)
        own = int(bool(owner) and not is_static)  # `self` is not written
        order = [x.arg for x in (*before.args.posonlyargs, *before.args.args)][own:]
        kept = len(after.args.posonlyargs) + len(after.args.args) - own
        return order, kept, {x.arg for x in after.args.kwonlyargs}
    if isinstance(before, ast.ClassDef) and isinstance(after, ast.ClassDef):
        now, was = (" ".join(map(ast.unparse, x.decorator_list)) for x in (after, before))
        body = "\n".join(map(ast.unparse, before.body))
        is_plain = not before.bases and not re.search(r"ClassVar|\binit=False", body)
        if is_plain and "kw_only=True" in now and "kw_only=True" not in was:
            fields = [x.target for x in before.body if isinstance(x, ast.AnnAssign)]
            order = [x.id for x in fields if isinstance(x, ast.Name)]
            return order, 0, set(order)
    return [], 0, set()


@dataclass(frozen=True, slots=True)
class _NamedArguments:
    """Gives names to the arguments behind the first `kept` of the calls of a function.

    A bare name has to be defined or imported in the file; a dotted one follows one of `owners`, its module or class,
    or is a method.
    """

    called: str
    order: Sequence[str]
    kept: int
    owners: Collection[str]

    def write(self, text: str) -> str:
        """The text with the names; as it was where that would be no Python."""
        data = text.encode("utf-8", "surrogateescape")
        starts = [0, *accumulate(map(len, data.splitlines(keepends=True)))]
        tree = _parse(text)
        known = {
            x.asname or x.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for x in node.names
        } | {name for _, name in _read_definitions(tree)}
        spots: list[tuple[int, str]] = []
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and self._is_meant(node, known)):
                continue
            before: ast.expr = node.func
            for at, argument in enumerate(node.args):
                start = starts[(before.end_lineno or 1) - 1] + (before.end_col_offset or 0)
                stop = starts[argument.lineno - 1] + argument.col_offset
                between = data[start:stop]
                mark = between.find(b"," if at else b"(") + 1
                blank = len(between[mark:]) - len(between[mark:].lstrip())
                if at >= self.kept and mark and b"#" not in between:
                    spots.append((start + mark + blank, self.order[at]))
                before = argument
        for place, name in sorted(spots, reverse=True):
            data = data[:place] + f"{name}=".encode() + data[place:]
        written = data.decode("utf-8", "surrogateescape")
        return written if parse_python(written) is not None else text

    def _is_meant(self, call: ast.Call, known: Collection[str]) -> bool:
        """Whether a call is of the function, with plain arguments of which too many come by position."""
        owner, _, name = ast.unparse(call.func).rpartition(".")
        own = {x for x in self.owners if x}
        is_method = len(own) > 1 and self.called not in own
        is_known = name in known if not owner else is_method or owner.rpartition(".")[2] in own
        given = {x.arg for x in call.keywords}
        plain = not any(
            isinstance(x, ast.Starred | ast.GeneratorExp | ast.NamedExpr) for x in call.args
        )
        is_free = plain and None not in given and given.isdisjoint(self.order[: len(call.args)])
        is_long = self.kept < len(call.args) <= len(self.order)
        return name == self.called and is_known and is_free and is_long


# --- where it is still used -----------------------------------------------------------------------------------------------


class _Uses:
    """Where one change is used: wherever its name stands if nothing else has it, else where it is imported from its file."""

    def __init__(self, texts: Mapping[str, str], change: _Change) -> None:
        self.change = change
        self.modules = ModuleMap.from_paths([*texts, change.path])
        bases: dict[str, set[str]] = {}
        owners: set[str] = set()
        for path, text in texts.items():
            is_read = change.old in text or ("class " in text and change.owner)
            tree = _parse(text if is_module(path) and change.old and is_read else "")
            is_home = path in {change.path, change.new_path}
            mine = {(change.owner, change.old)} if is_home else set()
            owners |= {
                key[0] or path
                for key in _read_definitions(tree)
                if key[1] == change.old and key not in mine
            }
            classes = [x for x in tree.body if isinstance(x, ast.ClassDef)]
            bases |= {x.name: {ast.unparse(y).rpartition(".")[2] for y in x.bases} for x in classes}
        self.family = {change.owner} - {""}
        while more := {x for x, its in bases.items() if its & self.family} - self.family:
            self.family |= more
        self.is_unique = not owners - self.family and change.old not in _BUILTIN_NAMES

    def follow(self, path: str, text: str) -> str:
        """The text of a file with the change followed."""
        module = self.change.path.removesuffix("/__init__.py").removesuffix(".py")
        if (self.change.old or module.rpartition("/")[2]) not in text:
            return text
        now = self._replace_dotted(text)
        for _ in range(_MAX_ROUNDS if is_module(path) else 0):  # an edit inside another one waits
            now = _FileUses(self, path, now, _parse(now)).rewrite()
        return now if not is_module(path) or parse_python(now) is not None else text

    def _replace_dotted(self, text: str) -> str:
        change = self.change
        tails = [".".join(filter(None, (change.owner, x))) for x in (change.old, change.new)]
        for name in [name for name, path in self.modules.by_name.items() if path == change.path]:
            for joint in ".:" if tails[0] else [""]:
                old, new = f"{name}{joint}{tails[0]}", f"{self.name_module(name)}{joint}{tails[1]}"
                if re.search(r"[.:]", old) and old in text:
                    text = re.sub(rf"(?<![\w./-]){re.escape(old)}(?!\w)", new, text)
        return text

    def name_module(self, like: str) -> str:
        """The dotted name of the file of the change now, from the same root as another name."""
        names = [
            name for name, home in self.modules.by_name.items() if home == self.change.new_path
        ]
        root = like.partition(".")[0]
        return min(names, key=lambda x: (x.partition(".")[0] != root, len(x)), default=like)


class _FileUses:
    """The edits of one change in one module."""

    def __init__(self, uses: _Uses, path: str, text: str, module: ast.Module) -> None:
        self.uses, self.change, self.path, self.module = uses, uses.change, path, module
        self.data = text.encode("utf-8", "surrogateescape")
        self.edits: set[tuple[int, int, str]] = set()
        self.around: dict[ast.AST, ast.AST] = {
            x: node for node in ast.walk(module) for x in ast.iter_child_nodes(node)
        }
        lines = self.data.splitlines(keepends=True)
        self.starts = [0, *accumulate(map(len, lines))]
        self.bound = find_rebound_names(module).keys()
        self.imported: set[str] = set()
        names = {self.change.old, self.change.new} - {""}
        is_free = uses.is_unique and not names & self.bound
        self.locals = (
            names if (is_free or path == self.change.path) and not self.change.owner else set[str]()
        )

    def rewrite(self) -> str:
        """The text with the edits made."""
        old, new = self.change.old, self.change.new
        for node in ast.walk(self.module):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._change_import(node)
        for node in ast.walk(self.module):
            if isinstance(node, ast.Name) and node.id == old in self.locals - self.bound:
                self._edit(node, new)
            elif (
                isinstance(node, ast.Attribute)
                and node.attr == old
                and self._refers_to_changed(node)
            ):
                end = self._byte_span(node)[1]
                self.edits.add((end - len(old.encode()), end, new))
            elif (
                isinstance(node, ast.Constant)
                and node.value == old
                and self._text_names_changed(node)
            ):
                start, end = self._byte_span(node)
                self.edits.add((start + 1, end - 1, new))
            elif (
                isinstance(node, ast.keyword)
                and node.arg == old
                and self._makes_object_of_family(self.around[node])
            ):
                start = self._byte_span(node)[0]  # a field of a dataclass
                self.edits.add((start, start + len(old.encode()), new))
            elif (
                isinstance(node, FunctionNode)
                and node.name == old
                and self._find_class(node) in self.uses.family
            ):
                at = self.data.index(f" {old}(".encode(), self._byte_span(node)[0]) + 1
                self.edits.add((at, at + len(old.encode()), new))
        data, reached = self.data, len(self.data) + 1
        for start, end, written in sorted(self.edits, reverse=True):
            if end <= reached:
                data, reached = data[:start] + written.encode() + data[end:], start
        return data.decode("utf-8", "surrogateescape")

    def _change_import(self, node: ast.Import | ast.ImportFrom) -> None:
        modules, change = self.uses.modules, self.change
        source = (
            modules.resolve_relative(node, self.path) or ""
            if isinstance(node, ast.ImportFrom)
            else ""
        )
        home = modules.find_path(source)
        for one in node.names:
            whole = f"{source}.{one.name}".lstrip(".")
            if modules.find_path(source or one.name) is None:
                self.imported.add((one.asname or one.name).partition(".")[0])
            if isinstance(node, ast.Import) or change.owner:
                continue
            if not change.old and whole != source and modules.find_path(whole) == change.path:
                package, _, last = self.uses.name_module(whole).rpartition(".")
                self._split_import(node, one, package, f"{last} as {one.asname or one.name}")
            is_it = home == change.path or (home is not None and self.uses.is_unique)
            if change.old and one.name in {change.old, change.new} and is_it:
                is_bound = change.old in self.bound
                local = one.asname or (change.old if is_bound and change.old != change.new else "")
                self.locals = self.locals | {local or one.name}
                written = f"{change.new} as {local}" if local else change.new
                if home == change.path != change.new_path and one.name == change.old:
                    self._split_import(node, one, self.uses.name_module(source), written)
                elif one.name == change.old != change.new:
                    self._edit(one, written)
        if (
            isinstance(node, ast.ImportFrom)
            and not change.old
            and home == change.path
            and node.level
        ):
            names = ", ".join(map(ast.unparse, node.names))
            self._edit(
                node,
                f"from {self._write_module(node, self.uses.name_module(source))} import {names}",
            )

    def _split_import(self, node: ast.ImportFrom, one: ast.alias, module: str, name: str) -> None:
        """Take one name out of an import and import it from a module."""
        rest = ", ".join(ast.unparse(other) for other in node.names if other is not one)
        kept = [f"from {'.' * node.level}{node.module or ''} import {rest}"] if rest else []
        made = (
            f"from {self._write_module(node, module)} import {name}" if module else f"import {name}"
        )
        self._edit(node, f"\n{' ' * node.col_offset}".join([*kept, made]))

    def _write_module(self, node: ast.ImportFrom, module: str) -> str:
        """A module as an import writes it: relative where that is."""
        package = ".".join(self.path.split("/")[: -node.level]) if node.level else ""
        is_inside = package and f"{module}.".startswith(f"{package}.")
        return "." * node.level + module[len(package) + 1 :] if is_inside else module

    def _refers_to_changed(self, node: ast.AST) -> bool:
        """Whether an expression stands for what changed."""
        if isinstance(node, ast.Name):
            return node.id in self.locals
        if not isinstance(node, ast.Attribute) or node.attr not in {
            self.change.old,
            self.change.new,
        }:
            return False
        words = ast.unparse(node.value)
        return self._is_object_of_changed_class(node.value) or (
            self.uses.is_unique and words.partition(".")[0] not in self.imported
        )

    def _is_object_of_changed_class(self, value: ast.AST) -> bool:
        """Whether an expression is known to be the class, or an object of it or of a subclass."""
        words = ast.unparse(value)
        if words in {"self", "cls", "super()"}:
            return self._find_class(value) in self.uses.family
        return self._makes_object_of_family(value) or words.rpartition(".")[2] in self.uses.family

    def _makes_object_of_family(self, node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).rpartition(".")[2] in self.uses.family
        )

    def _text_names_changed(self, node: ast.Constant) -> bool:
        """Whether a text is an entry of `__all__`, or the second argument of `getattr`, `patch.object` and the like."""
        outer = self.around[node]
        if isinstance(outer, ast.Call) and outer.args[1:2] == [node]:
            return self.uses.is_unique or self._is_object_of_changed_class(outer.args[0])
        listing = self.around.get(outer)
        return (
            isinstance(listing, ast.Assign)
            and ast.unparse(listing.targets[0]) == "__all__"
            and self.change.old in self.locals
        )

    def _find_class(self, node: ast.AST) -> str:
        found = self.around.get(node)
        while found is not None and not isinstance(found, ast.ClassDef):
            found = self.around.get(found)
        return found.name if found else ""

    def _byte_span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends, in bytes."""
        lines = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        columns = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
        return self.starts[lines[0] - 1] + columns[0], self.starts[lines[1] - 1] + columns[1]

    def _edit(self, node: ast.AST, new: str) -> None:
        self.edits.add((*self._byte_span(node), new))
