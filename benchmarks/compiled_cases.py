"""Seeded defects and real releases in Go, Rust and Java. Figures: languages.md.

python benchmarks/compiled_cases.py seeded|releases FOLDER REPOSITORY... [--language LANGUAGE] [--seed N] [--each N]

The files of a release (a tag of a local repository) are laid out below FOLDER without their dependencies. A defect counts as named when a finding is posted in its file that its twin (a harmless change of the same lines) does not have.
"""

from __future__ import annotations

import argparse
import io
import itertools
import random
import re
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from regreen.code.file_languages import parser_for
from regreen.code.paths import is_test
from regreen.code.symbols import node_text, walk_nodes

sys.path.insert(0, str(Path(__file__).parent))
from script_cases import (
    ENV,
    Edit,
    Mutation,
    apply,
    commit,
    git,
    git_init,
    review,
    say,
    show,
)

_MAX_FILE = 300_000
_BREAKING = {"signature", "rename", "swapped"}
"""Defects that a compiler refuses, in a change of their own: it says less of other code where one is."""
Code = tuple[str, str, str]
"""New code: the defect, its twin, and the packages that the two import."""
ADDED_GO: dict[str, list[Code]] = {
    "secret": [
        (
            'var serviceToken = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"\n',
            'var serviceToken = os.Getenv("SERVICE_TOKEN")\n',
            "os",
        ),
    ],
    "crypto": [
        (
            "func storePassword(password string) []byte { s := md5.Sum([]byte(password)); return s[:] }\n",
            "func cacheKey(path string) []byte { s := md5.Sum([]byte(path)); return s[:] }\n",
            "crypto/md5",
        ),
        (
            "var insecure = &tls.Config{InsecureSkipVerify: true}\n",
            "var secure = &tls.Config{MinVersion: tls.VersionTLS12}\n",
            "crypto/tls",
        ),
        (
            "func newSessionToken() string { return fmt.Sprint(rand.Int63()) }\n",
            "func jitter() int64 { return rand.Int63n(100) }\n",
            "math/rand fmt",
        ),
    ],
    "injection": [
        (
            'func find(db *sql.DB, r *http.Request) (*sql.Rows, error) {\n\treturn db.Query("SELECT * FROM users WHERE name = \'" + r.FormValue("name") + "\'")\n}\n',
            'func find(db *sql.DB, r *http.Request) (*sql.Rows, error) {\n\treturn db.Query("SELECT * FROM users WHERE name = $1", r.FormValue("name"))\n}\n',
            "database/sql net/http",
        ),
        (
            'func archive(r *http.Request) error {\n\treturn exec.Command("sh", "-c", "tar czf out.tgz "+r.FormValue("folder")).Run()\n}\n',
            'func archive(r *http.Request) error {\n\treturn exec.Command("tar", "czf", "out.tgz", "--", r.FormValue("folder")).Run()\n}\n',
            "os/exec net/http",
        ),
    ],
}
ADDED_RUST: dict[str, list[Code]] = {
    "secret": [
        (
            'pub const SERVICE_TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";\n',
            'pub const SERVICE_TOKEN: &str = "SERVICE_TOKEN";\n',
            "",
        ),
    ],
    "injection": [
        (
            'pub fn archive(folder: &str) -> std::io::Result<std::process::ExitStatus> {\n    std::process::Command::new("sh").arg("-c").arg(format!("tar czf out.tgz {}", folder)).status()\n}\n',
            'pub fn archive(folder: &str) -> std::io::Result<std::process::ExitStatus> {\n    std::process::Command::new("tar").args(["czf", "out.tgz", "--", folder]).status()\n}\n',
            "",
        ),
        (
            'pub fn archive(folder: &str) -> std::io::Result<std::process::ExitStatus> {\n    let line = String::from("tar czf out.tgz ") + folder;\n    std::process::Command::new("/bin/sh").args(["-c", &line]).status()\n}\n',
            'pub fn archive(folder: &str) -> std::io::Result<std::process::ExitStatus> {\n    let line = String::from("tar czf out.tgz ") + "folder";\n    let _ = folder;\n    std::process::Command::new("/bin/sh").args(["-c", &line]).status()\n}\n',
            "",
        ),
    ],
}
ADDED_JAVA: dict[str, list[Code]] = {
    "secret": [
        (
            'static final String TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";\n',
            'static final String TOKEN = System.getenv("SERVICE_TOKEN");\n',
            "",
        ),
    ],
    "crypto": [
        (
            'static byte[] storePassword(String password) throws Exception {\n        return java.security.MessageDigest.getInstance("MD5").digest(password.getBytes("UTF-8"));\n    }\n',
            'static byte[] cacheKey(String path) throws Exception {\n        return java.security.MessageDigest.getInstance("MD5").digest(path.getBytes("UTF-8"));\n    }\n',
            "",
        ),
        (
            "static String newSessionToken() {\n        return Long.toHexString(new Random().nextLong());\n    }\n",
            "static long newJitter() {\n        return new Random().nextLong();\n    }\n",
            "java.util.Random",
        ),
        (
            'static Cipher cipher() throws Exception {\n        return Cipher.getInstance("DES/ECB/PKCS5Padding");\n    }\n',
            'static Cipher cipher() throws Exception {\n        return Cipher.getInstance("AES/GCM/NoPadding");\n    }\n',
            "javax.crypto.Cipher",
        ),
    ],
    "injection": [
        (
            'static ResultSet find(Connection db, String name) throws Exception {\n        Statement statement = db.createStatement();\n        return statement.executeQuery("SELECT * FROM users WHERE name = \'" + name + "\'");\n    }\n',
            'static ResultSet find(Connection db, String name) throws Exception {\n        PreparedStatement statement = db.prepareStatement("SELECT * FROM users WHERE name = ?");\n        statement.setString(1, name);\n        return statement.executeQuery();\n    }\n',
            "java.sql.Connection java.sql.PreparedStatement java.sql.ResultSet java.sql.Statement",
        ),
        (
            'static Process archive(String folder) throws Exception {\n        return new ProcessBuilder("sh", "-c", "tar czf out.tgz " + folder).start();\n    }\n',
            'static Process archive(String folder) throws Exception {\n        return new ProcessBuilder("tar", "czf", "out.tgz", "--", folder).start();\n    }\n',
            "",
        ),
        (
            'static Process archive(String folder) throws Exception {\n        String line = "tar czf out.tgz " + folder;\n        return Runtime.getRuntime().exec(new String[] {"sh", "-c", line});\n    }\n',
            'static Process archive(String folder) throws Exception {\n        return Runtime.getRuntime().exec(new String[] {"tar", "czf", "out.tgz", "--", folder});\n    }\n',
            "",
        ),
    ],
}


@dataclass(frozen=True)
class Statement:
    """A statement that a defect changes: `pattern` is its whole text, `change` what each match of `spot` becomes."""

    kind: str
    node: str
    pattern: str
    spot: str = ""
    change: str = ""


@dataclass(frozen=True)
class Dialect:
    """How a language writes functions and calls, the defects of its statements, and what new code looks like."""

    suffix: str
    manifests: tuple[str, ...]
    left_out: str
    functions: tuple[str, ...]
    calls: tuple[str, ...]
    parameter: tuple[str, str]
    statements: tuple[Statement, ...]
    added: dict[str, list[Code]]
    unlike: str = r"interface"
    """Types that take any value."""


DIALECTS = {
    "go": Dialect(
        ".go",
        ("go.mod",),
        r"(^|/)(vendor|testdata|examples?|_\w+)(/|$)|\.pb\.go$|_gen\.go$|^\.",
        ("function_declaration",),
        ("call_expression",),
        ("strict bool", "\n\t_ = strict\n"),
        (
            Statement("check", "if_statement", r"if err != nil \{\s*return [^{}]*\}"),
            Statement("bound", "for_clause", r".*< len\(.*", "<(?= len\\()", "<="),
            Statement("lock", "defer_statement", r".*Unlock\(\)"),
            Statement("close", "defer_statement", r".*\.Close\(\)"),
            Statement(
                "verb", "call_expression", r"fmt\.(?:Errorf|Sprintf)\(\"[^\"]*%s.*", "%s", "%d"
            ),
        ),
        ADDED_GO,
    ),
    "rust": Dialect(
        ".rs",
        ("Cargo.toml",),
        r"(^|/)(vendor|target)(/|$)|^\.",
        ("function_item",),
        ("call_expression",),
        ("strict: bool", "\n    let _ = strict;\n"),
        (
            Statement("error", "expression_statement", r"[^{};]*[)]\?;", r"\?;$", ";"),
            Statement(
                "check", "expression_statement", r"if [^{}]*\{\s*return (?:Err\(|None)[^{}]*\}"
            ),
            Statement("bound", "range_expression", r"\w+\.\.[\w.]+\.len\(\)", r"\.\.", "..="),
            Statement(
                "checked",
                "call_expression",
                r"[\w.]+\.(?:checked|saturating)_(?:add|sub|mul)\(.*",
                r"\.(?:checked|saturating)_",
                ".wrapping_",
            ),
        ),
        ADDED_RUST,
        r"\bT\b|impl |dyn |\b[A-Z]\b",
    ),
    "java": Dialect(
        ".java",
        ("pom.xml", "build.gradle", "build.gradle.kts"),
        r"^(?!.*\bsrc/).*\b(target|build|examples?|samples?)/|-info\.java$|^\.",
        ("method_declaration",),
        ("method_invocation",),
        ("boolean strict", "\n        boolean strictly = strict;\n"),
        (
            Statement("check", "if_statement", r"if \([^{}]*\) \{\s*throw [^{}]*\}"),
            Statement(
                "unthrown",
                "throw_statement",
                r"throw new (?:[A-Z]\w+)\([^;]*\);",
                r"^throw ",
                "",
            ),
            Statement(
                "bound",
                "binary_expression",
                r"\w+ < [\w.]+\.(?:length|size\(\)|length\(\))",
                "<",
                "<=",
            ),
            Statement("lock", "modifiers", r".*\bsynchronized\b.*", r"synchronized ?", ""),
            Statement("close", "expression_statement", r"\w+\.close\(\);"),
            Statement(
                "equals",
                "method_invocation",
                r"\w+\.equals\(\"[^\"]*\"\)",
                r"\.equals\((.*)\)$",
                r" == \1",
            ),
        ),
        ADDED_JAVA,
        r"Object|\b[A-Z]\b",
    ),
}


def list_releases(repository: Path) -> list[str]:
    """The tags of releases, whatever stands before the version, oldest first."""
    tags = git(repository, "tag").split("\n")
    version = re.compile(r"(?:[\w./@-]*?[-/@])?v?(\d+\.\d+(?:\.\d+)?|20\d{6})")
    found = {m[1]: tag for tag in tags if (m := version.fullmatch(tag))}
    return [found[v] for v in sorted(found, key=lambda v: [int(x) for x in v.split(".")])]


def read_release(repository: Path, tag: str, dialect: Dialect) -> dict[str, bytes]:
    """The sources and manifests of a release."""
    done = subprocess.run(
        ["git", "archive", tag], cwd=repository, env=ENV, capture_output=True, check=True
    )
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as packed:
        for member in packed:
            wanted = member.name.endswith((dialect.suffix, *dialect.manifests))
            if (
                wanted
                and not re.search(dialect.left_out, member.name)
                and member.isfile()
                and member.size < _MAX_FILE
            ):
                data = packed.extractfile(member)
                files[member.name] = data.read() if data else b""
    return files


class Tree:
    """The functions of a project with a body and one definition, their calls, by name."""

    def __init__(self, files: dict[str, bytes], language: str) -> None:
        self.files, self.dialect = files, DIALECTS[language]
        own = {p: d for p, d in files.items() if p.endswith(self.dialect.suffix) and not is_test(p)}
        if language != "go":
            own = {
                p: d
                for p, d in own.items()
                if re.search(r"(^|/)src/(?!test)", p) and "tests.rs" not in p
            }
        roots = {p: parser_for(language).parse(d).root_node for p, d in own.items()}
        self.roots = {p: r for p, r in roots.items() if not r.has_error}
        self.functions: dict[str, list[tuple[str, object]]] = defaultdict(list)
        self.calls: dict[str, list[tuple[str, object]]] = defaultdict(list)
        for path in self.roots:
            for node in self.walk(path):
                if node.type in self.dialect.functions:
                    self.functions[node_text(node.child_by_field_name("name"))].append((path, node))
                elif node.type in self.dialect.calls:
                    self.calls[name_called(node)].append((path, node))

    def walk(self, path: str) -> Iterator[object]:
        """The nodes of a file without the unit tests at its end."""
        tests = self.files[path].find(b"#[cfg(test)]")
        for node in walk_nodes(self.roots[path]):
            if tests < 0 or node.start_byte < tests:
                yield node

    def used(self) -> Iterator[tuple[str, str, object]]:
        for name, found in self.functions.items():
            path, node = found[0]
            is_free = name not in {"main", "init"} and "@Override" not in node_text(node)
            if len(found) == 1 and self.calls[name] and is_free:
                yield name, path, node


def name_called(call: object) -> str:
    function = call.child_by_field_name("function") or call
    for field in ("field", "name"):
        if (name := function.child_by_field_name(field)) is not None:
            return node_text(name)
    return node_text(function)


def line_of(node: object) -> int:
    return int(node.start_point[0]) + 1


def comment(node: object) -> tuple[Edit, ...]:
    return ((node.start_byte, node.start_byte, "/* same */ "),)


def signatures(tree: Tree) -> Iterator[Mutation]:
    parameter, use = tree.dialect.parameter
    for name, path, node in tree.used():
        listed, body = node.child_by_field_name("parameters"), node.child_by_field_name("body")
        if body is not None and "..." not in node_text(listed):
            at, start = listed.end_byte - 1, body.start_byte + 1
            comma = ", " if listed.named_children else ""
            edits = ((at, at, f"{comma}{parameter}"), (start, start, use))
            yield Mutation("signature", path, line_of(node), edits, comment(node), name)


def renamed(tree: Tree) -> Iterator[Mutation]:
    for name, path, node in tree.used():
        spot = node.child_by_field_name("name")
        edits = ((spot.start_byte, spot.end_byte, f"{name}Anew"),)
        yield Mutation("rename", path, line_of(node), edits, comment(node), name)


def swapped(tree: Tree) -> Iterator[Mutation]:
    for name, _, node in tree.used():
        listed = [
            p
            for p in node.child_by_field_name("parameters").named_children
            if p.child_by_field_name("type") is not None
        ]
        kinds = [node_text(p.child_by_field_name("type")) for p in listed]
        if (
            len(kinds) < 2
            or kinds[0] == kinds[1]
            or re.search(tree.dialect.unlike, " ".join(kinds))
        ):
            continue
        for path, call in tree.calls[name]:
            given = call.child_by_field_name("arguments").named_children
            if len(given) == len(kinds) and node_text(given[0]) != node_text(given[1]):
                a, b = given[:2]
                edits = (
                    (a.start_byte, a.end_byte, node_text(b)),
                    (b.start_byte, b.end_byte, node_text(a)),
                )
                yield Mutation("swapped", path, line_of(call), edits, comment(a), name)


def statements(tree: Tree) -> Iterator[Mutation]:
    """A dropped check or error, a loop that goes one too far, what is not unlocked or closed any more, and their like."""
    rows: dict[str, list[Statement]] = defaultdict(list)
    for row in tree.dialect.statements:
        rows[row.node].append(row)
    for path in tree.roots:
        for node in tree.walk(path):
            text = node_text(node) if node.type in rows else ""
            for row in rows[node.type] if text else ():
                if re.fullmatch(row.pattern, text, re.DOTALL):
                    changed = re.sub(row.spot, row.change, text, count=1) if row.spot else ""
                    edits = ((node.start_byte, node.end_byte, changed),)
                    yield Mutation(row.kind, path, line_of(node), edits, comment(node), text[:30])


def draw(tree: Tree, chance: random.Random) -> Iterator[Mutation]:
    """One mutation of each kind, each in another file; new code in files of its own."""
    found: dict[str, list[Mutation]] = defaultdict(list)
    for maker in (signatures, renamed, swapped, statements):
        for mutation in maker(tree):
            found[mutation.kind].append(mutation)
    used: set[str] = set()
    for kind in sorted(found):
        free = [m for m in found[kind] if m.path not in used]
        if free:
            chosen = chance.choice(free)
            used.add(chosen.path)
            yield chosen


def new_files(
    tree: Tree, chance: random.Random, taken: set[str]
) -> Iterator[tuple[str, str, bytes, bytes]]:
    """New code beside a file of the project; in Rust, at the end of one that has no other defect."""
    for kind, rows in tree.dialect.added.items():
        free = sorted({*tree.roots} - taken) if tree.dialect.suffix == ".rs" else sorted(tree.roots)
        if not free:
            continue
        path = chance.choice(free)
        taken.add(path)
        package = re.search(rb"(?m)^package ([\w.]+)", tree.files[path])
        name = package[1].decode() if package else "x"
        folder = path.rpartition("/")[0]
        bad, good, imports = chance.choice(rows)
        write = _WRITERS[tree.dialect.suffix]
        where, texts = write(kind, name, (bad, good), imports.split())
        if where:
            yield kind, f"{folder}/{where}".lstrip("/"), *(t.encode() for t in texts)
        else:
            yield kind, path, *(tree.files[path] + t.encode() for t in texts)


Written = tuple[str, list[str]]


def write_go(kind: str, package: str, codes: tuple[str, str], imports: list[str]) -> Written:
    texts = []
    for code in codes:
        wanted = [i for i in imports if f"{i.rpartition('/')[2]}." in code]
        lines = "".join(f'import "{i}"\n' for i in wanted)
        texts.append(f"package {package}\n\n{lines}\n{code}")
    return f"zz_{kind}.go", texts


def write_rust(kind: str, package: str, codes: tuple[str, str], imports: list[str]) -> Written:
    del kind, package, imports
    return "", [f"\n{code}" for code in codes]


def write_java(kind: str, package: str, codes: tuple[str, str], imports: list[str]) -> Written:
    lines = "".join(f"import {i};\n" for i in imports)
    name = f"New{kind.title()}"
    return f"{name}.java", [
        f"package {package};\n\n{lines}\nfinal class {name} {{\n    {code}}}\n" for code in codes
    ]


_WRITERS: dict[str, Callable[[str, str, tuple[str, str], list[str]], Written]] = {
    ".go": write_go,
    ".rs": write_rust,
    ".java": write_java,
}


def run_seeded(folder: Path, repository: Path, language: str, rounds: int, seed: int) -> None:
    module = repository.parent.name
    files = read_release(repository, list_releases(repository)[-1], DIALECTS[language])
    root = folder / f"{module}-seeded"
    git_init(root)
    base, tree = commit(root, files, "sources"), Tree(files, language)
    for number in range(rounds):
        chance = random.Random(f"{seed} {number} {module}")
        mutations = list(draw(tree, chance))
        fresh = list(new_files(tree, chance, {m.path for m in mutations}))
        bad = [(m.kind, m.path, apply(files[m.path], m.edits)) for m in mutations]
        bad += [(kind, path, text) for kind, path, text, _ in fresh]
        sides = {
            "broken": {p: text for kind, p, text in bad if kind in _BREAKING},
            "bad": {p: text for kind, p, text in bad if kind not in _BREAKING},
            "twin": {m.path: apply(files[m.path], m.twin) for m in mutations}
            | {path: good for _, path, _, good in fresh},
        }
        posted = {}
        for side, changed in sides.items():
            head = commit(root, files | changed, side)
            git(root, "tag", "-f", f"{side}-{number}", head)
            posted[side], _ = review(root, base, head)
            git(root, "reset", "-q", "--hard", base)
            found = [show(f) for f in posted[side]]
            say(sys.stdout, package=root.name, number=number, side=side, findings=found)
        rows = [(m.kind, m.path, m.line, m.name) for m in mutations]
        for kind, path, line, name in [*rows, *((k, p, 1, "") for k, p, _, _ in fresh)]:
            twin = {show(f).split()[0] for f in posted["twin"] if f["path"] == path}
            found = posted["broken" if kind in _BREAKING else "bad"]
            said = [show(f) for f in found if f["path"] == path]
            said = [x for x in said if x.split()[0] not in twin]
            if not said and kind in {"signature", "rename"}:  # said where it is called
                said = [show(f) for f in found if name and name in str(f["title"])]
            say(
                sys.stdout,
                package=root.name,
                number=number,
                kind=kind,
                path=path,
                line=line,
                name=name,
                named=bool(said),
                said=said,
                twin=sorted(twin),
            )


def run_releases(folder: Path, repository: Path, language: str, count: int) -> None:
    module = repository.parent.name
    root = folder / f"{module}-releases"
    git_init(root)
    tags = list_releases(repository)[-count - 1 :]
    shas = [
        (tag, commit(root, read_release(repository, tag, DIALECTS[language]), tag)) for tag in tags
    ]
    for (old, base), (new, head) in itertools.pairwise(shas):
        if git(root, "diff", "--stat", base, head, "--", f"*{DIALECTS[language].suffix}"):
            posted, seconds = review(root, base, head)
            said = [show(f) for f in posted]
            say(sys.stdout, module=module, old=old, new=new, said=said, seconds=round(seconds, 1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["seeded", "releases"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--language", choices=[*DIALECTS], default="go")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=2)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for repository in arguments.repositories:
        if arguments.what == "seeded":
            run_seeded(
                arguments.folder, repository, arguments.language, arguments.each, arguments.seed
            )
        else:
            run_releases(arguments.folder, repository, arguments.language, arguments.each)


if __name__ == "__main__":
    main()
