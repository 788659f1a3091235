"""Seeded defects and real releases in JavaScript and TypeScript of npm packages. Figures: languages.md.

python benchmarks/script_cases.py seeded|releases FOLDER PACKAGE... [--seed N] [--each N]

Packages are packed by the npm client into FOLDER, and laid out as a repository without their dependencies.
A defect counts as named when a finding is posted that its twin (the same lines, changed harmlessly) does not have.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tarfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from regreen.code.file_languages import language_of, parser_for
from regreen.code.paths import is_test
from regreen.code.symbols import node_text, walk_nodes
from regreen.languages.script import is_script

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": os.environ["HOME"],
    **{k: v for k, v in os.environ.items() if k == "PYTHONPATH"},
    **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
GENERATED = re.compile(
    r"(^|/)(dist|build|es|esm\w*|cjs|umd|bundles?|browser|node_modules|vendor\w*|types|generated|bench\w*|examples?|docs?|fixtures?|tests?|scripts)(/|$)|\.min\.|\.d\.[cm]?ts$"
)
FUNCTIONS = {
    "function_declaration",
    "method_definition",
    "generator_function_declaration",
    "function_expression",
    "arrow_function",
}
Edit = tuple[int, int, str]


@dataclass(frozen=True)
class Mutation:
    """A defect of one kind: edits of one file by byte offsets, and those of the harmless twin."""

    kind: str
    path: str
    line: int
    edits: tuple[Edit, ...]
    twin: tuple[Edit, ...] = ()
    name: str = ""


def git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=root, env=ENV, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace").strip()


def pack(package: str, version: str, folder: Path) -> Path:
    """The package's archive, fetched once."""
    place = folder / "packed" / f"{package.replace('/', '+')}-{version}.tgz"
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.is_file():
        done = subprocess.run(
            ["npm", "pack", f"{package}@{version}", "--silent"],
            cwd=place.parent,
            env=ENV,
            capture_output=True,
            check=True,
            timeout=120,
        )
        (place.parent / done.stdout.decode().split()[-1]).rename(place)
    return place


def read_sources(archive: Path) -> dict[str, bytes]:
    """Written sources of a package: TypeScript where it has any, else JavaScript that is no build."""
    files: dict[str, bytes] = {}
    with tarfile.open(archive) as packed:
        for member in packed:
            path = member.name.split("/", 1)[-1]
            if member.isfile() and member.size < 400_000 and (data := packed.extractfile(member)):
                files[path] = data.read()
    scripts = [p for p in files if is_script(p) and not GENERATED.search(p)]
    typed = [p for p in scripts if p.endswith((".ts", ".tsx", ".mts", ".cts"))]
    kept = typed if len(typed) > 10 else [p for p in scripts if p not in typed]
    return {p: files[p] for p in [*kept, "package.json", "tsconfig.json"] if p in files}


def commit(root: Path, files: dict[str, bytes], message: str) -> str:
    for path in git(root, "ls-files").split("\n"):
        if path and path not in files:
            (root / path).unlink()
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)
    return git(root, "rev-parse", "HEAD")


def review(root: Path, base: str, head: str) -> tuple[list[dict[str, object]], float]:
    """The findings that a review posts, and its seconds."""
    start = time.monotonic()
    command = [
        str(Path(sys.executable).parent / "regreen"),
        "review",
        "-q",
        "--no-model",
        "--format",
        "json",
        "--max-comments",
        "100",
        "--base",
        base,
        "--head",
        head,
    ]
    done = subprocess.run(
        command,
        cwd=root,
        env={**ENV, "PATH": os.environ["PATH"]},
        capture_output=True,
        check=False,
        timeout=600,
    )
    try:
        return json.loads(done.stdout)["findings"], time.monotonic() - start
    except (ValueError, KeyError):
        print("no answer:", done.stderr.decode()[-300:], file=sys.stderr)
        return [], time.monotonic() - start


def versions_of(package: str, count: int) -> list[str]:
    said = subprocess.run(
        ["npm", "view", package, "versions", "--json"],
        env=ENV,
        capture_output=True,
        check=True,
        timeout=60,
    )
    stable = [v for v in json.loads(said.stdout) if re.fullmatch(r"\d+\.\d+\.\d+", v)]

    def key(v):
        return tuple(map(int, v.split(".")))

    stable = [
        v
        for v in sorted(stable, key=key)
        if key(v)[0] == max(key(x)[0] for x in stable) or len(stable) < count
    ] or stable
    return stable[-count:]


# Mutations


@dataclass
class Tree:
    """What a package defines, by name."""

    files: dict[str, bytes]

    def __post_init__(self) -> None:
        self.roots = {
            p: parser_for(language_of(p) or "").parse(d).root_node
            for p, d in self.files.items()
            if is_script(p) and not is_test(p)
        }
        self.roots = {p: r for p, r in self.roots.items() if not r.has_error}
        self.functions: dict[str, list[tuple[str, object]]] = defaultdict(list)
        self.members: Counter[str] = Counter()
        self.identifiers: Counter[str] = Counter()
        self.imports: dict[str, set[str]] = defaultdict(set)
        for path, root in self.roots.items():
            for node in walk_nodes(root):
                self._read(path, node)

    def _read(self, path: str, node: object) -> None:
        kind = node.type
        if kind in {"function_declaration", "generator_function_declaration"}:
            self.functions[node_text(node.child_by_field_name("name"))].append((path, node))
        elif (
            kind == "variable_declarator"
            and (value := node.child_by_field_name("value")) is not None
            and value.type in {"arrow_function", "function_expression"}
        ):
            self.functions[node_text(node.child_by_field_name("name"))].append((path, value))
        elif kind == "method_definition":
            self.functions[node_text(node.child_by_field_name("name"))].append((path, node))
        if kind in {
            "identifier",
            "property_identifier",
            "shorthand_property_identifier",
            "shorthand_property_identifier_pattern",
            "private_property_identifier",
        }:
            self.identifiers[node_text(node)] += 1
            if kind == "property_identifier" and node.parent.type != "member_expression":
                self.members[node_text(node)] += 1
        if kind == "import_specifier":
            self.imports[node_text(node.child_by_field_name("name"))].add(path)
        if kind == "shorthand_property_identifier_pattern" and "require(" in node_text(
            node.parent.parent
        ):
            self.imports[node_text(node)].add(path)
        if kind == "member_expression":
            self.imports[f".{node_text(node.child_by_field_name('property'))}"].add(path)

    def unique(self, name: str) -> tuple[str, object] | None:
        found = self.functions.get(name, [])
        return found[0] if len(found) == 1 else None


def called(node: object) -> str:
    function = node.child_by_field_name("function")
    if function is None:
        return ""
    if function.type == "identifier":
        return node_text(function)
    if function.type == "member_expression":
        return node_text(function.child_by_field_name("property"))
    return ""


def parameters(node: object) -> list[object]:
    listed = node.child_by_field_name("parameters")
    return [c for c in listed.named_children if c.type != "comment"] if listed is not None else []


def dropped_awaits(tree: Tree) -> Iterator[Mutation]:
    for path, root in tree.roots.items():
        for node in walk_nodes(root):
            if node.type != "await_expression" or node.named_children[0].type != "call_expression":
                continue
            call = node.named_children[0]
            found = tree.unique(called(call))
            if found is None or not any(c.type == "async" for c in found[1].children):
                continue
            inner = call.start_byte
            yield Mutation(
                "await",
                path,
                node.start_point[0] + 1,
                ((node.start_byte, inner, ""),),
                ((inner, call.end_byte, f"({node_text(call)})"),),
                called(call),
            )


def swapped_arguments(tree: Tree) -> Iterator[Mutation]:
    for path, root in tree.roots.items():
        for node in walk_nodes(root):
            if node.type != "call_expression" or (found := tree.unique(called(node))) is None:
                continue
            given = [
                c
                for c in node.child_by_field_name("arguments").named_children
                if c.type != "comment"
            ]
            wanted = parameters(found[1])
            if (
                len(given) < 2
                or len(wanted) < 2
                or node_text(given[0]) == node_text(given[1])
                or any(c.type == "spread_element" for c in given)
            ):
                continue
            (a, b) = given[:2]
            yield Mutation(
                "swapped",
                path,
                node.start_point[0] + 1,
                (
                    (a.start_byte, a.end_byte, node_text(b)),
                    (b.start_byte, b.end_byte, node_text(a)),
                ),
                ((a.start_byte, a.end_byte, f"({node_text(a)})"),),
                called(node),
            )


def changed_signatures(tree: Tree) -> Iterator[Mutation]:
    for name, found in tree.functions.items():
        if len(found) != 1 or found[0][1].child_by_field_name("body") is None:
            continue
        path, node = found[0]
        users = {p for p in tree.imports.get(name, ()) if p != path} | set(
            tree.imports.get(f".{name}", ())
        )
        listed, body = node.child_by_field_name("parameters"), node.child_by_field_name("body")
        if (
            not users
            or listed is None
            or body.type != "statement_block"
            or any(
                "rest" in c.type
                or c.type in {"optional_parameter", "assignment_pattern"}
                or "..." in node_text(c)
                for c in parameters(node)
            )
        ):
            continue
        typed = path.endswith(("ts", "tsx"))
        comma = ", " if parameters(node) else ""
        last = max([c.end_byte for c in parameters(node)], default=listed.start_byte + 1)
        text = f"{comma}limits: {{ most: number }}" if typed else f"{comma}limits"
        use = "\n  if (limits.most < 1) throw new RangeError('too few');"
        yield Mutation(
            "signature",
            path,
            node.start_point[0] + 1,
            ((last, last, text), (body.start_byte + 1, body.start_byte + 1, use)),
            ((body.start_byte + 1, body.start_byte + 1, "\n  // checked\n"),),
            name,
        )


def removed_exports(tree: Tree) -> Iterator[Mutation]:
    for name, users in tree.imports.items():
        found = tree.functions.get(name, [])
        if name.startswith(".") or len(found) != 1 or not {p for p in users if p != found[0][0]}:
            continue
        path = found[0][0]
        data = tree.files[path]
        places = [
            n
            for n in walk_nodes(tree.roots[path])
            if node_text(n) == name
            and n.type in {"identifier", "property_identifier", "shorthand_property_identifier"}
        ]
        if any(
            n.parent.type == "member_expression"
            and n.type == "property_identifier"
            and node_text(n.parent.child_by_field_name("object"))
            not in {"this", "exports", "module.exports"}
            for n in places
        ):
            continue
        edits = tuple((n.start_byte, n.end_byte, f"{name}Anew") for n in places)
        if edits and len(data) < 100_000:
            yield Mutation(
                "export", path, places[0].start_point[0] + 1, edits, ((0, 0, "// renamed\n"),), name
            )


def misspelt_properties(tree: Tree) -> Iterator[Mutation]:
    for path, root in tree.roots.items():
        for node in walk_nodes(root):
            if node.type != "member_expression" or (
                node.parent.type == "assignment_expression"
                and node.parent.child_by_field_name("left") == node
            ):
                continue
            name = node.child_by_field_name("property")
            word = node_text(name)
            if len(word) < 5 or tree.members[word] < 1:
                continue
            wrong = word[:-3] + word[-2] + word[-3] + word[-1]
            if wrong != word and not tree.identifiers[wrong]:
                yield Mutation(
                    "property",
                    path,
                    name.start_point[0] + 1,
                    ((name.start_byte, name.end_byte, wrong),),
                    ((name.start_byte, name.end_byte, f"{word}/* same */"),),
                    word,
                )


def removed_chains(tree: Tree) -> Iterator[Mutation]:
    for path, root in tree.roots.items():
        for node in walk_nodes(root):
            if node.type == "optional_chain" and language_of(path) != "javascript":
                follows = tree.files[path][node.end_byte : node.end_byte + 1]
                yield Mutation(
                    "chain",
                    path,
                    node.start_point[0] + 1,
                    ((node.start_byte, node.end_byte, "" if follows in b"[(" else "."),),
                    ((node.start_byte, node.end_byte, "/* */?."),),
                )


def wrong_operators(tree: Tree) -> Iterator[Mutation]:
    for path, root in tree.roots.items():
        for node in walk_nodes(root):
            if node.type == "if_statement":
                test = node.child_by_field_name("condition").named_children[0]
                twin = ((test.start_byte, test.end_byte, f"({node_text(test)})"),)
                line = test.start_point[0] + 1
                if (
                    test.type == "call_expression"
                    and (found := tree.unique(called(test)))
                    and not node_text(found[1]).startswith("get ")
                ):
                    arguments = test.child_by_field_name("arguments")
                    yield Mutation(
                        "operator",
                        path,
                        line,
                        ((arguments.start_byte, arguments.end_byte, ""),),
                        twin,
                    )
                elif (
                    test.type == "binary_expression"
                    and node_text(test.child_by_field_name("operator")) == "==="
                ):
                    left, right, sign = (
                        test.child_by_field_name("left"),
                        test.child_by_field_name("right"),
                        test.child_by_field_name("operator"),
                    )
                    if left.type in {"identifier", "member_expression"}:
                        yield Mutation(
                            "operator", path, line, ((sign.start_byte, sign.end_byte, "="),), twin
                        )
                    elif left.type == "unary_expression" and right.type == "string":
                        yield Mutation(
                            "operator",
                            path,
                            line,
                            ((right.start_byte + 1, right.end_byte - 1, "stirng_"),),
                            twin,
                        )
                elif (
                    test.type == "unary_expression"
                    and test.named_children[0].type == "parenthesized_expression"
                    and " in " in node_text(test)
                ):
                    inner = test.named_children[0]
                    yield Mutation(
                        "operator",
                        path,
                        line,
                        (
                            (inner.start_byte, inner.start_byte + 1, ""),
                            (inner.end_byte - 1, inner.end_byte, ""),
                        ),
                        twin,
                    )


def added(kind: str, bad: str, good: str, number: int) -> Callable[[Tree], Iterator[Mutation]]:
    """Lines at the end of a file; `use a b` is an import in the file's own way."""

    def find(tree: Tree) -> Iterator[Mutation]:
        for path, data in tree.files.items():
            if path in tree.roots and len(data) > 500:
                end, line = len(data), data.count(b"\n") + 2
                texts = [write_for(path, data, text) for text in (bad, good)]
                edits, twin = (((end, end, text),) for text in texts)
                yield Mutation(kind, path, line, edits, twin, str(number))

    return find


def write_for(path: str, data: bytes, text: str) -> str:
    if language_of(path) == "javascript":
        text = re.sub(r": (?:string|any)(?=[,)])", "", text)
    module = b"\nexport " in data or b"\nimport " in data or data.startswith(b"import ")
    load = r"import \1 from '\2';\n" if module else r"const \1 = require('\2');\n"
    return "\n" + re.sub(r"^use (\S+) (.*)\n", load, text, flags=re.MULTILINE)


SECRETS = [
    (
        "const serviceToken = 'ghp_16C7e42F292c6912E7710c838347Ae178B4a';\n",
        "const serviceToken = process.env.SERVICE_TOKEN;\n",
    ),
    (
        "const options = { accessKeyId: 'AKIAZ5QWERTYUIOPAS7D', region: 'eu-west-1' };\n",
        "const options = { accessKeyId: 'AKIAXXXXXXXXXXXXXXXX', region: 'eu-west-1' };\n",
    ),
    (
        "const db = { url: 'postgres://shop:Vt7wq9ZrLm2x@db.shop.internal/shop' };\n",
        "const db = { url: 'postgres://user:password@localhost/shop' };\n",
    ),
    (
        "const billing = { key: 'sk_live_51HqLx2KZvKYlo2Ck7d9QmT4e' };\n",
        "const billing = { key: 'sk_test_xxxxxxxxxxxxxxxx' };\n",
    ),
]
CRYPTO = [
    (
        "use {createHash} node:crypto\nfunction storePassword(password: string) { return createHash('md5').update(password).digest('hex'); }\n",
        "use {createHash} node:crypto\nfunction cacheKey(path: string) { return createHash('md5').update(path).digest('hex'); }\n",
    ),
    (
        "function newSessionToken() { return Math.random().toString(36).slice(2); }\n",
        "function jitter() { return Math.random() * 100; }\n",
    ),
    (
        "use crypto crypto\nfunction seal(text: string, key: any) { const c = crypto.createCipheriv('des-ede3', key, ''); return c.update(text); }\n",
        "use crypto crypto\nfunction seal(text: string, key: any, iv: any) { const c = crypto.createCipheriv('aes-256-gcm', key, iv); return c.update(text); }\n",
    ),
    (
        "use https https\nfunction load(url: string) { return https.request(url, { rejectUnauthorized: false }); }\n",
        "use https https\nfunction load(url: string) { return https.request(url, { rejectUnauthorized: true }); }\n",
    ),
]
INJECTIONS = [
    (
        "export function showUser(req: any, res: any, db: any) {\n  const name = req.query.name;\n  db.query(`SELECT * FROM users WHERE name = '${name}'`).then((rows: any) => res.json(rows));\n}\n",
        "export function showUser(req: any, res: any, db: any) {\n  const name = req.query.name;\n  db.query('SELECT * FROM users WHERE name = $1', [name]).then((rows: any) => res.json(rows));\n}\n",
    ),
    (
        "use {exec} node:child_process\nexport function archive(req: any, res: any) {\n  const { folder } = req.body;\n  exec('tar czf out.tgz ' + folder, () => res.end());\n}\n",
        "use {execFile} node:child_process\nexport function archive(req: any, res: any) {\n  const { folder } = req.body;\n  execFile('tar', ['czf', 'out.tgz', '--', folder], () => res.end());\n}\n",
    ),
    (
        "use path node:path\nuse fs node:fs\nexport async function download(ctx: any) {\n  const file = path.join('/srv/files', ctx.params.file);\n  ctx.body = fs.createReadStream(file);\n}\n",
        "use path node:path\nuse fs node:fs\nexport async function download(ctx: any) {\n  const file = path.join('/srv/files', path.basename(ctx.params.file));\n  ctx.body = fs.createReadStream(file);\n}\n",
    ),
    (
        "export function back(req: any, res: any) {\n  const target = req.query.next || '/';\n  return res.redirect(target);\n}\n",
        "export function back(req: any, res: any) {\n  const target = req.query.next === 'cart' ? '/cart' : '/';\n  return res.redirect(target);\n}\n",
    ),
]
KINDS: dict[str, list[Callable[[Tree], Iterator[Mutation]]]] = {
    "await": [dropped_awaits],
    "swapped": [swapped_arguments],
    "signature": [changed_signatures],
    "export": [removed_exports],
    "property": [misspelt_properties],
    "chain": [removed_chains],
    "operator": [wrong_operators],
    "secret": [added("secret", *pair, i) for i, pair in enumerate(SECRETS)],
    "crypto": [added("crypto", *pair, i) for i, pair in enumerate(CRYPTO)],
    "injection": [added("injection", *pair, i) for i, pair in enumerate(INJECTIONS)],
}


def draw(tree: Tree, chance: random.Random, taken: set[str]) -> Iterator[Mutation]:
    """One mutation of each kind, each in another file."""
    used: set[str] = set()
    for kind, makers in KINDS.items():
        found = [
            m
            for m in chance.choice(makers)(tree)
            if m.path not in used and f"{kind} {m.name}" not in taken
        ]
        if found:
            chosen = chance.choice(found)
            used.add(chosen.path)
            taken.add(f"{kind} {chosen.name}")
            yield chosen


def apply(data: bytes, edits: tuple[Edit, ...]) -> bytes:
    for start, end, text in sorted(edits, reverse=True):
        data = data[:start] + text.encode() + data[end:]
    return data


def run_seeded(folder: Path, package: str, rounds: int, seed: int, out: TextIO) -> None:
    root = folder / package.replace("/", "+")
    git_init(root)
    files = read_sources(pack(package, versions_of(package, 1)[-1], folder))
    base, tree, taken = commit(root, files, "sources"), Tree(files), set()
    for number in range(rounds):
        mutations = list(draw(tree, random.Random(f"{seed} {number} {package}"), taken))
        posted = {}
        for side in ("bad", "twin"):
            head = commit(
                root,
                files
                | {
                    m.path: apply(files[m.path], m.edits if side == "bad" else m.twin)
                    for m in mutations
                },
                side,
            )
            git(root, "tag", "-f", f"{side}-{number}", head)
            posted[side], seconds = review(root, base, head)
            git(root, "reset", "-q", "--hard", base)
            say(
                out,
                package=package,
                number=number,
                side=side,
                seconds=round(seconds, 1),
                findings=[show(f) for f in posted[side]],
            )
        for m in mutations:
            twin = [show(f) for f in posted["twin"] if f["path"] == m.path]
            rules = {x.split()[0] for x in twin}
            said = [
                x
                for f in posted["bad"]
                if f["path"] == m.path and (x := show(f)).split()[0] not in rules
            ]
            row = files[m.path].split(b"\n")[m.line - 1 : m.line]
            say(
                out,
                package=package,
                number=number,
                kind=m.kind,
                typed=language_of(m.path) != "javascript",
                path=m.path,
                line=m.line,
                name=m.name,
                named=bool(said),
                said=said,
                twin=twin,
                code=b"".join(row).decode("utf-8", "replace").strip()[:150],
            )


def show(finding: dict[str, object]) -> str:
    return f"{finding['rule']} {finding['path']}:{finding.get('line') or finding.get('start_line')} {finding['confidence']} {str(finding['title'])[:160]}"


def say(out: TextIO, **row: object) -> None:
    print(json.dumps(row), file=out, flush=True)


def run_releases(folder: Path, package: str, count: int, out: TextIO) -> None:
    root = folder / (package.replace("/", "+") + "-releases")
    git_init(root)
    shas = [
        (v, commit(root, read_sources(pack(package, v, folder)), v))
        for v in versions_of(package, count + 1)
    ]
    for (old, base), (new, head) in itertools.pairwise(shas):
        if git(root, "diff", "--stat", base, head, "--", ":!package.json") == "":
            continue
        posted, seconds = review(root, base, head)
        say(
            out,
            package=package,
            old=old,
            new=new,
            said=[show(f) for f in posted],
            seconds=round(seconds, 1),
        )


def git_init(root: Path) -> None:
    if not (root / ".git").is_dir():
        root.mkdir(parents=True)
        git(root, "init", "-q", "-b", "main")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["seeded", "releases"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("packages", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=2)
    arguments = parser.parse_args()
    for package in arguments.packages:
        if arguments.what == "seeded":
            run_seeded(arguments.folder, package, arguments.each, arguments.seed, sys.stdout)
        else:
            run_releases(arguments.folder, package, arguments.each, sys.stdout)


if __name__ == "__main__":
    main()
