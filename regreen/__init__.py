"""Regreen turns red back to green: reviews, fixes and bisects for GitHub and for local repositories."""

__version__ = "0.1.0"
