"""What one box may use at most: a new limit begins here, and each sandbox backend enforces it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoxLimits:
    """The limits of one box: bytes, processes, cores; a network only if a trusted caller allows it."""

    memory: int = 2 * 1024**3
    disk: int = 1024**3
    tmp: int = 256 * 1024**2
    pids: int = 512
    cpus: float = 2.0
    output: int = 64 * 1024
    flood: int = 64 * 1024**2
    network: bool = False
