"""Which system calls a box may make: an allow-list, as a Docker profile and as a BPF program for bubblewrap.

Engines before 25 let io_uring through, those before 23 AF_VSOCK as well (moby#46762, moby#44562): the first runs
system calls that no filter sees, the second reaches the hypervisor's host from a box without a network. So the
list is our own and the same everywhere.
"""

from __future__ import annotations

import json
import platform
import struct
from collections.abc import Iterator, Sequence
from functools import cache

# System calls that a box may make without conditions, and their numbers: a table, nothing else.
#
# Each entry is `name:x86-64:aarch64`, "-" where that architecture has no such call; the numbers are those of the
# kernel's user-space headers. What is not here is refused: see `seccomp.py` for the reasons.

X86_64, AARCH64 = 0, 1

_ALLOWED_CALLS = """
accept:43:202 accept4:288:242 access:21:- alarm:37:- arch_prctl:158:- bind:49:200 brk:12:214
cachestat:451:451 capget:125:90 capset:126:91 chdir:80:49 chmod:90:- chown:92:-
clock_getres:229:114 clock_gettime:228:113 clock_nanosleep:230:115 close:3:57
close_range:436:436 connect:42:203 copy_file_range:326:285 creat:85:- dup:32:23 dup2:33:-
dup3:292:24 epoll_create:213:- epoll_create1:291:20 epoll_ctl:233:21 epoll_pwait:281:22
epoll_pwait2:441:441 epoll_wait:232:- eventfd:284:- eventfd2:290:19 execve:59:221
execveat:322:281 exit:60:93 exit_group:231:94 faccessat:269:48 faccessat2:439:439
fadvise64:221:223 fallocate:285:47 fchdir:81:50 fchmod:91:52 fchmodat:268:53 fchmodat2:452:452
fchown:93:55 fchownat:260:54 fcntl:72:25 fdatasync:75:83 fgetxattr:193:10 flistxattr:196:13
flock:73:32 fork:57:- fremovexattr:199:16 fsetxattr:190:7 fstat:5:80 fstatfs:138:44 fsync:74:82
ftruncate:77:46 futex:202:98 futex_requeue:456:456 futex_wait:455:455 futex_waitv:449:449
futex_wake:454:454 futimesat:261:- get_robust_list:274:100 get_thread_area:211:- getcpu:309:168
getcwd:79:17 getdents:78:- getdents64:217:61 getegid:108:177 geteuid:107:175 getgid:104:176
getgroups:115:158 getitimer:36:102 getpeername:52:205 getpgid:121:155 getpgrp:111:-
getpid:39:172 getppid:110:173 getpriority:140:141 getrandom:318:278 getresgid:120:150
getresuid:118:148 getrlimit:97:163 getrusage:98:165 getsid:124:156 getsockname:51:204
getsockopt:55:209 gettid:186:178 gettimeofday:96:169 getuid:102:174 getxattr:191:8
inotify_add_watch:254:27 inotify_init:253:- inotify_init1:294:26 inotify_rm_watch:255:28
io_cancel:210:3 io_destroy:207:1 io_getevents:208:4 io_pgetevents:333:292 io_setup:206:0
io_submit:209:2 ioctl:16:29 ioprio_get:252:31 ioprio_set:251:30 kill:62:129
landlock_add_rule:445:445 landlock_create_ruleset:444:444 landlock_restrict_self:446:446
lchown:94:- lgetxattr:192:9 link:86:- linkat:265:37 listen:50:201 listxattr:194:11
llistxattr:195:12 lremovexattr:198:15 lseek:8:62 lsetxattr:189:6 lstat:6:- madvise:28:233
map_shadow_stack:453:453 membarrier:324:283 memfd_create:319:279 mincore:27:232 mkdir:83:-
mkdirat:258:34 mknod:133:- mknodat:259:33 mlock:149:228 mlock2:325:284 mlockall:151:230
mmap:9:222 mprotect:10:226 mq_getsetattr:245:185 mq_notify:244:184 mq_open:240:180
mq_timedreceive:243:183 mq_timedsend:242:182 mq_unlink:241:181 mremap:25:216 mseal:462:462
msgctl:71:187 msgget:68:186 msgrcv:70:188 msgsnd:69:189 msync:26:227 munlock:150:229
munlockall:152:231 munmap:11:215 nanosleep:35:101 newfstatat:262:79 open:2:- openat:257:56
openat2:437:437 pause:34:- pidfd_open:434:434 pidfd_send_signal:424:424 pipe:22:- pipe2:293:59
pkey_alloc:330:289 pkey_free:331:290 pkey_mprotect:329:288 poll:7:- ppoll:271:73 prctl:157:167
pread64:17:67 preadv:295:69 preadv2:327:286 prlimit64:302:261 pselect6:270:72 pwrite64:18:68
pwritev:296:70 pwritev2:328:287 read:0:63 readahead:187:213 readlink:89:- readlinkat:267:78
readv:19:65 recvfrom:45:207 recvmmsg:299:243 recvmsg:47:212 remap_file_pages:216:234
removexattr:197:14 rename:82:- renameat:264:38 renameat2:316:276 restart_syscall:219:128
rmdir:84:- rseq:334:293 rt_sigaction:13:134 rt_sigpending:127:136 rt_sigprocmask:14:135
rt_sigqueueinfo:129:138 rt_sigreturn:15:139 rt_sigsuspend:130:133 rt_sigtimedwait:128:137
rt_tgsigqueueinfo:297:240 sched_get_priority_max:146:125 sched_get_priority_min:147:126
sched_getaffinity:204:123 sched_getattr:315:275 sched_getparam:143:121
sched_getscheduler:145:120 sched_rr_get_interval:148:127 sched_setaffinity:203:122
sched_setattr:314:274 sched_setparam:142:118 sched_setscheduler:144:119 sched_yield:24:124
seccomp:317:277 select:23:- semctl:66:191 semget:64:190 semop:65:193 semtimedop:220:192
sendfile:40:71 sendmmsg:307:269 sendmsg:46:211 sendto:44:206 set_robust_list:273:99
set_thread_area:205:- set_tid_address:218:96 setfsgid:123:152 setfsuid:122:151 setgid:106:144
setgroups:116:159 setitimer:38:103 setpgid:109:154 setpriority:141:140 setregid:114:143
setresgid:119:149 setresuid:117:147 setreuid:113:145 setrlimit:160:164 setsid:112:157
setsockopt:54:208 setuid:105:146 setxattr:188:5 shmat:30:196 shmctl:31:195 shmdt:67:197
shmget:29:194 shutdown:48:210 sigaltstack:131:132 signalfd:282:- signalfd4:289:74
splice:275:76 stat:4:- statfs:137:43 statx:332:291 symlink:88:-
symlinkat:266:36 sync:162:81 sync_file_range:277:84 syncfs:306:267 sysinfo:99:179 tee:276:77
tgkill:234:131 time:201:- timer_create:222:107 timer_delete:226:111 timer_getoverrun:225:109
timer_gettime:224:108 timer_settime:223:110 timerfd_create:283:85 timerfd_gettime:287:87
timerfd_settime:286:86 times:100:153 tkill:200:130 truncate:76:45 umask:95:166 uname:63:160
unlink:87:- unlinkat:263:35 utime:132:- utimensat:280:88 utimes:235:- vfork:58:- vmsplice:278:75
wait4:61:260 waitid:247:95 write:1:64 writev:20:66
"""


def allowed_names() -> tuple[str, ...]:
    """Every call that is allowed without conditions."""
    return tuple(entry.split(":")[0] for entry in _ALLOWED_CALLS.split())


def allowed_numbers(architecture: int, refused: Sequence[str] = ()) -> tuple[int, ...]:
    """The numbers of those calls on one architecture but for the refused ones, ascending."""
    entries = [entry.split(":") for entry in _ALLOWED_CALLS.split()]
    numbers = (entry[1 + architecture] for entry in entries if entry[0] not in refused)
    return tuple(sorted(int(number) for number in numbers if number != "-"))


EPERM, ENOSYS = 1, 38

# Calls that programs may try, and why no box may make them. They fail with EPERM; calls that are newer than
# this list fail with ENOSYS where the backend can say so, so that programs fall back to what they used before.
REFUSED_CALLS: dict[str, str] = {
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
_SOCKET_FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
# `socketpair` makes the socket before it finds that most families have no pairs: only the one that everybody uses.
_SOCKETPAIR_FAMILIES = (_SOCKET_FAMILIES["AF_UNIX"],)
# `clone` makes threads and processes, but no namespace: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID,
# NEWNET. `clone3` hides its flags in memory, where no filter can look: ENOSYS makes every libc use `clone`.
_NAMESPACE_FLAGS = 0x7E020000
# The default, 32-bit and no-randomisation personalities, and asking for the present one.
_ALLOWED_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)


@cache
def docker_profile() -> str:
    """The profile as the JSON document that Docker's `seccomp=` option takes."""
    rules: list[dict[str, object]] = [
        {"names": allowed_names(), "action": "SCMP_ACT_ALLOW"},
        {"names": tuple(REFUSED_CALLS), "action": "SCMP_ACT_ERRNO", "errnoRet": EPERM},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS},
        _docker_rule("clone", "SCMP_CMP_MASKED_EQ", _NAMESPACE_FLAGS),
    ]
    rules += [_docker_rule("socket", "SCMP_CMP_EQ", family) for family in _SOCKET_FAMILIES.values()]
    rules += [_docker_rule("socketpair", "SCMP_CMP_EQ", family) for family in _SOCKETPAIR_FAMILIES]
    rules += [_docker_rule("personality", "SCMP_CMP_EQ", value) for value in _ALLOWED_PERSONALITIES]
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

_AUDIT_ARCHITECTURES = {X86_64: 0xC000003E, AARCH64: 0xC00000B7}
_CONDITIONAL_CALLS = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "personality": (135, 92),
}
_NEWEST_CALL = 462  # calls beyond it are not known here
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_GREATER, _IF_AT_LEAST = 0x15, 0x25, 0x35
_NUMBER, _ARCHITECTURE, _ARGUMENT, _ARGUMENT_HIGH = 0, 4, 16, 20
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000

Instruction = tuple[int, int, int, int]


def bpf_program(machine: str | None = None, refused: Sequence[str] = ()) -> bytes:
    """The filter for this machine's architecture, or the one named as `uname -m` does.

    Args:
        machine: the architecture.
        refused: calls that are refused as well.

    Raises:
        ValueError: there is no table for it.
    """
    name = machine or platform.machine()
    architectures = {"x86_64": X86_64, "amd64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}
    if name not in architectures:
        message = f"no table of system calls for {name!r}"
        raise ValueError(message)
    program = tuple(_generate_program(architectures[name], refused))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _generate_program(architecture: int, refused: Sequence[str]) -> Iterator[Instruction]:
    yield _LOAD, 0, 0, _ARCHITECTURE
    yield _IF_EQUAL, 1, 0, _AUDIT_ARCHITECTURES[architecture]
    yield _RETURN, 0, 0, _KILL
    yield _LOAD, 0, 0, _NUMBER
    yield from _allow_call_with_argument(
        _CONDITIONAL_CALLS["socket"][architecture], tuple(_SOCKET_FAMILIES.values())
    )
    yield from _allow_call_with_argument(
        _CONDITIONAL_CALLS["socketpair"][architecture], _SOCKETPAIR_FAMILIES
    )
    yield from _allow_call_with_argument(
        _CONDITIONAL_CALLS["personality"][architecture], _ALLOWED_PERSONALITIES
    )
    # clone: the flags' lower half, without any namespace
    yield _IF_EQUAL, 0, 5, _CONDITIONAL_CALLS["clone"][architecture]
    yield _LOAD, 0, 0, _ARGUMENT
    yield _AND, 0, 0, _NAMESPACE_FLAGS
    yield _IF_EQUAL, 0, 1, 0
    yield _RETURN, 0, 0, _ALLOW
    yield _RETURN, 0, 0, _ERRNO | EPERM
    yield _IF_EQUAL, 0, 1, _CONDITIONAL_CALLS["clone3"][architecture]
    yield _RETURN, 0, 0, _ERRNO | ENOSYS
    for first, last in _number_ranges(allowed_numbers(architecture, refused)):
        yield _IF_GREATER, 3, 0, last
        yield _IF_AT_LEAST, 0, 1, first
        yield _RETURN, 0, 0, _ALLOW
        yield _RETURN, 0, 0, _ERRNO | EPERM
    # x32's numbers start at 2**30, and land here as well
    yield _IF_GREATER, 0, 1, _NEWEST_CALL
    yield _RETURN, 0, 0, _ERRNO | ENOSYS
    yield _RETURN, 0, 0, _ERRNO | EPERM


def _allow_call_with_argument(number: int, values: tuple[int, ...]) -> Iterator[Instruction]:
    """Allow one call when the lower half of its first argument is one of `values`."""
    count = len(values)
    yield _IF_EQUAL, 0, count + 3, number
    yield _LOAD, 0, 0, _ARGUMENT
    for index, value in enumerate(values):
        yield _IF_EQUAL, count - index, 0, value
    yield _RETURN, 0, 0, _ERRNO | EPERM
    yield _RETURN, 0, 0, _ALLOW


def _number_ranges(numbers: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
