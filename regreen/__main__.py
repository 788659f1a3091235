"""`python -m regreen`: the same as the `regreen` command."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the current folder, often a repository under review: its modules are not ours

from regreen.cli import main

main()
