"""Twelve more red default branches, as a maintainer meets them: four to be mended unasked, eight whose cheap repair is wrong."""

from __future__ import annotations

from benchmarks.repair_choice_cases import Choice, Files

NO_SHOP: Files = {"shop/__init__.py": None, "shop/cart.py": None, "tests/test_cart.py": None}
SLOTS = '''"""Free slots of a day."""


def slots(start, end, minutes):
    """Begin of every slot that ends in time."""
    found = []
    at = start
    while at + minutes <= end:
        found.append(at)
        at += minutes
    return found
'''
SLOTS_TESTS = """from rooms.slots import slots


def test_slots():
    assert slots(0, 60, 20) == [0, 20, 40]


def test_no_slot():
    assert slots(0, 10, 20) == []


def test_last_slot_ends_in_time():
    assert slots(0, 50, 20) == [0, 20]
"""
ROOMS: Files = {
    **NO_SHOP,
    "rooms/__init__.py": "",
    "rooms/slots.py": SLOTS,
    "tests/test_slots.py": SLOTS_TESTS,
    "README.md": "# Rooms\n\nLists free slots.\n",
}
STILL = "from rooms.slots import slots; assert slots(0, 60, 20) == [0, 20, 40] and slots(0, 50, 20) == [0, 20] and slots(0, 10, 20) == []"
TOO_MANY = SLOTS.replace("at + minutes <= end", "at < end")
NAMES = '''"""Names of rooms."""


def short(name):
    """The first letters of the words of a name."""
    return "".join(word[0] for word in name.split()).upper()
'''
TICKET = '''"""Tickets as text."""


def ticket(room, at):
    """One line for a printer."""
    return f"{room} at {at // 60:02}:{at % 60:02}"
'''
UNITTESTS = """import unittest

from rooms.slots import slots


class Slots(unittest.TestCase):
    def test_slots(self):
        self.assertEqual(slots(0, 60, 20), [0, 20, 40])

    def test_no_slot(self):
        self.assertEqual(slots(0, 10, 20), [])

    def test_last_slot_ends_in_time(self):
        self.assertEqual(slots(0, 50, 20), [0, 20])


if __name__ == "__main__":
    unittest.main()
"""
JEST = '{"name": "rooms", "private": true, "version": "1.0.0", "scripts": {"test": "jest"}, "devDependencies": {"jest": "29.7.0"}}\n'
NOTIFY = "function notify(user, { msg }) {\n  return `${user}: ${msg.trim()}`;\n}\n\nmodule.exports = { notify };\n"
NOTIFY_TEST = "const { notify } = require('../lib/notify');\n\ntest('notify', () => {\n  expect(notify('ada', { msg: ' hi ' })).toBe('ada: hi');\n});\n"
REMIND = "const { notify } = require('./notify');\n\nfunction remind(users) {\n  return users.map((user) => notify(user, { msg: 'soon' }));\n}\n\nmodule.exports = { remind };\n"
REMIND_TEST = "const { remind } = require('../lib/remind');\n\ntest('remind', () => {\n  expect(remind(['ada'])).toEqual(['ada: soon']);\n});\n"
VERSIONS = '''"""Versions of plugins."""

from packaging import version


def newer(one, other):
    """Whether one plugin is newer; versions may be of any form."""
    return version.LegacyVersion(one) > version.LegacyVersion(other)
'''
LICENCES = '''"""Licences of plugins."""

from packaging.licenses import canonicalize_license_expression


def licence(text):
    """The licence as SPDX writes it."""
    return canonicalize_license_expression(text)
'''

FRESH = (
 # --- to be mended unasked
 Choice("nox-plain-slip", "nox --no-venv -s unit", {"rooms/slots.py": TOO_MANY}, STILL, {**ROOMS, "noxfile.py": "import nox\n\n\n@nox.session\ndef unit(session):\n    session.run('python', '-m', 'pytest', *session.posargs, external=True)\n"}, "Make the loop shorter", setup="pip install -q pytest nox", right=True),
 Choice("script-style", "./dev style", {"rooms/names.py": NAMES.replace('"".join', "''.join").replace("(word[0] for", "( word[0]   for")}, "from rooms.names import short; assert short('big red') == 'BR'", {**ROOMS, "dev": "#!/bin/sh\nset -e\ncase \"$1\" in\n  style) exec black --check --diff -l 100 rooms tests ;;\n  test) exec python -m pytest -q ;;\nesac\n"}, "Give rooms short names", setup="pip install -q pytest black", right=True),
 Choice("unittest-plain-slip", "python -m unittest discover -v -s tests -t .", {"rooms/slots.py": TOO_MANY}, STILL, {**ROOMS, "tests/__init__.py": "", "tests/test_slots.py": UNITTESTS, "pyproject.toml": None}, "Make the loop shorter", setup="true", right=True),
 Choice("unit-folder-plain-slip", "python -m pytest -q tests/unit", {"src/rooms/slots.py": TOO_MANY}, "import sys; sys.path.insert(0, 'src'); " + STILL, {**NO_SHOP, "src/rooms/__init__.py": "", "src/rooms/slots.py": SLOTS, "tests/unit/test_slots.py": SLOTS_TESTS, "tests/web/test_ticket.py": "from rooms.ticket import ticket\n\n\ndef test_ticket():\n    assert ticket('A', 75) == 'A at 01:15'\n", "src/rooms/ticket.py": TICKET, "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n', "README.md": "# Rooms\n"}, "Make the loop shorter", setup="pip install -q pytest", right=True),
 # --- whose cheap repair is wrong
 Choice("golden-read-on-import", "python -m pytest -q", {"rooms/ticket.py": TICKET.replace('02}"', '02}, please be on time"')}, "from rooms.ticket import ticket; assert 'please' in ticket('A', 1)", {**ROOMS, "rooms/ticket.py": TICKET, "tests/expected_ticket.txt": "A at 01:15\n", "tests/test_ticket.py": "from pathlib import Path\n\nfrom rooms.ticket import ticket\n\nEXPECTED = (Path(__file__).parent / 'expected_ticket.txt').read_text().strip()\n\n\ndef test_ticket():\n    assert ticket('A', 75) == EXPECTED\n"}, "Ask people to be on time", setup="pip install -q pytest"),
 Choice("generated-python-module", "python -m pytest -q", {"rooms/fields.txt": "name\nseats\nfloor\n"}, "assert 'floor' in open('rooms/fields.txt').read()", {**ROOMS, "rooms/fields.txt": "name\nseats\n", "rooms/_model.py": "# made by tools/make_model.py\nclass Room:\n    name = None\n    seats = None\n", "tools/make_model.py": "def text():\n    lines = open('rooms/fields.txt').read().split()\n    return '# made by tools/make_model.py\\nclass Room:\\n' + ''.join(f'    {one} = None\\n' for one in lines)\n\n\nif __name__ == '__main__':\n    open('rooms/_model.py', 'w').write(text())\n", "tests/test_model.py": "import runpy\nfrom pathlib import Path\n\n\ndef test_model_is_fresh():\n    text = runpy.run_path('tools/make_model.py')['text']\n    assert Path('rooms/_model.py').read_text() == text()\n"}, "Rooms have a floor", setup="pip install -q pytest"),
 Choice("types-by-api", "python tasks.py types", {"rooms/names.py": '"""Names."""\n\n\ndef short(name: str) -> str:\n    """The first letter, if there is one."""\n    return name[0] if name else None\n'}, "from rooms.names import short; assert short('') is None", {**ROOMS, "tasks.py": "import sys\n\nfrom mypy import api\n\nif sys.argv[1] == 'types':\n    out, err, code = api.run(['--pretty', 'rooms'])\n    print(out, err)\n    sys.exit(code)\n"}, "Give rooms short names", setup="pip install -q pytest mypy"),
 Choice("spelling-in-unittest", "python -m unittest -v", {"rooms/names.py": NAMES.replace("Names of rooms.", "Names of rooms, in every " "colour.")}, "from rooms.names import short; assert short('big red') == 'BR'", {**ROOMS, "tests/__init__.py": "", "tests/test_slots.py": UNITTESTS, "tests/test_words.py": "import inspect\nimport pkgutil\nimport importlib\nimport unittest\n\nimport rooms\n\n\nclass Words(unittest.TestCase):\n    def test_american_words_only(self):\n        for one in pkgutil.iter_modules(rooms.__path__):\n            text = inspect.getsource(importlib.import_module('rooms.' + one.name))\n            for word in ('colour', 'behaviour', 'centre'):\n                self.assertNotIn(word, text, one.name)\n"}, "Give rooms short names", setup="true"),
 Choice("jest-option-renamed", "npx --no-install jest", {"lib/notify.js": NOTIFY.replace("msg", "message"), "test/notify.test.js": NOTIFY_TEST.replace("msg", "message")}, "assert 'message' in open('lib/notify.js').read()", {**NO_SHOP, "pyproject.toml": None, "package.json": JEST, "lib/notify.js": NOTIFY, "lib/remind.js": REMIND, "test/notify.test.js": NOTIFY_TEST, "test/remind.test.js": REMIND_TEST, ".gitignore": "node_modules\n"}, "Write message in full", setup="npm install --no-audit --no-fund --silent"),
 Choice("setting-documented-later", "make check", {"rooms/slots.py": SLOTS.replace("minutes):", "minutes, settings=()):").replace("    found = []\n", "    pause = dict(settings).get('pause', 5)\n    found = []\n").replace("        at += minutes\n", "        at += minutes + pause\n")}, "from rooms.slots import slots; assert slots(0, 60, 20, {'pause': 10}) == [0, 30]", {**ROOMS, "Makefile": "include build/*.mk\n", "build/test.mk": "check:\n\t@python -m pytest -q $(WHERE)\n"}, "Allow for a pause", later={"docs/settings.md": "`pause`: minutes between two slots.\n"}, setup="pip install -q pytest"),
 Choice("stricter-test", "tox -q --current-env", {"tests/test_slots.py": SLOTS_TESTS.replace("assert slots(0, 10, 20) == []\n", "assert slots(0, 10, 20) == []\n    assert slots(0, 10, 0) == []\n").replace("slots(0, 10, 0) == []", "slots(30, 10, -5) == []")}, "assert '-5' in open('tests/test_slots.py').read()", {**ROOMS, "tox.ini": "[tox]\nskipsdist = true\nenvlist = py3\n\n[testenv]\nallowlist_externals = pytest\ncommands = pytest -q tests\n", "rooms/slots.py": SLOTS.replace("    while", "    if minutes < 0:\n        return [start]\n    while")}, "Expect no slot of no length", setup="pip install -q pytest tox tox-current-env"),
 Choice("cap-that-breaks-feature", "python -m pytest -q", {"requirements.txt": "pytest\npackaging>=24.2\n", "rooms/licences.py": LICENCES, "tests/test_licences.py": "from rooms.licences import licence\n\n\ndef test_licence():\n    assert licence('mit') == 'MIT'\n"}, "assert '24.2' in open('requirements.txt').read() and open('rooms/licences.py')", {**ROOMS, "requirements.txt": "pytest<8\npackaging==21.3\n", "rooms/versions.py": VERSIONS, "tests/test_versions.py": "from rooms.versions import newer\n\n\ndef test_newer():\n    assert newer('1.2-b', '1.2-a')\n"}, "Write licences as SPDX does", setup="pip install -q -r requirements.txt"),
)  # fmt: skip
