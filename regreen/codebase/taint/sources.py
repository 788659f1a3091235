"""Where untrusted values come from."""

from __future__ import annotations

from regreen.codebase.taint.run import Entry, Frame
from regreen.codebase.taint.values import (
    Mark,
    Step,
    Taint,
    Trail,
    Value,
    constants,
    doubtful,
    external,
    made_safe,
    tainted,
)

REQUESTS = frozenset(
    {
        "flask.request",
        "flask.globals.request",
        "quart.request",
        "bottle.request",
        "web.request",
        "flask.g.request",
    }
)
# What a framework lets a handler hang things on for the length of a request.
CARRIERS = frozenset({*REQUESTS, "flask.g", "quart.g", "web.request.state"})
_WHOLE_REQUEST = frozenset(
    {
        "args", "form", "values", "cookies", "headers", "files", "json", "data", "query_string", "url", "base_url",
        "full_path", "referrer", "user_agent", "view_args", "stream", "get_json", "get_data", "environ",
        "GET", "POST", "COOKIES", "META", "FILES", "body", "get_full_path", "get_raw_uri", "query_params",
        "path_params", "query", "match_info", "post", "text", "forms", "params", "input_stream", "arguments", "read",
        "body_arguments", "query_arguments", "rel_url", "get_argument", "access_route", "mimetype", "content_type",
        "build_absolute_uri",
    }
)  # fmt: skip
# Addresses of the request itself lead back to this host.
_OWN_ADDRESS = frozenset(
    {"url", "base_url", "full_path", "path", "get_full_path", "build_absolute_uri", "referrer", "path_info", "path_qs",
     "get_raw_uri", "rel_url"}
)  # fmt: skip
_PATHS = frozenset({"path", "path_info", "path_qs"})

# dotted name (a call when it ends in "()") -> kind of origin
_NAMED = {
    "sys.argv": "argv",
    "os.environ": "environment",
    "os.environb": "environment",
    "os.getenv()": "environment",
    "sys.stdin": "input",
    "builtins.input()": "input",
    "builtins.raw_input()": "input",
    "argparse.ArgumentParser().parse_args()": "argv",
    "argparse.ArgumentParser().parse_known_args()": "argv",
    "fileinput.input()": "file",
    "websocket.create_connection().recv()": "network",
    **{
        f"asyncio.StreamReader().{name}()": "network"
        for name in ("read", "readline", "readuntil", "readexactly")
    },
}
_METHODS = {
    "recv()": "network",
    "recvfrom()": "network",
    "get_argument()": "web",
    "get_arguments()": "web",
    "get_query_argument()": "web",
    "get_body_argument()": "web",
}
_RESPONSES = (
    "requests.",
    "httpx.",
    "urllib.request.urlopen()",
    "urllib3.",
    "aiohttp.ClientSession()",
)
_RESPONSE_PARTS = frozenset({"text", "content", "json()", "read()", "iter_lines()"})

_WEAK_RANDOM = frozenset(
    f"random.{name}()"
    for name in (
        "random", "randint", "randrange", "choice", "choices", "sample", "uniform", "getrandbits", "randbytes",
        "gauss", "normalvariate", "triangular", "betavariate", "expovariate", "shuffle", "lognormvariate",
        "vonmisesvariate", "gammavariate", "paretovariate", "weibullvariate", "binomialvariate",
    )
)  # fmt: skip
WEAK_RANDOM = (
    _WEAK_RANDOM
    | frozenset(name.replace("random.", "random.Random().") for name in _WEAK_RANDOM)
    | frozenset(name.replace("random.", "numpy.random.") for name in _WEAK_RANDOM)
)


def attribute(name: str, attr: str, frame: Frame, line: int, entry: Entry | None) -> Value | None:  # noqa: PLR0911
    """What `name.attr` gives when it is a source (or a request's part); None when it is neither."""
    dotted = f"{name}.{attr}"
    if name in REQUESTS:
        if attr in _PATHS:
            if entry is not None and entry.paths:
                return constants(entry.paths)
            return _request(name, attr, f"`request.{attr}`", frame, line)
        if attr in _WHOLE_REQUEST:
            found = _request(name, attr, f"`request.{attr}`", frame, line)
            return Value(None, found.taints, external(dotted).things)
        return None
    if dotted in _NAMED:
        found = source(_NAMED[dotted], (dotted,), f"`{dotted}`", frame, line)
        return Value(None, found.taints, external(dotted).things)
    if attr in _RESPONSE_PARTS and name.endswith("()") and name.startswith(_RESPONSES):
        return source("network", (name, attr, line), f"`.{attr}` of a response", frame, line)
    return None


def call(name: str, frame: Frame, line: int) -> Value | None:  # noqa: PLR0911
    """What calling `name` gives when that is a source."""
    dotted = f"{name}()"
    owner, _, attr = name.rpartition(".")
    if owner in REQUESTS and attr in _WHOLE_REQUEST:
        return _request(owner, attr, f"`request.{attr}()`", frame, line)
    kind = _NAMED.get(dotted)
    if kind is not None:
        return source(kind, (dotted, frame.path, line), f"`{_short(dotted)}`", frame, line)
    if dotted in WEAK_RANDOM:
        return source("weak-random", (dotted, frame.path, line), f"`{_short(dotted)}`", frame, line)
    method = dotted.rpartition(".")[2]
    if method in _METHODS and _METHODS[method] == "network" and "socket" in dotted:
        return source("network", (dotted, frame.path, line), f"`{method}`", frame, line)
    if method in _METHODS and _METHODS[method] == "web" and dotted.startswith("tornado.handler"):
        return source("web", (dotted, frame.path, line), f"`{method}`", frame, line)
    if method in _RESPONSE_PARTS and name.startswith(_RESPONSES):
        found = source(
            "network", (dotted, frame.path, line), f"`{method}` of a response", frame, line
        )
        # returned from a handler, decoded JSON is sent as JSON again
        return made_safe(found, frozenset({"xss"})) if method == "json()" else found
    return None


def _request(name: str, attr: str, what: str, frame: Frame, line: int) -> Value:
    found = source("web", (name, attr), what, frame, line)
    return made_safe(found, frozenset({"open-redirect", "ssrf"})) if attr in _OWN_ADDRESS else found


def wrapped(name: str, frame: Frame, line: int) -> Value:
    """What an unknown call makes of a whole request: probably part of it."""
    return doubtful(
        source("web", (name, frame.path, line), f"`{_short(name)}` of the request", frame, line)
    )


def source(origin: str, mark: Mark, what: str, frame: Frame, line: int) -> Value:
    """An untrusted value that appears here."""
    return tainted([Taint(mark, origin, trail=Trail(Step(frame.path, line, what)))])


def parameter(name: str, frame: Frame, line: int) -> Value:
    """An argument that a framework fills from the request."""
    return source("web", ("parameter", frame.path, line, name), f"parameter `{name}`", frame, line)


def _short(dotted: str) -> str:
    return dotted.removeprefix("builtins.")
