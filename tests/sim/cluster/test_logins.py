"""Brokers and clients that log in, on virtual time."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from ottla.model.metrics import Counter
from ottla.testing.history import Leads
from tests.fakes.async_tests import played_by
from tests.sim.client import METADATA
from tests.sim.cluster.final_checks import EVERY_TOPIC
from tests.sim.cluster.logins import PLAIN, SCRAM, Logins
from tests.sim.cluster.plan import draw
from tests.sim.cluster.routing import RoutedClient
from tests.sim.cluster.simulation import simulate
from tests.sim.cluster.stage import Stage, play

LOGINS = "kafka_server_socketservermetrics_successful_authentication_total"
SHORT = 1_500


@pytest.mark.spec("SEC-03")
@pytest.mark.parametrize("mechanism", [PLAIN, SCRAM])
def test_a_cluster_whose_brokers_log_in_survives_a_failover_and_logs_in_again(
    mechanism: str,
) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.topic((1, 2, 3))
        async with stage.load():
            await stage.until_acknowledged(20)
            before = logins_of(stage, 1)
            assert before >= 3, "two followers and a client"
            await asyncio.sleep(3 * SHORT / 1e3)
            assert logins_of(stage, 1) >= before + 4, "sessions ended, and were renewed"
            assert (stage.isr(), stage.epoch()) == ({1, 2, 3}, 0), "nobody fell behind"
            stage.cut((1, 2), (1, 3))  # sessions end meanwhile
            await asyncio.sleep(4.0)
            stage.heal()
            stage.node(1).kill()
            await stage.until(lambda: stage.leader() in (2, 3))
            await stage.until_acknowledged(20)
            await stage.start(1)
            await stage.until(lambda: stage.isr() == {1, 2, 3})

    play(scenario, logins=Logins(mechanism, mechanism, SHORT))


def logins_of(stage: Stage, broker: int) -> float:
    """Successful logins that a broker has counted."""
    app = stage.node(broker).app
    assert app is not None
    [family] = [family for family in app.registry.families() if family.name == LOGINS]
    counters = [metric for metric in family.metrics.values() if isinstance(metric, Counter)]
    return sum(counter.value for counter in counters)


@played_by(play, logins=Logins())
async def test_a_client_that_does_not_log_in_is_refused(stage: Stage) -> None:
    stranger = RoutedClient("stranger", stage.cluster.clock, Random(1))
    with pytest.raises(OSError, match=r"."):
        await stranger.ask_broker(1, METADATA, 12, EVERY_TOPIC)
    await stage.topic((1, 2, 3))
    await stage.write(5)


def test_seeds_draw_logins_of_every_kind() -> None:
    drawn = [plan.logins for plan in map(draw, range(200)) if plan.logins is not None]
    assert 30 < len(drawn) < 70
    assert {(logins.brokers, logins.clients) for logins in drawn} == {
        (brokers, clients) for brokers in (PLAIN, SCRAM) for clients in (PLAIN, SCRAM)
    }
    assert {logins.session_ms for logins in drawn} == {0, 1_500, 5_000}


def test_a_seed_with_logins_runs_the_same_way_twice() -> None:
    plan = next(plan for plan in map(draw, range(200)) if plan.logins and plan.relaying)
    first, second = (simulate(plan, keep_trace=True) for _ in range(2))
    assert first.trace.lines == second.trace.lines
    assert any(isinstance(event, Leads) for event in first.events)
