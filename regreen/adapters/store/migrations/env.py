"""Alembic runs this file for each command; the caller owns the connection and its transaction."""

from alembic import context

from regreen.adapters.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite changes a column by rebuilding the table
)
context.run_migrations()
