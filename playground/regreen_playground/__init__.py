"""A GitHub on loopback: REST, GraphQL for review threads, git over HTTP, signed webhooks, and pages to look at."""

from __future__ import annotations

from regreen_playground.server import Playground, serve

__all__ = ["Playground", "serve"]
