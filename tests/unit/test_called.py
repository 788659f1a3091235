"""What a step's command calls in the tree, and which of it installs."""

from __future__ import annotations

import pytest

from regreen.shell.called_scripts import expand_make_rules, read_called_scripts
from regreen.shell.install_lines import find_install_lines

MAKEFILE = """\
PIP ?= python -m pip

.PHONY: all
all: deps test

deps:
\t@$(PIP) install -r requirements.txt
test: deps | other
\tpytest -q
other:
\tcd docs && \\
\tnpm ci
"""
FILES = {
    "Makefile": MAKEFILE.encode(),
    "scripts/install": b'#!/bin/sh -e\nPIP=pip\n"$PIP" install -U pip\nif [ -f x ]; then\n  pip install x\nfi\n',
    "scripts/deep": b"#!/bin/sh\n./scripts/install\n",
    "scripts/tool": b"#!/usr/bin/env python\nprint('pip install x')\n",
    "package.json": b'{"scripts": {"test": "npm run lint && jest", "lint": "eslint .", "pretest": "npm ci"}}',
    "sub/Makefile": b"check:\n\ttox -e py\n",
}


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("make test", "python -m pip install -r requirements.txt\ncd docs && npm ci\npytest -q"),
        ("make -C sub check", "cd sub\ntox -e py"),
        ("sudo make PIP=pip3 deps", "pip3 install -r requirements.txt"),
        ("npm test", "npm ci\nnpm run lint && jest\neslint ."),
        ("scripts/tool", ""),
        ("bash ../outside.sh", ""),
        ("pytest -q", ""),
    ],
)
def test_the_text_of_what_is_called(script: str, text: str) -> None:
    assert read_called_scripts(script, ".", FILES.get).split() == text.split()


def test_a_script_that_calls_a_script() -> None:
    assert "-U pip" in read_called_scripts("./scripts/deep", ".", FILES.get)


def test_the_first_rule_is_meant_where_none_is_named() -> None:
    assert expand_make_rules(MAKEFILE, []).endswith("pytest -q")


def test_lines_that_install_are_taken_out_with_what_they_need() -> None:
    text = read_called_scripts("scripts/install", ".", FILES.get)
    assert find_install_lines(text) == ["PIP=pip", '"$PIP" install -U pip', "pip install x"]


def test_a_rule_that_needs_itself_ends() -> None:
    assert expand_make_rules("a: b\n\techo a\nb: a\n\techo b\n", ["a"]) == "echo b\necho a"
