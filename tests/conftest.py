"""Fixtures and settings that more than one kind of test needs."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.postgres import postgres

__all__ = ["postgres"]

# How fast examples are made says how busy the machine is, nothing of the code.
settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
