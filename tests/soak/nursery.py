"""A process that has imported all of Regreen and forks one `regreen serve` after the other: a start costs little.

`python -m tests.soak.nursery` reads a line of JSON (arguments, environment, log) and writes the new process's id.
What is forked has done nothing yet but import, so it lives and dies as one started from a shell does.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
from typing import NoReturn

_ALL = ("regreen.app", "regreen.fixers", "regreen.reviewers", "regreen.bisect")


def main() -> None:
    """Serve requests until standard input ends."""
    for name in _ALL:
        for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            if ".migrations." not in module.name:  # Alembic runs these
                importlib.import_module(module.name)
    _say({"ready": True})
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            _say({"status": os.waitpid(asked["wait"], 0)[1]})
            continue
        pid = os.fork()
        if pid == 0:
            _become(asked["argv"], asked["env"], asked["log"])
        _say({"pid": pid})


def _become(argv: list[str], env: dict[str, str], log: str) -> NoReturn:
    os.setsid()
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, null), (1, out), (2, out)):
        os.dup2(source, target)
    os.environ.clear()
    os.environ.update(env)
    from regreen.cli import main as regreen

    try:
        regreen(argv)
    except SystemExit as ended:
        os._exit(ended.code if isinstance(ended.code, int) else 1)
    os._exit(0)


def _say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
