"""A stand-in for E2B's service: its control API, and the commands' protocol of its machines (Connect with JSON).

Each machine is a bubblewrap box of this machine, so that what runs in it really runs. It differs from the service:
root is the box's only user, a snapshot keeps /env alone, and no box has a network.
"""

from __future__ import annotations

import base64
import json
import queue
import secrets
import shutil
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from regreen.adapters.sandbox.backend import BackendGoneError
from regreen.adapters.sandbox.bubblewrap.bubblewrap_backend import (
    OUTER_UID,
    BwrapBackend,
    BwrapPlan,
    BwrapProcess,
)
from regreen.adapters.sandbox.bubblewrap.bubblewrap_sandbox import BwrapSandbox
from regreen.adapters.sandbox.environment_keys import choose_python
from regreen.domain.models import BoxLimits

MiB = 1024**2
TEMPLATE = BoxLimits(memory=512 * MiB, disk=256 * MiB, tmp=128 * MiB, pids=256)
KEY = "e2b_" + "5ec2e7" * 8


@dataclass
class Machine:
    """One machine: its box, what it was asked for, and until when it may live."""

    box: BwrapBackend
    place: Path
    asked: dict[str, Any]
    ends_at: float
    token: str
    processes: dict[int, Process] = field(default_factory=dict)


@dataclass
class Process:
    """A running process, and the queue of what its standard input still gets."""

    running: BwrapProcess
    input: queue.Queue[bytes | None]


class Service:
    """The service's state. `asked` holds every request with its headers and body, in order."""

    def __init__(self, home: Path, bubblewrap: BwrapSandbox) -> None:
        self.home = home
        self.bubblewrap = bubblewrap
        self.machines: dict[str, Machine] = {}
        self.snapshots: dict[str, Path] = {}
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.faults: list[str] = []
        self.breaks_off = False  # streams close without the event of the end
        self.ahead = 0.0
        self.lock = threading.Lock()
        self.url = ""

    def advance(self, seconds: float) -> None:
        """Let time pass: machines whose time is over are killed."""
        self.ahead += seconds
        for name, machine in list(self.machines.items()):
            if machine.ends_at <= self.now():
                self.kill(name)

    def now(self) -> float:
        return time.monotonic() + self.ahead

    def create(self, asked: dict[str, Any]) -> dict[str, Any]:
        name, token = secrets.token_hex(8), secrets.token_hex(16)
        place = self.home / f"machine-{name}"
        if asked["templateID"] == "base":
            place.mkdir()
            shutil.chown(place, OUTER_UID, OUTER_UID)
        else:
            # Only a setup writes to an environment: other machines share its files.
            how = "-a" if asked["allow_internet_access"] else "-al"
            subprocess.run(["cp", how, self.snapshots[asked["templateID"]], place], check=True)
        python = choose_python(None)
        shown = self.bubblewrap._visible_paths(python)
        box = BwrapBackend.launch(BwrapPlan(shown, place, str(python.exe), keeps=True), TEMPLATE)
        self.machines[name] = Machine(box, place, asked, self.now() + asked["timeout"], token)
        return {
            "sandboxID": name, "templateID": asked["templateID"], "clientID": "x", "envdVersion": "0.6.4",
            "envdAccessToken": token, "domain": None, "trafficAccessToken": "x",
        }  # fmt: skip

    def kill(self, name: str) -> None:
        machine = self.machines.pop(name)
        machine.box.destroy()
        shutil.rmtree(machine.place)

    def snapshot(self, name: str, asked: dict[str, Any]) -> dict[str, Any]:
        snapshot = f"team/{asked['name']}:default"
        place = self.home / f"snapshot-{secrets.token_hex(8)}"
        subprocess.run(["cp", "-a", self.machines[name].place, place], check=True)
        self.snapshots[snapshot] = place
        return {"snapshotID": snapshot, "names": [snapshot]}

    def close(self) -> None:
        for name in list(self.machines):
            self.kill(name)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    service: Service

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.handle_request()

    do_POST = do_GET  # noqa: N815 - the names that http.server looks for
    do_DELETE = do_GET  # noqa: N815

    def handle_request(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.read_body()
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.service.asked.append((f"{self.command} {self.path}", headers, body))
        try:
            if path == "/health" or path.startswith("/process.Process/"):
                machine = self.service.machines.get(headers.get("e2b-sandbox-id", ""))
                if machine is None:
                    self.answer(502, {"message": "The sandbox was not found", "code": 502})
                elif headers.get("x-access-token") != machine.token:
                    self.answer(401, {"code": "unauthenticated", "message": "no token"})
                else:
                    self.answer_process(machine, path.rpartition("/")[2], body)
            elif headers.get("x-api-key") != KEY:
                self.answer(401, {"message": "Unauthorized", "code": 401})
            else:
                self.answer_control(path, query, json.loads(body or b"{}"))
        except ConnectionError:
            self.close_connection = True

    def answer_control(self, path: str, query: str, asked: dict[str, Any]) -> None:
        service = self.service
        match self.command, path.strip("/").split("/"):
            case "POST", ["v2", "sandboxes"]:
                self.answer(201, service.create(asked))
            case "GET", ["snapshots"]:
                name = query.partition("name=")[2].partition("&")[0]
                found = [one for one in service.snapshots if name in one]
                self.answer(200, [{"snapshotID": one, "names": [one]} for one in found])
            case "DELETE", ["templates", name]:
                service.snapshots.pop(name.replace("%2F", "/").replace("%3A", ":"))
                self.answer(204, None)
            case _, ["sandboxes", name, *_] if name not in service.machines:
                self.answer(404, {"message": "not found", "code": 404})
            case "DELETE", ["sandboxes", name]:
                service.kill(name)
                self.answer(204, None)
            case "POST", ["sandboxes", name, "timeout"]:
                service.machines[name].ends_at = service.now() + asked["timeout"]
                self.answer(204, None)
            case "POST", ["sandboxes", name, "snapshots"]:
                self.answer(201, service.snapshot(name, asked))
            case _:
                service.faults.append(f"unknown: {self.command} {path}")
                self.answer(404, {"message": "no such route", "code": 404})

    def answer_process(self, machine: Machine, method: str, body: bytes) -> None:
        match method:
            case "health":
                self.answer(204, None)
            case "Start":
                self.stream_process(machine, json.loads(body[5:]))
            case "SendInput":
                asked = json.loads(body)
                text = base64.b64decode(asked["input"]["stdin"])
                machine.processes[asked["process"]["pid"]].input.put(text)
                self.answer(200, {})
            case "CloseStdin":
                machine.processes[json.loads(body)["process"]["pid"]].input.put(None)
                self.answer(200, {})
            case _:
                self.service.faults.append(f"unknown: {method}")
                self.answer(404, {"code": "unimplemented", "message": method})

    def stream_process(self, machine: Machine, asked: dict[str, Any]) -> None:
        config, given = asked["process"], bool(asked.get("stdin"))
        own = {"PATH": machine.box.path, "HOME": "/home/regreen", "E2B_SANDBOX": "true", "E2B_SANDBOX_ID": "x"}  # fmt: skip
        argv = [config["cmd"], *config.get("args", ())]
        try:
            running = machine.box.start_process(argv, own | config.get("envs", {}), given)
        except BackendGoneError:
            self.answer(502, {"message": "The sandbox was not found", "code": 502})
            return
        number = len(machine.processes) + 100
        process = machine.processes[number] = Process(running, queue.Queue(4))
        if given:
            threading.Thread(
                target=running.feed_input, args=(iter(process.input.get, None),), daemon=True
            ).start()
        self.send_response(200)
        self.send_header("Content-Type", "application/connect+json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.send_event({"start": {"pid": number}})
        names = {1: "stdout", 2: "stderr"}
        for stream, chunk in running.output_chunks():
            self.send_event({"data": {names[stream]: base64.b64encode(chunk).decode()}})
        try:
            while (code := running.exit_code()) is None:
                time.sleep(0.01)
        except BackendGoneError:
            self.close_connection = True  # in the middle of the answer, as when a machine is killed
            return
        code = -1 if code > 128 else code
        if not self.service.breaks_off:
            self.send_event({"end": {"exitCode": code, "exited": code >= 0, "status": str(code)}})
        self.send_chunk(b"\x02" + struct.pack(">I", 2) + b"{}")
        self.wfile.write(b"0\r\n\r\n")

    def send_event(self, event: dict[str, Any]) -> None:
        content = json.dumps({"event": event}).encode()
        self.send_chunk(b"\0" + struct.pack(">I", len(content)) + content)

    def send_chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))

    def read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def answer(self, code: int, document: object) -> None:
        content = b"" if document is None else json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def serve_stand_in(home: Path, bubblewrap: BwrapSandbox) -> Iterator[Service]:
    """The service at `url` while the block runs."""
    service = Service(home, bubblewrap)
    handler = type("BoundHandler", (Handler,), {"service": service})
    server = _Server(("127.0.0.1", 0), handler)
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        with suppress(OSError):
            service.close()
        server.shutdown()
        server.server_close()
