"""Pull requests made to exhaust their reviewer: each review ends soon, in little memory, and reports the defects beside.

Every pull request brings one bomb, one hard-coded credential and one undefined name. A review may leave the bomb out,
and then it names it; it must report the two defects all the same, within 60 s and 1.5 GB.

What is measured: the processor seconds of the command and of all processes below it, and the sum of the proportional
set sizes of its process tree, looked at some times a second. Processor time is held to 60 s always. Wall time is held
to 60 s where processors are free; where other programs compete for them, it may be longer by as much as they take:
twice as long where one of their threads was ready to run for each processor.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.unit.changes import ENV, Story
from tests.unit.secret_shapes import shapes

MOST_SECONDS = 60
MOST_MIB = 1536
PLANTED = {
    "app/names.py": "def total(items):\n    return sum(price for item in items)\n",
    "app/settings.py": f'AWS_ACCESS_KEY_ID = "{shapes(18)["AWS"][1]}"\n',
}
DEEP = 100_000
"""Bytes of what stands inside of each other."""

Texts = dict[str, str | bytes]


SOUND = {
    "json": "{}\n", "toml": "a = 1\n", "yml": "a: 1\n", "py": "x = 1\n", "js": "let x = 1;\n", "ts": "let x = 1;\n",
    "tsx": "let x = 1;\n", "go": "package a\n", "rs": "fn f() {}\n", "java": "class A {}\n", "rb": "x = 1\n",
}  # fmt: skip
"""What the base holds where a bomb is an edit: a file that parses, so that the bomb is held against it."""


@dataclass(frozen=True)
class Bomb:
    """What a pull request brings: texts by path, links by path; `unread` is what a review must name as not read.

    `before` is what the base holds already.
    """

    texts: Texts
    unread: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    before: tuple[tuple[str, str], ...] = ()


def edits(texts: Texts, *unread: str) -> Bomb:
    """A bomb that edits files which were sound."""
    before = ((path, SOUND.get(path.rpartition(".")[2], "\n")) for path in texts)
    return Bomb(texts, unread, before=tuple(before))


def one(path: str, text: str | bytes, *, unread: bool = True) -> Bomb:
    """A bomb of one file."""
    return edits({path: text}, *([path] if unread else []))


def aliases() -> str:
    """Nine aliases, of nine aliases each, nine times over."""
    rows = [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefghi")]
    return "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(rows)


def wrapped(text: str, width: int) -> str:
    """The text in lines of so many characters."""
    return "\n".join(text[at : at + width] for at in range(0, len(text), width)) + "\n"


def deep_code(opened: str, closed: str, width: int, *, unread: bool = True) -> Bomb:
    """Brackets in each other, in each language that is parsed."""
    nested = wrapped(f"{opened}1{closed}", width).strip()
    texts: Texts = {
        "deep/a.py": f"x = {nested}\n",
        "deep/a.js": f"let x = {nested};\n",
        "deep/a.ts": f"let x: number = {nested};\n",
        "deep/a.tsx": f"let x = {nested};\n",
        "deep/a.go": f"package deep\n\nvar x = {nested}\n",
        "deep/a.rs": f"fn f() -> i32 {{ {nested} }}\n",
        "deep/A.java": f"class A {{ int x = {nested}; }}\n",
        "deep/a.rb": f"x = {nested}\n",
    }
    return edits(texts, *(texts if unread else ()))


def lines(text: str, times: int) -> str:
    """The text on so many lines; `#` in it is the line's number."""
    return "".join(text.replace("#", str(n)) + "\n" for n in range(times))


def expression_chains() -> Bomb:
    """Decorators, lambdas, f-strings, comparisons and additions by the thousand, each short of a file's usual limits."""
    nested = "x"
    for _ in range(150):
        nested = f"f'{{{nested}}}'"
    texts: Texts = {
        "chain/decorators.py": "def d(f):\n    return f\n\n\n"
        + "@d\n" * 8000
        + "def g():\n    pass\n",
        "chain/lambdas.py": "f = " + "lambda x: (\n" * 3000 + "0" + "\n)" * 3000 + "\n",
        "chain/strings.py": f"x = 1\ny = {nested}\n",
        "chain/sums.py": "x = (\n1\n" + "+ 1\n" * 15_000 + ")\n",
        "chain/calls.py": "x = (\na\n" + ".b()\n" * 15_000 + ")\n",
        "chain/calls.ts": "export const x = a\n" + ".b()\n" * 15_000 + ";\n",
        "chain/indexes.py": "x = a" + "[0]" * 1500 + "\n",
        "chain/ifs.py": "".join(" " * n + "if a:\n" for n in range(90)) + " " * 90 + "pass\n",
        "chain/not.py": "x = " + "not " * 1200 + "1\n",
    }
    return Bomb(texts)


def many_files() -> Bomb:
    """More files than GitHub shows of a pull request."""
    return Bomb({f"many/d{n % 70}/f{n}.py": f"VALUE = {n}\n" for n in range(5000)}, ("many/",))


def folders() -> Bomb:
    """Folders in folders, and modules that import the next one below."""
    texts: Texts = {}
    for depth in range(1, 300, 3):
        texts["f/" * depth + "__init__.py"] = "from .f import x\n"
    texts["f/" * 300 + "a.py"] = "from ..........f import y\nx = 1\n"
    return Bomb(texts)


CONFIG_NAMES = (
    "ruff.toml", "pyproject.toml", ".github/regreen.yml", "setup.cfg", "package.json", "tsconfig.json", "go.mod",
    "Cargo.toml", "requirements.txt", "pip.conf", ".npmrc", "tox.ini", ".eslintrc.json", "pyrightconfig.json",
    ".editorconfig", "pytest.ini", "biome.json", ".prettierrc", "Gemfile", "uv.lock", "Dockerfile", ".env",
)  # fmt: skip


def config_folders() -> Bomb:
    """Folders that are called like files of a configuration."""
    return Bomb({f"{name}/a.py": "x = 1\n" for name in CONFIG_NAMES})


def config_links() -> Bomb:
    """Links that are called like files of a configuration, and lead out of the repository, to a pipe or in a circle."""
    targets = (
        "/etc/passwd",
        "/dev/zero",
        "../../../../etc/shadow",
        "/proc/self/environ",
        "pyproject.toml",
        ".",
    )
    links = tuple((name, targets[at % len(targets)]) for at, name in enumerate(CONFIG_NAMES))
    return Bomb({}, tuple(name for name, _ in links), links)


def settings_file(address: str) -> Bomb:
    """Settings of ours and of our tools that name an address of the attacker's."""
    names = (
        "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "REGREEN_MODEL_URL", "REGREEN_GITHUB_API_URL", "GITHUB_API_URL",
        "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "PIP_INDEX_URL", "UV_INDEX_URL", "NPM_CONFIG_REGISTRY",
    )  # fmt: skip
    texts: Texts = {
        ".env": "".join(f"{name}={address}\n" for name in names),
        "pip.conf": f"[global]\nindex-url = {address}/simple\n",
        ".npmrc": f"registry={address}/\n",
        "uv.toml": f'index-url = "{address}/simple"\n',
        "requirements.txt": f"--index-url {address}/simple\nleftpad==1.0\n",
        ".gitmodules": f'[submodule "a"]\n\tpath = a\n\turl = {address}/a.git\n',
        ".lfsconfig": f"[lfs]\n\turl = {address}/lfs\n",
        ".gitattributes": "*.bin filter=lfs diff=lfs\n*.py diff=evil\n",
        "a.bin": f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 1\n",
        "ruff.toml": f'extend = "{address}/ruff.toml"\n',
        "tsconfig.json": json.dumps({"extends": f"{address}/tsconfig.json"}),
        ".github/regreen.yml": f"model: {{url: {address!r}}}\n",
    }
    return Bomb(texts)


def garbage() -> bytes:
    """What no program ever wrote."""
    return random.Random(18).randbytes(500_000)


def giant_names() -> Bomb:
    """Identifiers of 3,000 letters from far planes, and letters that become other ones when a parser normalises them."""
    far = "\U0001d51e" * 1200
    return Bomb({
        "names/a.py": f"def {far}():\n    return {far}x\n" * 200,
        "names/b.py": lines("ﬀ# = 'ﷺ' * 9  # " + "\u0300" * 500, 3000),
        "names/c.ts": f"const {'名' * 1500} = 1;\n" * 200,
    })  # fmt: skip


def constants() -> Bomb:
    """Numbers and sums whose value nobody should work out."""
    return Bomb({
        "numbers/a.py": f"x = {'9' * 4200}\ny = 9 ** 9 ** 9 ** 9\nz = 'a' * 10 ** 12\nw = 1 << 10 ** 15\n"
        "v = [0] * 10 ** 12\nu = '%0999999999d' % 1\nt = f'{1:>9999999999}'\ns = (1,) * 10 ** 11\n",
        "numbers/b.py": f"x = 0x{'f' * 4500}\ny = -{'7' * 4800}\n",
        "numbers/c.js": f"const x = {'9' * 4200}n ** {'9' * 400}n;\n",
    })  # fmt: skip


def renames() -> Bomb:
    """Every file of a large folder under another name, and all of them alike: git compares each with each."""
    body = lines("VALUE_# = 'some text that is the same'", 60)
    before = tuple((f"old/f{n}.py", f"{body}LAST = {n}\n") for n in range(1500))
    after: Texts = {f"new/g{n}.py": f"{body}LAST = {n}\nMORE = {n}\n" for n in range(1500)}
    return Bomb(after, before=before)


def dependencies() -> Bomb:
    """Manifests and locks of many thousand entries."""
    lock = {
        f"node_modules/p{n}": {"version": "1.0.0", "resolved": f"https://r/p{n}"}
        for n in range(20_000)
    }
    return Bomb({
        "requirements.txt": lines("package-#==1.0.#", 18_000),
        "package.json": json.dumps({"dependencies": {f"p{n}": f"^1.{n}.0" for n in range(15_000)}}, indent=0),
        "package-lock.json": json.dumps({"lockfileVersion": 3, "packages": lock}, indent=0),
        "uv.lock": lines('[[package]]\nname = "p#"\nversion = "1.#"', 12_000),
        "poetry.lock": lines('[[package]]\nname = "p#"\nversion = "1.#"', 12_000),
        "Cargo.lock": lines('[[package]]\nname = "p#"\nversion = "1.#.0"', 12_000),
        "yarn.lock": lines('p#@^1:\n  version "1.0.#"', 12_000),
        "go.sum": lines("example.com/p# v1.0.# h1:abc=", 18_000),
        "go.mod": "module a\n\nrequire (\n" + lines("\texample.com/p# v1.0.#", 18_000) + ")\n",
    }, ("package-lock.json",))  # fmt: skip


def one_line() -> Bomb:
    """Lines of a megabyte, of shapes that make careless patterns go back and forth."""
    words = (
        "a",
        " ",
        "a.",
        "-----BEGIN ",
        "eyJ",
        "://a:",
        "(a",
        "'",
        "\\",
        "#",
        "password=",
        "/*",
        "<a ",
        "{{",
        "${{ ",
    )
    texts: Texts = {
        f"line/{at}.{kind}": word * (1_000_000 // len(word))
        for at, (word, kind) in enumerate(
            zip(words, ("py", "js", "yml", "txt", "go") * 3, strict=True)
        )
    }
    return Bomb(texts, tuple(name for name in texts if not name.endswith("txt")))


def workflow(on: str) -> str:
    """A workflow's text, its trigger last."""
    return f"name: x\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps: [{{run: 'true'}}]\n{on}"


NESTED_BLOCKS = "\n".join(" " * n + "a:" for n in range(900)) + "\n"
QUICK: dict[str, Callable[[], Bomb]] = {
    "YAML aliases in a workflow": lambda: one(
        ".github/workflows/a.yml", aliases() + workflow("on: *i\n")
    ),
    "a TOML key of 40,000 parts": lambda: one("pyproject.toml", ".".join("a" * 40_000) + " = 1\n"),
    "folders named like configuration": config_folders,
}
LONG: dict[str, Callable[[], Bomb]] = {
    "YAML aliases": lambda: one("data.yml", aliases(), unread=False),
    "YAML brackets": lambda: one("data.yml", "a: " + "[" * DEEP),
    "YAML brackets, a line each": lambda: one("data.yml", "a: " + "[\n" * 19_000, unread=False),
    "YAML blocks in blocks": lambda: one("data.yml", NESTED_BLOCKS, unread=False),
    "YAML blocks in blocks of a workflow": lambda: one(
        ".github/workflows/a.yml", workflow("on:\n" + textwrap.indent(NESTED_BLOCKS, " "))
    ),
    "TOML arrays in arrays": lambda: one("Cargo.toml", "a = " + "[" * DEEP),
    "TOML arrays in arrays, a line each": lambda: one("Cargo.toml", "a = " + "[\n" * 19_000),
    "JSON in JSON": lambda: one("package.json", '{"a":\n' * 15_000 + "1" + "}" * 4000 + "\n"),
    "JSON brackets": lambda: one("tsconfig.json", "[" * 200_000),
    "JSON brackets, a few lines": lambda: one(
        "data.json", wrapped("[" * 200_000, 4900), unread=False
    ),
    "parentheses in eight languages": lambda: deep_code("(" * DEEP, ")" * DEEP, 10**6),
    "parentheses in eight languages, some lines": lambda: deep_code(
        "(" * DEEP, ")" * DEEP, 4900, unread=False
    ),
    "brackets that nothing closes": lambda: deep_code("(" * DEEP, "", 10**6),
    "brackets that nothing closes, some lines": lambda: deep_code(
        "(" * DEEP, "", 4900, unread=False
    ),
    "brackets that nothing closes, a line each": lambda: deep_code(
        "(" * 19_000, "", 1, unread=False
    ),
    "braces that nothing closes, some lines": lambda: deep_code(
        "{[" * DEEP, "", 4900, unread=False
    ),
    "5,000 elifs": lambda: one(
        "elifs.py",
        "def f(x):\n    if x == 0:\n        return 0\n"
        + lines("    elif x == #:\n        return #", 5000),
        unread=False,
    ),
    "a table of 50,000 lines": lambda: one(
        "table.py", "T = {\n" + lines("    '#': (#, 'a', None),", 50_000) + "}\n"
    ),
    "a table of 19,000 lines": lambda: one(
        "table.py", "T = {\n" + lines("    '#': (#, 'a', None),", 19_000) + "}\n", unread=False
    ),
    "40 MB of newlines": lambda: one("empty.py", "\n" * 40_000_000),
    "lines of a megabyte": one_line,
    "a long line of go.mod": lambda: one("go.mod", "module a\n" + ".tr" * 40_000),
    "a token's prefix, again and again": lambda: one(
        "tokens.py", "x = '" + "ghs_" * 90_000 + "'\n"
    ),
    "a pip.conf of newlines": lambda: one("pip.conf", "[global]" + "\n" * 19_900, unread=False),
    "dependencies by the thousand": dependencies,
    "5,000 files": many_files,
    "300 folders in each other": folders,
    "links named like configuration": config_links,
    "bytes that are no code": lambda: one("garbage.py", garbage()),
    "no UTF-8": lambda: one(
        "latin.py", b"# \xff\xfe\n" + b"x = '\xc3\x28\xa0\xa1'\n" * 9000, unread=False
    ),
    "NULs": lambda: one("nuls.py", b"x = 1\n" * 2000 + b"\0" * 100_000),
    "names of thousands of letters": giant_names,
    "chains of expressions": expression_chains,
    "constants nobody can compute": constants,
    "renamed files": renames,
}


@dataclass(frozen=True)
class Reviewed:
    """What a review printed, and what it took."""

    document: dict[str, Any]
    wall: float
    cpu: float
    mib: int
    load: float

    @property
    def found(self) -> set[str]:
        """The planted files for which a defect is reported."""
        return {f["path"] for f in self.document["findings"]} & set(PLANTED)

    @property
    def unread(self) -> list[str]:
        """Everything that the review says about what was not read."""
        skipped = [" ".join(map(str, s.values())) for s in self.document["skipped"]]
        return [u["path"] for u in self.document["not_reviewed"]] + skipped


def proposed(root: Path, bomb: Bomb) -> Story:
    """A repository with a branch `change` that brings the bomb and the two defects."""
    story = Story(root)
    story.commit({"app/__init__.py": "", **dict(bomb.before)})
    story.run("checkout", "-q", "-B", "change")
    for path, _ in bomb.before:
        (root / path).unlink()
    for path, target in bomb.links:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to(target)
    story.commit({**bomb.texts, **PLANTED})
    return story


def review(story: Story) -> Reviewed:
    """Review the branch as a person would, from inside of the repository."""
    home = story.root.parent / "home"
    command = [
        sys.executable,
        "-m",
        "regreen",
        "review",
        "--format",
        "json",
        "--no-model",
        "--base",
        "main",
    ]
    environment = {**ENV, "HOME": str(home), "REGREEN_HOME": str(home), "PYTHONSAFEPATH": "1"}
    began = time.monotonic()
    loads: list[float] = []
    most = 0
    with (
        (story.root.parent / "out").open("w+b") as out,
        (story.root.parent / "err").open("w+b") as err,
    ):
        process = subprocess.Popen(command, cwd=story.root, env=environment, stdout=out, stderr=err)
        usage = None
        while usage is None:
            pid, status, found = os.wait4(process.pid, os.WNOHANG)
            if pid:
                usage = found
                process.returncode = os.waitstatus_to_exitcode(status)
                break
            ours = tree(process.pid)
            most = max(most, sum(map(kib, ours)))
            loads.append(max(0.0, runnable() - sum(map(running_threads, ours))))
            if time.monotonic() - began > 15 * MOST_SECONDS:
                process.kill()
            time.sleep(0.15)
        wall = time.monotonic() - began
        out.seek(0), err.seek(0)
        assert process.returncode in {0, 1}, err.read()[-2000:]
        document = json.loads(out.read())
    load = 1 + sum(loads) / max(1, len(loads)) / (os.cpu_count() or 1)
    return Reviewed(document, wall, usage.ru_utime + usage.ru_stime, most // 1024, load)


def tree(top: int) -> list[int]:
    """A process and all below it."""
    below: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(place.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        below.setdefault(parent, []).append(int(place.parent.name))
    found = [top]
    for pid in found:
        found += below.get(pid, [])
    return found


def kib(pid: int) -> int:
    """What a process takes of memory, its share of what it shares with others."""
    for name, word in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        try:
            text = Path(f"/proc/{pid}/{name}").read_text()
        except OSError:
            continue
        if word in text:
            return int(text.partition(word)[2].split()[0])
    return 0


def runnable() -> int:
    """How many threads want a processor now, besides the one that asks."""
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]) - 1


def running_threads(pid: int) -> int:
    """How many of them are this process's."""
    found = 0
    for place in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):
            found += place.read_text().rpartition(")")[2].split()[:1] == ["R"]
    return found


@contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    """An address of the attacker's, and who has called there."""
    callers: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        done = threading.Event()

        def accept() -> None:
            while not done.is_set():
                try:
                    caller = server.accept()[0]
                except TimeoutError:
                    continue
                callers.append(str(caller.getpeername()))
                caller.close()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}", callers
        finally:
            done.set()
            thread.join()


KINDS = [pytest.param(make, id=name) for name, make in QUICK.items()]
KINDS += [pytest.param(make, id=name, marks=pytest.mark.soak) for name, make in LONG.items()]


@pytest.mark.parametrize("make", KINDS)
def test_a_bomb_hides_no_defect(
    make: Callable[[], Bomb], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    expect(make(), tmp_path, record_property)


@pytest.mark.soak
def test_settings_of_a_repository_send_nothing_anywhere(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with listening() as (address, callers):
        expect(settings_file(address), tmp_path, record_property)
    assert callers == []


def expect(bomb: Bomb, folder: Path, note: Callable[[str, object], None]) -> None:
    """Review the bomb's pull request, and hold it to everything that is promised."""
    reviewed = review(proposed(folder / "repo", bomb))
    measured = f"cpu {reviewed.cpu:.1f} s, wall {reviewed.wall:.1f} s, {reviewed.mib} MiB, load {reviewed.load:.1f}"
    note("measured", measured)
    sys.stdout.write(
        "\n  ".join([measured, *sorted(reviewed.found), "not read:", *reviewed.unread[:40]])
    )
    assert reviewed.found == set(PLANTED)
    missing = [path for path in bomb.unread if not any(path in said for said in reviewed.unread)]
    assert missing == [], reviewed.unread[:50]
    assert reviewed.mib <= MOST_MIB
    assert reviewed.cpu <= MOST_SECONDS
    assert reviewed.wall <= MOST_SECONDS * reviewed.load
