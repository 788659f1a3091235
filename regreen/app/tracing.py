"""Traced ports of a job: each model call and each run in a box is a span, and boxes are counted."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Event
from types import TracebackType
from typing import Self

from regreen.domain.box_limits import BoxLimits
from regreen.domain.models import (
    DoctorCheck,
    EnvSpec,
    ModelAnswer,
    ModelRequest,
    PreparedEnv,
    RunResult,
)
from regreen.domain.ports import Box, Model, Sandbox, Span, SpanValue, Traces


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
