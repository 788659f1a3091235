"""Which functions are called from outside, and with what."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from regreen.code.python_calls import last_name
from regreen.taint import namespaces, validation
from regreen.taint.interpreter import AnalysisRun, CallFrame, EntryPoint, Interpreter, Route
from regreen.taint.models import form_models, sources
from regreen.taint.state import AbstractState
from regreen.taint.values import TOP, AbstractValue, ClassRef, FunctionRef, make_external

_CONVERTERS: dict[str, str] = {
    name: row["matches"] for row in sources.LIBRARIES["route_converters"] for name in row["names"]
}
"""For a framework's converter, the pattern that the text of its value matches; with any other, it can hold any text."""
_FREE_CONVERTERS = frozenset(sources.LIBRARIES["routes"]["free_converters"])
_ROUTE_CALLS = frozenset(sources.LIBRARIES["routes"]["calls"])
_RELATIVE_CALLS = frozenset(sources.LIBRARIES["routes"]["relative_calls"])
_ROUTE_MODULES = re.compile(sources.LIBRARIES["routes"]["modules"])
_ANGLE_PARAMETER = re.compile(r"<(?:(\w+)(?:\([^)]{0,300}\))?:)?(\w+)>|<(\w+):re:([^>]{1,300})>")
_CHOICE_PARAMETER = re.compile(r"<any\(([^)]{0,300})\):(\w+)>")
_BRACE_PARAMETER = re.compile(r"\{(\w+)(?::(\w+)(?:\([^)]{0,300}\))?)?\}|\{(\w+):")
_GROUP = re.compile(r"\((?!\?)|\(\?P<(\w+)>")
_HAS_PARAMETER = re.compile(r"[<{(]")
_EXPRESSION_PARTS = re.compile(r"\(\?P<\w+>|\{\d+(?:,\d*)?\}")
_ROUTE_START = re.compile(r"[/^(]")
_MAX_ADDRESS = 300


def find_parameter_patterns(
    run: AnalysisRun, function: FunctionRef, owner: ast.ClassDef | None
) -> Mapping[str, str]:
    """For the parameters in a handler's path, the pattern that every one of its routes matches the text against."""
    target = owner if owner is not None else function.node
    name = getattr(target, "name", "")
    if run.route_modules is None:
        run.route_modules = sorted(p for p in run.program.paths if _ROUTE_MODULES.search(p))
    node = function.node
    addresses = [] if isinstance(node, ast.Lambda) else _decorator_routes(node) or []
    addresses += [
        route.address
        for path in dict.fromkeys((function.module, *run.route_modules))
        for route in _load_routes(run, path)
        if route.name == name and _route_leads_to(run, path, route, target)
    ]
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    found = [
        _assign_groups_to_parameters(_parameter_patterns(one, names), names, owner)
        for one in addresses
    ]
    # For two routes to one handler, only patterns of both hold.
    first, *others = found or [{}]
    return {n: p for n, p in first.items() if all(o.get(n) == p for o in others)}


def _assign_groups_to_parameters(
    patterns: Mapping[str | int, str], names: Sequence[str], owner: ast.ClassDef | None
) -> dict[str, str]:
    """The patterns by parameter: groups without a name fill those that stand behind the object and the request.

    Where there are more or fewer parameters than that, nothing is known of them.
    """
    found = {key: pattern for key, pattern in patterns.items() if isinstance(key, str)}
    groups = [pattern for key, pattern in patterns.items() if isinstance(key, int)]
    before = len(names) - len(groups)
    # a method of Django's is given the request too, one of Tornado's is not
    if groups and not found and before in ({1, 2} if owner is not None else {1}):
        return dict(zip(names[before:], groups, strict=True))
    return found


def assume_route_patterns(
    interp: Interpreter, function: FunctionRef, owner: ast.ClassDef | None
) -> None:
    """Put into the state what the routes of a handler let through."""
    for name, pattern in find_parameter_patterns(interp.run, function, owner).items():
        validation.assume_pattern(
            pattern, interp.state.names.get(name, TOP), interp.state, whole=True
        )
        for part in sources.LIBRARIES["routes"]["path_parts"]:
            held = sources.make_untrusted_value(
                interp, function.node, "web", ("web.request", part, ("key", name)), part
            )
            validation.assume_pattern(pattern, held, interp.state, whole=True)


def _parameter_patterns(address: str, names: Collection[str]) -> dict[str | int, str]:
    """The pattern for each parameter of an address that has one, by name or, for a group without one, by its number.

    `names` are the handler's parameters. Some frameworks write a converter before its parameter, some behind it.
    """
    if len(address) > _MAX_ADDRESS:
        return {}
    found: dict[str | int, str] = dict(_angle_patterns(address, names))
    for choice in _CHOICE_PARAMETER.finditer(address):
        words = [re.escape(word.strip()) for word in choice[1].split(",")]
        found[choice[2]] = rf"^(?:{'|'.join(words)})\Z"
    for brace in _BRACE_PARAMETER.finditer(address):
        if brace[2] in _CONVERTERS:
            found[brace[1]] = _CONVERTERS[brace[2]]
        elif brace[3]:
            inner = _text_to_closing_bracket(address, brace.end(), "{}")
            found[brace[3]] = rf"^(?:{inner})\Z"
    # the text of a regular expression has no other brackets than those of its groups and counts
    is_expression = not re.search(r"[<{]", _EXPRESSION_PARTS.sub("", address))
    groups = list(_GROUP.finditer(address)) if is_expression else []
    is_named = any(group[1] for group in groups)  # then frameworks pass on no other
    for number, group in enumerate(groups):
        inner = _text_to_closing_bracket(address, group.end(), "()")
        if group[1] or not is_named:
            found[group[1] or number] = rf"^(?:{inner})\Z"
    return found


def _angle_patterns(address: str, names: Collection[str]) -> Iterator[tuple[str, str]]:
    for angle in _ANGLE_PARAMETER.finditer(address):
        first, second, bottle_name, bottle_pattern = angle.groups()
        if bottle_name:
            yield bottle_name, rf"^(?:{bottle_pattern})\Z"
        elif first:
            name, converter = second, first
            is_behind = first not in {*_CONVERTERS, *_FREE_CONVERTERS}
            if second not in names and (first in names or is_behind):
                name, converter = first, second
            if converter in _CONVERTERS:
                yield name, _CONVERTERS[converter]


def _text_to_closing_bracket(text: str, start: int, pair: str) -> str:
    """The text up to the bracket that closes the one before `start`."""
    depth, at = 1, start
    while at < len(text) and depth:
        if text[at] == "\\":
            at += 1
        elif text[at] in pair:
            depth += 1 if text[at] == pair[0] else -1
        at += 1
    return text[start : at - 1]


def _load_routes(run: AnalysisRun, path: str) -> list[Route]:
    """The routes that a module lists."""
    known = run.routes.get(path)
    if known is None:
        module = run.program.load_module(path)
        known = run.routes[path] = list(_parse_routes(module.tree)) if module else []
    return known


def _parse_routes(tree: ast.Module) -> Iterator[Route]:
    """What registers a handler for an address: `path("x/<int:n>", view)`, `add_route("/x", Item())`, `("/x", Handler)`."""
    made = {
        node.targets[0].id: node.value.func
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
    }
    for node in ast.walk(tree):
        starts: re.Pattern[str] | None = _ROUTE_START
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            given = (
                [*node.args[:3], *(k.value for k in node.keywords)] if name in _ROUTE_CALLS else []
            )
            starts = None if name in _RELATIVE_CALLS else starts
        elif isinstance(node, ast.Tuple):
            given = node.elts[:2]
        else:
            continue
        texts = [x.value for x in given if isinstance(x, ast.Constant)]
        addresses = [x for x in texts if isinstance(x, str) and _HAS_PARAMETER.search(x)]
        addresses = [x for x in addresses if starts is None or starts.match(x)]
        for part in given if addresses else ():
            view = made.get(part.id, part) if isinstance(part, ast.Name) else part
            view = view.func if isinstance(view, ast.Call) else view
            if isinstance(view, ast.Attribute) and view.attr == "as_view":
                view = view.value
            if isinstance(view, ast.Name | ast.Attribute):
                yield Route(addresses[0], view)


def _route_leads_to(run: AnalysisRun, path: str, route: Route, target: ast.AST) -> bool:
    module = run.program.load_module(path)
    if module is None:
        return False
    state = AbstractState(dict(namespaces.module_environment(run, path)), {}, {}, run.shared)
    frame = CallFrame(path, module.tree, (path, "routes"), 0)
    view = run.interpret(frame, state).evaluate(route.view)
    return any(
        isinstance(ref, FunctionRef | ClassRef) and ref.node is target for ref in view.things
    )


_ROUTE_DECORATORS = frozenset(
    {"route", "get", "post", "put", "delete", "patch", "head", "options", "api_route", "websocket"}
)
_RULE_METHODS = frozenset({"add_url_rule", "add_api_route"})
_REGISTRATION_CALL = re.compile(
    r"\.(?:add_url_rule|add_api_route|register_function)\(|\bwebsockets\b"
)
_ERROR_DECORATORS = frozenset({"errorhandler", "app_errorhandler"})

# Called by the framework while it answers, with arguments that it made.
_VIEW_HOOKS = frozenset(
    {
        "get_context_data",
        "get_object",
        "form_valid",
        "form_invalid",
        "perform_create",
        "perform_update",
        "get_success_url",
        "get_redirect_url",
        "get_template_names",
        "filter_queryset",
        "list",
        "retrieve",
        "create",
        "update",
        "partial_update",
        "destroy",
        "setup",
        "test_func",
        "prepare",
    }
)
_VIEW_METHODS = frozenset(
    {"get", "post", "put", "patch", "delete", "head", "options", "dispatch", "get_queryset"}
)
_HTTP_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"})
_HANDLER_CLASSES = re.compile(
    r"\b(?:Base|SimpleHTTP|CGIHTTP|BaseHTTP|Stream|Datagram|SimpleXMLRPC)RequestHandler\b"
)
_RESPONDER_NAME = re.compile(r"on_(?:get|post|put|patch|delete|head|options|websocket)")
_MESSAGE_CLASS = re.compile(rf"({'|'.join(sources.MESSAGE_METHODS)})\b")
_VIEW_CLASSES = (
    (re.compile("HTTPEndpoint"), EntryPoint("web", html=False)),
    (re.compile("RequestHandler"), EntryPoint("tornado", html=False)),
    (re.compile("Resource"), EntryPoint("flask", html=False)),
    (re.compile("MethodView"), EntryPoint("flask")),
    (re.compile(r"(?:View|ViewSet|Mixin)\b"), EntryPoint("django", html=False)),
)
_DJANGO_SIGN = re.compile(r"django|rest_framework|\brequest\.(?:POST|GET|COOKIES|FILES|META)\b")
_INJECTION_CALLS = frozenset({"Depends", "Security", "Inject"})


def queue_function(run: AnalysisRun, function: FunctionRef, owner: ast.ClassDef | None) -> None:
    """Queue a function for analysis on its own."""
    key = (function.node, 0)
    if key not in run.queued:
        run.queued.add(key)
        run.pending.append((function, owner))


def find_entry_point(
    run: AnalysisRun, function: FunctionRef, owner: ast.ClassDef | None
) -> EntryPoint | None:
    """How the function is reached from the web; None when it is not."""
    node = function.node
    if isinstance(node, ast.Lambda):
        return None
    module = run.program.load_module(function.module)
    text = module.text if module is not None else ""
    route = _decorator_routes(node)
    if route is not None:
        found = _entry_from_routes(text, route)
        return replace(found, html=True) if found and _declares_html_response(node) else found
    if _is_error_handler(node) and "flask" in text:
        return EntryPoint("flask", routes=("",))
    if _is_exposed(node) or (owner and _is_exposed(owner) and node.name in _HTTP_METHODS):
        return EntryPoint("cherrypy")
    found = _view_class(owner, node) if owner is not None else None
    if found is None and module is not None and _occurs_in_module(_REGISTRATION_CALL, text):
        given = _registered_entry(module.tree, node.name, is_method=owner is not None)
        found = given and replace(given, html=given.html and _is_flask(text))
    if found is not None or owner is not None:
        return found
    return _command_entry(node, text) or _view_function(node, text, function.module)


@lru_cache(maxsize=128)
def _occurs_in_module(pattern: re.Pattern[str], text: str) -> bool:
    """Whether a module's text has a match; kept, since it is asked for each of its functions."""
    return pattern.search(text) is not None


def _is_exposed(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator) == "cherrypy.expose" for decorator in node.decorator_list)


def _command_entry(node: ast.FunctionDef | ast.AsyncFunctionDef, text: str) -> EntryPoint | None:
    """A command of click or typer, or who answers a connection of asyncio's."""
    if ("click" in text or "typer" in text) and any(
        ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator).endswith(
            ".command"
        )
        for decorator in node.decorator_list
    ):
        return EntryPoint("command", html=False)
    if "asyncio" in text and any(_is_stream_reader(argument) for argument in node.args.args):
        return EntryPoint("stream", html=False)
    return None


def _is_stream_reader(argument: ast.arg) -> bool:
    annotation = argument.annotation
    if annotation is None:
        return argument.arg == "reader"
    return ast.unparse(annotation).endswith("StreamReader")


def _option_value(interp: Interpreter, argument: ast.arg, annotation: str) -> AbstractValue:
    if annotation.rpartition(".")[2] == "Context" or argument.arg == "ctx":
        return TOP
    if argument.annotation is not None and form_models.is_harmless_type(argument.annotation):
        return TOP
    what = f"option `{argument.arg}`"
    mark = ("parameter", interp.frame.path, argument.lineno, argument.arg)
    return sources.make_untrusted_value(interp, argument, "argv", mark, what)


def _refers_to_function(value: ast.expr, name: str, *, is_method: bool) -> bool:
    """Whether a value is the function, or the method of some object, of this name."""
    if is_method:
        return isinstance(value, ast.Attribute) and value.attr == name
    return isinstance(value, ast.Name) and value.id == name


def _registered_entry(tree: ast.Module, name: str, *, is_method: bool) -> EntryPoint | None:
    """The entry point of a function that is registered by a call: `app.add_url_rule("/x", view_func=x)`, `register_function(x)`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
            continue
        handed = [*node.args, *(k.value for k in node.keywords)]
        if not any(_refers_to_function(value, name, is_method=is_method) for value in handed):
            continue
        if ast.unparse(node.func) in sources.CONNECTION_SERVERS:
            return EntryPoint("connection", html=False)
        if isinstance(node.func, ast.Name):
            continue
        if node.func.attr == "register_function":
            return EntryPoint("rpc", html=False)
        route = node.args[0] if node.args else None
        if node.func.attr in _RULE_METHODS and isinstance(route, ast.Constant):
            return EntryPoint("flask", routes=(str(route.value),))
    return None


def _is_flask(text: str) -> bool:
    return "fastapi" not in text and "aiohttp" not in text


def _is_error_handler(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """`@app.errorhandler(404)`: what it gives is a page, what it is given an exception."""
    called = [d.func for d in node.decorator_list if isinstance(d, ast.Call)]
    return any(
        isinstance(call, ast.Attribute) and call.attr in _ERROR_DECORATORS for call in called
    )


def _decorator_routes(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str] | None:
    paths: list[str] | None = None
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = call.func if call is not None else decorator
        word = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
        if word in _ROUTE_DECORATORS and call is not None:
            values = [
                *call.args[:1],
                *(k.value for k in call.keywords if k.arg in {"path", "rule", "uri"}),
            ]
            texts = [
                v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)
            ]
            # `from bottle import get`: a word without its application needs an address.
            if any(t.startswith("/") for t in texts) or (
                isinstance(name, ast.Attribute) and (texts or word in {"route", "api_route"})
            ):
                paths = [*(paths or []), *(texts or ["<unknown>"])]
    return paths


def _declares_html_response(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """`@app.get("/", response_class=HTMLResponse)`."""
    return any(
        keyword.arg == "response_class" and "HTML" in ast.unparse(keyword.value)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
    )


def _entry_from_routes(text: str, routes: list[str]) -> EntryPoint | None:
    fixed = tuple(routes) if not any(c in route for route in routes for c in "<{*") else ()
    known = tuple(routes) if "<unknown>" not in routes else ()
    if "fastapi" in text or "starlette" in text:
        return EntryPoint("fastapi", fixed, html=False)
    if "tornado" in text or "aiohttp" in text:
        return EntryPoint("web", fixed, html=False)
    return EntryPoint("flask", fixed, routes=known)


def _fills_parameter(route: str, name: str) -> bool:
    """Whether a part of the address becomes this parameter."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", route) is not None


def _view_class(
    owner: ast.ClassDef, node: ast.FunctionDef | ast.AsyncFunctionDef
) -> EntryPoint | None:
    bases = " ".join(ast.unparse(base) for base in owner.bases[:8])
    if _RESPONDER_NAME.match(node.name) and [a.arg for a in node.args.args[1:2]] == ["req"]:
        return EntryPoint("falcon", html=False)
    if _HANDLER_CLASSES.search(bases) and (node.name == "handle" or node.name.startswith("do_")):
        return EntryPoint("server", html=False)
    if any(
        node.name in sources.MESSAGE_METHODS.get(kind, ()) for kind in _MESSAGE_CLASS.findall(bases)
    ):
        return EntryPoint("message", html=False)
    if node.name in _VIEW_HOOKS and re.search(r"View(?:Set)?\b", bases):
        return EntryPoint("web", html=False)
    if node.name not in _VIEW_METHODS:
        return None
    return next((entry for kind, entry in _VIEW_CLASSES if kind.search(bases)), None)


def _view_function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, text: str, path: str
) -> EntryPoint | None:
    first = node.args.args[0].arg if node.args.args else ""
    annotation = node.args.args[0].annotation if node.args.args else None
    if first != "request" and not (annotation is not None and "Request" in ast.unparse(annotation)):
        return None
    if _occurs_in_module(_DJANGO_SIGN, text) or path.endswith("views.py"):
        return EntryPoint("django", html=False)
    if any(
        name in text for name in ("aiohttp", "starlette", "sanic", "pyramid", "falcon", "fastapi")
    ):
        return EntryPoint("web", html=False)
    return None


def make_parameter_values(
    interp: Interpreter, function: FunctionRef, bound: AbstractValue | None
) -> dict[str, AbstractValue]:
    """The value of each parameter when the function is analysed on its own."""
    node, entry = function.node, interp.run.entry
    names = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    values: dict[str, AbstractValue] = {}
    for index, argument in enumerate(names):
        if bound is not None and index == 0:
            values[argument.arg] = bound
        elif entry is None:
            values[argument.arg] = TOP
        else:
            values[argument.arg] = _make_request_parameter(
                interp, argument, entry, _default_source(node, argument)
            )
    for rest in (node.args.vararg, node.args.kwarg):
        if rest is not None:
            # CherryPy passes the rest of the path by position.
            open_ended = entry is not None and (
                entry.framework == "cherrypy"
                or (entry.framework in {"django", "flask"} and rest is node.args.kwarg)
            )
            values[rest.arg] = (
                sources.parameter_source(interp, rest.arg, node) if open_ended else TOP
            )
    return values


def _default_source(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, argument: ast.arg
) -> str:
    positional = [*node.args.posonlyargs, *node.args.args]
    defaults = dict(
        zip([a.arg for a in reversed(positional)], reversed(node.args.defaults), strict=False)
    )
    defaults.update(
        {
            a.arg: d
            for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            if d is not None
        }
    )
    value = defaults.get(argument.arg)
    return ast.unparse(value.func) if isinstance(value, ast.Call) else ""


def _make_request_parameter(
    interp: Interpreter, argument: ast.arg, entry: EntryPoint, default: str
) -> AbstractValue:
    annotation = ast.unparse(argument.annotation) if argument.annotation is not None else ""
    if argument.arg in {"request", "req" * (entry.framework == "falcon")} or annotation.rpartition(
        "."
    )[2] in {
        "Request",
        "HttpRequest",
        "WebSocket",
    }:
        return make_external("web.request")
    match entry.framework:
        case "tornado" | "rpc" | "message":
            free = argument.arg != "websocket"
        case "falcon":
            free = argument.arg not in {"resp", "ws"}
        case "command":
            return _option_value(interp, argument, annotation)
        case "connection":
            return make_external("websockets.connection")
        case "stream":
            return make_external("asyncio.StreamReader()") if _is_stream_reader(argument) else TOP
        case "web":
            free = False
        case _:
            # A parameter that is not in the address is filled by a decorator or the framework.
            filled = not entry.routes or any(
                _fills_parameter(route, argument.arg) for route in entry.routes
            )
            given = default.rpartition(".")[2] in _INJECTION_CALLS
            given = given or any(word in annotation for word in _INJECTION_CALLS)
            plain = argument.annotation is not None and form_models.is_harmless_type(
                argument.annotation
            )
            free = filled and not given and not plain
    return sources.parameter_source(interp, argument.arg, argument) if free else TOP


def give_request_to_view(
    interp: Interpreter, value: AbstractValue, framework: str, node: ast.AST
) -> None:
    """Let a view object hold its request."""
    given: dict[str, AbstractValue] = {"request": make_external("web.request")}
    if framework == "tornado":
        names = ("get_argument", "get_arguments", "get_query_argument", "get_body_argument")
        given |= {name: make_external(f"tornado.handler.{name}") for name in names}
    elif framework == "server":
        given = {
            name: sources.make_untrusted_value(
                interp, node, "web", ("server", name), f"`self.{name}` of the request"
            )
            for name in ("rfile", "path", "headers", "requestline")
        }
        given["request"] = make_external("socket.socket()")
    for key in value.heap_keys():
        heap_object = interp.state.find_object(key)
        if heap_object is not None:
            for name, held in given.items():
                heap_object = heap_object.with_entry(name, held)
            interp.state.heap[key] = heap_object
