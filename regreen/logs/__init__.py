"""Readers of tools' output: one module a family, each turns lines into failures."""
