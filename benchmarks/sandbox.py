"""How long boxes take, as ratios to starting Python: every row of one round measured before the next round.

    python benchmarks/sandbox.py [--rounds 15] [--sandbox both|docker|bwrap|auto]

Machines and their load differ; a ratio within one interleaved run says what a box costs on top of the work.
"""

from __future__ import annotations

import argparse
import io
import resource
import statistics
import subprocess
import sys
import tarfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from regreen.adapters.sandbox.selection import choose_sandbox
from regreen.domain.errors import NoSandbox
from regreen.domain.models import BoxLimits, EnvSpec, PreparedEnv
from regreen.domain.ports import Sandbox

Times = dict[str, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sandbox", default="both")
    options = parser.parse_args()
    for kind in ("docker", "bwrap") if options.sandbox == "both" else (options.sandbox,):
        begun = time.perf_counter()
        try:
            measure(choose_sandbox(kind), options.rounds)
        except NoSandbox as error:
            print(f"no {kind} here: {error}")
        print(f"({time.perf_counter() - begun:.0f} s)\n", flush=True)


def measure(sandbox: Sandbox, rounds: int) -> None:
    """Every row of the table, for one backend."""
    env = sandbox.prepare(EnvSpec(), ())
    times: Times = defaultdict(list)
    files = five_thousand_files()
    with sandbox.open(env, ()) as warm:
        for _ in range(rounds):
            with timed(times, "python -c pass"):
                subprocess.run([sys.executable, "-c", "pass"], check=True)
            with timed(times, "command in a warm box"):
                assert warm.run(["true"], timeout=60).passed
            with timed(times, "fresh box, command, close"):
                fresh(sandbox, env)
    for _ in range(max(3, rounds // 5)):
        name = "fresh box with 5,000 files, command, a report out"
        with timed(times, name), sandbox.open(env, files) as box:
            assert box.run(["true"], timeout=60).passed
            assert box.read("d0/f0.txt", 1024) is not None
    report(sandbox.name, times)
    print(f"10 s of work in a box against outside: {job(sandbox, env):.2f}")
    for workers in (1, 2, 4):
        print(f"{workers} at a time: {throughput(sandbox, env, workers):.2f} boxes/s")
    seconds, megabytes = flood(sandbox, env)
    print(f"1 GB of output: {seconds:.1f} s, at most {megabytes:.0f} MiB more in this process")
    print(f"from the deadline to the kill: {lateness(sandbox, env):.2f} s")


@contextmanager
def timed(times: Times, name: str) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    times[name].append(time.perf_counter() - begun)


def fresh(sandbox: Sandbox, env: PreparedEnv) -> None:
    with sandbox.open(env, ()) as box:
        assert box.run(["true"], timeout=60).passed


def report(backend: str, times: Times) -> None:
    base = statistics.median(times["python -c pass"])
    print(f"| {backend} | p50 ms | p95 ms | x python -c pass |\n| --- | ---: | ---: | ---: |")
    for name, seen in times.items():
        middle = statistics.median(seen)
        late = sorted(seen)[min(len(seen) - 1, int(len(seen) * 0.95))]
        print(f"| {name} | {middle * 1e3:.1f} | {late * 1e3:.1f} | {middle / base:.1f} |")


def five_thousand_files() -> tuple[bytes]:
    """33 MB in 5,000 files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for number in range(5000):
            entry = tarfile.TarInfo(f"d{number % 100}/f{number}.txt")
            entry.size = 6600
            tar.addfile(entry, io.BytesIO(b"x" * entry.size))
    return (buffer.getvalue(),)


def job(sandbox: Sandbox, env: PreparedEnv) -> float:
    """The wall clock of some ten seconds of single-threaded work, inside over outside."""
    work = "import time\nend = time.process_time() + 10\nwhile time.process_time() < end: pass"
    outside = clock(lambda: subprocess.run([sys.executable, "-c", work], check=True))

    def inside() -> None:
        with sandbox.open(env, ()) as box:
            assert box.run(["python3", "-c", work], timeout=300).passed

    return clock(inside) / outside


def clock(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def throughput(sandbox: Sandbox, env: PreparedEnv, workers: int) -> float:
    count = 3 * workers
    with ThreadPoolExecutor(workers) as pool:
        seconds = clock(lambda: list(pool.map(lambda _: fresh(sandbox, env), range(count))))
    return count / seconds


def flood(sandbox: Sandbox, env: PreparedEnv) -> tuple[float, float]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    with sandbox.open(env, (), BoxLimits(flood=2 * 1024**3)) as box:
        assert box.run(["sh", "-c", "yes | head -c 1000000000"], timeout=600).truncated
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return time.perf_counter() - begun, (after - before) / 1024


def lateness(sandbox: Sandbox, env: PreparedEnv) -> float:
    """How long after its deadline a box is dead that floods, ignores signals and forks away."""
    script = "trap '' TERM INT HUP; setsid yes & while :; do :; done"
    with sandbox.open(env, (), BoxLimits(flood=1024**4)) as box:
        done = box.run(["sh", "-c", script], timeout=2.0)
    assert done.ended == "timeout"
    return done.seconds - 2.0


if __name__ == "__main__":
    main()
