"""What a job's end means, which was read from the words of its note before."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

# the words of the versions before
_WORDS = (
    ("refused", "note LIKE 'not started: %'"),
    ("unreadable", "kind = 'review' AND note LIKE 'the configuration cannot be read%'"),
    ("green", "kind = 'tick' AND note LIKE 'green%'"),
    ("red", "kind = 'tick' AND (note LIKE 'red:%' OR note LIKE 'still red%')"),
    ("flaky", "kind = 'tick' AND note LIKE 'failed once%'"),
)


def upgrade() -> None:
    """Add the column, and fill it for the jobs that are kept."""
    op.add_column("jobs", sa.Column("outcome", sa.String(16), nullable=False, server_default=""))
    for outcome, words in _WORDS:
        op.execute(f"UPDATE jobs SET outcome = '{outcome}' WHERE {words}")  # noqa: S608 - no outside text
