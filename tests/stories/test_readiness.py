"""`/readyz`: what it says, and that whoever asks changes nothing."""

from __future__ import annotations

import sqlite3

from regreen.domain.state_records import ServiceState
from tests.stories.story import Story


def test_asking_writes_nothing(story: Story) -> None:
    story.regreen.enqueue_due_work()
    page = story.regreen.wsgi.test_client()
    watch = sqlite3.connect(str(story.regreen.store.engine.url.database))
    before = watch.execute("PRAGMA data_version").fetchone()
    assert page.get("/readyz").text.startswith("database: ok\n")
    assert watch.execute("PRAGMA data_version").fetchone() == before
    story.regreen.store.save(ServiceState("tick", "any write shows"))
    assert watch.execute("PRAGMA data_version").fetchone() != before
    watch.close()


def test_a_database_that_takes_no_writes_is_not_ready(story: Story) -> None:
    page = story.regreen.wsgi.test_client()
    story.regreen.enqueue_due_work()
    story.passes(minutes=3)
    late = page.get("/readyz")
    assert (late.status_code, "has taken no write for two minutes" in late.text) == (503, True)
    story.regreen.enqueue_due_work()
    assert page.get("/readyz").status_code == 200


def test_a_database_that_is_gone_is_not_ready(story: Story) -> None:
    page, engine = story.regreen.wsgi.test_client(), story.regreen.store.engine
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE service_state RENAME TO elsewhere")
    gone = page.get("/readyz")
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO service_state")
    assert (gone.status_code, gone.text) == (503, "database: does not answer\n")
