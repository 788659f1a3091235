"""Traces by OpenTelemetry, if the operator names a collector; otherwise nothing of it is imported."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Self

from regreen import __version__
from regreen.domain.models import (
    BoxLimits,
    DoctorCheck,
    EnvSpec,
    ModelAnswer,
    ModelRequest,
    PreparedEnv,
    RunResult,
)
from regreen.domain.ports import Box, Model, NoTraces, Sandbox, Span, SpanValue, Traces
from regreen.secrets.redaction import redact_secrets

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as OtelSpan

_TRACES_PATH = "/v1/traces"
_MAX_TEXT_CHARACTERS = 300

_log = logging.getLogger(__name__)


def make_traces(endpoint: str | None) -> Traces:
    """Traces to an OTLP collector over HTTP ("http://host:4318"); none without an endpoint.

    The SDK reads the rest of its `OTEL_...` variables (headers, service name, sampler) by itself. If it is not
    installed, a warning is logged and the App goes on: the variable may have been set for other programs.
    """
    if not endpoint:
        return NoTraces()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        _log.warning(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but no traces are sent: install `regreen[traces]` (%s)",
            error,
        )
        return NoTraces()
    own = Resource.create({SERVICE_NAME: "regreen", "service.version": __version__})
    provider = TracerProvider(
        resource=own.merge(OTELResourceDetector().detect()), shutdown_on_exit=False
    )
    exporter = OTLPSpanExporter(
        endpoint=endpoint.rstrip("/").removesuffix(_TRACES_PATH) + _TRACES_PATH
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return _OpenTelemetryTraces(provider)


class _OpenTelemetryTraces:
    """Satisfies `ports.Traces`."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("regreen", __version__)

    @contextmanager
    def span(self, name: str, about: Mapping[str, SpanValue]) -> Iterator[_OpenTelemetrySpan]:
        """A span for one piece of work, below the current span of this thread."""
        with self._tracer.start_as_current_span(
            name,
            attributes=_clean_attributes(about),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield _OpenTelemetrySpan(span)
            except BaseException as error:
                # the SDK's own way would send the traceback with its source lines
                _record_error(span, error)
                raise

    def close(self) -> None:
        """Send the waiting spans."""
        self._provider.shutdown()


class _OpenTelemetrySpan:
    """Satisfies `ports.Span`."""

    def __init__(self, span: OtelSpan) -> None:
        self._span = span

    def note(self, values: Mapping[str, SpanValue]) -> None:
        """Add attributes with results."""
        self._span.set_attributes(_clean_attributes(values))


def _record_error(span: OtelSpan, error: BaseException) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", type(error).__name__)
    span.set_status(Status(StatusCode.ERROR, redact_secrets(str(error))[:_MAX_TEXT_CHARACTERS]))


def _clean_attributes(about: Mapping[str, SpanValue]) -> dict[str, SpanValue]:
    """The attributes with values, without credentials."""
    return {
        key: redact_secrets(value)[:_MAX_TEXT_CHARACTERS] if isinstance(value, str) else value
        for key, value in about.items()
        if value not in ("", None)
    }


# Traced ports of a job: each model call and each run in a box is a span, and boxes are counted.


class TracedModel:
    """Satisfies `ports.Model`."""

    def __init__(self, model: Model, traces: Traces) -> None:
        self._model = model
        self._traces = traces

    def ask(self, request: ModelRequest) -> ModelAnswer:
        """Ask once; the span records the cost. A remembered answer costs nothing."""
        with self._traces.span("model", {"regreen.purpose": request.purpose}) as span:
            answer = self._model.ask(request)
            span.note(
                {
                    "gen_ai.response.model": answer.model,
                    "gen_ai.usage.input_tokens": answer.cost.input_tokens,
                    "gen_ai.usage.output_tokens": answer.cost.output_tokens,
                    "regreen.usd": answer.cost.usd,
                    "regreen.stop": answer.stop,
                }
            )
            return answer


class TracedSandbox:
    """Satisfies `ports.Sandbox`."""

    def __init__(self, sandbox: Sandbox, traces: Traces, opened: Callable[[str], None]) -> None:
        self.name = sandbox.name
        self._sandbox = sandbox
        self._traces = traces
        self._opened = opened

    def prepare(
        self, spec: EnvSpec, tree: Iterable[bytes], cancel: Event | None = None
    ) -> PreparedEnv:
        """See `ports.Sandbox`."""
        with self._traces.span("sandbox prepare", {"regreen.setup": spec.setup or ""}) as span:
            env = self._sandbox.prepare(spec, tree, cancel)
            span.note({"regreen.image": env.image})
            return env

    def open(self, env: PreparedEnv, tree: Iterable[bytes], limits: BoxLimits | None = None) -> Box:
        """See `ports.Sandbox`."""
        with self._traces.span("sandbox open", {"regreen.backend": self.name}):
            box = self._sandbox.open(env, tree, limits)
        self._opened(self.name)
        return _TracedBox(box, self._traces)

    def pythons(self) -> tuple[str, ...]:
        """See `ports.Sandbox`."""
        return self._sandbox.pythons()

    def doctor(self) -> list[DoctorCheck]:
        """See `ports.Sandbox`."""
        return self._sandbox.doctor()


class _TracedBox:
    """Satisfies `ports.Box`."""

    def __init__(self, box: Box, traces: Traces) -> None:
        self._box = box
        self._traces = traces

    def __enter__(self) -> Self:
        self._box.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._box.__exit__(kind, error, trace)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cwd: str = "/work",
        stdin: bytes | None = None,
        cancel: Event | None = None,
    ) -> RunResult:
        """See `ports.Box`."""
        with self._traces.span("sandbox run", _command_attributes(argv)) as span:
            result = self._box.run(
                argv, timeout=timeout, env=env, cwd=cwd, stdin=stdin, cancel=cancel
            )
            return _record_result(span, result)

    def reset_and_run(
        self,
        tree: Iterable[bytes],
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cancel: Event | None = None,
    ) -> RunResult:
        """See `ports.Box`."""
        with self._traces.span("sandbox run", _command_attributes(argv)) as span:
            result = self._box.reset_and_run(tree, argv, timeout=timeout, env=env, cancel=cancel)
            return _record_result(span, result)

    def read(self, path: str, limit: int = 1024 * 1024) -> bytes | None:
        """See `ports.Box`."""
        return self._box.read(path, limit)

    def write(self, files: Mapping[str, bytes]) -> None:
        """See `ports.Box`."""
        self._box.write(files)

    def close(self) -> None:
        """See `ports.Box`."""
        self._box.close()


def _command_attributes(argv: Sequence[str]) -> dict[str, SpanValue]:
    return {"process.command_line": shlex.join(argv)}


def _record_result(span: Span, result: RunResult) -> RunResult:
    """Record in the span how the command ended. A failing command is a result, no error of Regreen."""
    span.note({"regreen.ended": result.ended})
    if result.exit_code is not None:
        span.note({"process.exit.code": result.exit_code})
    return result
