"""Small web applications, libraries and sites that a feature leaves red in a mechanical way.

Most of them changed a name or moved a file and left one place behind. Written before the fixer was run on them by one
who had not read it. `remedy` is a reference: the command is green after it, and `keeps` holds.
"""

from __future__ import annotations

from benchmarks.mechanical_eleventh_cases import NO_SHOP, Shape, swap
from benchmarks.repair_choice_cases import Files

PINS = {
    "alembic": "alembic==1.17.1",
    "babel": "babel==2.17.0",
    "check-manifest": "check-manifest==0.51",
    "click": "click==8.3.0",
    "deptry": "deptry==0.23.1",
    "django": "django==5.2.8",
    "fastapi": "fastapi==0.121.1",
    "flask": "flask==3.1.2",
    "hatchling": "hatchling==1.27.0",
    "import-linter": "import-linter==2.6",
    "mkdocs": "mkdocs==1.6.1",
    "mypy": "mypy==1.18.2",
    "nox": "nox==2025.10.16",
    "pydantic": "pydantic==2.12.4",
    "pydoclint": "pydoclint==0.7.6",
    "pytest": "pytest==8.4.2",
    "setuptools": "setuptools==80.9.0",
    "sphinx": "sphinx==8.2.3",
    "sqlalchemy": "sqlalchemy==2.0.44",
    "tox": "tox==4.32.0",
    "wheel": "wheel==0.45.1",
}


def install(*names: str) -> str:
    """Install these packages at their pinned versions."""
    return "pip install -q " + " ".join(PINS[name] for name in names)


# --- A Django site of a lending library -------------------------------------------------------------------------------

MANAGE = '''#!/usr/bin/env python
"""Run Django's commands."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
'''
SETTINGS = '''"""Settings."""

from pathlib import Path

BASE_DIR = Path(__file__).parent
SECRET_KEY = "only-for-tests"
ROOT_URLCONF = "lending.urls"
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = ["lending"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {},
    }
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
'''
URLS = '''"""Addresses."""

from django.urls import path

from lending import views

urlpatterns = [
    path("", views.home, name="home"),
    path("loans/", views.loans, name="loan-list"),
]
'''
VIEWS = '''"""Pages."""

from django.shortcuts import render

LOANS = ["Dune", "Emma"]


def home(request):
    """Show the first page."""
    return render(request, "home.html", {"count": len(LOANS)})


def loans(request):
    """Show what is lent."""
    return render(request, "loans.html", {"loans": LOANS})
'''
HOME_HTML = """<h1>Library</h1>
<p>{{ count }} books are lent.</p>
<nav><a href="{% url 'loan-list' %}">Loans</a></nav>
"""
LOANS_HTML = """<h1>Loans</h1>
<ul>{% for title in loans %}<li>{{ title }}</li>{% endfor %}</ul>
<a href="{% url 'home' %}">Back</a>
"""
DJANGO_TESTS = """from django.test import SimpleTestCase


class Pages(SimpleTestCase):
    def test_home(self):
        page = self.client.get("/")
        self.assertContains(page, "2 books are lent")
        self.assertContains(page, 'href="/loans/"')

    def test_loans(self):
        self.assertContains(self.client.get("/loans/"), "<li>Emma</li>")
"""
DJANGO: Files = {
    **NO_SHOP,
    "manage.py": MANAGE,
    "site_settings.py": SETTINGS,
    "lending/__init__.py": "",
    "lending/urls.py": URLS,
    "lending/views.py": VIEWS,
    "templates/home.html": HOME_HTML,
    "templates/loans.html": LOANS_HTML,
    "lending/tests.py": DJANGO_TESTS,
}
DJANGO_URL = Shape(
    name="url-name-in-a-template",
    start=DJANGO,
    message="Rename the route loan-list to loans, and add returns",
    culprit={
        "lending/urls.py": swap(
            URLS,
            (
                'name="loan-list"),',
                'name="loans"),\n    path("returns/", views.returns, name="returns"),',
            ),
        ),
        "lending/views.py": VIEWS
        + '\n\ndef returns(request):\n    """Show what came back."""\n    return render(request, "loans.html", {"loans": []})\n',
    },
    command="python manage.py test",
    setup=install("django"),
    keeps="""
from pathlib import Path
urls = Path("lending/urls.py").read_text()
assert 'name="loans"' in urls and 'name="returns"' in urls and "loan-list" not in urls
home = Path("templates/home.html").read_text()
assert "{% url 'loans' %}" in home and "{{ count }}" in home
assert 'href="/loans/"' in Path("lending/tests.py").read_text()
""",
    remedy="sed -i \"s/'loan-list'/'loans'/\" templates/home.html\n",
)

MODELS = '''"""What is lent."""

from django.db import models


class Copy(models.Model):
    """One copy of a book."""

    title = models.CharField(max_length=200)
    shelf = models.CharField(max_length=20)
    lent = models.BooleanField(default=False)

    def label(self):
        """Say where the copy stands."""
        return f"{self.title} ({self.shelf})"
'''
ADMIN = '''"""The desk's pages."""

from django.contrib import admin

from lending.models import Copy


@admin.register(Copy)
class CopyAdmin(admin.ModelAdmin):
    """Copies as the desk sees them."""

    list_display = ("title", "shelf", "lent")
    list_filter = ("lent",)
    search_fields = ("title",)
'''
ADMIN_SETTINGS = swap(
    SETTINGS,
    (
        'INSTALLED_APPS = ["lending"]',
        "INSTALLED_APPS = [\n"
        + "".join(
            f'    "django.contrib.{one}",\n'
            for one in ("admin", "auth", "contenttypes", "sessions", "messages")
        )
        + '    "lending",\n]',
    ),
    (
        'MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]',
        'MIDDLEWARE = [\n    "django.contrib.sessions.middleware.SessionMiddleware",\n'
        '    "django.contrib.auth.middleware.AuthenticationMiddleware",\n'
        '    "django.contrib.messages.middleware.MessageMiddleware",\n]',
    ),
    (
        '"OPTIONS": {}',
        '"OPTIONS": {\n            "context_processors": [\n'
        '                "django.template.context_processors.request",\n'
        '                "django.contrib.auth.context_processors.auth",\n'
        '                "django.contrib.messages.context_processors.messages",\n            ]\n        }',
    ),
)
INITIAL = """from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Copy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title", models.CharField(max_length=200)),
                ("shelf", models.CharField(max_length=20)),
                ("lent", models.BooleanField(default=False)),
            ],
        ),
    ]
"""
DJANGO_ADMIN = Shape(
    name="field-renamed-admin-behind",
    start={
        **NO_SHOP,
        "manage.py": MANAGE,
        "site_settings.py": swap(
            ADMIN_SETTINGS, ('ROOT_URLCONF = "lending.urls"\n', 'ROOT_URLCONF = "lending"\n')
        ),
        "lending/__init__.py": "urlpatterns = []\n",
        "lending/models.py": MODELS,
        "lending/admin.py": ADMIN,
        "lending/migrations/__init__.py": "",
        "lending/migrations/0001_initial.py": INITIAL,
        "tests/test_copies.py": "from django.test import TestCase\n\nfrom lending.models import Copy\n\n\n"
        "class Copies(TestCase):\n    def test_label(self):\n"
        '        Copy.objects.create(title="Emma")\n'
        '        self.assertIn("Emma", Copy.objects.get().label())\n',
    },
    message="Call a copy's shelf its location",
    culprit={
        "lending/models.py": swap(
            MODELS, ("    shelf = ", "    location = "), ("self.shelf", "self.location")
        ),
        "lending/migrations/0002_location.py": """from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("lending", "0001_initial")]
    operations = [migrations.RenameField(model_name="copy", old_name="shelf", new_name="location")]
""",
    },
    command="python manage.py check && python manage.py test",
    setup=install("django"),
    keeps="""
from pathlib import Path
models = Path("lending/models.py").read_text()
assert "    location = models" in models and "shelf" not in models
assert Path("lending/migrations/0002_location.py").is_file()
admin = Path("lending/admin.py").read_text()
assert '("title", "location", "lent")' in admin and "list_filter" in admin and "@admin.register(Copy)" in admin
assert "SILENCED" not in Path("site_settings.py").read_text()
""",
    remedy='sed -i \'s/"shelf"/"location"/\' lending/admin.py\n',
)

# --- A Flask page of a ferry ------------------------------------------------------------------------------------------

FERRY = '''"""Times of a ferry."""

from flask import Flask, render_template

app = Flask(__name__)
TIMES = ["07:10", "12:40", "18:05"]


@app.get("/")
def index():
    """Show the next crossing."""
    return render_template("index.html", first=TIMES[0])


@app.get("/times")
def show_times():
    """Show every crossing."""
    return render_template("times.html", times=TIMES)
'''
FERRY_TESTS = """import unittest

from ferry import app


class Pages(unittest.TestCase):
    def setUp(self):
        self.client = app.test_client()

    def test_index(self):
        text = self.client.get("/").text
        self.assertIn("07:10", text)
        self.assertIn('href="/times"', text)

    def test_times(self):
        self.assertIn("18:05", self.client.get("/times").text)


if __name__ == "__main__":
    unittest.main()
"""
FLASK_ENDPOINT = Shape(
    name="endpoint-in-a-layout",
    start={
        **NO_SHOP,
        "ferry/__init__.py": FERRY,
        "ferry/templates/layout.html": "<title>Ferry</title>\n<a href=\"{{ url_for('show_times') }}\">Times</a>\n"
        "{% block body %}{% endblock %}\n",
        "ferry/templates/index.html": '{% extends "layout.html" %}\n{% block body %}<p>First: {{ first }}</p>{% endblock %}\n',
        "ferry/templates/times.html": '{% extends "layout.html" %}\n'
        "{% block body %}{% for one in times %}<p>{{ one }}</p>{% endfor %}{% endblock %}\n",
        "tests/__init__.py": "",
        "tests/test_pages.py": FERRY_TESTS,
    },
    message="Show the times in a chosen order",
    culprit={
        "ferry/__init__.py": swap(
            FERRY,
            ("import Flask, render_template", "import Flask, render_template, request"),
            (
                'def show_times():\n    """Show every crossing."""\n    return render_template("times.html", times=TIMES)',
                'def list_times():\n    """List every crossing, the last first on wish."""\n'
                '    late = request.args.get("order") == "late"\n'
                '    return render_template("times.html", times=sorted(TIMES, reverse=late))',
            ),
        ),
    },
    command="python -m unittest discover -s tests -t .",
    setup=install("flask"),
    keeps="""
from pathlib import Path
text = Path("ferry/__init__.py").read_text()
assert "def list_times" in text and "reverse=late" in text and "show_times" not in text
assert "url_for('list_times')" in Path("ferry/templates/layout.html").read_text()
assert 'href="/times"' in Path("tests/test_pages.py").read_text()
""",
    remedy="sed -i \"s/'show_times'/'list_times'/\" ferry/templates/layout.html\n",
)

# --- A FastAPI service of a weather mast ------------------------------------------------------------------------------

MAST = '''"""Readings of a mast."""

from fastapi import FastAPI

app = FastAPI(title="Mast", version="1.0")
WIND = {"north": 12.5, "south": 8.0}


@app.get("/wind/{side}")
def wind(side: str) -> float:
    """Tell the wind's speed at one side."""
    return WIND[side]
'''
DUMP = '''"""Write the service's description to docs/openapi.json; with --check only compare."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mast import app

TARGET = Path("docs/openapi.json")


def main(argv):
    """Write or compare."""
    text = json.dumps(app.openapi(), indent=2, sort_keys=True) + "\\n"
    if "--check" in argv:
        if TARGET.read_text(encoding="utf-8") != text:
            print(f"{TARGET} is out of date; run `python tools/dump_openapi.py`", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
'''
OPENAPI = """{
  "components": {
    "schemas": {
      "HTTPValidationError": {
        "properties": {
          "detail": {
            "items": {
              "$ref": "#/components/schemas/ValidationError"
            },
            "title": "Detail",
            "type": "array"
          }
        },
        "title": "HTTPValidationError",
        "type": "object"
      },
      "ValidationError": {
        "properties": {
          "loc": {
            "items": {
              "anyOf": [
                {
                  "type": "string"
                },
                {
                  "type": "integer"
                }
              ]
            },
            "title": "Location",
            "type": "array"
          },
          "msg": {
            "title": "Message",
            "type": "string"
          },
          "type": {
            "title": "Error Type",
            "type": "string"
          }
        },
        "required": [
          "loc",
          "msg",
          "type"
        ],
        "title": "ValidationError",
        "type": "object"
      }
    }
  },
  "info": {
    "title": "Mast",
    "version": "1.0"
  },
  "openapi": "3.1.0",
  "paths": {
    "/wind/{side}": {
      "get": {
        "description": "Tell the wind's speed at one side.",
        "operationId": "wind_wind__side__get",
        "parameters": [
          {
            "in": "path",
            "name": "side",
            "required": true,
            "schema": {
              "title": "Side",
              "type": "string"
            }
          }
        ],
        "responses": {
          "200": {
            "content": {
              "application/json": {
                "schema": {
                  "title": "Response Wind Wind  Side  Get",
                  "type": "number"
                }
              }
            },
            "description": "Successful Response"
          },
          "422": {
            "content": {
              "application/json": {
                "schema": {
                  "$ref": "#/components/schemas/HTTPValidationError"
                }
              }
            },
            "description": "Validation Error"
          }
        },
        "summary": "Wind"
      }
    }
  }
}
"""
FASTAPI_DUMP = Shape(
    name="service-description-stale",
    start={
        **NO_SHOP,
        "mast.py": MAST,
        "tools/dump_openapi.py": DUMP,
        "docs/openapi.json": OPENAPI,
        "tests/test_mast.py": "from mast import wind\n\n\ndef test_wind():\n    assert wind('north') == 12.5\n",
        "README.md": "# Mast\n\nThe service is described in `docs/openapi.json`.\n",
    },
    message="Tell gusts too",
    culprit={
        "mast.py": MAST
        + '\n\n@app.get("/gusts")\ndef gusts(above: float = 0.0) -> dict[str, float]:\n    """Tell the sides with gusts above a speed."""\n'
        "    return {side: speed * 1.4 for side, speed in WIND.items() if speed * 1.4 > above}\n",
        "tests/test_mast.py": "from mast import gusts, wind\n\n\ndef test_wind():\n    assert wind('north') == 12.5\n\n\n"
        "def test_gusts():\n    assert list(gusts(12)) == ['north']\n",
    },
    command="python tools/dump_openapi.py --check && python -m pytest -q",
    setup=install("fastapi", "pydantic", "pytest"),
    keeps="""
import json
from pathlib import Path
paths = json.loads(Path("docs/openapi.json").read_text())["paths"]
assert set(paths) == {"/wind/{side}", "/gusts"}, paths
assert "def gusts" in Path("mast.py").read_text()
assert "return 1" in Path("tools/dump_openapi.py").read_text()
""",
    remedy="python tools/dump_openapi.py\n",
)

# --- Models of an orchard ---------------------------------------------------------------------------------------------

TREES = '''"""Trees of an orchard."""

from pydantic import BaseModel


class Tree(BaseModel):
    """One tree."""

    kind: str
    row: int


def as_row(tree: Tree) -> dict[str, object]:
    """Lay a tree out for the table."""
    return tree.model_dump()
'''
PYDANTIC_DICT = Shape(
    name="old-method-of-a-model",
    start={
        **NO_SHOP,
        "orchard/__init__.py": '"""An orchard."""\n',
        "orchard/trees.py": TREES,
        "tests/test_trees.py": "from orchard.trees import Tree, as_row\n\n\ndef test_as_row():\n"
        '    assert as_row(Tree(kind="plum", row=3)) == {"kind": "plum", "row": 3}\n',
        "pyproject.toml": '[project]\nname = "orchard"\nversion = "0.3"\ndependencies = ["pydantic>=2"]\n\n'
        '[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n',
    },
    message="Keep crops of trees",
    culprit={
        "orchard/crops.py": '''"""Crops of trees."""

from pydantic import BaseModel

from orchard.trees import Tree


class Crop(BaseModel):
    """What one tree bore in one year."""

    tree: Tree
    year: int
    kilos: float


def export(crops: list[Crop]) -> list[dict[str, object]]:
    """Lay crops out, without the years."""
    return [crop.dict(exclude={"year"}) for crop in crops]
''',
        "tests/test_crops.py": "from orchard.crops import Crop, export\nfrom orchard.trees import Tree\n\n\ndef test_export():\n"
        '    crop = Crop(tree=Tree(kind="plum", row=3), year=2024, kilos=40)\n'
        '    assert export([crop]) == [{"tree": {"kind": "plum", "row": 3}, "kilos": 40.0}]\n',
    },
    command="python -m pytest -q",
    setup=install("pydantic", "pytest"),
    keeps="""
from pathlib import Path
text = Path("orchard/crops.py").read_text()
assert "model_dump(exclude={" in text and "year: int" in text
assert '["error"]' in Path("pyproject.toml").read_text() and "ignore" not in text
assert "def test_export" in Path("tests/test_crops.py").read_text()
""",
    remedy="sed -i 's/crop\\.dict(/crop.model_dump(/' orchard/crops.py\n",
)

# --- Tables of a choir ------------------------------------------------------------------------------------------------

TABLES = '''"""Base of every table."""

from sqlalchemy.orm import DeclarativeBase


class Base(DeclarativeBase):
    """Base of every table."""
'''
SINGER = '''"""Singers."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column, relationship

from choir.base import Base


class Singer(Base):
    """One who sings."""

    __tablename__ = "singer"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    voice_id: Mapped[int] = mapped_column(ForeignKey("voice.id"))
    voice: Mapped["Voice"] = relationship("Voice", back_populates="singers")
'''
VOICE = '''"""Voices."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column, relationship

from choir.base import Base


class Voice(Base):
    """A voice, as alto."""

    __tablename__ = "voice"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    singers: Mapped[list["Singer"]] = relationship("Singer", back_populates="voice")

    def roll(self) -> str:
        """Name all who sing it."""
        return ", ".join(sorted(one.name for one in self.singers))
'''
CHOIR_TESTS = """import choir
from choir import Singer, Voice


def test_roll():
    alto = Voice(name="alto")
    Singer(name="Ida", voice=alto)
    Singer(name="Ada", voice=alto)
    assert alto.roll() == "Ada, Ida"
"""
SQLALCHEMY_BACK = Shape(
    name="relationship-other-side-behind",
    start={
        **NO_SHOP,
        "choir/__init__.py": '"""A choir."""\n\nfrom choir.singer import Singer\nfrom choir.voice import Voice\n\n__all__ = ["Singer", "Voice"]\n',
        "choir/base.py": TABLES,
        "choir/singer.py": SINGER,
        "choir/voice.py": VOICE,
        "tests/test_choir.py": swap(CHOIR_TESTS, ("import choir\n", "")),
    },
    message="Call the singers of a voice its members",
    culprit={
        "choir/voice.py": swap(
            VOICE,
            ("    singers: Mapped", "    members: Mapped"),
            (
                "in self.singers))",
                'in self.members))\n\n    def size(self) -> int:\n        """Count all who sing it."""\n        return len(self.members)',
            ),
        )
    },
    command="python -m pytest -q",
    setup=install("sqlalchemy", "pytest"),
    keeps="""
from pathlib import Path
voice = Path("choir/voice.py").read_text()
assert "members: Mapped" in voice and "def size" in voice and "singers" not in voice
assert 'back_populates="members"' in Path("choir/singer.py").read_text()
""",
    remedy='sed -i \'s/back_populates="singers"/back_populates="members"/\' choir/singer.py\n',
)

# --- Letters of a post room -------------------------------------------------------------------------------------------

POST = '''"""Sending of letters."""

import smtplib


def send(to, text):
    """Send one letter."""
    with smtplib.SMTP("mail.example") as server:
        server.sendmail("post@example", to, text)
'''
REMIND = '''"""Reminders."""

from postroom.mail import send


def remind(people):
    """Remind everybody, and count them."""
    for one in people:
        send(one, "Please come.")
    return len(people)
'''
MOCK_PATCH = Shape(
    name="patched-name-behind",
    start={
        **NO_SHOP,
        "postroom/__init__.py": '"""A post room."""\n',
        "postroom/mail.py": POST,
        "postroom/remind.py": REMIND,
        "tests/__init__.py": "",
        "tests/test_remind.py": """import unittest
from unittest import mock

from postroom.remind import remind


class Remind(unittest.TestCase):
    @mock.patch("postroom.remind.send")
    def test_everybody(self, send):
        self.assertEqual(remind(["a@example", "b@example"]), 2)
        self.assertEqual(send.call_count, 2)

    @mock.patch("postroom.remind.send")
    def test_nobody(self, send):
        self.assertEqual(remind([]), 0)
        send.assert_not_called()
""",
    },
    message="Deliver with a subject",
    culprit={
        "postroom/mail.py": swap(
            POST,
            ("def send(to, text):", "def deliver(to, text, subject=None):"),
            (
                "    with smtplib",
                '    if subject:\n        text = f"Subject: {subject}\\n\\n{text}"\n    with smtplib',
            ),
        ),
        "postroom/remind.py": swap(
            REMIND,
            ("import send", "import deliver"),
            ('send(one, "Please come.")', 'deliver(one, "Please come.", subject="Reminder")'),
        ),
    },
    command="python -m unittest discover -s tests -t .",
    setup="true",
    keeps="""
from pathlib import Path
assert "def deliver(to, text, subject=None)" in Path("postroom/mail.py").read_text()
assert "send" not in Path("postroom/remind.py").read_text().replace("sending", "")
text = Path("tests/test_remind.py").read_text()
assert text.count("postroom.remind.deliver") == 2 and "call_count, 2" in text and "assert_not_called()" in text
""",
    remedy="sed -i 's/postroom.remind.send/postroom.remind.deliver/' tests/test_remind.py\n",
)

# --- Documents --------------------------------------------------------------------------------------------------------

KITE = '''"""Kites and their lines."""


def lift(area, wind):
    """Tell the lift of a kite."""
    return round(0.5 * area * wind, 1)
'''
CONF = """import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
project = "Kites"
extensions = ["sphinx.ext.autodoc"]
"""
KITE_TESTS = "from kites import lift\n\n\ndef test_lift():\n    assert lift(2, 5) == 5.0\n"
INDEX_RST = "Kites\n=====\n\n.. toctree::\n\n   start\n   api\n"
SPHINX_TOCTREE = Shape(
    name="page-not-in-the-contents",
    start={
        **NO_SHOP,
        "kites.py": KITE,
        "docs/conf.py": CONF,
        "docs/index.rst": INDEX_RST,
        "docs/start.rst": "Start\n=====\n\nCall ``lift`` with an area and a wind.\n",
        "docs/api.rst": "Reference\n=========\n\n.. autofunction:: kites.lift\n",
        "tests/test_kites.py": KITE_TESTS,
        ".gitignore": "build/\n__pycache__/\n",
    },
    message="Explain bridles",
    culprit={
        "docs/bridles.rst": "Bridles\n=======\n\nA bridle holds a kite at an angle.\n\n.. autofunction:: kites.bridle\n",
        "kites.py": KITE
        + '\n\ndef bridle(span):\n    """Tell the length of a bridle."""\n    return span * 2.5\n',
    },
    command="python -m sphinx -q -E -W --keep-going docs build/html && python -m pytest -q",
    setup=install("sphinx", "pytest"),
    keeps="""
from pathlib import Path
assert "autofunction:: kites.bridle" in Path("docs/bridles.rst").read_text()
assert "orphan" not in Path("docs/bridles.rst").read_text()
lines = Path("docs/index.rst").read_text().splitlines()
assert {"   start", "   api", "   bridles"} <= set(lines)
conf = Path("docs/conf.py").read_text()
assert "suppress" not in conf and "exclude" not in conf
""",
    remedy="printf '   bridles\\n' >> docs/index.rst\n",
)

MKDOCS = """site_name: Kiln
theme:
  name: mkdocs
validation:
  anchors: warn
nav:
  - Home: index.md
  - Firing: firing.md
  - Glazes: glazes.md
"""
KILN = '''"""Firing of clay."""


def cone(celsius):
    """Name the cone of a temperature."""
    return "06" if celsius < 1050 else "6" if celsius < 1250 else "10"
'''
FIRING = (
    "# Firing\n\n## Heat up\n\nSlowly.\n\n## Cool down\n\nMore slowly, see [glazes](glazes.md).\n"
)
KILN_FILES: Files = {
    **NO_SHOP,
    "kiln.py": KILN,
    "mkdocs.yml": MKDOCS,
    "docs/index.md": "# Kiln\n\nOpen it only after [the end](firing.md#cool-down).\n",
    "docs/firing.md": FIRING,
    "docs/glazes.md": "# Glazes\n\nAsh and salt.\n",
    "tests/test_kiln.py": 'from kiln import cone\n\n\ndef test_cone():\n    assert cone(1000) == "06"\n    assert cone(1240) == "6"\n',
    ".gitignore": "site/\n__pycache__/\n",
}
MKDOCS_ANCHOR = Shape(
    name="heading-reworded-anchor-behind",
    start=KILN_FILES,
    message="Say more of cooling",
    culprit={
        "docs/firing.md": swap(
            FIRING,
            (
                "## Cool down\n\nMore",
                "## Cooling\n\nLeave the lid shut below 200 degrees too.\n\nMore",
            ),
        )
    },
    command="python -m mkdocs build --strict && python -m pytest -q",
    setup=install("mkdocs", "pytest"),
    keeps="""
from pathlib import Path
assert "## Cooling\\n" in Path("docs/firing.md").read_text() and "lid shut" in Path("docs/firing.md").read_text()
assert "[the end](firing.md#cooling)" in Path("docs/index.md").read_text()
assert "anchors: warn" in Path("mkdocs.yml").read_text()
""",
    remedy="sed -i 's/#cool-down/#cooling/' docs/index.md\n",
)

# --- Programs and packages --------------------------------------------------------------------------------------------

BAKE = '''"""A baker's sums."""

import click


@click.group()
def main():
    """Reckon doughs."""


@main.command()
@click.option("--flour", type=int, required=True, help="Grams of flour.")
@click.option("--percent", type=int, default=70, help="Water for a hundred of flour.")
def water(flour, percent):
    """Tell the water of a dough."""
    click.echo(f"{flour * percent // 100} g")


if __name__ == "__main__":
    main()
'''
BAKE_TESTS = """from click.testing import CliRunner

from bake import main


def test_water():
    assert CliRunner().invoke(main, ["water", "--flour", "500"]).output == "350 g\\n"
"""
SMOKE = """#!/bin/sh
# Runs what the README shows.
set -e
python bake.py water --flour 500 | grep -qx '350 g'
python bake.py water --flour 500 --percent 80 | grep -qx '400 g'
echo fine
"""
CLICK_SMOKE = Shape(
    name="option-renamed-script-behind",
    start={
        **NO_SHOP,
        "bake.py": BAKE,
        "scripts/smoke.sh": SMOKE,
        "tests/test_bake.py": BAKE_TESTS,
        "README.md": "# Bake\n\n    python bake.py water --flour 500\n",
    },
    message="Say hydration as bakers do, and reckon salt",
    culprit={
        "bake.py": swap(
            BAKE,
            ('"--percent"', '"--hydration"'),
            ("def water(flour, percent)", "def water(flour, hydration)"),
            ("flour * percent", "flour * hydration"),
            (
                "\n\nif __name__",
                '\n\n@main.command()\n@click.option("--flour", type=int, required=True, help="Grams of flour.")\n'
                'def salt(flour):\n    """Tell the salt of a dough."""\n    click.echo(f"{flour // 50} g")\n\n\nif __name__',
            ),
        ),
        "tests/test_bake.py": BAKE_TESTS
        + '\n\ndef test_salt():\n    assert CliRunner().invoke(main, ["salt", "--flour", "500"]).output == "10 g\\n"\n',
    },
    command="sh scripts/smoke.sh && python -m pytest -q",
    setup=install("click", "pytest"),
    keeps="""
from pathlib import Path
text = Path("bake.py").read_text()
assert '"--hydration"' in text and "--percent" not in text and "def salt" in text
smoke = Path("scripts/smoke.sh").read_text()
assert "--hydration 80 | grep -qx '400 g'" in smoke and "set -e" in smoke and "350 g" in smoke
""",
    remedy="sed -i 's/--percent/--hydration/' scripts/smoke.sh\n",
)

ROPE = '''"""Knots and ropes."""


def spare(length, knots):
    """Tell what a rope of some knots leaves."""
    return length - 3 * knots
'''
ROPE_TESTS = """import unittest

from rope import spare


class Spare(unittest.TestCase):
    def test_spare(self):
        self.assertEqual(spare(20, 2), 14)
"""
HATCH = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "rope"
version = "0.4.0"
description = "Knots and ropes."
readme = "README.rst"
requires-python = ">=3.9"

[tool.hatch.build.targets.wheel]
only-include = ["rope.py"]
"""
HATCH_README = Shape(
    name="readme-in-another-format",
    start={
        **NO_SHOP,
        "rope.py": ROPE,
        "pyproject.toml": HATCH,
        "README.rst": "Rope\n====\n\n``spare`` tells what is left.\n",
        "tests/__init__.py": "",
        "tests/test_rope.py": ROPE_TESTS,
        ".gitignore": "build/\n__pycache__/\n",
    },
    message="Write the README in Markdown, with an example",
    culprit={
        "README.rst": None,
        "README.md": "# Rope\n\n`spare` tells what is left:\n\n```python\nspare(20, 2)\n```\n",
    },
    command="python -m hatchling build -t wheel -d build/dist && python -m unittest discover -s tests -t .",
    setup=install("hatchling"),
    keeps="""
import tomllib
from pathlib import Path
text = Path("README.md").read_text()
assert text.startswith("# Rope") and "spare(20, 2)" in text and not Path("README.rst").exists()
project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
assert project["readme"] == "README.md" and project["version"] == "0.4.0", project
""",
    remedy="sed -i 's/README.rst/README.md/' pyproject.toml\n",
)

SETUPTOOLS = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "rope"
version = "0.4.0"
description = "Knots and ropes."
requires-python = ">=3.9"
classifiers = [
    "Development Status :: 4 - Beta",
    "License :: OSI Approved :: MIT License",
    "Programming Language :: Python :: 3",
]

[tool.setuptools]
py-modules = ["rope"]
"""
SETUPTOOLS_LICENSE = Shape(
    name="licence-said-in-two-ways",
    start={
        **NO_SHOP,
        "rope.py": ROPE,
        "pyproject.toml": SETUPTOOLS,
        "LICENSE": "MIT License\n\nCopyright (c) 2024 Rope\n",
        "tests/__init__.py": "",
        "tests/test_rope.py": ROPE_TESTS,
        ".gitignore": "build/\n*.egg-info/\n__pycache__/\n",
    },
    message="State the licence as an expression",
    culprit={
        "pyproject.toml": swap(
            SETUPTOOLS,
            (
                'requires-python = ">=3.9"\n',
                'requires-python = ">=3.9"\nlicense = "MIT"\nlicense-files = ["LICENSE"]\nkeywords = ["knots"]\n',
            ),
        )
    },
    command="python -m pip wheel -q --no-build-isolation --no-deps -w build/wheels . && python -m unittest discover -s tests -t .",
    setup=install("setuptools", "wheel"),
    keeps="""
import tomllib
from pathlib import Path
project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
assert project["license"] == "MIT" and project["license-files"] == ["LICENSE"] and project["keywords"] == ["knots"]
assert project["classifiers"] == ["Development Status :: 4 - Beta", "Programming Language :: Python :: 3"], project
""",
    remedy="sed -i '/License :: OSI Approved/d' pyproject.toml\n",
)

TOX = """[tox]
env_list = py
skipsdist = true

[testenv]
skip_install = true
commands =
    python -m unittest discover -s tests -t .
"""
TOX_ALLOW = Shape(
    name="program-not-allowed-in-an-environment",
    start={
        **NO_SHOP,
        "rope.py": ROPE,
        "tox.ini": TOX,
        "tests/__init__.py": "",
        "tests/test_rope.py": ROPE_TESTS,
        ".gitignore": ".tox/\n__pycache__/\n",
    },
    message="Check the table of ropes too",
    culprit={
        "data/ropes.csv": "name,length\nhemp,20\nsisal,35\n",
        "scripts/check_table.sh": "#!/bin/sh\n# Every row has a name and a length.\nset -e\n"
        "! grep -Evq '^[a-z]+,([0-9]+|length)$' data/ropes.csv\n",
        "tox.ini": TOX + "    sh scripts/check_table.sh\n",
    },
    command="python -m tox -q",
    setup=install("tox"),
    keeps="""
import configparser
from pathlib import Path
tox = configparser.ConfigParser()
tox.read("tox.ini")
env = tox["testenv"]
assert "sh scripts/check_table.sh" in env["commands"] and "unittest discover" in env["commands"]
assert env["allowlist_externals"].split() == ["sh"]
assert Path("data/ropes.csv").read_text().count("\\n") == 3 and "grep -Evq" in Path("scripts/check_table.sh").read_text()
""",
    remedy="sed -i 's/^skip_install = true/&\\nallowlist_externals = sh/' tox.ini\n",
)

NOXFILE = '''"""Sessions."""

import nox


@nox.session(venv_backend="none")
def lint(session):
    """Compile everything."""
    session.run("python", "-m", "compileall", "-q", "rope.py", "tests")


@nox.session(venv_backend="none")
def tests(session):
    """Run the tests."""
    session.run("python", "-m", "unittest", "discover", "-s", "tests", "-t", ".")
'''
NOX_SESSION = Shape(
    name="session-renamed-makefile-behind",
    start={
        **NO_SHOP,
        "rope.py": ROPE,
        "noxfile.py": NOXFILE,
        "Makefile": ".PHONY: check tests\n\ncheck:\n\tpython -m nox -s lint\n\tpython -m nox -s tests\n\ntests:\n\tpython -m nox -s tests\n",
        "tests/__init__.py": "",
        "tests/test_rope.py": ROPE_TESTS,
        ".gitignore": ".nox/\n__pycache__/\n",
    },
    message="Check blanks at ends of lines in the style session",
    culprit={
        "noxfile.py": swap(
            NOXFILE,
            (
                'def lint(session):\n    """Compile everything."""\n',
                'def style(session):\n    """Compile everything, and look for blanks at ends of lines."""\n'
                '    for name in ("rope.py", "noxfile.py"):\n        with open(name, encoding="utf-8") as lines:\n'
                '            if any(line != line.rstrip() + "\\n" for line in lines):\n'
                '                session.error(f"{name}: a blank at the end of a line")\n',
            ),
        )
    },
    command="make check",
    setup=install("nox"),
    keeps="""
from pathlib import Path
text = Path("noxfile.py").read_text()
assert "def style(session)" in text and "def lint" not in text and "session.error" in text and "name=" not in text
make = Path("Makefile").read_text()
assert "check:\\n\\tpython -m nox -s style\\n\\tpython -m nox -s tests\\n" in make, make
""",
    remedy="sed -i 's/nox -s lint/nox -s style/' Makefile\n",
)

LAYERS = """[importlinter]
root_package = studio

[importlinter:contract:layers]
name = Pages use services, services use tables
type = layers
layers =
    studio.pages
    studio.services
    studio.tables
"""
SERVICES = '''"""What the studio does."""

from studio.tables import ROOMS


def book(room):
    """Book a room, and tell whether it was free."""
    if ROOMS[room]:
        return False
    ROOMS[room] = True
    return True
'''
PAGES = '''"""What people see."""

from studio.services import book


def answer(room):
    """Answer a wish for a room."""
    return "yours" if book(room) else "taken"
'''
IMPORT_LAYERS = Shape(
    name="layer-renamed-contract-behind",
    start={
        **NO_SHOP,
        ".importlinter": LAYERS,
        "studio/__init__.py": '"""A studio."""\n',
        "studio/pages.py": PAGES,
        "studio/services.py": SERVICES,
        "studio/tables.py": '"""Tables."""\n\nROOMS = {"small": False, "large": False}\n',
        "tests/test_pages.py": 'from studio.pages import answer\n\n\ndef test_answer():\n    assert answer("small") == "yours"\n'
        '    assert answer("small") == "taken"\n',
    },
    message="Call services use cases, and free a room",
    culprit={
        "studio/services.py": None,
        "studio/usecases.py": SERVICES
        + '\n\ndef free(room):\n    """Free a room."""\n    ROOMS[room] = False\n',
        "studio/pages.py": swap(PAGES, ("studio.services", "studio.usecases")),
    },
    command="lint-imports && python -m pytest -q",
    setup=install("import-linter", "pytest"),
    keeps="""
from pathlib import Path
text = Path(".importlinter").read_text()
assert "    studio.pages\\n    studio.usecases\\n    studio.tables\\n" in text, text
assert "(" not in text and "ignore" not in text
assert "def free" in Path("studio/usecases.py").read_text() and not Path("studio/services.py").exists()
""",
    remedy="sed -i 's/studio.services/studio.usecases/' .importlinter\n",
)

DEPTRY = """[project]
name = "sundial"
version = "1.1.0"
requires-python = ">=3.9"
dependencies = [
    "click>=8",
    "python-dateutil",
]

[tool.deptry]
extend_exclude = ["docs"]
package_module_name_map = { python-dateutil = "dateutil" }
"""
SUNDIAL = '''"""A sundial's command."""

import click

from sundial.noon import shift


@click.command()
@click.argument("degrees", type=float)
def main(degrees):
    """Tell the minutes between noon here and noon on the meridian."""
    click.echo(shift(degrees))
'''
NOON = '''"""Noon."""


def shift(degrees):
    """Tell the minutes that a longitude shifts noon by."""
    return degrees * 4


def parse(text):
    """Read a time."""
    from dateutil.parser import parse as read

    return read(text)
'''
DEPTRY_UNUSED = Shape(
    name="dependency-no-longer-used",
    start={
        **NO_SHOP,
        "sundial/__init__.py": '"""A sundial."""\n',
        "sundial/command.py": SUNDIAL,
        "sundial/noon.py": NOON,
        "pyproject.toml": DEPTRY,
        "tests/test_noon.py": "from sundial.noon import shift\n\n\ndef test_shift():\n    assert shift(15) == 60\n",
    },
    message="Read the command line with the standard library, in radians on wish",
    culprit={
        "sundial/command.py": '''"""A sundial's command."""

import argparse
import math

from sundial.noon import shift


def main(argv=None):
    """Tell the minutes between noon here and noon on the meridian."""
    parser = argparse.ArgumentParser(prog="sundial")
    parser.add_argument("angle", type=float)
    parser.add_argument("--radians", action="store_true")
    given = parser.parse_args(argv)
    print(shift(math.degrees(given.angle) if given.radians else given.angle))
''',
    },
    command="deptry . && python -m pytest -q",
    setup=install("deptry", "pytest"),
    keeps="""
import tomllib
from pathlib import Path
found = tomllib.loads(Path("pyproject.toml").read_text())
assert found["project"]["dependencies"] == ["python-dateutil"], found
assert found["tool"]["deptry"] == {"extend_exclude": ["docs"], "package_module_name_map": {"python-dateutil": "dateutil"}}
assert "--radians" in Path("sundial/command.py").read_text() and "click" not in Path("sundial/command.py").read_text()
""",
    remedy="sed -i '/\"click>=8\"/d' pyproject.toml\n",
)

# --- Tests and types --------------------------------------------------------------------------------------------------

FIELDS = '''"""Fields of a line."""


def split(line):
    """Split a line at its semicolons."""
    return [one.strip() for one in line.split(";")]
'''
FIELDS_TESTS = """import pytest

from fields import split


@pytest.mark.parametrize(("line", "expected"), [("a; b", ["a", "b"]), ("", [""])])
def test_plain(line, expected):
    assert split(line) == expected


@pytest.mark.xfail(reason="quotes are not read yet")
def test_quoted():
    assert split('a; "b; c"') == ["a", "b; c"]
"""
XFAIL = Shape(
    name="expected-failure-that-passes",
    start={
        **NO_SHOP,
        "fields.py": FIELDS,
        "tests/test_fields.py": FIELDS_TESTS,
        "pytest.ini": "[pytest]\nxfail_strict = true\n",
    },
    message="Read quotes",
    culprit={
        "fields.py": '''"""Fields of a line."""

import csv


def split(line):
    """Split a line at its semicolons, but for those in quotes."""
    found = next(csv.reader([line], delimiter=";", skipinitialspace=True), [""])
    return [one.strip() for one in found] or [""]
''',
    },
    command="python -m pytest -q",
    setup=install("pytest"),
    keeps="""
from pathlib import Path
text = Path("tests/test_fields.py").read_text()
assert "def test_quoted" in text and "xfail" not in text and "skip" not in text and "parametrize" in text
assert "xfail_strict = true" in Path("pytest.ini").read_text()
assert "csv.reader" in Path("fields.py").read_text()
from fields import split
assert split('a; "b; c"') == ["a", "b; c"]
""",
    remedy="sed -i '/pytest.mark.xfail/d' tests/test_fields.py\n",
)

BEAT = '''"""Beats of a drum."""


def length(bars, bpm, beats=4):
    """Tell the seconds of some bars."""
    return bars * beats * 60 / bpm


def count(bars, beats=4):
    """Count the beats of some bars."""
    return bars * beats
'''
BEAT_STUB = """def length(bars: int, bpm: float, beats: int = 4) -> float: ...
def count(bars: int, beats: int = 4) -> int: ...
"""
STUB_BEHIND = Shape(
    name="argument-renamed-stub-behind",
    start={
        **NO_SHOP,
        "drums/__init__.py": "",
        "drums/beat.py": BEAT,
        "drums/beat.pyi": BEAT_STUB,
        "drums/py.typed": "",
        "tests/test_beat.py": "from drums.beat import count, length\n\n\ndef test_length():\n    assert length(2, 120) == 4\n\n\n"
        "def test_count():\n    assert count(3) == 12\n",
    },
    message="Say tempo, and refuse a tempo of nothing",
    culprit={
        "drums/beat.py": swap(
            BEAT,
            ("bars, bpm, beats", "bars, tempo, beats"),
            (
                "    return bars * beats * 60 / bpm",
                '    if tempo <= 0:\n        raise ValueError("no tempo")\n    return bars * beats * 60 / tempo',
            ),
        )
    },
    command="python -m mypy.stubtest drums && python -m pytest -q",
    setup=install("mypy", "pytest"),
    keeps="""
from pathlib import Path
stub = Path("drums/beat.pyi").read_text()
assert "def length(bars: int, tempo: float, beats: int = 4) -> float" in stub and "def count(bars: int" in stub, stub
assert "no tempo" in Path("drums/beat.py").read_text() and "bpm" not in Path("drums/beat.py").read_text()
""",
    remedy="sed -i 's/bpm: float/tempo: float/' drums/beat.pyi\n",
)

BASKET = '''"""Baskets of willow."""


def rods(height: int, spacing: int, spare: int = 2) -> int:
    """Count the rods of a basket.

    Args:
        height (int): How high it is, in centimetres.
        spacing (int): What is between two rods.
        spare (int): How many to keep.

    Returns:
        int: How many to cut.
    """
    return height // spacing + spare
'''
DOC_ARGUMENT = Shape(
    name="argument-renamed-docstring-behind",
    start={
        **NO_SHOP,
        "basket.py": BASKET,
        "pyproject.toml": '[tool.pydoclint]\nstyle = "google"\n',
        "tests/test_basket.py": "from basket import rods\n\n\ndef test_rods():\n    assert rods(30, 3) == 12\n",
    },
    message="Say gap, and allow none",
    culprit={
        "basket.py": swap(
            BASKET,
            ("height: int, spacing: int,", "height: int, gap: int,"),
            ("height // spacing + spare", "height // max(gap, 1) + spare"),
        ),
        "tests/test_basket.py": "from basket import rods\n\n\ndef test_rods():\n    assert rods(30, gap=3) == 12\n    assert rods(30, gap=0) == 32\n",
    },
    command="pydoclint basket.py && python -m pytest -q",
    setup=install("pydoclint", "pytest"),
    keeps="""
from pathlib import Path
text = Path("basket.py").read_text()
assert "gap (int): What is between two rods." in text and "max(gap, 1)" in text and "spacing" not in text
assert "height (int): How high" in text and "Returns:" in text and "noqa" not in text
assert Path("pyproject.toml").read_text().strip().splitlines() == ["[tool.pydoclint]", 'style = "google"']
""",
    remedy="sed -i 's/spacing (int)/gap (int)/' basket.py\n",
)

RING = '''"""Handlers of records."""

import logging


class Ring(logging.Handler):
    """Keep the last records."""

    def __init__(self, size=3):
        super().__init__()
        self.size = size
        self.lines = []

    def emit(self, record):
        self.lines = [*self.lines, self.format(record)][-self.size :]
'''
LOG_JSON = """{
  "version": 1,
  "formatters": {"short": {"format": "%(levelname)s %(message)s"}},
  "handlers": {
    "ring": {"class": "depot.handlers.Ring", "size": 2, "formatter": "short"}
  },
  "root": {"level": "INFO", "handlers": ["ring"]}
}
"""
LOG_CONFIG = Shape(
    name="class-moved-log-settings-behind",
    start={
        **NO_SHOP,
        "depot/__init__.py": '"""A depot."""\n',
        "depot/handlers.py": RING,
        "depot/setup.py": '"""Set logging up."""\n\nimport json\nimport logging.config\nfrom pathlib import Path\n\n\n'
        'def start():\n    """Read the settings of logging."""\n'
        '    text = Path(__file__).with_name("logging.json").read_text(encoding="utf-8")\n'
        "    logging.config.dictConfig(json.loads(text))\n",
        "depot/logging.json": LOG_JSON,
        "tests/__init__.py": "",
        "tests/test_setup.py": """import logging
import unittest

from depot.setup import start


class Start(unittest.TestCase):
    def test_keeps_the_last(self):
        start()
        for word in ("one", "two", "three"):
            logging.info(word)
        self.assertEqual(logging.getLogger().handlers[0].lines, ["INFO two", "INFO three"])
""",
    },
    message="Gather what is about logs, and clear a ring",
    culprit={
        "depot/handlers.py": None,
        "depot/logs/__init__.py": '"""What is about logs."""\n',
        "depot/logs/ring.py": RING
        + '\n    def clear(self):\n        """Forget every record."""\n        self.lines = []\n',
    },
    command="python -m unittest discover -s tests -t .",
    setup="true",
    keeps="""
import json
from pathlib import Path
found = json.loads(Path("depot/logging.json").read_text())
assert found["handlers"]["ring"] == {"class": "depot.logs.ring.Ring", "size": 2, "formatter": "short"}, found
assert found["root"] == {"level": "INFO", "handlers": ["ring"]}
assert "def clear" in Path("depot/logs/ring.py").read_text() and not Path("depot/handlers.py").exists()
""",
    remedy="sed -i 's/depot.handlers.Ring/depot.logs.ring.Ring/' depot/logging.json\n",
)

# --- Steps of a database ----------------------------------------------------------------------------------------------

ALEMBIC_ENV = """from alembic import context
from sqlalchemy import create_engine

with create_engine("sqlite://").connect() as connection:
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
"""
MAKO = '''"""${message}"""

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade():
    ${upgrades if upgrades else "pass"}


def downgrade():
    ${downgrades if downgrades else "pass"}
'''


def _step(revision: str, down: str, say: str, up: str, undo: str) -> str:
    """Write one step of the database."""
    return (
        f'"""{say}."""\n\nimport sqlalchemy as sa\nfrom alembic import op\n\nrevision = "{revision}"\ndown_revision = {down}\n\n\n'
        f"def upgrade():\n    {up}\n\n\ndef downgrade():\n    {undo}\n"
    )


ALEMBIC_HEADS = Shape(
    name="two-heads-of-migrations",
    start={
        **NO_SHOP,
        "alembic.ini": "[alembic]\nscript_location = steps\npath_separator = os\n",
        "steps/env.py": ALEMBIC_ENV,
        "steps/script.py.mako": MAKO,
        "steps/versions/a1_guests.py": _step(
            "a1",
            "None",
            "Guests",
            'op.create_table("guest", sa.Column("id", sa.Integer, primary_key=True))',
            'op.drop_table("guest")',
        ),
        "steps/versions/b2_phone.py": _step(
            "b2",
            '"a1"',
            "Phones",
            'op.add_column("guest", sa.Column("phone", sa.String))',
            'op.drop_column("guest", "phone")',
        ),
        "inn.py": '"""An inn."""\n\n\ndef nights(first, last):\n    """Count nights."""\n    return last - first\n',
        "tests/test_inn.py": "from inn import nights\n\n\ndef test_nights():\n    assert nights(3, 5) == 2\n",
    },
    message="Keep guests' addresses",
    culprit={
        "steps/versions/c3_address.py": _step(
            "c3",
            '"a1"',
            "Addresses",
            'op.add_column("guest", sa.Column("address", sa.String))',
            'op.drop_column("guest", "address")',
        )
    },
    command="alembic upgrade head && python -m pytest -q",
    setup=install("alembic", "sqlalchemy", "pytest"),
    keeps="""
from alembic.config import Config
from alembic.script import ScriptDirectory
steps = ScriptDirectory.from_config(Config("alembic.ini"))
assert len(steps.get_heads()) == 1, steps.get_heads()
assert {"a1", "b2", "c3"} <= {one.revision for one in steps.walk_revisions()}
from pathlib import Path
assert '"address"' in Path("steps/versions/c3_address.py").read_text()
assert '"phone"' in Path("steps/versions/b2_phone.py").read_text()
""",
    remedy='alembic merge -m "Join addresses and phones" heads\n',
)

# --- Words in two tongues ---------------------------------------------------------------------------------------------

GREENHOUSE = '''"""Words of a greenhouse."""

from gettext import gettext as _


def advice(celsius):
    """Say what to do."""
    if celsius > 30:
        return _("Open the roof")
    return _("Nothing to do")
'''
PO = """
msgid ""
msgstr ""
"Project-Id-Version: greenhouse 1.0\\n"
"Report-Msgid-Bugs-To: EMAIL@ADDRESS\\n"
"POT-Creation-Date: 2024-03-02 09:10+0000\\n"
"PO-Revision-Date: YEAR-MO-DA HO:MI+ZONE\\n"
"Last-Translator: FULL NAME <EMAIL@ADDRESS>\\n"
"Language: de\\n"
"Language-Team: de <LL@li.org>\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Generated-By: Babel 2.17.0\\n"

#: greenhouse/words.py:9
msgid "Open the roof"
msgstr "Dach \u00f6ffnen"

#: greenhouse/words.py:10
msgid "Nothing to do"
msgstr "Nichts zu tun"

"""
BABEL_UPDATE = Shape(
    name="catalogue-behind",
    start={
        **NO_SHOP,
        "greenhouse/__init__.py": "",
        "greenhouse/words.py": GREENHOUSE,
        "locale/de/LC_MESSAGES/messages.po": PO,
        "tests/test_words.py": 'from greenhouse.words import advice\n\n\ndef test_hot():\n    assert advice(35) == "Open the roof"\n',
        "Makefile": "catalogues:\n\tmkdir -p build\n\tpybabel -q extract --no-wrap -o build/messages.pot greenhouse\n"
        "\tpybabel update --ignore-pot-creation-date -i build/messages.pot -d locale\n\n"
        "check-catalogues:\n\tmkdir -p build\n\tpybabel -q extract --no-wrap -o build/messages.pot greenhouse\n"
        "\tpybabel update --check --ignore-pot-creation-date -i build/messages.pot -d locale\n",
        ".gitignore": "build/\n__pycache__/\n",
    },
    message="Warn of frost",
    culprit={
        "greenhouse/words.py": swap(
            GREENHOUSE,
            (
                '    return _("Nothing',
                '    if celsius < 4:\n        return _("Light the stove before night")\n    return _("Nothing',
            ),
        )
    },
    command="make check-catalogues && python -m pytest -q",
    setup=install("babel", "pytest"),
    keeps="""
from pathlib import Path
text = Path("locale/de/LC_MESSAGES/messages.po").read_text(encoding="utf-8")
for one in ("Light the stove before night", "Open the roof", "Nothing to do"):
    assert f'msgid "{one}"' in text, one
assert 'msgstr "Dach \u00f6ffnen"' in text and 'msgstr "Nichts zu tun"' in text
assert "celsius < 4" in Path("greenhouse/words.py").read_text()
assert "--check" in Path("Makefile").read_text()
""",
    remedy="make catalogues\n",
)

# --- Node ---------------------------------------------------------------------------------------------------------------

NODE_PACKAGE = """{
  "name": "gauge",
  "version": "2.1.0",
  "type": "module",
  "exports": {
    ".": "./lib/index.js",
    "./format": "./lib/format.js"
  },
  "scripts": {
    "test": "node --test"
  }
}
"""
NODE_FORMAT = """export function metres(height) {
  return `${height.toFixed(2)} m`;
}
"""
NODE_EXPORTS = Shape(
    name="module-moved-exports-behind",
    start={
        **NO_SHOP,
        "package.json": NODE_PACKAGE,
        "lib/index.js": "import { metres } from './format.js';\n\nexport function top(heights) {\n  return metres(Math.max(...heights));\n}\n",
        "lib/format.js": NODE_FORMAT,
        "test/gauge.test.js": "import assert from 'node:assert';\nimport test from 'node:test';\nimport { top } from 'gauge';\n"
        "import { metres } from 'gauge/format';\n\ntest('top', () => {\n  assert.equal(top([1, 3.5]), '3.50 m');\n});\n\n"
        "test('metres', () => {\n  assert.equal(metres(2), '2.00 m');\n});\n",
    },
    message="Put text into a folder, and add feet",
    culprit={
        "lib/format.js": None,
        "lib/text/format.js": NODE_FORMAT
        + "\nexport function feet(height) {\n  return `${(height * 3.28084).toFixed(1)} ft`;\n}\n",
        "lib/index.js": "import { metres } from './text/format.js';\n\nexport function top(heights) {\n  return metres(Math.max(...heights));\n}\n",
    },
    command="node --test",
    setup="true",
    keeps="""
import json
from pathlib import Path
found = json.loads(Path("package.json").read_text())
assert found["exports"] == {".": "./lib/index.js", "./format": "./lib/text/format.js"}, found
assert "function feet" in Path("lib/text/format.js").read_text() and not Path("lib/format.js").exists()
assert "gauge/format" in Path("test/gauge.test.js").read_text()
""",
    remedy="sed -i 's/lib\\/format.js/lib\\/text\\/format.js/' package.json\n",
)
NODE_MODULE = Shape(
    name="package-made-a-module-script-behind",
    start={
        **NO_SHOP,
        "package.json": '{\n  "name": "tide",\n  "version": "0.9.0",\n  "scripts": {\n    "test": "node --test"\n  }\n}\n',
        "lib/tide.js": "function mean(heights) {\n  return heights.reduce((a, b) => a + b, 0) / heights.length;\n}\n\nmodule.exports = { mean };\n",
        "scripts/table.js": "const process = require('node:process');\nconst { mean } = require('../lib/tide.js');\n\n"
        "const heights = process.argv.slice(2).map(Number);\nconsole.log(`mean ${mean(heights)}`);\n",
        "test/tide.test.js": "const assert = require('node:assert');\nconst test = require('node:test');\n"
        "const { mean } = require('../lib/tide.js');\n\ntest('mean', () => {\n  assert.equal(mean([1, 3]), 2);\n});\n",
    },
    message="Make the package a module, and add the range",
    culprit={
        "package.json": '{\n  "name": "tide",\n  "version": "0.9.0",\n  "type": "module",\n  "scripts": {\n    "test": "node --test"\n  }\n}\n',
        "lib/tide.js": "export function mean(heights) {\n  return heights.reduce((a, b) => a + b, 0) / heights.length;\n}\n\n"
        "export function range(heights) {\n  return Math.max(...heights) - Math.min(...heights);\n}\n",
        "test/tide.test.js": "import assert from 'node:assert';\nimport test from 'node:test';\nimport { mean, range } from '../lib/tide.js';\n\n"
        "test('mean', () => {\n  assert.equal(mean([1, 3]), 2);\n});\n\ntest('range', () => {\n  assert.equal(range([1, 3]), 2);\n});\n",
    },
    command="node scripts/table.js 1 3 && node --test",
    setup="true",
    keeps="""
import json
from pathlib import Path
assert json.loads(Path("package.json").read_text())["type"] == "module"
assert "export function range" in Path("lib/tide.js").read_text()
text = Path("scripts/table.js").read_text()
assert "from '../lib/tide.js'" in text.replace('"', "'") and "console.log(`mean ${mean(heights)}`)" in text
assert "range([1, 3])" in Path("test/tide.test.js").read_text()
""",
    remedy="sed -i -E \"s/^const (.*) = require\\(('.*')\\);/import \\1 from \\2;/\" scripts/table.js\n",
)

FIFTEENTH = (
    DJANGO_URL,
    DJANGO_ADMIN,
    FLASK_ENDPOINT,
    FASTAPI_DUMP,
    PYDANTIC_DICT,
    SQLALCHEMY_BACK,
    MOCK_PATCH,
    SPHINX_TOCTREE,
    MKDOCS_ANCHOR,
    CLICK_SMOKE,
    HATCH_README,
    SETUPTOOLS_LICENSE,
    TOX_ALLOW,
    NOX_SESSION,
    IMPORT_LAYERS,
    DEPTRY_UNUSED,
    XFAIL,
    STUB_BEHIND,
    DOC_ARGUMENT,
    LOG_CONFIG,
    ALEMBIC_HEADS,
    BABEL_UPDATE,
    NODE_EXPORTS,
    NODE_MODULE,
)
