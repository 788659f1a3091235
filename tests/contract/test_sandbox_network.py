"""What a box with a network reaches: the configured indexes and public addresses; nothing of this machine or around it."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.domain.errors import NoSandbox, UserError
from regreen.domain.models import BoxLimits, EnvSpec, RunResult
from regreen.domain.ports import Sandbox
from tests.contract.sandboxes import BACKENDS, plain_env

pytestmark = pytest.mark.sandbox


@pytest.fixture(params=BACKENDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def sandbox_with(kind: str, *hosts: str) -> Sandbox:
    """The sandbox of an operator who allows these hosts."""
    try:
        return choose_sandbox(kind, setup_hosts=",".join(hosts))
    except NoSandbox as error:
        pytest.skip(f"no {kind} here: {error}")


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[str]:
    """The server's host:port for as long as the block runs."""
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    host, port = server.server_address[:2]
    try:
        yield f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"
    finally:
        server.shutdown()
        server.server_close()


class V6Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Nothing."""


def files_of(folder: Path) -> partial[Quiet]:
    return partial(Quiet, directory=str(folder))


def fetched(sandbox: Sandbox, *urls: str) -> RunResult:
    """What curl gets of these addresses in a box with a network: through the filter, and past it."""
    curl = ["curl", "-sSgL", "--max-time", "20"]
    with sandbox.open(plain_env(sandbox.name), (), BoxLimits(network=True)) as box:
        past = box.run([*curl, "--noproxy", "*", *urls], timeout=60)
        assert past.stdout == "", past
        return box.run([*curl, "--noproxy", "", *urls], timeout=60)


def test_a_setup_reaches_the_index_that_the_operator_configured(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = "regreen_sample-1.0-py3-none-any.whl"
    make = "import sys, zipfile; z = zipfile.ZipFile(sys.argv[1], 'w'); i = 'regreen_sample-1.0.dist-info/'; z.writestr('regreen_sample.py', ''); z.writestr(i + 'METADATA', 'Metadata-Version: 2.1\\nName: regreen-sample\\nVersion: 1.0\\n'); z.writestr(i + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'); z.writestr(i + 'RECORD', '')"
    project = tmp_path / "simple" / "regreen-sample"
    project.mkdir(parents=True)
    subprocess.run([sys.executable, "-c", make, str(project / wheel)], check=True)
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), files_of(tmp_path))) as place:
        monkeypatch.setenv("PIP_INDEX_URL", f"http://{place}/simple")
        spec = EnvSpec(setup=f"pip install regreen-sample # {secrets.token_hex(8)}", checked=True)
        env = sandbox_with(kind).prepare(spec, ())
    assert "Successfully installed regreen-sample-1.0" in env.setup_output


def test_the_machines_own_addresses_are_out_of_reach_however_they_are_written(
    kind: str, tmp_path: Path
) -> None:
    token = secrets.token_hex(16)
    (tmp_path / "token").write_text(token)
    own = ["127.0.0.1", "172.17.0.1", *own_addresses()]
    with ExitStack() as stack:
        handler = files_of(tmp_path)
        places = [
            stack.enter_context(serving(server))
            for address in dict.fromkeys(own)
            if (server := listening(address, handler)) is not None
        ]
        places.append(stack.enter_context(serving(V6Server(("::1", 0), handler))))
        port = places[0].rpartition(":")[2]
        spelt = [
            "localhost",
            "2130706433",
            "0x7f000001",
            "017700000001",
            "127.1",
            "0",
            "[::ffff:127.0.0.1]",
            socket.gethostname(),
        ]
        places += [f"{name}:{port}" for name in spelt]
        urls = [f"http://{place}/token" for place in places]
        with urllib.request.urlopen(urls[0]) as direct:  # noqa: S310
            assert direct.read().decode() == token, "outside of a box the address answers"
        seen = fetched(sandbox_with(kind), *urls)
        allowed = fetched(sandbox_with(kind, f"127.0.0.1:{port}"), urls[0])
    assert token not in seen.stdout + seen.stderr, seen
    assert len(places) >= 10
    assert allowed.stdout == token, "with the operator's leave the same address answers"


def test_the_metadata_address_and_a_private_network_are_out_of_reach(
    kind: str, tmp_path: Path
) -> None:
    token = secrets.token_hex(16)
    (tmp_path / "token").write_text(token)
    with neighbour(tmp_path) as address:
        urls = [f"http://{host}/token" for host in ("169.254.169.254", address)]
        for url in urls:
            with urllib.request.urlopen(url) as direct:  # noqa: S310
                assert direct.read().decode() == token, "outside of a box the address answers"
        seen = fetched(sandbox_with(kind), *urls)
    assert token not in seen.stdout + seen.stderr, seen


def test_a_redirect_leads_nowhere_private(kind: str, tmp_path: Path) -> None:
    token = secrets.token_hex(16)
    (tmp_path / "token").write_text(token)
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), files_of(tmp_path))) as private:

        class Redirect(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(302)
                self.send_header("Location", f"http://{private}/token")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Nothing."""

        with serving(ThreadingHTTPServer(("127.0.0.1", 0), Redirect)) as index:
            url = f"http://{index}/simple"
            seen = fetched(sandbox_with(kind, index), url)
            both = fetched(sandbox_with(kind, index, private), url)
    assert token not in seen.stdout + seen.stderr
    assert both.stdout == token


def test_many_downloads_at_once_come_through_whole_though_one_reader_stalls(
    kind: str, tmp_path: Path
) -> None:
    data = os.urandom(1 << 20)
    (tmp_path / "data").write_bytes(data)
    script = """
import hashlib, socket, sys
from concurrent.futures import ThreadPoolExecutor
from urllib.request import ProxyHandler, build_opener
opener = build_opener(ProxyHandler({"http": "http://127.0.0.1:47813"}))
stalled = opener.open(sys.argv[1])
def load(_):
    return hashlib.sha256(opener.open(sys.argv[1]).read()).hexdigest()
with ThreadPoolExecutor(12) as pool:
    print(*set(pool.map(load, range(24))), hashlib.sha256(stalled.read()).hexdigest())
"""
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), files_of(tmp_path))) as place:
        sandbox = sandbox_with(kind, place)
        with sandbox.open(plain_env(kind), (), BoxLimits(network=True)) as box:
            done = box.run(["python3", "-c", script, f"http://{place}/data"], timeout=60)
    assert done.stdout.split() == [hashlib.sha256(data).hexdigest()] * 2, done


def test_the_operators_own_proxy_is_used_and_private_addresses_do_not_reach_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Proxy-Authorization"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"from the proxy")

        def log_message(self, *args: object) -> None:
            """Nothing."""

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Proxy)) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:pass@{proxy}")
        seen = fetched(sandbox_with(kind), "http://nowhere.invalid/a?b", "http://169.254.169.254/")
        with sandbox_with(kind).open(plain_env(kind), (), BoxLimits(network=True)) as box:
            variables = box.run(["env"], timeout=30).stdout
    assert seen.stdout == "from the proxy"
    assert asked == [("http://nowhere.invalid/a?b", "Basic bWU6cGFzcw==")]
    assert "me:pass" not in variables


def test_a_boxs_own_server_is_reached_directly(kind: str) -> None:
    script = "python3 -m http.server 8123 --bind 127.0.0.1 & sleep 1; exec python3 -c \"import urllib.request as u; print(u.urlopen('http://localhost:8123/').status)\""
    with sandbox_with(kind).open(plain_env(kind), (), BoxLimits(network=True)) as box:
        assert box.run(["sh", "-c", script], timeout=30).stdout == "200\n"


def test_a_wrong_setting_is_said() -> None:
    for wrong in ("10.0.0.0/8", "http://a", "a:b", ":80"):
        with pytest.raises(UserError, match="REGREEN_SETUP_HOSTS"):
            choose_sandbox("bwrap", setup_hosts=wrong)


# Runs in network and mount namespaces of its own, with a name server that answers differently the second time.
REBINDING = """
import socket, sys
from threading import Thread
from regreen.adapters.sandbox.egress_proxy import PrivateAddressFilter
server = socket.create_server(("127.0.0.1", 8080))
names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
names.bind(("127.0.0.1", 53))
asked = []
def answer():
    while True:
        query, who = names.recvfrom(512)
        name, kind = query[12:-4], query[-4:-2]
        reply = query[:2] + b"\\x81\\x80" + query[4:6] + b"\\0" + bytes([kind == b"\\0\\1"]) + bytes(4) + query[12:]
        if kind == b"\\0\\1":
            asked.append(name)
            first = name.startswith(b"\\6rebind") and asked.count(name) == 1
            reply += name + query[-4:] + bytes(4) + b"\\0\\4" + socket.inet_aton("203.0.113.9" if first else "127.0.0.1")
        names.sendto(reply, who)
Thread(target=answer, daemon=True).start()
for name in ("private", "rebind"):
    near, far = socket.socketpair()
    PrivateAddressFilter(frozenset()).serve_in_thread(far)
    near.sendall(b"CONNECT " + name.encode() + b".test:8080 HTTP/1.1\\r\\n\\r\\n")
    print(near.recv(1000).split(b" ")[1].decode())
print(len(set(asked)))
"""


def test_a_name_that_is_private_or_becomes_so_is_refused(tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    shell = f'ip link set lo up && mount --bind {tmp_path}/resolv.conf /etc/resolv.conf && exec {sys.executable} -c "$1"'
    done = subprocess.run(
        ["unshare", "--mount", "--net", "sh", "-c", shell, "sh", REBINDING],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("no namespaces can be made here")
    assert done.stdout.split() == ["403", "502", "2"], done.stderr


def own_addresses() -> list[str]:
    listed = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False)
    return [one for one in listed.stdout.split() if ":" not in one]


def listening(address: str, handler: partial[Quiet]) -> ThreadingHTTPServer | None:
    try:
        return ThreadingHTTPServer((address, 0), handler)
    except OSError:
        return None


@contextmanager
def neighbour(folder: Path) -> Iterator[str]:
    """A network namespace beside this machine's, with a server on a private and on the metadata address; the private one."""
    if shutil.which("ip") is None:
        pytest.skip("no ip on this machine")
    name, private = f"rg{secrets.token_hex(3)}", f"10.213.{secrets.randbelow(200)}.2"
    ours = private[:-1] + "1"
    commands = [
        f"ip netns add {name}",
        f"ip link add {name} type veth peer name eth0 netns {name}",
        f"ip addr add {ours}/30 dev {name}",
        f"ip link set {name} up",
        f"ip -n {name} addr add {private}/30 dev eth0",
        f"ip -n {name} addr add 169.254.169.254/32 dev eth0",
        f"ip -n {name} link set eth0 up",
        f"ip route replace 169.254.169.254/32 via {private}",
    ]
    try:
        for command in commands:
            done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"no network namespace can be made here: {command}: {done.stderr}")
        serve = f"ip netns exec {name} {sys.executable} -u -m http.server 80 --directory {folder}"
        with subprocess.Popen(
            serve.split(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as server:
            assert server.stdout is not None
            server.stdout.readline()
            try:
                yield private
            finally:
                server.kill()
    finally:
        subprocess.run(["ip", "link", "del", name], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
