"""The only way from a box to the network: a forward proxy that resolves names itself and refuses private addresses.

A box with network access has no network of its own. Its HTTP_PROXY is an address on its loopback, whose connections
go to this filter on the host. The filter checks the address that it then connects to, so a name that resolves
differently the second time gains nothing; a redirect is a new request, checked again.
"""

from __future__ import annotations

import base64
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from queue import SimpleQueue
from threading import BoundedSemaphore, Thread
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from regreen.adapters.sandbox import host, layout
from regreen.adapters.sandbox.backend import Backend, BackendGoneError
from regreen.adapters.sandbox.tunnel import Tunnel
from regreen.domain.errors import OutsideError, UserError

PROXY_PORT = 47_813
HOSTS_VARIABLE = "REGREEN_SETUP_HOSTS"

_MAX_CONNECTIONS = 64  # a megabyte each may wait here
_MAX_HEAD = 65_536
_HEAD_S = 30.0
_CONNECT_S = 30.0
_READY_S = 20.0
# https://www.iana.org/assignments/iana-ipv4-special-registry, but for the blocks kept for documentation
PRIVATE_NETWORKS = [
    ip_network(block)
    for block in (
        *(
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
        ),
        *("192.0.0.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3"),
    )
]
_GLOBAL_V6 = ip_network("2000::/3")
_TUNNELLED_V6 = (ip_network("2001::/32"), ip_network("2002::/16"))  # Teredo, 6to4
_NAT64_NETWORK = ip_network("64:ff9b::/96")


class _RefusedError(Exception):
    """A request that is refused with this status line."""


def parse_allowed_hosts(setting: str) -> frozenset[tuple[str, int | None]]:
    """(host, port) pairs that a box may reach though they are private; port None: any.

    They are the configured package indexes and what the operator allows.

    Args:
        setting: `REGREEN_SETUP_HOSTS`: hosts or host:port, separated by commas.

    Raises:
        UserError: an entry is neither.
    """
    hosts: set[tuple[str, int | None]] = set()
    for entry in filter(None, re.split(r"[,\s]+", setting)):
        try:
            parts = urlsplit(f"//{entry}")
            hosts.add((_normalize_host(parts), parts.port))
        except ValueError:
            parts = urlsplit("")
        if not parts.hostname or parts.path:
            message = f"{HOSTS_VARIABLE}: {entry!r} is no host or host:port"
            raise UserError(message)
    for parts in map(urlsplit, host.index_addresses()):
        hosts.add((_normalize_host(parts), parts.port or (80 if parts.scheme == "http" else 443)))
    return frozenset(hosts)


def proxy_variables(allowed: frozenset[tuple[str, int | None]]) -> dict[str, str]:
    """Environment variables for package clients, naming the filter; a box's own servers are reached directly."""
    elsewhere = {name for name, _ in allowed}
    direct = [name for name in ("localhost", "127.0.0.1", "::1") if name not in elsewhere]
    java = [
        f"-D{kind}.proxyHost=127.0.0.1 -D{kind}.proxyPort={PROXY_PORT}"
        for kind in ("http", "https")
    ]
    names = ("HTTP_PROXY", "HTTPS_PROXY", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY")
    return {
        **dict.fromkeys((*names, "http_proxy", "https_proxy"), f"http://127.0.0.1:{PROXY_PORT}"),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(direct)),
        "NODE_USE_ENV_PROXY": "1",
        "JAVA_TOOL_OPTIONS": " ".join(java),
    }


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is public: not private, link-local, loopback, or one of these in disguise."""
    if isinstance(address, IPv4Address):
        return not any(address in block for block in PRIVATE_NETWORKS)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address in _NAT64_NETWORK:
        return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    return address in _GLOBAL_V6 and not any(address in block for block in _TUNNELLED_V6)


class PrivateAddressFilter:
    """Serves one box's connections. `allowed` may be private; see `parse_allowed_hosts`."""

    def __init__(self, allowed: frozenset[tuple[str, int | None]]) -> None:
        self._allowed = allowed
        self._places = BoundedSemaphore(_MAX_CONNECTIONS)

    def serve_in_thread(self, client: socket.socket) -> None:
        """Serve a connection in its own thread; connections above the limit are closed."""
        if self._places.acquire(blocking=False):
            Thread(
                target=self._serve_client, args=(client,), daemon=True, name="regreen-egress"
            ).start()
        else:
            client.close()

    def start_accepting(self, server: socket.socket) -> None:
        """Serve what a listening socket accepts, until it is shut down."""
        Thread(
            target=self._accept_connections, args=(server,), daemon=True, name="regreen-egress"
        ).start()

    def serve_loopback_of(self, cell: Backend) -> None:
        """Serve the connections that a helper process accepts on the loopback of `cell`.

        Raises:
            OutsideError: the helper could not be started.
        """
        text = resources.files("regreen.adapters.sandbox").joinpath("tunnel.py").read_text("utf-8")
        program = [
            "/bin/sh",
            "-c",
            'exec python3 -I -S -c "$1"',
            "sh",
            f"{text}\nmain({PROXY_PORT})\n",
        ]
        frames: SimpleQueue[bytes | None] = SimpleQueue()
        tunnel = Tunnel(frames.put, self.serve_in_thread)
        try:
            helper = cell.start_process(program, layout.command_environment(cell.path), True)
        except BackendGoneError as error:
            message = f"a box's network could not be started: {error}"
            raise OutsideError(message) from error

        def receive() -> None:
            with suppress(OSError):
                tunnel.receive(chunk for stream, chunk in helper.output_chunks() if stream == 1)
            frames.put(None)

        Thread(target=helper.feed_input, args=(iter(frames.get, None),), daemon=True).start()
        Thread(target=receive, daemon=True, name="regreen-egress").start()
        if not tunnel.ready.wait(_READY_S):
            msg = "a box's network could not be started: the helper process did not answer"
            raise OutsideError(msg)

    def _accept_connections(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                self.serve_in_thread(server.accept()[0])

    def _serve_client(self, client: socket.socket) -> None:
        try:
            with client, suppress(OSError):
                try:
                    request = _ProxyRequest.read(client)
                    far = self._connect_upstream(request)
                except _RefusedError as error:
                    answer = f"HTTP/1.1 {error}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    client.sendall(answer.encode())
                    return
                with far:
                    if request.is_connect:
                        client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                    upload = Thread(target=_pump_bytes, args=(client, far), daemon=True)
                    upload.start()
                    _pump_bytes(far, client)
                    upload.join()
        finally:
            self._places.release()

    def _connect_upstream(self, request: _ProxyRequest) -> socket.socket:
        """A connection to the requested address; a plain request is sent already."""
        proxies = getproxies()
        upstream = urlsplit(proxies.get("https" if request.is_connect else "http", ""))
        if upstream.hostname and not proxy_bypass(request.host):
            self._resolve_addresses(request, proxied=True)
            return _connect_through_proxy(upstream, request)
        far = _connect_any(self._resolve_addresses(request, proxied=False), request.port)
        far.sendall(b"" if request.is_connect else request.render_head("/"))
        return far

    def _resolve_addresses(self, request: _ProxyRequest, *, proxied: bool) -> list[str]:
        """The addresses of the host; none if only the operator's own proxy can resolve it.

        Raises:
            _RefusedError: it has none, or one of them is private.
        """
        try:
            infos = socket.getaddrinfo(request.host, request.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            if proxied:
                return []
            raise _RefusedError("502 Cannot resolve the host") from None
        addresses = [str(info[4][0]) for info in infos]
        if not {(request.host, None), (request.host, request.port)} & self._allowed:
            for text in addresses:
                if not is_public(ip_address(text.partition("%")[0])) or _is_address_of_this_machine(
                    text
                ):
                    message = f"403 Private address refused ({HOSTS_VARIABLE} can allow it)"
                    raise _RefusedError(message)
        return addresses


@dataclass(frozen=True, slots=True)
class _ProxyRequest:
    method: str
    target: SplitResult
    headers: tuple[bytes, ...]
    rest: bytes

    @property
    def is_connect(self) -> bool:
        return self.method == "CONNECT"

    @property
    def host(self) -> str:
        return _normalize_host(self.target)

    @property
    def port(self) -> int:
        return self.target.port or (443 if self.is_connect else 80)

    @classmethod
    def read(cls, client: socket.socket) -> _ProxyRequest:
        client.settimeout(_HEAD_S)
        head, rest = _read_head(client)
        client.settimeout(None)
        line, *headers = head.split(b"\r\n")
        method, _, target = line.rpartition(b" ")[0].decode("latin-1").partition(" ")
        try:
            parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
            usable = parts.port != 0 and parts.scheme in {"", "http"}
        except ValueError:
            parts, usable = urlsplit(""), False
        if not usable or not parts.hostname or not re.fullmatch(r"[A-Z]{1,20}", method):
            raise _RefusedError("400 Bad request")
        dropped = re.compile(rb"(?i)(?:proxy-[a-z-]{1,40}|connection|keep-alive):")
        return cls(method, parts, tuple(one for one in headers if not dropped.match(one)), rest)

    def render_head(self, root: str, *more: bytes) -> bytes:
        """The request as forwarded, and the bytes after it; one request per connection, so that each is checked."""
        path = self.target._replace(scheme="", netloc="", fragment="").geturl().removeprefix("/")
        first = f"{self.method} {root}{path} HTTP/1.1".encode("latin-1")
        return b"\r\n".join((first, *self.headers, *more, b"Connection: close", b"", self.rest))


def _connect_through_proxy(upstream: SplitResult, request: _ProxyRequest) -> socket.socket:
    """A connection through the proxy that the operator uses."""
    far = _connect_any([upstream.hostname or ""], upstream.port or 80)
    more = []
    if upstream.username is not None:
        pair = f"{unquote(upstream.username)}:{unquote(upstream.password or '')}"
        more.append(b"Proxy-Authorization: Basic " + base64.b64encode(pair.encode()))
    if not request.is_connect:
        far.sendall(request.render_head(f"http://{request.target.netloc}/", *more))
        return far
    where = f"[{request.host}]" if ":" in request.host else request.host
    first = f"CONNECT {where}:{request.port} HTTP/1.1\r\nHost: {where}:{request.port}".encode()
    far.sendall(b"\r\n".join((first, *more, b"", b"")))
    if not re.match(rb"HTTP/1\.[01] 2", _read_head(far)[0]):
        far.close()
        raise _RefusedError("502 Refused by the operator's proxy")
    return far


def _connect_any(addresses: list[str], port: int) -> socket.socket:
    for address in addresses:
        with suppress(OSError):
            far = socket.create_connection((address, port), timeout=_CONNECT_S)
            far.settimeout(None)
            return far
    raise _RefusedError("502 Cannot connect")


def _read_head(sock: socket.socket) -> tuple[bytes, bytes]:
    """The bytes up to the first empty line, and those after it."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = sock.recv(65_536)
        data += chunk
        if not chunk or len(data) > _MAX_HEAD:
            raise _RefusedError("400 Bad request")
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _pump_bytes(source: socket.socket, sink: socket.socket) -> None:
    """Forward bytes until either side ends, then end the other."""
    with suppress(OSError):
        while chunk := source.recv(65_536):
            sink.sendall(chunk)
    for sock in (source, sink):
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _is_address_of_this_machine(address: str) -> bool:
    """Whether an address belongs to this machine, tested by listening on it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe, suppress(OSError):
        probe.bind((address, 0))
        return True
    return False


def _normalize_host(parts: SplitResult) -> str:
    return (parts.hostname or "").rstrip(".")
