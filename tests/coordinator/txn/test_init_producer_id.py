"""InitProducerId: every answer fences the one before."""

from __future__ import annotations

import pytest

from ottla.coordinator.txn.end_transaction import complete
from ottla.coordinator.txn.init_producer_id import (
    InitializedProducer,
    InitProducerIdRequest,
    initialise,
)
from ottla.coordinator.txn.state import (
    LAST_EPOCH,
    NEVER_MS,
    NOBODY,
    NeedsProducerId,
    Producer,
    Transaction,
    TxnState,
)
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import ProducerId, TopicPartition

S = TxnState
P7, P8 = ProducerId(7), ProducerId(8)
ASKED = InitProducerIdRequest(60_000)
NOW = WallMs(1_000)
A = frozenset({TopicPartition("a", 0)})


def txn(state: TxnState = S.EMPTY, epoch: int = 3, **fields: object) -> Transaction:
    base = Transaction("tx", P7, epoch, state, timeout_ms=60_000)
    return base._replace(**fields)  # type: ignore[arg-type]


def refusal(held: Transaction | None, asked: InitProducerIdRequest) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        initialise("tx", held, asked, P8, NOW)
    return refused.value.code


@pytest.mark.spec("TXN-16", "TXN-29")
def test_a_new_transactional_id_gets_a_new_producer_id_in_epoch_zero() -> None:
    with pytest.raises(NeedsProducerId):
        initialise("tx", None, ASKED, None, NOW)
    reply, after = initialise("tx", None, ASKED, P7, NOW)
    assert reply == InitializedProducer(Producer(P7, 0), NOBODY)
    assert (after.producer, after.state, after.timeout_ms) == ((7, 0), S.EMPTY, 60_000)
    assert after.updated_ms == NOW


@pytest.mark.spec("TXN-16", "TXN-17", "TXN-29")
@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_a_known_id_keeps_its_producer_id_and_gets_the_next_epoch(state: TxnState) -> None:
    reply, after = initialise("tx", txn(state), ASKED, None, NOW)
    assert reply == InitializedProducer(Producer(P7, 4), NOBODY)
    assert after.producer == (7, 4)
    assert after.state is S.EMPTY


@pytest.mark.spec("TXN-29", "ERR-50")
def test_an_open_transaction_is_aborted_under_an_epoch_nobody_has() -> None:
    reply, after = initialise("tx", txn(S.ONGOING, partitions=A), ASKED, None, NOW)
    assert reply is None  # come back later
    assert (after.state, after.producer, after.partitions) == (S.PREPARE_ABORT, (7, 4), A)
    done = complete(after, NOW)
    reply, _ = initialise("tx", done, ASKED, None, NOW)
    assert reply is not None
    assert reply.producer == (7, 5)


@pytest.mark.spec("TXN-29", "ERR-50")
@pytest.mark.parametrize(
    ("state", "decided"),
    [(S.PREPARE_COMMIT, S.COMPLETE_COMMIT), (S.PREPARE_ABORT, S.COMPLETE_ABORT)],
)
def test_a_decided_transaction_is_let_finish_first(state: TxnState, decided: TxnState) -> None:
    assert refusal(txn(state), ASKED) is ErrorCode.concurrent_transactions
    done = complete(txn(state, partitions=A), NOW)
    assert done.state is decided, "as it was decided, not as it was asked for since"
    reply, _ = initialise("tx", done, ASKED, None, NOW)
    assert reply == InitializedProducer(Producer(P7, 4), NOBODY)


@pytest.mark.spec("TXN-30")
def test_used_up_epochs_mean_a_new_producer_id() -> None:
    held = txn(epoch=LAST_EPOCH - 1)
    with pytest.raises(NeedsProducerId):
        initialise("tx", held, ASKED, None, NOW)
    reply, after = initialise("tx", held, ASKED, P8, NOW)
    assert reply == InitializedProducer(Producer(P8, 0), NOBODY)
    assert after.previous_producer_id == P7


@pytest.mark.spec("TXN-17")
class TestClientsThatSayWhoTheyAre:
    def test_the_present_one_goes_on_with_the_next_epoch(self) -> None:
        reply, after = initialise("tx", txn(), InitProducerIdRequest(1, Producer(P7, 3)), None, NOW)
        assert reply is not None
        assert reply.producer == (7, 4)
        assert after.last_epoch == 3

    def test_a_repeated_question_gets_the_same_answer(self) -> None:
        asked = InitProducerIdRequest(1, Producer(P7, 3))
        _, after = initialise("tx", txn(), asked, None, NOW)
        reply, again = initialise("tx", after, asked, None, NOW)
        assert reply is not None
        assert reply.producer == (7, 4)
        assert again.producer == (7, 4)

    def test_a_repeat_is_fenced_once_somebody_new_has_begun(self) -> None:
        asked = InitProducerIdRequest(1, Producer(P7, 3))
        _, after = initialise("tx", txn(), asked, None, NOW)
        _, newer = initialise("tx", after, ASKED, None, NOW)
        assert refusal(newer, asked) is ErrorCode.producer_fenced

    @pytest.mark.parametrize("who", [Producer(P7, 2), Producer(P7, 4), Producer(P8, 3)])
    def test_anybody_else_is_fenced(self, who: Producer) -> None:
        assert refusal(txn(), InitProducerIdRequest(1, who)) is ErrorCode.producer_fenced

    def test_an_old_epoch_is_fenced_even_after_a_transaction_of_the_same_id(self) -> None:
        held = txn(S.COMPLETE_COMMIT, previous_producer_id=P7)
        assert refusal(held, InitProducerIdRequest(1, Producer(P7, 1))) is ErrorCode.producer_fenced

    def test_the_answer_with_a_new_producer_id_may_be_asked_for_again(self) -> None:
        last = Producer(P7, LAST_EPOCH - 1)
        _, rotated = initialise(
            "tx", txn(epoch=last.epoch), InitProducerIdRequest(1, last), P8, NOW
        )
        reply, _ = initialise("tx", rotated, InitProducerIdRequest(1, last), None, NOW)
        assert reply is not None
        assert reply.producer == (8, 0)


class TestTwoPhaseCommit:
    KEEP = InitProducerIdRequest(60_000, two_phase=True, keep_prepared=True)

    def test_a_two_phase_producer_has_no_timeout(self) -> None:
        _, after = initialise("tx", txn(), InitProducerIdRequest(5, two_phase=True), None, NOW)
        assert after.timeout_ms == NEVER_MS

    def test_a_kept_transaction_stays_open_and_the_client_is_somebody_newer(self) -> None:
        reply, after = initialise("tx", txn(S.ONGOING, partitions=A), self.KEEP, None, NOW)
        assert reply == InitializedProducer(Producer(P7, 4), Producer(P7, 3))
        assert (after.state, after.producer, after.client) == (S.ONGOING, (7, 3), (7, 4))
        assert after.partitions == A

    def test_it_can_be_kept_again_and_again(self) -> None:
        _, once = initialise("tx", txn(S.ONGOING), self.KEEP, None, NOW)
        reply, _ = initialise("tx", once, self.KEEP, None, NOW)
        assert reply == InitializedProducer(Producer(P7, 5), Producer(P7, 3))

    def test_when_its_epochs_are_used_up_the_client_gets_another_id(self) -> None:
        held = txn(S.ONGOING, epoch=LAST_EPOCH - 1)
        reply, after = initialise("tx", held, self.KEEP, P8, NOW)
        assert reply == InitializedProducer(Producer(P8, 0), Producer(P7, LAST_EPOCH - 1))
        assert after.producer == (7, LAST_EPOCH - 1)

    def test_with_nothing_open_it_is_an_ordinary_beginning(self) -> None:
        reply, _ = initialise("tx", txn(S.COMPLETE_COMMIT), self.KEEP, None, NOW)
        assert reply == InitializedProducer(Producer(P7, 4), NOBODY)

    def test_without_keeping_it_a_kept_one_is_aborted_above_every_epoch_given(self) -> None:
        _, kept = initialise("tx", txn(S.ONGOING, partitions=A), self.KEEP, None, NOW)
        reply, after = initialise("tx", kept, ASKED, None, NOW)
        assert reply is None
        assert (after.state, after.producer, after.client) == (S.PREPARE_ABORT, (7, 5), (7, 5))
