"""How transactions end."""

from __future__ import annotations

import pytest

from ottla.coordinator.txn.end_transaction import (
    EndRequest,
    abort_fenced,
    complete,
    end,
    is_expired,
    is_timed_out,
)
from ottla.coordinator.txn.state import (
    LAST_EPOCH,
    NEVER_MS,
    NeedsProducerId,
    Producer,
    Transaction,
    TxnState,
)
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import ProducerId, TopicPartition

S = TxnState
P7, P8, P9 = ProducerId(7), ProducerId(8), ProducerId(9)
ME = Producer(P7, 3)
A = frozenset({TopicPartition("a", 0)})
NOW = WallMs(1_000)


def txn(state: TxnState = S.ONGOING, epoch: int = 3, **fields: object) -> Transaction:
    base = Transaction(
        "tx", P7, epoch, state, 60_000, A if state is S.ONGOING else frozenset(), WallMs(5)
    )
    return base._replace(**fields)  # type: ignore[arg-type]


def refusal(held: Transaction | None, asked: EndRequest) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        end(held, asked, None, NOW)
    return refused.value.code


def ended(held: Transaction, asked: EndRequest, fresh: ProducerId | None = None) -> Transaction:
    return end(held, asked, fresh, NOW).after[-1]


class TestTheOlderProtocol:
    @pytest.mark.spec("TXN-37", "TXN-39")
    @pytest.mark.parametrize("commit", [True, False])
    def test_the_decision_is_written_and_then_its_completion(self, commit: bool) -> None:
        client, (prepared,) = end(txn(), EndRequest(ME, commit), None, NOW)
        assert client == ME
        assert prepared.state is (S.PREPARE_COMMIT if commit else S.PREPARE_ABORT)
        assert (prepared.partitions, prepared.producer) == (A, ME)
        done = complete(prepared, WallMs(NOW + 1))
        assert done.state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
        assert (done.partitions, done.producer, done.started_ms) == (frozenset(), ME, 5)

    @pytest.mark.spec("TXN-40")
    @pytest.mark.parametrize(
        ("state", "commit", "code"),
        [
            (S.COMPLETE_COMMIT, True, ErrorCode.none),
            (S.COMPLETE_COMMIT, False, ErrorCode.invalid_txn_state),
            (S.COMPLETE_ABORT, False, ErrorCode.none),
            (S.COMPLETE_ABORT, True, ErrorCode.invalid_txn_state),
            (S.PREPARE_COMMIT, True, ErrorCode.concurrent_transactions),
            (S.PREPARE_COMMIT, False, ErrorCode.invalid_txn_state),
            (S.PREPARE_ABORT, False, ErrorCode.concurrent_transactions),
            (S.PREPARE_ABORT, True, ErrorCode.invalid_txn_state),
            (S.EMPTY, True, ErrorCode.invalid_txn_state),
            (S.EMPTY, False, ErrorCode.invalid_txn_state),
        ],
    )
    def test_a_repeated_end(self, state: TxnState, commit: bool, code: ErrorCode) -> None:
        asked = EndRequest(ME, commit)
        if code is ErrorCode.none:
            assert end(txn(state), asked, None, NOW) == (ME, ())
        else:
            assert refusal(txn(state), asked) is code

    @pytest.mark.spec("TXN-17")
    @pytest.mark.parametrize(
        ("held", "who", "code"),
        [
            (None, ME, ErrorCode.invalid_producer_id_mapping),
            (txn(), Producer(P8, 3), ErrorCode.invalid_producer_id_mapping),
            (txn(), Producer(P7, 2), ErrorCode.producer_fenced),
            (txn(), Producer(P7, 4), ErrorCode.producer_fenced),
        ],
    )
    def test_only_the_producer_of_the_transaction_ends_it(
        self, held: Transaction | None, who: Producer, code: ErrorCode
    ) -> None:
        for version in (0, 2):
            assert refusal(held, EndRequest(who, True, version)) is code


class TestAnEpochPerTransaction:
    @pytest.mark.parametrize("commit", [True, False])
    def test_the_markers_and_the_next_transaction_have_the_next_epoch(self, commit: bool) -> None:
        client, (prepared,) = end(txn(), EndRequest(ME, commit, 2), None, NOW)
        assert client == (7, 4)
        assert prepared.producer == (7, 4)
        assert complete(prepared, NOW).producer == (7, 4)

    @pytest.mark.parametrize("commit", [True, False])
    def test_a_repeat_is_known_by_the_epoch_before(self, commit: bool) -> None:
        asked = EndRequest(ME, commit, 2)
        prepared = ended(txn(), asked)
        done = complete(prepared, NOW)
        assert refusal(prepared, asked) is ErrorCode.concurrent_transactions
        assert end(done, asked, None, NOW) == ((7, 4), ())
        other = asked._replace(commit=not commit)
        assert refusal(prepared, other) is ErrorCode.invalid_txn_state
        assert refusal(done, other) is ErrorCode.invalid_txn_state

    def test_an_end_delayed_beyond_the_next_transaction_is_refused(self) -> None:
        late = EndRequest(ME, True, 2)
        done = complete(ended(txn(), late), NOW)
        following = done._replace(state=S.ONGOING, partitions=A)
        assert refusal(following, late) is ErrorCode.producer_fenced

    def test_the_next_end_waits_for_the_one_before(self) -> None:
        prepared = ended(txn(), EndRequest(ME, True, 2))
        following = EndRequest(Producer(P7, 4), False, 2)
        assert refusal(prepared, following) is ErrorCode.concurrent_transactions

    @pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
    def test_nothing_can_be_aborted_but_not_committed(self, state: TxnState) -> None:
        assert refusal(txn(state), EndRequest(ME, True, 2)) is ErrorCode.invalid_txn_state
        client, (prepared, done) = end(txn(state), EndRequest(ME, False, 2), None, NOW)
        assert client == (7, 4)
        assert (prepared.state, done.state) == (S.PREPARE_ABORT, S.COMPLETE_ABORT)
        assert (done.producer, done.started_ms) == ((7, 4), NOW)

    @pytest.mark.spec("TXN-30")
    def test_used_up_epochs_mean_a_new_producer_id_for_the_next_transaction(self) -> None:
        last = Producer(P7, LAST_EPOCH - 1)
        held, asked = txn(epoch=last.epoch), EndRequest(last, True, 2)
        with pytest.raises(NeedsProducerId):
            end(held, asked, None, NOW)
        client, (prepared,) = end(held, asked, P8, NOW)
        assert client == (8, 0)
        assert prepared.producer == (7, LAST_EPOCH)  # the markers'
        assert refusal(prepared, asked) is ErrorCode.concurrent_transactions
        done = complete(prepared, NOW)
        assert (done.producer, done.previous_producer_id) == ((8, 0), P7)
        assert end(done, asked, None, NOW) == ((8, 0), ())


class TestKeptTransactions:
    """Prepared for a two-phase commit, and kept when the client began again."""

    def test_only_the_newer_identity_ends_it_under_a_still_newer_epoch(self) -> None:
        kept = txn(next_producer_id=P7, next_epoch=4)
        assert refusal(kept, EndRequest(ME, True, 2)) is ErrorCode.producer_fenced
        client, (prepared,) = end(kept, EndRequest(Producer(P7, 4), True, 2), None, NOW)
        assert (client, prepared.producer) == ((7, 5), (7, 5))
        assert complete(prepared, NOW).client == (7, 5)

    def test_with_another_producer_id_the_markers_still_carry_the_first(self) -> None:
        kept = txn(next_producer_id=P8, next_epoch=0)
        asked = EndRequest(Producer(P8, 0), False, 2)
        client, (prepared,) = end(kept, asked, None, NOW)
        assert (client, prepared.producer, prepared.client) == ((8, 1), (7, 4), (8, 1))
        assert refusal(prepared, asked) is ErrorCode.concurrent_transactions
        done = complete(prepared, NOW)
        assert done.producer == (8, 1)
        assert end(done, asked, None, NOW) == ((8, 1), ())


class TestFencing:
    @pytest.mark.spec("TXN-42")
    def test_an_overdue_transaction_is_aborted_under_an_epoch_nobody_has(self) -> None:
        after = abort_fenced(txn(version=2), NOW)
        assert (after.state, after.producer, after.partitions) == (S.PREPARE_ABORT, (7, 4), A)

    @pytest.mark.spec("TXN-17", "TXN-42")
    @pytest.mark.parametrize("version", [0, 2])
    @pytest.mark.parametrize("commit", [True, False])
    def test_the_fenced_producer_never_learns_the_new_epoch(
        self, version: int, commit: bool
    ) -> None:
        after = abort_fenced(txn(version=2), NOW)
        asked = EndRequest(ME, commit, version)
        assert refusal(after, asked) is ErrorCode.producer_fenced
        assert refusal(complete(after, NOW), asked) is ErrorCode.producer_fenced

    def test_the_last_epoch_can_be_fenced(self) -> None:
        assert abort_fenced(txn(epoch=LAST_EPOCH - 1), NOW).epoch == LAST_EPOCH


@pytest.mark.spec("TXN-42")
def test_a_transaction_is_overdue_when_its_timeout_has_passed_since_it_began() -> None:
    assert not is_timed_out(txn(), WallMs(60_005))
    assert is_timed_out(txn(), WallMs(60_006))
    assert not is_timed_out(txn(timeout_ms=NEVER_MS), WallMs(2**60))
    assert not any(is_timed_out(txn(state), WallMs(2**60)) for state in S if state is not S.ONGOING)


@pytest.mark.spec("TXN-43", "ERR-05", "OPEN-06")
def test_only_an_id_at_rest_is_ever_forgotten() -> None:
    old = {state for state in S if is_expired(txn(state, updated_ms=0), WallMs(100), 100)}
    assert old == {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}
    assert not is_expired(txn(S.EMPTY, updated_ms=1), WallMs(100), 100)
