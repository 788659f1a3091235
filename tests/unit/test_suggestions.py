"""What a suggestion makes of the lines of a finding: the fix of ruff, or the one that a row of a table has."""

from __future__ import annotations

import pytest

from regreen.reviewers.analyzers import baseline
from regreen.reviewers.analyzers.baseline import replace_single_match
from regreen.reviewers.analyzers.bug_patterns import _load_patterns
from regreen.reviewers.analyzers.bundled_checkers import run_ruff

_MENDS = {
    **{name: row.mend for name, row in _load_patterns().items() if row.mend},
    **{
        code: row.mend
        for rows in baseline._RULES.values()
        for code, row in rows.items()
        if row.mend
    },
}
EXAMPLES = [
    ("result-discarded", "    s.replace('a', 'b')", "    s = s.replace('a', 'b')"),
    ("method-returns-none", "    v = v.sort()", "    v.sort()"),
    ("method-returns-none", "    w = v.append(1)", None),
    ("minutes-for-months", "x = t.strftime('%Y-%M-%d %H:%M')", "x = t.strftime('%Y-%m-%d %H:%M')"),
    ("flags-for-count", "x = re.sub('a', 'b', c, re.I)", "x = re.sub('a', 'b', c, flags=re.I)"),
    ("called-at-once", "Thread(target=w()).start()", "Thread(target=w).start()"),
    ("one-past-the-end", "    for i in range(len(x) + 1):", "    for i in range(len(x)):"),
    ("texts-joined", "    'three'\n    'four',", "    'three',\n    'four',"),
    ("unfilled-text", '    raise Wrong("no {name}")', '    raise Wrong(f"no {name}")'),
    ("unfilled-text", "    log(d['a'], 'no {name}')", None),
    ("F631", '    assert (a == 1, "no")', '    assert a == 1, "no"'),
    ("F631", "    assert (a, b)", None),
    ("S501", "requests.get(url, verify=False)", "requests.get(url, verify=True)"),
    ("S506", "x = yaml.load(text, Loader=yaml.Loader)", "x = yaml.safe_load(text)"),
    ("S506", "x = yaml.load(text)", "x = yaml.safe_load(text)"),
    ("S202", "    tar.extractall(place)", '    tar.extractall(place, filter="data")'),
    ("S113", "x = requests.get(url)", "x = requests.get(url, timeout=30)"),
    ("S113", "x = requests.get(make(url))", None),
]


@pytest.mark.parametrize(("rule", "before", "after"), EXAMPLES)
def test_a_row_mends_its_lines(rule: str, before: str, after: str | None) -> None:
    assert replace_single_match(before.split("\n"), _MENDS[rule]) == after


def test_every_row_that_mends_has_an_example() -> None:
    assert {rule for rule, _, after in EXAMPLES if after} == set(_MENDS)


@pytest.mark.parametrize(
    ("rule", "text", "after"),
    [
        ("PLW0133", "def f(x):\n    if x:\n        ValueError('no')\n", "        raise ValueError('no')"),
        ("F632", "def f(x):\r\n    return x is 3\r\n", "    return x == 3"),
        ("F901", "raise NotImplemented\n", "raise NotImplementedError"),
        ("B006", "def f(a=[]):\n    return a\n", "def f(a=None):\n    if a is None:\n        a = []"),
        ("B006", "def f(a=[]):\n    'Add.'\n    return a\n", None),
        ("F821", "x = nowhere\n", None),
        ("F632", "é = 'é' if x is 'é' else 1\n", "é = 'é' if x == 'é' else 1"),
    ],
)  # fmt: skip
def test_what_ruff_would_write(rule: str, text: str, after: str | None) -> None:
    hits = [hit for hit in run_ruff({"a.py": text}, (rule,)) if hit.rule == rule]
    assert [hit.suggestion for hit in hits[:1]] == [after]
