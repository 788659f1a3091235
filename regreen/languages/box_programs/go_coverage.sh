#!/bin/sh
# Stands before `go` on the PATH: `go test` also writes a profile of the packages in which lines are measured.
# Called as `report` it writes the LCOV trace of all profiles.
home=$(dirname "$(dirname "$(realpath "$0")")")
root=$(dirname "$home")
wanted=$home/go.paths
PATH=$(printf '%s' ":$PATH:" | sed "s|:$home/bin:|:|g; s/^://; s/:$//")

find_module() {
  at=$1
  while [ -n "$at" ] && [ ! -f "$at/go.mod" ]; do at=${at%/*}; done
  printf '%s' "$at"
}

list_sources() {
  file='{{$.ImportPath}}/{{.}} {{$.Dir}}/{{.}}{{"\n"}}'
  format="{{range .GoFiles}}$file{{end}}{{range .CgoFiles}}$file{{end}}"
  here=$(find_module "$PWD")
  grep -v '[^A-Za-z0-9_./-]' "$wanted" | sed "s|^|$root/|; s|/[^/]*\$||" | sort -u | while read -r folder; do
    [ "$(find_module "$folder")" != "$here" ] || printf '%s\n' "$folder"
  done | xargs go list -e -f "$format" 2>/dev/null | sed '/^$/d'
}

if [ "${1-}" = report ]; then
  [ ! -e "$home/go/broken" ] || { echo 'a `go test` passes only without the measurement' >&2; exit 1; }
  cat "$home"/go/*.profile >/dev/null 2>&1 || { echo 'no `go test` was run' >&2; exit 1; }
  export LC_ALL=C
  cat "$home"/go/*.sources | sort -u >"$home/go/sources"
  # a package that no test is linked to stands in no profile: its blocks have not run
  while read -r name path; do
    go tool cover -mode=set -var=Blocks "$path" 2>/dev/null | sed -n 's/^\t\t\([0-9]*\), \([0-9]*\), 0x\([0-9a-f]*\), .*/\1 \2 \3/p' |
      while read -r first last columns; do
        printf '%s:%d.%d,%d.%d 1 0\n' "$name" "$first" $((0x$columns & 0xffff)) "$last" $((0x$columns >> 16))
      done
  done <"$home/go/sources" >"$home/go/not_run.profile"
  awk -v wanted="$wanted" -v root="$root/" '
    function load(path, n, text, comment) {
      while ((getline text < path) > 0) {
        n++
        if (comment && text ~ /\*\//) { sub(/^.*\*\//, "", text); comment = 0 }
        if (comment) text = ""
        if (text ~ /^[ \t]*\/\*/ && text !~ /\*\//) { text = ""; comment = 1 }
        source[path, n] = text
      }
      close(path)
      loaded[path] = 1
    }
    BEGIN { while ((getline path < wanted) > 0) measured[root path] = 1 }
    FILENAME ~ /\/sources$/ { source_of[$1] = $2; next }
    match($0, /:[0-9]+\.[0-9]+,[0-9]+\.[0-9]+ [0-9]+ [0-9]+$/) {
      path = source_of[substr($0, 1, RSTART - 1)]
      split(substr($0, RSTART + 1), at, /[., ]/)
      if (!(path in measured)) next
      if (!(path in loaded)) load(path)
      for (line = at[1]; line <= at[3]; line++) {
        # a block begins with its brace and ends behind the other: lines that hold nothing else are not executable
        text = source[path, line]
        if (line == at[3]) text = substr(text, 1, at[4] - 1)
        if (line == at[1]) text = substr(text, at[2])
        sub(/\/\/.*/, "", text)
        if (text ~ /[A-Za-z0-9_"`]/ && hits[path, line] + 0 <= at[6]) hits[path, line] = at[6]
      }
    }
    END {
      for (key in hits) {
        split(key, part, SUBSEP)
        print "SF:" part[1] "\nDA:" part[2] "," hits[key] "\nend_of_record"
      }
    }' "$home/go/sources" "$home"/go/*.profile >"$home/go.lcov"
  exit
fi

[ "${1-}" = test ] || exec go "$@"
mkdir -p "$home/go"
sources=$(list_sources)
[ -n "$sources" ] || exec go "$@"
printf '%s\n' "$sources" >"$home/go/$$.sources"
packages=$(printf '%s\n' "$sources" | sed 's| .*||; s|/[^/]*$||' | sort -u | paste -sd, -)
shift
profile=$home/go/$$.profile
own=
last=
for word in "$@"; do # the profile that the project itself asks for is read, not replaced
  case $word in -coverprofile=* | --coverprofile=*) own=${word#*=} ;; esac
  case $last in -coverprofile | --coverprofile) own=$word ;; esac
  last=$word
done
go test -coverpkg="$packages" -coverprofile="$profile" "$@" >"$profile.out" 2>"$profile.err"
status=$?
if [ $status = 0 ]; then
  cat "$profile.out"
  cat "$profile.err" >&2
else
  # every test is linked to every measured package, whose initialisation may end a test that has nothing to do with it
  go test "$@"
  status=$?
  [ $status != 0 ] || { rm -f "$profile" && : >"$home/go/broken" && exit 0; }
fi
[ -z "$own" ] || cp "$own" "$profile"
exit $status
