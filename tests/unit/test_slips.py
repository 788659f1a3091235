"""Slips that a function shows by itself: each kind seen in a short case, and left alone in its honest neighbour."""

from __future__ import annotations

import pytest

from regreen.reviewers.analyzers.bug_patterns import find_bug_patterns

SEEN = [
    ("result-discarded", "def f(t):\n    s = t.lower()\n    s.replace('a', 'b')\n    return s\n"),
    ("method-returns-none", "def f(v):\n    v = list(v)\n    v = v.sort()\n    return v[0]\n"),
    ("method-returns-none", "def f():\n    v = []\n    w = v.append(1)\n    return w\n"),
    ("calls-itself", "class A:\n    @property\n    def name(self):\n        return self.name\n"),
    ("calls-itself", "def d(n):\n    return 1 + d(n) if n else 0\n"),
    ("always-true", "def f(r):\n    if r == 'a' or 'b':\n        return 1\n"),
    ("always-true", "def f(rs):\n    return [r for r in rs if r > 1 or 2]\n"),
    ("texts-joined", "A = [\n    'one',\n    'two',\n    'three'\n    'four',\n]\n"),
    ("called-at-once", "def w():\n    print(1)\n\n\nThread(target=w()).start()\n"),
    ("minutes-for-months", "def f(t):\n    return t.strftime('%Y-%M-%d')\n"),
    ("minutes-for-months", "def f(t):\n    return datetime.strptime(t, '%d/%M/%Y')\n"),
    ("flags-for-count", "import re\n\nx = re.sub('a', 'b', 'c', re.I)\n"),
    ("flags-for-count", "import re\n\nx = re.split('a', 'b', re.MULTILINE)\n"),
    ("empty-range", "for i in range(10, 0):\n    print(i)\n"),
    ("empty-range", "x = range(0, 10, -1)\n"),
    ("placeholders", "def f(db, a):\n    db.execute('INSERT INTO t VALUES (?, ?)', (a,))\n"),
    ("placeholders", "def f(db, a, b):\n    db.execute('SELECT %s', [a, b])\n"),
    ("one-past-the-end", "def f(x):\n    for i in range(len(x) + 1):\n        print(x[i])\n"),
    ("shrinks-under-its-loop", "def f(d):\n    for k in d:\n        if not d[k]:\n            del d[k]\n"),
    ("shrinks-under-its-loop", "def f(s):\n    for k, v in s.d.items():\n        s.d.pop(k)\n"),
    ("shrinks-under-its-loop", "def f(x):\n    for one in x:\n        if one:\n            x.remove(one)\n"),
    ("output-not-captured", "def f():\n    r = subprocess.run(['a'])\n    return r.stdout.decode()\n"),
    ("file-is-closed", "def f(p):\n    with open(p) as g:\n        r = csv.reader(g)\n    return list(r)\n"),
    ("file-is-closed", "def f(p):\n    with open(p) as g:\n        r = (x for x in g)\n    for x in r:\n        print(x)\n"),
    ("iterator-is-spent", "def f(v):\n    k = (x for x in v)\n    n = sum(1 for _ in k)\n    return max(k), n\n"),
    (
        "base-not-made",
        "class A:\n    def __init__(self):\n        self.s = 1\n\n\nclass B(A):\n    def __init__(self):\n        self.t = 2\n\n"
        "    def f(self):\n        return self.s\n",
    ),
]  # fmt: skip
LEFT = [
    # thrown away
    "def f(r):\n    r.replace('a', 'b')\n",
    "def f(p):\n    q = p.parent\n    q.replace('b')\n",
    "def f(q):\n    q = q.sort('name')\n    return q\n",
    "def f(v):\n    v = list(v)\n    v.sort()\n    return v\n",
    # calls itself
    "class A:\n    @property\n    def name(self):\n        self.load()\n        return self.name\n",
    "class A:\n    def total(self):\n        return total(self)\n",
    "def f(x):\n    from other import f\n    return f(x)\n",
    "def f(x):\n    try:\n        return read(x)\n    except OSError:\n        return f(x)\n",
    "def f(x):\n    x = x.parent\n    return f(x)\n",
    "def f(x, n):\n    return f(x, n - 1)\n",
    "def f(x):\n    x.tries += 1\n    return f(x)\n",
    # always
    "def f(n):\n    if (n or 'x') == 'x':\n        return n or 'y'\n",
    "def f(n):\n    while n == 1 or True:\n        n += 1\n",
    # joined
    "A = [\n    'one',\n    'two',\n    'a longer one '\n    'goes on',\n]\n",
    "A = ['one', 'two', 'three' 'four']\n",
    "A = [\n    'one',\n    'two',\n    'three',\n    ('four'\n     'five'),\n]\n",
    "A = [\n    'one',\n    f'two',\n    'three'\n    'four',\n]\n",
    # called
    "def make():\n    return print\n\n\nThread(target=make()).start()\n",
    "def w():\n    print(1)\n\n\nThread(target=w).start()\n",
    # time
    "def f(t):\n    return t.strftime('%Y-%m-%d %H:%M'), t.strftime('%M:%S'), t.strftime('%H%M')\n",
    # counts
    "import re\n\nx = re.sub('a', 'b', 'c', 1, re.I)\ny = re.split('a', 'b', 2)\nz = pattern.sub('a', 'b', 'c')\n",
    # ranges
    "for i in range(10, 0, -1):\n    print(i)\n",
    "x = range(3, 3), range(0, n), range(5), range(0, 5, step)\n",
    # places
    "def f(db, a, rows):\n    db.execute(\"SELECT '?' WHERE a = ?\", (a,))\n    db.executemany('VALUES (?, ?)', rows)\n",
    "def f(db, a, b):\n    db.execute('SELECT ?1, ?1', (a,))\n    db.execute('SELECT %(a)s', (a, b))\n    db.execute('SELECT ?, ?', (*a,))\n",
    "def f(db, a):\n    db.execute('SELECT 1 -- why?', ())\n    db.execute('x LIKE %s AND y LIKE \\'%%s\\'', (a,))\n",
    # one past
    "def f(x):\n    for i in range(len(x) + 1):\n        if i < len(x):\n            print(x[i])\n",
    "def f(x):\n    for i in range(len(x) + 1):\n        print(x[:i])\n",
    "def f(x):\n    for i in range(len(x) + 1):\n        x.append(i)\n        print(x[i])\n",
    # shrinks
    "def f(d):\n    for k in list(d):\n        del d[k]\n",
    "def f(d, x):\n    for k, v in d.items():\n        if v == x:\n            del d[k]\n            break\n",
    "def f(x, one):\n    for a in x:\n        if a == one:\n            x.remove(a)\n            return True\n",
    "def f(d, e):\n    for k in d:\n        del e[k]\n",
    "def f(d):\n    for k in d:\n        d = dict(d)\n        del d[k]\n",
    # output
    "def f():\n    r = subprocess.run(['a'], stdout=subprocess.PIPE)\n    return r.stdout.decode()\n",
    "def f(**k):\n    r = subprocess.run(['a'], **k)\n    return r.stdout.decode()\n",
    "def f():\n    r = subprocess.run(['a'])\n    return r.stdout\n",
    # closed
    "def f(p):\n    with open(p) as g:\n        r = list(csv.reader(g))\n    return list(r)\n",
    "def f(p):\n    with open(p) as g:\n        r = csv.reader(g)\n        return list(r)\n",
    # spent
    "def f(v):\n    k = (x for x in v)\n    a = next(k)\n    return [a, *k]\n",
    "def f(v, c):\n    k = (x for x in v)\n    if c:\n        return sum(k)\n    return max(k)\n",
    "def f(v):\n    k = (x for x in v)\n    n = sum(k)\n    k = (x for x in v)\n    return max(k), n\n",
    "def f(v, c):\n    k = (x for x in v)\n    n = sum(k) if c else 0\n    return max(k), n\n",
    # base
    "class A:\n    def __init__(self):\n        self.s = 1\n\n\nclass B(A):\n    def __init__(self):\n        super().__init__()\n\n"
    "    def f(self):\n        return self.s\n",
    "class A:\n    s = 0\n\n    def __init__(self):\n        self.s = 1\n\n\nclass B(A):\n    def __init__(self):\n        self.t = 1\n\n"
    "    def f(self):\n        return self.s\n",
]  # fmt: skip


@pytest.mark.parametrize(("rule", "code"), SEEN)
def test_it_is_seen(rule: str, code: str) -> None:
    assert [h.rule for h in find_bug_patterns("a.py", code)] == [rule]


@pytest.mark.parametrize("code", LEFT)
def test_it_is_left_alone(code: str) -> None:
    assert list(find_bug_patterns("a.py", code)) == []
