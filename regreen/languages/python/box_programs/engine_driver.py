"""Runs inside the box, on the repository's own Python and pytest: one collection, a fork for each candidate.

It needs only the standard library and pytest, and runs on any Python from 3.8; it is written into the box, never
imported here. It reads a JSON job from the file in its first argument and writes JSON results to the second.
"""

import ast
import gc
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
import types

ROOT = os.getcwd()


_UNTRIED = {"green": False, "failed": [], "how": "untried", "cpu": 0.0}


class Session:
    """Keeps pytest's collected session alive, so that forks can run single items of it."""

    def __init__(self, job):
        self.job = job
        self.called = set()
        self.known = {}
        self.results = []

    def _profile(self, frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            self.called.add(
                (frame.f_code.co_filename, frame.f_code.co_firstlineno, frame.f_code.co_name)
            )

    def pytest_collection_finish(self):
        sys.setprofile(None)

    def pytest_runtestloop(self, session):
        sys.setprofile(None)
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            self.results = {"error": "collection failed"}
            return True
        gc.collect()
        gc.freeze() if hasattr(gc, "freeze") else None
        kind = self.job["kind"]
        if kind == "candidates":
            self.results = self._candidates(session)
        elif kind == "spectrum":
            self.results = self._spectrum(session)
        elif kind == "baseline":
            self.results = self._baseline(session)
        return True

    # -- candidates ------------------------------------------------------------------------------------------

    def _candidates(self, session):
        items = {item.nodeid: item for item in session.items}
        first = [items[name] for name in self.job["failing"] if name in items]
        rest = [items[name] for name in self.job["passing"] if name in items]
        missing = [name for name in self.job["failing"] if name not in items]
        ended = time.time() + self.job["seconds"]
        found = {}
        tried = green = first_green = 0
        numbers, waiting, postpone = (
            range(len(self.job["candidates"])),
            [],
            self.job.get("swaps_first"),
        )
        while numbers:
            for number in numbers:
                if time.time() > ended:
                    break
                if (
                    first_green
                    and self.job.get("as_long_again")
                    and tried > max(2 * first_green, first_green + 150)
                ):
                    break
                if green and green >= self.job.get("most_green", 0) > 0:
                    break
                files = self.job["candidates"][number]
                swaps = self._swappable(files, missing)
                if swaps is None and postpone:
                    waiting.append(number)
                    continue
                found[number] = self._try_candidate(files, first + rest, swaps)
                tried += 1
                green += found[number]["green"]
                if green and not first_green:
                    first_green = tried
            else:
                # a candidate that needs a new pytest costs as much as ten others: these come last
                numbers, waiting, postpone = waiting, [], False
                continue
            break
        last = max(found, default=-1)
        verdicts = [found.get(number, _UNTRIED) for number in range(last + 1)]
        return {"verdicts": verdicts, "items": len(items)}

    def _swappable(self, files, missing):
        if missing or self.job.get("exact") or threading.active_count() > 1:
            return None
        return _swaps(files, self.called)

    def _try_candidate(self, files, items, swaps):
        start = _cpu_seconds()
        if swaps is None:
            return self._try_in_new_pytest(files, start)
        meaning = _meaning(swaps) if swaps else None
        if meaning is not None and meaning in self.known:
            return dict(self.known[meaning], cpu=_cpu_seconds() - start)

        def run_with_swaps():
            try:
                _write(files)
                for function, code_object in swaps:
                    function.__code__ = code_object
                return _run(items, self.job["per_test"])
            except BaseException as error:
                return ["crash: %r" % (error,)]

        failed = _fork(self.job, run_with_swaps)
        _restore(files)
        if failed is None:
            failed = ["timeout"]
        verdict = {
            "green": not failed,
            "failed": failed,
            "how": "swap",
            "cpu": _cpu_seconds() - start,
        }
        if meaning is not None:
            self.known[meaning] = verdict
        return verdict

    def _try_in_new_pytest(self, files, start):
        """Exact and slow: the files as they would be, and a new pytest."""
        _write(files)
        try:
            failed = []
            for chunk in (self.job["failing"], self.job["passing"]):
                for at in range(0, len(chunk), 200):
                    failed = failed or _pytest(chunk[at : at + 200], self.job)
            cpu = _cpu_seconds() - start
            return {"green": not failed, "failed": failed, "how": "fresh", "cpu": cpu}
        finally:
            _restore(files)

    # -- baseline --------------------------------------------------------------------------------------------

    def _baseline(self, session):
        """How each test ends by itself, and what it costs the CPU: a test that hangs does not spoil the others."""
        out = []
        ended = time.time() + self.job["seconds"]
        limit = self.job["per_test"]["*"]
        patience = [min(limit, 0.5), limit]
        hangs = False
        waiting = list(session.items)
        for seconds in patience:
            late = []
            for item in waiting:
                if time.time() > ended:
                    break
                timed = self._time_test(item, patience[0] if hangs else seconds)
                if timed["ended"] or seconds == limit:
                    out.append(timed)
                    # after one test that hangs at the full limit, the others get the short limit only
                    hangs = hangs or not timed["ended"]
                else:
                    late.append(item)
            waiting = late
        return {"tests": out}

    def _time_test(self, item, limit):
        start, began = _child_seconds(), time.time()
        failed = _fork(self.job, lambda: _run([item], {"*": limit}))
        if failed is None:
            failed = ["timeout"]
        seconds = _child_seconds() - start
        return {
            "test": item.nodeid,
            "outcome": (
                "passed"
                if not failed
                else "skipped"
                if failed[0].endswith("(skipped)")
                else "failed"
            ),
            "seconds": seconds,
            # on a busy machine the limit on wall time may come first: such a test was cut off too
            "ended": failed != ["timeout"]
            and seconds < 0.9 * limit
            and time.time() - began < 4 * limit,
        }

    # -- spectrum --------------------------------------------------------------------------------------------

    def _spectrum(self, session):
        items = {item.nodeid: item for item in session.items}
        out = []
        for name in self.job["failing"] + self.job["passing"]:
            if name in items and threading.active_count() == 1:
                lines = self._trace_test(items[name])
                if lines is not None:
                    out.append({"test": name, "lines": lines})
        return {"runs": out}

    def _trace_test(self, item):
        def run_traced():
            lines = {}
            sys.settrace(_tracer(lines))
            failed = _run([item], self.job["per_test"])
            sys.settrace(None)
            by_path = {os.path.relpath(name, ROOT): sorted(run) for name, run in lines.items()}
            return [bool(failed), by_path]

        return _fork(self.job, run_traced)


def _fork(job, work):
    """What `work` returns in a forked child that has limits; None where the child gave no answer in time."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            _silence_output()
            os.setpgid(0, 0)
            _limit(job)
            data = json.dumps(work()).encode()
            while data:
                data = data[os.write(write, data) :]
        finally:
            os._exit(0)
    os.close(write)
    try:
        return json.loads(_read_answer(read, child, job["per_candidate"]))
    except ValueError:
        return None


def _tracer(lines):
    def local(frame, event, _):
        if event == "line":
            lines.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
        return local

    def trace(frame, event, _):
        name = frame.f_code.co_filename
        if not name.startswith(ROOT) or "site-packages" in name or _formats_a_report(frame):
            return None
        lines.setdefault(name, set()).add(frame.f_lineno)
        return local

    return trace


def _formats_a_report(frame):
    """Whether this runs only to format a failing assertion; such lines say nothing about the failure."""
    above = frame.f_back
    for _ in range(40):
        if above is None:
            return False
        code = above.f_code
        if code.co_filename.endswith("saferepr.py") or code.co_name in (
            "_call_reprcompare",
            "_saferepr",
        ):
            return True
        above = above.f_back
    return False


def _child_seconds():
    times = os.times()
    return times.children_user + times.children_system


def _cpu_seconds():
    return time.process_time() + _child_seconds()


def _silence_output():
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)


def _limit(job):
    import resource

    cpu = int(job["per_candidate"]) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    try:
        resource.setrlimit(resource.RLIMIT_AS, (job.get("memory", 2**31), job.get("memory", 2**31)))
    except (ValueError, OSError):
        pass


def _read_answer(read, child, seconds):
    import select

    ended = time.time() + seconds
    parts = []
    while True:
        left = ended - time.time()
        ready = select.select([read], [], [], max(0, left))[0] if left > 0 else []
        if not ready:
            break
        data = os.read(read, 65536)
        if not data:
            break
        parts.append(data)
        if not left:
            break
    os.close(read)
    for target in (
        lambda: os.killpg(child, signal.SIGKILL),
        lambda: os.kill(child, signal.SIGKILL),
    ):
        try:
            target()
        except OSError:
            pass
    try:
        os.waitpid(child, 0)
    except OSError:
        pass
    return b"".join(parts).decode("utf-8", "replace")


class _Slow(BaseException):
    """Not an Exception, so that `except Exception` in a test does not catch it."""


def _cheap_reports():
    """Drop the text of failures: nobody reads it, and formatting it costs more than the test."""
    from _pytest import nodes

    if hasattr(nodes.Node, "_repr_failure_py"):
        nodes.Node._repr_failure_py = lambda self, excinfo, style=None: "failed"


def _run(items, per_test):
    """The first id that fails: one is enough to refuse a candidate.

    Limits are in CPU time, so that a busy machine changes no verdict; a longer limit on wall time stops what sleeps.
    """
    from _pytest.runner import runtestprotocol

    def alarm(*_):
        raise _Slow("too slow")

    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, alarm)
    _cheap_reports()
    for item in items:
        limit = per_test.get(item.nodeid, per_test["*"])
        _timers(limit)
        try:
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            reports = runtestprotocol(item, log=False, nextitem=None)
        except BaseException as error:  # a test may raise anything
            return [item.nodeid + " (%s)" % type(error).__name__]
        finally:
            _timers(0)
        if any(report.failed for report in reports):
            return [item.nodeid]
        if any(report.skipped and not hasattr(report, "wasxfail") for report in reports):
            return [item.nodeid + " (skipped)"]
    return []


def _timers(limit):
    # repeated: a bare except may swallow the first
    signal.setitimer(signal.ITIMER_PROF, limit, limit / 2)
    signal.setitimer(signal.ITIMER_REAL, 4 * limit + 2 if limit else 0, limit)


_ORIGINAL = {}


def _write(files):
    for name, text in files.items():
        path = os.path.join(ROOT, name)
        if name not in _ORIGINAL:
            try:
                with open(path, encoding="utf-8", newline="") as file:
                    _ORIGINAL[name] = file.read()
            except OSError:
                _ORIGINAL[name] = None
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    return True


def _restore(files):
    for name in files:
        before = _ORIGINAL.get(name)
        path = os.path.join(ROOT, name)
        if name in _ORIGINAL and before is None:
            try:
                os.remove(path)
            except OSError:
                pass
        elif before is not None:
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(before)


def _pytest(names, job):
    argv = (
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"] + job["args"] + names
    )
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    try:
        done = subprocess.run(
            argv,
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=job["per_fresh"],
        )
    except subprocess.TimeoutExpired:
        return ["timeout"]
    if done.returncode == 0:
        text = done.stdout.decode("utf-8", "replace")
        return (
            ["skipped"]
            if " skipped" in text.rsplit("\n", 3)[-2:][0] and " passed" not in text
            else []
        )
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return [line.split(" ")[1] for line in lines if line.startswith(("FAILED ", "ERROR "))][:1] or [
        "exit %d" % done.returncode
    ]


# -- what can be swapped ---------------------------------------------------------------------------------------


def _swaps(files, called):
    """Pairs of live function and new code; None where the change cannot be swapped in exactly."""
    pairs = []
    for name, text in files.items():
        path = os.path.join(ROOT, name)
        if name in _ORIGINAL:
            before = _ORIGINAL[name]
        else:
            try:
                with open(path, encoding="utf-8", newline="") as file:
                    before = file.read()
            except OSError:
                return None
            _ORIGINAL[name] = before
        if before is None or not name.endswith(".py"):
            return None
        if before == text:
            continue
        changed = _changed_functions(before, text)
        if changed is None:
            return None
        if not any(
            os.path.abspath(getattr(module, "__file__", None) or "") == path
            for module in list(sys.modules.values())
        ):
            continue  # the test imports it itself: the file on disk is what counts
        live = _live(path)
        old_code = _codes(before, path)
        new_code = _codes(text, path)
        if old_code is None or new_code is None:
            return None
        for qualified in changed:
            was, now = old_code.get(qualified), new_code.get(qualified)
            if was is None or now is None:
                return None
            if was.co_freevars != now.co_freevars or was.co_flags != now.co_flags:
                return None
            if (path, was.co_firstlineno, was.co_name) in called:
                return None
            functions = live.get((was.co_firstlineno, was.co_name), [])
            for inner in _inner(was):
                if (path, inner.co_firstlineno, inner.co_name) in live:
                    return None
            if not functions:
                return None
            pairs.extend((function, now) for function in functions)
    return pairs


def _inner(code):
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            for deeper in _inner(constant):
                yield deeper


def _meaning(swaps):
    """The new code without line numbers: candidates that compile to the same code have the same verdict."""
    return tuple((id(function), _code_identity(code)) for function, code in swaps)


def _code_identity(code):
    constants = tuple(
        _code_identity(constant)
        if isinstance(constant, types.CodeType)
        else (type(constant).__name__, repr(constant))
        for constant in code.co_consts
    )
    return (
        code.co_code,
        constants,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_flags,
    )


_LIVE = {}


def _live(path):
    if path not in _LIVE:
        found = {}
        gc.unfreeze() if hasattr(gc, "unfreeze") else None
        for thing in gc.get_objects():
            if (
                type(thing) is types.FunctionType
                and os.path.abspath(thing.__code__.co_filename) == path
            ):
                key = (thing.__code__.co_firstlineno, thing.__code__.co_name)
                found.setdefault(key, []).append(thing)
        gc.freeze() if hasattr(gc, "freeze") else None
        _LIVE[path] = found
    return _LIVE[path]


_CODES = {}


def _codes(text, path):
    """Qualified name -> code object, for functions outside functions."""
    key = (path, text)
    if key not in _CODES:
        if len(_CODES) > 8:
            _CODES.clear()
        try:
            module = compile(text, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        found = {}

        def visit(code, prefix, in_function):
            for constant in code.co_consts:
                if isinstance(constant, types.CodeType):
                    name = prefix + constant.co_name
                    is_class = (
                        not constant.co_flags & 1
                    )  # CO_OPTIMIZED: functions have it, class bodies have not
                    if not in_function:
                        found[name] = None if name in found else constant
                    if is_class:
                        visit(constant, name + ".", in_function)

        visit(module, "", False)
        _CODES[key] = found
    return _CODES[key]


_PARSED = {}


def _changed_functions(before, after):
    """The functions whose bodies differ; None where anything outside function bodies differs.

    The text before the first and after the last differing line is equal, so only statements that reach into the
    differing lines are compared.
    """
    try:
        if before not in _PARSED:
            _PARSED.clear()
            _PARSED[before] = ast.parse(before)
        old, new = _PARSED[before], ast.parse(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    first, last_old, last_new = _differing(before.split("\n"), after.split("\n"))
    changed = []

    def untouched(a, b):
        start = min([a.lineno] + [one.lineno for one in getattr(a, "decorator_list", [])])
        if a.end_lineno < first:
            return b.end_lineno == a.end_lineno
        return start > last_old and b.end_lineno - a.end_lineno == last_new - last_old

    def same(one, other, prefix):
        if len(one) != len(other):
            return False
        for a, b in zip(one, other):
            if type(a) is not type(b):
                return False
            if untouched(a, b):
                continue
            if isinstance(a, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if _head(a) != _head(b):
                    return False
                if [ast.dump(x) for x in a.body] != [ast.dump(x) for x in b.body]:
                    changed.append(prefix + a.name)
            elif isinstance(a, ast.ClassDef):
                if _class_head(a) != _class_head(b) or not same(
                    a.body, b.body, prefix + a.name + "."
                ):
                    return False
            elif ast.dump(a) != ast.dump(b):
                return False
        return True

    return changed if same(old.body, new.body, "") else None


def _differing(old, new):
    """The first differing line, and the last one on each side, 1-based."""
    head = 0
    most = min(len(old), len(new))
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head + 1, len(old) - tail, len(new) - tail


def _head(node):
    decorators = [ast.dump(one) for one in node.decorator_list]
    return (
        node.name,
        ast.dump(node.args),
        decorators,
        ast.dump(node.returns) if node.returns else "",
    )


def _class_head(node):
    return (
        node.name,
        [ast.dump(x) for x in node.bases],
        [ast.dump(x) for x in node.keywords],
        [ast.dump(x) for x in node.decorator_list],
    )


def _find_copies(candidates):
    """The folders of the tree with packages that are imported from a copy in the environment; whether one is compiled."""
    folders, compiled = [], False
    for path in sorted({path for files in candidates for path in files if path.endswith(".py")}):
        name, folder = os.path.splitext(os.path.join(ROOT, path))[0], ""
        while not folder or os.path.exists(os.path.join(folder, "__init__.py")):
            name, folder = os.path.basename(folder or name), os.path.dirname(folder or name)
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):  # a name with a dot, `__main__`
            spec = None
        if spec and "-packages" in (spec.origin or "") and folder not in folders:
            folders.append(folder)
            compiled = compiled or _holds_compiled(spec)
    return folders, compiled


def _holds_compiled(spec):
    walked = (os.walk(place) for place in spec.submodule_search_locations or ())
    names = (name for folders in walked for _, _, names in folders for name in names)
    return any(name.endswith((".so", ".pyd")) for name in names)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.path.insert(0, ROOT) if job.get("root_on_path", True) else None
    session = Session(job)
    copied, compiled = _find_copies(job["candidates"])
    if compiled:
        # no candidate changes what the tests import, and the tree alone cannot be imported
        session.results = {"verdicts": [_UNTRIED for _ in job["candidates"]]}
        _write_results(session)
        return
    if copied:
        sys.path[:0] = copied
        path = [*copied, *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(path)
    import pytest

    sys.setprofile(session._profile)
    args = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly"] + job["args"] + job["paths"]
    try:
        pytest.main(args, plugins=[session])
    finally:
        _write_results(session)


def _write_results(session):
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(session.results, file)


if __name__ == "__main__":
    main()
