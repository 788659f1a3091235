"""Loaded into the project's pytest or unittest: records outcome and duration of each test, and what a failing one reads.

PYTEST_DONT_REWRITE: unittest may have loaded it before pytest does.
"""

import faulthandler
import json
import os
import sys
import time

_HERE = os.path.dirname(os.path.abspath(__file__))
_TREE = os.environ.get("REGREEN_TREE", "/work")
_MINE = False
_UNTIL = time.monotonic() + float(os.environ.get("REGREEN_LISTEN_SECONDS", "inf"))
# A test that takes longer is stuck: it ends the process, since nothing can be read from a box that is stopped.
_STUCK = float(os.environ.get("REGREEN_STUCK_SECONDS", "inf"))
_SESSION = []
_RUNNING = []
_EARLY = []
_TOUCHED = []
_OTHER = set()
_COLLECTING = []
_BEGUN = {}
_DUMP = []
_MOST = 2000
# Modules that read sources to load or to show them; installed packages are left out by their path.
_MACHINERY = {
    "importlib",
    "_frozen_importlib_external",
    "traceback",
    "warnings",
    "logging",
    "unittest",
    "doctest",
    "runpy",
}


def _claim():
    """Only the first process of a command that runs tests records how they end."""
    global _MINE
    _MINE = os.environ.setdefault("REGREEN_LISTENER", str(os.getpid())) == str(os.getpid())


def _record(word, nodeid="", more=""):
    nodeid = nodeid.replace("::()::", "::")  # pytest before 4 names the instance of a class
    with open(os.path.join(_HERE, "heard.txt"), "a", encoding="utf-8") as file:
        file.write("\t".join((word, nodeid.replace("\n", " ").replace("\t", " "), more)) + "\n")


def _is_read():
    """Whether the project's own code opens a source without running it, as a check of style does."""
    frame = sys._getframe(2)
    while frame is not None:
        path = os.path.abspath(frame.f_code.co_filename)
        if (
            frame.f_globals.get("__name__", "").partition(".")[0] in _MACHINERY
            or "-packages" in path
        ):
            return False
        if path.startswith(_TREE + os.sep):
            return True
        frame = frame.f_back
    return False


def _runs_project_code():
    """Whether the project's own code is what opens a file: while tests are collected, pytest itself opens others."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        path = os.path.abspath(name)
        if path.startswith(_TREE + os.sep) and not (
            name.startswith("<") or path.startswith(_HERE + os.sep) or "-packages" in path
        ):
            return True
        frame = frame.f_back
    return False


def _touch(event, given):
    if len(_TOUCHED) >= _MOST:
        return
    if event == "open" and isinstance(given[0], str) and not (given[2] or 0) & 3:
        if _COLLECTING and not _runs_project_code():
            return
        if not given[0].endswith((".py", ".pyc")) or (given[0].endswith(".py") and _is_read()):
            _TOUCHED.append(os.path.relpath(os.path.realpath(given[0]), _TREE))
    elif event in ("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec"):
        _TOUCHED.append("the program " + str(given[0])[:300])


if hasattr(sys, "addaudithook"):
    sys.addaudithook(_touch)


def pytest_addoption(parser):
    # pytest before 3.0 always goes on where a file cannot be collected, and has no option that says so
    name = "--continue-on-collection-errors"
    groups = [parser._anonymous, *parser._groups]
    if not any(name in option.names() for group in groups for option in group.options):
        parser.addoption(name, action="store_true")


def pytest_load_initial_conftests(early_config):
    # a test that runs pytest, here or in a process of its own, counts as one test
    names = os.environ.pop("PYTEST_PLUGINS", "").split(",")
    names = [name for name in names if name not in ("", "regreen_listen")]
    if names:
        os.environ["PYTEST_PLUGINS"] = ",".join(names)
    if _RUNNING:
        early_config.pluginmanager.unregister(sys.modules[__name__])
        return
    _TOUCHED[:] = []  # pytest's own settings
    _claim()


def pytest_configure():
    _EARLY[:] = _TOUCHED


pytest_configure.pytest_impl = {"tryfirst": True}


def pytest_sessionstart(session):
    _SESSION[:] = _RUNNING[:] = [session]
    _TOUCHED[:] = _EARLY  # without the settings of plugins
    _COLLECTING[:] = [session]


def pytest_sessionfinish():
    del _RUNNING[:]


def pytest_collectreport(report):
    if report.failed and _MINE:
        _record("uncollected", report.nodeid)


def pytest_collection_modifyitems(items):
    # linters and type checkers come as items too
    _OTHER.update(
        one.nodeid for one in items if not hasattr(one, "function") and not hasattr(one, "dtest")
    )


def pytest_collection_finish(session):
    _EARLY[:] = _TOUCHED  # test data may be read when its module is imported
    del _COLLECTING[:]


def pytest_runtest_logstart(nodeid, location):
    _TOUCHED[:] = _EARLY
    if _MINE and _STUCK < float("inf"):
        if "pytest_runtest_logfinish" not in globals():  # an old pytest, which tells no ends
            _BEGUN.clear()
        _BEGUN[nodeid] = time.monotonic()
        _watch_oldest()


def _watch_oldest():
    # with xdist several tests run at once
    if _DUMP:
        faulthandler.cancel_dump_traceback_later()
        _DUMP.pop().close()
    if _BEGUN:
        nodeid = min(_BEGUN, key=_BEGUN.get)
        _record("begun", nodeid)
        _DUMP[:] = [open(os.path.join(_HERE, "heard.txt"), "a")]
        left = max(0.01, _BEGUN[nodeid] + _STUCK - time.monotonic())
        faulthandler.dump_traceback_later(left, exit=True, file=_DUMP[0])


def pytest_runtest_logfinish(nodeid):
    if _BEGUN.pop(nodeid, None):
        _watch_oldest()
    if _MINE and _SESSION and time.monotonic() > _UNTIL and not _SESSION[0].shouldstop:
        _SESSION[0].shouldstop = "out of time"
        _record("stopped")


def _leave_out_unknown_hooks():
    # pytest before 3.4 refuses a plugin with a hook that it does not know
    hooks = sys.modules.get("_pytest.hookspec")
    if hooks is not None and not hasattr(hooks, "pytest_runtest_logfinish"):
        del globals()["pytest_runtest_logfinish"]


_leave_out_unknown_hooks()


def pytest_runtest_logreport(report):
    config = _SESSION[0].config if _SESSION else None
    is_worker = hasattr(config, "workerinput") or hasattr(config, "slaveinput")
    if not (_MINE or is_worker):
        return
    # xdist's controller sets `node`: the test ran in a worker, and that process records what it read
    if report.failed and not hasattr(report, "node") and hasattr(sys, "addaudithook"):
        written = report.nodeid.partition("::")[0]
        touched = _TOUCHED + [written] * (not written.endswith(".py"))  # as a document's examples
        touched += ["no test function"] * (report.nodeid in _OTHER)
        _record("touched", report.nodeid, json.dumps(touched))
    if is_worker:
        return
    if report.when == "???" and _BEGUN.pop(report.nodeid, None):  # its worker crashed
        _watch_oldest()
    if report.when != "call" and report.outcome == "passed":
        return
    word = "xfailed" if getattr(report, "wasxfail", None) is not None else report.outcome
    _record(word, report.nodeid, json.dumps(report.duration))


def unittest_result(result):
    """Record what unittest reports to a result; a test that runs unittest itself counts as one test."""
    running = []

    def record(test, word):
        name = test.id().replace("unittest.loader._FailedTest.", "")
        if name != test.id():
            _record("uncollected", name)
        if not hasattr(test, "_testMethodName") and name.endswith(")"):
            name = ".".join(
                reversed(name[:-1].split(" (", 1))
            )  # as `setUpClass (tests.test_a.A)` is printed
        if word == "failed" and hasattr(sys, "addaudithook"):
            _record("touched", name, json.dumps(_TOUCHED))
        _record(word, name, json.dumps(time.monotonic() - running[0] if running else 0))

    def wrapped(was, word):
        def method(self, test, *more):
            if word == "start":
                if not running and not _SESSION:
                    _EARLY[:] = _EARLY or _TOUCHED
                    _TOUCHED[:] = _EARLY
                    _claim()
                running.append(time.monotonic())
            elif (
                _MINE
                and not _SESSION
                and len(running) < 2
                and not (word == "sub" and more[-1] is None)
            ):
                record(test, "failed" if word == "sub" else word)
            return was(self, test, *more)

        return method

    def stopped(was):
        def method(self, test):
            del running[-1:]
            return was(self, test)

        return method

    words = {
        "startTest": "start",
        "addSubTest": "sub",
        "addSuccess": "passed",
        "addFailure": "failed",
        "addError": "failed",
        "addSkip": "skipped",
        "addExpectedFailure": "xfailed",
        "addUnexpectedSuccess": "failed",
    }
    for name, word in words.items():
        setattr(result, name, wrapped(getattr(result, name), word))
    result.stopTest = stopped(result.stopTest)
