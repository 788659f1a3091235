"""Turns planned steps into one bash script that runs them as GitHub's runner does.

Between steps it keeps what a runner keeps: outcomes, outputs, GITHUB_ENV, GITHUB_PATH, whether anything failed.
The state lies in the home directory, so that the steps of the network phase and those after it are one job.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from regreen.actions.expressions.evaluation import FunctionCall, Node, parse, split_template
from regreen.actions.expressions.runtime_shell import HELPER_FUNCTIONS, ExpressionCompiler
from regreen.actions.job_plan import WORKSPACE, PlannedStep, ServiceContainer
from regreen.actions.service_containers import start_services
from regreen.domain.github import GitHubServer
from regreen.runs.test_runs import INIT_REPOSITORY_SCRIPT
from regreen.runs.trial import UNTESTABLE_EXIT_CODE

_SUCCESS_CALL = FunctionCall("success", ())

_PUBLIC_GITHUB = GitHubServer()
RUNNER_ENV = {
    "CI": "true",
    "GITHUB_ACTIONS": "true",
    "GITHUB_WORKSPACE": WORKSPACE,
    "GITHUB_SERVER_URL": _PUBLIC_GITHUB.web_url,
    "GITHUB_API_URL": _PUBLIC_GITHUB.api_url,
    "GITHUB_GRAPHQL_URL": _PUBLIC_GITHUB.graphql_url,
    "GITHUB_ACTOR": "regreen",
    "GITHUB_RUN_ID": "1",
    "GITHUB_RUN_NUMBER": "1",
    "GITHUB_RUN_ATTEMPT": "1",
    "RUNNER_OS": "Linux",
    "RUNNER_ARCH": "X64",
    "RUNNER_NAME": "regreen",
    "RUNNER_ENVIRONMENT": "github-hosted",
    "RUNNER_TOOL_CACHE": "/env/tools",
    "AGENT_TOOLSDIRECTORY": "/env/tools",
    "PRE_COMMIT_HOME": "/env/pre-commit",
    "GOMODCACHE": "/env/go/mod",
    "UV_LINK_MODE": "copy",
    "UV_PYTHON_PREFERENCE": "only-system",
    "UV_PYTHON_DOWNLOADS": "never",
    "pythonLocation": "/env",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "npm_config_update_notifier": "false",
}
"""What every step sees; tools' stores lie where the network phase's result is kept."""

_SCRIPT_START = (
    r"""
RG="${RG_BASE:-$HOME/.ci}"
export RUNNER_TEMP="$HOME/_temp"
mkdir -p "$RG/outputs" "$RG/outcome" "$RG/conclusion" "$RG/env" "$RG/bin" "$RUNNER_TEMP" /env/tools 2>/dev/null
touch "$RG/path"
rg_code=0
"""
    + HELPER_FUNCTIONS
    + r"""
rg_keep() {
  # GITHUB_OUTPUT and GITHUB_ENV: name=value, or name<<END with lines up to END
  local file=$1 into=$2 line name end value
  [ -s "$file" ] || return 0
  mkdir -p "$into"
  while IFS= read -r line || [ -n "$line" ]; do
    name=${line%%=*}; end=${line%%<<*}
    if [ ${#end} -lt ${#name} ]; then
      name=$end; end=${line#*<<}; value=
      while IFS= read -r line || [ -n "$line" ]; do
        [ "$line" = "$end" ] && break
        value="$value$line"$'\n'
      done
      rg_put "$into" "$name" "${value%$'\n'}"
    elif [ ${#name} -lt ${#line} ]; then
      rg_put "$into" "$name" "${line#*=}"
    fi
  done < "$file"
}
rg_put() { case "$2" in ''|*/*) return 0;; esac; printf %s "$3" > "$1/$2"; }
rg_skip() { echo skipped > "$RG/outcome/$1"; echo skipped > "$RG/conclusion/$1"; }
rg_run() {
  # number id continues directory timeout -- shell words; the script is in rg_script, the environment in rg_pairs
  local number=$1 id=$2 continues=$3 directory=$4 seconds=$5 file name code line
  shift 6
  file="$RG/step-$number$rg_suffix"
  printf '%s\n' "$rg_script" > "$file"
  local words=()
  for line; do words+=("${line//'{0}'/$file}"); done
  local pairs=()
  for name in "$RG"/env/*; do
    [ -f "$name" ] || continue
    rg_env "${name##*/}"; pairs+=("${name##*/}=$REPLY")
  done
  pairs+=("${rg_pairs[@]}")
  local path=$PATH
  while IFS= read -r line; do [ -n "$line" ] && path="$line:$path"; done < "$RG/path"
  rg_shims "$path"
  path="$RG/bin:$path"
  rm -f "$RG/now.output" "$RG/now.env" "$RG/now.path" "$RG/now.summary" "$RG/now.state"
  : > "$RG/now.output"; : > "$RG/now.env"; : > "$RG/now.path"; : > "$RG/now.summary"; : > "$RG/now.state"
  pairs+=("GITHUB_OUTPUT=$RG/now.output" "GITHUB_ENV=$RG/now.env" "GITHUB_PATH=$RG/now.path")
  pairs+=("GITHUB_STEP_SUMMARY=$RG/now.summary" "GITHUB_STATE=$RG/now.state" "GITHUB_ACTION=$id" "PATH=$path")
  local limit=()
  if [ "$seconds" != 0 ] && type timeout >/dev/null 2>&1; then limit=(timeout -k 5 "$seconds"); fi
  printf '##[group]Run %s\n##[endgroup]\n' "${rg_shown}"
  if cd "$directory" 2>/dev/null; then
    "${limit[@]}" env "${pairs[@]}" "${words[@]}" < /dev/null
    code=$?
  else
    echo "##[error]An error occurred trying to start process: no such directory: $directory"; code=1
  fi
  cd "$GITHUB_WORKSPACE" || exit 1
  rg_keep "$RG/now.output" "$RG/outputs/$id"
  rg_keep "$RG/now.env" "$RG/env"
  cat "$RG/now.path" >> "$RG/path"
  if [ "$code" = 0 ]; then
    echo success > "$RG/outcome/$id"; echo success > "$RG/conclusion/$id"
    return 0
  fi
  echo "##[error]Process completed with exit code $code."
  echo failure > "$RG/outcome/$id"
  if [ "$continues" = true ]; then echo success > "$RG/conclusion/$id"; return 0; fi
  echo failure > "$RG/conclusion/$id"
  if [ ! -e "$RG/failed" ]; then echo "$number" > "$RG/failed"; rg_code=$code; fi
  return 0
}
"""
)


def make_driver_script(
    steps: Sequence[PlannedStep],
    *,
    target: int | None = None,
    fresh: bool = True,
    offline: bool = False,
    builds: bool = False,
    services: tuple[ServiceContainer, ...] = (),
) -> str:
    """A bash script that runs `steps`.

    Args:
        steps: in the job's order.
        target: the step whose exit status is the script's; an earlier failure exits as untestable. None: the first
            failure's status is the script's.
        fresh: whether the job starts here, or goes on from what an earlier script kept.
        offline: whether tools are to take what an earlier script fetched, and not to look for a network.
        builds: whether what builds this project is fetched too, for tools that build it again without a network.
        services: what the job wants to run beside it.

    Raises:
        NotAtRunTime: an expression needs what only GitHub knows.
    """
    lines = [f"cd {WORKSPACE} || exit 1"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in RUNNER_ENV.items()]
    lines.append(_SCRIPT_START.strip("\n"))
    if fresh:
        lines.append(
            'rm -rf "$RG/outputs" "$RG/env" "$RG/failed" "$RG/path"; mkdir -p "$RG/outputs" "$RG/env"; touch "$RG/path"'
        )
    if any("-m pip" in step.calls for step in steps):
        lines.append("rg_python_too=1")
    lines += [SHIMS, BEGIN_OFFLINE if offline else BEGIN_ONLINE]
    if builds and not offline:
        lines.append("rg_build_tools")
    lines += start_services(services)
    for step in steps:
        lines += _step_lines(step)
    lines.append(_exit_code_lines(target))
    return "\n".join(lines) + "\n"


def _step_lines(step: PlannedStep) -> list[str]:
    identity = step.id or f"__{step.number}"
    if step.kind == "skip" or not step.run.strip():
        return _lines_for_skipped_step(identity, step)
    compiler = ExpressionCompiler()
    wanted = parse(step.condition) if step.condition else _SUCCESS_CALL
    lines = [
        f"# step {step.number}: {' '.join(step.name.split())[:80]}",
        *compiler.compile_condition(wanted),
    ]
    lines.append('if [ "$rg_truth" = true ]; then')
    lines += _script_assignment_lines(step, compiler)
    lines += _environment_assignment_lines(step, compiler)
    lines.append(f"rg_suffix={'.py' if 'python' in step.shell.split()[:1] else '.sh'}")
    lines.append(f"rg_shown={shlex.quote(_step_command(step))}")
    directory = (
        f"{WORKSPACE}/{step.working_directory}"
        if not step.working_directory.startswith("/")
        else step.working_directory
    )
    seconds = round(step.timeout_minutes * 60) if step.timeout_minutes else 0
    shell = " ".join(shlex.quote(word) for word in _shell_words(step.shell))
    continues = "true" if step.continues else "false"
    lines.append(
        f"rg_run {step.number} {shlex.quote(identity)} {continues} {shlex.quote(directory)} {seconds} -- {shell}"
    )
    lines += [f"else rg_skip {shlex.quote(identity)}; fi"]
    return lines


def _shell_words(shell: str) -> list[str]:
    try:
        return shlex.split(shell)
    except ValueError:
        return shell.split()


def _lines_for_skipped_step(identity: str, step: PlannedStep) -> list[str]:
    """A step that is left out has the outputs that its plan gives it."""
    quoted = shlex.quote(identity)
    lines = [
        f'mkdir -p "$RG/outputs/"{quoted}; echo success > "$RG/outcome/"{quoted}; echo success > "$RG/conclusion/"{quoted}'
    ]
    return lines + [
        f'rg_put "$RG/outputs/"{quoted} {shlex.quote(name)} {shlex.quote(value)}'
        for name, value in step.outputs.items()
    ]


def _step_command(step: PlannedStep) -> str:
    first = next((line for line in step.run.splitlines() if line.strip()), step.name)
    return first if step.kind == "run" else step.uses or first


def _script_assignment_lines(step: PlannedStep, compiler: ExpressionCompiler) -> list[str]:
    """The step's script in `rg_script`, expressions filled in as the runner does it: as text, before the shell."""
    template, values = _split_template(step.run)
    mark = f"RG_END_{step.number}"
    while mark in template:
        mark += "_"
    lines = [f"rg_script=$(cat <<'{mark}'", template, mark, ")"]
    for place, node in values:
        code = compiler.compile_value(node)
        lines += [
            *code.lines,
            f"rg_value={code.word}",
            f'rg_script=${{rg_script//"{place}"/"$rg_value"}}',
        ]
    return lines


def _split_template(text: str) -> tuple[str, list[tuple[str, Node]]]:
    values: list[tuple[str, Node]] = []
    parts = []
    for part in split_template(text) if "${{" in text else [text]:
        if isinstance(part, str):
            parts.append(part)
        else:
            place = f"@@RG{len(values)}@@"
            values.append((place, part))
            parts.append(place)
    return "".join(parts), values


def _environment_assignment_lines(step: PlannedStep, compiler: ExpressionCompiler) -> list[str]:
    """The step's environment in `rg_pairs`. What an earlier step wrote wins over the job's, not over the step's own."""
    lines = ["rg_pairs=()"]
    for name, text in step.env.items():
        word = shlex.quote(f"{name}={text}")
        if "${{" in text:
            template, values = _split_template(text)
            lines.append(f"rg_text={shlex.quote(template)}")
            for place, node in values:
                code = compiler.compile_value(node)
                lines += [
                    *code.lines,
                    f"rg_value={code.word}",
                    f'rg_text=${{rg_text//"{place}"/"$rg_value"}}',
                ]
            word = f'"{name}=$rg_text"'
        guard = "" if name in step.own_env else f'[ -f "$RG/env/"{shlex.quote(name)} ] || '
        lines.append(f"{guard}rg_pairs+=({word})")
    return lines


def _exit_code_lines(target: int | None) -> str:
    if target is None:
        return 'if [ -e "$RG/failed" ]; then exit "$rg_code"; fi\nexit 0'
    return (
        'if [ -e "$RG/failed" ]; then\n'
        f'  if [ "$(cat "$RG/failed")" != {target} ]; then exit {UNTESTABLE_EXIT_CODE}; fi\n'
        f'  if [ "$rg_code" = {UNTESTABLE_EXIT_CODE} ]; then exit 1; fi\n'
        '  exit "$rg_code"\nfi\nexit 0'
    )


__all__ = ["RUNNER_ENV", "UNSUPPORTED_MARK", "make_driver_script"]


# Small programs that stand before a job's tools in the box: they find what a box has instead of GitHub's machine.
#
# - `uv pip --system` means the environment's Python; uv finds the interpreter below the environment as installed.
# - What an installer did in the network phase is noted; the same words without a network count as done.
# - nox takes the environments that are there; pipx is made of venv and pip.
# - A box has no root: system packages that are there already satisfy `apt-get install`, others are refused by name.

UNSUPPORTED_MARK = "regreen: unsupported: "
"""A shim prints this where a job asks for what no box can give."""

_APT_SHIM = r"""
cat > "$RG/bin/apt-get" <<'RG_APT'
#!/bin/sh
verb=; for word; do case "$word" in -*|*=*) ;; *) if [ -z "$verb" ]; then verb=$word; fi;; esac; done
[ "$verb" = install ] || exit 0
missing=
for word; do
  case "$word" in -*|install|*=*) continue;; esac
  dpkg -s "$word" >/dev/null 2>&1 || type "$word" >/dev/null 2>&1 || ls /usr/share/doc/"$word" >/dev/null 2>&1 || missing="$missing $word"
done
[ -z "$missing" ] && exit 0
echo "MARKapt-get install$missing: system packages cannot be installed in the sandbox" >&2
exit 100
RG_APT
cp "$RG/bin/apt-get" "$RG/bin/apt"
cat > "$RG/bin/docker" <<'RG_DOCKER'
#!/bin/sh
case "$1" in run|build|buildx|pull|compose|create|start) echo "MARKdocker $1: there is no container engine in the sandbox" >&2;; esac
exit 125
RG_DOCKER
cat > "$RG/bin/sudo" <<'RG_SUDO'
#!/bin/sh
while :; do case "$1" in -u|-g) shift 2;; -*|*=*) shift;; *) break;; esac; done
exec "$@"
RG_SUDO
""".replace("MARK", UNSUPPORTED_MARK).strip("\n")

# One program under many names; the real one is the next of that name on PATH.
_TOOL_SHIM = r"""
cat > "$RG/bin/.tool" <<'RG_TOOL'
#!/bin/sh
name=${0##*/}; here=${0%/*}; real=
old=$IFS; IFS=:
for dir in $PATH; do
  if [ "$dir" != "$here" ] && [ -x "$dir/$name" ] && [ ! -d "$dir/$name" ]; then real=$dir/$name; break; fi
done
IFS=$old
[ -n "$real" ] || { echo "$name: command not found" >&2; exit 127; }
state=${here%/bin}
if [ "$name $1" = "uv pip" ]; then
  if [ -n "$UV_SYSTEM_PYTHON" ]; then unset UV_SYSTEM_PYTHON; export UV_PYTHON=/env/bin/python; fi
  count=$#
  while [ "$count" -gt 0 ]; do
    word=$1; shift; count=$((count - 1))
    if [ "$word" = --system ]; then set -- "$@" --python /env/bin/python; else set -- "$@" "$word"; fi
  done
fi
case "$name" in
  nox) if [ -n "$RG_NOX" ]; then exec "$real" "$RG_NOX" "$@"; fi; exec "$real" "$@";;
  python*) [ "$1 $2 $3" = "-m pip install" ] || exec "$real" "$@";;
  pip*) [ "$1" = install ] || exec "$real" "$@";;
  uv) case "$1 $2" in "pip install"|"pip sync"|sync*) ;; *) exec "$real" "$@";; esac;;
  yarn) case "$1" in ''|install|add|--*) ;; *) exec "$real" "$@";; esac;;
  *) case "$1" in ci|i|install|add|sync|clean-install) ;; *) exec "$real" "$@";; esac;;
esac
key="$name $* in $PWD"
if [ -z "$RG_OFFLINE" ]; then
  "$real" "$@"; code=$?
  if [ "$code" != 0 ] && [ -n "$PIP_CONSTRAINT" ]; then
    echo "the versions of the day do not fit together any more; once more without them" >&2
    unset PIP_CONSTRAINT UV_CONSTRAINT; "$real" "$@"; code=$?
  fi
  [ "$code" = 0 ] && printf '%s\n' "$key" >> "$state/installed"
  exit "$code"
fi
case "$name" in
  pip*|python*|uv) ;;
  *) if grep -qxF -- "$key" "$state/installed" 2>/dev/null; then echo "$name: installed in the network phase"; exit 0; fi;;
esac
"$real" "$@"; code=$?
[ "$code" = 0 ] && exit 0
if grep -qxF -- "$key" "$state/installed" 2>/dev/null; then echo "$name: installed in the network phase"; exit 0; fi
exit "$code"
RG_TOOL
chmod +x "$RG/bin/.tool"
rg_shims() {
  local tool path=$1
  for tool in pip pip3 uv npm yarn pnpm poetry pdm nox ${rg_python_too:+python python3} ${PIP_CONSTRAINT:+python python3}; do
    if (PATH=${path//"$RG/bin:"/}; type -P "$tool") >/dev/null 2>&1; then ln -sf .tool "$RG/bin/$tool"; fi
  done
}
"""

_PIPX_SHIM = r"""
cat > "$RG/bin/pipx" <<'RG_PIPX'
#!/bin/bash
# pipx run [--spec S] TOOL ...; pipx install TOOL: an environment a tool, made in the network phase
verb=$1; shift; spec=; python=/env/bin/python; more=()
while :; do
  case "$1" in
    --spec) spec=$2; shift 2;; --spec=*) spec=${1#*=}; shift;;
    --python|--pip-args|--with) [ "$1" = --with ] && more+=("$2"); shift 2;;
    -*) shift;; *) break;;
  esac
done
tool=${1%%[<>=!~@[]*}; spec=${spec:-$1}; shift
home=/env/pipx/$tool
if [ ! -x "$home/bin/python" ]; then
  "$python" -m venv "$home" && "$home/bin/python" -m pip install --quiet "$spec" "${more[@]}" || { rm -rf "$home"; exit 1; }
fi
if [ "$verb" = install ]; then ln -sf "$home/bin/$tool" /env/bin/; exit 0; fi
[ "$1" = --rg-prepare ] && exit 0
if [ "$tool" = nox ] && [ -n "$RG_NOX" ]; then set -- "$RG_NOX" "$@"; fi
exec "$home/bin/$tool" "$@"
RG_PIPX
"""

SHIMS = f"""{_APT_SHIM}{_TOOL_SHIM}{_PIPX_SHIM}chmod +x "$RG/bin"/*"""

# The interpreter under the environment, by every name that tools look for: uv and tox do not count an environment as installed.
_FIND_BASE_PYTHON = r"""
if type -P python >/dev/null; then
  rg_base=$(readlink -f "$(type -P python)"); mkdir -p "$RG/base"
  for rg_name in python python3 "${rg_base##*/}"; do ln -sf "$rg_base" "$RG/base/$rg_name"; done
  case "$PATH" in /env/bin:*) PATH="/env/bin:$RG/base:${PATH#/env/bin:}";; *) PATH="$PATH:$RG/base";; esac
fi
export PATH
"""

BEGIN_ONLINE = f"""{_FIND_BASE_PYTHON}
if [ -w /env ]; then export UV_CACHE_DIR=/env/uv npm_config_cache=/env/npm; fi
rg_build_tools() {{
  # wheels of what builds this project, for builds without a network; the notes say where they lie
  [ -f pyproject.toml ] || [ -f setup.py ] || return 0
  python - > "$RG/builds.txt" 2>/dev/null <<'RG_PYTHON' || echo 'setuptools' > "$RG/builds.txt"
import ast, re
text = open("pyproject.toml", encoding="utf-8").read()
found = re.search(r"(?ms)^\\[build-system\\].*?^requires\\s*=\\s*(\\[.*?\\])", text)
print("\\n".join(ast.literal_eval(re.sub(r"(?m)#.*$", "", found[1]))) if found else "setuptools")
RG_PYTHON
  printf 'wheel\\nsetuptools\\n' >> "$RG/builds.txt"
  python -m pip download --quiet --prefer-binary --dest /env/wheels -r "$RG/builds.txt" >/dev/null 2>&1 || true
}}
"""

BEGIN_OFFLINE = f"""{_FIND_BASE_PYTHON}
[ -n "$RG_NETWORK" ] || export RG_OFFLINE=1 UV_OFFLINE=1 PIP_RETRIES=0 PIP_NO_INDEX=1
[ -d /env/wheels ] && export PIP_FIND_LINKS=/env/wheels
[ -f "$RG/nox" ] && RG_NOX=$(cat "$RG/nox"); export RG_NOX="${{RG_NOX:--R}}"
if [ -d /env/uv ]; then
  # uv needs a cache that it can write to; what fills it stays where it is
  export UV_CACHE_DIR="$HOME/.uv"; mkdir -p "$UV_CACHE_DIR"
  for rg_name in /env/uv/* /env/uv/.[!.]*; do
    case "$rg_name" in
      */archive-v*) cp -rs "$rg_name" "$UV_CACHE_DIR/" 2>/dev/null || cp -r "$rg_name" "$UV_CACHE_DIR/";;
      *) cp -r "$rg_name" "$UV_CACHE_DIR/" 2>/dev/null;;
    esac
  done
fi
{INIT_REPOSITORY_SCRIPT}"""
