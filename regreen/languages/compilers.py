"""The compilers of Go, Rust and Java with their linters, as they are run over a tree in a box."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files as package_files
from typing import Any

from regreen.code.paths import is_test
from regreen.domain.environments import ReadText
from regreen.domain.languages import CompilerFinding, CompilerRun

_MAX_SOURCES = 5000
_MAX_FOLDERS = 8


def _read_program(name: str) -> bytes:
    return (package_files(__package__) / "box_programs" / name).read_bytes()


def _find_project_folders(
    changed: Collection[str], paths: Collection[str], manifest: str
) -> list[str]:
    """The folders of the nearest manifests above the changed files; "." where there is none."""
    found: dict[str, None] = {}
    for path in changed:
        folder = posixpath.dirname(path)
        while folder and posixpath.join(folder, manifest) not in paths:
            folder = posixpath.dirname(folder)
        found[folder or "."] = None
    return sorted(found)[:_MAX_FOLDERS]


def _parse_rows(output: str) -> Iterator[CompilerFinding]:
    """The lines of our own programs for the box; `@folder` says what the paths behind it are relative to."""
    folder = ""
    for row in output.split("\n"):
        parts = row.split("\t")
        if row.startswith("@"):
            folder = row[1:].removeprefix(".")
        elif len(parts) == 5 and parts[2].isdecimal() and parts[3].isdecimal():
            rule, path, line, end, message = parts
            place = posixpath.normpath(posixpath.join(folder, path))
            yield CompilerFinding(rule, place, int(line[:7]), int(end[:7]), message[:400])


_WARM_PROGRAM = b'package main\n\nimport _ "net/http"\n\nfunc main() {}\n'
"""What vet reads of the standard library for most packages: read once, when the box is prepared."""


@dataclass(frozen=True, slots=True)
class GoCompiler:
    """Go's type checker, with imports that are missing taken as empty, and `go vet` on what can be built."""

    program: str = "go"

    def plan_run(
        self, changed: Collection[str], paths: Collection[str], read: ReadText
    ) -> CompilerRun:
        """Each module with a changed file; nothing of the repository runs: neither cgo nor another toolchain."""
        del read
        env = "export GOFLAGS= GOTOOLCHAIN=local GOPROXY=off GOWORK=off CGO_ENABLED=0"
        start = "[ -f go.mod ] || go mod init example.com/checked >/dev/null 2>&1"
        runs = []
        for folder in _find_project_folders(changed, paths, "go.mod"):
            inside = [p for p in changed if folder == "." or p.startswith(f"{folder}/")]
            packages = sorted(
                {posixpath.relpath(posixpath.dirname(p) or ".", folder) for p in inside}
            )
            # vet stops at the first package that cannot be loaded: each by itself
            vet = "; ".join(
                f"go vet -json ./{shlex.quote(p)} 2>&1" for p in packages[:_MAX_FOLDERS]
            )
            place = shlex.quote(folder)
            runs.append(f"(cd {place} && {start}; echo @{place}; /env/bin/regreen-go-types; {vet})")
        return CompilerRun(
            "; ".join([env, *runs]),
            "export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=; mkdir -p /env/bin && "
            "go build -o /env/bin/regreen-go-types go_types.go && mkdir warm && cp warm.go warm/main.go && cd warm && "
            "go mod init example.com/warm 2>/dev/null; go vet . || true",
            {"go_types.go": _read_program("go_types.go"), "warm.go": _WARM_PROGRAM},
        )

    def parse_output(self, output: str) -> Iterator[CompilerFinding]:
        """The type checker's lines and vet's documents."""
        yield from _parse_rows(output)
        folder = ""
        text: list[str] = []
        for row in output.split("\n"):
            if row.startswith("@"):
                yield from _parse_vet("\n".join(text), folder)
                folder, text = row[1:].removeprefix("."), []
            elif row.startswith(("{", "}", "\t", " ")):
                text.append(row)
        yield from _parse_vet("\n".join(text), folder)


def _parse_vet(text: str, folder: str) -> Iterator[CompilerFinding]:
    at, decoder = 0, json.JSONDecoder()
    while (at := text.find("{", at)) >= 0:
        try:
            document, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        for tools in document.values() if isinstance(document, Mapping) else ():
            for tool, hits in tools.items() if isinstance(tools, Mapping) else ():
                for hit in hits if isinstance(hits, list) else ():
                    place = re.fullmatch(
                        r"(?:/work/)?(.{1,400}):(\d{1,7}):\d{1,7}", str(hit.get("posn"))
                    )
                    if place:
                        whole = (
                            place[1]
                            if hit["posn"].startswith("/work/")
                            else posixpath.join(folder, place[1])
                        )
                        line = int(place[2])
                        yield CompilerFinding(
                            tool,
                            posixpath.normpath(whole),
                            line,
                            line,
                            str(hit.get("message"))[:400],
                        )


_MORE_LINTS = (
    "await_holding_lock",
    "almost_complete_range",
    "float_equality_without_abs",
    "misrefactored_assign_op",
    "mut_range_bound",
    "no_effect_replace",
    "rc_clone_in_vec_init",
    "suspicious_arithmetic_impl",
    "suspicious_op_assign_impl",
    "suspicious_splitn",
    "suspicious_unary_op_formatting",
    "unused_io_amount",
    "let_underscore_lock",
)
_STUBS = ".regreen-stubs"
_NAME_ERRORS = frozenset(
    {
        "E0404",
        "E0405",
        "E0407",
        "E0412",
        "E0422",
        "E0423",
        "E0425",
        "E0432",
        "E0433",
        "E0437",
        "E0438",
        "E0531",
        "E0532",
        "E0574",
    }
)
"""What rustc says of names that an empty crate lacks, or that its macros would have made."""
_DEPENDENCY_TABLES = ("dependencies", "dev-dependencies", "build-dependencies")


@dataclass(frozen=True, slots=True)
class RustCompiler:
    """cargo clippy, or cargo check where that is missing; crates that cannot be had are taken as empty."""

    program: str = "cargo"

    def plan_run(
        self, changed: Collection[str], paths: Collection[str], read: ReadText
    ) -> CompilerRun:
        """Each package with a changed file, with its workspace."""
        folders = _find_project_folders(changed, paths, "Cargo.toml")
        manifests = [p for p in paths if posixpath.basename(p) == "Cargo.toml"]
        runs = [p for p in paths if _RUNS_CODE.search(p)]
        runs += [manifests[_MAX_MANIFESTS]] if len(manifests) > _MAX_MANIFESTS else []
        texts = {p: read(p) for p in manifests[:_MAX_MANIFESTS]}
        documents = []
        for path, text in texts.items():
            document = _parse_toml(text or "")
            documents.append(document)
            # a link, or what we cannot read, may be anything to cargo
            if not document or _builds_code(document):
                runs.append(path)
        clippy = (
            "C=check; A=; cargo clippy --version >/dev/null 2>&1 && C=clippy && "
            f"A='-- -A clippy::all -W clippy::correctness {' '.join(f'-W clippy::{x}' for x in _MORE_LINTS)}'"
        )
        each = (
            # the stubs of the folder before would pass for crates of this one
            f'echo "@$d"; N=; cmp -s /work/{_STUBS}/config.toml ~/.cargo/config.toml && rm ~/.cargo/config.toml; '
            "cargo metadata --offline --format-version 1 >/dev/null 2>&1 || "
            f"{{ N=1; rm -f Cargo.lock; mkdir -p ~/.cargo; cp /work/{_STUBS}/config.toml ~/.cargo/; echo '#stubs'; }}; "
            'run() { cargo $C --offline --keep-going "$@" --message-format json $A 2>/tmp/said; }; '
            "run --all-targets || { grep -m1 '^error' /tmp/said | sed 's/^/#/'; "
            '[ -z "$N" ] || run --lib --bins --no-default-features; }'  # without optional crates
        )
        return CompilerRun(
            f"export CARGO_TARGET_DIR=/tmp/target; {clippy}; for d in {' '.join(map(shlex.quote, folders))}; "
            f'do (cd "$d" && {each}); done',
            files=_make_stub_crates(documents),
            runs_code=runs[0] if runs else "",
        )

    def parse_output(self, output: str) -> Iterator[CompilerFinding]:
        """Cargo's messages, one document a line; a message's first place is its primary one."""
        folder, has_stubs = "", False
        for row in output.split("\n"):
            if row.startswith("@"):
                folder, has_stubs = row[1:].removeprefix("."), False
            has_stubs = has_stubs or row == "#stubs"
            if not row.startswith('{"reason":"compiler-message"'):
                continue
            try:
                message: Mapping[str, Any] = json.loads(row)["message"]
            except (ValueError, KeyError, RecursionError):
                continue
            spans = [s for s in message.get("spans") or () if s.get("is_primary")]
            rule = str((message.get("code") or {}).get("code") or "")
            if not spans or not rule:
                continue
            path = str(spans[0]["file_name"])
            if path.startswith("/"):
                continue
            more = [s["label"] for s in spans if s.get("label")]
            text = ": ".join([str(message.get("message")), *more[:1]])
            start, end = int(spans[0]["line_start"]), int(spans[0]["line_end"])
            place = posixpath.normpath(posixpath.join(folder, path))
            unresolved = has_stubs and rule in _NAME_ERRORS
            yield CompilerFinding(rule, place, start, end, text[:400], unresolved)


_MAX_MANIFESTS = 200
_RUNS_CODE = re.compile(
    r"(?:^|/)(?:build\.rs|\.cargo(?:/config(?:\.toml)?)?|rust-toolchain(?:\.toml)?)$"
)
"""`.cargo` itself is in a tree's list only where it is a link."""


def _builds_code(document: Mapping[str, Any]) -> bool:
    """Whether a manifest has a build script by another name, or a procedural macro, in any of cargo's spellings."""
    package, lib = document.get("package") or document.get("project"), document.get("lib")
    if isinstance(package, Mapping) and package.get("build") not in (None, False):
        return True
    if not isinstance(lib, Mapping):
        return False
    kinds = [lib.get("crate-type"), lib.get("crate_type")]
    return bool(lib.get("proc-macro") or lib.get("proc_macro")) or any(
        "proc-macro" in str(k) for k in kinds
    )


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _make_stub_crates(documents: Iterable[Mapping[str, Any]]) -> dict[str, bytes]:
    """Empty crates in place of a registry's, and the settings by which cargo finds them."""
    wanted: dict[tuple[str, str], set[str]] = {}
    for document in documents:
        workspace = document.get("workspace")
        tables = [
            t.get(k)
            for t in (document, workspace)
            if isinstance(t, Mapping)
            for k in _DEPENDENCY_TABLES
        ]
        targets = document.get("target")
        for target in targets.values() if isinstance(targets, Mapping) else ():
            tables += (
                [target.get(k) for k in _DEPENDENCY_TABLES] if isinstance(target, Mapping) else []
            )
        for table in tables:
            for key, spec in table.items() if isinstance(table, Mapping) else ():
                row = {"version": spec} if isinstance(spec, str) else spec
                if isinstance(row, Mapping) and isinstance(row.get("version"), str):
                    name = str(row.get("package") or key)
                    features = row.get("features")
                    more = {str(f) for f in features} if isinstance(features, list) else set()
                    wanted.setdefault((name, _lowest_version(row["version"])), set()).update(more)
    names = {name for name, _ in wanted}
    features_of = {n: set().union(*(f for (m, _), f in wanted.items() if m == n)) for n in names}
    for document in documents:  # a feature of ours may switch on one of theirs: "serde/std"
        own = document.get("features")
        for values in own.values() if isinstance(own, Mapping) else ():
            for value in values if isinstance(values, list) else ():
                name, slash, feature = str(value).replace("?", "").partition("/")
                if slash and name in features_of:
                    features_of[name].add(feature)
    found = {
        f"{_STUBS}/config.toml": (
            f'[source.crates-io]\nreplace-with = "stubs"\n[source.stubs]\ndirectory = "/work/{_STUBS}/crates"\n'
        ).encode()
    }
    for name, version in wanted:
        if re.fullmatch(r"[\w-]{1,64}", name):
            folder = f"{_STUBS}/crates/{name}-{version}"
            features = "".join(f"{json.dumps(f)} = []\n" for f in sorted(features_of[name]))
            manifest = f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2015"\n[features]\n{features}'
            found[f"{folder}/Cargo.toml"] = manifest.encode()
            found[f"{folder}/src/lib.rs"] = b""
            found[f"{folder}/.cargo-checksum.json"] = b'{"files":{},"package":null}'
    return found


def _lowest_version(wanted: str) -> str:
    numbers = re.search(r"(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?", wanted)
    return ".".join(n or "0" for n in numbers.groups()) if numbers else "1.0.0"


_OF_NEWER_JAVA = re.compile(
    r"preview\.feature|feature\.not\.supported|location: .{0,300}\b(?:class|interface|type) java\."
)
_MISSING_IMPORT = re.compile(
    r"\S{1,100}t\.exist |.{1,200}location: package (?:javax?|jdk|sun|com\.sun)\."
)
"""A package that is not there, or a class that this Java does not have."""


@dataclass(frozen=True, slots=True)
class JavaCompiler:
    """javac with all its warnings; classes that are not there are taken as unknown."""

    program: str = "java"

    def plan_run(
        self, changed: Collection[str], paths: Collection[str], read: ReadText
    ) -> CompilerRun:
        """All sources but unchanged tests; annotation processors do not run."""
        del read
        sources = [
            p
            for p in sorted(paths)
            if p.endswith(".java")
            and posixpath.basename(p) not in {"module-info.java", "package-info.java"}
            and (p in changed or not is_test(p))
            and "\n" not in p
        ]
        return CompilerRun(
            "java -Xshare:auto -XX:TieredStopAtLevel=1 -cp /env/java JavaTypes .regreen-sources",
            "mkdir -p /env/java && javac -d /env/java JavaTypes.java",
            {"JavaTypes.java": _read_program("JavaTypes.java")},
            {".regreen-sources": "\n".join(sources[:_MAX_SOURCES]).encode()},
        )

    def parse_output(self, output: str) -> Iterator[CompilerFinding]:
        """The program's lines, without what follows from a class that is not there."""
        found = list(_parse_rows(output))
        missing = {f for f in found if _MISSING_IMPORT.match(f"{f.rule} {f.message}")}
        lacking = {f.path for f in missing}
        for hit in found:
            is_newer = _OF_NEWER_JAVA.search(f"{hit.rule} {hit.message}") is not None
            if not is_newer and hit not in missing:
                unresolved = hit.path in lacking and "t.resolve" in hit.rule
                yield replace(hit, unresolved=unresolved)


def import_moved_in_rust(path: str, text: str, name: str, moved: tuple[str, str]) -> str:
    """The text with a `use` of what lies in another module of its crate now."""
    (crate, is_here, _), (other, is_there, inside) = (
        x.rpartition("src/") for x in (path, moved[1])
    )
    if (
        not is_here
        or not is_there
        or crate != other
        or not re.search(rf"\b{re.escape(name)}\b", text)
    ):
        return text
    modules = re.sub(r"(?:^|/)(?:lib|main|mod)$", "", inside.removesuffix(".rs")).split("/")
    line = "::".join(["use crate", *filter(None, modules), name]) + ";"
    first = re.search(r"(?m)^(?:use |pub use |mod |fn |pub |struct |enum |const |impl |#\[)", text)
    at = first.start() if first else len(text)
    return text if line in text else f"{text[:at]}{line}\n{text[at:]}"


def _package_of(path: str) -> str:
    """The package of Java that the place of a file stands for, below its folder of sources."""
    inside = path.partition("/java/")[2] or path.rpartition("src/")[2]
    return posixpath.dirname(inside).replace("/", ".")


def import_moved_in_java(path: str, text: str, name: str, moved: tuple[str, str]) -> str:
    """The text with a class imported from the package that it lies in now."""
    del path
    old, new = map(_package_of, moved)
    own = re.search(r"(?m)^package[ \t]+([\w.]{1,200});[ \t]*\n", text)
    if (
        not new
        or new == old
        or not re.search(rf"\b{re.escape(name)}\b", text)
        or (own and own[1] == new)
    ):
        return text
    made = f"import {new}.{name};"
    was = f"import {old}.{name};"
    if was in text:
        return text.replace(was, made)
    at = own.end() if own else 0
    return text if made in text else f"{text[:at]}\n{made}\n{text[at:]}"
