"""A bubblewrap box that does not become ready: one clear error, in time, and nothing is left running."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from uuid import uuid4

import pytest

from regreen.adapters.sandbox.bubblewrap import box_limiter, bubblewrap_backend, control_group
from regreen.adapters.sandbox.bubblewrap.box_limiter import BoxLimiter, ProcessTreeWatch
from regreen.adapters.sandbox.bubblewrap.bubblewrap_sandbox import BwrapSandbox
from regreen.adapters.sandbox.bubblewrap.control_group import UserScope
from regreen.domain.errors import OutsideError
from regreen.domain.models import BoxLimits, EnvSpec

pytestmark = pytest.mark.sandbox


def make_scope(limits: BoxLimits) -> BoxLimiter:
    """The processes of a user's scope, which a shell outlives, without systemd."""
    scope = UserScope(limits)
    scope.enter = scope.enter[-4:]
    return scope


@pytest.mark.parametrize("make_limiter", [box_limiter.make_limiter, ProcessTreeWatch, make_scope])
def test_a_box_that_does_not_answer_in_time_is_ended(
    make_limiter: Callable[[BoxLimits], BoxLimiter], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("bwrap") is None or control_group.explain_unavailable():
        pytest.skip("needs bubblewrap and control groups")
    marker = f"never ready {uuid4().hex}"

    def make_sleeping(limits: BoxLimits) -> BoxLimiter:
        limiter = make_limiter(limits)
        limiter.prologue += f"import time; time.sleep(600)  # {marker}\n"
        return limiter

    sandbox = BwrapSandbox.connect(tmp_path)
    errors: list[str] = []

    def prepare() -> None:
        with pytest.raises(OutsideError) as error:
            sandbox.prepare(EnvSpec(), ())
        errors.append(str(error.value))

    with monkeypatch.context() as patch:
        patch.setattr(bubblewrap_backend, "make_limiter", make_sleeping)
        patch.setattr(bubblewrap_backend, "_READY_S", 2.0)
        thread = Thread(target=prepare, daemon=True)
        thread.start()
        thread.join(20)
    assert errors == ["bubblewrap could not start a box: no answer"]
    deadline = time.monotonic() + 10
    while find_processes(marker) and time.monotonic() < deadline:  # the kernel takes a moment
        time.sleep(0.05)
    assert not find_processes(marker)
    assert sandbox.prepare(EnvSpec(), ()).backend == "bwrap"


def find_processes(marker: str) -> list[int]:
    """The processes whose command line holds `marker`. A zombie has none."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found
