"""The format of capsules: canonical, verified, bounded, and without credentials."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from base64 import b64encode
from dataclasses import asdict, replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regreen.domain.errors import UserError
from regreen.domain.models import BoxLimits
from regreen.logs.failure_signature import FailureSignature
from regreen.runs import capsule as capsules
from regreen.runs.capsule import Capsule, CapsuleRecipe, ExpectedOutcome, SeenEnvironment

SIGNATURE = FailureSignature("exit", 1, ("t.py::test_a",), "AssertionError", "assert # == #")
CAPSULE = Capsule(
    "why",
    "a" * 40,
    "b" * 40,
    ("python", "-m", "pytest"),
    60.0,
    BoxLimits(),
    CapsuleRecipe("pip install .", "3.11", None, (("PYTHONHASHSEED", "7"),), "0" * 64, 900.0),
    SeenEnvironment("3.11.4", "x86_64", ("attrs==23.1.0",), ("0123456789ab",)),
    ExpectedOutcome("fail", 3, 3, SIGNATURE, (("tree", "0" * 16),)),
    (("test_new.py", "assert False\n"),),
)


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_capsule_is_read_as_it_was_written(word: str) -> None:
    capsule = replace(CAPSULE, command=("echo", word))
    assert capsules.decode_capsule(capsules.encode_capsule(capsule)) == capsule


def test_the_file_has_the_name_of_its_content(tmp_path: Path) -> None:
    place = capsules.write_capsule(CAPSULE, tmp_path / "capsules")
    assert place.stem == CAPSULE.digest == capsules.load_capsule(place).digest
    assert CAPSULE.seed == "7"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("attrs==23.1.0", "attrs==23.2.0"),
        ("3.11.4", "3.11.5"),
        ("b" * 40, "c" * 40),
        ('"pids":512', '"pids":513'),
        ("assert False", "assert True "),
    ],
)
def test_an_altered_capsule_is_refused(old: str, new: str) -> None:
    data = capsules.encode_capsule(CAPSULE).replace(old.encode(), new.encode())
    with pytest.raises(UserError, match="altered"):
        capsules.decode_capsule(data)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"limits": {**asdict(BoxLimits()), "network": True}}, "network"),
        ({"limits": {**asdict(BoxLimits()), "memory": 2**50}}, "limits"),
        ({"timeout": 1e9}, "seconds"),
        ({"commit": "--upload-pack=x"}, "object id"),
        ({"overlay": [["../x", "y"]]}, "outside"),
        ({"overlay": [[".git/hooks/x", "y"]]}, "outside"),
        ({"command": "rm"}, "values"),
        ({"kind": "other"}, "kind"),
    ],
)
def test_a_hostile_capsule_is_refused(change: dict[str, object], reason: str) -> None:
    content = {**asdict(CAPSULE), **change}
    with pytest.raises(UserError, match=reason):
        capsules.decode_capsule(
            json.dumps({"version": 1, "digest": "x", "capsule": content}).encode()
        )


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b"\xff", b"[" * 60_000, b'{"version":1}', b"x" * 70_000, b"1" * 60_000],
)
def test_what_is_no_capsule_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(UserError) as raised:
        capsules.decode_capsule(data)
    assert "\n" not in str(raised.value)


def pack(content: bytes) -> bytes:
    packed = b64encode(zlib.compress(content, 9)).decode()
    return json.dumps({"version": 2, "digest": "x", "packed": packed}).encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pack(b" " * 50_000_000), "too large"),
        (pack(json.dumps({**asdict(CAPSULE), "timeout": 1e9}).encode()), "seconds"),
        (pack(b"[" * 60_000), "no capsule"),
        (pack(json.dumps(asdict(CAPSULE)).encode()), "altered"),
        (b'{"version":2,"packed":"AAAA"}', "unpacked"),
        (b'{"version":2,"packed":"%"}', "no capsule"),
    ],
)
def test_what_is_packed_is_read_under_the_same_limits(data: bytes, reason: str) -> None:
    tracemalloc.start()
    with pytest.raises(UserError, match=reason):
        capsules.decode_capsule(data)
    assert tracemalloc.get_traced_memory()[1] < 8_000_000
    tracemalloc.stop()


def test_a_capsule_with_a_large_test_file_is_packed() -> None:
    tests = "".join(f"def test_{n}():\n    assert total([{n}]) == {n}\n\n\n" for n in range(2500))
    capsule = replace(CAPSULE, overlay=(("tests/test_total.py", tests),))
    data = capsules.encode_capsule(capsule)
    assert len(tests) > 100_000 > capsules.MAX_CAPSULE_BYTES > len(data)
    assert capsules.decode_capsule(data) == capsule


def test_a_capsule_has_a_size() -> None:
    random = "".join(chr(33 + byte % 90) for byte in Random(1).randbytes(70_000))
    with pytest.raises(UserError, match="65,536"):
        capsules.encode_capsule(replace(CAPSULE, command=(random,)))
    with pytest.raises(UserError, match="65,536"):
        capsules.encode_capsule(replace(CAPSULE, command=("x" * 600_000,)))
