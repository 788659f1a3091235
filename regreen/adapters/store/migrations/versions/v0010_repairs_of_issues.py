"""Beside the repair of a branch, one of each issue whose own command fails there; whether its draft was closed."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Make the issue a part of the key; the drafts that are open repair what CI runs."""
    op.create_table(
        "open_repair_by_issue",
        sa.Column("repo", sa.Text(), primary_key=True),
        sa.Column("branch", sa.Text(), primary_key=True),
        sa.Column("issue", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("draft", sa.Boolean(), nullable=False),
        sa.Column("text", sa.Text()),
        sa.Column("workflow", sa.Text(), nullable=False),
        sa.Column("closed", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("stored", sa.Float(), nullable=False),
    )
    columns = "number, draft, text, workflow, stored"
    op.execute(
        f"INSERT INTO open_repair_by_issue (repo, branch, issue, {columns}) "  # noqa: S608 - no outside text
        f"SELECT repo, branch, 0, {columns} FROM open_repair"
    )
    op.drop_table("open_repair")
    op.rename_table("open_repair_by_issue", "open_repair")
