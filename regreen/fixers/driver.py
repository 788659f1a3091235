"""Turns planned steps into one bash script that runs them as GitHub's runner does.

Between steps it keeps what a runner keeps: outcomes, outputs, GITHUB_ENV, GITHUB_PATH, whether anything failed.
The state lies in the home directory, so that the steps of the network phase and those after it are one job.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from regreen.fixers.expressions import Call, Node, parse, split
from regreen.fixers.job_plan import WORKSPACE, Service, Step
from regreen.fixers.runtime_shell import HELPERS, Compiler
from regreen.fixers.services import starting
from regreen.fixers.shims import BEGIN, OFFLINE, SHIMS, UNSUPPORTED_MARK

COULD_NOT_GET_THERE = 125
"""An earlier step failed: the step in question was never reached."""

_SUCCESS = Call("success", ())

RUNNER_ENV = {
    "CI": "true",
    "GITHUB_ACTIONS": "true",
    "GITHUB_WORKSPACE": WORKSPACE,
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_API_URL": "https://api.github.com",
    "GITHUB_GRAPHQL_URL": "https://api.github.com/graphql",
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

_START = (
    r"""
RG="${RG_BASE:-$HOME/.ci}"
export RUNNER_TEMP="$HOME/_temp"
mkdir -p "$RG/outputs" "$RG/outcome" "$RG/conclusion" "$RG/env" "$RG/bin" "$RUNNER_TEMP" /env/tools 2>/dev/null
touch "$RG/path"
rg_code=0
"""
    + HELPERS
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


def script(
    steps: Sequence[Step],
    *,
    target: int | None = None,
    fresh: bool = True,
    offline: bool = False,
    builds: bool = False,
    services: tuple[Service, ...] = (),
) -> str:
    """A bash script that runs `steps`.

    Args:
        steps: in the job's order.
        target: the step whose exit status is the script's; an earlier failure exits 125. None: the first
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
    lines.append(_START.strip("\n"))
    if fresh:
        lines.append(
            'rm -rf "$RG/outputs" "$RG/env" "$RG/failed" "$RG/path"; mkdir -p "$RG/outputs" "$RG/env"; touch "$RG/path"'
        )
    if any("-m pip" in step.calls for step in steps):
        lines.append("rg_python_too=1")
    lines += [SHIMS, OFFLINE if offline else BEGIN]
    if builds and not offline:
        lines.append("rg_build_tools")
    lines += starting(services)
    for step in steps:
        lines += _step(step)
    lines.append(_ending(target))
    return "\n".join(lines) + "\n"


def _step(step: Step) -> list[str]:
    identity = step.id or f"__{step.number}"
    if step.kind == "skip" or not step.run.strip():
        return _said(identity, step)
    compiler = Compiler()
    wanted = parse(step.condition) if step.condition else _SUCCESS
    lines = [f"# step {step.number}: {' '.join(step.name.split())[:80]}", *compiler.holds(wanted)]
    lines.append('if [ "$rg_truth" = true ]; then')
    lines += _script(step, compiler)
    lines += _pairs(step, compiler)
    lines.append(f"rg_suffix={'.py' if 'python' in step.shell.split()[:1] else '.sh'}")
    lines.append(f"rg_shown={shlex.quote(_shown(step))}")
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


def _said(identity: str, step: Step) -> list[str]:
    """A step that is left out has the outputs that its plan gives it."""
    quoted = shlex.quote(identity)
    lines = [
        f'mkdir -p "$RG/outputs/"{quoted}; echo success > "$RG/outcome/"{quoted}; echo success > "$RG/conclusion/"{quoted}'
    ]
    return lines + [
        f'rg_put "$RG/outputs/"{quoted} {shlex.quote(name)} {shlex.quote(value)}'
        for name, value in step.outputs.items()
    ]


def _shown(step: Step) -> str:
    first = next((line for line in step.run.splitlines() if line.strip()), step.name)
    return first if step.kind == "run" else step.uses or first


def _script(step: Step, compiler: Compiler) -> list[str]:
    """The step's script in `rg_script`, expressions filled in as the runner does it: as text, before the shell."""
    template, values = _template(step.run)
    mark = f"RG_END_{step.number}"
    while mark in template:
        mark += "_"
    lines = [f"rg_script=$(cat <<'{mark}'", template, mark, ")"]
    for place, node in values:
        code = compiler.value(node)
        lines += [
            *code.lines,
            f"rg_value={code.word}",
            f'rg_script=${{rg_script//"{place}"/"$rg_value"}}',
        ]
    return lines


def _template(text: str) -> tuple[str, list[tuple[str, Node]]]:
    values: list[tuple[str, Node]] = []
    parts = []
    for part in split(text) if "${{" in text else [text]:
        if isinstance(part, str):
            parts.append(part)
        else:
            place = f"@@RG{len(values)}@@"
            values.append((place, part))
            parts.append(place)
    return "".join(parts), values


def _pairs(step: Step, compiler: Compiler) -> list[str]:
    """The step's environment in `rg_pairs`. What an earlier step wrote wins over the job's, not over the step's own."""
    lines = ["rg_pairs=()"]
    for name, text in step.env.items():
        word = shlex.quote(f"{name}={text}")
        if "${{" in text:
            template, values = _template(text)
            lines.append(f"rg_text={shlex.quote(template)}")
            for place, node in values:
                code = compiler.value(node)
                lines += [
                    *code.lines,
                    f"rg_value={code.word}",
                    f'rg_text=${{rg_text//"{place}"/"$rg_value"}}',
                ]
            word = f'"{name}=$rg_text"'
        guard = "" if name in step.own_env else f'[ -f "$RG/env/"{shlex.quote(name)} ] || '
        lines.append(f"{guard}rg_pairs+=({word})")
    return lines


def _ending(target: int | None) -> str:
    if target is None:
        return 'if [ -e "$RG/failed" ]; then exit "$rg_code"; fi\nexit 0'
    return (
        'if [ -e "$RG/failed" ]; then\n'
        f'  if [ "$(cat "$RG/failed")" != {target} ]; then exit {COULD_NOT_GET_THERE}; fi\n'
        f'  if [ "$rg_code" = {COULD_NOT_GET_THERE} ]; then exit 1; fi\n'
        '  exit "$rg_code"\nfi\nexit 0'
    )


__all__ = ["COULD_NOT_GET_THERE", "RUNNER_ENV", "UNSUPPORTED_MARK", "script"]
