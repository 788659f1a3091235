"""Records which modules a value travels through: where a function receives or returns it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import regreen

_ROOT = Path(regreen.__file__).parent
_MAX_ITEMS = 20


def _holds(value: object, kinds: tuple[type, ...]) -> bool:
    """Whether the value is one of the kinds, or a short collection of them."""
    if isinstance(value, kinds):
        return True
    if isinstance(value, list | tuple | set | frozenset):
        return any(isinstance(item, kinds) for item in list(value)[:_MAX_ITEMS])
    if isinstance(value, dict):
        return any(isinstance(item, kinds) for item in list(value.values())[:_MAX_ITEMS])
    return False


@contextmanager
def trace_modules(*kinds: type) -> Iterator[list[str]]:
    """The modules of the product, in the order in which they first receive or return a value of these kinds."""
    modules: list[str] = []

    def note(frame: FrameType) -> None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(_ROOT) and not frame.f_code.co_name.startswith(("<", "__")):
            name = file.relative_to(_ROOT).as_posix()
            if name not in modules:
                modules.append(name)

    def look(frame: FrameType, event: str, value: object) -> None:
        if event == "call":
            code = frame.f_code
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            received = [frame.f_locals.get(name) for name in names if name != "self"]
            if any(_holds(item, kinds) for item in received):
                note(frame)
        elif event == "return" and _holds(value, kinds):
            note(frame)

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield modules
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
