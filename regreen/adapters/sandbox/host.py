"""What this machine provides to a box: its Pythons and /usr (read-only), certificates, and package indexes.

The skeleton is a root directory without programs: links into the host's /usr, which is mounted read-only.
It replaces an image if no registry can be reached.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from regreen.adapters.sandbox.layout import DEFAULT_PATH, PROGRAMS_DIR
from regreen.secrets.redaction import looks_random

CERTIFICATES_DIR = Path("/etc/ssl/certs")
BOX_UID = 1000
# The process that keeps a box alive has a user of its own, so that nothing inside can stop it.
KEEPER_UID = 1001

_OLDEST_PYTHON = (3, 6)  # the first whose venv and pip still work from today's indexes
_CA_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_CA_MORE = ("GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "CARGO_HTTP_CAINFO", "UV_SSL_CERT_FILE")
_INDEX_VARIABLES = (
    "PIP_INDEX_URL",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "NPM_CONFIG_REGISTRY",
    "GOPROXY",
)
# Small files that programs under /usr expect; none of them reveals the host.
_ETC_FILES = (
    "ld.so.cache",
    "ld.so.conf",
    "mime.types",
    "protocols",
    "services",
    "shells",
    "debian_version",
)
# Debian's Java and Maven read their settings from /etc. Maven's settings.xml may hold passwords of repositories.
_ETC_OF_TOOLCHAINS = ("java-*/**/*", "maven/**/*")
_PRIVATE = frozenset({"settings.xml", "settings-security.xml", "jmxremote.password"})
_TOOLCHAIN_PROGRAMS = (
    "cargo",
    "rustc",
    "rustdoc",
    "rustfmt",
    "cargo-fmt",
    "cargo-clippy",
    "clippy-driver",
    "cargo-nextest",
    "cargo-llvm-cov",
    "go",
    "gofmt",
    "staticcheck",
    "java",
    "javac",
    "jar",
    "mvn",
    "gradle",
    "node",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "bun",
    "deno",
)

# What only the root of Rust, Go, a JDK, Node.js, Maven and Gradle has.
_TOOLCHAIN_SIGNS = (
    "lib/rustlib",
    "src/runtime/*.go",
    "lib/modules",
    "include/node/node.h",
    "boot/plexus-classworlds-*.jar",
    "lib/gradle-launcher-*.jar",
)


@dataclass(frozen=True, slots=True)
class HostPython:
    """An interpreter of this machine. To run it, `root` must be visible in a box at the same path."""

    version: str
    exe: Path
    root: Path

    @property
    def identity(self) -> str:
        """Changes when the interpreter is replaced by another build."""
        stat = self.exe.stat()
        return f"{self.exe}:{stat.st_size}:{int(stat.st_mtime)}"


def find_pythons() -> dict[str, HostPython]:
    """The interpreters found on this machine by "3.11"; the newest build of each."""
    pythons: dict[str, HostPython] = {}
    for python in _iterate_candidates():
        pythons.setdefault(python.version, python)
    return dict(sorted(pythons.items(), key=lambda item: _version_number(item[0])))


def own_version() -> str:
    """The version of the Python that runs Regreen."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def can_serve_as_skeleton() -> bool:
    """Whether /usr of this machine can serve as the programs of a box."""
    return sys.platform == "linux" and all(
        Path(link).is_symlink() for link in ("/bin", "/lib", "/sbin")
    )


def make_skeleton_tar() -> bytes:
    """A root directory as a tar file: 4 KB of directories, links and small tables."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, mode, owner in _SKELETON_DIRECTORIES:
            tar.addfile(_tar_entry(name, tarfile.DIRTYPE, mode=mode, owner=owner))
        for name in ("bin", "lib", "lib32", "lib64", "libx32"):
            if Path("/", name).is_symlink():
                tar.addfile(_tar_entry(name, tarfile.SYMTYPE, link=f"usr/{name}"))
        for name, link in _etc_links():
            tar.addfile(_tar_entry(name, tarfile.SYMTYPE, link=link))
        for program, path in _find_programs().items():
            name = f"{PROGRAMS_DIR[1:]}/{program}"
            tar.addfile(_tar_entry(name, tarfile.SYMTYPE, link=str(path)))
        for name, content in _etc_files():
            entry = _tar_entry(name, tarfile.REGTYPE, mode=0o644)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        # The engine lays its init over this file, which must exist: /sbin cannot be a link into a read-only /usr.
        tar.addfile(_tar_entry("sbin/docker-init", tarfile.REGTYPE, mode=0o755))
    return buffer.getvalue()


def skeleton_mounts(python: HostPython | None) -> tuple[str, ...]:
    """Directories of the host that a skeleton box shows, read-only and at the same path."""
    mounts = ["/usr"]
    if CERTIFICATES_DIR.is_dir():
        mounts.append(str(CERTIFICATES_DIR))
    if python is not None and not python.root.is_relative_to("/usr"):
        mounts.append(str(python.root))
    roots = {path.parent.parent for path in _find_programs().values()}
    mounts += sorted(str(root) for root in roots if not root.is_relative_to("/usr"))
    return tuple(mounts)


def _find_programs() -> dict[str, Path]:
    """The programs of toolchains that are not on the PATH of a box, by name: those of rustup, of version managers, of /opt."""
    found: dict[str, Path] = {}
    for name in _TOOLCHAIN_PROGRAMS:
        path = shutil.which(name)
        if path is None or str(Path(path).parent) in DEFAULT_PATH.split(":"):
            continue
        real = Path(path).resolve()
        if real.name == "rustup":  # one program stands for all: the toolchain has the real ones
            real = _default_rust_toolchain() / "bin" / name
        if real.is_file() and real.parent.name == "bin" and _is_toolchain_root(real.parent.parent):
            found[name] = real
    return found


def _is_toolchain_root(root: Path) -> bool:
    """Whether a directory is one toolchain: a GOPATH, a CARGO_HOME or an application's folder holds what is its user's."""
    is_one = any(next(root.glob(sign), None) for sign in _TOOLCHAIN_SIGNS)
    return is_one and not Path.home().is_relative_to(root)


def _default_rust_toolchain() -> Path:
    home = Path(os.environ.get("RUSTUP_HOME") or Path.home() / ".rustup")
    try:
        settings = tomllib.loads((home / "settings.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return home
    name = os.environ.get("RUSTUP_TOOLCHAIN") or settings.get("default_toolchain")
    return (home / "toolchains" / str(name)).resolve()


def ca_bundle() -> Path | None:
    """The file of certificate authorities that this machine trusts."""
    named = [Path(os.environ[name]) for name in _CA_VARIABLES if os.environ.get(name)]
    usual = [CERTIFICATES_DIR / "ca-certificates.crt", Path("/etc/pki/tls/certs/ca-bundle.crt")]
    return next((path.resolve() for path in named + usual if path.is_file()), None)


def network_env(ca: str | None, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Environment variables with this machine's package indexes for a setup.

    An address with a credential is included only if the operator sets REGREEN_INDEX_CREDENTIALS=1: the
    code of a repository can read it.

    Args:
        ca: where the certificate authorities lie in the box.
        environ: the host's environment.
    """
    env = dict.fromkeys((*_CA_VARIABLES, *_CA_MORE), ca) if ca else {}
    return {name: value for name, value in env.items() if value} | _shareable_index_variables(
        environ
    )


def index_addresses() -> list[str]:
    """The addresses of the package indexes that boxes are told to use."""
    parts = [
        part
        for value in _shareable_index_variables(os.environ).values()
        for part in re.split(r"[,|\s]+", value)
    ]
    return [part for part in parts if part.startswith(("http://", "https://"))]


def _shareable_index_variables(environ: Mapping[str, str]) -> dict[str, str]:
    variables = {name: environ.get(name, "") for name in _INDEX_VARIABLES}
    variables["PIP_INDEX_URL"] = variables["PIP_INDEX_URL"] or _configured_index()
    may_tell = environ.get("REGREEN_INDEX_CREDENTIALS") == "1"
    return {
        name: value
        for name, value in variables.items()
        if value and (may_tell or not _holds_credential(value))
    }


def _holds_credential(value: str) -> bool:
    """Whether one of the addresses contains a user, or a random-looking part in its path or query."""
    addresses = [urlsplit(url) for url in re.split(r"[,|\s]+", value)]
    parts = [part for url in addresses for part in re.split(r"[/&]", f"{url.path}/{url.query}")]
    return "@" in value or any(looks_random(part) for part in parts)


def _configured_index() -> str:
    places = (
        Path("/etc/pip.conf"),
        Path.home() / ".config/pip/pip.conf",
        Path.home() / ".pip/pip.conf",
    )
    config = ConfigParser(interpolation=None, strict=False)
    try:
        config.read(places, encoding="utf-8")
    except (OSError, UnicodeDecodeError, ConfigError):
        return ""
    return config.get("global", "index-url", fallback="")


_SKELETON_DIRECTORIES: tuple[tuple[str, int, int], ...] = (
    *(
        (name, 0o755, 0)
        for name in (
            "etc",
            "etc/alternatives",
            "etc/regreen",
            PROGRAMS_DIR[1:],
            "etc/ssl",
            "etc/ssl/certs",
            "home",
            "sbin",
            "usr",
        )
    ),
    *((name, 0o755, 0) for name in ("dev", "proc", "sys", "run", "var", "opt", "root", "mnt")),
    ("tmp", 0o1777, 0),
    ("var/tmp", 0o1777, 0),
    ("work", 0o755, BOX_UID),
    ("env", 0o755, BOX_UID),
    ("home/regreen", 0o755, BOX_UID),
)
_PASSWD_TEXT = f"""root:x:0:0:root:/root:/bin/sh
regreen:x:{BOX_UID}:{BOX_UID}::/home/regreen:/bin/sh
keeper:x:{KEEPER_UID}:{KEEPER_UID}::/:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/sh
"""
_GROUP_TEXT = (
    f"root:x:0:\ntty:x:5:\nregreen:x:{BOX_UID}:\nkeeper:x:{KEEPER_UID}:\nnogroup:x:65534:\n"
)


def _etc_files() -> Iterator[tuple[str, bytes]]:
    yield "etc/passwd", _PASSWD_TEXT.encode()
    yield "etc/group", _GROUP_TEXT.encode()
    yield (
        "etc/nsswitch.conf",
        b"passwd: files\ngroup: files\nhosts: files dns\nprotocols: files\nservices: files\n",
    )
    yield "etc/resolv.conf", b""
    yield "etc/hosts", b"127.0.0.1 localhost\n::1 localhost\n"
    for name in _ETC_FILES:
        path = Path("/etc", name)
        if path.is_file():
            yield f"etc/{name}", path.read_bytes()
    for pattern in _ETC_OF_TOOLCHAINS:
        for path in sorted(Path("/etc").glob(pattern)):
            if path.is_file() and path.stat().st_mode & stat.S_IROTH and path.name not in _PRIVATE:
                yield str(path)[1:], path.read_bytes()


def _etc_links() -> Iterator[tuple[str, str]]:
    yield "etc/localtime", "/usr/share/zoneinfo/Etc/UTC"
    yield "etc/os-release", "../usr/lib/os-release"
    yield "etc/mtab", "/proc/self/mounts"
    alternatives = Path("/etc/alternatives")  # Debian's cc and awk lead through here
    if alternatives.is_dir():
        for path in sorted(alternatives.iterdir()):
            if path.is_symlink() and not path.name.endswith(".gz"):
                yield f"etc/alternatives/{path.name}", str(path.readlink())


def _tar_entry(
    name: str, kind: bytes, *, mode: int = 0o777, owner: int = 0, link: str = ""
) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.linkname = kind, mode, link
    entry.uid = entry.gid = owner
    return entry


def _iterate_candidates() -> Iterator[HostPython]:
    """Interpreters by preference: the one that runs Regreen, then those of version managers and the system."""
    yield from _find_interpreters(Path(sys.base_prefix))
    home = Path.home()
    managed = [
        *home.glob(".pyenv/versions/*"),
        *home.glob(".local/share/uv/python/cpython-*"),
        *Path("/opt/hostedtoolcache/Python").glob("*/*"),
        *Path("/opt/python").glob("*"),
    ]
    real = {path.resolve() for path in managed if path.is_dir()}
    for root in sorted(real, key=lambda path: _version_number(path.name), reverse=True):
        yield from _find_interpreters(root)
    for root in (Path("/usr/local"), Path("/usr")):
        yield from _find_interpreters(root)


def _find_interpreters(prefix: Path) -> Iterator[HostPython]:
    root = prefix.resolve()
    for exe in sorted((root / "bin").glob("python3.*")):
        name = re.fullmatch(r"python(3\.\d+)", exe.name)
        if name is None or _version_number(name[1]) < _OLDEST_PYTHON:
            continue
        library = root / "lib" / exe.name
        if (library / "ensurepip" / "__init__.py").is_file() and (library / "venv").is_dir():
            yield HostPython(version=name[1], exe=exe, root=_visible_root(root))


def _visible_root(root: Path) -> Path:
    return Path("/usr") if root.is_relative_to("/usr") else root


def _version_number(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", name)[:3])
