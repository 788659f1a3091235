"""CPU time of a small pull request's review, without a model: `python benchmarks/capacity.py [PULLS]`.

Two runs of a story with different numbers of pull requests are compared, each in a process of its own, so that starting
up is left out. The playground's answers are counted too, so the figure is an upper bound. It is CPU time, which other
work on the machine changes little; reviews an hour are what so many cores can do at most.
"""

from __future__ import annotations

import resource
import subprocess
import sys

STORY = """
import sys, tempfile
from pathlib import Path
from regreen_playground.routes.apps import new_key
from tests.stories.story import UNTESTED, Story, missing_sandbox

with tempfile.TemporaryDirectory() as home:
    story = Story(Path(home), lambda app: app, None, new_key(), missing_sandbox(), types=sys.argv[2] == "types")
    story.commits(UNTESTED)
    for n in range(int(sys.argv[1])):
        story.pull({f"shop/part{n}.py": f'def cost(n):\\n    return n * {n}\\n'}, branch=f"change{n}")
        story.work()
    checks = [one.checks for one in story.pulls]
    assert all(c.get("Regreen") == "success" for c in checks), checks
    story.end()
"""


def measure(pulls: int, kind: str) -> tuple[float, float]:
    """CPU seconds and peak MB of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", STORY, str(pulls), kind], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, after.ru_maxrss / 1024


if __name__ == "__main__":
    few, many = 3, int(sys.argv[1]) if len(sys.argv) > 1 else 23
    for kind in ("plain", "types"):
        (short, _), (long, peak) = measure(few, kind), measure(many, kind)
        each = (long - short) / (many - few)
        print(
            f"{kind}: {each:.2f} CPU seconds a review; {3600 / each:.0f} an hour a core; largest process {peak:.0f} MB"
        )
