"""Names of packages: the known, the look-alikes, and the merely unknown."""

from __future__ import annotations

import pytest

from regreen.packages.dependency import find_first_line_with
from regreen.packages.popular_names import (
    Ecosystem,
    find_confusable_package,
    is_popular,
    is_valid_package_name,
)


@pytest.mark.parametrize("name", ["requests", "Flask", "ruamel.yaml", "typing_extensions", "boto3"])
def test_popular_names_are_known_however_they_are_written(name: str) -> None:
    assert is_popular("pypi", name)
    assert find_confusable_package("pypi", name) is None


@pytest.mark.parametrize(
    ("ecosystem", "name", "of"),
    [
        ("pypi", "reqeusts", "requests"),
        ("pypi", "request", "requests"),
        ("pypi", "djang0", "django"),
        ("pypi", "nurnpy", "numpy"),
        ("pypi", "urlib3", "urllib3"),
        ("pypi", "jeIlyfish", "jellyfish"),
        ("pypi", "python-requests", "requests"),
        ("pypi", "colourama", "colorama"),
        ("pypi", "\u0440andas", "pandas"),
        ("npm", "crossenv", "cross-env"),
        ("npm", "types-node", "@types/node"),
        ("npm", "loadsh", "lodash"),
        ("npm", "@tyqes/node", "@types/node"),
    ],
)
def test_a_name_that_could_be_mistaken_is_named_with_the_one_it_imitates(
    ecosystem: Ecosystem, name: str, of: str
) -> None:
    found = find_confusable_package(ecosystem, name)
    assert found is not None
    assert found.of == of


def test_an_old_name_with_capitals_does_not_imitate_itself() -> None:
    assert is_popular("npm", "JSONStream")
    assert find_confusable_package("npm", "JSONStream") is None


def test_a_name_that_parts_the_words_of_a_known_one_does_not_imitate_it() -> None:
    assert is_popular("npm", "isarray")
    assert find_confusable_package("npm", "is-array") is None


@pytest.mark.parametrize("name", ["@types/object.assign", "@types/tap", "@babel/cors"])
def test_a_name_in_the_scope_of_popular_packages_is_their_owners(name: str) -> None:
    assert not is_popular("npm", name)
    assert find_confusable_package("npm", name) is None


@pytest.mark.parametrize("name", ["acme-internal-billing", "my-company-utils", "zzz", "x", ""])
def test_an_unknown_name_is_not_a_bad_one(name: str) -> None:
    assert find_confusable_package("pypi", name) is None


def test_what_no_index_could_hold_is_told() -> None:
    assert not is_valid_package_name("pypi", "a b")
    assert not is_valid_package_name("pypi", "x" * 500)
    assert is_valid_package_name("npm", "@scope/name")
    assert not is_valid_package_name("npm", "../name")


def test_the_first_line_with_all_words() -> None:
    text = '{"ab": 1,\n  "b"\n  "b": 2,\n  "b": 3'
    assert find_first_line_with(text, '"b"', ":") == 3
    assert find_first_line_with(text, "3") == 4
    assert find_first_line_with(text, '"c"') == find_first_line_with("", "a") == 1
    assert find_first_line_with(text, '\n  "b": 2') == 1, "no line holds it"
