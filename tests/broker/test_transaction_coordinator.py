"""The transaction coordinator, with the settings of its broker."""

from __future__ import annotations

import pytest

from ottla.broker.transaction_coordinator import find_deleted
from ottla.metadata.cache import MetadataCache
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.port import Session
from tests.coordinator.txn.rig import ID, OTHER_TP, TxnSide, txn_side
from tests.fakes.data_side import TP
from tests.fakes.manual_time import ManualClock

E = ErrorCode


async def longest_timeout(rig: TxnSide) -> ErrorCode:
    return await rig.refusal(rig.init(timeout_ms=2_000))


async def two_phases(rig: TxnSide) -> ErrorCode:
    return await rig.refusal(rig.init(two_phase=True))


async def unknown_partition(rig: TxnSide) -> ErrorCode:
    me = await rig.init(timeout_ms=500)
    await rig.add(me, OTHER_TP)
    return await rig.write(me, b"x", key=TP)


@pytest.mark.spec("CFG-075")
@pytest.mark.parametrize(
    ("setting", "value", "asked", "code"),
    [
        ("transaction.max.timeout.ms", "1999", longest_timeout, E.invalid_transaction_timeout),
        ("transaction.max.timeout.ms", "2000", longest_timeout, E.none),
        (
            "transaction.two.phase.commit.enable",
            "false",
            two_phases,
            E.transactional_id_authorization_failed,
        ),
        ("transaction.two.phase.commit.enable", "true", two_phases, E.none),
        ("transaction.partition.verification.enable", "false", unknown_partition, E.none),
        (
            "transaction.partition.verification.enable",
            "true",
            unknown_partition,
            E.invalid_txn_state,
        ),
    ],
)
async def test_a_setting_decides(setting: str, value: str, asked: object, code: ErrorCode) -> None:
    async with txn_side({setting: value}) as rig:
        assert await asked(rig) is code  # type: ignore[operator]


@pytest.mark.spec("CFG-074", "TXN-42", "TXN-43")
async def test_intervals_say_how_soon_things_are_looked_for() -> None:
    settings = {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
        "transactional.id.expiration.ms": "5000",
    }
    async with txn_side(settings) as rig:
        me = await rig.init(timeout_ms=1_000)
        await rig.add(me)
        await rig.side.until(1_300)
        assert (await rig.txns.describe(ID)).state.label == "CompleteAbort"
        await rig.side.until(7_000)
        gone = rig.txns.describe(ID)
        assert await rig.refusal(gone) is E.transactional_id_not_found


async def test_no_partition_counts_as_deleted_unless_the_store_says_so() -> None:
    store = MemoryStore(Ensemble())
    await store.start()
    cache = MetadataCache(BrokerId(1), ManualClock())
    for session in (Session.SUSPENDED, Session.EXPIRED):
        store.turn(session)
        assert await find_deleted(cache, store, [TP, OTHER_TP]) == set()
    await store.start()
    assert await find_deleted(cache, store, [TP, OTHER_TP]) == {TP, OTHER_TP}
