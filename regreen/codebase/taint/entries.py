"""Which functions are called from outside, and with what."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from regreen.codebase.taint import fields, sources
from regreen.codebase.taint.run import Entry, Frame, Run
from regreen.codebase.taint.state import State
from regreen.codebase.taint.values import UNKNOWN, FunctionRef, Value, external

_ROUTES = frozenset(
    {"route", "get", "post", "put", "delete", "patch", "head", "options", "api_route", "websocket"}
)
_CONVERTED = re.compile(
    r"<(?:(int|float|uuid|bool)(?:\([^)]*\))?:)?(?:\w+(?:\([^)]*\))?:)?(\w+)>|\{(\w+)(?::(\w+))?\}"
)
_RULES = frozenset({"add_url_rule", "add_api_route"})
_REGISTERED = re.compile(r"\.(?:add_url_rule|add_api_route|register_function)\(")
_ERRORS = frozenset({"errorhandler", "app_errorhandler"})
_ANY_OF = re.compile(r"<any\(")  # one of a few words
# Called by the framework while it answers; what they are handed, it made.
_HOOKS = frozenset(
    {
        "get_context_data", "get_object", "form_valid", "form_invalid", "perform_create", "perform_update", "get_success_url",
        "get_redirect_url", "get_template_names", "filter_queryset", "list", "retrieve", "create", "update", "partial_update",
        "destroy", "setup", "test_func", "prepare",
    }
)  # fmt: skip
_VIEW_METHODS = frozenset(
    {"get", "post", "put", "patch", "delete", "head", "options", "dispatch", "get_queryset"}
)
_SERVERS = re.compile(
    r"\b(?:Base|SimpleHTTP|CGIHTTP|BaseHTTP|Stream|Datagram|SimpleXMLRPC)RequestHandler\b"
)
_VIEW_CLASSES = (
    (re.compile("HTTPEndpoint"), Entry("web", html=False)),
    (re.compile("RequestHandler"), Entry("tornado", html=False)),
    (re.compile("Resource"), Entry("flask", html=False)),
    (re.compile("MethodView"), Entry("flask")),
    (re.compile(r"(?:View|ViewSet|Mixin)\b"), Entry("django", html=False)),
)
_INJECTED = frozenset({"Depends", "Security", "Inject"})


def queue(run: Run, function: FunctionRef, owner: ast.ClassDef | None) -> None:
    """Remember a function to be walked by itself."""
    key = (function.node, 0)
    if key not in run.queued:
        run.queued.add(key)
        run.pending.append((function, owner))


def entry_of(run: Run, function: FunctionRef, owner: ast.ClassDef | None) -> Entry | None:
    """How the function is reached from the web; None when it is not."""
    node = function.node
    if isinstance(node, ast.Lambda):
        return None
    module = run.program.module(function.module)
    text = module.text if module is not None else ""
    route = _route(node)
    if route is not None:
        found = _routed(text, route)
        return replace(found, html=True) if found and _answers_html(node) else found
    if _answers_errors(node) and "flask" in text:
        return Entry("flask", routes=("",))
    if owner is not None:
        return _view_class(owner, node)
    if module is not None and _REGISTERED.search(text):
        given = _registered(module.tree, node.name)
        if given is not None:
            return replace(given, html=given.html and _is_flask(text))
    return _command(node, text) or _view_function(node, text, function.module)


def _command(node: ast.FunctionDef | ast.AsyncFunctionDef, text: str) -> Entry | None:
    """A command of click or typer, or who answers a connection of asyncio's."""
    if ("click" in text or "typer" in text) and any(
        ast.unparse(one.func if isinstance(one, ast.Call) else one).endswith(".command")
        for one in node.decorator_list
    ):
        return Entry("command", html=False)
    if "asyncio" in text and any(_is_reader(one) for one in node.args.args):
        return Entry("stream", html=False)
    return None


def _is_reader(argument: ast.arg) -> bool:
    annotation = argument.annotation
    if annotation is None:
        return argument.arg == "reader"
    return ast.unparse(annotation).endswith("StreamReader")


def _option(argument: ast.arg, annotation: str, frame: Frame) -> Value:
    if annotation.rpartition(".")[2] == "Context" or argument.arg == "ctx":
        return UNKNOWN
    if argument.annotation is not None and fields.is_plain(argument.annotation):
        return UNKNOWN
    what = f"option `{argument.arg}`"
    mark = ("parameter", frame.path, argument.lineno, argument.arg)
    return sources.source("argv", mark, what, frame, argument.lineno)


def _registered(tree: ast.Module, name: str) -> Entry | None:
    """How a function answers that was handed over: `app.add_url_rule("/x", view_func=x)`, `register_function(x)`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        handed = [*node.args, *(k.value for k in node.keywords)]
        if not any(isinstance(one, ast.Name) and one.id == name for one in handed):
            continue
        if node.func.attr == "register_function":
            return Entry("rpc", html=False)
        route = node.args[0] if node.args else None
        if node.func.attr in _RULES and isinstance(route, ast.Constant):
            return Entry("flask", routes=(str(route.value),))
    return None


def _is_flask(text: str) -> bool:
    return "fastapi" not in text and "aiohttp" not in text


def _answers_errors(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """`@app.errorhandler(404)`: what it gives is a page, what it is given an exception."""
    called = [d.func for d in node.decorator_list if isinstance(d, ast.Call)]
    return any(isinstance(one, ast.Attribute) and one.attr in _ERRORS for one in called)


def _route(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str] | None:
    paths: list[str] | None = None
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = call.func if call is not None else decorator
        if isinstance(name, ast.Attribute) and name.attr in _ROUTES and call is not None:
            values = [
                *call.args[:1],
                *(k.value for k in call.keywords if k.arg in {"path", "rule", "uri"}),
            ]
            texts = [
                v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)
            ]
            if texts or name.attr in {"route", "api_route"}:
                paths = [*(paths or []), *(texts or ["<unknown>"])]
    return paths


def _answers_html(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """`@app.get("/", response_class=HTMLResponse)`."""
    return any(
        keyword.arg == "response_class" and "HTML" in ast.unparse(keyword.value)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
    )


def _routed(text: str, routes: list[str]) -> Entry | None:
    fixed = tuple(routes) if not any(c in route for route in routes for c in "<{*") else ()
    known = tuple(routes) if "<unknown>" not in routes else ()
    if "fastapi" in text or "starlette" in text:
        return Entry("fastapi", fixed, html=False)
    if "tornado" in text or "aiohttp" in text:
        return Entry("web", fixed, html=False)
    return Entry("flask", fixed, routes=known)


def _fills(route: str, name: str) -> bool:
    """Whether a part of the address becomes this parameter."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", route) is not None


def _view_class(owner: ast.ClassDef, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Entry | None:
    bases = " ".join(ast.unparse(base) for base in owner.bases[:8])
    if _SERVERS.search(bases) and (node.name == "handle" or node.name.startswith("do_")):
        return Entry("server", html=False)
    if node.name in _HOOKS and re.search(r"View(?:Set)?\b", bases):
        return Entry("web", html=False)
    if node.name not in _VIEW_METHODS:
        return None
    return next((entry for kind, entry in _VIEW_CLASSES if kind.search(bases)), None)


def _view_function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, text: str, path: str
) -> Entry | None:
    first = node.args.args[0].arg if node.args.args else ""
    annotation = node.args.args[0].annotation if node.args.args else None
    if first != "request" and not (annotation is not None and "Request" in ast.unparse(annotation)):
        return None
    if "django" in text or "rest_framework" in text or path.endswith("views.py"):
        return Entry("django", html=False)
    if any(
        name in text for name in ("aiohttp", "starlette", "sanic", "pyramid", "falcon", "fastapi")
    ):
        return Entry("web", html=False)
    return None


def arguments(
    function: FunctionRef, entry: Entry | None, frame: Frame, bound: Value | None
) -> dict[str, Value]:
    """What each parameter holds when the function is walked by itself."""
    node = function.node
    names = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    values: dict[str, Value] = {}
    converted = _converted_names(node, entry)
    for index, argument in enumerate(names):
        if bound is not None and index == 0:
            values[argument.arg] = bound
        elif entry is None:
            values[argument.arg] = UNKNOWN
        else:
            values[argument.arg] = _from_outside(
                argument, entry, frame, converted, _default(node, argument)
            )
    for rest in (node.args.vararg, node.args.kwarg):
        if rest is not None:
            open_ended = (
                entry is not None
                and entry.framework in {"django", "flask"}
                and rest is node.args.kwarg
            )
            values[rest.arg] = (
                sources.parameter(rest.arg, frame, node.lineno) if open_ended else UNKNOWN
            )
    return values


def _default(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, argument: ast.arg) -> str:
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


def _from_outside(
    argument: ast.arg, entry: Entry, frame: Frame, converted: set[str], default: str
) -> Value:
    annotation = ast.unparse(argument.annotation) if argument.annotation is not None else ""
    if argument.arg == "request" or annotation.rpartition(".")[2] in {
        "Request",
        "HttpRequest",
        "WebSocket",
    }:
        return external("web.request")
    match entry.framework:
        case "tornado" | "rpc":
            free = True
        case "command":
            return _option(argument, annotation, frame)
        case "stream":
            return external("asyncio.StreamReader()") if _is_reader(argument) else UNKNOWN
        case "web":
            free = False
        case _:
            # What no part of the address fills, a decorator or the framework hands in.
            filled = not entry.routes or any(_fills(one, argument.arg) for one in entry.routes)
            given = default.rpartition(".")[2] in _INJECTED
            given = given or any(word in annotation for word in _INJECTED)
            plain = argument.annotation is not None and fields.is_plain(argument.annotation)
            free = filled and argument.arg not in converted and not given and not plain
    return sources.parameter(argument.arg, frame, argument.lineno) if free else UNKNOWN


def give_request(value: Value, framework: str, frame: Frame, line: int, state: State) -> None:
    """Let a view object hold its request."""
    given: dict[str, Value] = {"request": external("web.request")}
    if framework == "tornado":
        names = ("get_argument", "get_arguments", "get_query_argument", "get_body_argument")
        given |= {name: external(f"tornado.handler.{name}") for name in names}
    elif framework == "server":
        given = {
            name: sources.source(
                "web", ("server", name), f"`self.{name}` of the request", frame, line
            )
            for name in ("rfile", "path", "headers", "requestline")
        }
        given["request"] = external("socket.socket()")
    for key in value.handles():
        heaped = state.at(key)
        if heaped is not None:
            for name, held in given.items():
                heaped = heaped.with_entry(name, held)
            state.heap[key] = heaped


def _converted_names(node: ast.AST, entry: Entry | None) -> set[str]:
    """Path parameters that the framework turns into a number."""
    if entry is None or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    found: set[str] = set()
    for route in _route(node) or []:
        for match in _CONVERTED.finditer(route):
            if match[1] or _ANY_OF.search(match[0]):
                found.add(match[2])
            elif match[3] and match[4] in {"int", "float", "uuid"}:
                found.add(match[3])
    return found
