"""Between installations: limits, and nobody waits for another's crowd."""

from __future__ import annotations

from datetime import UTC, datetime

from regreen.bot.jobs.event_jobs import FairQueue
from regreen.domain.records import Order


class _Clock:
    time = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def _order(installation: int, key: str, queue: str = "review", priority: int = 1001) -> Order:
    return Order(
        id=f"{installation}/{key}",
        kind="review",
        repo=key.partition("#")[0],
        number=1,
        installation=installation,
        queue=queue,
        key=key,
        priority=priority,
        event="{}",
    )


def test_one_installation_has_so_many_lanes_and_no_more() -> None:
    admission = FairQueue(_Clock(), lanes=4)
    admitted = admission.admit_orders([_order(7, f"acme/shop#{i}") for i in range(200)])
    assert {o.key for o in admitted} == {f"7/{lane}" for lane in range(4)}


def test_a_repository_keeps_its_lane() -> None:
    admission = FairQueue(_Clock(), lanes=4)
    first, second = admission.admit_orders([_order(7, "acme/shop", "work")] * 2)
    assert first.key == second.key
    (after_a_restart,) = FairQueue(_Clock(), lanes=4).admit_orders([_order(7, "acme/shop", "work")])
    assert after_a_restart.key == first.key


def test_a_newcomer_goes_before_the_crowd_of_another() -> None:
    admission = FairQueue(_Clock(), lanes=4)
    crowd = admission.admit_orders([_order(7, f"acme/shop#{i}") for i in range(50)])
    (newcomer,) = admission.admit_orders([_order(8, "octo/hello#1")])
    assert newcomer.priority < crowd[1].priority
    (asked,) = admission.admit_orders([_order(7, "acme/shop#99", priority=1)])
    assert asked.priority < newcomer.priority, "what somebody asked for goes before pushes"


def test_a_crowd_is_forgotten_after_ten_minutes() -> None:
    clock = _Clock()
    admission = FairQueue(clock, lanes=4)
    admission.admit_orders([_order(7, f"acme/shop#{i}") for i in range(2000)])
    (last,) = admission.admit_orders([_order(7, "acme/shop#1")])
    assert last.priority == 1001 + 899
    clock.sleep(601)
    (later,) = admission.admit_orders([_order(7, "acme/shop#1")])
    assert later.priority == 1001


def test_commands_have_a_queue_of_their_own_and_no_lanes() -> None:
    (order,) = FairQueue(_Clock(), lanes=1).admit_orders([_order(7, "acme/shop#1", "talk", 1)])
    assert (order.key, order.priority) == ("acme/shop#1", 1)
