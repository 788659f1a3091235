"""A person's own clone, made by real git."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path


class Checkout:
    """A person's own clone: work tree, index, configuration."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *args: str) -> str:
        env = os.environ | {
            f"GIT_{who}_{what}": "ann@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        done = subprocess.run(
            ["git", "-C", str(self.root), *args],
            capture_output=True,
            text=True,
            env=env,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, message: str, **files: str | None) -> str:
        for name, text in files.items():
            path = self.root / re.sub(r"_(py|ini|sh)$", r".\1", name.replace("__", "/"))
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")
