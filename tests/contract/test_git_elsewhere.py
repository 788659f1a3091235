"""Clones that do not hold everything: submodules, large files, shallow and partial histories."""

from __future__ import annotations

import io
import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from regreen.adapters.git.repository import GitRepository
from regreen.bisect import commit_graph
from regreen.domain.errors import UserError
from tests.checkout import Checkout

ANYWHERE = ("-c", "protocol.file.allow=always")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *ANYWHERE, *words], cwd=folder, check=True, capture_output=True)


def clone(checkout: Checkout, place: Path, *flags: str) -> GitRepository:
    git(checkout.root, "clone", "-q", *flags, checkout.root.as_uri(), str(place))
    return GitRepository.open(place, home=place.parent / "home")


def files(repository: GitRepository, rev: str, **overlay: bytes) -> dict[str, bytes]:
    stream = b"".join(repository.archive(rev, overlay))
    with tarfile.open(fileobj=io.BytesIO(stream)) as tar:
        return {m.name: (f.read() if (f := tar.extractfile(m)) else b"") for m in tar if m.isreg()}


def test_a_submodule_comes_along_where_this_clone_has_it(
    checkout: Checkout, tmp_path: Path
) -> None:
    library = Checkout(tmp_path / "library")
    library.commit("one", inside="1\n")
    git(checkout.root, "submodule", "add", "-q", str(library.root), "vendor/lib")
    head = checkout.commit("use it", outside="2\n")
    there = GitRepository.open(checkout.root, home=tmp_path / "home")
    assert files(there, head, more=b"3")["vendor/lib/inside"] == b"1\n"
    assert there.list_missing_content(head) == ()
    bare = clone(checkout, tmp_path / "bare")
    assert "vendor/lib/inside" not in files(bare, head)
    assert bare.list_missing_content(head) == (
        "submodule vendor/lib: not in this clone; run `git submodule update --init --recursive`",
    )


def test_a_submodule_whose_name_leads_out_is_not_followed(
    checkout: Checkout, tmp_path: Path
) -> None:
    other = Checkout(tmp_path / "other")
    sha = other.commit("secret", secret="1\n")
    modules = '[submodule "../../../other/.git"]\n\tpath = lib\n\turl = x\n'
    (checkout.root / ".gitmodules").write_text(modules)
    git(checkout.root, "update-index", "--add", "--cacheinfo", f"160000,{sha},lib")
    head = checkout.commit("evil", a="1\n")
    repository = GitRepository.open(checkout.root, home=tmp_path / "home")
    assert set(files(repository, head)) == {".gitmodules", "a"}


def test_a_large_file_is_filled_from_this_clone(checkout: Checkout, tmp_path: Path) -> None:
    content = b"large\n" * 1000
    oid = sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"
    (checkout.root / ".gitattributes").write_text("*.bin filter=lfs\n")
    git(checkout.root, "config", "filter.lfs.clean", "cat")
    (checkout.root / "data.bin").write_text(pointer)
    head = checkout.commit("add data", a="1\n")
    repository = GitRepository.open(checkout.root, home=tmp_path / "home")
    assert files(repository, head)["data.bin"] == pointer.encode()
    assert repository.list_missing_content(head) == (
        "1 Git LFS file (data.bin): only pointers are in this clone; run `git lfs fetch --all`",
    )
    place = checkout.root / ".git/lfs/objects" / oid[:2] / oid[2:4] / oid
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    assert files(repository, head)["data.bin"] == content
    assert repository.list_missing_content(head) == ()


def test_a_shallow_clone_serves_for_what_it_holds(checkout: Checkout, tmp_path: Path) -> None:
    shas = [checkout.commit(f"{at}", a=f"{at}\n") for at in range(6)]
    shallow = clone(checkout, tmp_path / "shallow", "--depth=4")
    assert commit_graph.resolve_range(shas[3], "HEAD", find_fix=False, git=shallow).good == shas[3]
    with pytest.raises(UserError, match="git fetch --unshallow"):
        commit_graph.resolve_range(shas[0], "HEAD", find_fix=False, git=shallow)
    with pytest.raises(UserError, match="git fetch --unshallow"):
        commit_graph.refuse_incomplete_clone(None, shas[5], shallow)


@pytest.mark.parametrize("kind", ["blob:none", "tree:0"])
def test_a_partial_clone_is_refused_until_it_has_the_range(
    kind: str, checkout: Checkout, tmp_path: Path
) -> None:
    git(checkout.root, "config", "uploadpack.allowFilter", "true")
    shas = [checkout.commit(f"{at}", a=f"{at}\n") for at in range(4)]
    partial = clone(checkout, tmp_path / "partial", f"--filter={kind}", "--no-checkout")
    with pytest.raises(UserError, match="this clone is partial"):
        commit_graph.resolve_range(shas[0], "HEAD", find_fix=False, git=partial)
    git(tmp_path / "partial", "config", "--unset", "remote.origin.partialclonefilter")
    git(tmp_path / "partial", "fetch", "-q", "--refetch")
    assert commit_graph.resolve_range(shas[0], "HEAD", find_fix=False, git=partial).good == shas[0]
