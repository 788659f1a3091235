"""The analyzer rules we trust: how bad each is, how often it is right on a new line, and what then goes wrong.

`confidence` is a prior: of the findings of this rule on lines that a pull request adds, the share that a
maintainer would want to hear of. What stays under the posting threshold still counts when a second tool says it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from regreen.models import Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """What one rule means here. `tests` is its meaning in test files, where it differs."""

    severity: Severity
    confidence: float
    why: str


_NAME_ERROR = "When this line runs it raises `NameError`."
_FORMAT = "When this line runs the formatting raises, or prints something else than meant."
_NEVER_FAILS = "The assertion cannot fail, whatever the code under test does."

RUFF: dict[str, Rule] = {
    "F821": Rule("high", 0.85, _NAME_ERROR),
    "F822": Rule("medium", 0.85, "`from module import *` raises `AttributeError` for this name."),
    "F823": Rule("high", 0.9, "The name is assigned later in the function, so this read raises."),
    "F811": Rule(
        "medium", 0.8, "The earlier definition is replaced before anything could have used it."
    ),
    "F632": Rule(
        "medium", 0.92, "Identity of literals is an accident of the interpreter: equality is meant."
    ),
    "F601": Rule("medium", 0.82, "The later entry replaces the earlier one."),
    "F622": Rule("high", 0.95, "This assignment is a syntax error."),
    "F631": Rule("high", 0.97, _NEVER_FAILS),
    "F634": Rule("high", 0.97, "A tuple that is not empty is always true, so this branch is always taken."),
    "F502": Rule("medium", 0.9, _FORMAT),
    "F503": Rule("medium", 0.9, _FORMAT),
    "F504": Rule("low", 0.6, "The named argument is never printed."),
    "F505": Rule("high", 0.95, "This line raises `KeyError`."),
    "F506": Rule("high", 0.95, "This line raises `ValueError`."),
    "F507": Rule("high", 0.95, "This line raises `TypeError`: the number of arguments differs."),
    "F508": Rule("high", 0.9, "This line raises `TypeError`."),
    "F509": Rule("high", 0.9, "This line raises `ValueError`: there is no such conversion."),
    "F521": Rule("high", 0.95, "This line raises `ValueError`."),
    "F522": Rule("low", 0.6, "The named argument is never printed."),
    "F523": Rule("low", 0.75, "The argument is never printed."),
    "F524": Rule("high", 0.95, "This line raises `KeyError` or `IndexError`."),
    "F525": Rule("high", 0.95, "This line raises `ValueError`."),
    "F702": Rule("high", 0.95, "The file does not compile."),
    "F704": Rule("high", 0.95, "The file does not compile."),
    "F706": Rule("high", 0.95, "The file does not compile."),
    "F707": Rule("high", 0.95, "The file does not compile."),
    "F901": Rule("medium", 0.92, "`NotImplemented` is no exception: this raises `TypeError`."),
    "B002": Rule("medium", 0.92, "`++x` is `x`: nothing is incremented."),
    "B003": Rule("medium", 0.85, "Assigning to `os.environ` does not clear the environment."),
    "B005": Rule("medium", 0.7, "`strip` takes a set of characters, not a prefix or suffix."),
    "B006": Rule("medium", 0.55, "The default is made once and shared by all calls."),
    "B012": Rule("medium", 0.82, "Jumping out of `finally` swallows the exception on its way."),
    "B015": Rule("medium", 0.9, "The comparison's result is thrown away."),
    "B016": Rule("high", 0.95, "Raising a literal raises `TypeError` instead."),
    "B018": Rule("low", 0.55, "The expression's value is thrown away."),
    "B020": Rule("medium", 0.8, "The loop overwrites what it iterates over."),
    "B023": Rule("medium", 0.6, "The function sees the variable's last value, not this round's."),
    "B025": Rule("medium", 0.92, "The second handler of the same exception is never reached."),
    "B029": Rule("medium", 0.92, "An empty tuple catches nothing."),
    "B030": Rule("medium", 0.85, "Only exception classes can be caught: this raises `TypeError`."),
    "B031": Rule("medium", 0.8, "A group of `groupby` can be read only once."),
    "B032": Rule("medium", 0.9, "This annotates and assigns nothing: `=` is meant."),
    "B035": Rule("medium", 0.9, "Each round writes the same key."),
    "B039": Rule("medium", 0.7, "The default is shared by all contexts."),
    "PLE0100": Rule("high", 0.95, "`__init__` must not be a generator."),
    "PLE0101": Rule("high", 0.92, "`__init__` must return None: making the object raises `TypeError`."),
    "PLE0116": Rule("high", 0.9, "This is a syntax error on older Pythons."),
    "PLE0117": Rule("high", 0.95, "The file does not compile."),
    "PLE0118": Rule("high", 0.95, "The file does not compile."),
    "PLE0241": Rule("high", 0.97, "Two equal base classes: the class statement raises `TypeError`."),
    "PLE0302": Rule("high", 0.85, "Python calls this method with another number of arguments."),
    "PLE0304": Rule("high", 0.85, "Python raises `TypeError` when this method returns no bool."),
    "PLE0305": Rule("high", 0.85, "Python raises `TypeError` when this method returns no int."),
    "PLE0604": Rule("medium", 0.9, "`from module import *` raises `TypeError`."),
    "PLE0704": Rule("high", 0.8, "Outside a handler a bare `raise` raises `RuntimeError`."),
    "PLE1132": Rule("high", 0.95, "The call raises `TypeError`: the argument is given twice."),
    "PLE1142": Rule("high", 0.95, "`await` outside an async function does not compile."),
    "PLE1205": Rule("medium", 0.92, "The logging call prints an error instead of the message."),
    "PLE1206": Rule("medium", 0.92, "The logging call prints an error instead of the message."),
    "PLE1300": Rule("high", 0.9, "This line raises `ValueError`."),
    "PLE1307": Rule("high", 0.92, "This line raises `TypeError`."),
    "PLE1310": Rule("medium", 0.8, "`strip` takes a set of characters: one of them stands there twice."),
    "PLE1507": Rule("high", 0.9, "The call raises `TypeError`."),
    "PLE1519": Rule("high", 0.8, "The decorator does not work on methods."),
    "PLE1700": Rule("high", 0.95, "The file does not compile."),
    "PLR0124": Rule("medium", 0.7, "A name compared with itself is always the same answer."),
    "PLR0133": Rule("low", 0.7, "Two constants are compared: always the same answer."),
    "PLR1704": Rule("low", 0.4, "The argument is overwritten."),
    "PLW0127": Rule("low", 0.75, "A name assigned to itself changes nothing."),
    "PLW0128": Rule("medium", 0.85, "One of the two values assigned is lost."),
    "PLW0129": Rule("high", 0.95, _NEVER_FAILS),
    "PLW0131": Rule("low", 0.7, "A named expression without its context."),
    "PLW0133": Rule("high", 0.95, "The exception is made and never raised."),
    "PLW0177": Rule("medium", 0.93, "NaN equals nothing, not even itself."),
    "PLW0211": Rule("low", 0.6, "A static method has no `self`."),
    "PLW0245": Rule("high", 0.93, "`super` without brackets is the type itself: this raises `AttributeError`."),
    "PLW0711": Rule("medium", 0.95, "Only the last of these exceptions is caught: a tuple is meant."),
    "PLW1501": Rule("high", 0.95, "`open` raises `ValueError` for this mode."),
    "RUF006": Rule("low", 0.5, "A task without a reference may vanish before it ends."),
    "RUF008": Rule("medium", 0.9, "The default is shared by all instances."),
    "RUF016": Rule("high", 0.93, "The index raises `TypeError`."),
    "RUF024": Rule("medium", 0.85, "All keys share one and the same value."),
    "RUF026": Rule("medium", 0.93, "`default_factory` as a keyword becomes an entry: there is no default."),
    "RUF030": Rule("low", 0.9, "`print` returns None: the assertion has no message."),
    "RUF040": Rule("medium", 0.85, "The message of the assertion is no text."),
    "T100": Rule("high", 0.93, "A debugger's breakpoint stops the program here."),
    "PGH005": Rule("high", 0.93, "A mock answers any name: this checks nothing and cannot fail."),
    "B017": Rule("low", 0.5, "Any exception passes this test, a misspelt name included."),
    "PT015": Rule("low", 0.5, "This assertion always fails."),
    "RUF028": Rule("low", 0.3, "The suppression comment has no effect."),
}  # fmt: skip

PYRIGHT: dict[str, Rule] = {
    "reportUndefinedVariable": Rule("high", 0.6, _NAME_ERROR),
    "reportUnboundVariable": Rule("high", 0.88, "The name has no value here: this line raises."),
    "reportUnusedCoroutine": Rule("high", 0.93, "Without `await` the call does nothing at all."),
    "reportUnhashable": Rule("high", 0.93, "This line raises `TypeError`."),
    "reportUnusedExcept": Rule("medium", 0.9, "An earlier handler catches it all: this one is never reached."),
    "reportAssertAlwaysTrue": Rule("high", 0.95, _NEVER_FAILS),
    "reportCallIssue": Rule("high", 0.82, "The call raises `TypeError`."),
    "reportAbstractUsage": Rule("high", 0.85, "Making the object raises `TypeError`."),
    "reportNoOverloadImplementation": Rule("medium", 0.85, "The call raises `NotImplementedError`."),
    "reportAttributeAccessIssue": Rule("high", 0.6, "This line raises `AttributeError`."),
    "reportIndexIssue": Rule("medium", 0.6, "This line raises `TypeError`."),
    "reportOperatorIssue": Rule("medium", 0.6, "This line raises `TypeError`."),
    "reportPossiblyUnbound": Rule("medium", 0.55, "On one path the name has no value here."),
    "reportOptionalMemberAccess": Rule("medium", 0.45, "Where the value is None this raises `AttributeError`."),
    "reportOptionalSubscript": Rule("medium", 0.45, "Where the value is None this raises `TypeError`."),
    "reportOptionalIterable": Rule("medium", 0.45, "Where the value is None this raises `TypeError`."),
    "reportArgumentType": Rule("medium", 0.45, "The callee does not expect this kind of value."),
    "reportAssignmentType": Rule("medium", 0.45, "The value is of another kind than declared, or of another size."),
    "reportGeneralTypeIssues": Rule("high", 0.3, "When the class is made Python raises `TypeError`."),
    "reportTypedDictNotRequiredAccess": Rule("medium", 0.6, "Where the key is missing this raises `KeyError`."),
}  # fmt: skip


_BUILT_IN = r"(?:Literal\[[^\]\n]{1,80}\]|int|str|bytes|float|bool|list\[[^\"\n]{1,80}\]|dict\[[^\"\n]{1,80}\]|set\[[^\"\n]{1,80}\])"
_PLAIN_TYPES = re.compile(rf'not supported for types "{_BUILT_IN}" and "{_BUILT_IN}"')
_OF_VALUES = frozenset({"reportOperatorIssue", "reportAttributeAccessIssue", "reportIndexIssue"})


def prior(rule: Rule, code: str, message: str) -> float:
    """A rule's confidence, raised where its words leave no doubt of the types: a coroutine, or built-in ones."""
    if code == "reportGeneralTypeIssues" and "cannot appear after fields with default" in message:
        return 0.95
    if code in _OF_VALUES and "CoroutineType[" in message:
        return 0.92
    if code == "reportOperatorIssue" and _PLAIN_TYPES.search(message):
        return 0.86
    return rule.confidence
