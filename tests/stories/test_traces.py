"""Traces as a collector receives them: a job, and below it what it did."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.stories.conftest import app_key, checked, violations
from tests.stories.story import Story
from tests.stories.test_fixes import _red, needs_sandbox

pytest.importorskip(
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    reason="the extra `traces` is not installed",
)


class _Collector:
    """An OTLP collector on loopback, which keeps what it was sent."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        kept = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                is_packed = self.headers.get("Content-Encoding") == "gzip"
                kept.bodies.append(gzip.decompress(body) if is_packed else body)
                kept.paths.append(self.path)
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def spans(self) -> list[Any]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        found: list[Any] = []
        for body in self.bodies:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                assert "regreen" in str(resource.resource)
                found += [span for scope in resource.scope_spans for span in scope.spans]
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def collector() -> Iterator[_Collector]:
    made = _Collector()
    yield made
    made.close()


def _about(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def _below(spans: list[Any], top: Any) -> list[Any]:
    """Every span that stands below another, at any depth."""
    children = [one for one in spans if one.parent_span_id == top.span_id]
    return children + [deeper for one in children for deeper in _below(spans, one)]


@pytest.fixture
def story(collector: _Collector, tmp_path: Path) -> Iterator[Story]:
    log = tmp_path / "violations.jsonl"
    told = Story(tmp_path, checked(log), lambda _: "A hundred.", app_key(), collector=collector.url)
    yield told
    told.end()
    assert violations(log) == []


@pytest.mark.slow
@needs_sandbox
@pytest.mark.sandbox
def test_each_job_is_a_span_with_its_calls_and_runs_below(
    story: Story, collector: _Collector
) -> None:
    pull = _red(story)
    story.says("alice", "/ask how many, ghp_" + "a1B2" * 9 + "?", on=pull)
    story.work()
    story.restart()  # what waits to be sent is sent before the end
    spans = collector.spans()
    assert set(collector.paths) == {"/v1/traces"}
    jobs = [one for one in spans if one.name.startswith("job ")]
    assert not any(one.parent_span_id for one in jobs)
    (fix,) = [one for one in jobs if one.name == "job fix"]
    told = _about(fix)
    assert (told["regreen.repository"], told["regreen.state"]) == ("acme/shop", "done")
    assert {"GitHub", "git fetch", "sandbox prepare", "sandbox open", "sandbox run"} <= {
        one.name for one in _below(spans, fix)
    }
    runs = [_about(one) for one in _below(spans, fix) if one.name == "sandbox run"]
    assert any("ruff check shop" in run["process.command_line"] for run in runs)
    assert {0, 1} <= {run.get("process.exit.code") for run in runs}
    asked = [one for one in spans if one.name == "model"]
    assert all(_about(one)["gen_ai.usage.input_tokens"] > 0 for one in asked)
    (top,) = [one for one in jobs if any(deep.name == "model" for deep in _below(spans, one))]
    assert _about(top)["regreen.number"] == pull.number
    assert not any(b"a1B2a1B2" in body for body in collector.bodies)


def test_nothing_of_it_is_imported_where_no_collector_is_named() -> None:
    program = (
        "import sys\n"
        "from regreen.adapters.traces import make_traces\n"
        "import regreen.app.wiring\n"
        "with make_traces(None).span('x', {}) as span:\n    span.note({'a': 1})\n"
        "print([m for m in sys.modules if m.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)  # fmt: skip
    assert done.stdout.strip() == "[]"
