from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regreen.code.symbol_index import (
    CallGraph,
    SqliteOutlineStore,
    SymbolIndex,
    build_index,
    decode_outline,
    encode_outline,
)
from regreen.code.symbols import read_outline
from regreen.domain.models import SentPart
from regreen.reviewers.model.change_listing import name_pieces
from regreen.reviewers.model.related_code import (
    changed_definitions,
    find_related_code,
)
from tests.unit.changes import Files, Story

SOURCES: dict[str, tuple[str, set[str], set[tuple[str, str]]]] = {
    "a.py": (
        "import os\nLIMIT = 3\n\n\nclass Box:\n    @property\n    def size(self):\n        return area(self)\n\n\ndef area(box):\n    def inner():\n        return os.getcwd()\n    return inner()\n",
        {"LIMIT", "Box", "Box.size", "area", "area.inner"},
        {
            ("area", "Box.size"),
            ("getcwd", "area.inner"),
            ("inner", "area"),
            ("property", "Box.size"),
        },
    ),
    "a.js": (
        "import x from './x';\nconst fs = require('fs');\nexport const LIMIT = 3, y = z(), w = require('w');\nconst e = new E();\nfunction f() { g(); }\nclass A { m() { this.f(); } n = () => { h(); } }\nconst k = () => new A();\n",
        {"LIMIT", "y", "w", "e", "f", "A", "A.m", "A.n", "k"},
        {("g", "f"), ("f", "A.m"), ("h", "A.n"), ("A", "k"), ("E", ""), ("z", ""), ("require", "")},
    ),
    "a.ts": (
        "interface I {}\nexport class A<T> { m(a: number): void { f(a); } }\nexport const k = async () => { await g(); };\nenum E { X }\n",
        {"I", "A", "A.m", "k", "E"},
        {("f", "A.m"), ("g", "k")},
    ),
    "a.tsx": ("const View = () => <b onClick={() => save()}/>;\n", {"View"}, {("save", "View")}),
    "a.go": (
        'package p\nimport "fmt"\ntype T[K any] struct{}\nfunc (t *T[K]) Do() { fmt.Println(f()) }\nfunc f() int { return 1 }\n',
        {"T", "T.Do", "f"},
        {("Println", "T.Do"), ("f", "T.Do")},
    ),
    "a.rs": (
        "use std::io;\nstruct S<T>(T);\nimpl<T> S<T> { fn go(&self) { help(1); self.x(); } }\nfn help(n: i32) {}\n",
        {"S", "S.go", "help"},
        {("help", "S.go"), ("x", "S.go")},
    ),
    "A.java": (
        "import a.B;\nclass A { A() { } int f() { return g(new B()); } }\n",
        {"A", "A.A", "A.f"},
        {("g", "A.f"), ("B", "A.f")},
    ),
    "a.rb": (
        "module M\n  class A\n    def f(x)\n      g(x)\n    end\n    def self.k; end\n  end\nend\n",
        {"M", "M.A", "M.A.f", "M.A.k"},
        {("g", "M.A.f")},
    ),
}


@pytest.mark.parametrize("path", SOURCES)
def test_definitions_and_calls_in_every_language(path: str) -> None:
    text, definitions, calls = SOURCES[path]
    found = read_outline(path, text.encode())
    assert {d.name for d in found.definitions} == definitions
    assert {(c.name, c.inside) for c in found.calls} == calls
    assert not found.broken


def test_broken_syntax_still_tells_what_it_can() -> None:
    found = read_outline("a.py", b"def f():\n    return 1\n\ndef g(:\n    pass\n")
    assert found.broken
    assert "f" in {d.name for d in found.definitions}


@given(st.binary(max_size=300), st.sampled_from(sorted(SOURCES)))
def test_no_bytes_make_it_fail(data: bytes, path: str) -> None:
    one = read_outline(path, data)
    assert decode_outline(encode_outline(one)) == one


REPO: Files = {
    "shop/__init__.py": "",
    "shop/price.py": "def price(item):\n    return base(item) * 2\n\n\ndef base(item):\n    return item.cost\n",
    "shop/cart.py": "from shop.price import price\n\n\ndef total(items):\n    return sum(price(i) for i in items)\n",
    "shop/other.py": "class Till:\n    def price(self):\n        return 1\n\n\ndef unrelated_discount_table():\n    return {}\n",
    "web/view.ts": "export function show() { return total(); }\n",
    "settings.toml": "discount = 3\n",
    "README.md": "discount discount discount\n",
}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "repo")


def index_of(story: Story, store: SqliteOutlineStore | None = None) -> SymbolIndex:
    return build_index(story.git, story.run("rev-parse", "HEAD").strip(), store)


def test_a_push_reads_only_what_changed(story: Story, tmp_path: Path) -> None:
    store = SqliteOutlineStore(tmp_path / "cache" / "index.sqlite")
    story.commit(REPO)
    assert index_of(story, store).read == 5
    assert index_of(story, store).read == 0
    story.commit(
        {
            "shop/cart.py": "def total(items):\n    return 0\n",
            "moved/price.py": REPO["shop/price.py"],
        }
    )
    again = index_of(story, store)
    assert again.read == 1, "the copied file has a known content"
    assert [d.name for d in again.outlines["shop/cart.py"].definitions] == ["total"]
    assert again.outlines == index_of(story).outlines


def test_what_an_older_version_kept_is_read_again(story: Story, tmp_path: Path) -> None:
    store = SqliteOutlineStore(tmp_path / "index.sqlite")
    story.commit({"a.ts": "export const limit = 3;\n"})
    sha = story.run("rev-parse", "HEAD:a.ts").strip()
    store.put({f"1:typescript:{sha}": b'{"d": [], "c": [], "i": [], "b": false}'})
    assert [d.name for d in index_of(story, store).outlines["a.ts"].definitions] == ["limit"]


def test_a_store_that_grew_large_is_emptied_and_a_damaged_one_only_misses(tmp_path: Path) -> None:
    store = SqliteOutlineStore(tmp_path / "index.sqlite", max_bytes=100_000)
    for number in range(60):
        store.put({str(number): b"x" * 10_000})
    kept = store.get(map(str, range(60)))
    assert "59" in kept
    assert sum(map(len, kept.values())) <= 110_000
    for end in ("", "-shm", "-wal"):
        store.path.with_name(store.path.name + end).write_bytes(b"no database" * 1000)
    store.put({"a": b"1"})
    assert store.get(["a", "59"]) == {}


def test_callers(story: Story) -> None:
    story.commit(REPO)
    graph = CallGraph(index_of(story).outlines)
    callers = graph.find_callers("shop/price.py", "price")
    assert [(c.path, c.definition.name if c.definition else "") for c in callers] == [
        ("shop/cart.py", "total")
    ]
    assert graph.find_callers("shop/cart.py", "total") == [], (
        "another language's total is another total"
    )


def test_a_caller_is_the_method_and_not_the_field_of_its_name(story: Story) -> None:
    story.commit({"Box.java": "class Box {\n  int size = 1;\n  int size() { return grow(); }\n  int grow() { return 2; }\n}\n"})  # fmt: skip
    (caller,) = CallGraph(index_of(story).outlines).find_callers("Box.java", "Box.grow")
    assert caller.definition is not None
    assert (caller.definition.kind, caller.definition.start) == ("method", 3)


def test_related_code_speaks_of_what_the_change_touches(story: Story) -> None:
    story.change(
        REPO,
        {
            "shop/price.py": "def price(item):\n    return base(item) * 3\n\n\ndef base(item):\n    return item.cost\n"
        },
    )
    context = story.context()
    assert changed_definitions(context, context.files) == [("shop/price.py", "price")]
    (piece,) = find_related_code(context, context.files, 500)
    assert piece.startswith("--- shop/cart.py lines 4-5 (calls price)")
    assert name_pieces([piece, "--- a.py: nothing calls it"], "code") == (
        SentPart("code", "shop/cart.py", "4-5"),
    )


def test_a_method_of_a_built_in_type_is_not_taken_for_the_repositorys(story: Story) -> None:
    shop = (
        "class Store:\n    def get(self, key):\n        return key\n\n\ndef load():\n    return 1\n"
    )
    use = "from shop.store import Store, load\n\n\ndef use(options):\n    return load()\n"
    story.change(
        {"shop/store.py": shop, "shop/use.py": use},
        {"shop/use.py": use.replace("load()", "options.get(1), load()")},
    )
    found = "\n\n".join(find_related_code(story.context(), story.context().files, 900))
    assert "shop/store.py lines 1-3" not in found
    assert "nothing in this repository calls use by its name" in found
