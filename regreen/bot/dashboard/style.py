"""The dashboard's one style sheet."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --line: #8884; --quiet: #888; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1100px; padding: 1rem; }
nav a { margin-right: 1rem; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: anywhere; }
th { color: var(--quiet); font-weight: 500; }
pre { background: #8881; padding: .8rem; overflow-x: auto; font-size: 13px; }
img { max-width: 100%; background: #fff; }
.state { padding: 0 .4rem; border-radius: .3rem; background: #8883; }
.done { background: #2a73; } .failed { background: #d334; } .running { background: #37d4; }
.none { color: var(--quiet); }
"""
