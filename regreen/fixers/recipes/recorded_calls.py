"""Finds the tools that a command comes to call, however it does so (make, a script, a loop, a task runner, Python).

The command runs once in a box of its own, in which a program of each tool's name stands before the tool and writes down how
it was called. One that can fix what it reports is not run there: all is well, so what comes after it is called too. Any
other program of the environment runs, and is written down with how it ends.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from regreen.fixers.case import RepairCase
from regreen.runs.test_runs import wrap_in_repository
from regreen.shell.tools import load_tools

_MOST_CALLS = 200
_MAX_FAILED = 4
_MAX_LOG = 1024 * 1024
_SECONDS = 60
_LOG = ".regreen-calls"
_FIND_REAL = r"""real="$0.regreen"
[ -e "$real" ] || real=$(PATH=$(printf %s "$PATH" | tr : '\n' | grep -vxF "$REGREEN_STAND_INS" | tr '\n' ':') command -v "${0##*/}") || exit 127
"""
_STAND_IN = (
    r"""#!/bin/sh
call=$(printf '%s\037' "$PWD" "$PATH" "$0" "$@"; echo .)
printf '%s\036' "$call" >> /work/@LOG@
sub=; for word; do
  case $word in -*) ;; *) [ -z "$sub" ] || continue; sub=$word;; esac
  case "${0##*/} $word" in @CALLS@) exit 0;; esac
done
case "${0##*/} $sub" in @CALLS@) exit 0;; esac
"""
    + _FIND_REAL
    + 'exec "$real" "$@"\n'
)
_WATCHER = (
    "#!/bin/sh\n"
    + _FIND_REAL
    + r""""$real" "$@"
code=$?
call=$(printf '%s\037' "$PWD" "$PATH" "$0" "$@"; echo .)
[ $code = 0 ] && mark=+ || mark=!
printf '%s%s\036' $mark "$call" >> /work/@LOG@
exit $code
"""
)
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
is_module = words[at : at + 1] == ["-m"]
first = next((word for word in rest if word[:1] != "-"), "")
is_known = bool({tool, *(f"{tool} {word}" for word in rest if word == first or word[:1] == "-")} & set(@KEYS@))
if is_known or own:
    call = "\x1f".join([os.getcwd(), os.environ.get("PATH", ""), *call, "."]) + "\x1e"
    with open("/work/@LOG@", "a") as log:
        log.write(call)
        if is_module and not is_known:  # whether it fails is not seen
            log.write("!" + call)
    if is_known:
        os._exit(0)
"""
# Environments of task runners, which put their own programs first and do not read PYTHONPATH.
_PLACES = "/work/.venv /work/.tox/* /work/.nox/* ~/.local/share/hatch/env/virtual/*/*/* ~/.cache/pypoetry/virtualenvs/*"
_FOLDERS = "/work /work/node_modules/.bin /work/*/node_modules/.bin /work/*/*/node_modules/.bin"


@dataclass(frozen=True, slots=True)
class RecordedToolCalls:
    """Calls as scripts from the repository's root, in order: of known tools, of others that failed, and of others that did not."""

    known: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


def record_calls(case: RepairCase) -> RecordedToolCalls:
    """The calls of tools that the failing command comes to make."""
    lines = f"{_lay_stand_ins()}\ntimeout {_SECONDS} {shlex.join(case.trial.command)} </dev/null"
    argv = wrap_in_repository(("bash", "-c", lines))
    env = dict(case.trial.env)
    with case.open_box() as box:
        path = box.run(("sh", "-c", 'printf %s "$PATH"'), timeout=30, env=env).stdout
        box.run(argv, timeout=_SECONDS + 30, env=env, cancel=case.stop.cancel)
        data = box.read(_LOG, _MAX_LOG) or b""
    calls: dict[str, dict[str, None]] = {"": {}, "!": {}, "+": {}}
    for record in data.decode("utf-8", "replace").split("\x1e"):
        mark = record[:1] if record[:1] in calls else ""
        fields = record.removeprefix(mark).split("\x1f")
        call = _make_call(fields, path.split(":")) if len(calls[mark]) < _MOST_CALLS else ""
        is_lines = any(len(f"{word}.".splitlines()) > 1 for word in fields[2:-1])
        if call and not (mark and (is_lines or _is_unwatched(fields[2:-1]))):
            calls[mark][call] = None
    known, failed, passed = (tuple(of_kind) for of_kind in calls.values())
    return RecordedToolCalls(known, failed[:_MAX_FAILED], passed)


def _is_unwatched(words: Sequence[str]) -> bool:
    name = words[2] if words[1:2] == ["-m"] and len(words) > 2 else posixpath.basename(words[0])
    return any(fnmatch(name, pattern) for pattern in load_tools().programs["unwatched"])


def _make_call(fields: Sequence[str], usual: Sequence[str]) -> str:
    """One call as a script; empty where it was made outside the repository."""
    inner = posixpath.relpath(fields[0] or "/", "/work")
    if len(fields) < 4 or inner.startswith(".."):
        return ""
    searched, tool, *arguments = fields[1:-1]
    is_shell = posixpath.basename(tool) in load_tools().programs["shells"]
    if is_shell and arguments[:1] and arguments[0].startswith("-"):
        return ""  # what it runs is seen by itself
    if any(word.endswith(".regreen") for word in arguments[:1]):
        return ""  # the stand-in's own call
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
    watcher = shlex.quote(_WATCHER.replace("@LOG@", _LOG))
    unwatched = "|".join(sorted(programs["unwatched"]))
    return f"""export REGREEN_STAND_INS=$(mktemp -d /tmp/regreen-XXXXXX) TOX_OVERRIDE=testenv.pass_env+=REGREEN_STAND_INS
regreen_path=$(printf %s "$PATH" | tr ':' ' ')
export PATH="$REGREEN_STAND_INS:$PATH" PYTHONPATH="$REGREEN_STAND_INS${{PYTHONPATH:+:$PYTHONPATH}}"
printf %s {stand_in} > "$REGREEN_STAND_INS/.tool"; printf %s {watcher} > "$REGREEN_STAND_INS/.watch"
printf %s {site} > "$REGREEN_STAND_INS/sitecustomize.py"; chmod 755 "$REGREEN_STAND_INS/.tool" "$REGREEN_STAND_INS/.watch"
replace() {{ [ -f "$1/$2" ] && mv "$1/$2" "$1/$2.regreen" && cp "$REGREEN_STAND_INS/$3" "$1/$2"; }}
names={shlex.quote(names)}
for name in $names; do
  cp "$REGREEN_STAND_INS/.tool" "$REGREEN_STAND_INS/$name"
done
for folder in {_FOLDERS} $(echo {_PLACES} | tr ' ' '\\n' | sed 's|$|/bin|'); do
  for name in $names; do replace "$folder" "$name" .tool; done
done
watch() {{
  case " $names " in *" $1 "*) return 1;; esac
  case "$1" in *.regreen|*.*|{unwatched}) return 1;; esac
}}
for folder in $regreen_path; do
  case "$folder" in /usr/*|/bin|/sbin) continue;; esac
  for file in "$folder"/*; do
    name=${{file##*/}}
    watch "$name" && [ -x "$file" ] && cp "$REGREEN_STAND_INS/.watch" "$REGREEN_STAND_INS/$name"
  done
done
for folder in /work/node_modules/.bin /work/*/node_modules/.bin $(echo {_PLACES} | tr ' ' '\\n' | sed 's|$|/bin|'); do
  for file in "$folder"/*; do
    name=${{file##*/}}
    watch "$name" && [ -x "$file" ] && replace "$folder" "$name" .watch
  done
done
for packages in $(echo {_PLACES} | tr ' ' '\\n' | sed 's|$|/lib/python*/site-packages|'); do
  [ -d "$packages" ] && cp "$REGREEN_STAND_INS/sitecustomize.py" "$packages"
done"""
