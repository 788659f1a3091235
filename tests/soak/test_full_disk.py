"""The disk fills up: no delivery is acknowledged that is not kept, and when there is room again the work goes on."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from regreen_playground import serve
from regreen_playground.events import again
from regreen_playground.things import Delivery

from tests.soak import reckoning
from tests.soak.scenes import SHOP, Scene
from tests.soak.served import Nursery, Served, environment, free_port

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of eight megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    if subprocess.run(argv, check=False, capture_output=True).returncode != 0:
        pytest.skip("nothing can be mounted here: that takes root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_fills_up_and_has_room_again(tmp_path: Path, small_disk: Path) -> None:
    url = f"sqlite:///{small_disk / 'regreen.sqlite'}"
    port, nursery = free_port(), Nursery()
    with serve(port=0) as playground:
        state = playground.state
        scene = Scene(playground, random.Random(1))
        names = scene.set_up()
        app, key = state.app("Regreen", hook_url=f"http://127.0.0.1:{port}/webhooks/github")
        env = environment(tmp_path, url, playground, app, key)
        served = Served(nursery, port, env, tmp_path)
        try:
            served.start()
            state.install(app, *names)
            issue = state.open_issue(SHOP, "Broken", by="alice")
            state.comment(issue, "/config", by="alice")
            _until_delivered(app.deliveries)
            reckoning.drain(url, 300)
            _fill(small_disk / "ballast")
            for _ in range(12):
                state.comment(issue, "/help " + "please " * 2000, by="alice")
                state.comment(issue, "/config", by="alice")
            _until_delivered(app.deliveries)
            refused = [d for d in app.deliveries if d.status_code >= 300]
            assert refused, "the disk was not full"
            assert {d.status_code for d in refused} <= {503, 504}
            (small_disk / "ballast").unlink()
            for delivery in refused:
                again(state, delivery)
            _until_delivered(app.deliveries)
            assert {d.status_code for d in app.deliveries if d.redelivery} == {202}
            reckoning.drain(url, 600)
            reckoning.nothing_is_lost(url, app)
            for repository in scene.repositories():
                reckoning.nothing_is_doubled(repository)
            said = [c for c in issue.comments if c.user.type == "Bot"]
            assert len(said) == len([c for c in issue.comments if c.user.type != "Bot"])
        finally:
            served.kill()
            nursery.close()


def _fill(path: Path) -> None:
    piece = b"x" * 4096
    with path.open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(piece)
        except OSError:
            return


def _until_delivered(deliveries: Sequence[Delivery]) -> None:
    deadline = time.monotonic() + 300
    while any(d.status == "pending" for d in deliveries):
        assert time.monotonic() < deadline
        time.sleep(0.2)
