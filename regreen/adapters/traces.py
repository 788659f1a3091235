"""Traces by OpenTelemetry, where the operator names a collector; nothing of it is imported where not."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from regreen import __version__
from regreen.codebase.redaction import redact
from regreen.ports import NoTraces, Traces, Value

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

_PATH = "/v1/traces"
_LONGEST = 300

_log = logging.getLogger(__name__)


def traces_to(endpoint: str | None) -> Traces:
    """Traces to an OTLP collector over HTTP ("http://host:4318"); none where there is no endpoint.

    The SDK reads the rest of its `OTEL_...` variables (headers, service name, sampler) by itself. Where it is not
    installed this is said once, and the App goes on without: whoever set the variable may have meant others.
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
    exporter = OTLPSpanExporter(endpoint=endpoint.rstrip("/").removesuffix(_PATH) + _PATH)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return _OpenTelemetry(provider)


class _OpenTelemetry:
    """Satisfies `ports.Traces`."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("regreen", __version__)

    @contextmanager
    def span(self, name: str, about: Mapping[str, Value]) -> Iterator[_Noted]:
        """One piece of work, below the one that this thread is in."""
        with self._tracer.start_as_current_span(
            name, attributes=_clean(about), record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield _Noted(span)
            except BaseException as error:
                # the SDK's own way would send the traceback, and what stands in its lines
                _failed(span, error)
                raise

    def close(self) -> None:
        """Send what waits."""
        self._provider.shutdown()


class _Noted:
    """Satisfies `ports.Span`."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def note(self, found: Mapping[str, Value]) -> None:
        """Add what came out."""
        self._span.set_attributes(_clean(found))


def _failed(span: Span, error: BaseException) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", type(error).__name__)
    span.set_status(Status(StatusCode.ERROR, redact(str(error))[:_LONGEST]))


def _clean(about: Mapping[str, Value]) -> dict[str, Value]:
    """Attributes with a value, no credential in any."""
    return {
        key: redact(value)[:_LONGEST] if isinstance(value, str) else value
        for key, value in about.items()
        if value not in ("", None)
    }
