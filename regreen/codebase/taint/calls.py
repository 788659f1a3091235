"""Calls: into the repository's own functions, or into libraries that are known by name."""

from __future__ import annotations

import ast

from regreen.codebase.taint import (
    checks,
    containers,
    expressions,
    forms,
    heap,
    invocation,
    library,
    misuse,
    sinks,
    sources,
    texts,
)
from regreen.codebase.taint.run import Frame, Run, lookup
from regreen.codebase.taint.sinks import Arguments
from regreen.codebase.taint.state import State
from regreen.codebase.taint.values import (
    NONE,
    NOTHING,
    UNKNOWN,
    Bound,
    ClassRef,
    External,
    FunctionRef,
    Handle,
    Imported,
    ModuleRef,
    Taint,
    Value,
    decoded,
    doubtful,
    external,
    join,
    made_safe,
    part_of,
    tainted,
    thing,
)

_ENDS = frozenset(
    {"flask.abort", "werkzeug.exceptions.abort", "sys.exit", "os._exit", "builtins.exit", "builtins.quit", "os.abort",
     "quart.abort", "bottle.abort", "pytest.fail", "pytest.skip"}
)  # fmt: skip


def call(run: Run, frame: Frame, node: ast.Call, state: State) -> Value:
    """What a call gives, after it has had its effects."""
    if isinstance(node.func, ast.Attribute):
        owner = expressions.evaluate(run, frame, node.func.value, state)
        args = _arguments(run, frame, node, state)
        return state.baked(_method(run, frame, node, owner, node.func.attr, args, state))
    callee = expressions.evaluate(run, frame, node.func, state)
    args = _arguments(run, frame, node, state)
    return state.baked(_function(run, frame, node, callee, args, state))


def _arguments(run: Run, frame: Frame, node: ast.Call, state: State) -> Arguments:
    positional: list[Value] = []
    spread: Value | None = None
    for arg in node.args:
        value = expressions.evaluate(run, frame, arg, state)
        if isinstance(arg, ast.Starred):
            items = heap.elements(state, value)
            if items is not None:
                positional.extend(items)
            else:
                spread = join(spread or NOTHING, heap.any_element(state, value))
        else:
            positional.append(value)
    keywords: dict[str, Value] = {}
    for keyword in node.keywords:
        value = expressions.evaluate(run, frame, keyword.value, state)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
            continue
        for key in value.handles():
            heaped = state.at(key)
            if heaped is not None:
                keywords.update({k: v for k, v in heaped.entries.items() if isinstance(k, str)})
        if value.taints:
            spread = join(spread or NOTHING, value)
    return Arguments(tuple(positional), keywords, spread)


def _function(  # noqa: PLR0917
    run: Run, frame: Frame, node: ast.Call, callee: Value, args: Arguments, state: State
) -> Value:
    found: list[Value] = []
    names: list[str] = []
    for one in callee.things:
        match one:
            case FunctionRef() | ClassRef():
                found.append(invocation.invoke(run, frame, node, thing(one), args, state))
            case External():
                names.append(one.name)
            case Handle():
                found.extend(_called_object(run, frame, node, one, args, state))
            case ModuleRef() | Bound() | Imported():
                pass
    if names or not found:
        found.append(library_call(run, frame, node, tuple(names) or ("?",), args, state, callee))
    return join(*found)


def _called_object(  # noqa: PLR0917
    run: Run, frame: Frame, node: ast.Call, handle: Handle, args: Arguments, state: State
) -> list[Value]:
    heaped = state.at(handle.key)
    if heaped is not None and heaped.kind == "partial":
        given = {k[1]: v for k, v in heaped.entries.items() if isinstance(k, tuple)}
        whole = Arguments(
            (*(heaped.items or ()), *args.positional), {**given, **args.keywords}, args.spread
        )
        return [_function(run, frame, node, heaped.entries["function"], whole, state)]
    if heaped is None or not isinstance(heaped.of, ClassRef):
        return []
    return [
        invocation.invoke(
            run,
            frame,
            node,
            invocation.class_member(run, heaped.of, "__call__", thing(handle)),
            args,
            state,
        )
    ]


def _method(  # noqa: C901, PLR0912, PLR0917
    run: Run, frame: Frame, node: ast.Call, owner: Value, name: str, args: Arguments, state: State
) -> Value:
    found: list[Value] = []
    names: list[str] = []
    known = False
    for one in owner.things:
        match one:
            case ModuleRef():
                value = expressions.member(run, one.name, name)
                found.append(_function(run, frame, node, value, args, state))
                known = True
            case ClassRef():
                checked = forms.read(run, frame, node, one, name, args, state)
                if checked is None:
                    value = invocation.class_member(run, one, name, None)
                    checked = invocation.invoke(run, frame, node, value, args, state)
                found.append(checked)
                known = True
            case Handle():
                given = _object_method(run, frame, node, one, name, args, state)
                if given is not None:
                    found.append(given)
                    known = True
            case External():
                names.append(f"{one.name}.{name}")
            case FunctionRef() | Bound() | Imported():
                pass
    sinks.check(run, frame, node, tuple(names) or (f"?.{name}",), _with_self(args, owner), state)
    misuse.check(run, frame, node, tuple(names) or (f"?.{name}",), args)
    if name == "relative_to" and args.positional:
        checks.below(owner, args.positional[0], state)  # it raises for what lies elsewhere
    text = texts.method(owner, name, args, state)
    if text is not None:
        found.append(text)
        known = True
    if names and not owner.taints:
        found.append(library_call(run, frame, node, tuple(names), args, state, owner, checked=True))
    elif owner.taints and text is None:
        found.append(texts.tainted_method(owner, name, args, node))
    elif not known:
        found.append(
            library_call(run, frame, node, (f"?.{name}",), args, state, owner, checked=True)
        )
    for dotted in names:
        read = sources.call(dotted, frame, node.lineno)
        if read is not None and owner.taints:
            found.append(read)
    return join(*found)


def _with_self(args: Arguments, owner: Value) -> Arguments:
    return Arguments(args.positional, {**args.keywords, "self": owner}, args.spread)


def _object_method(  # noqa: PLR0911, PLR0917
    run: Run, frame: Frame, node: ast.Call, handle: Handle, name: str, args: Arguments, state: State
) -> Value | None:
    heaped = state.at(handle.key)
    if heaped is None:
        return None
    if name in heaped.entries and heaped.kind == "instance":
        return _function(run, frame, node, heaped.entries[name], args, state)
    if isinstance(heaped.of, ClassRef):
        checked = forms.loaded(run, frame, handle, heaped.of, name, args, state)
        if checked is not None:
            return checked
        value = invocation.class_member(run, heaped.of, name, thing(handle))
        if value.things:
            return invocation.invoke(run, frame, node, value, args, state)
        return None
    if heaped.kind == "parser" and name in {"setFeature", "setProperty"}:
        state.heap[handle.key] = texts.featured(heaped, args)
        return NONE
    if heaped.kind == "parser" and name == "parse":
        sinks.parsed(run, frame, node, heaped, args, state)
        return NONE
    if heaped.kind == "pattern" and name in {"match", "fullmatch", "search"} and args.positional:
        pattern = heaped.entries.get("pattern", UNKNOWN)
        return texts.match(frame, node, pattern, args.positional[0], state, name)
    if heaped.kind == "match":
        subject = heaped.entries.get("subject", UNKNOWN)
        only = args.positional[0].only if args.positional else ()
        part = part_of(subject, ("group", node.lineno, node.col_offset))
        if name == "group" and only and len(args.positional) == 1:
            part = checks.part_matched(heaped, part, only[0])
        return part if subject.taints else UNKNOWN
    outcome = containers.mutate(heaped, name, args.positional, args.keywords)
    if outcome is None:
        return heaped.anything() if name in containers.READS else None
    state.heap[handle.key], value = outcome
    return value


def library_call(  # noqa: PLR0917
    run: Run,
    frame: Frame,
    node: ast.Call,
    names: tuple[str, ...],
    args: Arguments,
    state: State,
    callee: Value,
    *,
    checked: bool = False,
) -> Value:
    """A call of something outside the repository."""
    if not checked:
        sinks.check(run, frame, node, names, args, state)
        misuse.check(run, frame, node, names, args)
    found: list[Value] = []
    if len(names) == 1 and names[0] in library.PARSERS and len(args.positional) == 1:
        for taint in args.positional[0].taints:
            state.check(taint.mark, library.TEXTUAL)
    for name in names:
        value = sources.call(name, frame, node.lineno)
        if value is None:
            value = texts.modelled(run, frame, node, name, args, state)
        found.append(_passed_on(frame, name, args, node, state, callee) if value is None else value)
    return join(*found)


def _passed_on(  # noqa: PLR0917
    frame: Frame, name: str, args: Arguments, node: ast.Call, state: State, callee: Value
) -> Value:
    taints: frozenset[Taint] = frozenset().union(*(sinks.deep(state, arg) for arg in args.all()))
    taints |= frozenset(t for t in callee.taints)
    result = external(f"{name}()")
    if not library.is_followed(name) and any(
        set(arg.names()) & sources.REQUESTS for arg in args.all()
    ):
        taints |= sources.wrapped(name, frame, node.lineno).taints
    if name in library.CLEAN or library.gives_no_text(name.rpartition(".")[2]):
        taints = frozenset(t for t in taints if t.origin == "weak-random")
    if name in library.ROUTES and not taints:
        return Value(None, things=result.things, prefix="/-")  # some path of this site
    if not taints:
        codes = [arg for arg in args.all() if any(library.MAC.match(one) for one in arg.names())]
        return codes[0] if codes and library.is_followed(name) else result
    value = tainted(taints)
    if name in library.SANITIZERS:
        value = made_safe(value, library.SANITIZERS[name])
    elif name.endswith((".format", ".join")) and library.is_markup(name.rpartition(".")[0]):
        value = made_safe(value, library.HTML)
    elif name in library.DECODERS:
        value = decoded(value, (node.lineno, node.col_offset))
    elif not library.is_followed(name):
        value = doubtful(value)
        if library.is_called_an_escape(name):
            value = made_safe(value, library.HTML)
    return Value(None, value.taints, result.things if library.is_followed(name) else frozenset())


def never_returns(run: Run, frame: Frame, node: ast.expr, state: State) -> bool:
    """Whether a statement of this expression ends the path."""
    if not isinstance(node, ast.Call):
        return False
    func = node.func
    if isinstance(func, ast.Name):
        callee = expressions.resolved(run, lookup(run, frame, state, func.id))
        return bool(callee.things) and all(
            isinstance(t, External) and t.name in _ENDS for t in callee.things
        )
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
        owner = expressions.resolved(run, lookup(run, frame, state, func.value.id))
        return any(f"{name}.{func.attr}" in _ENDS for name in owner.names())
    return False
