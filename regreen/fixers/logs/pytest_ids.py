"""Node ids as pytest prints them: what of a line is the id, how it is titled, which exception was meant."""

from __future__ import annotations

import re

EXCEPTION = re.compile(
    r"^([A-Za-z_][\w.]*(?:Error|Exception|Warning|Exit|Interrupt|Failed|Timeout|Failure|Skipped)\w*)(?::\s*(.*))?$"
)


def name_in_heading(test: str) -> str:
    """How pytest titles the block of a node id: `a.py::Class::test[x]` is `Class.test[x]`."""
    _, _, inside = test.partition("::")
    name, bracket, parameters = inside.partition("[")
    return name.replace("::", ".") + bracket + parameters


def split_entry(text: str, names: frozenset[str] = frozenset()) -> tuple[str, str]:
    """Split `node id - message`; either may hold ' - ', so the blocks' names and the brackets decide."""
    cuts = [match.start() for match in re.finditer(" - ", text)][:200]
    if names:
        for cut in (*reversed(cuts), None):
            test = text if cut is None else text[:cut]
            if name_in_heading(test) in names or test in names:
                return test.strip(), "" if cut is None else text[cut + 3 :]
    for cut in cuts:
        test = text[:cut]
        inside = test.partition("::")[2]
        if "[" not in inside or test.endswith("]"):
            return test.strip(), text[cut + 3 :]
    return text.strip(), ""


def is_id(test: str) -> bool:
    """Whether a text can be a node id at all."""
    path = test.split("::", 1)[0]
    return "::" in test or "." in path or "/" in path


def kind_of(message: str, said: list[str]) -> str:
    """The exception's name from what was said of it."""
    for text in (*said[:1], message, *said[1:3]):
        if named := EXCEPTION.match(text):
            return named[1].rsplit(".", 1)[-1]
        if text.startswith("assert ") or text == "assert False":
            return "AssertionError"
        if text.startswith("fixture '"):
            return "FixtureLookupError"
        if text.startswith("Failed: "):
            return "Failed"
    first = re.match(r"^([A-Z][\w.]*)(?::|$)", message)
    return first[1].rsplit(".", 1)[-1] if first else "error"


def without_kind(message: str) -> str:
    """The message without the exception's name before it."""
    named = EXCEPTION.match(message)
    return (named[2] or message) if named else message
