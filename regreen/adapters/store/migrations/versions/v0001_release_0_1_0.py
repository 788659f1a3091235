"""The schema of release 0.1.0, which created its tables itself and recorded no version."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Do nothing: a database without a version has this schema."""
