"""What each model call held of a repository, and in how many lines a credential was hidden."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the columns; of earlier calls it is not known."""
    op.add_column("ledger", sa.Column("sent", sa.Text(), nullable=False, server_default="[]"))
    op.add_column("ledger", sa.Column("masked", sa.Integer(), nullable=False, server_default="0"))
