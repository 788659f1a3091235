"""Small projects in which a change renamed, moved or gave other arguments to something and forgot some of its callers.

The rules were written with `DEVELOPMENT` at hand and frozen before `FRESH` was written.
"""

from __future__ import annotations

from benchmarks.repair_choice_cases import Choice, Files

BARE: Files = {"shop/__init__.py": None, "shop/cart.py": None, "tests/test_cart.py": None}
PRICES = '''"""Prices."""


def gross(net, percent=19):
    """The price with tax."""
    return net + net * percent // 100


def rounded(amount):
    """Whole tens."""
    return amount // 10 * 10
'''
SHIPPING = '''"""Shipping."""


def shipping(weight):
    """What sending so many grams costs."""
    if weight > 1000:
        return 5 + weight // 100
    return 5
'''
SHAPES = '''"""Shapes."""

from abc import ABC, abstractmethod


class Shape(ABC):
    """What has a size."""

    def __init__(self, name, unit="cm"):
        self.name = name
        self.unit = unit

    @abstractmethod
    def size(self):
        """How large it is."""

    def label(self, *, digits=1):
        """Name and size."""
        return f"{self.name} {self.size():.{digits}f} {self.unit}"
'''
SQUARE = """from lib.shapes import Shape


class Square(Shape):
    def __init__(self, side):
        super().__init__("square")
        self.side = side

    def size(self):
        return self.side ** 2

    def heading(self):
        return self.label(digits=0).upper()
"""
SQUARE_TEST = "from lib.square import Square\n\n\ndef test_square():\n    assert Square(2).size() == 4\n\n\ndef test_heading():\n    assert Square(3).heading() == 'SQUARE 9 CM'\n"
ORDER = '''"""Orders."""

from dataclasses import dataclass


@dataclass
class Order:
    """What somebody wants."""

    article: str
    count: int = 1

    def text(self):
        return f"{self.count} x {self.article}"
'''


def case(name: str, start: Files, culprit: Files, keeps: str, message: str = "Give it a better name") -> Choice:  # fmt: skip
    return Choice(name, "python -m pytest -q", culprit, keeps, {**BARE, **start}, message, setup="pip install -q pytest", form=True)  # fmt: skip


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    """The text with words replaced, each of which has to be there."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


LIB: Files = {"lib/__init__.py": "", "lib/prices.py": PRICES, "tests/test_prices.py": "from lib.prices import rounded\n\n\ndef test_rounded():\n    assert rounded(27) == 20\n"}  # fmt: skip
TILL = "from lib.prices import gross, rounded\n\n\ndef pay(net):\n    return rounded(gross(net))\n"
TILL_TEST = "from lib.till import pay\n\n\ndef test_pay():\n    assert pay(100) == 110\n"
SHIP: Files = {"lib/__init__.py": "", "lib/shipping.py": SHIPPING, "lib/parcel.py": "from lib import shipping as costs\n\n\ndef parcel(price, weight, zone):\n    return price + costs.shipping(weight) + zone\n", "tests/test_parcel.py": "from lib.parcel import parcel\n\n\ndef test_parcel():\n    assert parcel(10, 2000, 1) == 36\n", "tests/test_shipping.py": "from lib.shipping import shipping\n\n\ndef test_light():\n    assert shipping(5) == 5\n"}  # fmt: skip
SHAPE: Files = {"lib/__init__.py": "", "lib/shapes.py": SHAPES, "lib/square.py": SQUARE, "tests/test_square.py": SQUARE_TEST}  # fmt: skip
ORDERS: Files = {"lib/__init__.py": "", "lib/order.py": ORDER, "lib/basket.py": "from lib.order import Order\n\n\ndef basket(names):\n    orders = [Order(article=name, count=2) for name in names]\n    first = orders[0]\n    return first.article, [order.text() for order in orders]\n", "tests/test_basket.py": "from lib.basket import basket\n\n\ndef test_basket():\n    assert basket(['tea']) == ('tea', ['2 x tea'])\n"}  # fmt: skip
WITH_PAY = "import sys; sys.path.insert(0, '.'); from lib.till import pay; assert pay(100) == 110; "

DEVELOPMENT = (
 case("function", {**LIB, "lib/till.py": TILL, "tests/test_till.py": TILL_TEST}, {"lib/prices.py": replaced(PRICES, ("rounded", "round_down")), "tests/test_prices.py": replaced(str(LIB["tests/test_prices.py"]), ("rounded", "round_down"))}, WITH_PAY + "from lib.prices import round_down"),
 case("function-through-module-and-package", {**LIB, "lib/__init__.py": "from .prices import gross, rounded\n\n__all__ = ['gross', 'rounded']\n", "lib/till.py": "import lib\nfrom lib import prices as p\n\n\ndef pay(net):\n    return lib.rounded(p.gross(net)) + p.rounded(3)\n", "tests/test_till.py": TILL_TEST}, {"lib/prices.py": replaced(PRICES, ("rounded", "round_down")), "lib/__init__.py": "from .prices import gross, round_down\n\n__all__ = ['gross', 'round_down']\n", "tests/test_prices.py": replaced(str(LIB["tests/test_prices.py"]), ("rounded", "round_down"))}, WITH_PAY + "from lib import round_down"),
 case("keyword", {**LIB, "lib/till.py": "from lib.prices import gross as with_tax\n\n\ndef pay(net):\n    return with_tax(net, percent=10)\n", "tests/test_till.py": TILL_TEST}, {"lib/prices.py": replaced(PRICES, ("percent", "rate"))}, WITH_PAY + "from lib.prices import gross; assert gross(100, rate=7) == 107"),
 case("keyword-of-method", SHAPE, {"lib/shapes.py": replaced(SHAPES, ("digits=1", "places=1"), (".{digits}f", ".{places}f"))}, "from lib.square import Square; assert Square(2).label(places=2) == 'square 4.00 cm' and Square(3).heading() == 'SQUARE 9 CM'"),
 case("abstract-method", SHAPE, {"lib/shapes.py": replaced(SHAPES, ("def size(", "def area("), ("self.size()", "self.area()")), "tests/test_square.py": replaced(SQUARE_TEST, (".size()", ".area()"))}, "from lib.square import Square; assert Square(2).area() == 4 and not hasattr(Square, 'size')"),
 case("class", {**ORDERS}, {"lib/order.py": replaced(ORDER, ("class Order", "class Wish"))}, "from lib.order import Wish; from lib.basket import basket; assert basket(['tea']) == ('tea', ['2 x tea'])"),
 case("field", {**ORDERS}, {"lib/order.py": replaced(ORDER, ("    article:", "    name:"), ("self.article", "self.name"))}, "from lib.order import Order; from lib.basket import basket; assert Order('a').name == 'a' and basket(['tea']) == ('tea', ['2 x tea'])"),
 case("module", {**LIB, "lib/till.py": replaced(TILL, ("lib.prices", ".prices")), "lib/plugins.py": "import importlib\n\nPLUGIN = 'lib.prices'\n\n\ndef plugin():\n    return importlib.import_module(PLUGIN).gross(100)\n", "tests/test_till.py": TILL_TEST + "\n\ndef test_plugin():\n    from lib.plugins import plugin\n\n    assert plugin() == 119\n"}, {"lib/prices.py": None, "lib/money.py": PRICES, "tests/test_prices.py": replaced(str(LIB["tests/test_prices.py"]), ("lib.prices", "lib.money"))}, WITH_PAY + "from lib.money import gross; from lib.plugins import plugin; assert plugin() == 119"),
 case("moved", {**LIB, "lib/till.py": TILL, "tests/test_till.py": TILL_TEST}, {"lib/prices.py": PRICES.split("\n\n\ndef rounded", maxsplit=1)[0] + "\n", "lib/rounding.py": '"""Rounding."""\n\n\ndef rounded' + PRICES.split("def rounded")[1], "tests/test_prices.py": replaced(str(LIB["tests/test_prices.py"]), ("lib.prices", "lib.rounding"))}, WITH_PAY + "from lib.rounding import rounded", "Move rounding"),
 case("required-in-scope", SHIP, {"lib/shipping.py": replaced(SHIPPING, ("shipping(weight)", "shipping(weight, zone)"), ("return 5 +", "return 5 * zone +"), ("return 5\n", "return 5 * zone\n")), "tests/test_shipping.py": replaced(str(SHIP["tests/test_shipping.py"]), ("shipping(5)", "shipping(5, 1)"))}, "from lib.parcel import parcel; assert parcel(10, 2000, 1) == 36 and parcel(0, 1, 3) == 18", "Ask for a zone"),
 case("required-was-constant", SHIP, {"lib/shipping.py": replaced(SHIPPING, ("shipping(weight)", "shipping(weight, limit)"), ("> 1000", "> limit")), "tests/test_shipping.py": replaced(str(SHIP["tests/test_shipping.py"]), ("shipping(5)", "shipping(5, 10)"))}, "from lib.parcel import parcel; assert parcel(10, 2000, 1) == 36 and parcel(0, 600, 0) == 5", "Let callers say what is heavy"),
 case("removed", {**LIB, "lib/till.py": "from lib.prices import gross\n\n\ndef pay(net):\n    return gross(net, 10)\n", "lib/prices.py": replaced(PRICES, ("net * percent // 100", "net // 10")), "tests/test_till.py": TILL_TEST}, {"lib/prices.py": replaced(PRICES, (", percent=19", ""), ("net * percent // 100", "net // 10"))}, WITH_PAY + "import inspect; from lib.prices import gross; assert len(inspect.signature(gross).parameters) == 1", "Drop what nobody reads"),
)  # fmt: skip

# Written after the rules were frozen: other layouts, other forms of use, and changes that must not be followed unasked.

CLOCK = '''"""Durations."""

import functools


def traced(func):
    """Count the calls."""
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return func(*args, **kwargs)
    wrapper.calls = 0
    return wrapper


def to_seconds(hours, minutes):
    """Seconds of a duration."""
    return hours * 3600 + minutes * 60


class Timer:
    """Counts down."""

    limit = 90

    def __init__(self, left, step=10):
        self.left = left
        self.step = step

    def tick(self):
        """One step."""
        self.left -= self.step
        return self.left

    @classmethod
    def from_minutes(cls, minutes):
        return cls(minutes * 60)

    @staticmethod
    def format(seconds):
        return f"{seconds // 60}:{seconds % 60:02}"
'''
SRC: Files = {**BARE, "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n', "src/clock/__init__.py": "", "src/clock/core.py": CLOCK, "tests/test_core.py": "from clock.core import Timer\n\n\ndef test_tick():\n    assert Timer(60).tick() == 50\n"}  # fmt: skip
FLAT: Files = {**BARE, "clock.py": CLOCK, "test_clock.py": "import clock\n\n\ndef test_tick():\n    assert clock.Timer(60).left == 60\n"}  # fmt: skip
IN_SRC = "import sys; sys.path.insert(0, 'src'); "


def core(*pairs: tuple[str, str]) -> Files:
    return {"src/clock/core.py": replaced(CLOCK, *pairs)}


def fresh(name: str, start: Files, culprit: Files, keeps: str, message: str = "Clean up the interface") -> Choice:  # fmt: skip
    return case(name, start, culprit, keeps, message)


FRESH = (
 fresh("src-relative-in-subpackage", {**SRC, "src/clock/views/__init__.py": "", "src/clock/views/page.py": "from ..core import to_seconds\n\n\ndef page(h):\n    total = to_seconds(h, 0)\n    return f'{total} s'\n", "tests/test_page.py": "from clock.views.page import page\n\n\ndef test_page():\n    assert page(1) == '3600 s'\n"}, core(("to_seconds", "duration_seconds")), IN_SRC + "from clock.views.page import page; from clock.core import duration_seconds; assert page(2) == '7200 s'"),
 fresh("alias-and-local-of-the-old-name", {**SRC, "src/clock/report.py": "from clock.core import to_seconds as secs\nimport clock.core\n\n\ndef report(to_seconds):\n    return secs(to_seconds, 1) + clock.core.to_seconds(1, 0)\n", "tests/test_report.py": "from clock.report import report\n\n\ndef test_report():\n    assert report(0) == 3660\n"}, core(("to_seconds", "seconds_of")), IN_SRC + "from clock.report import report; from clock.core import seconds_of; assert report(to_seconds=1) == 7260"),
 fresh("method-through-self-attribute", {**FLAT, "kitchen.py": "from clock import Timer\n\n\nclass Oven:\n    def __init__(self):\n        self.timer = Timer(20)\n\n    def wait(self):\n        return self.timer.tick()\n", "test_kitchen.py": "from kitchen import Oven\n\n\ndef test_wait():\n    assert Oven().wait() == 10\n"}, {"clock.py": replaced(CLOCK, ("def tick(", "def advance("))}, "from kitchen import Oven; from clock import Timer; assert Oven().wait() == 10 and Timer(1).advance() == -9"),
 fresh("subclass-overrides-and-calls-super", {**SRC, "src/clock/loud.py": "from clock import core\n\n\nclass Loud(core.Timer):\n    def tick(self):\n        left = super().tick()\n        return f'{left}!'\n\n\ndef run(timer: core.Timer):\n    return timer.tick()\n", "tests/test_loud.py": "from clock.loud import Loud, run\n\n\ndef test_loud():\n    assert run(Loud(20)) == '10!'\n"}, {**core(("def tick(", "def advance(")), "tests/test_core.py": "from clock.core import Timer\n\n\ndef test_tick():\n    assert Timer(60).advance() == 50\n"}, IN_SRC + "from clock.loud import Loud; assert Loud(20).advance() == '10!'"),
 fresh("classmethod-and-staticmethod", {**FLAT, "show.py": "import clock as c\n\n\ndef show(minutes):\n    return c.Timer.format(c.Timer.from_minutes(minutes).left)\n", "test_show.py": "from show import show\n\n\ndef test_show():\n    assert show(3) == '3:00'\n"}, {"clock.py": replaced(CLOCK, ("from_minutes", "of_minutes"))}, "from show import show; from clock import Timer; assert show(3) == '3:00' and Timer.of_minutes(1).left == 60"),
 fresh("constructor-keyword", {**SRC, "src/clock/fast.py": "from .core import Timer\n\n\nclass Fast(Timer):\n    def __init__(self, left):\n        super().__init__(left, step=30)\n\n\ndef slow(left):\n    return Timer(\n        left,\n        step=1,\n    )\n", "tests/test_fast.py": "from clock.fast import Fast, slow\n\n\ndef test_fast():\n    assert Fast(60).tick() == 30\n\n\ndef test_slow():\n    assert slow(60).tick() == 59\n"}, core(("step=10", "pace=10"), ("= step", "= pace")), IN_SRC + "from clock.fast import Fast, slow; from clock.core import Timer; assert Fast(60).tick() == 30 and Timer(5, pace=1).tick() == 4"),
 fresh("keyword-only-required-from-self", {**FLAT, "race.py": "from clock import Timer\n\n\nclass Race:\n    def __init__(self, step):\n        self.step = step\n\n    def start(self):\n        return Timer(100).left - Timer(100).tick()\n", "test_race.py": "from race import Race\n\n\ndef test_race():\n    assert Race(10).start() == 10\n"}, {"clock.py": replaced(CLOCK, ("left, step=10", "left, *, step"), ("cls(minutes * 60)", "cls(minutes * 60, step=10)")), "test_clock.py": "import clock\n\n\ndef test_tick():\n    assert clock.Timer(60, step=1).left == 60\n"}, "from race import Race; assert Race(10).start() == 10"),
 fresh("decorator", {**SRC, "src/clock/jobs.py": "from clock.core import traced\n\n\n@traced\ndef job():\n    return 7\n", "tests/test_jobs.py": "from clock.jobs import job\n\n\ndef test_job():\n    assert (job(), job.calls) == (7, 1)\n"}, core(("traced", "counted")), IN_SRC + "from clock.jobs import job; from clock.core import counted; job(); assert job.calls == 1"),
 fresh("mock-patch-string-in-a-test", {**SRC, "src/clock/say.py": "from clock import core\n\n\ndef say():\n    return core.to_seconds(1, 1)\n", "tests/test_say.py": "from unittest import mock\n\nfrom clock.say import say\n\n\ndef test_say():\n    with mock.patch('clock.core.to_seconds', return_value=5):\n        assert say() == 5\n"}, {**core(("to_seconds", "seconds_of")), "src/clock/say.py": "from clock import core\n\n\ndef say():\n    return core.seconds_of(1, 1)\n"}, IN_SRC + "from clock.say import say; from clock.core import seconds_of; assert say() == 3660 and 'core.seconds_of' in open('tests/test_say.py').read()"),
 fresh("package-renamed", {**SRC, "src/app.py": "from clock.core import Timer\nimport clock.core\n\n\ndef app():\n    return clock.core.to_seconds(0, 1) + Timer(1).left\n", "tests/test_app.py": "from app import app\n\n\ndef test_app():\n    assert app() == 61\n"}, {"src/clock/__init__.py": None, "src/clock/core.py": None, "src/watch/__init__.py": "", "src/watch/core.py": CLOCK, "tests/test_core.py": "from watch.core import Timer\n\n\ndef test_tick():\n    assert Timer(60).tick() == 50\n"}, IN_SRC + "from app import app; import watch.core; assert app() == 61"),
 fresh("moved-class-among-others", {**SRC, "src/clock/use.py": "from .core import (\n    Timer,\n    to_seconds,\n)\n\n\ndef use():\n    return Timer(to_seconds(1, 0)).left\n", "tests/test_use.py": "from clock.use import use\n\n\ndef test_use():\n    assert use() == 3600\n"}, {"src/clock/core.py": CLOCK.split("class Timer", maxsplit=1)[0].rstrip() + "\n", "src/clock/timer.py": '"""A timer."""\n\n\nclass Timer' + CLOCK.split("class Timer")[1], "tests/test_core.py": "from clock.timer import Timer\n\n\ndef test_tick():\n    assert Timer(60).tick() == 50\n"}, IN_SRC + "from clock.use import use; from clock.timer import Timer; assert use() == 3600"),
 fresh("constant-of-a-module", {**FLAT, "clock.py": "LIMIT_SECONDS = 90\n\n\n" + CLOCK, "rest.py": "import clock\n\n\ndef rest(used):\n    return clock.LIMIT_SECONDS - used\n", "test_rest.py": "from rest import rest\n\n\ndef test_rest():\n    assert rest(80) == 10\n"}, {"clock.py": "MAX_SECONDS = 90\n\n\n" + CLOCK}, "from rest import rest; import clock; assert rest(80) == 10 and clock.MAX_SECONDS == 90"),
 # --- a person has to decide, or nothing is right
 fresh("caller-without-a-test", {**SRC, "src/clock/a.py": "from clock.core import to_seconds\n\n\ndef a():\n    return to_seconds(1, 0)\n", "src/clock/b.py": "def b():\n    from clock.core import to_seconds\n\n    return to_seconds(2, 0)\n", "tests/test_a.py": "from clock.a import a\nfrom clock.b import b\n\n\ndef test_a():\n    assert a() == 3600 and b\n"}, core(("to_seconds", "seconds_of")), IN_SRC + "from clock.a import a; from clock.b import b; from clock.core import seconds_of; assert (a(), b()) == (3600, 7200)"),
 fresh("parameter-means-something-else", {**FLAT, "plan.py": "from clock import to_seconds\n\n\ndef plan():\n    return to_seconds(hours=2, minutes=0) > 0\n", "test_plan.py": "from plan import plan\n\n\ndef test_plan():\n    assert plan()\n"}, {"clock.py": replaced(CLOCK, ("to_seconds(hours, minutes)", "to_seconds(days, minutes)"), ("hours * 3600", "days * 86400"))}, "from plan import plan; from clock import to_seconds; import inspect; assert 'days' in inspect.signature(to_seconds).parameters and 'days=2' not in open('plan.py').read()"),
 fresh("scope-and-constant-differ", {**FLAT, "clock.py": CLOCK + "\n\ndef fee(price):\n    return price * 2\n", "sell.py": "from clock import fee\n\n\ndef sell(price, factor):\n    return fee(price) + 0 * factor\n", "test_sell.py": "from sell import sell\n\n\ndef test_sell():\n    assert sell(4, 2) == 8\n"}, {"clock.py": CLOCK + "\n\ndef fee(price, factor):\n    return price * factor\n"}, "from sell import sell; import inspect, clock; assert sell(4, 3) == 8 and len(inspect.signature(clock.fee).parameters) == 2"),
)  # fmt: skip
