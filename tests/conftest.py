"""Fixtures that more than one kind of test needs."""

from __future__ import annotations

from tests.postgres import postgres

__all__ = ["postgres"]
