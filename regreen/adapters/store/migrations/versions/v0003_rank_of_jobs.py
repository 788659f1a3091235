"""Which of the jobs that replace each other is the newest, if it is not the one that arrived last."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column."""
    op.add_column("jobs", sa.Column("rank", sa.BigInteger, nullable=False, server_default="0"))
