"""`python -m regreen`: the same as the `regreen` command."""

from regreen.bot.cli import main

main()
