#!/bin/sh
# Cargo calls it in place of rustc for the crates of the repository (RUSTC_WORKSPACE_WRAPPER): they count what they run.
# Called as `report` it writes the LCOV trace of what all programs have counted.
home=$(dirname "$(dirname "$(realpath "$0")")")
root=$(dirname "$home")
profiles=$home/rust

if [ "${1-}" = report ]; then
  ls "$profiles"/*.profraw >/dev/null 2>&1 || { echo 'no program counted what it ran' >&2; exit 1; }
  sysroot=$(rustc --print sysroot)
  tools=
  # only LLVM of the compiler's version, or a newer one, reads what its programs have written
  for folder in "$sysroot"/lib/rustlib/*/bin/ '' /usr/lib/llvm-*/bin/; do
    "${folder}llvm-profdata" merge -sparse -o "$profiles/all" "$profiles"/*.profraw 2>/dev/null || continue
    tools=$folder found=1
    break
  done
  [ -n "${found-}" ] || { echo 'no llvm-profdata reads its counters: rustup component add llvm-tools' >&2; exit 1; }
  set --
  find "$root" ${CARGO_TARGET_DIR:+"$CARGO_TARGET_DIR"} -path '*/deps/*' -type f -perm -100 -newer "$home/rust.paths" |
    sort -u >"$profiles/programs"
  while read -r program; do set -- "$@" -object "$program"; done <"$profiles/programs"
  [ $# -gt 0 ] || exit 1
  shift # the first program is no option
  "${tools}llvm-cov" export -format=lcov -instr-profile="$profiles/all" "$@" |
    awk -v wanted="$home/rust.paths" -v root="SF:$root/" '
      BEGIN { while ((getline path < wanted) > 0) measured[root path] = 1 }
      /^SF:/ { shown = $0 in measured }
      shown && /^(SF|DA):|^end_of_record/' >"$home/rust.lcov"
  exit
fi

case " $* " in *" --crate-name build_script_"* | *"instrument-coverage"*) exec "$@" ;; esac
mkdir -p "$profiles"
if [ ! -e "$profiles/able" ]; then # a distribution may lack the runtime that counts
  echo | "$1" --crate-type lib -C instrument-coverage --emit metadata -o "$profiles/probe" - >/dev/null 2>&1 &&
    echo yes >"$profiles/able" || echo no >"$profiles/able"
fi
grep -q yes "$profiles/able" || exec "$@"
exec "$@" -C instrument-coverage
