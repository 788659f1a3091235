"""The repositories that README and docs speak of, made anew with the very same commits each time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

_START = datetime(2026, 10, 1, 9, 0, tzinfo=UTC)
_PEOPLE = ("Ann", "Ben", "Eve")

_PROJECT = {
    "pyproject.toml": (
        '[build-system]\nrequires = ["setuptools>=77"]\nbuild-backend = "setuptools.build_meta"\n\n'
        '[project]\nname = "shop"\nversion = "1.4"\n\n[project.optional-dependencies]\ntest = ["pytest"]\n\n'
        '[tool.setuptools]\npackages = ["shop"]\n'
    ),
    "shop/__init__.py": "",
    "shop/api.py": (
        '"""What the shop answers."""\n\n\ndef page(items, size, number):\n'
        '    """The items of one page, counted from nought."""\n'
        "    start = number * size\n    return items[start : start + size]\n"
    ),
    "shop/parser.py": (
        '"""What people ask for."""\n\nfrom shop.api import page\n\n\ndef wanted(text, items):\n'
        '    """The items that "SIZE/NUMBER" asks for."""\n'
        '    size, number = text.split("/")\n    return page(items, int(size), int(number))\n'
    ),
    "tests/test_api.py": (
        "from shop.api import page\n\n\ndef test_paging():\n    assert page([1, 2, 3, 4, 5], 2, 1) == [3, 4]\n\n\n"
        "def test_the_last_page_is_shorter():\n    assert page([1, 2, 3], 2, 1) == [3]\n"
    ),
    "tests/test_parser.py": (
        'from shop.parser import wanted\n\n\ndef test_wanted():\n    assert wanted("2/0", [1, 2, 3]) == [1, 2]\n'
    ),
    ".github/workflows/ci.yml": (
        "name: CI\non: [push, pull_request]\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n"
        "      - uses: actions/checkout@v4\n      - uses: actions/setup-python@v5\n        with: {python-version: '3.11'}\n"
        "      - run: pip install -e .[test]\n      - run: pytest -q\n"
    ),
    ".gitignore": "*.egg-info\n__pycache__\n",
}

_NEW_TEST = 'from shop.parser import wanted\n\n\ndef test_the_second_page():\n    assert wanted("2/1", [1, 2, 3]) == [3]\n'

_ORDERS = (
    '"""Orders, as the database has them."""\n\nimport sqlite3\n\nPATH = "orders.db"\n\n\n'
    "def total(prices, discount=0):\n    if discount > 100:\n        raise ValueError(discount)\n"
    "    return sum(prices) * (100 - discount) / 100\n\n\ndef find(name):\n"
    "    with sqlite3.connect(PATH) as orders:\n"
    '        return orders.execute("SELECT * FROM orders WHERE name = ?", (name,)).fetchall()\n'
)
_VIEWS = (
    '"""What the browser asks for."""\n\nfrom flask import Flask, request\n\nfrom orders import find, total\n\n'
    'app = Flask(__name__)\n\n\n@app.get("/total")\ndef show():\n    return str(total([1, 2, 3]))\n\n\n'
    '@app.get("/find")\ndef search():\n    return str(find(request.args["name"]))\n'
)
_ORDERS_AFTER = (
    _ORDERS.replace("total(prices, discount=0)", "total(prices, *, discount, currency)")
    .replace("raise ValueError(discount)", "ValueError(discount)")
    .replace("- discount) / 100\n", "- discount) / 100, currency\n")
    .replace("return sum", "return sum", 1)
    .replace(
        '"SELECT * FROM orders WHERE name = ?", (name,)',
        "f\"SELECT * FROM orders WHERE name = '{name}'\"",
    )
)

_SLUG = (
    '"""Names in addresses."""\n\n\ndef slug(title):\n    """The title in lower case, its words joined by hyphens."""\n'
    '    return "-".join(title.lower().split())\n'
)
_CHECK_SLUG = (
    'from shop.slugs import slug\n\nassert slug("Green  tea") == "green-tea", slug("Green  tea")\n'
)


class Shown:
    """A repository in which a command that is shown can be typed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True)
        self._count = 0
        self.git("init", "-q", "-b", "main")

    def git(self, *args: str) -> str:
        who = _PEOPLE[self._count % len(_PEOPLE)]
        at = (_START + timedelta(days=self._count)).isoformat()
        env = {
            "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": who, "GIT_AUTHOR_EMAIL": f"{who.lower()}@example.org", "GIT_AUTHOR_DATE": at,
            "GIT_COMMITTER_NAME": who, "GIT_COMMITTER_EMAIL": f"{who.lower()}@example.org", "GIT_COMMITTER_DATE": at,
        }  # fmt: skip
        done = subprocess.run(["git", *args], cwd=self.root, env=env, capture_output=True, check=True)  # fmt: skip
        return done.stdout.decode().strip()

    def commit(self, message: str, files: Mapping[str, str]) -> None:
        for name, content in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(content)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        self._count += 1


def project(root: Path) -> Path:
    """A package with tests: a release or two, a branch that breaks paging, and the remote that it came from."""
    made = Shown(root)
    made.commit("Answer by pages", _PROJECT)
    made.git("tag", "v1.2")
    made.commit("Say what it is", {"README.md": "# Shop\n"})
    made.git("tag", "v1.4")
    made.commit("Say more", {"README.md": "# Shop\n\nIt sells.\n"})
    made.git("update-ref", "refs/remotes/origin/main", "main")
    made.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    made.git("checkout", "-q", "-b", "change")
    broken = _PROJECT["shop/api.py"].replace("number * size", "number * size + 1")
    made.commit("Count pages from one", {"shop/api.py": broken})
    made.commit("Thank everybody", {"THANKS.md": "Thank you.\n"})
    log = (
        "##[group]Run pytest -q\n##[endgroup]\nF..    [100%]\n=== FAILURES ===\n___ test_paging ___\n\n"
        "    def test_paging():\n>       assert page([1, 2, 3, 4, 5], 2, 1) == [3, 4]\n"
        "E       assert [4, 5] == [3, 4]\n\ntests/test_api.py:5: AssertionError\n=== short test summary info ===\n"
        "FAILED tests/test_api.py::test_paging - assert [4, 5] == [3, 4]\n1 failed, 2 passed in 0.02s\n"
        "##[error]Process completed with exit code 1.\n"
    )
    for name in ("JOB.log", "job.log"):  # as two pages call it
        (root / name).write_text(log)
    (root / "spec").mkdir()
    (root / "spec/test_new.py").write_text(_NEW_TEST)  # the user's own: in no commit
    return root


def orders(root: Path) -> Path:
    """The change with three planted faults whose review the README shows."""
    made = Shown(root)
    made.commit("Sell", {"orders.py": _ORDERS, "views.py": _VIEWS})
    made.git("checkout", "-q", "-b", "change")
    made.commit("Sell in any currency", {"orders.py": _ORDERS_AFTER})
    return root


def slugs(root: Path) -> Path:
    """Thirty commits, of which one breaks what `check_slug.py` asks for: the bisection that the README shows."""
    made = Shown(root)
    made.commit("Names in addresses", {"shop/__init__.py": "", "shop/slugs.py": _SLUG})
    for number in range(1, 30):
        if number == 18:
            made.commit("Split on single spaces", {"shop/slugs.py": _SLUG.replace("split()", 'split(" ")')})  # fmt: skip
        else:
            made.commit(f"Sell tea number {number}", {f"shop/tea{number}.py": f"PRICE = {number}\n"})  # fmt: skip
    (root / "check_slug.py").write_text(_CHECK_SLUG)
    return root
