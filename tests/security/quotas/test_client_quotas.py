"""Usage is measured for each entity while it is used, against the quotas in force now."""

from __future__ import annotations

from ottla.model.clock import MonoMs
from ottla.security.quotas.client_quotas import (
    CLIENTS_MAX,
    EXAMINED_MAX,
    UNUSED_MS,
    ClientQuotas,
    Usage,
    client_of,
)
from ottla.security.quotas.entities import DEFAULT, Client, Quota, QuotaEntity

ALICE = ("User:alice", "app")
START = MonoMs(0)
AN_HOUR_LATER = MonoMs(UNUSED_MS)


def quotas_of(entity: QuotaEntity, **values: float) -> ClientQuotas:
    quotas = ClientQuotas()
    quotas.follow({entity: values})
    return quotas


def produced(quotas: ClientQuotas, who: tuple[str, str], size: float, now_ms: int = 0) -> int:
    """The delay after so many bytes; -1 if no quota applies."""
    usage = quotas.usage_of(*who, MonoMs(now_ms)).produce
    return -1 if usage is None else usage.record(size, MonoMs(now_ms))


def request_usage(quotas: ClientQuotas) -> Usage:
    usage = quotas.usage_of(*ALICE, START).request
    assert usage is not None
    return usage


def test_nothing_is_measured_for_a_client_without_a_quota() -> None:
    quotas = quotas_of(QuotaEntity("bob"), producer_byte_rate=1.0)
    assert quotas.in_force
    assert produced(quotas, ALICE, 1e9) == -1
    assert list(quotas.usage(Quota.PRODUCE, START)) == []


def test_clients_of_one_user_share_its_quota() -> None:
    quotas = quotas_of(QuotaEntity("alice"), producer_byte_rate=1_000.0)
    assert produced(quotas, ALICE, 10_000) == 0
    assert produced(quotas, ("User:alice", "other"), 10_000) == 10_000
    quotas.follow({QuotaEntity("alice", DEFAULT): {"producer_byte_rate": 1_000.0}})
    assert produced(quotas, ALICE, 10_000) == 0, "a quota of its own"


def test_a_changed_quota_counts_for_what_was_used_before() -> None:
    quotas = quotas_of(QuotaEntity("alice"), producer_byte_rate=1_000.0)
    version = quotas.version
    assert produced(quotas, ALICE, 20_000) == 10_000
    quotas.follow({QuotaEntity("alice"): {"producer_byte_rate": 4_000.0}})
    assert quotas.version > version
    assert produced(quotas, ALICE, 0) == 0
    quotas.follow({})
    assert not quotas.in_force
    assert produced(quotas, ALICE, 1e9) == -1


def test_request_time_throttles_for_one_window_at_most() -> None:
    quotas = quotas_of(QuotaEntity("alice"), request_percentage=1.0)
    assert request_usage(quotas).record(10.0, START) == 0
    assert request_usage(quotas).record(1_000.0, START) == 1_000
    quotas.follow({QuotaEntity("alice"): {"request_percentage": 0.0}})
    assert request_usage(quotas).record(0.001, START) == 1_000


def test_only_a_strict_change_of_topics_is_refused_and_only_after_the_quota_is_exceeded() -> None:
    quotas = quotas_of(QuotaEntity("alice"), controller_mutation_rate=1.0)
    usage = quotas.usage_of(*ALICE, START).mutation
    assert usage is not None
    assert usage.mutate(15, START, strict=True) == (True, 0)
    assert usage.mutate(1, START, strict=True) == (False, 4_000)
    assert usage.mutate(1, START, strict=False) == (True, 5_000)
    assert usage.mutate(1, MonoMs(5_000), strict=True) == (True, 0)
    assert quotas.usage_of("User:bob", None, START).mutation is None


def test_changes_that_were_refused_for_another_reason_are_given_back() -> None:
    quotas = quotas_of(QuotaEntity("alice"), controller_mutation_rate=1.0)
    usage = quotas.usage_of(*ALICE, START).mutation
    assert usage is not None
    usage.mutate(100, START, strict=True)
    usage.give_back(100, START)
    assert usage.mutate(11, START, strict=True) == (True, 0)
    usage.give_back(1_000, START)
    assert usage.bucket.available(1.0, START) == 11, "never more than may be saved up"


def test_usage_is_forgotten_after_an_hour_without_any() -> None:
    quotas = quotas_of(QuotaEntity(None, DEFAULT), producer_byte_rate=1_000.0)
    produced(quotas, ALICE, 1, 0)
    produced(quotas, ("User:alice", "late"), 1, 10)
    quotas.expire(AN_HOUR_LATER)
    assert [client.client_id for client, _ in quotas.usage(Quota.PRODUCE, AN_HOUR_LATER)] == [
        "late"
    ]


def test_a_client_whose_usage_was_forgotten_is_measured_anew() -> None:
    quotas = quotas_of(QuotaEntity("alice"), producer_byte_rate=1_000.0)
    before = quotas.usage_of(*ALICE, START)
    quotas.expire(AN_HOUR_LATER)
    assert quotas.usage_of(*ALICE, AN_HOUR_LATER).produce is not before.produce
    assert len(list(quotas.usage(Quota.PRODUCE, AN_HOUR_LATER))) == 0, "nothing was used yet"


def test_client_ids_without_number_do_not_fill_the_memory() -> None:
    quotas = quotas_of(QuotaEntity(None, DEFAULT), producer_byte_rate=1_000.0)
    for number in range(CLIENTS_MAX + 10):
        produced(quotas, ("User:u", str(number)), 1, number)
    assert len(list(quotas.usage(Quota.PRODUCE, START))) == CLIENTS_MAX


def test_clients_in_use_are_kept_while_others_come_and_go() -> None:
    quotas = quotas_of(QuotaEntity(None, DEFAULT), producer_byte_rate=1_000.0)
    busy = ("User:u", "busy")
    for number in range(CLIENTS_MAX + 10 * EXAMINED_MAX):
        now_ms = MonoMs(number * 100)
        produced(quotas, ("User:u", str(number)), 1, now_ms)
        produced(quotas, busy, 1, now_ms)
    [kept] = [
        used for client, used in quotas.usage(Quota.PRODUCE, now_ms) if client == Client("", "busy")
    ]
    assert kept.rate.rate(now_ms) > 5, "its usage was never forgotten"


def test_a_principal_is_a_user_by_its_name() -> None:
    assert client_of("User:alice", None) == Client("alice", "")
