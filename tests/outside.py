"""Data that others made, in the folder that REGREEN_TEST_DATA names: `data/` and `tools/`."""

from __future__ import annotations

import os
from pathlib import Path

CHECKER = "tools/contract_check.py"
PLACE = os.environ.get("REGREEN_TEST_DATA", "")


def outside(name: str) -> Path:
    """A file of that folder, which need not be there."""
    return Path(PLACE or os.devnull) / name


def is_missing(name: str) -> bool:
    """Whether a test that needs this file has to be left out."""
    return not outside(name).exists()


def reason(name: str) -> str:
    """Why it is left out."""
    place = f"not in REGREEN_TEST_DATA={PLACE}" if PLACE else "REGREEN_TEST_DATA is not set"
    return f"{name} is missing: {place}"
