"""Small projects, a post office's, a greenhouse's and a trail map's, that a feature leaves red in a mechanical way.

Written before the fixer was run on them by one who had not read it. `remedy` is a reference: the command is green after
it, and `keeps` holds.
"""

from __future__ import annotations

from benchmarks.mechanical_eleventh_cases import NO_SHOP, Shape, swap
from benchmarks.repair_choice_cases import Files

PIP = "pip install -q "


def less(files: Files, *names: str) -> Files:
    """Take files out, that have to be there."""
    assert set(names) <= set(files), names
    return {name: text for name, text in files.items() if name not in names}


PARCEL = '''"""Parcels."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parcel:
    """One parcel."""

    to: str
    kg: float


def heaviest(parcels: list[Parcel]) -> Parcel:
    """Find the heaviest parcel."""
    return max(parcels, key=lambda one: one.kg)
'''
RATES = '''"""What a parcel costs."""

from __future__ import annotations

from postbox.parcel import Parcel

BASE = 40
PER_KG = 15
LIMIT = 35


def cost(parcel: Parcel) -> int:
    """Price a parcel in whole crowns."""
    if parcel.kg > LIMIT:
        raise ValueError(f"{parcel.kg} kg is over the limit")
    return BASE + round(PER_KG * parcel.kg)
'''
DESK = '''"""The desk where parcels come in."""

from __future__ import annotations

from postbox.parcel import Parcel
from postbox.rates import cost


def receipt(parcel: Parcel) -> str:
    """Write a receipt."""
    return f"{parcel.to}: {cost(parcel)} kr"


def total(parcels: list[Parcel]) -> int:
    """Add up what parcels cost."""
    return sum(cost(one) for one in parcels)
'''
T_RATES = """import unittest

from postbox.parcel import Parcel, heaviest
from postbox.rates import cost


class Rates(unittest.TestCase):
    def test_cost(self):
        self.assertEqual(cost(Parcel("Oslo", 2)), 70)

    def test_heaviest(self):
        self.assertEqual(heaviest([Parcel("Oslo", 2), Parcel("Bergen", 3)]).to, "Bergen")
"""
T_DESK = """import unittest

from postbox.desk import receipt, total
from postbox.parcel import Parcel


class Desk(unittest.TestCase):
    def test_receipt(self):
        self.assertEqual(receipt(Parcel("Oslo", 2)), "Oslo: 70 kr")

    def test_total(self):
        self.assertEqual(total([Parcel("Oslo", 2), Parcel("Bergen", 4)]), 170)
"""
PROJECT = """[project]
name = "postbox"
version = "1.4.0"
description = "Parcels and what they cost"
requires-python = ">=3.10"
dependencies = []
"""
POST: Files = {
    **NO_SHOP,
    "postbox/__init__.py": '"""Parcels and what they cost."""\n',
    "postbox/parcel.py": PARCEL,
    "postbox/rates.py": RATES,
    "postbox/desk.py": DESK,
    "tests/test_rates.py": T_RATES,
    "pyproject.toml": PROJECT,
}
UNITTEST = "python -m unittest discover -s tests"

# A patch's target in quotes, after what it names has moved.

TRACKING = '''"""Where a parcel is."""

from __future__ import annotations

import json
from urllib.request import urlopen


def fetch(number: str) -> dict[str, str]:
    """Ask the carrier."""
    with urlopen(f"https://carrier.example/{number}") as answer:
        return json.load(answer)


def where(number: str) -> str:
    """Say where a parcel is."""
    return fetch(number)["place"]


def arrived(number: str) -> bool:
    """Say whether a parcel has come to its end."""
    return fetch(number)["state"] == "delivered"
'''
T_TRACKING = """import unittest
from unittest.mock import patch

from postbox import tracking


class Tracking(unittest.TestCase):
    @patch("postbox.tracking.fetch", return_value={"place": "Hamar"})
    def test_where(self, fetch):
        self.assertEqual(tracking.where("A1"), "Hamar")
        fetch.assert_called_once_with("A1")

    def test_arrived(self):
        with patch("postbox.tracking.fetch", return_value={"state": "delivered"}):
            self.assertTrue(tracking.arrived("A1"))
"""
CARRIER = '''"""Talks to the carrier."""

from __future__ import annotations

import json
from urllib.request import urlopen

ATTEMPTS = 3


def fetch(number: str) -> dict[str, str]:
    """Ask the carrier, and ask again where it does not answer."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with urlopen(f"https://carrier.example/{number}") as answer:
                return json.load(answer)
        except OSError:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError
'''
PATCH_TARGET = Shape(
    "patch-target-moved",
    UNITTEST,
    {
        "postbox/carrier.py": CARRIER,
        "postbox/tracking.py": swap(
            TRACKING,
            (
                "import json\nfrom urllib.request import urlopen\n\n\n",
                "from postbox import carrier\n\n\n",
            ),
            (TRACKING[TRACKING.index("def fetch") : TRACKING.index("def where")], ""),
            ("return fetch(", "return carrier.fetch("),
        ),
    },
    "from unittest.mock import patch; from pathlib import Path; from postbox import carrier, tracking\n"
    "assert carrier.ATTEMPTS == 3\n"
    "with patch('postbox.carrier.fetch', return_value={'place': 'Moss', 'state': 'lost'}):\n"
    "    assert tracking.where('B') == 'Moss' and not tracking.arrived('B')\n"
    "text = Path('tests/test_tracking.py').read_text()\n"
    "assert '\"Hamar\")' in text and 'assertTrue(tracking.arrived' in text and 'assert_called_once_with' in text and 'skip' not in text",
    {**POST, "postbox/tracking.py": TRACKING, "tests/test_tracking.py": T_TRACKING},
    "Ask the carrier again where it does not answer",
    setup="true",
    remedy="sed -i 's/postbox\\.tracking\\.fetch/postbox.carrier.fetch/' tests/test_tracking.py",
)

# The text of an error, which the feature meant to change.

T_LIMIT = """import unittest

from postbox.parcel import Parcel
from postbox.rates import cost


class Limit(unittest.TestCase):
    def test_at_the_limit(self):
        self.assertEqual(cost(Parcel("Oslo", 35)), 565)

    def test_over_the_limit(self):
        with self.assertRaisesRegex(ValueError, "^40 kg is over the limit$"):
            cost(Parcel("Oslo", 40))
"""
MESSAGE = Shape(
    "error-text-reworded",
    UNITTEST,
    {
        "postbox/rates.py": swap(
            RATES,
            (
                'f"{parcel.kg} kg is over the limit"',
                'f"{parcel.to}: {parcel.kg} kg, but {LIMIT} kg is the most"',
            ),
        ),
        "README.md": "# Postbox\n\nAn error names the place and the limit: `Oslo: 40 kg, but 35 kg is the most`.\n",
    },
    "from pathlib import Path; from postbox.parcel import Parcel; from postbox.rates import cost\n"
    "try:\n    cost(Parcel('Voss', 36))\nexcept ValueError as error:\n    assert str(error) == 'Voss: 36 kg, but 35 kg is the most'\n"
    "else:\n    raise AssertionError\n"
    "text = Path('tests/test_limit.py').read_text()\n"
    "assert 'assertRaisesRegex(ValueError, ' in text and 'kg is the most' in text and 'skip' not in text\n"
    "assert 'names the place' in Path('README.md').read_text()",
    {**POST, "tests/test_limit.py": T_LIMIT, "README.md": "# Postbox\n\nPrices parcels.\n"},
    "Name the place and the limit in the error",
    setup="true",
    remedy="sed -i 's/\\^40 kg is over the limit\\$/^Oslo: 40 kg, but 35 kg is the most$/' tests/test_limit.py",
)

# A golden file, with a switch of the tests' own in the environment.

SLIP = '''"""Slips for the van."""

from __future__ import annotations

from postbox.desk import receipt
from postbox.parcel import Parcel


def slip(parcels: list[Parcel]) -> str:
    """List parcels, one a line."""
    return "".join(f"[ ] {receipt(one)}\\n" for one in parcels)
'''
T_SLIP = """import os
import unittest
from pathlib import Path

from postbox.parcel import Parcel
from postbox.slip import slip

GOLDEN = Path(__file__).parent / "golden"
VAN = [Parcel("Oslo", 2), Parcel("Hamar", 5.5)]


def check(case, name, text):
    path = GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    case.assertEqual(text, path.read_text(encoding="utf-8"), f"{path.name} (GOLDEN=write accepts)")


class Slip(unittest.TestCase):
    maxDiff = None

    def test_full(self):
        check(self, "full.txt", slip(VAN))

    def test_empty(self):
        check(self, "empty.txt", slip([]))
"""
GOLDEN = Shape(
    "golden-file-own-switch",
    UNITTEST,
    {
        "postbox/slip.py": swap(
            SLIP,
            ("import receipt", "import receipt, total"),
            (
                '    return "".join(f"[ ] {receipt(one)}\\n" for one in parcels)\n',
                '    lines = [f"[ ] {receipt(one)}" for one in parcels]\n'
                '    return "\\n".join([*lines, f"= {total(parcels)} kr for {len(parcels)}"]) + "\\n"\n',
            ),
            ("one a line.", "one a line, and what they cost together."),
        )
    },
    "from pathlib import Path; from postbox.parcel import Parcel; from postbox.slip import slip\n"
    "assert slip([Parcel('Moss', 2)]) == '[ ] Moss: 70 kr\\n= 70 kr for 1\\n'\n"
    "assert Path('tests/golden/full.txt').read_text() == '[ ] Oslo: 70 kr\\n[ ] Hamar: 122 kr\\n= 192 kr for 2\\n'\n"
    "assert Path('tests/golden/empty.txt').read_text() == '= 0 kr for 0\\n'\n"
    "assert 'assertEqual(text, path.read_text' in Path('tests/test_slip.py').read_text()",
    {
        **less(POST, "tests/test_rates.py", "pyproject.toml"),
        "pyproject.toml": None,
        "postbox/slip.py": SLIP,
        "tests/test_slip.py": T_SLIP,
        "tests/golden/full.txt": "[ ] Oslo: 70 kr\n[ ] Hamar: 122 kr\n",
        "tests/golden/empty.txt": "",
    },
    "End a slip with the sum",
    setup="true",
    remedy="GOLDEN=write python -m unittest discover -s tests",
)

# Another class of error, that one of two tests still does not know.

PYTEST = '\n[tool.pytest.ini_options]\npythonpath = ["."]\n'
P_LIMIT = """import pytest

from postbox.parcel import Parcel
from postbox.rates import cost


@pytest.mark.parametrize("kg", [36, 50])
def test_over_the_limit(kg):
    with pytest.raises(ValueError, match="over the limit"):
        cost(Parcel("Oslo", kg))
"""
P_DESK = """import pytest

from postbox.desk import receipt, total
from postbox.parcel import Parcel


def test_receipt():
    assert receipt(Parcel("Oslo", 2)) == "Oslo: 70 kr"


def test_no_receipt_for_a_heavy_one():
    with pytest.raises(ValueError):
        receipt(Parcel("Oslo", 99))


def test_no_sum_with_a_heavy_one():
    with pytest.raises(ValueError):
        total([Parcel("Oslo", 2), Parcel("Oslo", 99)])
"""
EXCEPTION = Shape(
    "exception-class-replaced",
    "python -m pytest -q",
    {
        "postbox/errors.py": '"""What can go wrong at the desk."""\n\n\nclass TooHeavy(Exception):\n    """A parcel is over the limit."""\n',
        "postbox/rates.py": swap(
            RATES,
            ("from postbox.parcel", "from postbox.errors import TooHeavy\nfrom postbox.parcel"),
            ("raise ValueError", "raise TooHeavy"),
        ),
        "tests/test_limit.py": swap(
            P_LIMIT,
            ("raises(ValueError", "raises(TooHeavy"),
            ("from postbox.parcel", "from postbox.errors import TooHeavy\nfrom postbox.parcel"),
        ),
    },
    "from pathlib import Path; from postbox.errors import TooHeavy; from postbox.parcel import Parcel; from postbox.rates import cost\n"
    "assert not issubclass(TooHeavy, ValueError)\n"
    "try:\n    cost(Parcel('Voss', 36))\nexcept TooHeavy:\n    pass\nelse:\n    raise AssertionError\n"
    "text = Path('tests/test_desk.py').read_text()\n"
    "assert text.count('raises(') == 2 and 'raises(Exception' not in text and text.count('TooHeavy') >= 3 and 'skip' not in text",
    {
        **POST,
        "tests/test_limit.py": P_LIMIT,
        "tests/test_desk.py": P_DESK,
        "pyproject.toml": PROJECT + PYTEST,
    },
    "Give heavy parcels an error of their own",
    setup=PIP + "pytest",
    remedy="sed -i -e 's/raises(ValueError)/raises(TooHeavy)/' -e 's/^from postbox.parcel/from postbox.errors import TooHeavy\\n&/' tests/test_desk.py",
)

# A fixture under a new name.

DEPOT = '''"""A depot holds parcels."""

from __future__ import annotations

from postbox.parcel import Parcel


class Depot:
    """Parcels in a place."""

    def __init__(self) -> None:
        self.parcels: list[Parcel] = []

    def put(self, parcel: Parcel) -> None:
        """Take a parcel in."""
        self.parcels.append(parcel)

    def weight(self) -> float:
        """Weigh all that is here."""
        return sum(one.kg for one in self.parcels)
'''
CONFTEST = """import pytest

from postbox.depot import Depot
from postbox.parcel import Parcel


@pytest.fixture
def depot():
    one = Depot()
    one.put(Parcel("Oslo", 2))
    one.put(Parcel("Hamar", 3))
    return one
"""
P_DEPOT = """from postbox.parcel import Parcel


def test_weight(depot):
    assert depot.weight() == 5


def test_put(depot):
    depot.put(Parcel("Moss", 1))
    assert depot.weight() == 6
"""
P_PLACES = """import pytest


@pytest.mark.usefixtures("depot")
def test_makes_one():
    assert True


def test_places(depot):
    assert [one.to for one in depot.parcels] == ["Oslo", "Hamar"]
"""
FIXTURE = Shape(
    "fixture-renamed",
    "python -m pytest -q",
    {
        "postbox/depot.py": swap(
            DEPOT,
            (
                "def __init__(self) -> None:\n",
                "def __init__(self, room: float = 100) -> None:\n        self.room = room\n",
            ),
            (
                "        self.parcels.append",
                '        if self.weight() + parcel.kg > self.room:\n            raise OverflowError("no room")\n        self.parcels.append',
            ),
        ),
        "tests/conftest.py": swap(
            CONFTEST,
            ("def depot():", "def small_depot():"),
            ("Depot()", "Depot(room=10)"),
        ),
        "tests/test_depot.py": "import pytest\n\n"
        + swap(
            P_DEPOT,
            ("(depot)", "(small_depot)"),
            ("    depot.", "    small_depot."),
            ("assert depot.", "assert small_depot."),
        )
        + '\n\ndef test_no_room(small_depot):\n    with pytest.raises(OverflowError):\n        small_depot.put(Parcel("Moss", 6))\n',
    },
    "from pathlib import Path; from postbox.depot import Depot\n"
    "assert Depot(room=3).room == 3\n"
    "assert 'def small_depot' in Path('tests/conftest.py').read_text()\n"
    "text = Path('tests/test_places.py').read_text()\n"
    "assert '== [\"Oslo\", \"Hamar\"]' in text and 'usefixtures(' in text and 'skip' not in text\n"
    "assert 'test_no_room' in Path('tests/test_depot.py').read_text()",
    {
        **less(POST, "postbox/rates.py", "postbox/desk.py", "tests/test_rates.py"),
        "postbox/depot.py": DEPOT,
        "tests/conftest.py": CONFTEST,
        "tests/test_depot.py": P_DEPOT,
        "tests/test_places.py": P_PLACES,
        "pyproject.toml": PROJECT + PYTEST,
    },
    "Give a depot only so much room",
    setup=PIP + "pytest",
    remedy="sed -i 's/\\bdepot\\b/small_depot/g' tests/test_places.py",
)

# A marker that nobody has registered.

P_SCALE = """import pytest

from postbox.parcel import Parcel, heaviest


@pytest.mark.scale
def test_with_a_scale():
    assert heaviest([Parcel("Oslo", 1)]).kg == 1
"""
STRICT = (
    PYTEST
    + 'addopts = ["--strict-markers"]\nmarkers = [\n    "scale: needs the scale of the desk",\n]\n'
)
MARKER = Shape(
    "marker-not-registered",
    "python -m pytest -q tests",
    {
        "postbox/bulk.py": '"""Many parcels at once."""\n\nfrom __future__ import annotations\n\nfrom postbox.desk import total\nfrom postbox.parcel import Parcel\n\n\n'
        'def bulk(parcel: Parcel, count: int) -> int:\n    """Price many like this one; the tenth is free."""\n    return total([parcel] * (count - count // 10))\n',
        "tests/test_bulk.py": "import pytest\n\nfrom postbox.bulk import bulk\nfrom postbox.parcel import Parcel\n\n\n"
        'def test_nine():\n    assert bulk(Parcel("Oslo", 2), 9) == 630\n\n\n'
        '@pytest.mark.slow\ndef test_many():\n    assert bulk(Parcel("Oslo", 2), 100_000) == 6_300_000\n',
    },
    "import tomllib; from pathlib import Path; from postbox.bulk import bulk; from postbox.parcel import Parcel\n"
    "assert bulk(Parcel('Oslo', 2), 10) == 630\n"
    "have = tomllib.loads(Path('pyproject.toml').read_text())['tool']['pytest']['ini_options']\n"
    "assert '--strict-markers' in have['addopts'] and any(one.startswith('scale:') for one in have['markers'])\n"
    "assert any(one.split(':')[0] == 'slow' for one in have['markers'])\n"
    "assert 'mark.slow' in Path('tests/test_bulk.py').read_text()",
    {**POST, "tests/test_scale.py": P_SCALE, "pyproject.toml": PROJECT + STRICT},
    "Price many parcels at once",
    setup=PIP + "pytest",
    remedy='sed -i \'s/^    "scale: .*/&\\n    "slow: takes long",/\' pyproject.toml',
)

# Examples in a README, of a dataclass with one more field.

README_DOC = """# Postbox

Make a parcel and price it:

```pycon
>>> from postbox.parcel import Parcel, heaviest
>>> from postbox.rates import cost
>>> one = Parcel("Oslo", 2.0)
>>> one
Parcel(to='Oslo', kg=2.0)
>>> cost(one)
70

```

The heaviest of some:

```pycon
>>> heaviest([one, Parcel("Hamar", 3.5)])
Parcel(to='Hamar', kg=3.5)

```
"""
DOCTEST = Shape(
    "readme-examples-new-field",
    "python -m doctest README.md",
    {
        "postbox/parcel.py": swap(
            PARCEL, ("    kg: float\n", "    kg: float\n    fragile: bool = False\n")
        ),
        "postbox/rates.py": swap(
            RATES,
            (
                "return BASE + round(PER_KG * parcel.kg)",
                "return BASE + round(PER_KG * parcel.kg) + FRAGILE * parcel.fragile",
            ),
            ("LIMIT = 35\n", "LIMIT = 35\nFRAGILE = 25\n"),
        ),
        "tests/test_fragile.py": "import unittest\n\nfrom postbox.parcel import Parcel\nfrom postbox.rates import cost\n\n\n"
        'class Fragile(unittest.TestCase):\n    def test_cost(self):\n        self.assertEqual(cost(Parcel("Oslo", 2, fragile=True)), 95)\n',
    },
    "from pathlib import Path; from postbox.parcel import Parcel; from postbox.rates import cost\n"
    "assert cost(Parcel('Oslo', 2, fragile=True)) == 95 and 'fragile=True' in repr(Parcel('Oslo', 2, True))\n"
    "text = Path('README.md').read_text()\n"
    "assert text.count('>>> ') == 6 and text.count('fragile=False)') == 2 and 'SKIP' not in text and 'ELLIPSIS' not in text",
    {**POST, "README.md": README_DOC},
    "Let a parcel be fragile",
    setup="true",
    remedy='sed -i -E "s/^(Parcel\\(to=.*kg=[0-9.]+)\\)/\\1, fragile=False)/" README.md',
)

# A rule's exception for a folder that has moved.

DEMO = '''"""Shows what parcels cost."""

from postbox.desk import receipt
from postbox.parcel import Parcel

for kg in (1, 2, 5):
    print(receipt(Parcel("Oslo", kg)))
'''
RUFF = """
[tool.ruff]
line-length = 110

[tool.ruff.lint]
select = ["E", "F", "I", "T20", "INP"]

[tool.ruff.lint.per-file-ignores]
"scripts/*.py" = ["T201", "INP001"]
"tests/*.py" = ["INP001"]
"""
IGNORES = Shape(
    "ignores-for-a-moved-folder",
    "ruff check .",
    {
        "scripts/demo.py": None,
        "examples/demo.py": DEMO,
        "examples/van.py": '"""Shows what a van costs."""\n\nfrom postbox.desk import total\nfrom postbox.parcel import Parcel\n\n'
        'print(total([Parcel("Oslo", 2), Parcel("Hamar", 5)]))\n',
    },
    "import subprocess, sys, tomllib; from pathlib import Path\n"
    "out = subprocess.run([sys.executable, 'examples/van.py'], env={'PYTHONPATH': '.'}, capture_output=True, text=True).stdout\n"
    "assert out == '185\\n', out\n"
    "assert 'print(' in Path('examples/demo.py').read_text() and 'noqa' not in Path('examples/demo.py').read_text()\n"
    "lint = tomllib.loads(Path('pyproject.toml').read_text())['tool']['ruff']['lint']\n"
    "assert lint['select'] == ['E', 'F', 'I', 'T20', 'INP'] and not lint.get('ignore') and not Path('scripts/demo.py').exists()\n"
    "assert not any(one in ('*', '*.py', '**', '**/*.py') for one in lint['per-file-ignores'])",
    {**POST, "scripts/demo.py": DEMO, "pyproject.toml": PROJECT + RUFF},
    "Move the demo to the examples and show a van",
    setup=PIP + "ruff",
    form=True,
    remedy="sed -i 's|^\"scripts/\\*|\"examples/*|' pyproject.toml",
)

# Generated code, compared with what its generator prints.

GEN = '''"""Prints the module of messages.

    python tools/messages.py > postbox/messages.py
"""

from __future__ import annotations

from pathlib import Path

KINDS = {"text": "str", "number": "float", "flag": "bool"}


def main() -> None:
    lines = ['"""Messages. Made from api/messages.txt; do not edit."""', "", "from typing import NamedTuple"]
    for line in Path("api/messages.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            name, kind = line.split()
            lines.append(f"    {name}: {KINDS[kind]}")
        elif line:
            lines += ["", "", f"class {line}(NamedTuple):"]
    print("\\n".join(lines))


if __name__ == "__main__":
    main()
'''
API = "Arrived\n  number text\n  place text\n\nWeighed\n  number text\n  kg number\n"
MESSAGES = '''"""Messages. Made from api/messages.txt; do not edit."""

from typing import NamedTuple


class Arrived(NamedTuple):
    number: str
    place: str


class Weighed(NamedTuple):
    number: str
    kg: float
'''
T_MESSAGES = """import unittest

from postbox.messages import Arrived


class Messages(unittest.TestCase):
    def test_arrived(self):
        self.assertEqual(Arrived("A1", "Moss").place, "Moss")
"""
MAKE_GEN = """.PHONY: test generated check-generated

test:
	python -m unittest discover -s tests

generated:
	python tools/messages.py > postbox/messages.py

check-generated:
	python tools/messages.py | diff -u postbox/messages.py -
"""
GENERATED = Shape(
    "generated-module-stale",
    "make check-generated",
    {
        "api/messages.txt": API + "  fragile flag\n\nLost\n  number text\n",
        "README.md": "# Postbox\n\nMessages: `Arrived`, `Weighed`, `Lost`.\n",
    },
    "import subprocess, sys; from pathlib import Path; from postbox.messages import Arrived, Lost, Weighed\n"
    "assert Lost('A1').number == 'A1' and Weighed('A', 2.0, True).fragile and Arrived('A', 'Moss').place\n"
    "assert 'Lost' in Path('api/messages.txt').read_text() and '| diff -u' in Path('Makefile').read_text()",
    {
        **less(
            POST, "postbox/parcel.py", "postbox/rates.py", "postbox/desk.py", "tests/test_rates.py"
        ),
        "tests/test_messages.py": T_MESSAGES,
        "tools/messages.py": GEN,
        "api/messages.txt": API,
        "postbox/messages.py": MESSAGES,
        "Makefile": MAKE_GEN,
        "README.md": "# Postbox\n\nMessages: `Arrived`, `Weighed`.\n",
    },
    "Tell of lost parcels and fragile ones",
    setup="true",
    remedy="make generated",
)

# A comment that silenced what is typed now.

VOLUME = """# What a parcel takes of a van.


def volume(width, depth, height):
    return width * depth * height / 1000


def fits(width, depth, height, room):
    return volume(width, depth, height) <= room
"""
LOADING = '''"""Loading a van."""

from __future__ import annotations

from postbox.volume import fits, volume

Box = tuple[int, int, int]


def litres(boxes: list[Box]) -> float:
    """Add up what boxes take."""
    taken = 0.0
    for one in boxes:
        taken += volume(*one)  # type: ignore[no-untyped-call]
    return taken


def loadable(boxes: list[Box], room: float) -> list[Box]:
    """Keep the boxes that fit."""
    return [one for one in boxes if fits(*one, room)]  # type: ignore[no-untyped-call]  # by itself
'''
T_LOADING = """import unittest

from postbox.loading import litres, loadable


class Loading(unittest.TestCase):
    def test_litres(self):
        self.assertEqual(litres([(10, 10, 10), (20, 10, 10)]), 3)

    def test_loadable(self):
        self.assertEqual(loadable([(10, 10, 10), (20, 10, 10)], 1.5), [(10, 10, 10)])
"""
MYPY = "\n[tool.mypy]\nstrict = true\n"
UNTYPED = '\n[[tool.mypy.overrides]]\nmodule = "postbox.volume"\ndisallow_untyped_defs = false\ndisallow_untyped_calls = false\n'
UNUSED_IGNORE = Shape(
    "silencer-no-longer-needed",
    "mypy postbox",
    {
        "postbox/volume.py": '''"""What a parcel takes of a van."""


def volume(width: int, depth: int, height: int) -> float:
    """Litres of a box in centimetres."""
    if min(width, depth, height) <= 0:
        raise ValueError("a side has to be positive")
    return width * depth * height / 1000


def fits(width: int, depth: int, height: int, room: float) -> bool:
    """Say whether a box fits in so many litres."""
    return volume(width, depth, height) <= room
'''
    },
    "import inspect; from pathlib import Path; from postbox import loading, volume\n"
    "assert inspect.signature(volume.volume).return_annotation in (float, 'float')\n"
    "try:\n    volume.volume(0, 1, 1)\nexcept ValueError:\n    pass\nelse:\n    raise AssertionError\n"
    "assert loading.litres([(10, 10, 10)]) == 1\n"
    "text = Path('pyproject.toml').read_text()\n"
    "assert 'strict = true' in text and 'warn_unused' not in text and 'ignore_errors' not in text\n"
    "text = Path('postbox/loading.py').read_text()\n"
    "assert '# by itself' in text and 'type: ignore' not in text",
    {
        **less(
            POST, "postbox/rates.py", "postbox/desk.py", "postbox/parcel.py", "tests/test_rates.py"
        ),
        "postbox/volume.py": VOLUME,
        "postbox/loading.py": LOADING,
        "tests/test_loading.py": T_LOADING,
        "pyproject.toml": PROJECT + MYPY + UNTYPED,
    },
    "Type what measures a box",
    setup=PIP + "mypy",
    form=True,
    remedy="sed -i 's/  # type: ignore\\[no-untyped-call\\]//' postbox/loading.py",
)

# A set of literals in another module, that lacks the new one.

KINDS = '''"""Ways to send, and how fast they are."""

from __future__ import annotations

from typing import Literal

Way = Literal["road", "air"]
Speed = Literal["slow", "fast"]
'''
ROUTES = '''"""How long a parcel takes."""

from __future__ import annotations

from postbox.kinds import Way

DAYS: dict[Way, int] = {"road": 3, "air": 1}


def days(way: Way, stops: int = 0) -> int:
    """Count the days on the way."""
    return DAYS[way] + stops


def ways_within(most: int) -> list[Way]:
    """List the ways that take no longer."""
    return [way for way in DAYS if days(way) <= most]
'''
T_ROUTES = """import unittest

from postbox.routes import days, ways_within


class Routes(unittest.TestCase):
    def test_days(self):
        self.assertEqual(days("road", stops=1), 4)

    def test_ways_within(self):
        self.assertEqual(ways_within(2), ["air"])
"""
LITERAL = Shape(
    "literal-lacks-a-value",
    "mypy postbox",
    {
        "postbox/routes.py": swap(
            ROUTES,
            ('"air": 1}', '"air": 1, "sea": 9}'),
            (
                "    return DAYS[way] + stops\n",
                '    if way == "sea":\n        stops *= 2\n    return DAYS[way] + stops\n',
            ),
        ),
        "tests/test_sea.py": "import unittest\n\nfrom postbox.routes import days\n\n\n"
        'class Sea(unittest.TestCase):\n    def test_days(self):\n        self.assertEqual(days("sea", stops=1), 11)\n',
    },
    "from typing import get_args; from pathlib import Path; from postbox import kinds, routes\n"
    "assert routes.days('sea', 2) == 13 and routes.days('air') == 1\n"
    "assert set(get_args(kinds.Way)) == {'road', 'air', 'sea'} and get_args(kinds.Speed) == ('slow', 'fast')\n"
    "text = Path('postbox/routes.py').read_text()\n"
    "assert 'ignore' not in text and 'dict[Way, int]' in text and 'way: Way' in text and 'strict = true' in Path('pyproject.toml').read_text()",
    {
        **less(
            POST, "postbox/rates.py", "postbox/desk.py", "postbox/parcel.py", "tests/test_rates.py"
        ),
        "postbox/kinds.py": KINDS,
        "postbox/routes.py": ROUTES,
        "tests/test_routes.py": T_ROUTES,
        "pyproject.toml": PROJECT + MYPY,
    },
    "Send parcels by sea",
    setup=PIP + "mypy",
    form=True,
    remedy='sed -i \'s/\\["road", "air"\\]/["road", "air", "sea"]/\' postbox/kinds.py',
)

# A stub beside a module that has grown.

LABELS = '''"""Labels for the printer."""


def label(to, number):
    """Lay a label out."""
    return f"{number:>08} {to.upper()}"


def check_digit(number):
    """Compute the digit at the end."""
    return sum(int(one) for one in str(number)) % 10
'''
LABELS_STUB = """def label(to: str, number: int) -> str: ...
def check_digit(number: int) -> int: ...
"""
T_LABELS = """import unittest

from postbox.labels import check_digit, label


class Labels(unittest.TestCase):
    def test_label(self):
        self.assertEqual(label("Oslo", 17), "00000017 OSLO")

    def test_check_digit(self):
        self.assertEqual(check_digit(96), 5)
"""
STUB = Shape(
    "stub-behind-its-module",
    "python -m mypy.stubtest postbox.labels",
    {
        "postbox/labels.py": swap(
            LABELS,
            ("def label(to, number):\n", "def label(to, number, width=8):\n"),
            ("{number:>08}", "{number:>0{width}}"),
        ),
        "tests/test_width.py": "import unittest\n\nfrom postbox.labels import label\n\n\n"
        'class Width(unittest.TestCase):\n    def test_narrow(self):\n        self.assertEqual(label("Oslo", 17, width=4), "0017 OSLO")\n',
    },
    "import ast; from pathlib import Path; from postbox.labels import label\n"
    "assert label('Moss', 5, width=3) == '005 MOSS' and label('Moss', 5) == '00000005 MOSS'\n"
    "text = Path('postbox/labels.pyi').read_text()\n"
    "one = next(one for one in ast.parse(text).body if getattr(one, 'name', '') == 'label')\n"
    "assert [arg.arg for arg in one.args.args] == ['to', 'number', 'width'] and len(one.args.defaults) == 1 and not one.args.kwarg\n"
    "assert 'to: str, number: int' in text and 'def check_digit(number: int) -> int' in text",
    {
        **less(
            POST, "postbox/rates.py", "postbox/desk.py", "postbox/parcel.py", "tests/test_rates.py"
        ),
        "postbox/labels.py": LABELS,
        "postbox/labels.pyi": LABELS_STUB,
        "tests/test_labels.py": T_LABELS,
    },
    "Let a label be narrower",
    setup=PIP + "mypy",
    form=True,
    remedy="sed -i 's/number: int) -> str/number: int, width: int = 8) -> str/' postbox/labels.pyi",
)

# A contract about imports that names a module's old name.

LAYERS = """
[tool.importlinter]
root_package = "postbox"

[[tool.importlinter.contracts]]
name = "The desk is on top"
type = "layers"
layers = ["postbox.desk", "postbox.rates", "postbox.parcel"]

[[tool.importlinter.contracts]]
name = "Parcels stand alone"
type = "forbidden"
source_modules = ["postbox.parcel"]
forbidden_modules = ["postbox.rates", "postbox.desk"]
"""
PRICES = (
    swap(RATES, ("BASE = 40\n", "BASE = 40\nABROAD = 2\n"))
    + '''

def cost_abroad(parcel: Parcel) -> int:
    """Price a parcel that goes abroad."""
    return ABROAD * cost(parcel)
'''
)
CONTRACT = Shape(
    "contract-names-a-renamed-module",
    "lint-imports",
    {
        "postbox/rates.py": None,
        "postbox/prices.py": PRICES,
        "postbox/desk.py": swap(DESK, ("postbox.rates", "postbox.prices")),
        "tests/test_rates.py": swap(T_RATES, ("postbox.rates", "postbox.prices")),
    },
    "import tomllib; from pathlib import Path; from postbox.parcel import Parcel; from postbox.prices import cost_abroad\n"
    "assert cost_abroad(Parcel('Kiruna', 2)) == 140 and not Path('postbox/rates.py').exists()\n"
    "layers, forbidden = tomllib.loads(Path('pyproject.toml').read_text())['tool']['importlinter']['contracts']\n"
    "assert layers['layers'] == ['postbox.desk', 'postbox.prices', 'postbox.parcel'] and 'ignore_imports' not in layers\n"
    "assert forbidden['forbidden_modules'] == ['postbox.prices', 'postbox.desk']",
    {**POST, "pyproject.toml": PROJECT + LAYERS},
    "Price parcels that go abroad, and call rates prices",
    setup=PIP + "import-linter",
    form=True,
    remedy="sed -i 's/postbox\\.rates/postbox.prices/' pyproject.toml",
)

# A data file that still has a property's old name.

SCHEMA = """{
  "type": "object",
  "required": ["city", "room"],
  "additionalProperties": false,
  "properties": {
    "city": {"type": "string"},
    "room": {"type": "integer"},
    "open": {"type": "boolean"}
  }
}
"""
DEPOTS = '''"""Reads the depots."""

from __future__ import annotations

import json
from pathlib import Path


def describe(path: str) -> str:
    """Say what a file of a depot holds."""
    depot = json.loads(Path(path).read_text(encoding="utf-8"))
    return f"{depot['city']}, {depot['room']} parcels"
'''
T_DEPOTS = """import unittest

from postbox.depots import describe


class Depots(unittest.TestCase):
    def test_describe(self):
        self.assertEqual(describe("depots/oslo.json"), "Oslo, 900 parcels")
"""
PROPERTY = Shape(
    "data-has-an-old-property",
    "check-jsonschema --schemafile schema/depot.json depots/oslo.json depots/hamar.json depots/moss.json",
    {
        "schema/depot.json": swap(
            SCHEMA,
            ('"required": ["city"', '"required": ["place"'),
            (
                '    "city": {"type": "string"},\n',
                '    "place": {"type": "string", "minLength": 2},\n',
            ),
            (
                '"open": {"type": "boolean"}\n',
                '"open": {"type": "boolean"},\n    "vans": {"type": "integer"}\n',
            ),
        ),
        "postbox/depots.py": swap(
            DEPOTS,
            (
                "return f\"{depot['city']}, {depot['room']} parcels\"",
                "vans = depot.get(\"vans\", 0)\n    return f\"{depot['place']}, {depot['room']} parcels, {vans} vans\"",
            ),
        ),
        "depots/oslo.json": '{\n  "place": "Oslo",\n  "room": 900,\n  "vans": 4\n}\n',
        "tests/test_depots.py": swap(T_DEPOTS, ("900 parcels", "900 parcels, 4 vans")),
    },
    "import json; from pathlib import Path; from postbox.depots import describe\n"
    "assert describe('depots/oslo.json') == 'Oslo, 900 parcels, 4 vans'\n"
    "read = lambda name: json.loads(Path(name).read_text())\n"
    "assert read('depots/hamar.json') == {'place': 'Hamar', 'room': 120, 'open': False}\n"
    "assert read('depots/moss.json') == {'place': 'Moss', 'room': 75}\n"
    "schema = read('schema/depot.json')\n"
    "assert schema['required'] == ['place', 'room'] and schema['additionalProperties'] is False and 'city' not in schema['properties']",
    {
        **NO_SHOP,
        "postbox/__init__.py": "",
        "postbox/depots.py": DEPOTS,
        "schema/depot.json": SCHEMA,
        "depots/oslo.json": '{\n  "city": "Oslo",\n  "room": 900\n}\n',
        "depots/hamar.json": '{\n  "city": "Hamar",\n  "room": 120,\n  "open": false\n}\n',
        "depots/moss.json": '{\n  "city": "Moss",\n  "room": 75\n}\n',
        "tests/test_depots.py": T_DEPOTS,
    },
    "Call the city of a depot its place, and count its vans",
    setup=PIP + "check-jsonschema",
    remedy='sed -i \'s/"city"/"place"/\' depots/hamar.json depots/moss.json',
)

# A list in a README that a generator within it writes.

COMMANDS = '''"""The commands of the desk."""

from __future__ import annotations

COMMANDS = {
    "price": "say what a parcel costs",
    "weigh": "ask the scale",
}


def usage() -> str:
    """Say what there is."""
    return "postbox [" + "|".join(COMMANDS) + "]"
'''
T_COMMANDS = """import unittest

from postbox.commands import COMMANDS, usage


class Commands(unittest.TestCase):
    def test_usage(self):
        self.assertTrue(usage().startswith("postbox [price|weigh"))

    def test_price(self):
        self.assertEqual(COMMANDS["price"], "say what a parcel costs")
"""
COG_README = """# Postbox

<!-- [[[cog
from postbox.commands import COMMANDS
for name, about in COMMANDS.items():
    cog.outl(f"- `{name}`: {about}")
]]] -->
- `price`: say what a parcel costs
- `weigh`: ask the scale
<!-- [[[end]]] -->

Ask at the desk.
"""
COG = Shape(
    "readme-list-out-of-date",
    "cog --check -I . README.md",
    {
        "postbox/commands.py": swap(
            COMMANDS,
            (
                '    "weigh": "ask the scale",\n',
                '    "weigh": "ask the scale",\n    "find": "say where a parcel is",\n',
            ),
        ),
    },
    "from pathlib import Path; from postbox.commands import COMMANDS, usage\n"
    "assert usage() == 'postbox [price|weigh|find]'\n"
    "text = Path('README.md').read_text()\n"
    "assert '- `find`: say where a parcel is\\n' in text and '- `weigh`' in text and '[[[cog' in text and text.endswith('Ask at the desk.\\n')",
    {
        **NO_SHOP,
        "postbox/__init__.py": "",
        "postbox/commands.py": COMMANDS,
        "tests/test_commands.py": T_COMMANDS,
        "pyproject.toml": PROJECT,
        "README.md": COG_README,
    },
    "Find parcels",
    setup=PIP + "cogapp",
    remedy="cog -r -I . README.md",
)

# A new file that the list of what ships lacks.

BUILD = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

"""
ZONES = '''"""Zones of the country."""

from __future__ import annotations

import csv
from pathlib import Path


def zone(place: str, path: str = "data/zones.csv") -> int:
    """Look a place's zone up."""
    with Path(path).open(encoding="utf-8", newline="") as rows:
        return {row["place"]: int(row["zone"]) for row in csv.DictReader(rows)}[place]
'''
MANIFEST = Shape(
    "manifest-lacks-a-file",
    "check-manifest --no-build-isolation",
    {
        "postbox/zones.py": ZONES,
        "data/zones.csv": "place,zone\nOslo,1\nHamar,2\n",
        "tests/test_zones.py": "import unittest\n\nfrom postbox.zones import zone\n\n\n"
        'class Zones(unittest.TestCase):\n    def test_zone(self):\n        self.assertEqual(zone("Hamar"), 2)\n',
    },
    "from pathlib import Path; from postbox.zones import zone\n"
    "assert zone('Oslo') == 1\n"
    "text = Path('MANIFEST.in').read_text()\n"
    "assert 'data' in text and 'exclude data' not in text and 'prune' not in text and 'recursive-include tests *.py' in text\n"
    "assert 'check-manifest' not in Path('pyproject.toml').read_text()",
    {
        **less(POST, "postbox/desk.py"),
        "pyproject.toml": BUILD + PROJECT + '\n[tool.setuptools]\npackages = ["postbox"]\n',
        "MANIFEST.in": "include README.md\nrecursive-include tests *.py\n",
        "README.md": "# Postbox\n\nPrices parcels.\n",
        ".gitignore": "*.egg-info/\n",
    },
    "Know the zones",
    {"README.md": "# Postbox\n\nPrices parcels of all sizes.\n"},
    setup=PIP + "check-manifest setuptools wheel",
    remedy="check-manifest --no-build-isolation --update || true",
)

# An entry point to a module that has moved.

CLI = '''"""The command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from postbox.parcel import Parcel
from postbox.rates import cost


def main(argv: Sequence[str] | None = None) -> int:
    """Print what a parcel costs."""
    parser = argparse.ArgumentParser(prog="postbox")
    parser.add_argument("--dest", required=True, help="where it goes")
    parser.add_argument("--kg", type=float, required=True, help="what it weighs")
    given = parser.parse_args(argv)
    print(f"{given.dest}: {cost(Parcel(given.dest, given.kg))} kr")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
'''
ENTRIES = '''"""Loads every entry point that the project declares."""

from __future__ import annotations

import sys
import tomllib
from importlib import import_module
from pathlib import Path

sys.path.insert(0, ".")


def broken() -> list[str]:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = []
    for name, target in project.get("scripts", {}).items():
        module, _, attribute = target.partition(":")
        try:
            getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            found.append(f"pyproject.toml: {name} = {target!r}: {error}")
    return found


if __name__ == "__main__":
    problems = broken()
    print("\\n".join(problems) or "every entry point loads")
    raise SystemExit(bool(problems))
'''
SCRIPTS = '\n[project.scripts]\npostbox = "postbox.cli:main"\npostbox-price = "postbox.cli:main"\n'
ENTRY = Shape(
    "entry-point-to-a-moved-module",
    "python tools/entries.py",
    {
        "postbox/cli.py": None,
        "postbox/console.py": swap(
            CLI,
            (
                "    given = parser.parse_args(argv)\n",
                '    parser.add_argument("--count", type=int, default=1, help="how many")\n    given = parser.parse_args(argv)\n',
            ),
            (
                "{cost(Parcel(given.dest, given.kg))}",
                "{given.count * cost(Parcel(given.dest, given.kg))}",
            ),
            ("The command line.", "The desk's console."),
        ),
    },
    "import tomllib; from pathlib import Path; from postbox.console import main\n"
    "assert main(['--dest', 'Moss', '--kg', '2', '--count', '3']) == 0 and not Path('postbox/cli.py').exists()\n"
    "scripts = tomllib.loads(Path('pyproject.toml').read_text())['project']['scripts']\n"
    "assert scripts == dict.fromkeys(['postbox', 'postbox-price'], 'postbox.console:main')\n"
    "assert 'ImportError' in Path('tools/entries.py').read_text()",
    {
        **less(POST, "postbox/desk.py"),
        "postbox/cli.py": CLI,
        "tools/entries.py": ENTRIES,
        "pyproject.toml": PROJECT + SCRIPTS,
    },
    "Price many at the console, as the command line is called now",
    setup="true",
    remedy="sed -i 's/postbox\\.cli:/postbox.console:/' pyproject.toml",
)

# A translation that still has the old name of a place for a value.

NOTICES = '''"""Notices to those who wait for a parcel."""

from __future__ import annotations

import json
from pathlib import Path


def notice(language: str, n: int, place: str) -> str:
    """Say that parcels are here."""
    texts = json.loads(Path("locale", f"{language}.json").read_text(encoding="utf-8"))
    return texts["arrived"].format(n=n, place=place)
'''
LOCALES = '''"""Compares the translations with the English texts."""

from __future__ import annotations

import json
import string
from pathlib import Path


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def problems() -> list[str]:
    english = json.loads(Path("locale/en.json").read_text(encoding="utf-8"))
    found = []
    for path in sorted(Path("locale").glob("*.json")):
        texts = json.loads(path.read_text(encoding="utf-8"))
        for key in english.keys() ^ texts.keys():
            found.append(f"{path}: {key}: only in one of the two")
        for key in english.keys() & texts.keys():
            if places(english[key]) != places(texts[key]):
                found.append(f"{path}: {key}: has {sorted(places(texts[key]))}, en.json has {sorted(places(english[key]))}")
    return found


if __name__ == "__main__":
    found = problems()
    print("\\n".join(found))
    raise SystemExit(len(found) > 0)
'''
T_NOTICES = """import unittest

from postbox.notices import notice


class Notices(unittest.TestCase):
    def test_english(self):
        self.assertEqual(notice("en", 2, "Oslo"), "2 parcels wait in Oslo.")
"""
TRANSLATION = Shape(
    "translation-with-an-old-placeholder",
    "python tools/locales.py",
    {
        "postbox/notices.py": swap(
            NOTICES,
            ("n: int,", "count: int,"),
            ("n=n", "count=count"),
            ("place=place)", "place=place.title())"),
        ),
        "locale/en.json": '{\n  "arrived": "{count} parcels wait in {place}.",\n  "lost": "Not found."\n}\n',
        "locale/de.json": '{\n  "arrived": "In {place} warten {count} Pakete.",\n  "lost": "Nicht gefunden."\n}\n',
        "tests/test_notices.py": swap(T_NOTICES, ('2, "Oslo")', '2, "oslo")')),
    },
    "import json; from pathlib import Path; from postbox.notices import notice\n"
    "assert notice('en', count=3, place='moss') == '3 parcels wait in Moss.' and notice('de', 3, 'moss') == 'In Moss warten 3 Pakete.'\n"
    "assert notice('nb', 3, 'moss') == 'Det ligger 3 pakker i Moss.' and json.loads(Path('locale/nb.json').read_text())['lost'] == 'Ikke funnet.'\n"
    "assert '!= places(' in Path('tools/locales.py').read_text()",
    {
        **NO_SHOP,
        "postbox/__init__.py": "",
        "postbox/notices.py": NOTICES,
        "tools/locales.py": LOCALES,
        "locale/en.json": '{\n  "arrived": "{n} parcels wait in {place}.",\n  "lost": "Not found."\n}\n',
        "locale/de.json": '{\n  "arrived": "In {place} warten {n} Pakete.",\n  "lost": "Nicht gefunden."\n}\n',
        "locale/nb.json": '{\n  "arrived": "Det ligger {n} pakker i {place}.",\n  "lost": "Ikke funnet."\n}\n',
        "tests/test_notices.py": T_NOTICES,
    },
    "Write places with a capital, and say count for n",
    setup="true",
    remedy="sed -i 's/{n}/{count}/' locale/nb.json",
)

# A run of tests that sets a variable by its old name.

SETTINGS = '''"""Settings, from the environment."""

from __future__ import annotations

import os


def token() -> str:
    """Give the token for the carrier."""
    return os.environ["POSTBOX_TOKEN"]


def headers() -> dict[str, str]:
    """Give what a request carries."""
    return {"Authorization": f"Bearer {token()}"}
'''
T_SETTINGS = """import unittest

from postbox.settings import headers


class Settings(unittest.TestCase):
    def test_headers(self):
        self.assertTrue(headers()["Authorization"].startswith("Bearer t"))
"""
NOX = """import nox


@nox.session(venv_backend="none")
def tests(session):
    session.run("python", "-m", "unittest", "discover", "-s", "tests", env={"POSTBOX_TOKEN": "t0ken"})
"""
VARIABLE = Shape(
    "nox-sets-an-old-variable",
    "nox -s tests",
    {
        "postbox/settings.py": swap(
            SETTINGS,
            ("POSTBOX_TOKEN", "POSTBOX_CARRIER_TOKEN"),
            ('f"Bearer {token()}"}', 'f"Bearer {token()}", "Accept": "application/json"}'),
        ),
        "README.md": "# Postbox\n\nSet `POSTBOX_CARRIER_TOKEN` to your token.\n",
    },
    "import os; from pathlib import Path\n"
    "os.environ.pop('POSTBOX_TOKEN', None); os.environ['POSTBOX_CARRIER_TOKEN'] = 'x'\n"
    "from postbox.settings import headers\n"
    "assert headers() == {'Authorization': 'Bearer x', 'Accept': 'application/json'}\n"
    "os.environ.pop('POSTBOX_CARRIER_TOKEN')\n"
    "try:\n    headers()\nexcept KeyError:\n    pass\nelse:\n    raise AssertionError\n"
    "assert 'POSTBOX_CARRIER_TOKEN' in Path('noxfile.py').read_text() and 'success_codes' not in Path('noxfile.py').read_text()\n"
    "assert 'POSTBOX_CARRIER_TOKEN' in Path('README.md').read_text() and 'startswith(\"Bearer t\")' in Path('tests/test_settings.py').read_text()",
    {
        **NO_SHOP,
        "postbox/__init__.py": "",
        "postbox/settings.py": SETTINGS,
        "tests/test_settings.py": T_SETTINGS,
        "noxfile.py": NOX,
        "README.md": "# Postbox\n\nSet `POSTBOX_TOKEN` to your token.\n",
    },
    "Name the token after the carrier, and ask for JSON",
    setup=PIP + "nox",
    remedy="sed -i 's/POSTBOX_TOKEN/POSTBOX_CARRIER_TOKEN/' noxfile.py",
)

# A target that runs the command line with an option's old name.

SMOKE = """.PHONY: test smoke

test:
	python -m unittest discover -s tests

smoke:
	python -m postbox.cli --dest Oslo --kg 2 | grep -q "Oslo: 70 kr"
	python -m postbox.cli --kg 5.5 --dest Hamar | grep -q 122
"""
OPTION = Shape(
    "target-uses-an-old-option",
    "make smoke",
    {
        "postbox/cli.py": swap(
            CLI,
            ('"--dest", required=True', '"--to", required=True, type=str.title'),
            ("given.dest", "given.to"),
        ),
    },
    "from pathlib import Path; from postbox.cli import main\n"
    "assert main(['--to', 'moss', '--kg', '2']) == 0 and '--dest' not in Path('postbox/cli.py').read_text()\n"
    "text = Path('Makefile').read_text()\n"
    "assert text.count('python -m postbox.cli') == 2 and 'Oslo: 70 kr' in text and 'grep -q 122' in text and '|| true' not in text and '\\t-' not in text",
    {**less(POST, "postbox/desk.py"), "postbox/cli.py": CLI, "Makefile": SMOKE},
    "Say --to for --dest, and write places with a capital",
    setup="true",
    remedy="sed -i 's/--dest/--to/' Makefile",
)

# A helper that nothing calls any more.

CLIMATE = '''"""The climate of a greenhouse."""

from __future__ import annotations


def _mean(values: list[float]) -> float:
    """Take the mean."""
    return sum(values) / len(values)


def temperature(readings: list[float]) -> float:
    """Settle on one temperature."""
    return round(_mean(readings), 1)


def is_frost(readings: list[float]) -> bool:
    """Say whether plants have to come in."""
    return temperature(readings) <= 0
'''
T_CLIMATE = """import unittest

from greenhouse.climate import is_frost, temperature


class ClimateTest(unittest.TestCase):
    def test_temperature(self):
        self.assertEqual(temperature([20, 21, 22]), 21)

    def test_is_frost(self):
        self.assertTrue(is_frost([-2, -1, 0]))
"""
HOUSE = """[project]
name = "greenhouse"
version = "0.3.0"
description = "Keeps plants warm"
requires-python = ">=3.10"
dependencies = []
"""
GREEN: Files = {
    **NO_SHOP,
    "greenhouse/__init__.py": '"""Keeps plants warm."""\n',
    "greenhouse/climate.py": CLIMATE,
    "tests/test_climate.py": T_CLIMATE,
    "pyproject.toml": HOUSE,
}
VULTURE = '\n[tool.vulture]\npaths = ["greenhouse", "tests"]\nignore_names = ["*Test"]\n'
DEAD_HELPER = Shape(
    "helper-left-unused",
    "vulture",
    {
        "greenhouse/climate.py": swap(
            CLIMATE,
            ("annotations\n\n\n", "annotations\n\nfrom statistics import median\n\n\n"),
            ("round(_mean(readings), 1)", "round(median(readings), 1)"),
            (
                "Settle on one temperature.",
                "Settle on one temperature, whatever a broken sensor says.",
            ),
        ),
        "tests/test_broken.py": "import unittest\n\nfrom greenhouse.climate import temperature\n\n\n"
        "class BrokenTest(unittest.TestCase):\n    def test_one_of_three(self):\n        self.assertEqual(temperature([20, 21, 900]), 21)\n",
    },
    "from pathlib import Path; from greenhouse.climate import is_frost, temperature\n"
    "assert temperature([1, 2, 300]) == 2 and is_frost([-1, -1, 50])\n"
    "assert '_mean' not in Path('greenhouse/climate.py').read_text() and Path('pyproject.toml').read_text().endswith('paths = [\"greenhouse\", \"tests\"]\\nignore_names = [\"*Test\"]\\n')\n"
    "assert '_mean' not in ''.join(path.read_text() for path in Path('.').rglob('*.py'))",
    {**GREEN, "pyproject.toml": HOUSE + VULTURE},
    "Settle on the middle reading",
    setup=PIP + "vulture",
    form=True,
    remedy="sed -i '/^def _mean/,/^def temperature/{/^def temperature/!d}' greenhouse/climate.py",
)

# A parameter under a new name, with its old name in the text about it.

VENTS = '''"""The vents in the roof."""

from __future__ import annotations


def opening(degrees: float, limit: float) -> int:
    """Say how far to open the vents.

    Args:
        degrees: what it is inside.
        limit: where the vents begin to open.

    Returns:
        A percentage.
    """
    return max(0, min(100, round((degrees - limit) * 10)))


def should_alarm(degrees: float, limit: float, hours: int = 1) -> bool:
    """Say whether somebody has to come.

    Args:
        degrees: what it is inside.
        limit: what the plants bear.
        hours: how long it has been so.

    Returns:
        Whether to ring.
    """
    return degrees > limit and hours >= 1
'''
T_VENTS = """import unittest

from greenhouse.vents import opening, should_alarm


class Vents(unittest.TestCase):
    def test_opening(self):
        self.assertEqual(opening(25, 22), 30)

    def test_should_alarm(self):
        self.assertTrue(should_alarm(41, 40, hours=2))
"""
PYDOCLINT = '\n[tool.pydoclint]\nstyle = "google"\narg-type-hints-in-docstring = false\ncheck-return-types = false\n'
PARAMETER_TEXT = Shape(
    "parameter-renamed-not-its-text",
    "pydoclint greenhouse",
    {
        "greenhouse/vents.py": swap(
            VENTS,
            (
                "def opening(degrees: float, limit: float)",
                "def opening(degrees: float, threshold: float)",
            ),
            ("        limit: where the vents", "        threshold: where the vents"),
            ("(degrees - limit) * 10", "(degrees - threshold) * 10"),
            (
                "def should_alarm(degrees: float, limit: float, hours",
                "def should_alarm(degrees: float, threshold: float, hours",
            ),
            ("degrees > limit and hours >= 1", "degrees >= threshold and hours >= 1"),
        ),
    },
    "import inspect; from pathlib import Path; from greenhouse.vents import opening, should_alarm\n"
    "assert opening(degrees=25, threshold=22) == 30 and should_alarm(40, threshold=40)\n"
    "text = inspect.getdoc(should_alarm)\n"
    "assert '    threshold: what the plants bear.' in text and 'limit' not in text and 'hours: how long' in text\n"
    "assert 'arg-type-hints-in-docstring = false\\ncheck-return-types = false' in Path('pyproject.toml').read_text() and 'noqa' not in Path('greenhouse/vents.py').read_text()",
    {
        **less(GREEN, "greenhouse/climate.py", "tests/test_climate.py"),
        "greenhouse/vents.py": VENTS,
        "tests/test_vents.py": T_VENTS,
        "pyproject.toml": HOUSE + PYDOCLINT,
    },
    "Call a limit a threshold, and alarm at it",
    setup=PIP + "pydoclint",
    form=True,
    remedy="sed -i 's/        limit: what/        threshold: what/' greenhouse/vents.py",
)

# A digest that is no matter of security.

CHANGED = '''"""Says whether a plan has changed."""

from __future__ import annotations

import hashlib


def mark(plan: str) -> str:
    """Give a short mark of a plan, the same for the same plan."""
    return hashlib.md5(plan.encode()).hexdigest()[:8]


def changed(plan: str, seen: str) -> bool:
    """Say whether a plan is another than the one with this mark."""
    return mark(plan) != seen
'''
DIGEST = Shape(
    "weak-digest-not-for-security",
    "bandit -q -r greenhouse",
    {
        "greenhouse/changed.py": CHANGED,
        "tests/test_changed.py": "import unittest\n\nfrom greenhouse.changed import changed, mark\n\n\n"
        'class Changed(unittest.TestCase):\n    def test_mark(self):\n        self.assertEqual(mark("tomatoes"), "53f8d641")\n\n'
        '    def test_changed(self):\n        self.assertFalse(changed("beans", mark("beans")))\n',
    },
    "from pathlib import Path; from greenhouse.changed import changed, mark\n"
    "assert mark('tomatoes') == '53f8d641' and changed('beans', mark('peas'))\n"
    "text = Path('greenhouse/changed.py').read_text()\n"
    "assert 'nosec' not in text and 'usedforsecurity=False' in text and 'bandit' not in Path('pyproject.toml').read_text()",
    GREEN,
    "Say whether a plan has changed",
    setup=PIP + "bandit",
    form=True,
    remedy="sed -i 's/md5(plan.encode())/md5(plan.encode(), usedforsecurity=False)/' greenhouse/changed.py",
)

# Files opened without an encoding, where that is an error.

JOURNAL = '''"""A gardener's journal."""

from __future__ import annotations

from pathlib import Path


def entries(path: str) -> list[str]:
    """Read what somebody wrote."""
    return [line for line in Path(path).read_text(encoding="utf-8").splitlines() if line]
'''
APPEND = '''

def copy(path: str, to: str) -> int:
    """Copy the entries, each with its number, and count them."""
    with open(path) as old:
        lines = [line.strip() for line in old if line.strip()]
    Path(to).write_text("".join(f"{at} {line}\\n" for at, line in enumerate(lines, 1)))
    return len(lines)
'''
WEEK = """from greenhouse.journal import entries

for entry in entries("examples/week.txt"):
    print("-", entry)
"""
WEEK_COPY = """import tempfile
from pathlib import Path

from greenhouse.journal import copy, entries

for entry in entries("examples/week.txt"):
    print("-", entry)
with tempfile.TemporaryDirectory() as folder:
    print(copy("examples/week.txt", str(Path(folder, "copy.txt"))), "entries")
"""
T_JOURNAL = """import unittest

from greenhouse.journal import entries


class Journal(unittest.TestCase):
    def test_entries(self):
        self.assertEqual(entries("examples/week.txt")[1], "Tuesday: pruned the kürbis")
"""
ENCODING = Shape(
    "files-opened-without-encoding",
    "python -X warn_default_encoding -W error::EncodingWarning -m examples.week",
    {"greenhouse/journal.py": JOURNAL + APPEND, "examples/week.py": WEEK_COPY},
    "import tempfile; from pathlib import Path; from greenhouse.journal import copy\n"
    "with tempfile.TemporaryDirectory() as folder:\n"
    "    assert copy('examples/week.txt', folder + '/a') == 2\n"
    "    assert Path(folder, 'a').read_bytes().decode('utf-8') == '1 Monday: sowed peas\\n2 Tuesday: pruned the kürbis\\n'\n"
    "assert 'copy(' in Path('examples/week.py').read_text() and 'locale' not in Path('greenhouse/journal.py').read_text()\n"
    "assert 'warnings' not in Path('greenhouse/journal.py').read_text() + Path('examples/week.py').read_text()",
    {
        **less(GREEN, "greenhouse/climate.py", "tests/test_climate.py"),
        "greenhouse/journal.py": JOURNAL,
        "examples/week.py": WEEK,
        "examples/week.txt": "Monday: sowed peas\n\nTuesday: pruned the kürbis\n",
        "tests/test_journal.py": T_JOURNAL,
    },
    "Copy a journal",
    setup="true",
    remedy="sed -i -e 's/open(path)/open(path, encoding=\"utf-8\")/' -e 's/enumerate(lines, 1)))/enumerate(lines, 1)), encoding=\"utf-8\")/' greenhouse/journal.py",
)

# A model that has grown without a migration.

MANAGE = '''"""Runs Django."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nursery.settings")
    execute_from_command_line(sys.argv)
'''
DJANGO = '''"""Settings."""

SECRET_KEY = "only-for-tests"
INSTALLED_APPS = ["plants"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
'''
MODELS = '''"""Plants for sale."""

from django.db import models


class Plant(models.Model):
    """One kind of plant."""

    name = models.CharField(max_length=80)
    price = models.PositiveIntegerField(default=0)
'''
INITIAL = """from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Plant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("price", models.PositiveIntegerField(default=0)),
            ],
        ),
    ]
"""
T_PLANTS = """from django.test import TestCase

from plants.models import Plant


class Plants(TestCase):
    def test_price(self):
        Plant.objects.create(name="Fern", price=120)
        self.assertEqual(Plant.objects.get(name="Fern").price, 120)
"""
MIGRATION = Shape(
    "model-without-a-migration",
    "python manage.py makemigrations --check",
    {
        "plants/models.py": swap(
            MODELS,
            (
                "    price = models.PositiveIntegerField(default=0)\n",
                "    price = models.PositiveIntegerField(default=0)\n    hardy = models.BooleanField(default=False)\n"
                '    origin = models.CharField(max_length=40, blank=True, default="")\n',
            ),
        ),
        "plants/tests.py": T_PLANTS
        + '\n    def test_hardy(self):\n        Plant.objects.create(name="Yew", hardy=True, origin="Sogn")\n'
        '        self.assertEqual(Plant.objects.filter(hardy=True).get().origin, "Sogn")\n',
    },
    "from pathlib import Path\n"
    "text = Path('plants/models.py').read_text()\n"
    "assert 'hardy = models.BooleanField' in text and 'origin = ' in text and 'managed' not in text and 'test_hardy' in Path('plants/tests.py').read_text()\n"
    "made = ''.join(path.read_text() for path in Path('plants/migrations').glob('*.py'))\n"
    "assert 'hardy' in made and 'origin' in made and made.count('CreateModel') == 1\n"
    "assert 'MIGRATION' not in Path('nursery/settings.py').read_text()",
    {
        **NO_SHOP,
        "manage.py": MANAGE,
        "nursery/__init__.py": "",
        "nursery/settings.py": DJANGO,
        "plants/__init__.py": "",
        "plants/models.py": MODELS,
        "plants/tests.py": T_PLANTS,
        "plants/migrations/__init__.py": "",
        "plants/migrations/0001_initial.py": INITIAL,
    },
    "Know which plants are hardy, and where they come from",
    setup=PIP + "django",
    remedy="python manage.py makemigrations",
)

# Pages that point to where a page was.

MKDOCS = """site_name: Greenhouse
nav:
  - Home: index.md
  - Usage: usage.md
"""
INDEX = "# Greenhouse\n\nKeeps plants warm. See [how to use it](usage.md).\n"
USAGE = "# Usage\n\nAsk `temperature` for one number. [Home](index.md)\n"
PAGES = Shape(
    "links-to-a-moved-page",
    "mkdocs build --strict",
    {
        "docs/usage.md": None,
        "docs/guide/usage.md": USAGE,
        "docs/guide/sensors.md": "# Sensors\n\nHang three, so that one may break. [Usage](usage.md)\n",
        "mkdocs.yml": swap(
            MKDOCS,
            (
                "  - Usage: usage.md\n",
                "  - Guide:\n      - Usage: guide/usage.md\n      - Sensors: guide/sensors.md\n",
            ),
        ),
    },
    "from pathlib import Path\n"
    "assert 'Hang three' in Path('docs/guide/sensors.md').read_text() and '[Usage](usage.md)' in Path('docs/guide/sensors.md').read_text()\n"
    "assert '[how to use it](guide/usage.md)' in Path('docs/index.md').read_text()\n"
    "assert '[Home](../index.md)' in Path('docs/guide/usage.md').read_text() and not Path('docs/usage.md').exists()\n"
    "text = Path('mkdocs.yml').read_text()\n"
    "assert 'guide/usage.md' in text and 'guide/sensors.md' in text and 'validation' not in text and 'ignore' not in text",
    {
        **GREEN,
        "mkdocs.yml": MKDOCS,
        "docs/index.md": INDEX,
        "docs/usage.md": USAGE,
        ".gitignore": "/site/\n",
    },
    "Make a guide of the usage, with a page on sensors",
    setup=PIP + "mkdocs",
    remedy="sed -i 's/(usage.md)/(guide\\/usage.md)/' docs/index.md\nsed -i 's/(index.md)/(..\\/index.md)/' docs/guide/usage.md",
)

# A package that is imported and nowhere asked for.

SHELF = '''"""What stands on a shelf, for people."""

from __future__ import annotations

from tabulate import tabulate


def table(plants: dict[str, int]) -> str:
    """Lay plants and their numbers out."""
    return tabulate(sorted(plants.items()), headers=["plant", "pots"], tablefmt="plain")
'''
DEPENDENCY = Shape(
    "import-not-among-dependencies",
    "deptry .",
    {
        "greenhouse/shelf.py": SHELF,
        "tests/test_shelf.py": "import unittest\n\nfrom greenhouse.shelf import table\n\n\n"
        'class Shelf(unittest.TestCase):\n    def test_table(self):\n        self.assertEqual(table({"fern": 3}).splitlines()[1].split(), ["fern", "3"])\n',
    },
    "import tomllib; from pathlib import Path\n"
    "have = tomllib.loads(Path('pyproject.toml').read_text())\n"
    "assert any(one.startswith('tabulate') for one in have['project']['dependencies']) and any(one.startswith('packaging') for one in have['project']['dependencies'])\n"
    "assert 'deptry' not in have.get('tool', {}) and 'return tabulate(sorted(' in Path('greenhouse/shelf.py').read_text()\n"
    "assert 'noqa' not in Path('greenhouse/shelf.py').read_text() and '[\"fern\", \"3\"]' in Path('tests/test_shelf.py').read_text()",
    {
        **GREEN,
        "greenhouse/firmware.py": '"""The firmware of sensors."""\n\nfrom packaging.version import Version\n\n\n'
        'def is_old(version: str) -> bool:\n    """Say whether a sensor needs new firmware."""\n    return Version(version) < Version("2.1")\n',
        "pyproject.toml": swap(
            HOUSE, ("dependencies = []", 'dependencies = [\n    "packaging>=22",\n]')
        ),
    },
    "Lay a shelf out",
    setup=PIP + "deptry tabulate packaging",
    form=True,
    remedy='sed -i \'s/^    "packaging>=22",/&\\n    "tabulate",/\' pyproject.toml',
)

# A file of tests under a name that nothing looks for.

T_FROST = """import unittest

from greenhouse.frost import warning


class Frost(unittest.TestCase):
    def test_warning(self):
        self.assertEqual(warning([-3, -2, -1]), "Bring the plants in: -2")

    def test_none(self):
        self.assertEqual(warning([1, 2, 3]), "")
"""
FROST = '''"""Warns of frost."""

from __future__ import annotations

from greenhouse.climate import is_frost, temperature


def warning(readings: list[float]) -> str:
    """Say what to do, if anything."""
    return f"Bring the plants in: {temperature(readings):.0f}" if is_frost(readings) else ""
'''
TEST_NAME = Shape(
    "test-file-not-named-as-one",
    "name-tests-test --pytest-test-first tests/*.py",
    {"greenhouse/frost.py": FROST, "tests/frost_test.py": T_FROST},
    "import subprocess, sys; from pathlib import Path; from greenhouse.frost import warning\n"
    "assert warning([-1, -1, -1]) == 'Bring the plants in: -1'\n"
    "assert not Path('tests/frost_test.py').exists()\n"
    "found = [path for path in Path('tests').glob('test_*.py') if 'greenhouse.frost' in path.read_text()]\n"
    "assert found and 'Bring the plants in: -2' in found[0].read_text() and 'test_none' in found[0].read_text()\n"
    "ran = subprocess.run([sys.executable, '-m', 'unittest', 'discover', '-s', 'tests'], capture_output=True, text=True)\n"
    "assert ran.returncode == 0 and 'Ran 4 tests' in ran.stderr, ran.stderr",
    GREEN,
    "Warn of frost",
    setup=PIP + "pre-commit-hooks",
    form=True,
    remedy="mv tests/frost_test.py tests/test_frost.py",
)

# JavaScript: tests that import a function's old name.

PACKAGE = """{
  "name": "trailmap",
  "version": "2.1.0",
  "type": "module",
  "scripts": {
    "test": "node --test",
    "syntax": "node --check src/trail.js && node --check src/climb.js"
  }
}
"""
TRAIL = """/** Trails, as lists of [x, y] in metres. */

export function length(points) {
  let metres = 0;
  for (let at = 1; at < points.length; at += 1) {
    metres += Math.hypot(points[at][0] - points[at - 1][0], points[at][1] - points[at - 1][1]);
  }
  return Math.round(metres);
}

export function isLoop(points) {
  return points.length > 2 && points[0].join() === points.at(-1).join();
}
"""
CLIMB = """/** How much a trail climbs. */

export function climb(heights) {
  return heights.slice(1).reduce((sum, height, at) => sum + Math.max(0, height - heights[at]), 0);
}
"""
T_TRAIL = """import assert from "node:assert/strict";
import { test } from "node:test";

import { length } from "../src/trail.js";

test("adds the parts up", () => {
  assert.equal(length([[0, 0], [3, 4], [3, 14]]), 15);
});
"""
T_LOOP = """import assert from "node:assert/strict";
import { test } from "node:test";

import { isLoop, length } from "../src/trail.js";

const SQUARE = [[0, 0], [0, 9], [9, 9], [9, 0], [0, 0]];

test("knows a loop", () => {
  assert.ok(isLoop(SQUARE));
  assert.ok(!isLoop(SQUARE.slice(1)));
});

test("goes all around", () => {
  assert.equal(length(SQUARE), 36);
  assert.equal(SQUARE.length, 5);
});
"""
T_CLIMB = """import assert from "node:assert/strict";
import { test } from "node:test";

import { climb } from "../src/climb.js";

test("counts only what goes up", () => {
  assert.equal(climb([100, 140, 120, 125]), 45);
});
"""
TRAILS: Files = {
    **NO_SHOP,
    "package.json": PACKAGE,
    "src/trail.js": TRAIL,
    "src/climb.js": CLIMB,
    "test/trail.test.js": T_TRAIL,
    "test/loop.test.js": T_LOOP,
    "test/climb.test.js": T_CLIMB,
}
NODE = "import subprocess; from pathlib import Path\nrun = lambda code: subprocess.run(['node', '--input-type=module', '-e', code], capture_output=True, text=True).stdout.strip()\n"
JS_EXPORT = Shape(
    "export-renamed-one-test-left",
    "node --test",
    {
        "src/trail.js": swap(
            TRAIL,
            ("export function length(points) {", 'export function distance(points, unit = "m") {'),
            (
                "  return Math.round(metres);",
                '  return unit === "km" ? metres / 1000 : Math.round(metres);',
            ),
        ),
        "test/trail.test.js": swap(
            T_TRAIL, ("{ length }", "{ distance }"), ("equal(length(", "equal(distance(")
        )
        + '\ntest("counts in kilometres", () => {\n  assert.equal(distance([[0, 0], [0, 1500]], "km"), 1.5);\n});\n',
    },
    NODE
    + "assert run('import { distance } from \"./src/trail.js\"; console.log(distance([[0, 0], [0, 2500]], \"km\"))') == '2.5'\n"
    "assert 'function length' not in Path('src/trail.js').read_text() and 'kilometres' in Path('test/trail.test.js').read_text()\n"
    "text = Path('test/loop.test.js').read_text()\n"
    "assert '(SQUARE), 36)' in text and 'SQUARE.length, 5)' in text and 'isLoop(SQUARE)' in text and 'skip' not in text",
    TRAILS,
    "Count in kilometres too, and call a length a distance",
    setup="true",
    remedy="sed -i -e 's/isLoop, length/distance, isLoop/' -e 's/equal(length(/equal(distance(/' test/loop.test.js",
)

# JavaScript: a script of the package that names a moved file.

JS_SCRIPT = Shape(
    "package-script-names-a-moved-file",
    "npm run --silent syntax",
    {
        "src/climb.js": None,
        "src/profile/climb.js": CLIMB
        + "\nexport function descent(heights) {\n  return climb([...heights].reverse());\n}\n",
        "test/climb.test.js": swap(
            T_CLIMB,
            ("{ climb }", "{ climb, descent }"),
            ("../src/climb.js", "../src/profile/climb.js"),
        )
        + '\ntest("counts what goes down", () => {\n  assert.equal(descent([100, 140, 120, 125]), 20);\n});\n',
    },
    NODE + "import json\n"
    "assert run('import { descent } from \"./src/profile/climb.js\"; console.log(descent([9, 4, 5]))') == '5'\n"
    "scripts = json.loads(Path('package.json').read_text())['scripts']\n"
    "assert 'node --check src/trail.js' in scripts['syntax'] and 'src/profile/' in scripts['syntax'] and '||' not in scripts['syntax']\n"
    "assert scripts['test'] == 'node --test' and not Path('src/climb.js').exists()",
    TRAILS,
    "Count what goes down, beside what climbs, in a folder of profiles",
    setup="true",
    remedy="sed -i 's|src/climb.js|src/profile/climb.js|' package.json",
)

THIRTEENTH = (
    PATCH_TARGET,
    MESSAGE,
    GOLDEN,
    EXCEPTION,
    FIXTURE,
    MARKER,
    DOCTEST,
    IGNORES,
    GENERATED,
    UNUSED_IGNORE,
    LITERAL,
    STUB,
    CONTRACT,
    PROPERTY,
    COG,
    MANIFEST,
    ENTRY,
    TRANSLATION,
    VARIABLE,
    OPTION,
    DEAD_HELPER,
    PARAMETER_TEXT,
    DIGEST,
    ENCODING,
    MIGRATION,
    PAGES,
    DEPENDENCY,
    TEST_NAME,
    JS_EXPORT,
    JS_SCRIPT,
)
