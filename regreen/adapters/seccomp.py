"""Which system calls a box may make: an allow-list, as a Docker profile and as a BPF program for bubblewrap.

Engines before 25 let io_uring through, those before 23 AF_VSOCK as well (moby#46762, moby#44562): the first runs
system calls that no filter sees, the second reaches the hypervisor's host from a box without a network. So the
list is our own and the same everywhere.
"""

from __future__ import annotations

import json
import platform
import struct
from collections.abc import Iterator
from functools import cache

from regreen.adapters.syscalls import AARCH64, X86_64, allowed_names, allowed_numbers

EPERM, ENOSYS = 1, 38

# Calls that programs know and may try, and why no box gets them. They fail with EPERM; calls that are newer than
# this list fail with ENOSYS where the backend can say so, so that programs fall back to what they used before.
REFUSED: dict[str, str] = {
    # into other processes: a box's commands share its user with whatever they left running
    "ptrace": "takes over another process of the box, the way round every other check",
    "process_vm_readv": "reads another process's memory",
    "process_vm_writev": "writes another process's memory",
    "process_madvise": "steers another process's memory",
    "kcmp": "compares kernel pointers of two processes",
    "pidfd_getfd": "takes file descriptors out of another process",
    "process_mrelease": "tears down another process's memory",
    # past the filter, or large and new in the kernel
    "io_uring_setup": "queues system calls that no filter sees; the kernel's most exploited part of late",
    "io_uring_enter": "as io_uring_setup",
    "io_uring_register": "as io_uring_setup",
    "bpf": "loads programs into the kernel",
    "perf_event_open": "a large surface, and measures other processes",
    "userfaultfd": "stops the kernel in the middle of a copy: the usual aid of kernel exploits",
    "memfd_secret": "memory that the kernel can neither move nor account for simply",
    "lookup_dcookie": "names of directory entries out of the kernel's profiler",
    "modify_ldt": "builds segment descriptors; only 16-bit emulators need it",
    "iopl": "direct access to ports",
    "ioperm": "direct access to ports",
    # namespaces, mounts and roots: the walls of the box
    "unshare": "a new user namespace gives every capability inside, and with it most of the kernel",
    "setns": "moves into another namespace",
    "mount": "changes what the box sees",
    "umount2": "uncovers what a mount hides",
    "mount_setattr": "makes a read-only mount writable",
    "move_mount": "as mount",
    "open_tree": "as mount",
    "fsopen": "as mount",
    "fsconfig": "as mount",
    "fsmount": "as mount",
    "fspick": "as mount",
    "pivot_root": "changes the root",
    "chroot": "changes the root, with well-known ways out",
    "open_by_handle_at": "opens files by inode number, past any mount (CVE-2014-3519)",
    "name_to_handle_at": "makes the handles for it",
    # the machine as a whole
    "add_key": "the kernel's key rings are shared between boxes",
    "request_key": "as add_key, and starts a program on the host",
    "keyctl": "as add_key",
    "syslog": "the kernel's log tells addresses",
    "reboot": "stops the machine",
    "kexec_load": "another kernel",
    "kexec_file_load": "another kernel",
    "init_module": "loads a kernel module",
    "finit_module": "loads a kernel module",
    "delete_module": "removes a kernel module",
    "swapon": "the machine's swap",
    "swapoff": "the machine's swap",
    "acct": "the machine's process accounting",
    "quotactl": "the machine's disk quotas",
    "quotactl_fd": "the machine's disk quotas",
    "settimeofday": "the machine's clock",
    "clock_settime": "the machine's clock",
    "clock_adjtime": "the machine's clock",
    "adjtimex": "the machine's clock",
    "sethostname": "no box has a reason to",
    "setdomainname": "no box has a reason to",
    "vhangup": "hangs up a terminal",
    "fanotify_init": "watches, and can hold up, file access of others",
    "fanotify_mark": "as fanotify_init",
    "mbind": "memory placement: hurts neighbours, and was a way to exploits",
    "set_mempolicy": "as mbind",
    "set_mempolicy_home_node": "as mbind",
    "get_mempolicy": "as mbind",
    "migrate_pages": "as mbind",
    "move_pages": "as mbind",
    # long dead, still compiled in
    "uselib": "obsolete loader of libraries",
    "ustat": "obsolete",
    "sysfs": "obsolete",
    "nfsservctl": "obsolete",
}

# The address families of `socket`: within the box, the internet (there is none in a box, one in a setup), and
# netlink, which glibc asks for the list of interfaces. AF_VSOCK, AF_ALG, AF_PACKET and forty more stay out.
_FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
# `socketpair` makes the socket before it finds that most families have no pairs: only the one that everybody uses.
_PAIRED = (_FAMILIES["AF_UNIX"],)
# `clone` makes threads and processes, but no namespace: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID,
# NEWNET. `clone3` hides its flags in memory, where no filter can look: ENOSYS makes every libc use `clone`.
_NAMESPACES = 0x7E020000
# The default, 32-bit and no-randomisation personalities, and asking for the present one.
_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)


@cache
def docker_profile() -> str:
    """The profile as the JSON document that Docker's `seccomp=` option takes."""
    rules: list[dict[str, object]] = [
        {"names": allowed_names(), "action": "SCMP_ACT_ALLOW"},
        {"names": tuple(REFUSED), "action": "SCMP_ACT_ERRNO", "errnoRet": EPERM},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS},
        _docker_rule("clone", "SCMP_CMP_MASKED_EQ", _NAMESPACES),
    ]
    rules += [_docker_rule("socket", "SCMP_CMP_EQ", family) for family in _FAMILIES.values()]
    rules += [_docker_rule("socketpair", "SCMP_CMP_EQ", family) for family in _PAIRED]
    rules += [_docker_rule("personality", "SCMP_CMP_EQ", value) for value in _PERSONALITIES]
    return json.dumps(
        {
            "defaultAction": "SCMP_ACT_ERRNO",
            "defaultErrnoRet": ENOSYS,
            # One entry each and no sub-architecture: 32-bit and x32 calls have other numbers and little testing.
            "archMap": [
                {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
                {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
            ],
            "syscalls": rules,
        }
    )


def _docker_rule(name: str, op: str, value: int) -> dict[str, object]:
    return {
        "names": [name],
        "action": "SCMP_ACT_ALLOW",
        "args": [{"index": 0, "value": value, "valueTwo": 0, "op": op}],
    }


# -- the same for bubblewrap: classic BPF, as seccomp(2) takes it -----------------------------------------------------

_AUDIT = {X86_64: 0xC000003E, AARCH64: 0xC00000B7}
_SPECIAL = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "personality": (135, 92),
}
_NEWEST = 462  # calls beyond it are not known here
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_GREATER, _IF_AT_LEAST = 0x15, 0x25, 0x35
_NUMBER, _ARCHITECTURE, _ARGUMENT, _ARGUMENT_HIGH = 0, 4, 16, 20
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000

Instruction = tuple[int, int, int, int]


def bpf_program(machine: str | None = None) -> bytes:
    """The filter for this machine's architecture, or the one named as `uname -m` does.

    Raises:
        ValueError: there is no table for it.
    """
    name = machine or platform.machine()
    architectures = {"x86_64": X86_64, "amd64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}
    if name not in architectures:
        message = f"no table of system calls for {name!r}"
        raise ValueError(message)
    program = tuple(_program(architectures[name]))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _program(architecture: int) -> Iterator[Instruction]:
    yield _LOAD, 0, 0, _ARCHITECTURE
    yield _IF_EQUAL, 1, 0, _AUDIT[architecture]
    yield _RETURN, 0, 0, _KILL
    yield _LOAD, 0, 0, _NUMBER
    yield from _with_argument(_SPECIAL["socket"][architecture], tuple(_FAMILIES.values()))
    yield from _with_argument(_SPECIAL["socketpair"][architecture], _PAIRED)
    yield from _with_argument(_SPECIAL["personality"][architecture], _PERSONALITIES)
    # clone: the flags' lower half, without any namespace
    yield _IF_EQUAL, 0, 5, _SPECIAL["clone"][architecture]
    yield _LOAD, 0, 0, _ARGUMENT
    yield _AND, 0, 0, _NAMESPACES
    yield _IF_EQUAL, 0, 1, 0
    yield _RETURN, 0, 0, _ALLOW
    yield _RETURN, 0, 0, _ERRNO | EPERM
    yield _IF_EQUAL, 0, 1, _SPECIAL["clone3"][architecture]
    yield _RETURN, 0, 0, _ERRNO | ENOSYS
    for first, last in _ranges(allowed_numbers(architecture)):
        yield _IF_GREATER, 3, 0, last
        yield _IF_AT_LEAST, 0, 1, first
        yield _RETURN, 0, 0, _ALLOW
        yield _RETURN, 0, 0, _ERRNO | EPERM
    # x32's numbers start at 2**30, and land here as well
    yield _IF_GREATER, 0, 1, _NEWEST
    yield _RETURN, 0, 0, _ERRNO | ENOSYS
    yield _RETURN, 0, 0, _ERRNO | EPERM


def _with_argument(number: int, values: tuple[int, ...]) -> Iterator[Instruction]:
    """Allow one call when the lower half of its first argument is one of `values`."""
    count = len(values)
    yield _IF_EQUAL, 0, count + 3, number
    yield _LOAD, 0, 0, _ARGUMENT
    for index, value in enumerate(values):
        yield _IF_EQUAL, count - index, 0, value
    yield _RETURN, 0, 0, _ERRNO | EPERM
    yield _RETURN, 0, 0, _ALLOW


def _ranges(numbers: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
