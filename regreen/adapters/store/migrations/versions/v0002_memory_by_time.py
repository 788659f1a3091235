"""An index over the age of stored values, for the daily clean-up."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the index."""
    op.create_index("memory_by_time", "memory", ["at"])
