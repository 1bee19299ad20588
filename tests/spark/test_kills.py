"""Drivers, executors and workers killed with SIGKILL: every record once, none before its batch is
decided."""

from __future__ import annotations

import signal
from pathlib import Path
from random import Random

import pytest

from ottla.spark.exactly_once import Step
from ottla.testing import Broker
from tests.spark.killed_query import PER_BATCH
from tests.spark.killed_story import STEPS, Story, upto

KILLS = 2
"""Of each seed; 25 seeds are fifty runs."""
SHORT_SEED = 13
"""A Python process of Spark's dies, about three seconds after the query began."""


@pytest.mark.spec("APP-11")
def test_a_driver_killed_around_its_decision_neither_loses_nor_repeats(
    broker: Broker, tmp_path: Path
) -> None:
    story = Story(broker.bootstrap_servers, tmp_path, "around")
    story.feed()
    assert story.live(Step.FENCED.value, "1") == -signal.SIGKILL, story.log
    assert story.written_rows() == upto(1)  # prepared, and nobody may see it
    assert story.live(Step.DECIDED.value, "2") == -signal.SIGKILL, story.log
    assert story.written_rows() == upto(2)  # decided, and the next life must end it
    assert story.live() == 0, story.log
    assert story.written_rows() == upto(story.batches)


def test_every_step_of_a_decision_is_one_at_which_a_driver_is_killed() -> None:
    assert {step.value for step in Step} == set(STEPS)


def killed_again_and_again(story: Story, dice: Random, kills: int = KILLS) -> None:
    """Run after run is killed, each with more to do; then one is left alone."""
    killed = 0
    while killed < kills:
        story.feed()
        told = story.live_and_be_killed(dice)
        killed += told is not None
        print(told or "over before it was killed")
        story.looked(at_rest=True)
    assert story.live() == 0, story.log
    assert story.left_open() == []


@pytest.mark.parametrize("seed", [SHORT_SEED])
def test_a_query_killed_once_at_random_neither_loses_nor_repeats(
    broker: Broker, tmp_path: Path, seed: int
) -> None:
    """The short form of those below."""
    story = Story(broker.bootstrap_servers, tmp_path, f"short-{seed}")
    killed_again_and_again(story, Random(seed), kills=1)
    assert story.written_rows() == upto(story.batches)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_a_query_with_state_killed_at_random_neither_loses_nor_repeats(
    broker: Broker, tmp_path: Path, seed: int
) -> None:
    story = Story(broker.bootstrap_servers, tmp_path, f"random-{seed}")
    killed_again_and_again(story, Random(seed))
    assert story.written_rows() == upto(story.batches)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_query_that_only_copies_keeps_the_order_however_it_is_killed(
    broker: Broker, tmp_path: Path, seed: int
) -> None:
    story = Story(broker.bootstrap_servers, tmp_path, f"copied-{seed}", "copied")
    killed_again_and_again(story, Random(1_000 + seed))
    story.looked()
    assert story.written_rows().total() == story.batches * PER_BATCH
