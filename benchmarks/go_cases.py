"""Seeded defects and real releases in Go modules. Figures: languages.md.

python benchmarks/go_cases.py seeded|releases FOLDER REPOSITORY... [--seed N] [--each N]

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
from collections.abc import Iterator
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

_LEFT_OUT = re.compile(r"(^|/)(vendor|testdata|examples?|_\w+)(/|$)|\.pb\.go$|_gen\.go$|^\.")
_MAX_FILE = 300_000

ADDED = {
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


def list_releases(repository: Path) -> list[str]:
    tags = git(repository, "tag", "--sort=version:refname").split("\n")
    return [tag for tag in tags if re.fullmatch(r"v?\d+\.\d+\.\d+", tag)]


def read_release(repository: Path, tag: str) -> dict[str, bytes]:
    """The Go files of a release."""
    done = subprocess.run(
        ["git", "archive", tag], cwd=repository, env=ENV, capture_output=True, check=True
    )
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as packed:
        for member in packed:
            kept = member.name.endswith((".go", "go.mod")) and not _LEFT_OUT.search(member.name)
            if kept and member.isfile() and member.size < _MAX_FILE:
                data = packed.extractfile(member)
                files[member.name] = data.read() if data else b""
    return files


class Tree:
    """The functions of a module with a body and one definition, their calls, by name."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        own = {p: d for p, d in files.items() if p.endswith(".go") and not is_test(p)}
        roots = {p: parser_for("go").parse(d).root_node for p, d in own.items()}
        self.roots = {p: r for p, r in roots.items() if not r.has_error}
        self.functions: dict[str, list[tuple[str, object]]] = defaultdict(list)
        self.calls: dict[str, list[tuple[str, object]]] = defaultdict(list)
        for path, root in self.roots.items():
            for node in walk_nodes(root):
                if node.type == "function_declaration":
                    self.functions[node_text(node.child_by_field_name("name"))].append((path, node))
                elif node.type == "call_expression":
                    function = node.child_by_field_name("function")
                    name = function.child_by_field_name("field") or function
                    self.calls[node_text(name)].append((path, node))

    def used(self) -> Iterator[tuple[str, str, object]]:
        for name, found in self.functions.items():
            if len(found) == 1 and self.calls[name] and name not in {"main", "init"}:
                yield name, *found[0]


def line_of(node: object) -> int:
    return int(node.start_point[0]) + 1


def comment(node: object) -> tuple[Edit, ...]:
    return ((node.start_byte, node.start_byte, "/* same */ "),)


def signatures(tree: Tree) -> Iterator[Mutation]:
    for name, path, node in tree.used():
        listed, body = node.child_by_field_name("parameters"), node.child_by_field_name("body")
        if body is not None and "..." not in node_text(listed):
            at, start = listed.end_byte - 1, body.start_byte + 1
            comma = ", " if listed.named_children else ""
            edits = ((at, at, f"{comma}strict bool"), (start, start, "\n\t_ = strict\n"))
            yield Mutation("signature", path, line_of(node), edits, comment(node), name)


def renamed(tree: Tree) -> Iterator[Mutation]:
    for name, path, node in tree.used():
        spot = node.child_by_field_name("name")
        edits = ((spot.start_byte, spot.end_byte, f"{name}Anew"),)
        yield Mutation("rename", path, line_of(node), edits, comment(node), name)


def swapped(tree: Tree) -> Iterator[Mutation]:
    for name, _, node in tree.used():
        listed = node.child_by_field_name("parameters").named_children
        kinds = [node_text(p.child_by_field_name("type")) for p in listed]
        if len(kinds) < 2 or kinds[0] == kinds[1] or "interface" in "".join(kinds):
            continue
        for path, call in tree.calls[name]:
            given = call.child_by_field_name("arguments").named_children
            if len(given) > 1 and node_text(given[0]) != node_text(given[1]):
                a, b = given[:2]
                edits = (
                    (a.start_byte, a.end_byte, node_text(b)),
                    (b.start_byte, b.end_byte, node_text(a)),
                )
                yield Mutation("swapped", path, line_of(call), edits, comment(a), name)


def statements(tree: Tree) -> Iterator[Mutation]:
    """An error that is not checked any more, a loop that goes one too far, what is not unlocked or closed any more."""
    for path, root in tree.roots.items():
        for node in walk_nodes(root):
            text = node_text(node)
            edits: tuple[Edit, ...] = ()
            kind = ""
            if node.type == "if_statement" and re.match(
                r"if err != nil \{\s*return [^{}]*\}$", text
            ):
                kind, edits = "check", ((node.start_byte, node.end_byte, ""),)
            elif node.type == "for_clause" and (m := re.search(r"< len\(", text)):
                at = node.start_byte + len(text[: m.start()].encode())
                kind, edits = "bound", ((at, at + 1, "<="),)
            elif node.type == "defer_statement" and text.endswith(("Unlock()", ".Close()")):
                kind = "lock" if text.endswith("Unlock()") else "close"
                edits = ((node.start_byte, node.end_byte, ""),)
            elif node.type == "call_expression" and re.match(
                r"fmt\.(?:Errorf|Sprintf)\(\"[^\"]*%s", text
            ):
                at = node.start_byte + len(text[: text.index("%s")].encode())
                kind, edits = "verb", ((at, at + 2, "%d"),)
            if kind and path.endswith(".go"):
                yield Mutation(kind, path, line_of(node), edits, comment(node), text[:30])


def added(kind: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for bad, good, imports in ADDED[kind]:
        yield bad, good, tuple(imports.split())


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


def new_files(tree: Tree, chance: random.Random) -> Iterator[tuple[str, str, bytes, bytes]]:
    path = chance.choice(sorted(tree.roots))
    package = re.search(rb"(?m)^package (\w+)", tree.files[path])
    folder = path.rpartition("/")[0]
    for kind in ADDED:
        bad, good, imports = chance.choice(list(added(kind)))
        head = f"package {package[1].decode() if package else 'x'}\n\n"
        texts = []
        for text in (bad, good):
            wanted = [i for i in imports if f"{i.rpartition('/')[2]}." in text]
            lines = "".join(f'import "{i}"\n' for i in wanted)
            texts.append(f"{head}{lines}\n{text}".encode())
        yield kind, f"{folder}/zz_{kind}.go".lstrip("/"), texts[0], texts[1]


def run_seeded(folder: Path, repository: Path, rounds: int, seed: int) -> None:
    module = repository.parent.name
    files = read_release(repository, list_releases(repository)[-1])
    root = folder / f"{module}-seeded"
    git_init(root)
    base, tree = commit(root, files, "sources"), Tree(files)
    for number in range(rounds):
        chance = random.Random(f"{seed} {number} {module}")
        mutations, fresh = list(draw(tree, chance)), list(new_files(tree, chance))
        posted = {}
        for side in ("bad", "twin"):
            changed = {
                m.path: apply(files[m.path], m.edits if side == "bad" else m.twin)
                for m in mutations
            }
            changed |= {p: bad if side == "bad" else good for _, p, bad, good in fresh}
            head = commit(root, files | changed, side)
            posted[side], _ = review(root, base, head)
            git(root, "reset", "-q", "--hard", base)
        rows = [(m.kind, m.path, m.line, m.name) for m in mutations]
        for kind, path, line, name in [*rows, *((k, p, 1, "") for k, p, _, _ in fresh)]:
            twin = {show(f).split()[0] for f in posted["twin"] if f["path"] == path}
            said = [show(f) for f in posted["bad"] if f["path"] == path]
            said = [x for x in said if x.split()[0] not in twin]
            if not said and kind in {"signature", "rename"}:  # said where it is called
                said = [show(f) for f in posted["bad"] if name and name in str(f["title"])]
            say(
                sys.stdout,
                module=module,
                kind=kind,
                path=path,
                line=line,
                name=name,
                named=bool(said),
                said=said,
                twin=sorted(twin),
            )
        say(sys.stdout, module=module, twin_findings=[show(f) for f in posted["twin"]])


def run_releases(folder: Path, repository: Path, count: int) -> None:
    module = repository.parent.name
    root = folder / f"{module}-releases"
    git_init(root)
    tags = list_releases(repository)[-count - 1 :]
    shas = [(tag, commit(root, read_release(repository, tag), tag)) for tag in tags]
    for (old, base), (new, head) in itertools.pairwise(shas):
        if git(root, "diff", "--stat", base, head, "--", "*.go"):
            posted, seconds = review(root, base, head)
            said = [show(f) for f in posted]
            say(sys.stdout, module=module, old=old, new=new, said=said, seconds=round(seconds, 1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["seeded", "releases"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=2)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for repository in arguments.repositories:
        if arguments.what == "seeded":
            run_seeded(arguments.folder, repository, arguments.each, arguments.seed)
        else:
            run_releases(arguments.folder, repository, arguments.each)


if __name__ == "__main__":
    main()
