"""An image that a repository names takes no more of this machine than a box may, and goes when nobody uses it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from regreen.adapters.sandbox.docker.docker_images import (
    PULLED_REPOSITORY,
    DockerImages,
    connect_engine,
)
from regreen.adapters.sandbox.docker.docker_sandbox import DockerBackend, DockerPlan, DockerSandbox
from regreen.adapters.sandbox.retention import DiskGuard, UsageLedger
from regreen.domain.errors import OutsideError, UserError
from regreen.domain.models import BoxLimits, EnvSpec, Retention
from tests.contract.sandboxes import sandbox_or_skip

pytestmark = pytest.mark.sandbox
MiB = 1024**2
PROGRAMS = "sh bash tar cat mkdir rm cp mv ls head find sort comm sed grep wc id stat dd sha256sum chmod env"


def root_of_image() -> bytes:
    """A small root directory that a box can run in, made from this machine's programs."""
    files = {os.path.realpath(found) for one in PROGRAMS.split() if (found := shutil.which(one))}
    listed = subprocess.run(["ldd", *files], capture_output=True, text=True, check=True).stdout
    libraries = set(re.findall(r"(/\S+\.so\S*) \(0x", listed))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted(files | libraries):
            tar.add(os.path.realpath(path), path.removeprefix("/"))
        for one in PROGRAMS.split():
            found = shutil.which(one) or ""
            for name in {f"/bin/{one}", f"/usr/bin/{one}"} - files:
                link = tarfile.TarInfo(name.removeprefix("/"))
                link.type, link.linkname = tarfile.SYMTYPE, os.path.realpath(found)
                tar.addfile(link)
        for name in ("tmp", "scratch", "sbin"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(folder)
        tar.addfile(tarfile.TarInfo("sbin/docker-init"))
    return buffer.getvalue()


@pytest.fixture
def sandbox(tmp_path: Path) -> DockerSandbox:
    sandbox_or_skip("docker")
    return DockerSandbox.connect(ledger=UsageLedger(tmp_path / "used"))


@pytest.fixture
def local() -> Iterator[str]:
    """An image of this machine's programs that declares volumes."""
    sandbox_or_skip("docker")
    client, tag = connect_engine(), secrets.token_hex(6)
    client.import_image_from_data(
        root_of_image(),
        repository="test-regreen",
        tag=tag,
        changes=["VOLUME /scratch", "VOLUME /work/../deep/er"],
    )
    yield f"test-regreen:{tag}"
    client.remove_image(f"test-regreen:{tag}", force=True)
    client.close()


@pytest.fixture
def registry() -> Iterator[tuple[str, list[str]]]:
    """A registry on loopback with one image: its name there, and what was asked for."""
    sandbox_or_skip("docker")
    root = root_of_image() + secrets.token_bytes(16)
    layer = gzip.compress(root, 1)
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [digest(root)]},
        }
    ).encode()
    kind = "application/vnd.docker.distribution.manifest.v2+json"
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": kind,
            "config": described("application/vnd.docker.container.image.v1+json", config),
            "layers": [described("application/vnd.docker.image.rootfs.diff.tar.gzip", layer)],
        }
    ).encode()
    served = {digest(one): one for one in (layer, config, manifest)}
    asked: list[str] = []

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            last = self.path.rpartition("/")[2]
            content = manifest if last == "latest" else served.get(last, b"{}")
            self.send_response(200)
            self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
            self.send_header("Content-Type", kind if content == manifest else "application/json")
            self.send_header("Docker-Content-Digest", digest(content))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, *args: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"127.0.0.1:{server.server_port}/programs-{secrets.token_hex(4)}:latest", asked
        server.shutdown()


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def described(kind: str, content: bytes) -> dict[str, object]:
    return {"mediaType": kind, "size": len(content), "digest": digest(content)}


def test_a_volume_of_the_image_has_a_limit_and_is_no_place_on_the_host(
    sandbox: DockerSandbox, local: str
) -> None:
    client = connect_engine()
    before = {one["Name"] for one in client.volumes()["Volumes"] or ()}
    fill = "for d in /scratch /deep/er; do cat /dev/zero > $d/x; stat -c %s $d/x; done"
    for env in (
        sandbox.prepare(EnvSpec(image=local), ()),
        sandbox.prepare(EnvSpec(image=local, setup=f": {secrets.token_hex(4)}", checked=True), ()),
    ):
        with sandbox.open(env, (), BoxLimits(disk=4 * MiB, tmp=2 * MiB)) as box:
            done = box.run(["sh", "-c", fill], timeout=60)
            during = {one["Name"] for one in client.volumes()["Volumes"] or ()}
        assert [int(size) <= 2 * MiB for size in done.stdout.split()] == [True, True], done
        assert during == before


def test_a_pulled_image_is_used_again_and_goes_when_nobody_uses_it(
    sandbox: DockerSandbox, registry: tuple[str, list[str]], tmp_path: Path
) -> None:
    image, asked = registry
    env = sandbox.prepare(EnvSpec(image=image), ())
    with sandbox.open(env, ()) as box:
        assert box.run(["sh", "-c", "echo here"], timeout=30).stdout == "here\n"
    pulls = len(asked)
    assert pulls > 0
    assert sandbox.prepare(EnvSpec(image=image), ()).image == env.image
    assert len(asked) == pulls, "pulled once"
    kept = [
        one
        for one in sandbox.list_environments()
        if one.name.startswith(PULLED_REPOSITORY) and is_noted(tmp_path, one.name)
    ]
    assert len(kept) == 1
    for file in (tmp_path / "used").iterdir():
        os.utime(file, (time.time() - 30 * 86400,) * 2)
    assert sandbox.prune(Retention(days=20)) >= 2
    assert not any(one.name == kept[0].name for one in sandbox.list_environments())
    client = connect_engine()
    assert not [tag for one in client.images() for tag in one["RepoTags"] or () if image in tag]


def is_noted(tmp_path: Path, name: str) -> bool:
    return (tmp_path / "used" / name).exists()


def test_an_image_that_is_too_large_is_refused_and_not_kept(
    registry: tuple[str, list[str]], tmp_path: Path
) -> None:
    image, _ = registry
    client = connect_engine()
    images = DockerImages(client, UsageLedger(tmp_path / "used"), max_image_bytes=MiB)
    with pytest.raises(UserError, match=r"is larger than 0\.0 GiB; if you trust it, `docker pull`"):
        images.ensure_image(image)
    assert images.find_image(image) is None
    assert DockerImages(client, UsageLedger(tmp_path / "used")).ensure_image(image)


def test_an_image_is_what_has_that_name_and_no_environment_of_ours(
    sandbox: DockerSandbox, local: str
) -> None:
    env = sandbox.prepare(EnvSpec(image=local, setup=f": {secrets.token_hex(4)}", checked=True), ())
    plain = sandbox.prepare(EnvSpec(image=local), ())
    assert sandbox.prepare(EnvSpec(image=f"docker.io/library/{local}"), ()) == plain
    hexadecimal = env.image.removeprefix("sha256:")
    for name in (f"regreen-env:{env.key}", f"docker.io/library/regreen-env:{env.key}", env.image,
                 hexadecimal, hexadecimal[:12], hexadecimal[:3]):  # fmt: skip
        with pytest.raises((UserError, OutsideError)):
            sandbox.prepare(EnvSpec(image=name), ())


def test_without_a_registry_the_pythons_are_those_whose_images_are_here(
    local: str, tmp_path: Path
) -> None:
    client = connect_engine()
    images = DockerImages(client, UsageLedger(tmp_path / "used"))
    versions = ("0.7", "0.8")  # which no registry has
    assert images.list_slim_pythons(versions) == versions, "none is here, so each may be tried"
    client.tag(local, "python", "0.7-slim")
    try:
        assert images.list_slim_pythons(versions) == ("0.7",)
    finally:
        client.remove_image("python:0.7-slim")


def test_a_pull_that_takes_too_long_is_stopped(
    registry: tuple[str, list[str]], tmp_path: Path
) -> None:
    images = DockerImages(connect_engine(), UsageLedger(tmp_path / "used"))
    with pytest.raises(UserError, match="could not be pulled in time"):
        images.ensure_image(registry[0], timeout=0)
    assert images.find_image(registry[0]) is None


def test_a_setup_that_fills_a_disk_we_cannot_see_is_stopped(sandbox: DockerSandbox) -> None:
    client = connect_engine()
    base = sandbox.prepare(EnvSpec(), ())
    seen = client.inspect_image(base.image)  # type: ignore[no-untyped-call]
    mounts = tuple(json.loads(seen["Config"]["Labels"]["regreen.mounts"]))
    cell = DockerBackend.start_container(
        client, DockerPlan(base.image, mounts, keeps=True), BoxLimits()
    )
    try:
        with DiskGuard(
            Path("/not/visible"), None, cell.count_written_bytes, max_bytes=20 * MiB
        ) as guard:
            assert not guard.stop.wait(4.0)
            cell.start_process(
                ["/bin/sh", "-c", "head -c 50000000 /dev/zero > /env/large"], {}, False
            )
            assert guard.stop.wait(30.0)
        assert guard.overflowed
    finally:
        cell.destroy()
