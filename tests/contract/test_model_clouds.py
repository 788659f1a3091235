"""The real clients of Bedrock, Vertex and Foundry, with the clouds' own SDKs, against an endpoint on loopback."""

from __future__ import annotations

import gc
import json
import struct
import sys
import threading
import time
import warnings
import zlib
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from regreen.adapters.model.anthropic_client import AnthropicModel
from regreen.adapters.model.endpoints import ModelEndpoint
from regreen.app.settings_loader import read_settings
from regreen.cli import main
from regreen.domain.errors import OutsideError, UserError
from tests.contract.test_anthropic_breaks import BROKEN, EVENTS, WHOLE, bytes_of, request

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
CLOUDS = ("bedrock", "vertex", "foundry")
NAMES = {
    "bedrock": "us.anthropic.claude-sonnet-5-5-20260901-v1:0",
    "vertex": "claude-sonnet-5-5@20260901",
    "foundry": "claude-sonnet-5-5",
}
PATHS = {
    "bedrock": "/model/us.anthropic.claude-sonnet-5-5-20260901-v1:0/invoke-with-response-stream",
    "vertex": "/projects/acme/locations/europe-west1/publishers/anthropic/models/claude-sonnet-5-5@20260901:streamRawPredict",
    "foundry": "/v1/messages",
}


@dataclass
class Cloud:
    """What a cloud was asked, and what it still answers: streams, or a status."""

    url: str
    answers: list[tuple[str, ...] | int]
    asked: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """One message of AWS's event stream: https://smithy.io/2.0/aws/amazon-eventstream.html"""
    packed = b"".join(
        struct.pack("!B", len(k)) + k.encode() + b"\x07" + struct.pack("!H", len(v)) + v.encode()
        for k, v in headers.items()
    )
    prelude = struct.pack("!II", len(packed) + len(payload) + 16, len(packed))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + packed + payload
    return message + struct.pack("!I", zlib.crc32(message))


def framed(event: str) -> bytes:
    """An event as Bedrock sends it."""
    if event == "busy":
        kind = {":exception-type": "throttlingException", ":message-type": "exception"}
        return frame(kind | {":content-type": "application/json"}, b'{"message": "busy"}')
    if event == "a page":
        return bytes_of(event)
    data = b"{not json" if event == "garbage" else json.dumps(EVENTS[event][1]).encode()
    kind = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return frame(kind, json.dumps({"bytes": b64encode(data).decode()}).encode())


@contextmanager
def serving(*answers: tuple[str, ...] | int) -> Iterator[Cloud]:
    """A cloud: tokens for Google and Entra ID, and a model's answers; one that ends in "cut" loses its connection."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Nothing."""

        def do_GET(self) -> None:
            in_an_hour = str(int(time.time()) + 3600)
            known = self.headers.get("x-identity-header") == "it-is-me"
            token = {"access_token": "entra" if known else "no", "expires_on": in_an_hour}
            self._send(200, json.dumps(token | {"token_type": "Bearer", "resource": "x"}).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/token":
                said = {"access_token": "google", "expires_in": 3600, "token_type": "Bearer"}
                self._send(200, json.dumps(said).encode())
                return
            heads = {name.lower(): value for name, value in self.headers.items()}
            cloud.asked.append((self.path, heads, json.loads(body)))
            answer = cloud.answers.pop(0)
            if isinstance(answer, int):
                error = {"type": "error", "error": {"type": "x", "message": f"scripted {answer}"}}
                self._send(answer, json.dumps(error).encode())
                return
            pack = framed if "/invoke" in self.path else bytes_of
            kind = "application/vnd.amazon.eventstream" if pack is framed else "text/event-stream"
            cut = answer[-1] == "cut"
            whole = b"".join(map(pack, answer[: -1 if cut else None]))
            self._send(200, whole, kind, len(whole) + (1000 if cut else 0))
            self.close_connection = True

        def _send(
            self, status: int, body: bytes, kind: str = "application/json", size: int | None = None
        ) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body) if size is None else size))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    cloud = Cloud(f"http://127.0.0.1:{server.server_port}", list(answers))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield cloud
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A machine that has no credentials of any cloud, and asks nobody for them."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID", "ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "CLOUDSDK_CONFIG", "REGREEN_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    gc.freeze()  # what the whole test run holds is not looked through for each test
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # the clouds' SDKs leave their connections for tokens open
    gc.unfreeze()


def configure(
    provider: str,
    cloud: Cloud,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    key: bool = False,
) -> None:
    """What an operator sets, so that this cloud is asked: a key, or credentials of the cloud."""
    monkeypatch.setenv("REGREEN_MODEL_PROVIDER", provider)
    monkeypatch.setenv("REGREEN_MODEL", NAMES[provider])
    monkeypatch.setenv(f"ANTHROPIC_{provider.upper()}_BASE_URL", cloud.url)
    match provider:
        case "bedrock" if key:
            monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bearer-key")
            monkeypatch.setenv("AWS_REGION", "us-west-2")
        case "bedrock":
            monkeypatch.setenv("AWS_REGION", "us-west-2")
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
            monkeypatch.setenv("AWS_SESSION_TOKEN", "session")
        case "vertex":
            made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            pem = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
            account = {"type": "service_account", "project_id": "acme", "client_email": "a@acme.example", "private_key": pem, "private_key_id": "1", "token_uri": f"{cloud.url}/token"}  # fmt: skip
            (tmp_path / "account.json").write_text(json.dumps(account))
            monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
            monkeypatch.setenv("CLOUD_ML_REGION", "europe-west1")
        case "foundry" if key:
            monkeypatch.setenv("ANTHROPIC_FOUNDRY_API_KEY", "foundry-key")
        case "foundry":
            monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
            monkeypatch.setenv("IDENTITY_ENDPOINT", f"{cloud.url}/identity")
            monkeypatch.setenv("IDENTITY_HEADER", "it-is-me")
        case _:
            raise AssertionError(provider)


def model(**changed: Any) -> AnthropicModel:
    endpoint = ModelEndpoint.from_settings(read_settings())
    assert endpoint is not None
    ways: dict[str, Any] = {"max_retries": 1, "sleep": lambda _s: None, **changed}
    return AnthropicModel(endpoint, **ways)


@pytest.mark.parametrize(
    ("provider", "key", "sent"),
    [
        ("bedrock", True, "Bearer bearer-key"),
        ("bedrock", False, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"),
        ("vertex", False, "Bearer google"),
        ("foundry", True, ""),
        ("foundry", False, "Bearer entra"),
    ],
)
def test_each_cloud_is_asked_as_its_own_client_asks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, provider: str, key: bool, sent: str
) -> None:
    with serving(WHOLE) as cloud:
        configure(provider, cloud, monkeypatch, tmp_path, key=key)
        answer = model().ask(request())
    ((path, heads, body),) = cloud.asked
    assert answer.calls[0].input == {"n": 12}
    assert answer.cost.usd > 0
    assert path == PATHS[provider]
    assert heads.get("authorization", "").startswith(sent)
    if provider == "bedrock" and not key:
        assert "/us-west-2/bedrock/aws4_request" in heads["authorization"]
        assert heads["x-amz-security-token"] == "session"
    if provider == "foundry" and key:
        assert heads["x-api-key"] == "foundry-key"
    assert body["max_tokens"] == 100
    assert ("model" in body) == (provider == "foundry")
    assert ("anthropic_version" in body) == (provider != "foundry")


@pytest.mark.parametrize("broken", BROKEN, ids=" ".join)
@pytest.mark.parametrize("provider", CLOUDS)
def test_a_clouds_answer_that_breaks_off_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, provider: str, broken: tuple[str, ...]
) -> None:
    with serving(broken, WHOLE, broken, broken) as cloud:
        configure(provider, cloud, monkeypatch, tmp_path, key=True)
        asker = model()
        assert asker.ask(request()).calls[0].input == {"n": 12}
        with pytest.raises(OutsideError):
            asker.ask(request())


@pytest.mark.parametrize("provider", CLOUDS)
def test_what_a_cloud_refuses_is_told_with_what_to_look_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, provider: str
) -> None:
    words = {"bedrock": "AWS_REGION", "vertex": "CLOUD_ML_REGION", "foundry": "FOUNDRY_RESOURCE"}
    with serving(403, ("a page",)) as cloud:
        configure(provider, cloud, monkeypatch, tmp_path, key=True)
        with pytest.raises(OutsideError, match=f"scripted 403.*{words[provider]}"):
            model().ask(request())
        with pytest.raises(OutsideError, match=f"ANTHROPIC_{provider.upper()}_BASE_URL"):
            model(max_retries=0).ask(request())


@pytest.mark.parametrize("provider", CLOUDS)
def test_an_overloaded_cloud_leads_to_the_fallback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, provider: str
) -> None:
    monkeypatch.setenv("REGREEN_FALLBACK_MODEL", "claude-haiku-5-5")
    with serving(404, WHOLE) as cloud:
        configure(provider, cloud, monkeypatch, tmp_path)
        model().ask(request())
    last = cloud.asked[-1]
    assert "claude-haiku-5-5" in f"{last[0]} {last[2].get('model')}"


@pytest.mark.parametrize(
    ("provider", "given", "words"),
    [
        ("bedrock", {}, "AWS_REGION"),
        ("bedrock", {"AWS_REGION": "us-west-2"}, "no AWS credentials; set AWS_REGION"),
        ("bedrock", {"AWS_BEARER_TOKEN_BEDROCK": "k"}, "No AWS region"),
        ("vertex", {}, "GOOGLE_APPLICATION_CREDENTIALS"),
        ("foundry", {"ANTHROPIC_FOUNDRY_API_KEY": "k"}, "set ANTHROPIC_FOUNDRY_RESOURCE"),
        ("foundry", {"ANTHROPIC_FOUNDRY_RESOURCE": "acme"}, "ANTHROPIC_FOUNDRY_API_KEY"),
    ],
)
def test_what_a_cloud_lacks_is_said_once_and_by_doctor(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    *,
    provider: str,
    given: dict[str, str],
    words: str,
) -> None:
    monkeypatch.setenv("REGREEN_MODEL_PROVIDER", provider)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=words) as error:
        model().ask(request())
    assert "\n" not in str(error.value)
    assert caplog.text == ""
    with pytest.raises(SystemExit, match="1"):
        main(["doctor", "--only", "model", "--format", "json"])
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert not check["ok"]
    assert words in f"{check['detail']}; {check['remedy']}"


def test_a_vertex_without_project_or_region_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with serving() as cloud:
        configure("vertex", cloud, monkeypatch, tmp_path)
        monkeypatch.delenv("CLOUD_ML_REGION")
        with pytest.raises(UserError, match=r"No region was given.*set CLOUD_ML_REGION"):
            model().ask(request())


@pytest.mark.parametrize(
    ("provider", "module"),
    [("bedrock", "boto3"), ("vertex", "google.auth.transport.requests"), ("foundry", "azure.identity")],
)  # fmt: skip
def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, provider: str, module: str
) -> None:
    monkeypatch.setenv("REGREEN_MODEL_PROVIDER", provider)
    monkeypatch.setitem(sys.modules, module, None)  # as where it is not installed
    with pytest.raises(UserError, match=rf"install regreen\[{provider}\]"):
        model().ask(request())


def test_credentials_that_cannot_be_renewed_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with serving() as cloud:
        configure("vertex", cloud, monkeypatch, tmp_path)
        file = tmp_path / "account.json"
        file.write_text(file.read_text().replace(cloud.url, "http://127.0.0.1:9"))
        with pytest.raises(OutsideError, match=r"credentials cannot be had.*GOOGLE_APPLICATION"):
            model().ask(request())
