"""The attacks of `regreen doctor` on a live box: programs that print GOT for whatever they reach (`programs/`).

Outside of a box the harmless ones print GOT as well, which is how the tests know that they attack something.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Literal

from regreen.domain.models import BoxLimits, RunEnding

MiB = 1024**2
SMALL_LIMITS = BoxLimits(
    memory=192 * MiB, disk=16 * MiB, tmp=8 * MiB, pids=64, cpus=1.0, output=16384, flood=4 * MiB
)

Harm = Literal["harmless", "root", "never"]


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack, and the end that it has in a box that holds.

    Attributes:
        name: what a person reads.
        holds: what keeps it in, for the report.
        program: the source; `TOKEN`, `PORT` and `NAME` are variables that the attacker is given.
        ends: the ways a holding box may end it, without a GOT in its output.
        control: whether the program may run outside as its own positive control: always, as root, or never.
        quick: part of the self-test at start.
        limits: what the box may use.
    """

    name: str
    holds: str
    program: str
    ends: tuple[RunEnding, ...] = ("exit",)
    control: Harm = "harmless"
    timeout: float = 20.0
    quick: bool = False
    limits: BoxLimits = field(default=SMALL_LIMITS)


PROGRAMS = files("regreen.adapters.sandbox.attacks").joinpath("programs")
ATTACKS_SOURCE = PROGRAMS.joinpath("box_attacks.py").read_text("utf-8")


def _call_attack(name: str) -> str:
    return f"{ATTACKS_SOURCE}\n\n{name}()\n"


ATTACKS: tuple[Attack, ...] = (
    Attack(
        "fork until it fails",
        "limit on processes",
        _call_attack("fork_until_it_fails"),
        quick=True,
    ),
    Attack(
        "fork bomb",
        "limit on processes, killed at the deadline",
        _call_attack("fork_bomb"),
        ends=("timeout", "oom", "exit"),
        control="never",
        timeout=3.0,
    ),
    Attack(
        "take memory",
        "limit on memory",
        _call_attack("take_memory"),
        ends=("oom",),
        quick=True,
    ),
    Attack(
        "take memory in a child",
        "limit on the memory of all processes together",
        _call_attack("take_memory_in_a_child"),
        ends=("oom",),
    ),
    Attack(
        "take memory in many processes",
        "limit on the memory of all processes together",
        _call_attack("take_memory_in_many_processes"),
        ends=("oom",),
    ),
    Attack(
        "take shared memory",
        "limit on memory, shared pages included",
        _call_attack("take_shared_memory"),
        ends=("oom",),
    ),
    Attack(
        "fill every disk",
        "file systems in memory with a size, everything else read-only",
        _call_attack("fill_every_disk"),
    ),
    Attack(
        "fill with empty files",
        "limit on files, or on the memory they take",
        _call_attack("fill_with_empty_files"),
        ends=("exit", "oom", "timeout"),
        control="never",
        timeout=15.0,
    ),
    Attack(
        "print without end",
        "killed at the flood limit, head and tail kept",
        _call_attack("print_without_end"),
        ends=("flood",),
        control="never",
        quick=True,
    ),
    Attack(
        "outlive the deadline",
        "the whole box is killed",
        _call_attack("outlive_the_deadline"),
        ends=("timeout",),
        control="never",
        timeout=2.0,
        quick=True,
    ),
    Attack(
        "leave a daemon behind",
        "the command's end is its own end; the box takes the daemon along",
        _call_attack("leave_a_daemon_behind"),
        control="never",
    ),
    Attack(
        "kill everything in sight",
        "the process that holds the box is another's, or process 1",
        _call_attack("kill_everything_in_sight"),
        control="never",
    ),
    Attack(
        "reach the host's loopback",
        "no network",
        _call_attack("reach_the_host_loopback"),
        quick=True,
    ),
    Attack(
        "reach the host's abstract sockets",
        "a network namespace of its own",
        _call_attack("reach_the_host_abstract_sockets"),
        quick=True,
    ),
    Attack(
        "reach other machines",
        "no network, no names",
        _call_attack("reach_other_machines"),
        control="never",
    ),
    Attack(
        "reach private addresses from a setup",
        "no network but a filter that resolves names itself",
        _call_attack("reach_private_addresses_from_a_setup"),
        quick=True,
        limits=replace(SMALL_LIMITS, network=True),
    ),
    Attack(
        "reach the hypervisor (AF_VSOCK)",
        "seccomp: four address families",
        _call_attack("reach_the_hypervisor_af_vsock"),
        quick=True,
    ),
    Attack(
        "read and forge packets",
        "no capability, seccomp",
        _call_attack("read_and_forge_packets"),
        control="root",
    ),
    Attack(
        "queue system calls past the filter (io_uring)",
        "seccomp",
        _call_attack("queue_system_calls_past_the_filter_io_uring"),
        quick=True,
    ),
    Attack(
        "take over another process",
        "seccomp",
        _call_attack("take_over_another_process"),
    ),
    Attack(
        "look into process 1 and the parent",
        "another user, or a process that may not be dumped",
        _call_attack("look_into_process_1_and_the_parent"),
    ),
    Attack(
        "make namespaces",
        "seccomp",
        _call_attack("make_namespaces"),
        control="never",
        quick=True,
    ),
    Attack(
        "mount and change the root",
        "seccomp, no capability",
        _call_attack("mount_and_change_the_root"),
        control="never",
    ),
    Attack(
        "use the kernel's dangerous corners",
        "seccomp",
        _call_attack("use_the_kernel_dangerous_corners"),
        control="never",
        quick=True,
    ),
    Attack(
        "govern the machine",
        "seccomp, no capability",
        _call_attack("govern_the_machine"),
        control="never",
    ),
    Attack(
        "become root",
        "no new privileges, no capabilities",
        _call_attack("become_root"),
        control="never",
        quick=True,
    ),
    Attack(
        "write outside of the tree",
        "read-only root and host directories",
        _call_attack("write_outside_of_the_tree"),
        control="never",
        quick=True,
    ),
    Attack(
        "open devices",
        "no devices but the harmless ones, no capability to make any",
        _call_attack("open_devices"),
        control="root",
    ),
    Attack(
        "find the host's secrets",
        "nothing of the host's environment or home is there",
        _call_attack("find_the_host_secrets"),
        quick=True,
    ),
    Attack(
        "find the engine's socket",
        "it is not there",
        _call_attack("find_the_engine_socket"),
        quick=True,
    ),
    Attack(
        "see the host's processes",
        "a process namespace of its own",
        _call_attack("see_the_host_processes"),
        quick=True,
    ),
    Attack(
        "use inherited descriptors",
        "three streams and nothing else",
        _call_attack("use_inherited_descriptors"),
    ),
    Attack(
        "leave its control group",
        "read-only, or not there",
        _call_attack("leave_its_control_group"),
        control="root",
    ),
    Attack(
        "type into a terminal",
        "no terminal",
        _call_attack("type_into_a_terminal"),
        control="never",
    ),
    Attack(
        "run 32-bit and x32 system calls",
        "seccomp: one architecture",
        _call_attack("run_32_bit_and_x32_system_calls"),
    ),
)
