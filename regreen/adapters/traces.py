"""Traces by OpenTelemetry, if the operator names a collector; otherwise nothing of it is imported."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from regreen import __version__
from regreen.domain.ports import NoTraces, SpanValue, Traces
from regreen.secrets.redaction import redact_secrets

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

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

    def __init__(self, span: Span) -> None:
        self._span = span

    def note(self, values: Mapping[str, SpanValue]) -> None:
        """Add attributes with results."""
        self._span.set_attributes(_clean_attributes(values))


def _record_error(span: Span, error: BaseException) -> None:
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
