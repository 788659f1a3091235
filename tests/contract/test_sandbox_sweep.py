"""What a killed Regreen leaves behind on the Docker engine, and who may take it away."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from regreen.adapters.sandbox.docker.docker_sandbox import BOX_LABEL, DEADLINE_LABEL, DockerSandbox
from tests.contract.sandboxes import plain_env, sandbox_or_skip

pytestmark = pytest.mark.sandbox
_ANOTHER_PROCESS = "1"


class Engine:
    """Containers as another Regreen would have made them."""

    def __init__(self) -> None:
        from docker import APIClient

        self.image = plain_env("docker").image
        self.client = APIClient()
        self.made: list[str] = []

    def container(self, *, lifetime: float, ours: bool = True, started: bool = True) -> str:
        deadline = str(int(time.time() + lifetime))
        labels = {BOX_LABEL: _ANOTHER_PROCESS, DEADLINE_LABEL: deadline} if ours else {"other": "1"}
        created = self.client.create_container(
            self.image,
            ["/bin/cat"],
            stdin_open=True,
            labels=labels,
            network_disabled=True,
            # the skeleton image is empty: programs are the host's, read-only
            host_config=self.client.create_host_config(binds=["/usr:/usr:ro"]),
        )
        made = str(created["Id"])
        self.made.append(made)
        if started:
            self.client.start(made)
        return made

    def left(self) -> set[str]:
        return {one["Id"] for one in self.client.containers(all=True)} & set(self.made)

    def close(self) -> None:
        for one in self.left():
            self.client.remove_container(one, force=True)
        self.client.close()


@pytest.fixture
def engine() -> Iterator[Engine]:
    sandbox_or_skip("docker")
    engine = Engine()
    yield engine
    engine.close()


def test_what_outlived_its_deadline_goes_and_what_another_process_uses_stays(
    engine: Engine,
) -> None:
    engine.container(lifetime=-1)
    live = engine.container(lifetime=3600)
    foreign = engine.container(lifetime=-1, ours=False)
    young = engine.container(lifetime=3600, started=False)
    sandbox = sandbox_or_skip("docker")
    assert isinstance(sandbox, DockerSandbox)
    sandbox.sweep()
    kept = {live, foreign, young}
    until = time.monotonic() + 10  # another process on this engine may be removing the same box
    while engine.left() > kept and time.monotonic() < until:
        time.sleep(0.1)
    assert engine.left() == kept
