"""Calls functions of the tree with arguments that are made up, and prints what each call gives, as one line of JSON.

The arguments come from literal calls in the tests, constants of the functions, annotations and defaults. They are
literals and drawn by the function's name, so that another tree is asked the same.
"""

import ast
import contextlib
import hashlib
import importlib
import inspect
import io
import itertools
import json
import os
import random
import re
import signal
import sys
import time
import typing

CALLS = 20
TEXT = 160
BASIC = {
    int: [0, 1, -1, 2, 7, 255],
    float: [0.0, 1.0, -1.5, 0.1, 1e9],
    str: ["", "a", "A b", "0", "a,b;c", "\u00e9\n", "x" * 40, "../x_y-z.txt"],
    bytes: [b"", b"a", b"\x00\xff", b"a,b"],
    bool: [False, True],
    type(None): [None],
}
MIXED = [0, 1, -1.5, "", "a", None, True, [], [1, "a"], {"a": 1}, (1, 2)]
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
# not in strings, which may be versions
FLOAT = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<![\w.])(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?!\.|[^\Wj])"""
)


def main():
    spec = json.load(open(sys.argv[1], encoding="utf-8"))
    sys.path[:0] = [os.getcwd(), os.path.join(os.getcwd(), "src"), os.path.join(os.getcwd(), "lib")]
    until = time.monotonic() + spec["seconds"]
    found = []
    size, most = 0, spec["characters"]  # of the line; "cut" says that it ends there
    signal.signal(signal.SIGALRM, stop)
    for row in spec["functions"]:
        if size >= most:
            break
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                function = load(row)
                for text, args, kwargs in make_calls(function, row) if function else ():
                    if time.monotonic() > until or size >= most:
                        break
                    first = call(function, args, kwargs)
                    if first is None:
                        break
                    if first == call(function, args, kwargs):
                        one = "%s: %s" % (
                            json.dumps(shorten("%s.%s" % (row["modules"][0], text))),
                            json.dumps(first),
                        )
                        size += len(one) + 2
                        if size < most:
                            found.append(one)
            except Exception:
                continue
    word = "cut" if size >= most else "all"
    sys.stdout.write("\nregreen-calls %s {%s}\n" % (word, ", ".join(found)))
    sys.stdout.flush()
    os._exit(0)  # whatever the calls have started


def shorten(text):
    """A text of a bounded length, which no two have in common."""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return text if len(text) <= TEXT else "%s... (%s)" % (text[:TEXT], digest)


def stop(*_):
    raise TimeoutError


def load(row):
    """The function, where its module is the file of this tree and not an installed copy."""
    here = os.path.realpath(row["path"])
    for name in row["modules"]:
        try:
            signal.alarm(10)
            module = importlib.import_module(name)
        except (Exception, SystemExit):
            continue
        finally:
            signal.alarm(0)
        if os.path.realpath(getattr(module, "__file__", None) or "") == here:
            value = getattr(module, row["function"], None)
            return value if inspect.isfunction(inspect.unwrap(value)) else None
    return None


def make_calls(function, row):
    """The calls as their texts and arguments: those of the tests first, then made-up ones."""
    target = inspect.unwrap(function)
    if inspect.iscoroutinefunction(target):
        return
    calls = [ast.literal_eval(text) for text in row["calls"]]
    constants = [ast.literal_eval(text) for text in row["constants"]]
    known = list(itertools.islice((one for one in calls if binds(function, *one)), CALLS // 2))
    dice = random.Random(row["function"])
    pools = make_pools(function, known, constants)
    if pools is not None:
        for _ in range(4 * CALLS):
            args = [dice.choice(pool) for kind, _, pool in pools if kind == "positional"]
            named = [one for one in pools if one[0] == "named"]
            kwargs = {name: dice.choice(pool) for _, name, pool in named if dice.random() < 0.5}
            known.append((args, kwargs))
    seen = set()
    for args, kwargs in known:
        words = [repr(one) for one in args] + ["%s=%r" % one for one in sorted(kwargs.items())]
        text = "%s(%s)" % (row["function"], ", ".join(words))
        if text not in seen and len(seen) < CALLS:
            seen.add(text)
            yield text, repr(args), repr(kwargs)


def binds(function, args, kwargs):
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def make_pools(function, known, constants):
    """The values that each parameter may be given; None where nothing is known of one that it needs."""
    signature = inspect.signature(function)
    try:
        hints = typing.get_type_hints(function)
    except Exception:
        hints = {}
    bound = [signature.bind(*args, **kwargs).arguments for args, kwargs in known]
    pools = []
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        pool = values_of(hints[name]) if name in hints else []
        given = [one[name] for one in bound if name in one]
        pool += [other for one in given for other in vary(one)]
        needed = parameter.default is parameter.empty
        if not needed and not pool and type(parameter.default) in BASIC:
            pool = [parameter.default, *values_of(type(parameter.default))]
        kinds = {type(one) for one in pool}
        pool += [one for one in constants if type(one) in kinds]
        if needed and not pool:
            return None
        if pool:
            is_named = parameter.kind is parameter.KEYWORD_ONLY or not needed
            pools.append(("named" if is_named else "positional", name, pool))
    return pools


def values_of(kind, depth=2):
    """Values of an annotation; none where it stands for no literal."""
    origin, parts = getattr(kind, "__origin__", None), getattr(kind, "__args__", ()) or ()
    if kind in BASIC:
        return list(BASIC[kind])
    if kind in (typing.Any, object):
        return list(MIXED)
    if kind in (list, tuple, dict, set):
        return [kind()] + ([kind(["a", "b"])] if kind is not dict else [{"a": 1}])
    if depth == 0:
        return []
    if origin is getattr(typing, "Literal", typing):
        return list(parts)
    if origin is typing.Union or type(kind).__name__ == "UnionType":
        return [value for part in parts for value in values_of(part, depth)]
    plain = [values_of(part, depth - 1) for part in parts if part is not Ellipsis]
    if not plain or not all(plain):
        return []
    name = getattr(origin, "__name__", "") or str(origin)
    if name in ("dict", "Dict", "Mapping", "MutableMapping") and len(plain) == 2:
        return [{}, dict(zip(plain[0], plain[1])), {plain[0][-1]: plain[1][-1]}]
    if name in ("tuple", "Tuple"):
        if Ellipsis in parts:
            return [(), tuple(plain[0]), tuple(plain[0][:1])]
        return [tuple(one[0] for one in plain), tuple(one[-1] for one in plain)]
    if name in ("list", "List", "Sequence", "Iterable", "Collection", "Iterator"):
        return [[], plain[0][:1], list(plain[0]), list(reversed(plain[0])), plain[0][:2] * 2]
    if name in ("set", "Set", "frozenset", "FrozenSet"):
        return [set(), set(plain[0][:2])]
    return []


def vary(value):
    """A value and its neighbours."""
    if isinstance(value, bool) or value is None:
        return [value, *([not value] if value is not None else [])]
    if isinstance(value, (int, float)):
        return [value, value + 1, value - 1, -value, 0]
    if isinstance(value, (str, bytes)):
        return [value, value[:0], value + value, value[::-1], value.upper(), value[:1], value[1:]]
    if isinstance(value, (list, tuple)):
        return [value, value[:0], value + value, value[::-1], value[1:]]
    return [value]


def call(function, args, kwargs):
    """What a call gives, in words: the result, or the kind of error, and what became of its arguments."""
    args, kwargs = ast.literal_eval(args), ast.literal_eval(kwargs)
    before = repr((args, kwargs))
    random.seed(0)
    try:
        signal.alarm(2)
        result = function(*args, **kwargs)
        if hasattr(result, "__next__"):
            result = list(itertools.islice(result, 50))
        elif type(result).__repr__ is object.__repr__ and hasattr(result, "__dict__"):
            result = (type(result).__name__, sorted(vars(result).items()))
        text = repr(result)
    except TimeoutError:
        return None
    except (Exception, SystemExit) as error:
        text = "raises " + type(error).__name__
    finally:
        signal.alarm(0)
    after = repr((args, kwargs))
    text = ADDRESS.sub("", text if after == before else "%s, arguments then %s" % (text, after))
    text = FLOAT.sub(lambda found: round_float(found.group(1)) or found.group(), text)
    if len(text) > TEXT:
        text = "%s... (%d characters, sum %d)" % (text[:TEXT], len(text), sum(map(ord, text)))
    return text


def round_float(text):
    """A float without its last digits, which change with the order of a sum; "" for anything else."""
    if not re.search("[.e]", text or ""):
        return ""
    short = "%.12g" % float(text) if abs(float(text)) > 1e-15 else "0"
    return short if re.search("[.e]", short) else short + ".0"


if __name__ == "__main__":
    main()
