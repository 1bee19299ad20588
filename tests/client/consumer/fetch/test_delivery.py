from __future__ import annotations

import subprocess
import sys

import pytest

from ottla.client.consumer import subscribing
from ottla.client.consumer.fetch.delivery import take, take_arrow
from ottla.client.errors import KafkaError
from ottla.client.retry import Deadline
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition
from tests.client.consumer.batches import batch, marker
from tests.client.consumer.scripted import Rig

HERE = TopicPartition("t", 0)


@pytest.mark.spec("CON-15", "CFG-117")
async def test_no_more_than_the_setting_or_the_call_allows() -> None:
    rig = Rig(max_poll_records=3)
    rig.cluster.logs[HERE] = [batch(0, 10)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await core.wait(Deadline(core.clock, 1_000))
        assert [record.offset for record in take(core)] == [0, 1, 2]
        assert [record.offset for record in take(core, 5)] == [3, 4, 5, 6, 7]
        assert core.records == 8
        with pytest.raises(UserError, match="max_records=0"):
            take(core, 0)


async def test_columns_begin_where_records_ended() -> None:
    rig = Rig()
    rig.cluster.logs[HERE] = [batch(0, 10)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await core.wait(Deadline(core.clock, 1_000))
        take(core, 4)
        assert take_arrow(core, headers=False)["offset"].to_pylist() == [*range(4, 10)]
        assert core.subscriptions[HERE].offset == 10
        assert take_arrow(core, headers=False).num_rows == 0


async def test_a_bad_batch_is_said_after_what_came_before_it() -> None:
    rig = Rig()
    bad = bytearray(batch(3, 3))
    bad[-2] ^= 1
    rig.cluster.logs[HERE] = [batch(0, 3), bytes(bad)]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        rows: list[int] = []
        with pytest.raises(KafkaError, match="cannot decode t-0 at offset 3"):
            while True:
                await core.wait(Deadline(core.clock, 5_000))
                rows += take_arrow(core, headers=False)["offset"].to_pylist()
        assert rows == [0, 1, 2]


def test_without_the_extra_it_is_named() -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import ottla\n"
        "from ottla.client.consumer.fetch.delivery import take_arrow\n"
        "try: take_arrow(ottla.Consumer()._core, headers=False)\n"
        "except ottla.UserError as error: print(error)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "poll_arrow() needs pyarrow: pip install 'ottla[arrow]'"


@pytest.mark.parametrize("data", [batch(0, 3), marker(0, 1, commit=True)])
async def test_what_was_taken_as_columns_makes_room_with_rows_or_without(data: bytes) -> None:
    woken: list[int] = []
    rig = Rig()
    rig.cluster.logs[HERE] = [data]
    async with rig.run() as core:
        subscribing.assign(core, [HERE])
        await core.wait(Deadline(core.clock, 1_000))
        core.buffer.drained = lambda: woken.append(core.subscriptions[HERE].finished)
        take_arrow(core, headers=False)
        take_arrow(core, headers=False)
    assert woken == [1], "once, when the chunk is through"
