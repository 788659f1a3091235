"""What a job's end means, which was read from the words of its note before; whether a broken file asks to observe."""

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
    """Add the columns, and fill that of the jobs that are kept."""
    observed = sa.Column("observed", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("last_valid_config", observed)
    op.add_column("jobs", sa.Column("outcome", sa.String(16), nullable=False, server_default=""))
    for outcome, words in _WORDS:
        op.execute(f"UPDATE jobs SET outcome = '{outcome}' WHERE {words}")  # noqa: S608 - no outside text
