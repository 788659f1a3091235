"""What the lock files of yarn, pnpm and Go hold: which packages, from which hosts, checked or not."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import urlsplit

from regreen.codebase.dependency import Declared, Dependency, is_usual_index

_YARN = re.compile(r"^\"?(@?[^@\s\"]+)@([^\n]{1,2000}):\s*$")
_PNPM = re.compile(r"^ {2}['\"]?/?(@?[\w.-]+(?:/[\w.-]+)??)[@/](\d[^'\"\s():]{0,100})[^:\s]{0,300}['\"]?:\s*$")  # fmt: skip
_CHECKED = re.compile(r"^\s+(?:integrity|checksum)[: ]|\bintegrity: ")
_ADDRESS = re.compile(r"(?:resolved\s+\"|tarball:\s*['\"]?)(https?://[^\s\"'#},]{1,500})")
_SUM = re.compile(r"\bsha\d+-[A-Za-z0-9+/=]+")
_GO_SUM = re.compile(r"^(\S{1,300}) (v[^\s/]{1,100})(?:/go\.mod)? h1:")


def yarn_lock(text: str) -> Declared:
    """Yarn's lock file, of the first version or a later one."""
    return _blocks(text, _YARN)


def pnpm_lock(text: str) -> Declared:
    """Pnpm's lock file; only its packages have addresses, so its importers are passed over."""
    return _blocks(text, _PNPM)


def go_sum(text: str) -> Declared:
    """Go's sums: every module whose code or manifest is checked."""
    found: dict[tuple[str, str], Dependency] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if match := _GO_SUM.match(line):
            sums = frozenset({f"{'manifest' if '/go.mod ' in line else 'h1'}:{line.split()[-1]}"})
            known = found.get((match[1], match[2]))
            one = known or Dependency(match[1], "go", match[2], line=number, hashed=True)
            found[match[1], match[2]] = replace(one, sums=one.sums | sums)
    return Declared(tuple(found.values()), is_lock=True)


def _blocks(text: str, header: re.Pattern[str]) -> Declared:
    """A header for each package, and under it, further in, where it comes from and its sum."""
    found: list[Dependency] = []
    indexes: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if match := header.match(line):
            if match[1] != "__metadata" and "@workspace:" not in line and "@file:" not in line:
                found.append(Dependency(match[1], "npm", match[2][:100], line=number))
            continue
        if found and _CHECKED.search(line):
            found[-1] = replace(found[-1], hashed=True)
            # yarn's headers name a range, so another sum may only be another version
            if header is _PNPM and (summed := _SUM.search(line)) is not None:
                found[-1] = replace(found[-1], sums=frozenset({summed[0]}))
        if address := _ADDRESS.search(line):
            host = urlsplit(address[1]).hostname
            if host and not is_usual_index(host):
                indexes.setdefault(f"https://{host}", number)
    return Declared(tuple(found), tuple(indexes.items()), is_lock=True)
