"""The attacks on a live box: each function prints GOT for whatever it reaches.

One is called in a process of its own. They use nothing beyond the standard library, which each imports for itself, and
run on any Python 3.6+. `TOKEN`, `PORT` and `NAME` are the bait, set before this text runs.
"""

TOKEN = globals().get("TOKEN", "")
PORT = globals().get("PORT", 0)
NAME = globals().get("NAME", "")


class System:
    """The system calls, by number."""

    def __init__(self):
        import ctypes
        import errno
        import platform

        self._ctypes, self._errno = ctypes, errno
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.is_arm = platform.machine() in ("aarch64", "arm64")

    def request(self, x86, arm, *arguments):
        return self.libc.syscall(self._ctypes.c_long(arm if self.is_arm else x86), *arguments)

    def call(self, name, x86, arm, *arguments):
        self._ctypes.set_errno(0)
        answer = self.request(x86, arm, *arguments)
        # Any answer but these two means that the kernel looked at the request.
        if answer != -1 or self._ctypes.get_errno() not in (self._errno.EPERM, self._errno.ENOSYS):
            print("GOT", name, answer, self._errno.errorcode.get(self._ctypes.get_errno()))


def open_path(path, flags):
    import os

    try:
        os.close(os.open(path, flags))
    except OSError:
        return
    print("GOT", path)


def fork_until_it_fails():
    """Try to fork until it fails."""
    import os
    import signal
    import time

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


def fork_bomb():
    """Try to fork bomb."""
    import os

    while True:
        try:
            os.fork()
        except OSError:
            pass


def take_memory():
    """Try to take memory."""
    block = bytearray(400 * 1024 * 1024)
    print("GOT", len(block))


def take_memory_in_a_child():
    """Try to take memory in a child."""
    import subprocess
    import sys

    code = subprocess.call([sys.executable, "-c", "bytearray(400 * 1024 * 1024)"])
    if code == 0:
        print("GOT 400 MiB")
    sys.exit(1)


def take_memory_in_many_processes():
    """Try to take memory in many processes."""
    import subprocess
    import sys
    import time

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


def take_shared_memory():
    """Try to take shared memory."""
    import mmap

    block = mmap.mmap(-1, 400 * 1024 * 1024)
    for place in range(0, len(block), 4096):
        block[place] = 1
    print("GOT", len(block))


def fill_every_disk():
    """Try to fill every disk."""
    import os

    total = 0
    files = []
    for place in (
        ".",
        "/work",
        "/tmp",
        "/dev/shm",
        "/home/regreen",
        "/var/tmp",
        "/run",
        "/",
        "/env",
        "/dev",
    ):
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


def fill_with_empty_files():
    """Try to fill with empty files."""
    made = 0
    try:
        for made in range(2000000):
            open("/tmp/%d" % made, "w").close()
    except OSError:
        pass
    if made > 1500000:
        print("GOT", made)


def print_without_end():
    """Try to print without end."""
    import os

    while True:
        os.write(1, b"flood " * 10000)


def outlive_the_deadline():
    """Try to outlive the deadline."""
    import os
    import signal
    import time

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
    time.sleep(600)


def leave_a_daemon_behind():
    """Try to leave a daemon behind."""
    import os
    import time

    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)


def kill_everything_in_sight():
    """Try to kill everything in sight."""
    import os
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for process in os.listdir("/proc"):
        if process.isdigit() and int(process) != os.getpid():
            for number in (signal.SIGSTOP, signal.SIGKILL):
                try:
                    os.kill(int(process), number)
                except OSError:
                    pass


def reach_the_host_loopback():
    """Try to reach the host's loopback."""
    import socket

    try:
        socket.create_connection(("127.0.0.1", int(PORT)), timeout=2).close()
        print("GOT the host's loopback")
    except OSError:
        pass


def reach_the_host_abstract_sockets():
    """Try to reach the host's abstract sockets."""
    import socket

    link = socket.socket(socket.AF_UNIX)
    try:
        link.connect("\0" + NAME)
        print("GOT an abstract socket")
    except OSError:
        pass


def reach_other_machines():
    """Try to reach other machines."""
    import os
    import socket

    for address in (
        ("1.1.1.1", 443),
        ("169.254.169.254", 80),
        ("172.17.0.1", int(PORT)),
        ("10.0.2.2", 80),
    ):
        try:
            socket.create_connection(address, timeout=1).close()
            print("GOT", address)
        except OSError:
            pass
    if [
        name
        for name in os.listdir("/sys/class/net" if os.path.isdir("/sys/class/net") else "/")
        if name == "eth0"
    ]:
        print("GOT an interface")
    try:
        print("GOT", socket.getaddrinfo("example.com", 80))
    except OSError:
        pass


def reach_private_addresses_from_a_setup():
    """Try to reach private addresses from a setup."""
    import os
    import re
    import socket

    proxy = re.match("http://(.*):(.*)", os.environ.get("HTTP_PROXY", ""))
    hosts = [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "172.17.0.1",
        "169.254.169.254",
        "[::ffff:a9fe:a9fe]",
        "10.0.0.1",
        "172.31.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
    ]
    for host in hosts:
        try:
            socket.create_connection((host.strip("[]"), int(PORT)), timeout=0.5).close()
            print("GOT", host)
        except OSError:
            pass
        for ask in (
            "CONNECT {}:{} HTTP/1.1",
            "GET http://{}:{}/ HTTP/1.1",
            "GET http://user@{}:{}/ HTTP/1.1",
        ):
            if proxy:
                with socket.create_connection((proxy[1], int(proxy[2])), timeout=5) as link:
                    link.sendall(
                        (ask.format(host, PORT) + "\r\nHost: index.example\r\n\r\n").encode()
                    )
                    answer = link.recv(100).decode()
                if not re.match("HTTP/1.1 (403 Private|502 Cannot resolve)", answer):
                    print("GOT", ask.format(host, PORT), answer)


def reach_the_hypervisor_af_vsock():
    """Try to reach the hypervisor (AF_VSOCK)."""
    import socket

    for family, kind in (
        (40, socket.SOCK_STREAM),
        (38, socket.SOCK_SEQPACKET),
        (29, socket.SOCK_RAW),
    ):
        try:
            socket.socket(family, kind).close()
            print("GOT a socket of family", family)
        except OSError:
            pass


def read_and_forge_packets():
    """Try to read and forge packets."""
    import socket

    for family, kind, protocol in ((17, 3, 768), (2, 3, 1), (2, 3, 255), (10, 3, 58)):
        try:
            socket.socket(family, kind, protocol).close()
            print("GOT a raw socket", family)
        except OSError:
            pass


def queue_system_calls_past_the_filter_io_uring():
    """Try to queue system calls past the filter (io_uring)."""
    system = System()
    system.call("io_uring_setup", 425, 425, 8, 0)
    system.call("io_uring_enter", 426, 426, -1, 1, 0, 0, 0)


def take_over_another_process():
    """Try to take over another process."""
    import os

    system = System()
    child = os.fork()
    if child == 0:
        import time

        time.sleep(5)
        os._exit(0)
    system.call("ptrace", 101, 117, 16, child, 0, 0)
    system.call("process_vm_readv", 310, 270, child, 0, 0, 0, 0, 0)
    system.call("pidfd_getfd", 438, 438, -1, 0, 0)
    os.kill(child, 9)


def look_into_process_1_and_the_parent():
    """Try to look into process 1 and the parent."""
    import os

    for process in {1, os.getppid()} - {0}:
        for name in ("environ", "mem", "maps", "fd/0", "cwd/x"):
            open_path("/proc/%d/%s" % (process, name), os.O_RDONLY)


def make_namespaces():
    """Try to make namespaces."""
    import os

    system = System()
    for flag in (
        0x10000000,
        0x20000,
        0x40000000,
        0x20000000,
        0x8000000,
        0x4000000,
        0x2000000,
        0x80,
    ):
        system.call("unshare %x" % flag, 272, 97, flag)
    child = system.request(56, 220, 0x10000000 | 17, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    if child > 0:
        print("GOT a child in a user namespace")
    system.call("clone3", 435, 435, 0, 0)
    system.call("setns", 308, 268, 0, 0)


def mount_and_change_the_root():
    """Try to mount and change the root."""
    system = System()
    system.call("mount", 165, 40, b"none", b"/tmp", b"tmpfs", 0, 0)
    system.call("umount2", 166, 39, b"/work", 2)
    system.call("pivot_root", 155, 41, b"/tmp", b"/tmp")
    system.call("chroot", 161, 51, b"/tmp")
    system.call("open_tree", 428, 428, -100, b"/", 1)
    system.call("fsopen", 430, 430, b"tmpfs", 0)
    system.call("mount_setattr", 442, 442, -100, b"/", 0, 0, 0)
    system.call("move_mount", 429, 429, -100, b"/tmp", -100, b"/work", 0)
    system.call("open_by_handle_at", 304, 265, 0, 0, 0)


def use_the_kernel_dangerous_corners():
    """Try to use the kernel's dangerous corners."""
    system = System()
    for name, x86, arm in (
        ("bpf", 321, 280),
        ("userfaultfd", 323, 282),
        ("perf_event_open", 298, 241),
        ("keyctl", 250, 219),
        ("add_key", 248, 217),
        ("request_key", 249, 218),
        ("kcmp", 312, 272),
        ("syslog", 103, 116),
        ("lookup_dcookie", 212, 18),
        ("fanotify_init", 300, 262),
        ("quotactl", 179, 60),
        ("move_pages", 279, 239),
    ):
        system.call(name, x86, arm, 0, 0, 0, 0, 0)


def govern_the_machine():
    """Try to govern the machine."""
    system = System()
    system.call("init_module", 175, 105, 0, 0, 0)
    system.call("finit_module", 313, 273, 0, 0, 0)
    system.call("kexec_load", 246, 104, 0, 0, 0, 0)
    system.call("swapoff", 168, 225, b"/nowhere")
    system.call("settimeofday", 164, 170, 0, 0)
    system.call("clock_settime", 227, 112, 0, 0)
    system.call("sethostname", 170, 161, b"owned", 5)
    system.call("acct", 163, 89, b"/tmp/acct")
    system.call("reboot", 169, 142, 0, 0, 0, 0)


def become_root():
    """Try to become root."""
    import ctypes
    import subprocess

    libc = ctypes.CDLL(None, use_errno=True)
    for name in ("setuid", "setgid", "setegid", "seteuid"):
        if getattr(libc, name)(0) == 0:
            print("GOT", name)
    status = open("/proc/self/status").read()
    for line in status.splitlines():
        if line.startswith("Cap") and int(line.split()[1], 16) and not line.startswith("CapBnd"):
            print("GOT", line)
    if "NoNewPrivs:\t1" not in status:
        print("GOT new privileges")
    for command in (
        ["su", "-c", "id"],
        ["sudo", "-n", "id"],
        ["mount", "-t", "tmpfs", "x", "/tmp"],
    ):
        try:
            if (
                subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode
                == 0
            ):
                print("GOT", command)
        except OSError:
            pass


def write_outside_of_the_tree():
    """Try to write outside of the tree."""
    import os

    for place in (
        "/",
        "/etc",
        "/usr",
        "/usr/bin",
        "/usr/lib",
        "/env",
        "/env/bin",
        "/var",
        "/run",
        "/opt",
        "/root",
        "/sys",
        "/proc/sys/kernel",
        "/dev",
        "/mnt",
        "/home",
        "/etc/ssl/certs",
    ):
        open_path(place + "/owned", os.O_WRONLY | os.O_CREAT)
    for path in (
        "/etc/passwd",
        "/etc/hosts",
        "/etc/resolv.conf",
        "/proc/sys/kernel/core_pattern",
        "/proc/sysrq-trigger",
        "/proc/sys/kernel/modprobe",
        "/sys/kernel/uevent_helper",
        "/proc/sys/vm/panic_on_oom",
    ):
        open_path(path, os.O_WRONLY)


def open_devices():
    """Try to open devices."""
    import os

    for name in (
        "mem",
        "kmem",
        "port",
        "kmsg",
        "sda",
        "vda",
        "nvme0n1",
        "loop-control",
        "fuse",
        "kvm",
        "net/tun",
        "uinput",
        "vsock",
        "vhost-vsock",
        "mapper/control",
        "dri/card0",
        "userfaultfd",
    ):
        open_path("/dev/" + name, os.O_RDONLY)
    for path in ("/proc/kcore", "/proc/kpageflags", "/dev/console"):
        open_path(path, os.O_RDONLY | os.O_NOCTTY)
    try:
        os.mknod("/tmp/device", 0o60600, os.makedev(254, 0))
        print("GOT mknod")
    except OSError:
        pass


def find_the_host_secrets():
    """Try to find the host's secrets."""
    import glob
    import os

    for path in (
        glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline") + ["/proc/self/mountinfo"]
    ):
        try:
            if TOKEN.encode() in open(path, "rb").read():
                print("GOT the token from", path)
        except OSError:
            pass
    for path in (
        "/etc/shadow",
        "/root/.ssh",
        "/root/.docker/config.json",
        "/root/.netrc",
        "/root/.pypirc",
        "/root/.gitconfig",
        "/root/.bash_history",
        "/home/regreen/.ssh",
        "/etc/ssl/private",
    ):
        try:
            (os.listdir if os.path.isdir(path) else open)(path)
            print("GOT", path)
        except OSError:
            pass


def find_the_engine_socket():
    """Try to find the engine's socket."""
    import os

    for path in (
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/podman/podman.sock",
        "/run/systemd/private",
        "/run/dbus/system_bus_socket",
        "/var/run/crio/crio.sock",
    ):
        if os.path.exists(path):
            print("GOT", path)


def see_the_host_processes():
    """Try to see the host's processes."""
    import os

    processes = [name for name in os.listdir("/proc") if name.isdigit()]
    if len(processes) > 12 or os.getppid() > 1000:
        print("GOT", len(processes), "processes")


def use_inherited_descriptors():
    """Try to use inherited descriptors."""
    import os

    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + name)
        except OSError:
            continue
        if int(name) > 2 and not target.startswith("/proc/"):
            print("GOT", name, target)


def leave_its_control_group():
    """Try to leave its control group."""
    import os

    for place, _, files in os.walk("/sys/fs/cgroup"):
        for name in files:
            if name in (
                "release_agent",
                "cgroup.procs",
                "tasks",
                "memory.limit_in_bytes",
                "memory.max",
                "pids.max",
            ):
                try:
                    os.close(os.open(os.path.join(place, name), os.O_WRONLY))
                    print("GOT", place, name)
                except OSError:
                    pass
        if place.count("/") > 6:
            break


def type_into_a_terminal():
    """Try to type into a terminal."""
    import fcntl
    import os

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


def run_32_bit_and_x32_system_calls():
    """Try to run 32-bit and x32 system calls."""
    system = System()
    if not system.is_arm:
        answer = system.request(0x40000000 + 39, 0)
        if answer > 0:
            print("GOT x32", answer)
    system.call("personality", 135, 92, 0x0040000)
