"""What names tell of a change of JavaScript and TypeScript, and weak cryptography: defects and their harmless twins."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from regreen.code.symbols import node_text
from regreen.reviewers.analyzers.script_names import (
    ScriptFile,
    ScriptNames,
    ScriptProgram,
    is_typing_slip,
)
from regreen.reviewers.analyzers.script_security import find_crypto_misuses
from tests.unit.changes import Files, Story

STORE = """\
const rates = require('./rates');

async function loadOrder(client, orderId) {
  return client.get(orderId);
}

function isPaid(order) {
  return rates.rateOf(order.currency) > 0 && order.remaining === 0;
}

function reserveStock(warehouse, article) {
  warehouse.reserved.push(article);
}

module.exports = { loadOrder, isPaid, reserveStock };
"""
USE = """\
const { loadOrder, isPaid, reserveStock } = require('./store');

exports.ship = async function (client, orderId, warehouse) {
  const order = await loadOrder(client, orderId);
  if (isPaid(order)) {
    for (const article of order.articles) reserveStock(warehouse, article);
  }
  console.log(order.remaining);
};
"""
RATES = "exports.rateOf = function (currency) { return { EUR: 1 }[currency] || 0; };\n"
PROJECT: Files = {"lib/store.js": STORE, "lib/use.js": USE, "lib/rates.js": RATES}

DEFECTS = [
    ("lib/use.js", "await loadOrder", "loadOrder", "script/dropped-await"),
    (
        "lib/use.js",
        "const order = await loadOrder(client, orderId);",
        "const order = loadOrder(client, orderId);\n  if (order.late) return order;",
        "script/dropped-await",
    ),
    ("lib/use.js", "(client, orderId);", "(orderId, client);", "script/swapped-arguments"),
    ("lib/use.js", "isPaid(order)", "isPaid", "script/uncalled-function"),
    ("lib/use.js", "order.remaining", "order.remainnig", "script/misspelt-property"),
    ("lib/use.js", "order.remaining", "order.remaiining", "script/misspelt-property"),
    (
        "lib/store.js",
        "isPaid(order) {",
        "isPaid(order, limits) {\n  if (limits.most < 1) return false;",
        "contracts/broken-caller",
    ),
    (
        "lib/store.js",
        "reserveStock(warehouse, article)",
        "reserveStock(article, warehouse)",
        "contracts/broken-caller",
    ),
    ("lib/rates.js", "exports.rateOf", "exports.rateIn", "contracts/removed-still-used"),
]
TWINS = [
    ("lib/use.js", "const order = await loadOrder(client, orderId);", "const pending = loadOrder(client, orderId);\n  const order = await pending;"),
    ("lib/use.js", "await loadOrder(client, orderId);\n", "loadOrder(client, orderId);\n  if (warehouse) return order;\n  (await order).late = 1;\n"),
    ("lib/use.js", "await loadOrder(client, orderId)", "await Promise.all([loadOrder(client, orderId)])"),
    ("lib/store.js", "async function loadOrder", "function loadOrder"),
    ("lib/use.js", "isPaid(order)", "isPaid && isPaid(order)"),
    ("lib/use.js", "order.remaining", "order.remainings"),
    ("lib/use.js", "order.remaining", "order.retaining + order.remaining"),
    ("lib/use.js", "order.remaining", "order.discount"),
    ("lib/store.js", "isPaid(order) {", "isPaid(order, limits) {\n  if (limits && limits.most < 1) return false;"),
    ("lib/store.js", "isPaid(order) {", "isPaid(order, limits = {}) {\n  if (limits.most < 1) return false;"),
    ("lib/store.js", "isPaid(order) {", "isPaid(order, log) {\n  log?.info('paid');"),
]  # fmt: skip


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "repo")


def rules(story: Story, path: str, old: str, new: str) -> set[tuple[str, str]]:
    text = str(PROJECT[path])
    assert old in text
    story.change(PROJECT, {path: text.replace(old, new)})
    return {(c.rule, c.path) for c in ScriptNames().run(story.context()).claims}


@pytest.mark.parametrize(("path", "old", "new", "rule"), DEFECTS)
def test_a_defect_is_named_where_it_was_written(
    story: Story, path: str, old: str, new: str, rule: str
) -> None:
    assert rules(story, path, old, new) == {(rule, path)}


@pytest.mark.parametrize(("path", "old", "new"), TWINS)
def test_its_harmless_twin_is_not(story: Story, path: str, old: str, new: str) -> None:
    assert rules(story, path, old, new) == set()


SWAPPED = "const { reserveStock } = require('./store');\nexports.hold = (warehouse, article) => reserveStock(article, warehouse);\n"


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("", SWAPPED, 1),
        (SWAPPED, SWAPPED, 0),
        (
            "",
            "const gap = (flatA, flatB) => flatA - flatB;\nexports.gap = (a, b) => gap(b, a);\n",
            0,
        ),
    ],
    ids=["new", "moved", "letters"],
)
def test_arguments_that_only_moved_or_are_letters_are_not_swapped(
    story: Story, old: str, new: str, count: int
) -> None:
    story.change({**PROJECT, "lib/old.js": old}, {"lib/old.js": "", "lib/new.js": new})
    found = ScriptNames().run(story.context()).claims
    assert [c.rule for c in found] == ["script/swapped-arguments"] * count


FORMS = """\
export function a1(x) {}
exports.b1 = function (x) {};
const c1 = (x) => x, other = map(c1);
class D { static async e1(x) {} }
class E {
  async f1(x) {}
}
const g = { h1: function (x) {} };
function* k1(x) {}
"""


def test_functions_are_found_in_each_form_without_a_search_of_the_files_that_call_them(
    story: Story,
) -> None:
    calls: Files = {"lib/calls.js": "t.a1(1); t.b1(1); t.c1(t.e1(1)); t.h1(1);\n"}
    longer = {"lib/longer.js": "t.a12(a12);\n"}
    story.change({**PROJECT, **calls, **longer}, {"lib/forms.js": FORMS})
    context = story.context()
    program = ScriptProgram(context, context.head)
    names = ["a1", "b1", "c1", "f1", "h1", "k1"]
    found = {n: [(f.path, f.name) for f in program.find_functions(n)] for n in names}
    assert found == {n: [("lib/forms.js", n)] for n in names}
    assert program.find_functions("map") == []
    assert [f.path for f in program.parse_files_containing("a1")] == [*calls, "lib/forms.js"]
    assert {*program._defined} == {"lib/forms.js"}


def test_calls_of_a_name_are_those_among_all_calls() -> None:
    code = "f(f(1).f, f); f.f(2).f(3)?.f(4); é.f(5); new f(6); a.f<T>(7); g(f); myf(f8(f)); f`9`; x!.f(10); (f)(11);"
    file = ScriptFile("a.ts", f"{code}\n{FORMS}")
    for name in {c.name for c in file.calls}:
        lines = sorted(node_text(c.node) for c in file.calls if c.name == name)
        assert sorted(node_text(c.node) for c in file.find_calls(name)) == lines
    assert len([*file.find_calls("f")]) == 9
    assert len([*ScriptFile("a.ts", "f(f);\n" * 300).find_calls("f")]) == 300


def test_words_are_counted_one_by_one_as_all_together(story: Story) -> None:
    story.change(PROJECT, {"lib/more.js": "order.$order = order1 + 1order + border;\n"})
    context = story.context()
    program = ScriptProgram(context, context.head)
    alone = {w for w in program.words if program.has_word_more_than_twice(w)}
    texts = "\n".join(program.texts.values())
    counts = Counter(re.findall(r"[A-Za-z_$][\w$]*", texts))
    assert program.words == {*counts}
    assert alone == {w for w in counts if counts[w] > 2}
    assert "order" in alone


def test_calls_both_ways_in_a_file_with_new_line_ends_are_not_exchanged(story: Story) -> None:
    calls = (
        "const cut = require('cutter');\ncut(start, end);\ncut(end, start);\ncut(start, end, 1);\n"
    )
    story.change({"a.js": calls.replace("\n", "\r\n")}, {"a.js": calls})
    assert ScriptNames().run(story.context()).claims == ()


def test_a_call_that_the_change_mends_in_a_later_line_is_not_left_behind(story: Story) -> None:
    define = "export function find(data, root) { return data[root]; }\n"
    call = "import { find } from './find.js';\nfind(\n  data,\n  root\n);\n"
    after = {
        "find.js": define.replace("root)", "more, root)"),
        "use.js": call.replace("  root", "  more,\n  root"),
    }
    story.change({"find.js": define, "use.js": call}, after)
    assert ScriptNames().run(story.context()).claims == ()
    story.run("checkout", "-q", "main")
    story.change({"find.js": define, "use.js": call}, {"find.js": after["find.js"]})
    assert [c.rule for c in ScriptNames().run(story.context()).claims] == [
        "contracts/broken-caller"
    ]


def test_a_call_that_nobody_waited_for_before_lost_no_await(story: Story) -> None:
    calls = "async function send(n) { return n; }\nasync function run() {\n  await send(1);\n  send(2);\n}\n"
    after = calls.replace("send(1)", "send(10)").replace("send(2)", "send(20)")
    story.change({"a.js": calls}, {"a.js": after})
    assert ScriptNames().run(story.context()).claims == ()
    story.run("checkout", "-q", "main")
    story.change({"a.js": calls}, {"a.js": after.replace("await send(10)", "await other.send(10)")})
    assert ScriptNames().run(story.context()).claims == ()


def test_an_order_that_other_calls_share_is_not_exchanged(story: Story) -> None:
    calls = "const add = require('adder');\nadd(list, 'a');\nadd(list, 'b');\nadd(list, 'c');\n"
    story.change({"a.js": calls}, {"a.js": calls.replace("list, 'b'", "'b', list")})
    assert {c.rule for c in ScriptNames().run(story.context()).claims} == {
        "script/swapped-arguments"
    }
    story.run("checkout", "-q", "main")
    fixed = {"a.js": calls}
    story.change({"a.js": calls.replace("list, 'b'", "'b', list")}, fixed)
    assert ScriptNames().run(story.context()).claims == ()


@pytest.mark.parametrize(("name", "said"), [("sorted", True), ("descending", False)])
def test_a_function_that_is_named_for_it_may_exchange(story: Story, name: str, said: bool) -> None:
    compare = "function compare(left, right) { return left - right }\n"
    call = f"{compare}const {name} = (left, right) => compare(right, left)\n"
    story.change({"a.js": compare}, {"a.js": call})
    assert bool(ScriptNames().run(story.context()).claims) is said


@pytest.mark.parametrize(
    ("wrong", "right", "slip", "loose"),
    [
        ("bodyLenght", "bodyLength", True, True),
        ("onRecieve", "onReceive", True, True),
        ("itemRemaning", "itemRemaining", False, True),
        ("rremaining", "remaining", False, True),
        ("headers", "header", False, False),
        ("parsed", "parser", False, False),
        ("onLoad", "onload", False, False),
        ("sha256", "sha265", False, False),
        ("length", "length", False, False),
        ("filter", "format", False, False),
    ],
)
def test_slips_of_the_keys(wrong: str, right: str, slip: bool, loose: bool) -> None:
    assert is_typing_slip(wrong, right) is slip
    assert is_typing_slip(wrong, right, loose=True) is loose


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("function save(password) { return crypto.createHash('md5').update(password); }", "weak-hash"),
        ("function cacheKey(path) { return crypto.createHash('md5').update(path); }", None),
        ("const resetToken = Math.random().toString(36);", "weak-random"),
        ("const retryDelay = Math.random() * 100;", None),
        ("crypto.createCipheriv('aes-128-ecb', key, null);", "weak-cipher"),
        ("crypto.createCipheriv('aes-256-gcm', key, iv);", None),
        ("crypto.createCipheriv('aes-256-cbc', key, Buffer.alloc(16));", "static-iv"),
        ("https.get(url, { rejectUnauthorized: false });", "certificate-check-off"),
        ("https.get(url, { rejectUnauthorized: !insecure });", None),
        ("process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';", "certificate-check-off"),
        ("jwt.verify(token, key, { algorithms: ['none'] });", "unsigned-token"),
        ("jwt.verify(token, key, { algorithms: ['RS256'] });", None),
        ("crypto.pbkdf2Sync(password, salt, 1000, 64, 'sha512');", "weak-key"),
        ("crypto.pbkdf2Sync(password, salt, 210000, 64, 'sha512');", None),
        ("app.use(cors({ origin: true, credentials: true }));", "open-cors"),
        ("app.use(cors({ origin: true }));", None),
    ],
)  # fmt: skip
def test_weak_cryptography(code: str, rule: str | None) -> None:
    assert [hit.rule for hit, _ in find_crypto_misuses("a.js", code)] == ([rule] if rule else [])
