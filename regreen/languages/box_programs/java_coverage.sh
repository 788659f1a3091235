#!/bin/sh
# Writes the LCOV trace of what the project's own JaCoCo has measured.
home=$(dirname "$(realpath "$0")")
root=$(dirname "$home")

find_reports() {
  find "$root" -name '*.xml' -path '*/jacoco*' -newer "$home/java.paths" \( -path '*/target/*' -o -path '*/build/*' \)
}

if [ -z "$(find_reports)" ] && [ -n "$(find "$root" -name jacoco.exec -newer "$home/java.paths")" ]; then
  mvn -q -B -o org.jacoco:jacoco-maven-plugin:report >&2
fi
find_reports >"$home/java.reports"
[ -s "$home/java.reports" ] || { echo 'the project measures nothing with JaCoCo' >&2; exit 1; }
while read -r report; do
  # the sources of a report's module lie beside its folder of output
  case $report in */target/*) module=${report%%/target/*} ;; *) module=${report%%/build/*} ;; esac
  tr '>' '\n' <"$report" | awk -v wanted="$home/java.paths" -v root="$root/" -v module="$module/" '
    function value(name) {
      if (!match($0, " " name "=\"[^\"]*\"")) return ""
      return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
    }
    function find(end, path) {
      for (path in measured) {
        if (index(path, module) == 1 && substr(path, length(path) - length(end)) == "/" end) return path
      }
      return ""
    }
    BEGIN { while ((getline path < wanted) > 0) measured[root path] = 1 }
    /^<package / { package = value("name") }
    /^<sourcefile / {
      shown = find((package == "" ? "" : package "/") value("name"))
      if (shown != "") print "SF:" shown
    }
    /^<line / && shown != "" { print "DA:" value("nr") "," value("ci") }
    /^<\/sourcefile/ { shown = "" }'
done <"$home/java.reports" >"$home/java.lcov"
