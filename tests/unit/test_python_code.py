"""Python is read by several threads at once, each as deep in its own calls as it happens to be."""

from __future__ import annotations

import ast
import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from regreen.code.python_calls import parse_syntax_tree

NESTED = "x = " + "[" * 30 + "]" * 30 + "\n"


@pytest.fixture
def _threads_take_turns_in_the_middle_of_a_tree() -> Iterator[None]:
    def give_way(*_: object) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.set_threshold(200)
    gc.callbacks.append(give_way)
    yield
    gc.callbacks.remove(give_way)
    gc.set_threshold(*before)


def read(depth: int) -> ast.Module:
    return parse_syntax_tree(NESTED * 60) if depth == 0 else read(depth - 1)


@pytest.mark.usefixtures("_threads_take_turns_in_the_middle_of_a_tree")
def test_trees_that_are_built_side_by_side_do_not_disturb_each_other() -> None:
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(read, range(24)))
    assert all(len(tree.body) == 60 for tree in trees)
