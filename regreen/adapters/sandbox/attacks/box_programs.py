"""The attacks of `regreen doctor` on a live box: Python programs that print GOT for whatever they reach.

They use nothing beyond the standard library and run on any Python 3.6+. Outside of a box the harmless ones print
GOT as well, which is how the tests know that they attack something.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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


_SYSCALL_CODE = """
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() in ("aarch64", "arm64")
def call(name, x86, arm, *arguments):
    ctypes.set_errno(0)
    answer = libc.syscall(ctypes.c_long(arm if ARM else x86), *arguments)
    # Any answer but these two means that the kernel looked at the request.
    if answer != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
        print("GOT", name, answer, errno.errorcode.get(ctypes.get_errno()))
"""

_OPEN_CODE = """
import os
def opens(path, flags):
    try:
        os.close(os.open(path, flags))
    except OSError:
        return
    print("GOT", path)
"""

ATTACKS: tuple[Attack, ...] = (
    Attack(
        "fork until it fails",
        "limit on processes",
        """
import os, signal, time
children = []
try:
    for _ in range(400):
        child = os.fork()
        if child == 0:
            time.sleep(30)
            os._exit(0)
        children.append(child)
except OSError:
    pass
if len(children) > 100:
    print("GOT", len(children), "processes")
for child in children:
    os.kill(child, signal.SIGKILL)
""",
        quick=True,
    ),
    Attack(
        "fork bomb",
        "limit on processes, killed at the deadline",
        """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
        ends=("timeout", "oom", "exit"),
        control="never",
        timeout=3.0,
    ),
    Attack(
        "take memory",
        "limit on memory",
        "block = bytearray(400 * 1024 * 1024)\nprint('GOT', len(block))",
        ends=("oom",),
        quick=True,
    ),
    Attack(
        "take memory in a child",
        "limit on the memory of all processes together",
        """
import subprocess, sys
code = subprocess.call([sys.executable, "-c", "bytearray(400 * 1024 * 1024)"])
if code == 0:
    print("GOT 400 MiB")
sys.exit(1)
""",
        ends=("oom",),
    ),
    Attack(
        "take memory in many processes",
        "limit on the memory of all processes together",
        """
import subprocess, sys, time
hog = "import time; block = bytearray(60 * 1024 * 1024); print(1, flush=True); time.sleep(20)"
hogs = [subprocess.Popen([sys.executable, "-c", hog], stdout=subprocess.PIPE) for _ in range(6)]
full = [hog.stdout.readline() for hog in hogs]
time.sleep(0.5)
all_at_once = all(full) and all(hog.poll() is None for hog in hogs)
for hog in hogs:
    hog.kill()
if all_at_once:
    print("GOT 360 MiB")
sys.exit(1)
""",
        ends=("oom",),
    ),
    Attack(
        "take shared memory",
        "limit on memory, shared pages included",
        """
import mmap
block = mmap.mmap(-1, 400 * 1024 * 1024)
for place in range(0, len(block), 4096):
    block[place] = 1
print("GOT", len(block))
""",
        ends=("oom",),
    ),
    Attack(
        "fill every disk",
        "file systems in memory with a size, everything else read-only",
        """
import os
total = 0
files = []
for place in (".", "/work", "/tmp", "/dev/shm", "/home/regreen", "/var/tmp", "/run", "/", "/env", "/dev"):
    try:
        path = os.path.join(place, "regreen-full")
        file = open(path, "wb", buffering=0)
    except OSError:
        continue
    os.unlink(path)
    files.append(file)
    try:
        while total < 200 * 1024 * 1024:
            total += file.write(bytes(1024 * 1024))
    except OSError:
        pass
if total > 100 * 1024 * 1024:
    print("GOT", total)
""",
    ),
    Attack(
        "fill with empty files",
        "limit on files, or on the memory they take",
        """
made = 0
try:
    for made in range(2000000):
        open("/tmp/%d" % made, "w").close()
except OSError:
    pass
if made > 1500000:
    print("GOT", made)
""",
        ends=("exit", "oom", "timeout"),
        control="never",
        timeout=15.0,
    ),
    Attack(
        "print without end",
        "killed at the flood limit, head and tail kept",
        "import os\nwhile True:\n    os.write(1, b'flood ' * 10000)",
        ends=("flood",),
        control="never",
        quick=True,
    ),
    Attack(
        "outlive the deadline",
        "the whole box is killed",
        """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
time.sleep(600)
""",
        ends=("timeout",),
        control="never",
        timeout=2.0,
        quick=True,
    ),
    Attack(
        "leave a daemon behind",
        "the command's end is its own end; the box takes the daemon along",
        """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
""",
        control="never",
    ),
    Attack(
        "kill everything in sight",
        "the process that holds the box is another's, or process 1",
        """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for process in os.listdir("/proc"):
    if process.isdigit() and int(process) != os.getpid():
        for number in (signal.SIGSTOP, signal.SIGKILL):
            try:
                os.kill(int(process), number)
            except OSError:
                pass
""",
        control="never",
    ),
    Attack(
        "reach the host's loopback",
        "no network",
        """
import socket
try:
    socket.create_connection(("127.0.0.1", int(PORT)), timeout=2).close()
    print("GOT the host's loopback")
except OSError:
    pass
""",
        quick=True,
    ),
    Attack(
        "reach the host's abstract sockets",
        "a network namespace of its own",
        """
import socket
link = socket.socket(socket.AF_UNIX)
try:
    link.connect("\\0" + NAME)
    print("GOT an abstract socket")
except OSError:
    pass
""",
        quick=True,
    ),
    Attack(
        "reach other machines",
        "no network, no names",
        """
import os, socket
for address in (("1.1.1.1", 443), ("169.254.169.254", 80), ("172.17.0.1", int(PORT)), ("10.0.2.2", 80)):
    try:
        socket.create_connection(address, timeout=1).close()
        print("GOT", address)
    except OSError:
        pass
if [name for name in os.listdir("/sys/class/net" if os.path.isdir("/sys/class/net") else "/") if name == "eth0"]:
    print("GOT an interface")
try:
    print("GOT", socket.getaddrinfo("example.com", 80))
except OSError:
    pass
""",
        control="never",
    ),
    Attack(
        "reach private addresses from a setup",
        "no network but a filter that resolves names itself",
        """
import os, re, socket
proxy = re.match("http://(.*):(.*)", os.environ.get("HTTP_PROXY", ""))
hosts = ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0", "[::1]", "[::]",
         "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "172.17.0.1", "169.254.169.254",
         "[::ffff:a9fe:a9fe]", "10.0.0.1", "172.31.0.1", "192.168.0.1", "100.64.0.1", "[fe80::1]", "[fd00:ec2::254]", "[ff02::1]"]
for host in hosts:
    try:
        socket.create_connection((host.strip("[]"), int(PORT)), timeout=0.5).close()
        print("GOT", host)
    except OSError:
        pass
    for ask in ("CONNECT {}:{} HTTP/1.1", "GET http://{}:{}/ HTTP/1.1", "GET http://user@{}:{}/ HTTP/1.1"):
        if proxy:
            with socket.create_connection((proxy[1], int(proxy[2])), timeout=5) as link:
                link.sendall((ask.format(host, PORT) + "\\r\\nHost: index.example\\r\\n\\r\\n").encode())
                answer = link.recv(100).decode()
            if not re.match("HTTP/1.1 (403 Private|502 Cannot resolve)", answer):
                print("GOT", ask.format(host, PORT), answer)
""",
        quick=True,
        limits=replace(SMALL_LIMITS, network=True),
    ),
    Attack(
        "reach the hypervisor (AF_VSOCK)",
        "seccomp: four address families",
        """
import socket
for family, kind in ((40, socket.SOCK_STREAM), (38, socket.SOCK_SEQPACKET), (29, socket.SOCK_RAW)):
    try:
        socket.socket(family, kind).close()
        print("GOT a socket of family", family)
    except OSError:
        pass
""",
        quick=True,
    ),
    Attack(
        "read and forge packets",
        "no capability, seccomp",
        """
import socket
for family, kind, protocol in ((17, 3, 768), (2, 3, 1), (2, 3, 255), (10, 3, 58)):
    try:
        socket.socket(family, kind, protocol).close()
        print("GOT a raw socket", family)
    except OSError:
        pass
""",
        control="root",
    ),
    Attack(
        "queue system calls past the filter (io_uring)",
        "seccomp",
        _SYSCALL_CODE
        + "call('io_uring_setup', 425, 425, 8, 0)\ncall('io_uring_enter', 426, 426, -1, 1, 0, 0, 0)",
        quick=True,
    ),
    Attack(
        "take over another process",
        "seccomp",
        _SYSCALL_CODE
        + """
child = os.fork()
if child == 0:
    import time
    time.sleep(5)
    os._exit(0)
call("ptrace", 101, 117, 16, child, 0, 0)
call("process_vm_readv", 310, 270, child, 0, 0, 0, 0, 0)
call("pidfd_getfd", 438, 438, -1, 0, 0)
os.kill(child, 9)
""",
    ),
    Attack(
        "look into process 1 and the parent",
        "another user, or a process that may not be dumped",
        _OPEN_CODE
        + """
for process in {1, os.getppid()} - {0}:
    for name in ("environ", "mem", "maps", "fd/0", "cwd/x"):
        opens("/proc/%d/%s" % (process, name), os.O_RDONLY)
""",
    ),
    Attack(
        "make namespaces",
        "seccomp",
        _SYSCALL_CODE
        + """
for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000, 0x80):
    call("unshare %x" % flag, 272, 97, flag)
child = libc.syscall(ctypes.c_long(220 if ARM else 56), 0x10000000 | 17, 0, 0, 0, 0)
if child == 0:
    os._exit(0)
if child > 0:
    print("GOT a child in a user namespace")
call("clone3", 435, 435, 0, 0)
call("setns", 308, 268, 0, 0)
""",
        control="never",
        quick=True,
    ),
    Attack(
        "mount and change the root",
        "seccomp, no capability",
        _SYSCALL_CODE
        + """
call("mount", 165, 40, b"none", b"/tmp", b"tmpfs", 0, 0)
call("umount2", 166, 39, b"/work", 2)
call("pivot_root", 155, 41, b"/tmp", b"/tmp")
call("chroot", 161, 51, b"/tmp")
call("open_tree", 428, 428, -100, b"/", 1)
call("fsopen", 430, 430, b"tmpfs", 0)
call("mount_setattr", 442, 442, -100, b"/", 0, 0, 0)
call("move_mount", 429, 429, -100, b"/tmp", -100, b"/work", 0)
call("open_by_handle_at", 304, 265, 0, 0, 0)
""",
        control="never",
    ),
    Attack(
        "use the kernel's dangerous corners",
        "seccomp",
        _SYSCALL_CODE
        + """
for name, x86, arm in (("bpf", 321, 280), ("userfaultfd", 323, 282), ("perf_event_open", 298, 241),
                       ("keyctl", 250, 219), ("add_key", 248, 217), ("request_key", 249, 218),
                       ("kcmp", 312, 272), ("syslog", 103, 116), ("lookup_dcookie", 212, 18),
                       ("fanotify_init", 300, 262), ("quotactl", 179, 60), ("move_pages", 279, 239)):
    call(name, x86, arm, 0, 0, 0, 0, 0)
""",
        control="never",
        quick=True,
    ),
    Attack(
        "govern the machine",
        "seccomp, no capability",
        _SYSCALL_CODE
        + """
call("init_module", 175, 105, 0, 0, 0)
call("finit_module", 313, 273, 0, 0, 0)
call("kexec_load", 246, 104, 0, 0, 0, 0)
call("swapoff", 168, 225, b"/nowhere")
call("settimeofday", 164, 170, 0, 0)
call("clock_settime", 227, 112, 0, 0)
call("sethostname", 170, 161, b"owned", 5)
call("acct", 163, 89, b"/tmp/acct")
call("reboot", 169, 142, 0, 0, 0, 0)
""",
        control="never",
    ),
    Attack(
        "become root",
        "no new privileges, no capabilities",
        """
import ctypes, os, subprocess
libc = ctypes.CDLL(None, use_errno=True)
for name in ("setuid", "setgid", "setegid", "seteuid"):
    if getattr(libc, name)(0) == 0:
        print("GOT", name)
status = open("/proc/self/status").read()
for line in status.splitlines():
    if line.startswith("Cap") and int(line.split()[1], 16) and not line.startswith("CapBnd"):
        print("GOT", line)
if "NoNewPrivs:\\t1" not in status:
    print("GOT new privileges")
for command in (["su", "-c", "id"], ["sudo", "-n", "id"], ["mount", "-t", "tmpfs", "x", "/tmp"]):
    try:
        if subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0:
            print("GOT", command)
    except OSError:
        pass
""",
        control="never",
        quick=True,
    ),
    Attack(
        "write outside of the tree",
        "read-only root and host directories",
        _OPEN_CODE
        + """
for place in ("/", "/etc", "/usr", "/usr/bin", "/usr/lib", "/env", "/env/bin", "/var", "/run", "/opt", "/root",
              "/sys", "/proc/sys/kernel", "/dev", "/mnt", "/home", "/etc/ssl/certs"):
    opens(place + "/owned", os.O_WRONLY | os.O_CREAT)
for path in ("/etc/passwd", "/etc/hosts", "/etc/resolv.conf", "/proc/sys/kernel/core_pattern",
             "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe", "/sys/kernel/uevent_helper", "/proc/sys/vm/panic_on_oom"):
    opens(path, os.O_WRONLY)
""",
        control="never",
        quick=True,
    ),
    Attack(
        "open devices",
        "no devices but the harmless ones, no capability to make any",
        _OPEN_CODE
        + """
for name in ("mem", "kmem", "port", "kmsg", "sda", "vda", "nvme0n1", "loop-control", "fuse", "kvm", "net/tun",
             "uinput", "vsock", "vhost-vsock", "mapper/control", "dri/card0", "userfaultfd"):
    opens("/dev/" + name, os.O_RDONLY)
for path in ("/proc/kcore", "/proc/kpageflags", "/dev/console"):
    opens(path, os.O_RDONLY | os.O_NOCTTY)
try:
    os.mknod("/tmp/device", 0o60600, os.makedev(254, 0))
    print("GOT mknod")
except OSError:
    pass
""",
        control="root",
    ),
    Attack(
        "find the host's secrets",
        "nothing of the host's environment or home is there",
        """
import glob, os
for path in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline") + ["/proc/self/mountinfo"]:
    try:
        if TOKEN.encode() in open(path, "rb").read():
            print("GOT the token from", path)
    except OSError:
        pass
for path in ("/etc/shadow", "/root/.ssh", "/root/.docker/config.json", "/root/.netrc", "/root/.pypirc",
             "/root/.gitconfig", "/root/.bash_history", "/home/regreen/.ssh", "/etc/ssl/private"):
    try:
        (os.listdir if os.path.isdir(path) else open)(path)
        print("GOT", path)
    except OSError:
        pass
""",
        quick=True,
    ),
    Attack(
        "find the engine's socket",
        "it is not there",
        """
import os
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
             "/run/systemd/private", "/run/dbus/system_bus_socket", "/var/run/crio/crio.sock"):
    if os.path.exists(path):
        print("GOT", path)
""",
        quick=True,
    ),
    Attack(
        "see the host's processes",
        "a process namespace of its own",
        """
import os
processes = [name for name in os.listdir("/proc") if name.isdigit()]
if len(processes) > 12 or os.getppid() > 1000:
    print("GOT", len(processes), "processes")
""",
        quick=True,
    ),
    Attack(
        "use inherited descriptors",
        "three streams and nothing else",
        """
import os
for name in os.listdir("/proc/self/fd"):
    try:
        target = os.readlink("/proc/self/fd/" + name)
    except OSError:
        continue
    if int(name) > 2 and not target.startswith("/proc/"):
        print("GOT", name, target)
""",
    ),
    Attack(
        "leave its control group",
        "read-only, or not there",
        """
import os
for place, folders, files in os.walk("/sys/fs/cgroup"):
    for name in files:
        if name in ("release_agent", "cgroup.procs", "tasks", "memory.limit_in_bytes", "memory.max", "pids.max"):
            try:
                os.close(os.open(os.path.join(place, name), os.O_WRONLY))
                print("GOT", place, name)
            except OSError:
                pass
    if place.count("/") > 6:
        break
""",
        control="root",
    ),
    Attack(
        "type into a terminal",
        "no terminal",
        """
import fcntl, os
for path in ("/dev/tty", "/dev/console", "/dev/pts/0", "/dev/tty1"):
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY)
    except OSError:
        continue
    try:
        fcntl.ioctl(descriptor, 0x5412, b"x")
        print("GOT", path)
    except OSError:
        pass
""",
        control="never",
    ),
    Attack(
        "run 32-bit and x32 system calls",
        "seccomp: one architecture",
        _SYSCALL_CODE
        + """
if not ARM:
    answer = libc.syscall(ctypes.c_long(0x40000000 + 39))
    if answer > 0:
        print("GOT x32", answer)
call("personality", 135, 92, 0x0040000)
""",
    ),
)
