r"""Small programs that stand before a job's tools in the box: they find what a box has instead of GitHub's machine.

- `uv pip --system` means the environment's Python; uv finds the interpreter below the environment as installed.
- What an installer did in the network phase is noted; the same words without a network count as done.
- nox takes the environments that are there; pipx is made of venv and pip.
- A box has no root: system packages that are there already satisfy `apt-get install`, others are refused by name.
"""

from __future__ import annotations

from regreen.codebase.in_git import REPOSITORY

UNSUPPORTED_MARK = "regreen: unsupported: "
"""A shim prints this where a job asks for what no box can give."""

_APT = r"""
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
_TOOL = r"""
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

_PIPX = r"""
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

SHIMS = f"""{_APT}{_TOOL}{_PIPX}chmod +x "$RG/bin"/*"""

# The interpreter under the environment, by every name that tools look for: uv and tox do not count an environment as installed.
_BASE = r"""
if type -P python >/dev/null; then
  rg_base=$(readlink -f "$(type -P python)"); mkdir -p "$RG/base"
  for rg_name in python python3 "${rg_base##*/}"; do ln -sf "$rg_base" "$RG/base/$rg_name"; done
  case "$PATH" in /env/bin:*) PATH="/env/bin:$RG/base:${PATH#/env/bin:}";; *) PATH="$PATH:$RG/base";; esac
fi
export PATH
"""

BEGIN = f"""{_BASE}
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

OFFLINE = f"""{_BASE}
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
{REPOSITORY}"""
