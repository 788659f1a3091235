"""The filter of system calls: the same judgement as a Docker profile and as a BPF program."""

from __future__ import annotations

import functools
import json
import struct

import pytest

from regreen.adapters.sandbox.seccomp import (
    AARCH64,
    REFUSED_CALLS,
    X86_64,
    allowed_names,
    allowed_numbers,
    bpf_program,
    docker_profile,
)

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


@functools.cache
def decoded(machine: str) -> list[tuple[int, int, int, int]]:
    program = bpf_program(machine)
    return [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]


def judged(machine: str, number: int, argument: int = 0, architecture: int | None = None) -> int:
    """Run the program as the kernel does."""
    program = decoded(machine)
    data = struct.pack("=IIQQ", number, architecture or MACHINES[machine], 0, argument)
    place = accumulator = 0
    while True:
        code, if_true, if_false, value = program[place]
        place += 1
        match code:
            case 0x20:
                accumulator = struct.unpack_from("=I", data, value)[0]
            case 0x54:
                accumulator &= value
            case 0x15:
                place += if_true if accumulator == value else if_false
            case 0x25:
                place += if_true if accumulator > value else if_false
            case 0x35:
                place += if_true if accumulator >= value else if_false
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(code)


@pytest.mark.parametrize(("machine", "table"), [("x86_64", X86_64), ("aarch64", AARCH64)])
def test_every_number_is_judged_as_the_table_says(machine: str, table: int) -> None:
    allowed = set(allowed_numbers(table))
    special = {"x86_64": {56, 435, 41, 53, 135}, "aarch64": {220, 435, 198, 199, 92}}[machine]
    for number in range(463):
        if number not in special:
            assert judged(machine, number) == (ALLOW if number in allowed else EPERM), number
    assert {judged(machine, number) for number in (463, 600, 0x40000000, 0xFFFFFFFF)} == {ENOSYS}


@pytest.mark.parametrize(
    ("machine", "clone", "socket", "personality"),
    [("x86_64", 56, 41, 135), ("aarch64", 220, 198, 92)],
)
def test_some_calls_depend_on_their_argument(
    machine: str, clone: int, socket: int, personality: int
) -> None:
    assert judged(machine, clone, 17) == ALLOW
    assert judged(machine, clone, 0x3D0F00) == ALLOW  # a thread
    assert judged(machine, clone, 0x10000000 | 17) == EPERM  # a user namespace
    assert judged(machine, clone, 0x40000000) == EPERM  # a network namespace
    assert judged(machine, 435) == ENOSYS  # clone3
    assert [judged(machine, socket, family) for family in (1, 2, 10, 16)] == [ALLOW] * 4
    assert [judged(machine, socket, family) for family in (0, 17, 29, 38, 40, 44)] == [EPERM] * 6
    assert judged(machine, personality, 0xFFFFFFFF) == ALLOW
    assert judged(machine, personality, 0x0040000) == EPERM


def test_another_architecture_is_killed() -> None:
    assert judged("x86_64", 1, architecture=0x40000003) == KILL
    assert judged("aarch64", 64, architecture=MACHINES["x86_64"]) == KILL


def test_a_machine_without_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="riscv64"):
        bpf_program("riscv64")


def test_the_docker_profile_says_the_same() -> None:
    profile = json.loads(docker_profile())
    rules = {
        name: rule for rule in profile["syscalls"] for name in rule["names"] if "args" not in rule
    }
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {name for name, rule in rules.items() if rule["action"] == "SCMP_ACT_ALLOW"} == set(
        allowed_names()
    )
    assert {name for name, rule in rules.items() if rule["action"] != "SCMP_ACT_ALLOW"} == {
        *REFUSED_CALLS,
        "clone3",
    }


def test_nothing_is_both_allowed_and_refused_and_each_refusal_has_its_reason() -> None:
    assert not set(allowed_names()) & set(REFUSED_CALLS)
    assert all(reason.strip() for reason in REFUSED_CALLS.values())
    for name in ("ptrace", "io_uring_setup", "mount", "bpf", "keyctl", "unshare"):
        assert name in REFUSED_CALLS
