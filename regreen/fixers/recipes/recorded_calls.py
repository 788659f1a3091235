"""Finds the tools that a command comes to call, however it does so (make, a script, a loop, a task runner, Python).

The command runs once in a box of its own, in which a program of each tool's name stands before the tool and writes down how
it was called. One that can fix what it reports is not run there: all is well, so what comes after it is called too.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Sequence

from regreen.fixers.case import RepairCase
from regreen.runs.test_runs import wrap_in_repository
from regreen.shell.tools import load_tools

_MOST_CALLS = 200
_MAX_LOG = 1024 * 1024
_SECONDS = 60
_LOG = ".regreen-calls"
_STAND_IN = r"""#!/bin/sh
call=$(printf '%s\037' "$PWD" "$PATH" "$0" "$@"; echo .)
printf '%s\036' "$call" >> /work/@LOG@
sub=; for word; do case $word in -*) ;; *) sub=$word; break;; esac; done
case "${0##*/} $sub" in @CALLS@) exit 0;; esac
[ -e "$0.regreen" ] && exec "$0.regreen" "$@"
real=$(PATH=$(printf %s "$PATH" | tr : '\n' | grep -vxF "$REGREEN_STAND_INS" | tr '\n' ':') command -v "${0##*/}") || exit 127
exec "$real" "$@"
"""
# No program is looked up for `python -m black`, for the tools of an environment that a runner puts first, and for the
# repository's own modules and scripts.
_SITE = r"""import os, sys
words = list(getattr(sys, "orig_argv", ()))
at = next((at for at, word in enumerate(words) if at and (word == "-m" or word[:1] != "-")), len(words))
script = os.path.realpath(words[at]) if at < len(words) else ""
own, call = script.startswith("/work/") and os.path.isfile(script), ["python", *words[1:]]
tool, rest = "", words[at + 1 :]
if words[at : at + 1] == ["-m"] and rest:
    own, tool, rest = True, rest[0].replace("_", "-"), rest[1:]
elif os.path.basename(os.path.dirname(script)) == "bin":
    own, tool = False, os.path.basename(script)
    call = [tool, *rest]
sub = next((word for word in rest if word[:1] != "-"), "")
is_known = bool({tool, f"{tool} {sub}"} & set(@KEYS@))
if is_known or own:
    with open("/work/@LOG@", "a") as log:
        log.write("\x1f".join([os.getcwd(), os.environ.get("PATH", ""), *call, "."]) + "\x1e")
    if is_known:
        os._exit(0)
"""
# Environments of task runners, which put their own programs first and do not read PYTHONPATH.
_PLACES = "/work/.venv /work/.tox/* /work/.nox/* ~/.local/share/hatch/env/virtual/*/*/* ~/.cache/pypoetry/virtualenvs/*"
_FOLDERS = "/work /work/node_modules/.bin /work/*/node_modules/.bin /work/*/*/node_modules/.bin"


def record_calls(case: RepairCase) -> list[str]:
    """The calls of tools, each as a script from the repository's root, in the order in which they were made."""
    lines = f"{_lay_stand_ins()}\ntimeout {_SECONDS} {shlex.join(case.trial.command)} </dev/null"
    argv = wrap_in_repository(("bash", "-c", lines))
    env = dict(case.trial.env)
    with case.open_box() as box:
        path = box.run(("sh", "-c", 'printf %s "$PATH"'), timeout=30, env=env).stdout
        box.run(argv, timeout=_SECONDS + 30, env=env, cancel=case.stop.cancel)
        data = box.read(_LOG, _MAX_LOG) or b""
    records = data.decode("utf-8", "replace").split("\x1e")[:_MOST_CALLS]
    found = (_make_call(record.split("\x1f"), path.split(":")) for record in records)
    return list(dict.fromkeys(filter(None, found)))


def _make_call(fields: Sequence[str], usual: Sequence[str]) -> str:
    """One call as a script; empty where it was made outside the repository."""
    inner = posixpath.relpath(fields[0] or "/", "/work")
    if len(fields) < 4 or inner.startswith(".."):
        return ""
    searched, tool, *arguments = fields[1:-1]
    if tool.endswith("sh") and arguments[:1] and arguments[0].startswith("-"):
        return ""  # what it runs is seen by itself
    if not tool.startswith(("/work/.tox/", "/work/.nox/")):  # found by its name in a remedy's box
        tool = posixpath.basename(tool)
    found_anyway = ("/work/", "/node_modules/", "/usr/lib/node_modules/", "/tmp/regreen-")  # noqa: S108
    others = dict.fromkeys(one for one in searched.split(":") if one not in {*usual, ""})
    own = [one for one in others if not one.startswith(found_anyway)]
    there = f"cd {shlex.quote(inner)}\n" if inner != "." else ""
    path = f'export PATH="$PATH":{shlex.quote(":".join(own))}\n' if own else ""
    return f"{there}{path}{shlex.join([tool, *arguments])}"


def _lay_stand_ins() -> str:
    """The script that puts a stand-in before each tool."""
    programs = load_tools().programs
    fixing = sorted([*load_tools().fixing, *programs["checker_runners"]])
    calls = "|".join(
        shlex.quote(key) if " " in key else f"{shlex.quote(key)}' '*" for key in fixing
    )
    stand_in = shlex.quote(_STAND_IN.replace("@CALLS@", calls).replace("@LOG@", _LOG))
    site = shlex.quote(_SITE.replace("@KEYS@", repr(fixing)).replace("@LOG@", _LOG))
    names = " ".join(sorted({key.split()[0] for key in fixing} | programs["recorded"]))
    return f"""export REGREEN_STAND_INS=$(mktemp -d /tmp/regreen-XXXXXX) TOX_OVERRIDE=testenv.pass_env+=REGREEN_STAND_INS
export PATH="$REGREEN_STAND_INS:$PATH" PYTHONPATH="$REGREEN_STAND_INS${{PYTHONPATH:+:$PYTHONPATH}}"
printf %s {stand_in} > "$REGREEN_STAND_INS/.tool"; printf %s {site} > "$REGREEN_STAND_INS/sitecustomize.py"
chmod 755 "$REGREEN_STAND_INS/.tool"
for name in {names}; do
  cp "$REGREEN_STAND_INS/.tool" "$REGREEN_STAND_INS/$name"
  for folder in {_FOLDERS}; do
    [ -f "$folder/$name" ] && mv "$folder/$name" "$folder/$name.regreen" && cp "$REGREEN_STAND_INS/.tool" "$folder/$name"
  done
  for place in {_PLACES}; do
    [ -f "$place/bin/$name" ] && mv "$place/bin/$name" "$place/bin/$name.regreen" && cp "$REGREEN_STAND_INS/.tool" "$place/bin/$name"
  done
done
for packages in $(echo {_PLACES} | tr ' ' '\\n' | sed 's|$|/lib/python*/site-packages|'); do
  [ -d "$packages" ] && cp "$REGREEN_STAND_INS/sitecustomize.py" "$packages"
done"""
