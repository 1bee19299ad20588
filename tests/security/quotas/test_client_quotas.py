"""Usage is measured for each entity while it is used, against the quotas in force now."""

from __future__ import annotations

from ottla.security.quotas.client_quotas import CLIENTS_MAX, UNUSED_MS, ClientQuotas, client_of
from ottla.security.quotas.entities import DEFAULT, Client, Quota, QuotaEntity

ALICE = Client("alice", "app")


def quotas_of(entity: QuotaEntity, **values: float) -> ClientQuotas:
    quotas = ClientQuotas()
    quotas.follow({entity: values})
    return quotas


def test_nothing_is_measured_for_a_client_without_a_quota() -> None:
    quotas = quotas_of(QuotaEntity("bob"), producer_byte_rate=1.0)
    assert quotas.in_force
    assert quotas.record(Quota.PRODUCE, ALICE, 1e9, 0) == 0
    assert list(quotas.usage(Quota.PRODUCE)) == []


def test_clients_of_one_user_share_its_quota() -> None:
    quotas = quotas_of(QuotaEntity("alice"), producer_byte_rate=1_000.0)
    assert quotas.record(Quota.PRODUCE, ALICE, 10_000, 0) == 0
    assert quotas.record(Quota.PRODUCE, Client("alice", "other"), 10_000, 0) == 10_000
    quotas.follow({QuotaEntity("alice", DEFAULT): {"producer_byte_rate": 1_000.0}})
    assert quotas.record(Quota.PRODUCE, ALICE, 10_000, 0) == 0, "a quota of its own"


def test_a_changed_quota_counts_for_what_was_used_before() -> None:
    quotas = quotas_of(QuotaEntity("alice"), producer_byte_rate=1_000.0)
    version = quotas.version
    assert quotas.record(Quota.PRODUCE, ALICE, 20_000, 0) == 10_000
    quotas.follow({QuotaEntity("alice"): {"producer_byte_rate": 4_000.0}})
    assert quotas.version > version
    assert quotas.record(Quota.PRODUCE, ALICE, 0, 0) == 0
    quotas.follow({})
    assert not quotas.in_force
    assert quotas.record(Quota.PRODUCE, ALICE, 1e9, 0) == 0


def test_request_time_throttles_for_one_window_at_most() -> None:
    quotas = quotas_of(QuotaEntity("alice"), request_percentage=1.0)
    assert quotas.record(Quota.REQUEST, ALICE, 10.0, 0) == 0
    assert quotas.record(Quota.REQUEST, ALICE, 1_000.0, 0) == 1_000
    quotas.follow({QuotaEntity("alice"): {"request_percentage": 0.0}})
    assert quotas.record(Quota.REQUEST, ALICE, 0.001, 0) == 1_000


def test_only_a_strict_change_of_topics_is_refused_and_only_after_the_quota_is_exceeded() -> None:
    quotas = quotas_of(QuotaEntity("alice"), controller_mutation_rate=1.0)
    assert quotas.mutate(ALICE, 15, 0, strict=True) == (True, 0)
    assert quotas.mutate(ALICE, 1, 0, strict=True) == (False, 4_000)
    assert quotas.mutate(ALICE, 1, 0, strict=False) == (True, 5_000)
    assert quotas.mutate(ALICE, 1, 5_000, strict=True) == (True, 0)
    assert quotas.mutate(Client("bob", ""), 1_000, 0, strict=True) == (True, 0)


def test_usage_is_forgotten_after_an_hour_without_any() -> None:
    quotas = quotas_of(QuotaEntity(None, DEFAULT), producer_byte_rate=1_000.0)
    quotas.record(Quota.PRODUCE, ALICE, 1, 0)
    quotas.record(Quota.PRODUCE, Client("alice", "late"), 1, 10)
    quotas.expire(UNUSED_MS)
    assert [client.client_id for client, _ in quotas.usage(Quota.PRODUCE)] == ["late"]


def test_client_ids_without_number_do_not_fill_the_memory() -> None:
    quotas = quotas_of(QuotaEntity(None, DEFAULT), producer_byte_rate=1_000.0)
    for number in range(CLIENTS_MAX + 10):
        quotas.record(Quota.PRODUCE, Client("u", str(number)), 1, number)
    assert len(list(quotas.usage(Quota.PRODUCE))) == CLIENTS_MAX


def test_a_principal_is_a_user_by_its_name() -> None:
    assert client_of("User:alice", None) == Client("alice", "")
