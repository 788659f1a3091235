"""Bugs that show in one function although each line is correct: spent iterators, closed files, discarded results."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from regreen.code.python_calls import FunctionNode

BugPlace = tuple[ast.expr | ast.stmt, str, str]
"""A place, what is wrong there, and the rule."""

_TEXT_METHODS = frozenset({"replace", "strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize", "casefold", "removeprefix", "removesuffix", "zfill"})  # fmt: skip
_IN_PLACE = frozenset({"sort", "append", "extend", "insert", "reverse", "clear"})
_CONSUMING_FUNCTIONS = frozenset({"sum", "list", "tuple", "set", "dict", "frozenset", "sorted", "max", "min", "len"})  # fmt: skip
_PURE_FUNCTIONS = _CONSUMING_FUNCTIONS | {"abs", "int", "str", "float", "bool", "isinstance", "repr", "range", "round", "zip", "enumerate"}  # fmt: skip


def find_statement_bugs(tree: ast.Module) -> Iterator[BugPlace]:
    """All bugs of these patterns in a Python file."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _check_function(node)
            case ast.ClassDef():
                yield from _check_class(node, tree)
            case ast.For():
                yield from _check_loop(node)
            case _:
                pass


def _check_function(node: FunctionNode) -> Iterator[BugPlace]:
    own = list(own_nodes(node))
    once = _single_assignments(node, own)
    yield from _find_discarded_results(own, once)
    yield from _find_uncaptured_output(own, once)
    yield from _find_endless_recursion(node, own)
    for block in _statement_blocks(node):
        yield from _find_spent_generators(block, once)
        yield from _find_lazy_reads_after_close(block, once)


def own_nodes(node: FunctionNode) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions and classes in it."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        one = waiting.pop()
        yield one
        if not isinstance(one, FunctionNode | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(one))


def _single_assignments(node: FunctionNode, own: Sequence[ast.AST]) -> dict[str, ast.expr]:
    """The names of a function that have exactly one assignment, with its value."""
    times: dict[str, int] = {a.arg: 1 for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    values: dict[str, ast.expr] = {}
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
            times[one.id] = times.get(one.id, 0) + 1
        elif isinstance(one, ast.Global | ast.Nonlocal):
            times |= dict.fromkeys(one.names, 2)
    for one in own:
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):  # fmt: skip
            values[one.targets[0].id] = one.value
    return {name: value for name, value in values.items() if times[name] == 1}


def _is_text(value: ast.expr | None) -> bool:
    match value:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.Call(func=ast.Name(id="str")):
            return True
        case ast.Call(func=ast.Attribute(attr=attr, value=inner)):
            return attr in {"lower", "upper", "casefold", "capitalize", "decode", "read_text"} or (
                attr in _TEXT_METHODS | {"format", "join"} and _is_text(inner)
            )
        case _:
            return False


def _is_list(value: ast.expr | None) -> bool:
    match value:
        case ast.List() | ast.ListComp():
            return True
        case ast.Call(func=ast.Name(id="list" | "sorted")):
            return True
        case _:
            return False


def _find_discarded_results(
    own: Sequence[ast.AST], once: dict[str, ast.expr]
) -> Iterator[BugPlace]:
    for node in own:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr))):
                if attr in _TEXT_METHODS and _is_text(once.get(name)):
                    yield node, f"`{name}.{attr}(...)` changes nothing: its result is thrown away", "result-discarded"  # fmt: skip
            case ast.Assign(
                targets=[ast.Name(id=kept)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)),
            ):
                first = [n for n in own if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and n.targets[0].id == name and n is not node]  # fmt: skip
                is_list = _is_list(once.get(name)) or (kept == name and len(first) == 1 and _is_list(first[0].value))  # fmt: skip
                if attr in _IN_PLACE and is_list:
                    yield node, f"`{kept}` is None from here on: `{attr}` changes the list itself and returns nothing", "method-returns-none"  # fmt: skip
            case _:
                pass


def _find_uncaptured_output(
    own: Sequence[ast.AST], once: dict[str, ast.expr]
) -> Iterator[BugPlace]:
    """`run(...)` without `capture_output` whose output is then used."""
    runs = set()
    for name, value in once.items():
        match value:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="subprocess"), attr="run"), keywords=given
            ):
                if not {k.arg for k in given} & {"capture_output", "stdout", None}:
                    runs.add(name)
            case _:
                pass  # fmt: skip
    for inner in own if runs else ():
        match inner:
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id=name), attr="stdout"), attr=attr) if name in runs:  # fmt: skip
                yield inner, f"`{name}.stdout` is None, so it has no `{attr}`: the command's output is not captured", "output-not-captured"  # fmt: skip
            case _:
                pass


def _find_endless_recursion(node: FunctionNode, own: Sequence[ast.AST]) -> Iterator[BugPlace]:
    """A property that reads itself; a function without side effects that calls itself with its own arguments."""
    arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    if any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list):
        acts = any(isinstance(n, ast.Call | ast.Assign) for n in own)
        for inner in node.body if not acts else ():
            match inner:
                case ast.Return(value=ast.Attribute(value=ast.Name(id=me), attr=attr)):
                    if [me] == arguments and attr == node.name:
                        yield inner, f"`{node.name}` reads itself, without end", "calls-itself"
                case _:
                    pass
        return
    if not arguments or arguments[0] in {"self", "cls"} or node.args.vararg or node.args.kwarg or node.args.kwonlyargs or node.decorator_list:  # fmt: skip
        return
    stored = {n.id for n in own if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    if any(isinstance(n, ast.Import | ast.ImportFrom) for n in own) or node.name in stored:
        return  # the name may be another function's here
    calls = [n for n in own if isinstance(n, ast.Call)]
    again = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == node.name]
    others = [c for c in calls if c not in again and not (isinstance(c.func, ast.Name) and c.func.id in _PURE_FUNCTIONS)]  # fmt: skip
    acts = any(isinstance(n, ast.Await | ast.Yield | ast.YieldFrom | ast.Global | ast.Nonlocal) for n in own)  # fmt: skip
    acts |= any(isinstance(n, ast.Attribute | ast.Subscript) and not isinstance(n.ctx, ast.Load) for n in own)  # fmt: skip
    for call in again if not others and not acts and not stored & set(arguments) else ():
        passed = [a.id if isinstance(a, ast.Name) else None for a in call.args]
        if passed == arguments and not call.keywords:
            yield (
                call,
                f"`{node.name}` calls itself with what it was given, without end",
                "calls-itself",
            )


def _statement_blocks(node: FunctionNode) -> Iterator[list[ast.stmt]]:
    for inner in (node, *own_nodes(node)):
        for part in ("body", "orelse", "finalbody"):
            block = getattr(inner, part, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _find_spent_generators(
    block: Sequence[ast.stmt], once: dict[str, ast.expr]
) -> Iterator[BugPlace]:
    """A generator that two consecutive statements exhaust."""
    for at, statement in enumerate(block):
        name = _assigned_name(statement)
        if name is None or not isinstance(once.get(name), ast.GeneratorExp):
            continue
        walked: list[ast.stmt] = []
        for later in block[at + 1 :]:
            if _consumes_name(later, name):
                walked.append(later)
            if len(walked) == 2:
                yield walked[1], f"`{name}` is a generator, and line {walked[0].lineno} has walked it to its end: nothing is left here", "iterator-is-spent"  # fmt: skip
                break
            if isinstance(later, ast.Return | ast.Raise):
                break


def _assigned_name(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            return None


def _consumes_name(statement: ast.stmt, name: str) -> bool:
    """Whether a statement certainly iterates over all of the name's value."""
    match statement:
        case ast.For(iter=ast.Name(id=found), body=body):
            left = (ast.Break, ast.Return, ast.Raise)
            return found == name and not any(isinstance(n, left) for s in body for n in ast.walk(s))
        case ast.Assign() | ast.Return() | ast.Expr() | ast.AugAssign():
            return any(_is_consumer(n, name) for n in _certainly_evaluated(statement))
        case _:
            return False


def _certainly_evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that a statement certainly evaluates: none behind a condition, in a lambda or in a comprehension's body."""
    yield node
    match node:
        case ast.IfExp() | ast.BoolOp() | ast.Lambda() | ast.GeneratorExp():
            return
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _certainly_evaluated(child)


def _is_consumer(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=walker), args=[ast.Name(id=found), *_]):
            return walker in _CONSUMING_FUNCTIONS and found == name
        case ast.Call(
            func=ast.Name(id=walker), args=[ast.GeneratorExp(generators=[first, *_]), *_]
        ):
            return (
                walker in _CONSUMING_FUNCTIONS
                and isinstance(first.iter, ast.Name)
                and first.iter.id == name
            )
        case ast.ListComp(generators=[first, *_]) | ast.SetComp(generators=[first, *_]):
            return isinstance(first.iter, ast.Name) and first.iter.id == name
        case _:
            return False


def _find_lazy_reads_after_close(
    block: Sequence[ast.stmt], once: dict[str, ast.expr]
) -> Iterator[BugPlace]:
    """A lazy reader of a file that is iterated after the `with` has closed the file."""
    for at, statement in enumerate(block):
        match statement:
            case ast.With(
                items=[
                    ast.withitem(
                        context_expr=ast.Call(func=ast.Name(id="open")),
                        optional_vars=ast.Name(id=file),
                    )
                ],
                body=body,
            ):
                lazy = {
                    name
                    for one in body
                    if (name := _assigned_name(one)) and _reads_lazily(once.get(name), file)
                }
            case _:
                continue  # fmt: skip
        for later in block[at + 1 :]:
            for name in sorted(lazy):
                if _consumes_name(later, name) or any(
                    _is_consumer(n, name) for n in _certainly_evaluated(later)
                ):
                    yield later, f"`{name}` reads `{file}` only when it is walked, and line {body[-1].end_lineno} was the last with the file open", "file-is-closed"  # fmt: skip
                    lazy.discard(name)


def _reads_lazily(value: ast.expr | None, file: str) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="csv"), attr="reader" | "DictReader"), args=[ast.Name(id=found), *_]):  # fmt: skip
            return found == file
        case ast.Call(func=ast.Name(id="map" | "filter"), args=[_, ast.Name(id=found)]):
            return found == file
        case ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name(id=found), *_]):
            return found == file
        case ast.GeneratorExp(generators=[first, *_]):
            return isinstance(first.iter, ast.Name) and first.iter.id == file
        case _:
            return False


def _check_loop(node: ast.For) -> Iterator[BugPlace]:
    yield from _find_index_overruns(node)
    yield from _find_shrinking_loops(node)


def _find_shrinking_loops(node: ast.For) -> Iterator[BugPlace]:
    """A loop that removes elements from the container it iterates over, and continues."""
    match node.iter:
        case ast.Call(func=ast.Attribute(value=walked, attr="items" | "keys" | "values"), args=[]):
            is_dict = True
        case ast.Name() | ast.Attribute() as walked:
            is_dict = False
        case _:
            return
    whole, first = ast.unparse(walked), node.target
    if isinstance(first, ast.Tuple) and first.elts:
        first = first.elts[0]
    own = [n for s in node.body for n in ast.walk(s)]
    if any(isinstance(n, ast.Name | ast.Attribute) and not isinstance(n.ctx, ast.Load) and ast.unparse(n) == whole for n in own):  # fmt: skip
        return
    leaves = [n.lineno for n in own if isinstance(n, ast.Break | ast.Return | ast.Raise)]
    for statement in own:
        match statement:
            case ast.Delete(targets=[ast.Subscript(value=held, slice=key)]):
                taken = is_dict or ast.unparse(key) == ast.unparse(first)
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=held, attr="pop"), args=[key, *_])
            ):
                taken = is_dict or ast.unparse(key) == ast.unparse(first)
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=held, attr="remove"), args=[key])
            ):
                taken = not is_dict and ast.unparse(key) == ast.unparse(first)
            case _:
                continue  # fmt: skip
        if taken and ast.unparse(held) == whole and not any(n >= statement.lineno for n in leaves):
            yield statement, f"`{whole}` loses an entry here while line {node.lineno} walks it", "shrinks-under-its-loop"  # fmt: skip


def _find_index_overruns(node: ast.For) -> Iterator[BugPlace]:
    """`for i in range(len(x) + 1)` that reads `x[i]` without a check."""
    match node:
        case ast.For(
            target=ast.Name(id=at),
            iter=ast.Call(
                func=ast.Name(id="range"),
                args=[
                    ast.BinOp(
                        left=ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=held)]),
                        op=ast.Add(),
                        right=ast.Constant(value=int(more)),
                    )
                ],
            ),
        ) if more > 0:
            pass
        case _:
            return  # fmt: skip
    inside = [n for s in node.body for n in ast.walk(s)]
    if any(isinstance(n, ast.If | ast.IfExp | ast.Try | ast.BoolOp | ast.Break) for n in inside):
        return
    for one in inside:
        match one:
            case ast.Subscript(value=ast.Name(id=found), slice=ast.Name(id=index), ctx=ast.Load()):
                if found == held and index == at:
                    yield (
                        one,
                        f"`{held}[{at}]` is one past the end in the last round",
                        "one-past-the-end",
                    )
                    return
            case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr=attr)):
                if found == held and attr in _IN_PLACE:
                    return
            case _:
                pass


def _check_class(node: ast.ClassDef, tree: ast.Module) -> Iterator[BugPlace]:
    """A constructor that does not call its base's, although a method reads an attribute that only the base sets."""
    bases = {b.id for b in node.bases if isinstance(b, ast.Name)}
    known = {c.name: c for c in tree.body if isinstance(c, ast.ClassDef)}
    own = next((f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)  # fmt: skip
    if own is None or len(node.bases) != 1 or not bases <= known.keys() or not bases:
        return
    base = known[bases.pop()]
    made = next((f for f in base.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)  # fmt: skip
    if made is None or any(isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "__init__" for n in ast.walk(own)):  # fmt: skip
        return
    everywhere = _attributes_set(base, made) | {n for c in (node, base) for s in c.body for n in _member_names(s)}  # fmt: skip
    missing = _attributes_set(made) - _attributes_set(node) - everywhere
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=ast.Name(id="self"), attr=attr, ctx=ast.Load()) if attr in missing:  # fmt: skip
                yield own, f"`self.{attr}` is read in line {inner.lineno} and only `{base.name}.__init__` sets it, which is not called", "base-not-made"  # fmt: skip
                return
            case _:
                pass


def _attributes_set(node: ast.AST, without: ast.AST | None = None) -> set[str]:
    left = {id(n) for n in ast.walk(without)} if without is not None else set()
    return {
        n.attr
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load) and id(n) not in left
    }


def _member_names(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a class body defines."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield statement.name
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Assign(targets=targets):
            yield from (t.id for t in targets if isinstance(t, ast.Name))
        case _:
            pass
