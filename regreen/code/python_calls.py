"""Python read exactly, by `ast`: what functions accept, what calls pass, what a module offers."""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


# Python 3.11 counts how deep the trees are that all threads build at once, and takes the sum for a fault of its own
# (https://github.com/python/cpython/issues/106905); nor is `catch_warnings` for more than one thread.
_PARSE_LOCK = threading.Lock()


def is_module(path: str) -> bool:
    """Whether a file is a module of Python; a stub is none."""
    return path.endswith(".py")


def is_python_source(path: str) -> bool:
    """Whether a file is Python source, stubs included."""
    return path.endswith((".py", ".pyi"))


def is_package(path: str) -> bool:
    """Whether a module stands for its folder."""
    return path.endswith("__init__.py")


def module_stem(path: str) -> str:
    """The last part of the name by which a file is imported."""
    return path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]


def parse_syntax_tree(source: str | bytes) -> ast.Module:
    """The syntax tree, from any thread and without warnings, which are the author's and not ours to print.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: what `ast.parse` makes of text that is no Python.
    """
    if isinstance(source, str):
        source = source.removeprefix("\ufeff")
    with _PARSE_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def parse_python(text: str | bytes | None) -> ast.Module | None:
    """The syntax tree; None where there is no text, or where it is no Python or nested too deeply."""
    if text is None:
        return None
    try:
        return parse_syntax_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@dataclass(frozen=True, slots=True)
class PassedArguments:
    """What a call passes: how many positional arguments, which keywords; None where it unpacks something."""

    positional: int
    keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a function takes, `self` and `cls` left out."""

    names: tuple[str, ...]
    positional_only: int
    defaults: int
    keyword_only: tuple[str, ...]
    keyword_required: tuple[str, ...]
    takes_any_positional: bool
    takes_any_keyword: bool

    def explain_refusal(self, passed: PassedArguments) -> str | None:
        """Why Python would refuse this call, None where it would not."""
        extra = passed.positional - len(self.names)
        if extra > 0 and not self.takes_any_positional:
            return (
                f"it takes {len(self.names)} positional arguments and is given {passed.positional}"
            )
        filled = set(self.names[: passed.positional])
        by_keyword = set(self.names[self.positional_only :]) | set(self.keyword_only)
        for keyword in passed.keywords:
            if keyword not in by_keyword and not self.takes_any_keyword:
                return f"it has no parameter named `{keyword}`"
            if keyword in filled and keyword in by_keyword:
                return f"`{keyword}` is given twice"
        required = self.names[: len(self.names) - self.defaults]
        given = filled | set(passed.keywords)
        missing = [n for n in (*required, *self.keyword_required) if n not in given]
        return f"the argument `{missing[0]}` is missing" if missing else None


@dataclass(frozen=True, slots=True)
class CallableDefinition:
    """A function, method or class that can be called by its dotted name in a module."""

    name: str
    line: int
    end: int
    parameters: Parameters
    shown: str


@dataclass(frozen=True)
class ModuleInterface:
    """One module's top: what it offers, and whether that can be told at all."""

    callables: Mapping[str, CallableDefinition]
    names: frozenset[str]
    definitions: Mapping[str, int]
    open: bool
    """It may offer more than is seen: a star import, `__getattr__`, `globals()`."""


def read_module(tree: ast.Module) -> ModuleInterface:
    """Read what a module offers at its top."""
    names: set[str] = set()
    definitions: dict[str, int] = {}
    is_open = False
    for node in iterate_top_statements(tree.body):
        if isinstance(node, FunctionNode | ast.ClassDef):
            definitions.setdefault(node.name, node.lineno)
            is_open |= node.name == "__getattr__"
        if isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names):
            is_open = True
        names.update(bound_names(node))
    is_open |= any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Name)
        and n.func.id in {"globals", "exec"}
        for n in ast.walk(tree)
    )
    return ModuleInterface(dict(_find_callables(tree)), frozenset(names), definitions, is_open)


def bound_names(node: ast.AST) -> Iterator[str]:
    """The names that a statement binds where it stands."""
    if isinstance(node, FunctionNode | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.split(".", maxsplit=1)[0]
    else:
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                yield child.id
            elif isinstance(child, ast.ExceptHandler) and child.name:
                yield child.name


def reads_unbound(tree: ast.Module, name: str) -> bool:
    """Whether a module reads a name that nothing in it binds."""
    reads = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == name:
            if not isinstance(node.ctx, ast.Load):
                return False
            reads = True
        own = getattr(node, "asname", None) or getattr(node, "arg", None)
        if isinstance(node, ast.arg | ast.alias) and (own or getattr(node, "name", "")) == name:
            return False
        if isinstance(node, FunctionNode | ast.ClassDef) and node.name == name:
            return False
    return reads


def add_import(text: str, tree: ast.Module, line: str) -> str:
    """The module with one import more: in the order of the alphabet where its imports have that, else behind them."""
    rows, tail = text.split("\n"), "\r" if "\r\n" in text else ""
    tops = [x for x in tree.body if isinstance(x, ast.Import | ast.ImportFrom)]
    first = tree.body[0].end_lineno or 0 if ast.get_docstring(tree) is not None else 0
    later = (
        x.lineno - 1
        for x in tops
        if isinstance(x, ast.ImportFrom) and x.module != "__future__" and rows[x.lineno - 1] > line
    )
    at = next(later, max([first, *(x.end_lineno or 0 for x in tops)]))
    return "\n".join([*rows[:at], f"{line}{tail}", *rows[at:]])


def iterate_top_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported, those under `if`, `try` and `with` included."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody"):
            if not isinstance(node, FunctionNode | ast.ClassDef):
                yield from iterate_top_statements(getattr(node, part, []))
        for handler in getattr(node, "handlers", []):
            yield from iterate_top_statements(handler.body)


def _find_callables(tree: ast.Module) -> Iterator[tuple[str, CallableDefinition]]:
    """Functions and classes bound exactly once at the top, and those classes' methods."""
    times: dict[str, int] = {}
    for node in iterate_top_statements(tree.body):
        for name in bound_names(node) if not _is_block(node) else ():
            times[name] = times.get(name, 0) + 1
    for node in tree.body:
        if isinstance(node, FunctionNode) and times[node.name] == 1 and not node.decorator_list:
            yield node.name, _make_callable(node.name, node, skip=0)
        elif isinstance(node, ast.ClassDef) and times[node.name] == 1:
            yield from _class_callables(node)


def _is_block(node: ast.stmt) -> bool:
    return isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While)


def _class_callables(node: ast.ClassDef) -> Iterator[tuple[str, CallableDefinition]]:
    methods: dict[str, list[FunctionNode]] = {}
    for child in node.body:
        if isinstance(child, FunctionNode):
            methods.setdefault(child.name, []).append(child)
    for name, found in methods.items():
        if len(found) != 1:
            continue
        method = found[0]
        kinds = {d.id if isinstance(d, ast.Name) else "?" for d in method.decorator_list}
        if kinds - {"staticmethod", "classmethod"}:
            continue
        skip = 0 if "staticmethod" in kinds else 1
        dotted = f"{node.name}.{name}"
        yield dotted, _make_callable(dotted, method, skip=skip)
        plain = not node.decorator_list and not node.keywords and "__new__" not in methods
        if name == "__init__" and plain:
            yield node.name, _make_callable(node.name, method, skip=1)


def _make_callable(name: str, node: FunctionNode, *, skip: int) -> CallableDefinition:
    arguments = node.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    only = max(0, len(arguments.posonlyargs) - skip)
    with_default = [d is not None for d in arguments.kw_defaults]
    keyword_only = tuple(a.arg for a in arguments.kwonlyargs)
    parameters = Parameters(
        names=tuple(positional[skip:]),
        positional_only=only,
        defaults=min(len(arguments.defaults), len(positional[skip:])),
        keyword_only=keyword_only,
        keyword_required=tuple(
            k for k, has in zip(keyword_only, with_default, strict=True) if not has
        ),
        takes_any_positional=arguments.vararg is not None,
        takes_any_keyword=arguments.kwarg is not None,
    )
    shown = f"{node.name}({ast.unparse(arguments)})"
    return CallableDefinition(
        name, node.lineno, node.body[0].lineno - 1 or node.lineno, parameters, shown
    )


def last_name(node: ast.expr) -> str:
    """The name that an expression ends with: `c` of `a.b.c`; empty where it is no name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
