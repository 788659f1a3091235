"""Red states of TypeScript, JavaScript, Rust, Go and Java trees, each with its remedy. Figures: languages.md.

python benchmarks/red_states.py check|run|judge --trees FOLDER --work FOLDER [--set first] [--only NAME,NAME] [--jobs N] [--results FILE] > results.jsonl

FOLDER holds one git clone for each tree, and `jars` with JUnit 4, Hamcrest, Mockito and jcip. `check` shows that each state is green before
the culprit, red after it and green with the remedy. `run` asks `regreen fix --no-model` and compares what it offers with the remedy;
`judge` compares the patches of earlier results again.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Files = dict[str, str]
Edit = Callable[[Files], None]
JAVA_TEST = """#!/bin/sh
# Compiles the sources and the tests and runs every test class.
set -e
cd "$(dirname "$0")"
out=$(mktemp -d)
libs=$(echo lib/*.jar | tr ' ' ':')
javac -nowarn -encoding UTF-8 -d "$out" -cp "$libs" $(find src -name '*.java')
if [ -d src/test/resources ]; then cp -r src/test/resources/. "$out"; fi
java -cp "$out:$libs" org.junit.runner.JUnitCore \\
    $(cd src/test/java && find . -name '*Test.java' | sort | sed 's#^\\./##; s#\\.java$##; s#/#.#g')
"""


@dataclass(frozen=True)
class Tree:
    """A public repository, how it is laid out, and a harmless addition that comes with every culprit."""

    language: str
    commit: str
    feature: Mapping[str, str]
    """Text that the culprit adds to the end of each file; a file that is not there is new."""
    lay_out: str = "true"
    modules: bool = False


@dataclass(frozen=True)
class State:
    """A red state. The remedy is `bad` and `good` over the same tree, or what `accept` says in the patched tree."""

    name: str
    tree: str
    kind: str
    command: str
    bad: Sequence[Edit]
    good: Sequence[Edit] = ()
    accept: str = ""
    may: frozenset[str] = field(default=frozenset())


def swap(path: str, old: str, new: str) -> Edit:
    """Replace the only place of `old`."""

    def edit(files: Files) -> None:
        assert files[path].count(old) == 1, (path, old, files[path].count(old))
        files[path] = files[path].replace(old, new)

    return edit


def rename(ending: str, old: str, new: str, missed: tuple[str, int] | None = None) -> Edit:
    """Rename a word in every file that ends so, but for the numbered place of `missed`."""

    def edit(files: Files) -> None:
        for path in [name for name in files if name.endswith(ending)]:
            places = [match.start() for match in re.finditer(rf"\b{old}\b", files[path])]
            for number, start in reversed(list(enumerate(places, 1))):
                if missed != (path, number):
                    text = files[path]
                    files[path] = text[:start] + new + text[start + len(old) :]

    return edit


def state(
    name: str,
    tree: str,
    kind: str,
    command: str,
    *bad: Edit,
    good: Sequence[Edit] = (),
    accept: str = "",
    may: str = "",
) -> State:
    """One row; without `good` and `accept` the remedy is the tree before the culprit, with its harmless addition."""
    return State(name, tree, kind, command, bad, good, accept, frozenset(may.split()))


RESULT, ASYNC, UTILS, ERROR = (
    "src/result.ts", "src/result-async.ts", "src/_internals/utils.ts", "src/_internals/error.ts",
)  # fmt: skip
SEM, SIM = "src/main/java/com/vdurmont/semver4j/", "src/main/java/info/debatty/java/stringsimilarity/"  # fmt: skip
JARS = "mkdir lib && cp {jars}/*.jar lib/ && rm -f pom.xml .travis.yml"
GOFMT = 'test -z "$(gofmt -l .)"'
SNAP = """import { expect, it } from 'vitest'
import { err, ok } from '../src'
import { createNeverThrowError } from '../src/_internals/error'

it('describes what was unwrapped', () => {
  expect(createNeverThrowError('no value', err('lost'))).toMatchSnapshot()
  expect(createNeverThrowError('no error', ok(3))).toMatchSnapshot()
})
"""

FIRST_TREES = {
    "neverthrow": Tree(
        "TypeScript", "5ef3a01", {"src/_internals/blank.ts": "export const isBlank = (text: string): boolean => text.trim() === ''\n"},
        f"cat > tests/describe.test.ts <<'E'\n{SNAP}E\ncp -r {{modules}} node_modules && npx vitest run tests/describe.test.ts && rm -rf node_modules", True,
    ),
    "picomatch": Tree("JavaScript", "4f41a8e", {"lib/utils.js": "\nexports.isBlank = str => str.trim() === '';\n"}, modules=True),
    "heck": Tree("Rust", "252c190", {"src/lib.rs": "\n/// Whether the text has no word.\npub fn is_blank(s: &str) -> bool {\n    !s.chars().any(char::is_alphanumeric)\n}\n"}),
    "shell-words": Tree(
        "Rust", "045e4dc", {"README.md": "\n## Maintenance\n\nSee NOTES.md.\n"},
        "cargo clippy --offline --fix --allow-no-vcs --all-targets && cargo fmt && rm -rf target && sed -i /Cargo.lock/d .gitignore",
    ),
    "go-humanize": Tree("Go", "4d1d908", {"blank.go": 'package humanize\n\nimport "strings"\n\n// IsBlank says whether the text has no word.\nfunc IsBlank(s string) bool {\n\treturn strings.TrimSpace(s) == ""\n}\n'}, "gofmt -w ."),
    "go-version": Tree("Go", "8f84cf4", {"blank.go": 'package version\n\nimport "strings"\n\n// IsBlank says whether the text holds no version.\nfunc IsBlank(s string) bool {\n\treturn strings.TrimSpace(s) == ""\n}\n'}),
    "semver4j": Tree("Java", "7653e41", {SEM + "Blank.java": "package com.vdurmont.semver4j;\n\npublic final class Blank {\n    private Blank() {\n    }\n\n    public static boolean isBlank(String text) {\n        return text.trim().isEmpty();\n    }\n}\n"}, JARS),
    "java-string-similarity": Tree("Java", "93240df", {SIM + "Blank.java": "package info.debatty.java.stringsimilarity;\n\npublic final class Blank {\n    private Blank() {\n    }\n\n    public static boolean isBlank(final String text) {\n        return text.trim().isEmpty();\n    }\n}\n"}, JARS),
}  # fmt: skip

NEW = "collectResults"
FIRST = [
    # TypeScript and JavaScript
    state("ts-format", "neverthrow", "formatting", "npx prettier --check 'src/**/*.ts'",
          swap(ASYNC, "    const newPromise = promise.then((value: T) => new Ok<T, E>(value))\n", "    const newPromise = promise\n        .then( (value:T)=>new Ok<T,E>(value) );\n")),
    state("ts-prefer-const", "neverthrow", "linter", "npm run lint", swap(ERROR, "const maybeStack", "let maybeStack")),
    state("ts-renamed", "neverthrow", "missed caller", "npm run typecheck", rename(".ts", "combineResultListWithAllErrors", NEW, (RESULT, 2)),
          good=[rename(".ts", "combineResultListWithAllErrors", NEW)]),
    state("ts-import-lost", "neverthrow", "missing import", "npm run typecheck", swap(ASYNC, "  InferErrTypes,\n", ""), may=ASYNC,
          accept="grep -q 'InferErrTypes,\\|{ InferErrTypes' src/result-async.ts && npm run typecheck"),
    state("ts-unused-import", "neverthrow", "unused import", "npm run typecheck", swap(ERROR, "import { Result } from", "import { Result, ok } from")),
    state("ts-lock", "neverthrow", "lock file", "npx vitest run", swap("package.json", '"prettier": "2.2.1"', '"prettier": "2.3.2"'), may="package-lock.json",
          accept="node -e \"process.exit(require('./package-lock.json').packages['node_modules/prettier'].version === '2.3.2' ? 0 : 1)\" && npm ci --ignore-scripts --dry-run"),
    state("ts-snapshot", "neverthrow", "snapshot", "npx vitest run", swap(ERROR, "{ type: 'Err', value", "{ type: 'Error', value"), may="tests/__snapshots__/describe.test.ts.snap",
          accept="CI=1 npx vitest run"),
    state("ts-behaviour", "neverthrow", "culprit", "npx vitest run", swap(UTILS, "acc = err([result.error])", "acc = err([])")),
    state("ts-dependency", "neverthrow", "missing dependency", "npx vitest run",
          swap(ERROR, "import { Result } from '../result'\n", "import invariant from 'tiny-invariant'\nimport { Result } from '../result'\n"),
          swap(ERROR, "  const maybeStack", "  invariant(typeof message === 'string')\n  const maybeStack"), may="package.json package-lock.json",
          accept="node -e \"const p = require('./package.json'); process.exit({...p.dependencies, ...p.devDependencies}['tiny-invariant'] ? 0 : 1)\" && npm ci --ignore-scripts --dry-run"),
    state("js-quotes", "picomatch", "linter", "npm run lint", swap("lib/utils.js", "return process.platform === 'win32'", 'return process.platform === "win32"')),
    state("js-renamed", "picomatch", "missed caller", "npm run mocha", rename(".js", "escapeRegex", "escapeChars", ("lib/parse.js", 5)), good=[rename(".js", "escapeRegex", "escapeChars")]),
    state("js-require-lost", "picomatch", "missing import", "npm run mocha", swap("lib/scan.js", "const utils = require('./utils');\n", "")),
    state("js-behaviour", "picomatch", "culprit", "npm run mocha", swap("lib/utils.js", "windows ? /[\\\\/]/ : '/'", "'/'")),
    # Rust
    state("rust-format", "heck", "formatting", "cargo fmt --check", swap("src/lib.rs", "    for c in s.chars() {\n        write!(f, \"{}\", c.to_uppercase())?;\n", "    for c in s.chars()\n    {\n      write!(f,\"{}\",c.to_uppercase())?;\n")),
    state("rust-clippy", "heck", "linter", "cargo clippy -- -D warnings", swap("src/lib.rs", "        write!(f, \"{}\", c.to_uppercase())?;\n    }\n\n    Ok(())", "        write!(f, \"{}\", c.to_uppercase())?;\n    }\n\n    return Ok(());")),
    state("rust-import-lost", "heck", "missing import", "cargo test", swap("src/kebab.rs", "use crate::{lowercase, transform};\n", "use crate::lowercase;\n"), may="src/kebab.rs",
          accept="cargo test && grep -q 'lowercase, transform\\|crate::transform' src/kebab.rs"),
    state("rust-renamed", "heck", "missed caller", "cargo test", rename(".rs", "capitalize", "capitalize_word", ("src/train.rs", 2)), good=[rename(".rs", "capitalize", "capitalize_word")]),
    state("rust-behaviour", "heck", "culprit", "cargo test", swap("src/lib.rs", "chars.peek().is_none()", "chars.peek().is_some()")),
    state("rust-unused-import", "shell-words", "unused import", "cargo clippy --all-targets -- -D warnings", swap("src/lib.rs", "use core::fmt;\n", "use core::cmp;\nuse core::fmt;\n")),
    state("rust-lock", "shell-words", "lock file", "cargo test --locked", swap("Cargo.toml", 'version = "1.1.0"', 'version = "1.2.0"'), good=[swap("Cargo.lock", 'version = "1.1.0"', 'version = "1.2.0"')]),
    state("rust-type", "shell-words", "type error with a suggestion", "cargo test", lambda files: files.update({"src/lib.rs": files["src/lib.rs"] + "\n/// What an empty word is quoted as.\npub fn blank() -> String {\n    \"''\"\n}\n"}), may="src/lib.rs",
          accept="grep -q \"^pub fn blank() -> String\" src/lib.rs && cargo test"),
    # Go
    state("go-format", "go-humanize", "formatting", GOFMT, swap("si.go", "\tvalue = math.Copysign(value, input)\n\n", "   value = math.Copysign( value,input )\n\n")),
    state("go-vet", "go-humanize", "culprit", "go vet ./...", swap("bytes.go", 'fmt.Sprintf("%d B", s)', 'fmt.Sprintf("%s B", s)')),
    state("go-unused-import", "go-humanize", "unused import", "go test ./...", swap("english/words.go", '\t"fmt"\n\t"strings"\n', '\t"fmt"\n\t"os"\n\t"strings"\n')),
    state("go-import-lost", "go-humanize", "missing import", "go test ./...", lambda files: files.update({"ordinals.go": files["ordinals.go"] + "\n// Upper gives the ordinal in capital letters.\nfunc Upper(x int) string {\n\treturn strings.ToUpper(Ordinal(x))\n}\n"}), may="ordinals.go",
          accept='grep -q \'"strings"\' ordinals.go && grep -q "^func Upper" ordinals.go && go vet . && go test ./...'),
    state("go-renamed", "go-humanize", "missed caller", "go test ./...", rename(".go", "logn", "logBase", ("si.go", 1)), good=[rename(".go", "logn", "logBase")]),
    state("go-behaviour", "go-humanize", "culprit", "go test ./...", swap("ordinals.go", "x%100 != 12", "x%100 != 22")),
    state("go-signature", "go-version", "missed caller", "go test ./...",
          swap("constraint.go", "func prereleaseCheck(v, c *Version) bool {\n", "func prereleaseCheck(v, c *Version, loose bool) bool {\n\tif loose {\n\t\treturn true\n\t}\n"),
          *[swap("constraint.go", f"prereleaseCheck(v, c) && v.Compare(c) {rest}", f"prereleaseCheck(v, c, false) && v.Compare(c) {rest}") for rest in ("== 1", "== -1", ">= 0")],
          swap("constraint.go", "!prereleaseCheck(v, c) ||", "!prereleaseCheck(v, c, false) ||"),
          good=[swap("constraint.go", "prereleaseCheck(v, c) && v.Compare(c) <= 0", "prereleaseCheck(v, c, false) && v.Compare(c) <= 0")]),
    state("go-method-renamed", "go-version", "missed caller", "go test ./...", rename(".go", "equalSegments", "sameSegments", ("constraint.go", 1)), good=[rename(".go", "equalSegments", "sameSegments")]),
    state("go-operator", "go-version", "culprit", "go test ./...", swap("constraint.go", "i < c.si-1; i++", "i < c.si; i++")),
    # Java
    state("java-import-lost", "semver4j", "missing import", "sh test.sh", swap(SEM + "Range.java", "import java.util.Objects;\n", "")),
    state("java-renamed", "semver4j", "missed caller", "sh test.sh", rename("Requirement.java", "extrapolateVersion", "fillVersion", (SEM + "Requirement.java", 6)), good=[rename("Requirement.java", "extrapolateVersion", "fillVersion")]),
    state("java-semicolon", "semver4j", "syntax", "sh test.sh", swap(SEM + "Requirement.java", "upper = extrapolateVersion(upper).withIncMinor();", "upper = extrapolateVersion(upper).withIncMinor()")),
    state("java-behaviour", "semver4j", "culprit", "sh test.sh", swap(SEM + "Semver.java", "this.getMinor() > otherMinor)", "this.getMinor() >= otherMinor)")),
    state("java-signature", "semver4j", "missed caller", "sh test.sh",
          swap(SEM + "Semver.java", "withInc(int majorInc, int minorInc, int patchInc) {", "withInc(int majorInc, int minorInc, int patchInc, boolean keepsBuild) {"),
          swap(SEM + "Semver.java", "minor, patch, true, true);", "minor, patch, true, keepsBuild);"), swap(SEM + "Semver.java", "withInc(increment, 0, 0)", "withInc(increment, 0, 0, true)"),
          swap(SEM + "Semver.java", "withInc(0, increment, 0)", "withInc(0, increment, 0, true)"), good=[swap(SEM + "Semver.java", "withInc(0, 0, increment)", "withInc(0, 0, increment, true)")]),
    state("java-collection-lost", "java-string-similarity", "missing import", "sh test.sh", swap(SIM + "Jaccard.java", "import java.util.Set;\n", "")),
    state("java-inherited-renamed", "java-string-similarity", "missed caller", "sh test.sh", rename(".java", "getProfile", "profileOf", (SIM + "Jaccard.java", 2)), good=[rename(".java", "getProfile", "profileOf")]),
    state("java-arithmetic", "java-string-similarity", "culprit", "sh test.sh", swap(SIM + "JaroWinkler.java", "transpositions / 2, prefix", "transpositions, prefix")),
]  # fmt: skip
GEN = "src/main/java/com/mifmif/common/regex/"
STRCASE_TEXT = "\n// LowerTrim gives the text in small letters, without blanks around it.\nfunc LowerTrim(s string) string {\n\treturn strings.ToLower(strings.TrimSpace(s))\n}\n"
SECOND_TREES = {
    "fill-range": Tree("JavaScript", "bef6570", {"README.md": "\n## Maintenance\n\nSee NOTES.md.\n"}, modules=True),
    "scopeguard": Tree("Rust", "bb98822", {"README.rst": "\nMaintenance\n-----------\n\nSee NOTES.md.\n"}, "cargo clippy --offline --fix --allow-no-vcs && cargo fmt && rm -rf target && sed -i /Cargo.lock/d .gitignore"),
    "rust-fnv": Tree("Rust", "4e55052", {"README.md": "\n## Maintenance\n\nSee NOTES.md.\n"}),
    "strcase": Tree("Go", "531aaa4", {"README.md": "\n## Maintenance\n\nSee NOTES.md.\n"}, "gofmt -w ."),
    "go-shellquote": Tree("Go", "95032a8", {"README": "\nMaintenance: see NOTES.md.\n"}, "go mod init github.com/kballard/go-shellquote"),
    "Generex": Tree("Java", "cda5912", {"README.md": "\n## Maintenance\n\nSee NOTES.md.\n"}, JARS),
}  # fmt: skip
SECOND = [
    state("js-helper-renamed", "fill-range", "missed caller", "npm run mocha", rename("index.js", "toMaxLen", "padTo", ("index.js", 3)), good=[rename("index.js", "toMaxLen", "padTo")]),
    state("js-import-lost", "fill-range", "missing import", "npm run mocha", swap("index.js", "const util = require('util');\n", "")),
    state("js-operator", "fill-range", "culprit", "npm run mocha", swap("index.js", "while (input.length < maxLength) input", "while (input.length <= maxLength) input")),
    state("rust-layout", "rust-fnv", "formatting", "cargo fmt -- --check", swap("lib.rs", "        i += 1;\n    }\n    hash\n", "          i+=1;\n    }\n    hash\n")),
    state("rust-clone", "rust-fnv", "linter", "cargo clippy -- -D warnings", swap("lib.rs", "        self.0\n", "        self.0.clone()\n")),
    state("rust-use-lost", "rust-fnv", "missing import", "cargo test", swap("lib.rs", "use std::collections::{HashMap, HashSet};\n", "use std::collections::HashMap;\n"), may="lib.rs",
          accept="cargo test && grep -q 'HashMap, HashSet\\|collections::HashSet' lib.rs"),
    state("rust-constant-renamed", "rust-fnv", "missed caller", "cargo test", rename("lib.rs", "INITIAL_STATE", "OFFSET_BASIS", ("lib.rs", 3)), good=[rename("lib.rs", "INITIAL_STATE", "OFFSET_BASIS")]),
    state("rust-method-renamed", "scopeguard", "missed caller", "cargo test --lib", rename("lib.rs", "should_run", "is_due", ("src/lib.rs", 5)), good=[rename("lib.rs", "should_run", "is_due")]),
    state("rust-negation", "scopeguard", "culprit", "cargo test --lib", swap("src/lib.rs", "        !std::thread::panicking()", "        std::thread::panicking()")),
    state("go-layout", "strcase", "formatting", GOFMT, swap("snake.go", "\tn.Grow(len(s) + 2)", "    n.Grow( len(s)+2 )")),
    state("go-package-lost", "strcase", "missing import", "go test ./...", lambda files: files.update({"acronyms.go": files["acronyms.go"] + STRCASE_TEXT}), may="acronyms.go",
          accept="grep -q '\"strings\"' acronyms.go && grep -q '^func LowerTrim' acronyms.go && go vet ./... && go test ./..."),
    state("go-function-renamed", "strcase", "missed caller", "go test ./...", rename(".go", "toCamelInitCase", "convertToCamel", ("camel.go", 3)), good=[rename(".go", "toCamelInitCase", "convertToCamel")]),
    state("go-signature-grown", "strcase", "missed caller", "go test ./...", swap("camel.go", "func toCamelInitCase(s string, initCase bool) string {\n", "func toCamelInitCase(s string, initCase bool, keepDots bool) string {\n\tif keepDots {\n\t\treturn s\n\t}\n"),
          swap("camel.go", "toCamelInitCase(s, true)", "toCamelInitCase(s, true, false)"), good=[swap("camel.go", "toCamelInitCase(s, false)", "toCamelInitCase(s, false, false)")]),
    state("go-unused", "go-shellquote", "unused import", "go test ./...", swap("quote.go", '\t"bytes"\n\t"strings"\n', '\t"bytes"\n\t"fmt"\n\t"strings"\n')),
    state("go-condition", "go-shellquote", "culprit", "go test ./...", swap("quote.go", "\tif len(word) == 0 {", "\tif len(word) == 1 {")),
    state("java-import-gone", "Generex", "missing import", "sh test.sh", swap(GEN + "Node.java", "import java.util.List;\n", "")),
    state("java-getter-renamed", "Generex", "missed caller", "sh test.sh", rename(".java", "getNbrMatchedString", "countMatches", (GEN + "Generex.java", 3)), good=[rename(".java", "getNbrMatchedString", "countMatches")]),
    state("java-bracket", "Generex", "syntax", "sh test.sh", swap(GEN + "Generex.java", "        return rootNode.getNbrMatchedString();", "        return rootNode.getNbrMatchedString(;")),
    state("java-misspelt", "Generex", "misspelt name", "sh test.sh", swap(GEN + "Generex.java", "        return transitions.size() == 0;", "        return transitionz.size() == 0;")),
    state("java-boundary", "Generex", "culprit", "sh test.sh", swap(GEN + "Generex.java", "result.substring(1, result.length() - 1)", "result.substring(1, result.length())")),
]  # fmt: skip
PAR, HELPERS = "src/main/java/org/scijava/parsington/", "src/full.js"  # fmt: skip
MS_LAY_OUT = """
rm -rf pnpm-lock.yaml pnpm-workspace.yaml .npmrc .husky jest.config.ts lint-staged.config.ts tsdown.config.ts
echo '{ "preset": "ts-jest", "testMatch": ["**/src/**/*.test.ts"] }' > jest.config.json
npm pkg delete packageManager scripts.test:nodejs scripts.test:edge scripts.build scripts.prepublishOnly scripts.attw scripts.precommit scripts.prepare
npm pkg delete devDependencies.@arethetypeswrong/cli devDependencies.@edge-runtime/jest-environment devDependencies.husky devDependencies.lint-staged devDependencies.tsdown
npm pkg set "scripts.test=jest --env node" "scripts.lint=biome lint --error-on-warnings"
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
"""
HEX_LAY_OUT = """
rm -rf benches tests src/serde.rs
sed -i -e '/^\\[\\[bench\\]\\]/,/^harness/d' -e '/^serde/d' -e '/^\\[dev-dependencies\\]/,/^serde_json/d' Cargo.toml
sed -i -e '/pretty_assertions/d' -e '/serde/d' src/lib.rs src/error.rs
cargo fmt
"""
# The abstract classes of the tests get names that test.sh does not run.
PAR_LAY_OUT = f"""{JARS}
mv src/test/java/org/scijava/parsington/AbstractTest.java src/test/java/org/scijava/parsington/Trees.java
mv src/test/java/org/scijava/parsington/eval/AbstractStandardEvaluatorTest.java src/test/java/org/scijava/parsington/eval/StandardEvaluation.java
sed -i -e 's/\\bAbstractTest\\b/Trees/g' -e 's/\\bAbstractStandardEvaluatorTest\\b/StandardEvaluation/g' $(find src/test -name '*.java')
"""
ROUND_TRIP = """import { it } from "vitest";
import fc from "fast-check";
import { parseCookie, stringifyCookie } from "./index.js";

it("parses what it stringified", () => {
  fc.assert(
    fc.property(
      fc.string(),
      (value) => parseCookie(stringifyCookie({ key: value })).key === value,
    ),
  );
});
"""
FOLD = "\n// ComputeDistanceFold computes the distance without regard to case.\nfunc ComputeDistanceFold(a, b string) int {\n\treturn ComputeDistance(strings.ToLower(a), strings.ToLower(b))\n}\n"
DURATION = "\n/**\n * Whether `parse` understands the text.\n */\nexport function isDuration(text: string) {\n  return !Number.isNaN(parse(text));\n}\n"
UNITS = "import { StringValue } from './index';\n\nexport const DAY: StringValue = '1 day';\n"
THIRD_TREES = {
    "cookie": Tree("TypeScript", "8e48f21", {"src/blank.ts": 'export const isBlank = (text: string): boolean => text.trim() === "";\n'}, modules=True),
    "ms": Tree("TypeScript", "4b85938", {"src/blank.ts": "export const isBlank = (text: string): boolean => text.trim() === '';\n"}, MS_LAY_OUT, True),
    "klona": Tree("JavaScript", "e563341", {"readme.md": "\n## Maintenance\n\nSee NOTES.md.\n"}, modules=True),
    "go-wordwrap": Tree("Go", "ecf0936", {"blank.go": 'package wordwrap\n\nimport "strings"\n\n// IsBlank says whether the text has no word.\nfunc IsBlank(s string) bool {\n\treturn strings.TrimSpace(s) == ""\n}\n'}),
    "levenshtein": Tree("Go", "51b298f", {"README.md": "\n## Maintenance\n\nSee NOTES.md.\n"}),
    "rust-hex": Tree("Rust", "5cb1fe8", {"README.md": "\n## Maintenance\n\nSee NOTES.md.\n"}, HEX_LAY_OUT),
    "parsington": Tree("Java", "ed0e3f8", {PAR + "Blank.java": "package org.scijava.parsington;\n\npublic final class Blank {\n\n\tprivate Blank() {}\n\n\tpublic static boolean isBlank(final String text) {\n\t\treturn text.trim().isEmpty();\n\t}\n}\n"}, PAR_LAY_OUT),
}  # fmt: skip


def move_types(files: Files) -> None:
    """Move the types of ms to a file of their own; the culprit exports one that it also needs, and does not import it."""
    text = files["src/index.ts"]
    start, end = text.index("type Years ="), text.index("interface Options {")
    files["src/types.ts"] = (
        text[start:end].replace("type Unit =", "export type Unit =").rstrip() + "\n"
    )
    files["src/index.ts"] = (
        "import type { Unit } from './types';\n\n"
        + text[:start]
        + "export type { StringValue } from './types';\n\n"
        + text[end:]
    )


HELPER_RENAMED = [swap(HELPERS, "function set(obj, key, val) {", "function define(obj, key, val) {"), swap(HELPERS, "\t\t\tset(tmp, list[i],", "\t\t\tdefine(tmp, list[i],")]  # fmt: skip
THIRD = [
    # TypeScript and JavaScript
    state("ts-domain-snapshot", "cookie", "snapshot", "npx vitest run", swap("src/index.ts", "        setCookie.domain = val;\n", '        setCookie.domain = val?.replace(/^\\./, "");\n'),
          may="src/__snapshots__/parse-set-cookie.spec.ts.snap", accept="CI=1 npx vitest run"),
    state("ts-lock-behind", "cookie", "lock file", "npx vitest run", swap("package.json", '"top-sites": "1.1.194"', '"top-sites": "1.1.222"'), may="package-lock.json",
          accept="node -e \"process.exit(require('./package-lock.json').packages['node_modules/top-sites'].version === '1.1.222' ? 0 : 1)\" && npm ci --ignore-scripts --dry-run"),
    state("ts-package-undeclared", "cookie", "missing dependency", "npx vitest run", lambda files: files.update({"src/round-trip.spec.ts": ROUND_TRIP}), may="package.json package-lock.json",
          accept="node -e \"const p = require('./package.json'); process.exit({...p.dependencies, ...p.devDependencies}['fast-check'] ? 0 : 1)\" && npm ci --ignore-scripts --dry-run"),
    state("ts-helper-renamed", "cookie", "missed caller", "npx tsc --noEmit", rename("src/index.ts", "valueSlice", "sliceTrimmed", ("src/index.ts", 3)), good=[rename("src/index.ts", "valueSlice", "sliceTrimmed")]),
    state("ts-layout", "ms", "formatting", "npm run format", swap("src/index.ts", "  return options?.long ? fmtLong(ms) : fmtShort(ms);\n", "  return options?.long\n      ? fmtLong( ms )\n      : fmtShort(ms)\n")),
    state("ts-import-type", "ms", "linter", "npm run lint", lambda files: files.update({"src/units.ts": UNITS}), good=[swap("src/units.ts", "import { StringValue }", "import type { StringValue }")]),
    state("ts-type-moved", "ms", "missing import", "npm run typecheck", move_types, may="src/index.ts",
          accept="tr '\\n' ' ' < src/index.ts | grep -q \"import [^;]*StringValue[^;]* from './types\" && grep -q 'export .*StringValue' src/index.ts && npm run typecheck && npm test"),
    state("ts-return-type", "ms", "type error with a suggestion", "npm run typecheck", lambda files: files.update({"src/index.ts": files["src/index.ts"] + DURATION}), may="src/index.ts",
          accept="grep -q '^export function isDuration(text: string): boolean {' src/index.ts && npm run typecheck"),
    state("ts-plural", "ms", "culprit", "npm test", swap("src/index.ts", "msAbs >= n * 1.5", "msAbs >= n")),
    state("js-set-renamed", "klona", "missed caller", "npm test", *HELPER_RENAMED, good=[*HELPER_RENAMED, swap(HELPERS, "\t\t\tset(tmp, k,", "\t\t\tdefine(tmp, k,")]),
    state("js-assert-lost", "klona", "missing import", "npm test", swap("test/suites/map.js", "import * as assert from 'assert';\n", ""), may="test/suites/map.js",
          accept="grep -q \"^import .*assert.* from '\\(node:\\)\\?assert'\" test/suites/map.js && npm test"),
    state("js-first-item", "klona", "culprit", "npm test", swap("src/index.js", "for (tmp=Array(k); k--;) {", "for (tmp=Array(k); --k;) {")),
    # Rust
    state("rust-mut-lost", "rust-hex", "type error with a suggestion", "cargo test", swap("src/lib.rs", "let mut out = vec![0; hex.len() / 2];", "let out = vec![0; hex.len() / 2];")),
    state("rust-field-name", "rust-hex", "linter", "cargo clippy -- -D warnings", swap("src/lib.rs", "            table,\n            next: None,", "            table: table,\n            next: None,")),
    state("rust-function-renamed", "rust-hex", "missed caller", "cargo test", rename("src/lib.rs", "val", "decode_pair", ("src/lib.rs", 3)), good=[rename("src/lib.rs", "val", "decode_pair")]),
    state("rust-index", "rust-hex", "culprit", "cargo test", swap("src/lib.rs", "index: idx + 1,", "index: idx,")),
    # Go
    state("go-indent", "go-wordwrap", "formatting", GOFMT, swap("wordwrap.go", "\t\t\tspaceBuf.WriteRune(char)\n\t\t\tspaceBufLen++\n", "            spaceBuf.WriteRune( char )\n\t\t\tspaceBufLen ++\n")),
    state("go-limit", "go-wordwrap", "culprit", "go test ./...", swap("wordwrap.go", "current+wordBufLen+spaceBufLen > lim", "current+wordBufLen+spaceBufLen >= lim")),
    state("go-import-left", "levenshtein", "unused import", "go test ./...", *[swap("levenshtein.go", f"return utf8.RuneCountInString({name})", f"return len([]rune({name}))") for name in "ab"],
          good=[swap("levenshtein.go", 'import "unicode/utf8"\n\n', "")], may="levenshtein.go", accept="! grep -q '\"unicode/utf8\"' levenshtein.go && grep -q 'return len(\\[\\]rune(b))' levenshtein.go && go vet ./... && go test ./..."),
    state("go-strings-lost", "levenshtein", "missing import", "go test ./...", lambda files: files.update({"levenshtein.go": files["levenshtein.go"] + FOLD}), may="levenshtein.go",
          accept="grep -q '\"strings\"' levenshtein.go && grep -q '^func ComputeDistanceFold' levenshtein.go && go vet ./... && go test ./..."),
    # Java
    state("java-deque-lost", "parsington", "missing import", "sh test.sh", swap(PAR + "ParseOperation.java", "import java.util.Deque;\n", "")),
    state("java-word-signature", "parsington", "missed caller", "sh test.sh", swap(PAR + "Literals.java", "\t\tfinal String word)\n", "\t\tfinal String word, final boolean ignoreCase)\n"),
          swap(PAR + "Literals.java", "\t\t\tif (pos.ch(s, i) != word.charAt(i)) return false;\n", "\t\t\tfinal char c = pos.ch(s, i);\n\t\t\tif ((ignoreCase ? Character.toLowerCase(c) : c) != word.charAt(i)) return false;\n"),
          swap(PAR + "Literals.java", 'isWord(s, pos, "true")', 'isWord(s, pos, "true", false)'), good=[swap(PAR + "Literals.java", 'isWord(s, pos, "false")', 'isWord(s, pos, "false", false)')]),
    state("java-parenthesis", "parsington", "syntax", "sh test.sh", swap(PAR + "ParseOperation.java", "if (Tokens.isGroup(token)) pos.die", "if (Tokens.isGroup(token) pos.die")),
    state("java-associativity", "parsington", "culprit", "sh test.sh", swap(PAR + "ParseOperation.java", "p1 <= p2 || //", "p1 < p2 || //")),
]  # fmt: skip
NOTES = "\n## Maintenance\n\nSee NOTES.md.\n"
PATTERNS = """import { expect, it } from "vitest";
import { pathToRegexp } from "./index.js";

const paths = ["/", "/:a", "/:a-:b", "/*a", "/:a/*b/c", "/a{/:b}"];

it.each(paths)("compiles %s", (path) => {
  expect(pathToRegexp(path).regexp.source).toMatchSnapshot();
});
"""
# Only what the states run is installed: neither benchmarks nor the checks of bundles and their size.
PTR_LAY_OUT = f"""
cat > src/patterns.spec.ts <<'E'
{PATTERNS}E
rm src/redos.spec.ts src/index.bench.ts
sed -i /package-lock.json/d .gitignore
npm pkg delete scripts.prepare scripts.bench scripts.size size-limit devDependencies.size-limit devDependencies.@size-limit/preset-small-lib
npm pkg delete devDependencies.recheck devDependencies.@vitest/coverage-v8 devDependencies.@types/semver
npm pkg set "scripts.test=ts-scripts test"
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
ln -s {{modules}} node_modules && npx vitest run src/patterns.spec.ts && rm node_modules
"""
INVARIANT_LAY_OUT = """
rm yarn.lock rollup.config.mjs
npm pkg delete size-limit scripts.test:size scripts.build scripts.build:flow scripts.build:dist scripts.build:clean scripts.prepublishOnly
npm pkg delete devDependencies.size-limit devDependencies.@size-limit/preset-small-lib devDependencies.rollup-plugin-terser devDependencies.rimraf devDependencies.@types/rollup
sed -i -e 's/"yarn jest"/"jest"/' -e 's/yarn prettier /prettier /' -e 's/yarn \\(prettier:check\\|typescript:check\\)/npm run \\1/g' package.json
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
"""
DIFF_LAY_OUT = """
rm -rf yarn.lock .yarnrc.yml .babelrc runtime.js karma.conf.js rollup.config.mjs examples test-d images
npm pkg delete packageManager nyc scripts._test scripts.build scripts.check-types scripts.generate-cjs scripts.run-attw scripts.run-tsd scripts.run-rollup scripts.run-uglify
for name in @arethetypeswrong/cli @babel/core @babel/preset-env @babel/register babel-loader babel-plugin-istanbul cross-env karma karma-mocha karma-mocha-reporter \\
    karma-sourcemap-loader karma-webpack nyc rollup tsd uglify-js webpack webpack-dev-server; do npm pkg delete devDependencies.$name; done
npm pkg set scripts.lint=eslint "scripts.test=npm run generate-esm && npm run run-mocha" "scripts.run-mocha=mocha --timeout 20000 'test/**/*.js'"
sed -i 's/yarn tsc/tsc/' package.json
sed -i 's/__dirname/import.meta.dirname/' test/patch/readme-rename-example.js
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
"""
EVENTS_LAY_OUT = """
rm pnpm-lock.yaml test/benchmark.js
npm pkg delete size-limit c8 clean-publish scripts.test:size devDependencies.size-limit devDependencies.@size-limit/preset-small-lib
npm pkg delete devDependencies.benchmark devDependencies.c8 devDependencies.clean-publish
npm pkg set scripts.test:coverage=bnt "scripts.test=npm run test:coverage && npm run test:lint && npm run test:types"
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
"""
DEQUAL_LAY_OUT = "rm -r bench && sed -i '/-lock/d' .gitignore && npm install --package-lock-only --ignore-scripts --no-audit --no-fund"
SLUGIFY_LAY_OUT = """
sed -i /package-lock.json/d .gitignore
npm pkg delete devDependencies.coveralls devDependencies.github-changes devDependencies.nyc scripts.test:cov scripts.build:changelog
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
"""
COPIES = """import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { klona } from 'klona';
import { dequal } from '../src';

test('a deep copy is equal', () => {
	const foo = { a: [1, { b: new Date(0) }], c: new Map([['d', new Set([1])]]) };
	assert.ok(dequal(klona(foo), foo));
});

test.run();
"""
FOURTH_TREES = {
    "path-to-regexp": Tree("TypeScript", "cbf3025", {"src/blank.ts": 'export const isBlank = (text: string): boolean => text.trim() === "";\n'}, PTR_LAY_OUT, True),
    "tiny-invariant": Tree("TypeScript", "b5587cf", {"src/blank.ts": "export const isBlank = (text: string): boolean => text.trim() === '';\n"}, INVARIANT_LAY_OUT, True),
    "jsdiff": Tree("TypeScript", "2d923ce", {"src/util/blank.ts": "export function isBlank(text: string): boolean {\n  return text.trim() === '';\n}\n"}, DIFF_LAY_OUT, True),
    "nanoevents": Tree("JavaScript", "0c2c886", {"README.md": NOTES}, EVENTS_LAY_OUT, True),
    "dequal": Tree("JavaScript", "37c21f6", {"readme.md": NOTES}, DEQUAL_LAY_OUT, True),
    "slugify": Tree("JavaScript", "29e903d", {"README.md": NOTES}, SLUGIFY_LAY_OUT, True),
}  # fmt: skip
WORD, STRING, OVERLAP = "src/diff/word.ts", "src/util/string.ts", "src/util/overlap.ts"


def move_overlap(files: Files) -> None:
    """Move the overlap of jsdiff to a file of its own; the culprit changes the import of the test, and not the one of the source."""
    text = files[STRING]
    start, end = text.index("export function maximumOverlap"), text.index("\n\n/**\n * Returns true if the string consistently uses Windows")  # fmt: skip
    files[OVERLAP], files[STRING] = text[start:end], text[:start] + text[end:].lstrip("\n")
    swap("test/util/string.js", "maximumOverlap, leadingWs, trailingWs} from '../../libesm/util/string.js';\n", "leadingWs, trailingWs} from '../../libesm/util/string.js';\nimport {maximumOverlap} from '../../libesm/util/overlap.js';\n")(files)  # fmt: skip


def drop_remove_suffix(files: Files) -> None:
    """Call the general function; the import of the special one is left."""
    files[WORD] = re.sub(r"\bremoveSuffix\((.+), (\w+)\)", r"replaceSuffix(\1, \2, '')", files[WORD])  # fmt: skip


FOURTH = [
    # TypeScript
    state("ts-wrapped-check", "path-to-regexp", "formatting", "npx ts-scripts check", swap("src/index.ts", "  const encoders = tokens.map((token) =>\n    tokenToFunction(token, delimiter, encode),\n  );\n", "  const encoders = tokens.map(token => tokenToFunction(token, delimiter, encode))\n")),
    state("ts-signature-shrunk", "path-to-regexp", "missed caller", "npm run build", swap("src/index.ts", 'function stringifyTokens(tokens: Token[], index: number): string {\n  let value = "";\n', 'function stringifyTokens(tokens: Token[]): string {\n  let value = "";\n  let index = 0;\n'),
          swap("src/index.ts", "stringifyTokens(data.tokens, 0)", "stringifyTokens(data.tokens)"), good=[swap("src/index.ts", "stringifyTokens(token.tokens, 0)", "stringifyTokens(token.tokens)")]),
    state("ts-pattern-snapshot", "path-to-regexp", "snapshot", "npm run specs", swap("src/index.ts", "`([^]+)`", "`([\\\\s\\\\S]+)`"), may="src/__snapshots__/patterns.spec.ts.snap", accept="CI=1 npm run specs"),
    state("ts-property-plural", "tiny-invariant", "type error with a suggestion", "npm run typescript:check", swap("test/message-behaviour.spec.ts", "expect(e.message).toEqual('Invariant failed: my message');", "expect(e.messages).toEqual('Invariant failed: my message');")),
    state("ts-function-moved", "jsdiff", "missing import", "npm run generate-esm", move_overlap, may=WORD, good=[swap(WORD, "maximumOverlap, ", ""), swap(WORD, "// Based on https", "import { maximumOverlap } from '../util/overlap.js';\n\n// Based on https")],
          accept="grep -q \"^import [^;]*maximumOverlap[^;]* from '../util/overlap.js'\" src/diff/word.ts && npm run lint && npm test"),
    state("ts-import-left", "jsdiff", "unused import", "npm run lint", drop_remove_suffix, good=[swap(WORD, "removePrefix, removeSuffix, maximumOverlap", "removePrefix, maximumOverlap")]),
    state("ts-order-lost", "jsdiff", "culprit", "npm test", swap("src/patch/reverse.ts", "reversePatch(patch)).reverse();", "reversePatch(patch));")),
    # JavaScript
    state("js-prefer-let", "nanoevents", "linter", "npm run test:lint", swap("index.js", "    ;(this.events[event] ||= []).push(cb)\n", "    const list = (this.events[event] ||= [])\n    list.push(cb)\n"), good=[swap("index.js", "const list", "let list")]),
    state("js-package-undeclared", "dequal", "missing dependency", "npm test", lambda files: files.update({"test/copies.js": COPIES}), may="package.json package-lock.json",
          accept="node -e \"const p = require('./package.json'); process.exit({...p.dependencies, ...p.devDependencies}.klona ? 0 : 1)\" && npm ci --ignore-scripts --dry-run"),
    state("js-find-renamed", "dequal", "missed caller", "npm test", rename("src/index.js", "find", "findKey", ("src/index.js", 3)), good=[rename("src/index.js", "find", "findKey")]),
    state("js-lock-behind", "slugify", "lock file", "npm run test:ci", swap("package.json", '"mocha": "^7.2.0"', '"mocha": "^8.4.0"'), may="package-lock.json",
          accept="node -e \"process.exit(require('./package-lock.json').packages['node_modules/mocha'].version.startsWith('8.') ? 0 : 1)\" && npm ci --ignore-scripts --dry-run"),
    state("js-parenthesis", "slugify", "syntax", "npm run test:ci", swap("slugify.js", "throw new Error('slugify: string argument expected')", "throw new Error('slugify: string argument expected'")),
]  # fmt: skip
# Only what the states run is installed: the shared configuration of ESLint asks for a newer node.
WHAT_LAY_OUT = """
rm eslint.config.mjs
for name in @eslint/compat @feedic/eslint-config eslint eslint-config-biome typescript-eslint; do npm pkg delete devDependencies.$name; done
npm pkg delete scripts.lint:es scripts.format:es
npm pkg set "scripts.lint=npm run lint:ts && npm run lint:biome" "scripts.format=npm run format:biome"
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
"""
TITLES = """import { expect, it } from "vitest";
import { titleCase } from "../src";

const titles = ["the-old-man-and-the-sea", "to-rome-via-milan", "a-tale-of-two-cities"];

it.each(titles)("writes %s", (title) => {
  expect(titleCase(title)).toMatchSnapshot();
});
"""
SCULE_LAY_OUT = f"""
cat > test/titles.test.ts <<'E'
{TITLES}E
rm pnpm-lock.yaml
npm pkg delete packageManager scripts.build scripts.release scripts.prepack
for name in @vitest/coverage-v8 changelogen unbuild; do npm pkg delete devDependencies.$name; done
npm pkg set "scripts.test=npm run lint && vitest run --typecheck"
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
ln -s {{modules}} node_modules && npx prettier --write test/titles.test.ts && npx vitest run test/titles.test.ts && rm node_modules
"""
AGREES = """import { expect, it } from "vitest";
import { kebabCase as other } from "change-case";
import { kebabCase } from "../src";

it.each(["fooBarBaz", "foo_bar", "FooBar"])("writes %s as change-case", (text) => {
  expect(kebabCase(text)).toBe(other(text));
});
"""
PLURALIZE_LAY_OUT = "npm pkg delete scripts.test-cov devDependencies.istanbul && npm pkg set 'scripts.test=npm run lint && npm run test-spec' && npm install --package-lock-only --ignore-scripts --no-audit --no-fund"
MRI_LAY_OUT = "rm -r bench && sed -i '/-lock/d' .gitignore && npm install --package-lock-only --ignore-scripts --no-audit --no-fund"
XML_LAY_OUT = "rm -r fuzz afl-fuzz && cargo clippy --offline --fix --allow-no-vcs && cargo fmt && rm -rf target Cargo.lock"
EXP_LAY_OUT = f"{JARS} && rm src/test/java/net/objecthunter/exp4j/PerformanceTest.java"
# Two of its tests mock readers and writers of Java, which a newer JDK does not allow.
JSON_LAY_OUT = f"rm com.eclipsesource.json/src/test/java/com/eclipsesource/json/JsonValue_Test.java && mv com.eclipsesource.json/src src && rm -r com.eclipsesource.json com.eclipsesource.json.performancetest && {JARS}"
FIFTH_TREES = {
    "css-what": Tree("TypeScript", "f714aa1", {"src/blank.ts": "export function isBlank(text: string): boolean {\n    return text.trim().length === 0;\n}\n"}, WHAT_LAY_OUT, True),
    "node-jsonc-parser": Tree("TypeScript", "5f6bd18", {"src/impl/blank.ts": "export function isBlank(text: string): boolean {\n\treturn text.trim().length === 0;\n}\n"}, "sed -i 's/\\r$//' LICENSE.md", True),
    "scule": Tree("TypeScript", "8f56148", {"src/blank.ts": 'export function isBlank(text: string): boolean {\n  return text.trim() === "";\n}\n'}, SCULE_LAY_OUT, True),
    "pluralize": Tree("JavaScript", "cba2fef", {"Readme.md": NOTES}, PLURALIZE_LAY_OUT, True),
    "mri": Tree("JavaScript", "62b9ce4", {"readme.md": NOTES}, MRI_LAY_OUT, True),
    "flatqueue": Tree("JavaScript", "db3cebf", {"README.md": NOTES}, modules=True),
    "rust-number-prefix": Tree("Rust", "eb6ebd2", {"README.md": NOTES}),
    "xmlparser": Tree("Rust", "2de7300", {"README.md": NOTES}, XML_LAY_OUT),
    "go-shellwords": Tree("Go", "fd1aa6c", {"README.md": NOTES}),
    "go-pluralize": Tree("Go", "8c94b92", {"README.md": NOTES}, "gofmt -w ."),
    "exp4j": Tree("Java", "4657309", {"README.md": NOTES}, EXP_LAY_OUT),
    "minimal-json": Tree("Java", "c091e69", {"README.md": NOTES}, JSON_LAY_OUT),
}  # fmt: skip
WHAT, CASES = "src/parse.ts", "pluralize.go"
EXP, JSON = "src/main/java/net/objecthunter/exp4j/", "src/main/java/com/eclipsesource/json/"
BENCH = """
import TinyQueue from 'tinyqueue';

const t = new TinyQueue([], (a, b) => a.value - b.value);

console.time(`tinyqueue push ${N}`);
for (let i = 0; i < N; i++) t.push({i, value: data[i]});
console.timeEnd(`tinyqueue push ${N}`);
"""


def move_traversal(files: Files) -> None:
    """Move a function of css-what to a file of its own; the file that it leaves still calls it."""
    text = files[WHAT]
    start, end = text.index("/**\n * Checks whether a specific selector is a traversal."), text.index("const stripQuotesFromPseudos")  # fmt: skip
    files["src/traversal.ts"] = (
        'import { type Selector, SelectorType, type Traversal } from "./types.js";\n\n'
        + text[start:end].rstrip()
        + "\n"
    )
    files[WHAT] = text[:start] + text[end:]
    swap(WHAT, "    type Traversal,\n", "")(files)
    swap("src/index.ts", "export { isTraversal, parse } from", "export { parse } from")(files)
    swap("src/index.ts", 'export * from "./types.js"', 'export { isTraversal } from "./traversal.js";\nexport * from "./types.js"')(files)  # fmt: skip


def move_case(files: Files) -> None:
    """Move a function of go-pluralize to a new file, without the import that it needs."""
    text = files[CASES]
    start, end = text.index("func restoreCase"), text.index("// isExpr -- helper")
    files["case.go"] = "package pluralize\n\n" + text[start:end].rstrip() + "\n"
    files[CASES] = text[:start] + text[end:]


FIFTH = [
    # TypeScript
    state("ts-layout-biome", "css-what", "formatting", "npm run lint:biome", swap("src/stringify.ts", "    return escapedName.length > 0 ? escapedName + name.slice(lastIndex) : name;\n", "    return escapedName.length > 0\n      ? escapedName+name.slice(lastIndex)\n        : name\n")),
    state("ts-attribute-signature", "css-what", "missed caller", "npm run build", swap(WHAT, "addSpecialAttribute(name: string, action: AttributeAction) {\n", 'addSpecialAttribute(name: "class" | "id") {\n        const action =\n            name === "class" ? AttributeAction.Element : AttributeAction.Equals;\n'),
          swap(WHAT, 'addSpecialAttribute("class", AttributeAction.Element)', 'addSpecialAttribute("class")'), good=[swap(WHAT, 'addSpecialAttribute("id", AttributeAction.Equals)', 'addSpecialAttribute("id")')]),
    state("ts-traversal-moved", "css-what", "missing import", "npm run build", move_traversal, may=WHAT, good=[swap(WHAT, "import {\n    AttributeAction,", 'import { isTraversal } from "./traversal.js";\nimport {\n    AttributeAction,')],
          accept="tr '\\n' ' ' < src/parse.ts | grep -q 'import *{ *isTraversal,\\? *} *from *.\\./traversal.js' && npm run build && npm run test:vi"),
    state("ts-type-left", "css-what", "unused import", "npm run build", swap(WHAT, "                const attributeSelector: AttributeSelector = {\n", "                tokens.push({\n"), swap(WHAT, "                    ignoreCase,\n                };\n\n                tokens.push(attributeSelector);\n", "                    ignoreCase,\n                });\n"),
          good=[swap(WHAT, "    type AttributeSelector,\n", "")]),
    state("ts-export-lost", "node-jsonc-parser", "changed export", "npm run compile", swap("src/impl/format.ts", "export function isEOL(", "function isEOL(")),
    state("ts-types-lock", "node-jsonc-parser", "lock file", "npm ci && npm test", swap("package.json", '"@types/node": "22.x"', '"@types/node": "24.x"'), may="package-lock.json",
          accept="node -e \"process.exit(require('./package-lock.json').packages['node_modules/@types/node'].version.startsWith('24.') ? 0 : 1)\" && npm ci --ignore-scripts --dry-run"),
    state("ts-title-snapshot", "scule", "snapshot", "npx vitest run", swap("src/index.ts", "|on|or|the|to|with)$/i", "|on|or|the|to|via|with)$/i"), may="test/__snapshots__/titles.test.ts.snap", accept="CI=1 npx vitest run"),
    state("ts-test-package", "scule", "missing dependency", "npx vitest run", lambda files: files.update({"test/agrees.test.ts": AGREES}), may="package.json package-lock.json",
          accept="node -e \"const p = require('./package.json'); process.exit({...p.dependencies, ...p.devDependencies}['change-case'] ? 0 : 1)\" && npm ci --ignore-scripts --dry-run"),
    state("ts-falling-edge", "scule", "culprit", "npx vitest run", swap("src/index.ts", "isUpper === false && buff.length > 1", "isUpper === false && buff.length > 0")),
    # JavaScript
    state("js-double-quotes", "pluralize", "linter", "npm run lint", swap("pluralize.js", "      return args[index] || '';\n", '      return args[index] || ""\n')),
    state("js-case-renamed", "pluralize", "missed caller", "npm run test-spec", rename("pluralize.js", "restoreCase", "matchCase", ("pluralize.js", 5)), good=[rename("pluralize.js", "restoreCase", "matchCase")]),
    state("js-brace", "flatqueue", "syntax", "npm test", swap("index.js", "            values[pos] = value;\n        }\n", "            values[pos] = value;\n")),
    state("js-last-letter", "mri", "culprit", "npm test", swap("src/index.js", "(idx + 1 < arr.length) || val", "(idx < arr.length) || val")),
    state("js-bench-lock", "flatqueue", "lock file", "npm ci && npm test", swap("package.json", '    "typescript": "^5.9.2"\n', '    "tinyqueue": "^3.0.0",\n    "typescript": "^5.9.2"\n'), lambda files: files.update({"bench.js": files["bench.js"] + BENCH}), may="package-lock.json",
          accept="node -e \"const p = require('./package-lock.json').packages; process.exit(p['node_modules/tinyqueue'] && p[''].devDependencies.tinyqueue ? 0 : 1)\" && npm ci --ignore-scripts --dry-run"),
    state("js-priority", "flatqueue", "culprit", "npm test", swap("index.js", "if (priority >= parentValue) break;", "if (priority <= parentValue) break;")),
    # Rust
    state("rust-limit-signature", "rust-number-prefix", "missed caller", "cargo test", swap("src/lib.rs", "fn format_number(mut amount: F, kilo: F, prefixes: [Prefix; 8]) -> Self {", "fn format_number(mut amount: F, kilo: F, prefixes: [Prefix; 8], limit: usize) -> Self {"),
          swap("src/lib.rs", "while amount >= kilo && prefix < 8 {", "while amount >= kilo && prefix < limit {"), swap("src/lib.rs", "Exa, Zetta, Yotta])", "Exa, Zetta, Yotta], 8)"), good=[swap("src/lib.rs", "Exbi, Zebi, Yobi])", "Exbi, Zebi, Yobi], 8)")]),
    state("rust-thousand", "rust-number-prefix", "culprit", "cargo test", swap("src/lib.rs", "while amount >= kilo && prefix < 8 {", "while amount > kilo && prefix < 8 {")),
    state("rust-trait-lost", "xmlparser", "missing import", "cargo test", swap("src/stream.rs", "TextPos, XmlByteExt, XmlCharExt}", "TextPos, XmlCharExt}"), may="src/stream.rs", accept="grep -q XmlByteExt src/stream.rs && cargo test"),
    state("rust-assignment", "xmlparser", "linter", "cargo clippy -- -D warnings", swap("src/stream.rs", "        self.pos += n;\n", "        self.pos = self.pos + n;\n")),
    # Go
    state("go-bytes-left", "go-shellwords", "unused import", "go test ./...", swap("shellwords.go", "\tvar buf bytes.Buffer\n", "\tvar buf strings.Builder\n"), good=[swap("shellwords.go", '\t"bytes"\n', "")]),
    state("go-after-variable", "go-shellwords", "culprit", "go test ./...", swap("shellwords.go", "\t\t\t\t\tbuf.WriteString(getenv(s[p:i]))\n\t\t\t\t\ti--\n", "\t\t\t\t\tbuf.WriteString(getenv(s[p:i]))\n")),
    state("go-token-signature", "go-pluralize", "missed caller", "go test ./...", swap(CASES, "sanitizeWord(token string, word string, rules []Rule) string {\n", "sanitizeWord(word string, rules []Rule) string {\n\ttoken := strings.ToLower(word)\n"),
          swap(CASES, "return c.sanitizeWord(token, word, rules)", "return c.sanitizeWord(word, rules)"), good=[swap(CASES, "c.sanitizeWord(token, token, rules) == token", "c.sanitizeWord(token, rules) == token")]),
    state("go-case-moved", "go-pluralize", "missing import", "go test ./...", move_case, may="case.go", accept="grep -q '\"strings\"' case.go && grep -q '^func restoreCase' case.go && go vet ./... && go test ./..."),
    # Java
    state("java-operator-renamed", "exp4j", "missed caller", "sh test.sh", rename(".java", "isAllowedOperatorChar", "isOperatorChar", (EXP + "ExpressionBuilder.java", 1)), good=[rename(".java", "isAllowedOperatorChar", "isOperatorChar")]),
    state("java-brace", "minimal-json", "syntax", "sh test.sh", swap(JSON + "JsonParser.java", "    if (!readChar(']')) {\n      throw expected(\"',' or ']'\");\n    }\n", "    if (!readChar(']')) {\n      throw expected(\"',' or ']'\");\n")),
    state("java-exponent", "minimal-json", "culprit", "sh test.sh", swap(JSON + "JsonParser.java", "if (!readChar('e') && !readChar('E')) {", "if (!readChar('e')) {")),
]  # fmt: skip
# Only what the states run is installed: the shared configuration of ESLint asks for a newer node.
NTH_ERRORS = """import { expect, it } from "vitest";
import { invalid } from "./__fixtures__/rules.js";
import { parse } from "./parse.js";

it.each(invalid)("says what is wrong with %s", (formula) => {
    expect(() => parse(formula)).toThrowErrorMatchingSnapshot();
});
"""
NTH_LAY_OUT = f"""
cat > src/errors.spec.ts <<'E'
{NTH_ERRORS}E
rm eslint.config.mjs tsconfig.eslint.json
for name in @eslint/compat @feedic/eslint-config eslint eslint-config-biome typescript-eslint; do npm pkg delete "devDependencies[$name]"; done
npm pkg delete scripts.lint:es scripts.format:es scripts.lint:ts
npm pkg set "scripts.lint=npm run lint:biome" "scripts.format=npm run format:biome"
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
ln -s {{modules}} node_modules && npx vitest run src/errors.spec.ts && rm node_modules
"""
HOOKABLE_LAY_OUT = """
rm pnpm-lock.yaml test/bench.ts
npm pkg delete packageManager scripts.build scripts.prepublish scripts.release scripts.bench
for name in @vitest/coverage-v8 changelogen obuild mitata hookable-prev eslint-config-unjs @typescript/native-preview; do npm pkg delete "devDependencies[$name]"; done
npm pkg set devDependencies.vite=^7.1.0 "scripts.test=npm run lint && vitest run" "scripts.test:types=tsc --noEmit"
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
"""
INPUTS = """import areInputsEqual from '../src/are-inputs-equal';

describe('are inputs equal', () => {
  it('compares one input after the other', () => {
    expect(areInputsEqual([1, NaN, 'a'], [1, NaN, 'a'])).toBe(true);
    expect(areInputsEqual([1, 2], [2, 1])).toBe(false);
    expect(areInputsEqual([1], [1, 1])).toBe(false);
  });
});
"""
MEMO_LAY_OUT = f"""
cat > test/are-inputs-equal.spec.ts <<'E'
{INPUTS}E
rm yarn.lock rollup.config.js && rm -r benchmarks
npm pkg delete size-limit scripts.test:size scripts.build scripts.build:flow scripts.build:dist scripts.build:clean scripts.build:typescript scripts.prepublishOnly scripts.perf scripts.perf:library-comparison
for name in @rollup/plugin-replace @rollup/plugin-typescript @size-limit/preset-small-lib @types/benchmark @types/lodash.memoize benchmark cross-env fast-memoize lodash.memoize \\
    markdown-table mem memoizee moize nanocolors ora rimraf rollup rollup-plugin-terser size-limit ts-node; do npm pkg delete "devDependencies[$name]"; done
sed -i -e 's/"yarn jest"/"jest"/' -e 's/yarn prettier /prettier /' -e 's/yarn tsc/tsc/' -e 's/yarn \\(prettier:check\\|eslint:check\\|typescript:check\\)/npm run \\1/g' package.json
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
"""
CLONES = """import cloneDeep from 'lodash.clonedeep';
import isDeepEqual from 'lodash.isequal';
import memoize from '../src/memoize-one';

it('takes a copy for the same with a deep comparison', () => {
  let calls = 0;
  const fn = memoize((value: unknown) => {
    calls += 1;
    return value;
  }, isDeepEqual);
  const input = { a: [1, { b: 2 }] };
  fn(input);
  fn(cloneDeep(input));
  expect(calls).toBe(1);
});
"""
BYTES_LAY_OUT = "npm pkg delete devDependencies.nyc scripts.test-ci scripts.test-cov"
FLATBUSH = """import Flatbush from 'flatbush';
import {generateRandomPoints} from './gendata.js';

const N = 100000;
const data = generateRandomPoints(N);

console.time('flatbush');
const index = new Flatbush(N);
for (const {minX, minY, maxX, maxY} of data) index.add(minX, minY, maxX, maxY);
index.finish();
console.timeEnd('flatbush');
"""
NATORD_LAY_OUT = "cargo clippy --offline --fix --allow-no-vcs --all-targets && cargo fmt && rm -rf target Cargo.lock .travis.yml"
DATE_LAY_OUT = "rm -rf benches fuzz && sed -i '/^\\[dev-dependencies\\]/,$d' Cargo.toml"
PICO_LAY_OUT = (
    "cargo clippy --offline --fix --allow-no-vcs && cargo fmt && rm -rf target Cargo.lock"
)
# The tests get names that test.sh runs, and the abstract classes of the tests others.
EVAL_LAY_OUT = f"""{JARS}
for path in src/test/java/com/udojava/evalex/Test*.java; do
    old=$(basename $path .java) && new=${{old#Test}}Test
    sed "s/\\b$old\\b/$new/g" $path > src/test/java/com/udojava/evalex/$new.java && rm $path
done
"""
BYTE_LAY_OUT = f"""{JARS}
rm -rf .mvn mvnw mvnw.cmd misc src/test/java/at/favre/lib/bytes/*Benchmark.java
for name in Bytes Util; do
    mv src/test/java/at/favre/lib/bytes/A${{name}}Test.java src/test/java/at/favre/lib/bytes/${{name}}Fixture.java
    sed -i "s/\\bA${{name}}Test\\b/${{name}}Fixture/g" $(find src/test -name '*.java')
done
"""
EVAL, BYTE = "src/main/java/com/udojava/evalex/", "src/main/java/at/favre/lib/bytes/"
SIXTH_TREES = {
    "hookable": Tree("TypeScript", "b77477c", {"src/blank.ts": 'export function isBlank(name: string): boolean {\n  return name.trim() === "";\n}\n'}, HOOKABLE_LAY_OUT, True),
    "nth-check": Tree("TypeScript", "e86a6ec", {"src/blank.ts": "export function isBlank(text: string): boolean {\n    return text.trim().length === 0;\n}\n"}, NTH_LAY_OUT, True),
    "memoize-one": Tree("TypeScript", "d785546", {"src/blank.ts": "export default function isBlank(text: string): boolean {\n  return text.trim() === '';\n}\n"}, MEMO_LAY_OUT, True),
    "rbush": Tree("JavaScript", "f9cdb8a", {"index.js": "\nexport function isPoint(bbox) {\n    return bbox.minX === bbox.maxX && bbox.minY === bbox.maxY;\n}\n"}, modules=True),
    "flat": Tree("JavaScript", "1d68e1d", {"index.js": "\nexport function isBlank (key) {\n  return key.trim() === ''\n}\n"}, modules=True),
    "bytes.js": Tree("JavaScript", "9ddc13b", {"index.js": "\n/**\n * Whether the text holds no word.\n *\n * @param {string} text\n * @returns {boolean}\n * @public\n */\n\nmodule.exports.isBlank = function isBlank(text) {\n  return text.trim() === '';\n};\n"}, BYTES_LAY_OUT, True),
    "rust-natord": Tree("Rust", "93e5f0a", {"README.md": NOTES}, NATORD_LAY_OUT),
    "httpdate": Tree("Rust", "53df520", {"README.md": NOTES}, DATE_LAY_OUT),
    "pico-args": Tree("Rust", "ee9e334", {"src/lib.rs": "\n/// Whether the argument holds no word.\npub fn is_blank(argument: &str) -> bool {\n    argument.trim().is_empty()\n}\n"}, PICO_LAY_OUT),
    "xstrings": Tree("Go", "6ae33fe", {"blank.go": 'package xstrings\n\nimport "strings"\n\n// IsBlank says whether the text holds no word.\nfunc IsBlank(str string) bool {\n\treturn strings.TrimSpace(str) == ""\n}\n'}),
    "go-radix": Tree("Go", "54df44f", {"empty.go": "package radix\n\n// IsEmpty says whether the tree holds no key.\nfunc (t *Tree) IsEmpty() bool {\n\treturn t.size == 0\n}\n"}),
    "EvalEx": Tree("Java", "2e23b46", {EVAL + "Blank.java": "package com.udojava.evalex;\n\npublic final class Blank {\n  private Blank() {\n  }\n\n  public static boolean isBlank(String text) {\n    return text.trim().isEmpty();\n  }\n}\n"}, EVAL_LAY_OUT),
    "bytes-java": Tree("Java", "e622b3b", {BYTE + "Blank.java": "package at.favre.lib.bytes;\n\npublic final class Blank {\n    private Blank() {\n    }\n\n    public static boolean isBlank(String text) {\n        return text.trim().isEmpty();\n    }\n}\n"}, BYTE_LAY_OUT),
}  # fmt: skip
HOOKS, NTH, ARE_EQUAL = "src/hookable.ts", "src/parse.ts", "src/are-inputs-equal.ts"
DATE, PICO, RADIX = "src/date.rs", "src/lib.rs", "radix.go"
SEALED = '\nexport class SealedHooks extends HookableCore {\n  removeHook(): void {\n    throw new Error("These hooks stay");\n  }\n}\n'


def append(path: str, text: str) -> Edit:
    """Add text to the end."""

    def edit(files: Files) -> None:
        files[path] = files.get(path, "") + text

    return edit


def cut(path: str, first: str, last: str) -> Edit:
    """Take away what stands from one text up to another."""

    def edit(files: Files) -> None:
        start = files[path].index(first)
        files[path] = files[path][:start] + files[path][files[path].index(last, start) :]

    return edit


def swap_each(path: str, old: str, new: str, *places: int) -> Edit:
    """Replace the numbered places of `old`."""

    def edit(files: Files) -> None:
        parts = files[path].split(old)
        assert len(parts) > max(places), (path, old, len(parts) - 1)
        joints = [new if number in places else old for number in range(1, len(parts))]
        files[path] = parts[0] + "".join(joint + part for joint, part in zip(joints, parts[1:], strict=True))  # fmt: skip

    return edit


def move_inputs(files: Files) -> None:
    """Move a file of memoize-one to a folder of its own."""
    files["src/equality/are-inputs-equal.ts"] = files.pop(ARE_EQUAL)
    swap("src/memoize-one.ts", "'./are-inputs-equal'", "'./equality/are-inputs-equal'")(files)


def move_digits(files: Files) -> None:
    """Move the functions of httpdate that read digits to a module of their own; the module that they leave does not import them."""
    text = files[DATE]
    start, end = text.index("fn toint_1"), text.index("fn parse_imf_fixdate")
    files["src/digits.rs"] = "use crate::Error;\n\n" + text[start:end].replace("fn toint", "pub(crate) fn toint").rstrip() + "\n"  # fmt: skip
    files[DATE] = text[:start] + text[end:]
    swap("src/lib.rs", "mod date;\n", "mod date;\nmod digits;\n")(files)


SIXTH = [
    # TypeScript
    state("ts-oxfmt-layout", "hookable", "formatting", "npx oxfmt --check src test", swap("src/utils.ts", "    const name = parentName ? `${parentName}:${key}` : key;\n", "    const name = parentName\n        ? `${parentName}:${key}` : key\n")),
    state("ts-swapped-signature", "hookable", "missed caller", "npx tsc --noEmit",
          swap("src/utils.ts", "callEachWith(callbacks: Array<(arg0: any) => any>, arg0?: any): void {", "callEachWith(event: object | undefined, callbacks: Array<(event: any) => any>): void {"), swap("src/utils.ts", "callback(arg0);", "callback(event);"),
          swap(HOOKS, "callEachWith(this._before, event)", "callEachWith(event, this._before)"), swap_each(HOOKS, "callEachWith(this._after, event)", "callEachWith(event, this._after)", 1),
          good=[swap(HOOKS, "callEachWith(this._after, event)", "callEachWith(event, this._after)")]),
    state("ts-override-lost", "hookable", "type error with a suggestion", "npx tsc --noEmit", append(HOOKS, SEALED), good=[swap(HOOKS, "  removeHook(): void {", "  override removeHook(): void {")]),
    state("ts-deprecated-warning", "hookable", "culprit", "npx vitest run", swap(HOOKS, "if (dep && !options.allowDeprecated) {", "if (dep && options.allowDeprecated) {")),
    state("ts-helper-removed", "nth-check", "removed function", "npx tsc --noEmit", swap(NTH, "\n    function skipWhitespace() {\n        while (\n            index < formula.length &&\n            whitespace.has(formula.charCodeAt(index))\n        ) {\n            index++;\n        }\n    }\n", "")),
    state("ts-formula-snapshot", "nth-check", "snapshot", "npm run test:vi", swap(NTH, "`n-th rule couldn't be parsed ('${formula}')`", "`n-th rule couldn't be parsed: ${formula}`"), may="src/__snapshots__/errors.spec.ts.snap", accept="CI=1 npx vitest run"),
    state("ts-constant-left", "nth-check", "unused variable", "npx tsc --noEmit", swap(NTH, "formula.charCodeAt(index) <= NINE", "formula.charCodeAt(index) - ZERO < 10"), good=[swap(NTH, 'const NINE = "9".charCodeAt(0);\n', "")]),
    state("ts-file-moved", "memoize-one", "missing import", "npm test", move_inputs, good=[swap("test/are-inputs-equal.spec.ts", "'../src/are-inputs-equal'", "'../src/equality/are-inputs-equal'")]),
    state("ts-clone-package", "memoize-one", "missing dependency", "npm test", append("test/clones.spec.ts", CLONES), may="package.json package-lock.json",
          accept="node -e \"const p = require('./package.json'); process.exit({...p.dependencies, ...p.devDependencies}['lodash.clonedeep'] ? 0 : 1)\" && npm ci --ignore-scripts --dry-run"),
    # JavaScript
    state("js-const", "rbush", "linter", "npx eslint index.js test/test.js", swap("index.js", "        const result = [];\n\n        if (!intersects(bbox, node)) return result;", "        let result = [];\n\n        if (!intersects(bbox, node)) return result;")),
    state("js-flatbush-lock", "rbush", "lock file", "npm ci && npm test", swap("package.json", '    "eslint-config-mourner": "^4.0.2",\n', '    "eslint-config-mourner": "^4.0.2",\n    "flatbush": "^4.0.0",\n'), append("bench/flatbush.bench.js", FLATBUSH), may="package-lock.json",
          accept="node -e \"const p = require('./package-lock.json').packages; process.exit(p['node_modules/flatbush'] && p[''].devDependencies.flatbush ? 0 : 1)\" && npm ci --ignore-scripts --dry-run"),
    state("js-depth", "flat", "culprit", "npm test", swap("index.js", "currentDepth < maxDepth", "currentDepth <= maxDepth")),
    state("js-export-lost", "flat", "changed export", "npm test", swap("index.js", "export function unflatten (", "function unflatten (")),
    state("js-tera", "bytes.js", "culprit", "npm test", swap("index.js", "tb: Math.pow(1024, 4)", "tb: Math.pow(1000, 4)")),
    state("js-source-package", "bytes.js", "missing dependency", "npm test", swap("index.js", "module.exports = bytes;", "var isFiniteNumber = require('is-finite');\n\nmodule.exports = bytes;"), swap("index.js", "!Number.isFinite(value)", "!isFiniteNumber(value)"), may="package.json",
          accept="node -e \"process.exit((require('./package.json').dependencies || {})['is-finite'] ? 0 : 1)\" && npm install --package-lock-only --ignore-scripts --dry-run"),
    # Rust
    state("rust-zeroes", "rust-natord", "culprit", "cargo test", swap("lib.rs", "if ll_ == 0 || rr_ == 0 {", "if ll_ == 0 && rr_ == 0 {")),
    state("rust-digits-moved", "httpdate", "missing import", "cargo test", move_digits, may=DATE, good=[swap(DATE, "use crate::Error;\n", "use crate::digits::{toint_1, toint_2, toint_4};\nuse crate::Error;\n")],
          accept="grep -q '^use .*digits' src/date.rs && cargo test"),
    state("rust-length", "pico-args", "linter", "cargo clippy -- -D warnings", swap(PICO, "Result<Option<String>, Error> {\n        if self.0.is_empty() {", "Result<Option<String>, Error> {\n        if self.0.len() == 0 {")),
    state("rust-borrow-signature", "pico-args", "missed caller", "cargo test", swap(PICO, "fn index_of(&self, keys: Keys)", "fn index_of(&self, keys: &Keys)"), swap(PICO, "Some((idx, _)) = self.index_of(keys)", "Some((idx, _)) = self.index_of(&keys)"),
          swap_each(PICO, "Some((idx, key)) = self.index_of(keys)", "Some((idx, key)) = self.index_of(&keys)", 1, 2), good=[swap(PICO, "Some((idx, key)) = self.index_of(keys)", "Some((idx, key)) = self.index_of(&keys)")]),
    # Go
    state("go-index-left", "xstrings", "unused variable", "go test ./...", swap("manipulate.go", "strings.Index(str, sep)\n\n\tif index == -1 {\n\t\thead = str\n\t\treturn\n\t}\n\n\thead = str[:index]\n\tmatch = str[index : index+len(sep)]\n\ttail = str[index+len(sep):]\n\treturn\n",
          "strings.Index(str, sep)\n\thead, tail, found := strings.Cut(str, sep)\n\n\tif found {\n\t\tmatch = sep\n\t}\n\n\treturn\n"), good=[swap("manipulate.go", "\tindex := strings.Index(str, sep)\n", "")]),
    state("go-common-character", "xstrings", "culprit", "go test ./...", swap("count.go", "case r >= '\\u4E00' && r <= '\\u9FCC':", "case r >= '\\u5E00' && r <= '\\u9FCC':")),
    state("go-prefix-removed", "go-radix", "removed function", "go test ./...", cut(RADIX, "// longestPrefix finds", "// Insert is used")),
    state("go-edge-signature", "go-radix", "missed caller", "go test ./...", swap(RADIX, "func (n *node) getEdge(label byte) *node {\n", "func (n *node) getEdge(search string) *node {\n\tlabel := search[0]\n"), swap_each(RADIX, "n.getEdge(search[0])", "n.getEdge(search)", 1, 2, 3, 4),
          swap(RADIX, "n = n.getEdge(label)", "n = n.getEdge(search)"), swap(RADIX, "\tlabel := prefix[0]\n\tchild := n.getEdge(label)\n", "\tchild := n.getEdge(prefix)\n"), good=[swap(RADIX, "n.getEdge(search[0])", "n.getEdge(search)")]),
    # Java
    state("java-lazy-renamed", "EvalEx", "missed caller", "sh test.sh", rename(".java", "createLazyNumber", "lazyNumber", (EVAL + "Expression.java", 7)), good=[rename(".java", "createLazyNumber", "lazyNumber")]),
    state("java-precedence", "EvalEx", "culprit", "sh test.sh", swap(EVAL + "Expression.java", "OPERATOR_PRECEDENCE_MULTIPLICATIVE = 30;", "OPERATOR_PRECEDENCE_MULTIPLICATIVE = 20;")),
    state("java-length-signature", "bytes-java", "missed caller", "sh test.sh", swap(BYTE + "Util.java", "static void checkModLength(int length, int modFactor, String errorSubject) {\n            if (length % modFactor != 0) {\n", "static void checkModLength(int length, int modFactor, String errorSubject, boolean mayBeEmpty) {\n            if (length % modFactor != 0 || (length == 0 && !mayBeEmpty)) {\n"),
          *[swap(BYTE + "Bytes.java", f"creating {name} array\")", f"creating {name} array\", true)") for name in ("an int", "an long", "an float", "an double")], good=[swap(BYTE + "Bytes.java", 'creating a short array")', 'creating a short array", true)')]),
]  # fmt: skip
MESSAGES = """import { expect, it } from 'vitest'
import { assert, max, nonempty, number, object, size, string } from '../src'

const cases = [
  { name: 'a wrong type', struct: object({ a: number() }), data: { a: 'b' } },
  { name: 'an empty string', struct: nonempty(string()), data: '' },
  { name: 'a long string', struct: size(string(), 1, 2), data: 'abc' },
  { name: 'a large number', struct: max(number(), 3), data: 4 },
]

it('tells what is wrong', () => {
  const messages = cases.map(({ name, struct, data }) => {
    try {
      assert(data, struct as any)
    } catch (error) {
      return `${name}: ${(error as Error).message}`
    }
  })
  expect(messages.join('\\n')).toMatchInlineSnapshot()
})
"""
STRUCT_LAY_OUT = f"""
cat > test/messages.test.ts <<'E'
{MESSAGES}E
rm rollup.config.js && sed -i /package-lock.json/d .gitignore
npm pkg delete scripts.build scripts.clean scripts.release scripts.watch publishConfig
for name in @rollup/plugin-typescript np rollup; do npm pkg delete "devDependencies[$name]"; done
npm pkg set "scripts.test=npm run test:types && npm run test:vitest"
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
ln -s {{modules}} node_modules && npx vitest run -u test/messages.test.ts && rm node_modules
"""
DEFU_LAY_OUT = """
rm pnpm-lock.yaml renovate.json tea.yaml
npm pkg delete packageManager scripts.build scripts.release scripts.prepack
for name in @vitest/coverage-v8 changelogen eslint-config-unjs unbuild; do npm pkg delete "devDependencies[$name]"; done
npm pkg set "scripts.test=npm run lint && npm run test:types && vitest run" devDependencies.vite=~7.1.0
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
"""
CDN_CHECK = """#!/bin/sh
# The bundles for browsers are kept in the repository.
set -e
cd "$(dirname "$0")/.."
npm run build
if ! git diff --exit-code --stat -- cdn; then
  echo "The files of cdn/ are out of date. Run 'npm run build' and commit them."
  exit 1
fi
"""
RADASH_LAY_OUT = f"""
rm -r docs chiller.json banner.png yarn.lock && mkdir scripts
cat > scripts/check-cdn.sh <<'E'
{CDN_CHECK}E
npm pkg delete scripts.docs:install scripts.docs:build scripts.lint devDependencies.chiller devDependencies.tslint
npm pkg set "scripts.check=npm test && npm run check:cdn" "scripts.build=tsc --noEmit && rollup -c" "scripts.check:cdn=sh scripts/check-cdn.sh" "devDependencies[@types/node]=^18.19.0"
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
ln -s {{modules}} node_modules && npm run build && rm -r node_modules dist
"""
URI_LAY_OUT = """
rm -r yarn.lock webpack.config.js pipeline.yml .github .lsifrc.json && sed -i 's/\\r$//' src/test/uri.test.ts
npm pkg delete resolutions scripts.clean scripts.pack-production scripts.pack-dev scripts.prepublish
for name in path-browserify rimraf ts-loader webpack webpack-cli; do npm pkg delete "devDependencies[$name]"; done
npm pkg set "scripts.test=npm run compile && mocha"
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
"""
EQUAL_LAY_OUT = """
rm -r benchmark && sed -i /package-lock.json/d .gitignore
npm pkg delete nyc scripts.benchmark scripts.test-cov scripts.prepublish devDependencies.coveralls devDependencies.nyc devDependencies.pre-commit
npm pkg set "scripts.eslint=eslint *.js spec/*.js" "scripts.test=npm run build && npm run eslint && npm run test-ts && npm run test-spec"
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
"""
VALUE_LAY_OUT = """
rm yarn.lock && npm pkg delete husky lint-staged devDependencies.husky devDependencies.lint-staged
npm pkg set "scripts.lint=npm run lint:js && npm run lint:prettier" "scripts.pretest=npm run lint"
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
"""
NEGOTIATOR_LAY_OUT = """
rm -r benchmarks && sed -i /package-lock.json/d .gitignore
npm pkg delete scripts.bench scripts.test-ci scripts.test-cov devDependencies.nyc devDependencies.vitest
npm install --package-lock-only --ignore-scripts --no-audit --no-fund
"""
SEMVER_LAY_OUT = """
rm -r benches fuzz src/serde.rs
sed -i -e '/^\\[dependencies\\]/,/^harness/d' -e '/^serde = /d' -e '/^\\[package.metadata.playground\\]/,$d' Cargo.toml
sed -i -e '/^#\\[cfg(feature = "serde")\\]/,/^mod serde;/d' src/lib.rs
cargo clippy --offline --fix --allow-no-vcs && cargo fmt && rm -rf target Cargo.lock
"""
BITS_LAY_OUT = """
rm -r benches src/serde_impl.rs && sed -i '/^\\[dependencies\\]/,$d' Cargo.toml
sed -i -e '/^#\\[cfg(feature = "serde")\\]/,+1d' src/lib.rs && sed -i '/^\\/\\/ TODO: Rew.te/,/^}/d' tests/tests.rs
"""
SEVENTH_TREES = {
    "superstruct": Tree("TypeScript", "e414c8a", {"src/blank.ts": "/**\n * Whether a text has no word.\n */\n\nexport function isBlank(text: string): boolean {\n  return text.trim() === ''\n}\n"}, STRUCT_LAY_OUT, True),
    "defu": Tree("TypeScript", "80c0146", {"src/blank.ts": 'export function isBlank(text: string): boolean {\n  return text.trim() === "";\n}\n'}, DEFU_LAY_OUT, True),
    "radash": Tree("TypeScript", "4cab190", {"src/blank.ts": "export const isBlank = (text: string): boolean => text.trim() === ''\n"}, RADASH_LAY_OUT, True),
    "vscode-uri": Tree("TypeScript", "89bb300", {"src/blank.ts": "export function isBlank(text: string): boolean {\n\treturn text.trim().length === 0;\n}\n"}, URI_LAY_OUT, True),
    "fast-deep-equal": Tree("JavaScript", "a8e7172", {"README.md": NOTES}, EQUAL_LAY_OUT, True),
    "postcss-value-parser": Tree("JavaScript", "11a4436", {"README.md": NOTES}, VALUE_LAY_OUT, True),
    "negotiator": Tree("JavaScript", "14b0a7b", {"HISTORY.md": "unreleased\n==================\n\n  * docs: say how the library is kept\n"}, NEGOTIATOR_LAY_OUT, True),
    "semver": Tree("Rust", "8591f23", {"README.md": NOTES}, SEMVER_LAY_OUT),
    "fixedbitset": Tree("Rust", "5748fbd", {"README.md": NOTES}, BITS_LAY_OUT),
    "doublestar": Tree("Go", "9fded31", {"README.md": NOTES}, "gofmt -w ."),
    "inflection": Tree("Go", "bbe0a3e", {"README.md": NOTES}, "gofmt -w ."),
    "stats": Tree("Go", "5badb5a", {"README.md": NOTES}, "gofmt -w ."),
    "jsemver": Tree("Java", "1f4996e", {"README.md": NOTES}, JARS),
    "aho-corasick": Tree("Java", "e68720d", {"README.md": NOTES}, f"{JARS} && sed -i 's/^java -cp/java -ea -cp/' test.sh"),
}  # fmt: skip
CLAMP = "\n/**\n * Keeps a number between two others.\n */\nexport const clamp = (value: number, low: number, high: number): number =>\n  Math.min(Math.max(value, low), high)\n"
URI, STRINGIFY, LANGUAGE, BITSET = "src/uri.ts", "lib/stringify.js", "lib/language.js", "src/lib.rs"
VERSION, INTERVAL = (
    "src/main/java/com/github/zafarkhaja/semver/expr/",
    "java/org/ahocorasick/interval/",
)


def move_plain(files: Files) -> None:
    """Move a file of defu; its test imports it from where it was."""
    files["src/_internal/is-plain-object.ts"] = files.pop("src/_utils.ts")
    swap("src/defu.ts", '"./_utils"', '"./_internal/is-plain-object"')(files)


def move_util(files: Files) -> None:
    """Move what the tests of semver share; one of the tests names the module that is gone."""
    files["tests/common/mod.rs"] = files.pop("tests/util/mod.rs")
    for path in ("tests/node/mod.rs", "tests/test_identifier.rs", "tests/test_version_req.rs"):
        files[path] = files[path].replace("mod util;", "mod common;").replace("crate::util::", "crate::common::")  # fmt: skip


def move_comparators(files: Files) -> None:
    """Move the comparators of aho-corasick to a package of their own; their user imports one of the two."""
    for way in ("BySize", "ByPosition"):
        for root, kind, needs in (("src/main/", "", ("Intervalable",)), ("src/test/", "Test", ("Interval", "Intervalable"))):  # fmt: skip
            text = files.pop(f"{root}{INTERVAL}IntervalableComparator{way}{kind}.java")
            imports = "".join(f"import org.ahocorasick.interval.{name};\n" for name in needs)
            text = text.replace("package org.ahocorasick.interval;\n", f"package org.ahocorasick.interval.order;\n\n{imports.rstrip()}\n")  # fmt: skip
            files[f"{root}{INTERVAL}order/IntervalableComparator{way}{kind}.java"] = text
    swap(f"src/main/{INTERVAL}IntervalTree.java", "import java.util.List;\n", "import org.ahocorasick.interval.order.IntervalableComparatorByPosition;\n\nimport java.util.List;\n")(files)  # fmt: skip


SEVENTH = [
    # TypeScript
    state("ts-let", "superstruct", "linter", "npm run lint:eslint", swap("src/utils.ts", "    const failure = toFailure(", "    let failure = toFailure("), swap("src/utils.ts", "    path,\n    branch,\n    ...result,", "    path: path,\n    branch: branch,\n    ...result,")),
    state("ts-failure-signature", "superstruct", "missed caller", "npm run test:types", swap("src/utils.ts", "  result: Result,\n  context: Context,\n  struct: Struct<T, S>,\n  value: any\n", "  value: any,\n  result: Result,\n  context: Context,\n  struct: Struct<T, S>\n"),
          swap_each("src/struct.ts", "toFailures(result, context, this, value)", "toFailures(value, result, context, this)", 1, 2), good=[swap("src/structs/refinements.ts", "toFailures(result, ctx, struct, value)", "toFailures(value, result, ctx, struct)")]),
    state("ts-message-inline", "superstruct", "snapshot", "npm run test:vitest", swap("src/structs/refinements.ts", "`Expected a nonempty ${struct.type} but received an empty one`", "`Expected a ${struct.type} that is not empty`"), may="test/messages.test.ts", accept="CI=1 npx vitest run"),
    state("ts-layout-ox", "defu", "formatting", "npm run lint", swap("src/_utils.ts", 'typeof value !== "object"', "typeof value !== 'object'"), swap("src/_utils.ts", "  if (\n    prototype !== null &&\n    prototype !== Object.prototype &&\n    Object.getPrototypeOf(prototype) !== null\n  ) {\n", "  if (prototype !== null && prototype !== Object.prototype &&\n      Object.getPrototypeOf(prototype) !== null) {\n")),
    state("ts-plain-moved", "defu", "half move", "npx vitest run", move_plain, good=[swap("test/utils.test.ts", '"../src/_utils"', '"../src/_internal/is-plain-object"')]),
    state("ts-bundle", "radash", "generated file", "npm run check:cdn", append("src/number.ts", CLAMP), swap("src/index.ts", "export { inRange, toFloat, toInt }", "export { clamp, inRange, toFloat, toInt }"), may="cdn/radash.js cdn/radash.min.js cdn/radash.esm.js", accept="npm run check:cdn"),
    state("ts-types-field", "radash", "configuration", "npx tsc --noEmit", swap("tsconfig.json", '"strict": true\n', '"strict": true,\n    "types": ["node"]\n'), may="tsconfig.json", accept="npx tsc --noEmit"),
    state("ts-encoder-renamed", "vscode-uri", "missed caller", "npm run compile", rename(URI, "encodeURIComponentFast", "encodeComponent", (URI, 3)), good=[rename(URI, "encodeURIComponentFast", "encodeComponent")]),
    state("ts-groups-swapped", "vscode-uri", "culprit", "npm test", swap(URI, "match[7] || _empty),\n\t\t\tpercentDecode(match[9]", "match[9] || _empty),\n\t\t\tpercentDecode(match[7]")),
    # JavaScript
    state("js-flags", "fast-deep-equal", "culprit", "npm test", swap("src/index.jst", "a.source === b.source && a.flags === b.flags;", "a.source === b.source;")),
    state("js-build-package", "fast-deep-equal", "missing dependency", "npm run build && npm run test-spec", swap("build.js", "var fs = require('fs');", "var fs = require('fs-extra');"), swap("build.js", "try { fs.mkdirSync('./es6'); }  catch(e) {}", "fs.ensureDirSync('./es6');"), may="package.json package-lock.json",
          accept="node -e \"const p = require('./package.json'); process.exit({...p.dependencies, ...p.devDependencies}['fs-extra'] ? 0 : 1)\" && npm ci --ignore-scripts --dry-run"),
    state("js-max-left", "postcss-value-parser", "unused variable", "npm test", swap("lib/walk.js", "for (i = 0, max = nodes.length; i < max; i += 1)", "for (i = 0; i < nodes.length; i += 1)"), good=[swap("lib/walk.js", "var i, max, node, result;", "var i, node, result;")]),
    state("js-layout-listed", "postcss-value-parser", "formatting", "npm run lint", swap(STRINGIFY, '    return (\n      value +\n      "(" +\n      (node.before || "") +\n      buf +\n      (node.after || "") +\n      (node.unclosed ? "" : ")")\n    );\n', "    return value + '(' + (node.before || '') + buf + (node.after || '') +\n      (node.unclosed ? '' : ')')\n")),
    state("js-eslint-lock", "negotiator", "lock file", "npm ci && npm run lint", swap("package.json", '"eslint": "7.32.0"', '"eslint": "8.57.1"'), may="package-lock.json",
          accept="node -e \"process.exit(require('./package-lock.json').packages['node_modules/eslint'].version.startsWith('8.') ? 0 : 1)\" && npm ci --ignore-scripts --dry-run"),
    state("js-quality-renamed", "negotiator", "missed caller", "npm test", rename(LANGUAGE, "isQuality", "isAcceptable", (LANGUAGE, 2)), good=[rename(LANGUAGE, "isQuality", "isAcceptable")]),
    # Rust
    state("rust-util-moved", "semver", "half move", "cargo test", move_util, good=[swap("tests/test_version.rs", "mod util;", "mod common;"), swap("tests/test_version.rs", "crate::util::", "crate::common::")]),
    state("rust-return", "semver", "linter", "cargo clippy -- -D warnings", swap("src/eval.rs", "    matches_impl(cmp, ver) && (ver.pre.is_empty() || pre_is_compatible(cmp, ver))\n", "    return matches_impl(cmp, ver) && (ver.pre.is_empty() || pre_is_compatible(cmp, ver));\n")),
    state("rust-masks-signature", "fixedbitset", "missed caller", "cargo test", swap(BITSET, "fn new<T: IndexRange>(range: T, length: usize) -> Masks", "fn new<T: IndexRange>(length: usize, range: T) -> Masks"), swap_each(BITSET, "Masks::new(range, self.length)", "Masks::new(self.length, range)", 1, 2, 3, 4, 5, 6), good=[swap(BITSET, "Masks::new(range, self.length)", "Masks::new(self.length, range)")]),
    state("rust-count-operator", "fixedbitset", "culprit", "cargo test", swap(BITSET, "(*x ^ *y)", "(*x | *y)")),
    # Go
    state("go-verb-argument", "stats", "culprit", "go vet ./...", swap("describe.go", '"range\\t%.*f\\n", decimals, d.Range)', '"range\\t%.*f\\n", d.Range)')),
    state("go-alias-removed", "stats", "removed name", "make test", swap("legacy.go", "\tSizeErr       = ErrSize\n", ""), swap_each("correlation.go", "SizeErr", "ErrSize", 1, 2), swap("distances.go", "SizeErr", "ErrSize"), swap_each("correlation_test.go", "stats.SizeErr", "stats.ErrSize", 1, 2), swap("ranksum.go", "SizeErr", "ErrSize"),
          swap_each("variance.go", "SizeErr", "ErrSize", 1), good=[swap("variance.go", "SizeErr", "ErrSize")]),
    state("go-alternative-signature", "doublestar", "missed caller", "go build ./...", swap("utils.go", "func indexNextAlt(s string, allowEscaping bool) int {", "func indexNextAlt(s string, separator rune) int {"), swap("utils.go", "if allowEscaping && s[i] == '\\\\'", "if separator != '\\\\' && s[i] == '\\\\'"), swap("glob.go", "indexNextAlt(pattern[patIdx:closingIdx], true)", "indexNextAlt(pattern[patIdx:closingIdx], '/')"),
          swap("globwalk.go", "indexNextAlt(pattern[patIdx:closingIdx], true)", "indexNextAlt(pattern[patIdx:closingIdx], '/')"), swap_each("match.go", "indexNextAlt(pattern[patIdx:closingIdx], separator != '\\\\')", "indexNextAlt(pattern[patIdx:closingIdx], separator)", 1), good=[swap("match.go", "indexNextAlt(pattern[patIdx:closingIdx], separator != '\\\\')", "indexNextAlt(pattern[patIdx:closingIdx], separator)")]),
    state("go-copied-line", "inflection", "culprit", "go test ./...", swap_each("inflections.go", "compiledSingularMaps = append(compiledSingularMaps, infs...)", "compiledSingularMaps = append(compiledPluralMaps, infs...)", 2)),
    # Java
    state("java-caret-bound", "jsemver", "culprit", "sh test.sh", swap(VERSION + "ExpressionParser.java", "? lower.incrementMajorVersion() : lower.incrementMinorVersion();", "? lower.incrementMinorVersion() : lower.incrementMajorVersion();")),
    state("java-interpret-renamed", "jsemver", "missed caller", "sh test.sh", rename(".java", "interpret", "match", (VERSION + "LessOrEqual.java", 1)), good=[rename(".java", "interpret", "match")]),
    state("java-comparators-moved", "aho-corasick", "missing import", "sh test.sh", move_comparators, may=f"src/main/{INTERVAL}IntervalTree.java", good=[swap(f"src/main/{INTERVAL}IntervalTree.java", "order.IntervalableComparatorByPosition;\n", "order.IntervalableComparatorByPosition;\nimport org.ahocorasick.interval.order.IntervalableComparatorBySize;\n")], accept="sh test.sh"),
]  # fmt: skip
SETS: dict[str, tuple[dict[str, Tree], list[State]]] = {
    "first": (FIRST_TREES, FIRST),
    "second": (SECOND_TREES, SECOND),
    "third": (THIRD_TREES, THIRD),
    "fourth": (FOURTH_TREES, FOURTH),
    "fifth": (FIFTH_TREES, FIFTH),
    "sixth": (SIXTH_TREES, SIXTH),
    "seventh": (SEVENTH_TREES, SEVENTH),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("do", choices=("check", "run", "judge"))
    parser.add_argument("--trees", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--set", default="first", choices=SETS)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    trees, states = SETS[given.set]
    wanted = [row for row in states if not given.only or row.name in given.only.split(",")]
    for name in {row.tree for row in wanted}:
        if not (given.work / name).exists():
            lay_out(given.trees, name, trees[name], given.work)
    answer = {"check": check, "run": run, "judge": judge_again}[given.do]
    totals: Counter[str] = Counter()
    with ThreadPoolExecutor(given.jobs) as pool:
        for row in pool.map(lambda one: answer(one, trees[one.tree], given), wanted):
            totals[f"{row['language']}: {row['verdict']}"] += 1
            totals[row["verdict"]] += 1
            print(json.dumps(row), flush=True)
    print(json.dumps({"totals": dict(sorted(totals.items()))}))


def git(repo: Path, *words: str) -> str:
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(
        ["git", "-C", str(repo), *author, *words], capture_output=True, text=True, check=True
    )
    return done.stdout


def lay_out(trees: Path, name: str, tree: Tree, work: Path) -> None:
    """The tree without its history, as a first commit."""
    target = work / name
    target.mkdir(parents=True)
    packed = subprocess.run(
        ["git", "-C", str(trees / name), "archive", tree.commit], capture_output=True, check=True
    )
    subprocess.run(["tar", "x", "-C", str(target)], input=packed.stdout, check=True)
    if tree.language == "Java":
        (target / "test.sh").write_text(JAVA_TEST)
    script = tree.lay_out.replace("{jars}", str(trees / "jars"))
    script = script.replace("{modules}", str(trees / name / "node_modules"))
    subprocess.run(["bash", "-ec", script], cwd=target, check=True, stdout=sys.stderr)
    git(target, "init", "-q", "-b", "main")
    git(target, "add", "-Af")
    git(target, "commit", "-qm", "Import the library")


def read_files(repo: Path) -> Files:
    """The text files of the commit."""
    found: Files = {}
    for path in git(repo, "ls-files").splitlines():
        try:
            found[path] = (repo / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return found


def write_files(repo: Path, files: Files) -> None:
    for path, text in files.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text, encoding="utf-8")


def make_history(row: State, tree: Tree, work: Path, repo: Path) -> tuple[Files, Files]:
    """A green commit, the culprit with its addition, and a later change of a document; the red files, and those of the remedy."""
    shutil.rmtree(repo, ignore_errors=True)
    subprocess.run(["git", "clone", "-q", str(work / row.tree), str(repo)], check=True)
    start = read_files(repo)
    write_files(repo, {"NOTES.md": "# Notes\n\nHow this library is kept.\n"})
    git(repo, "add", "-Af")
    git(repo, "commit", "-qm", "Add notes for maintainers")
    for path, text in tree.feature.items():
        start[path] = start.get(path, "") + text
    red, remedy = dict(start), dict(start)
    for edit in row.bad:
        edit(red)
    if row.good:
        for edit in (*row.bad[: 0 if _renames(row) else None], *row.good):
            edit(remedy)
    write_files(repo, red)
    for path in start.keys() - red.keys():
        (repo / path).unlink()
    git(repo, "add", "-Af")
    git(repo, "commit", "-qm", "Say whether a text is blank")
    write_files(repo, {"NOTES.md": "# Notes\n\nHow this library is kept.\n\nReleases are made by hand.\n"})  # fmt: skip
    git(repo, "commit", "-qam", "Say how releases are made")
    return red, remedy


def _renames(row: State) -> bool:
    """Whether the remedy renames everywhere, from the start, where the culprit missed a place."""
    return row.kind == "missed caller" and not {"signature"} & set(re.split("[- ]", row.name))


def in_tree(repo: Path, command: str, trees: Path, row: State, modules: bool) -> int:
    """The exit code of a command in the work tree."""
    link = repo / "node_modules"
    if modules and not link.exists() and not _installs(command):
        link.symlink_to(trees / row.tree / "node_modules")
    done = subprocess.run(["bash", "-c", command], cwd=repo, capture_output=True, text=True, check=False, timeout=600)  # fmt: skip
    if link.is_symlink():
        link.unlink()
    elif modules:
        shutil.rmtree(link, ignore_errors=True)
    return done.returncode


def _installs(command: str) -> bool:
    """Whether the command sets up the packages itself, so that a stale lock makes it red."""
    return command.startswith("npm ci")


def check(row: State, tree: Tree, given: argparse.Namespace) -> dict[str, Any]:
    """Show that the state is what it says."""
    repo = given.work / "states" / row.name
    _red, remedy = make_history(row, tree, given.work, repo)
    seen = {}
    for name, rev in (("before", "HEAD~2"), ("red", "main")):
        git(repo, "checkout", "-q", rev)
        seen[name] = in_tree(repo, row.command, given.trees, row, tree.modules)
    write_files(repo, remedy)
    seen["remedy"] = in_tree(repo, row.command, given.trees, row, tree.modules)
    good = not seen["before"] and bool(seen["red"]) == (row.kind != "lock file" or tree.language == "Rust" or _installs(row.command))  # fmt: skip
    verdict = "as it says" if good and (row.accept or not seen["remedy"]) else "not as it says"
    return {"name": row.name, "language": tree.language, "verdict": verdict, **seen}


def run(row: State, tree: Tree, given: argparse.Namespace) -> dict[str, Any]:
    """Ask for a repair and compare it with the remedy."""
    repo = given.work / "states" / row.name
    _red, remedy = make_history(row, tree, given.work, repo)
    words = ["--no-model", "--sandbox", "bwrap", "--max-minutes", "4", "--format", "json"]
    argv = [str(Path(sys.executable).with_name("regreen")), "fix", "--repo", str(repo), *words, "--", row.command]  # fmt: skip
    started = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    found: dict[str, Any] = {"outcome": f"error: {done.stderr[-600:]}"}
    if done.stdout.startswith("{"):
        found = json.loads(done.stdout)
    return {
        "name": row.name, "language": tree.language, "kind": row.kind, "outcome": found["outcome"],
        "verdict": name_verdict(row, tree, repo, found, remedy, given.trees),
        "rung": found.get("rung"), "reason": found.get("reason"), "seconds": round(time.monotonic() - started),
        "gate": [f"{one['check']}: {one['detail']}" for one in (found.get("gate") or {}).get("reasons", [])],
        "attempts": [f"{one['rung']}: {one['summary']}: {one['outcome']} {one.get('detail') or ''}" for one in found.get("attempts", [])],
        "hints": found.get("hints"), "before": found.get("before"), "patch": found.get("patch"),
    }  # fmt: skip


def name_verdict(  # noqa: PLR0917 - what a run has
    row: State, tree: Tree, repo: Path, found: dict[str, Any], remedy: Files, trees: Path
) -> str:
    """Whether the patch, if one is offered, is right, and whether it is published or waits."""
    patch = found.get("patch") if found["outcome"] in {"fixed", "needs_human"} else None
    if not patch:
        return "none"
    where = "published" if found["outcome"] == "fixed" else "waiting"
    return f"{'right' if is_remedy(row, tree, repo, patch, remedy, trees) else 'WRONG'}, {where}"


def judge_again(row: State, tree: Tree, given: argparse.Namespace) -> dict[str, Any]:
    """The recorded result of a state, its patch compared with the remedy again."""
    rows = [json.loads(line) for line in given.results.read_text().splitlines()]
    found = next(one for one in rows if one.get("name") == row.name)
    repo = given.work / "states" / row.name
    _red, remedy = make_history(row, tree, given.work, repo)
    return {**found, "verdict": name_verdict(row, tree, repo, found, remedy, given.trees)}


def is_remedy(  # noqa: PLR0917 - what a run has
    row: State, tree: Tree, repo: Path, patch: str, remedy: Files, trees: Path
) -> bool:
    """Whether the patched files are those of the remedy, or what the row accepts; of a culprit that is known, also its whole revert."""
    applied = subprocess.run(["git", "-C", str(repo), "apply", "--index", "-"], input=patch, text=True, check=False)  # fmt: skip
    if applied.returncode:
        return False
    touched = set(git(repo, "diff", "--cached", "--name-only").splitlines())
    now = read_files(repo)
    exact = row.kind in {"formatting", "linter"}
    if now.keys() - {"NOTES.md"} == remedy.keys() and all(
        now.get(path) == text if exact else list(_lines(now.get(path, ""))) == list(_lines(text))
        for path, text in remedy.items()
    ):
        return True
    if row.kind == "culprit":
        return not git(repo, "diff", "--cached", "HEAD~2", "--", ".", ":!NOTES.md").strip()
    accepts = bool(row.accept) and touched <= row.may
    return accepts and not in_tree(repo, row.accept, trees, row, tree.modules)


def _lines(text: str) -> Iterator[str]:
    return iter(sorted(line.strip() for line in text.splitlines() if line.strip()))


if __name__ == "__main__":
    main()
