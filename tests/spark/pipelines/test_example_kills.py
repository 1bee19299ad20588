"""The examples under kills of their driver, workers and broker: output equals input, tables
included, no commit is empty or doubled, and nobody has to do anything."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

import ottla
from ottla.spark.pipelines.lake.changes import catalog_beside
from tests.cluster.process import BrokerProcess
from tests.postgres import Postgres
from tests.spark.pipelines.jobs import read
from tests.spark.pipelines.killed_example import Example, KilledExample
from tests.spark.pipelines.schema_registry import SchemaRegistry
from tools.tidy import ROOT

EXAMPLES = ROOT / "examples"
KILLS = 13
"""Of each of four examples: 52 in all."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "broker") as running:
        yield running


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with Postgres() as running:
        statements = (EXAMPLES / "orders" / "items.sql").read_text().split(";\n")
        running.execute(*filter(None, statements))
        yield running


class Orders(Example):
    """Orders with the prices of PostgreSQL, in an Iceberg table."""

    file = str(EXAMPLES / "orders" / "orders.yaml")
    topics = ("orders", "orders-dead")

    def __init__(self, servers: str, folder: Path, postgres: Postgres) -> None:
        super().__init__(servers, folder)
        self._postgres = postgres
        self._ids: set[str] = set()
        self._unknown = 0
        postgres.execute("UPDATE items SET price = 2.5 WHERE item = 'pen'")

    @property
    def overrides(self) -> list[str]:
        path = f"sinks.table.iceberg.path={self.folder}/lake/orders"
        return [path, "sources.items.refresh=3 seconds"]

    @property
    def environment(self) -> Mapping[str, str]:
        return {"SHOP_DATABASE": self._postgres.uri}

    def halfway(self) -> None:
        super().halfway()
        self._postgres.execute("UPDATE items SET price = 3 WHERE item = 'pen'")

    def feed(self, producer: ottla.Producer, numbers: range) -> None:
        for number in numbers:
            item = "hat" if number % 10 == 9 else "pen"
            at = f"2026-05-0{number % 3 + 1}T12:00:00Z"
            row = {"id": str(number), "item": item, "n": number, "at": at}
            producer.send("orders", json.dumps(row).encode(), key=str(number).encode())
            if item == "hat":
                self._unknown += 1
            else:
                self._ids.add(str(number))

    def rows(self) -> list[dict[str, Any]]:
        catalog = load_catalog("ottla", **catalog_beside(f"{self.folder}/lake/orders"))
        if not catalog.table_exists("shop.orders"):
            return []
        found: list[dict[str, Any]] = (
            catalog.load_table("shop.orders").scan().to_arrow().to_pylist()
        )
        return found

    def done(self) -> bool:
        written = len(self.rows()) >= len(self._ids)
        return written and len(read(self.servers, "orders-dead")) >= self._unknown

    def check(self) -> None:
        rows = self.rows()
        assert Counter(row["id"] for row in rows) == Counter(self._ids)
        prices = {Decimal(row["total"]) / row["n"] for row in rows if row["n"]}
        assert prices <= {Decimal("2.5"), Decimal(3)}
        assert Decimal(3) in prices, "the price of after the change"
        assert len(read(self.servers, "orders-dead")) == self._unknown
        table = load_catalog("ottla", **catalog_beside(f"{self.folder}/lake/orders")).load_table(
            "shop.orders"
        )
        batches = [_summary(snapshot)["ottla.batch"] for snapshot in table.snapshots()]
        assert len(batches) == len(set(batches)), "no batch is committed twice"
        added = [int(_summary(one)["added-records"]) for one in table.snapshots()]
        assert all(added), "no commit is empty"
        assert [field.name for field in table.spec().fields] == ["day"]


def _summary(snapshot: Any) -> Mapping[str, str]:
    properties: Mapping[str, str] = snapshot.summary.additional_properties
    return properties


class Customers(Example):
    """Changes of customers, in a Delta table; in the middle they get a tier."""

    file = str(EXAMPLES / "cdc" / "customers.yaml")
    topics = ("customer-changes", "customer-changes-dead")

    def __init__(self, servers: str, folder: Path) -> None:
        super().__init__(servers, folder)
        self._rows: dict[str, tuple[str, int | None]] = {}

    @property
    def overrides(self) -> list[str]:
        return [f"sinks.table.delta.path={self.folder}/lake", "sinks.table.delta.compact_every=7"]

    @property
    def profile(self) -> str | None:
        return "tier" if self.changed else None

    def feed(self, producer: ottla.Producer, numbers: range) -> None:
        for number in numbers:
            key = str(number % 17)
            tier = number if self.changed else None
            value: bytes | None
            if number % 11 == 10:
                self._rows.pop(key, None)
                value = None if number % 2 else json.dumps({"op": "d"}).encode()
            else:
                self._rows[key] = (f"name {number}", tier)
                after = {"name": f"name {number}", "city": "Bergen", "tier": tier}
                value = json.dumps({"op": "u", "after": after}).encode()
            producer.send("customer-changes", value, key=key.encode())

    def rows(self) -> dict[str, tuple[str, int | None]]:
        if not DeltaTable.is_deltatable(f"{self.folder}/lake"):
            return {}
        found = DeltaTable(f"{self.folder}/lake").to_pyarrow_table().to_pylist()
        assert len(found) == len({row["id"] for row in found}), "one row for each key"
        return {row["id"]: (row["name"], row.get("tier")) for row in found}

    def done(self) -> bool:
        return {key: row[0] for key, row in self.rows().items()} == {
            key: row[0] for key, row in self._rows.items()
        }

    def check(self) -> None:
        rows = self.rows()
        assert {key: row[0] for key, row in rows.items()} == {
            key: row[0] for key, row in self._rows.items()
        }
        if self.changed:
            assert any(tier is not None for _, tier in rows.values()), "the column was added"
        batches, changes = self._commits()
        assert len(batches) == len(set(batches)), "no batch is committed twice"
        assert all(changes), "no commit is empty"

    def _commits(self) -> tuple[list[int], list[int]]:
        """The batch of each commit that has one, and how many files it added or removed."""
        batches: list[int] = []
        changes: list[int] = []
        for path in sorted(Path(f"{self.folder}/lake/_delta_log").glob("*.json")):
            actions = [json.loads(line) for line in path.read_text().splitlines()]
            found = [action["txn"]["version"] for action in actions if "txn" in action]
            if found:
                batches += found
                changes.append(sum("add" in action or "remove" in action for action in actions))
        return batches, changes


class Payments(Example):
    """Payments in Avro; in the middle producers write with another schema."""

    file = str(EXAMPLES / "payments" / "payments.yaml")
    topics = ("payments", "payments-dead", "ledger")

    def __init__(self, servers: str, folder: Path, registry: SchemaRegistry) -> None:
        super().__init__(servers, folder)
        self._registry = registry
        self._schema = json.loads((EXAMPLES / "payments" / "payment.avsc").read_text())
        self._new_fields = self._schema["fields"]
        self._schema["fields"] = self._new_fields[:3]
        self._entries: Counter[tuple[str, str]] = Counter()
        self._refused = 0

    @property
    def environment(self) -> Mapping[str, str]:
        return {"REGISTRY_URL": self._registry.url}

    def halfway(self) -> None:
        super().halfway()
        self._schema["fields"] = self._new_fields

    def feed(self, producer: ottla.Producer, numbers: range) -> None:
        client = SchemaRegistryClient({"url": self._registry.url})
        serialize = AvroSerializer(client, json.dumps(self._schema))
        for number in numbers:
            row = {"id": str(number), "account": f"a{number % 5}", "amount": float(number % 10)}
            if self.changed:
                row["currency"] = "NOK"
            value = serialize(row, SerializationContext("payments", MessageField.VALUE))
            producer.send("payments", value, key=str(number).encode())
            if row["amount"]:
                self._entries[str(number), "NOK" if self.changed else "EUR"] += 1
            else:
                self._refused += 1

    def entries(self) -> Counter[tuple[str, str]]:
        read_value = AvroDeserializer(SchemaRegistryClient({"url": self._registry.url}))
        place = SerializationContext("ledger", MessageField.VALUE)
        rows: list[Any] = [read_value(one.value, place) for one in read(self.servers, "ledger")]
        return Counter((row["id"], row["currency"]) for row in rows)

    def done(self) -> bool:
        dead = len(read(self.servers, "payments-dead"))
        return self.entries().total() >= self._entries.total() and dead >= self._refused

    def check(self) -> None:
        assert self.entries() == self._entries
        assert len(read(self.servers, "payments-dead")) == self._refused
        assert len(self._registry.versions("payments-value")) == 2
        assert len(self._registry.versions("ledger-value")) == 1


class Sessions(Example):
    """Clicks as sessions, by a step in Python."""

    file = str(EXAMPLES / "sessions" / "sessions.yaml")
    topics = ("clicks", "clicks-dead", "sessions")

    def __init__(self, servers: str, folder: Path) -> None:
        super().__init__(servers, folder)
        self._hours = 0

    def feed(self, producer: ottla.Producer, numbers: range) -> None:
        """Each round is an hour in which every user has one session of two clicks; the next round
        closes it."""
        for number in numbers:
            user, minute = f"u{number % 20}", number % 40 // 20 * 10
            at = f"2026-05-{self._hours // 24 + 1:02}T{self._hours % 24:02}:{minute:02}:00Z"
            row = {"user": user, "url": "/", "at": at}
            producer.send("clicks", json.dumps(row).encode(), key=user.encode())
        self._hours += 2

    def sessions(self) -> list[dict[str, Any]]:
        return [json.loads(one.value or b"") for one in read(self.servers, "sessions")]

    def _expected(self) -> int:
        """All but those of the last round, which may still go on."""
        return 20 * (self._hours // 2 - 1)

    def done(self) -> bool:
        return len(self.sessions()) >= self._expected()

    def check(self) -> None:
        found = self.sessions()
        assert Counter(row["clicks"] for row in found) == {2: self._expected()}
        assert len({(row["user"], row["start"]) for row in found}) == self._expected()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.spec("APP-11")
def test_orders_survive_a_killed_driver(
    broker: BrokerProcess, postgres: Postgres, tmp_path: Path
) -> None:
    """The short form of those below."""
    example = Orders(broker.address, tmp_path, postgres)
    KilledExample(example, broker, Random(1)).survive(1)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", [1])
def test_orders_survive_kill_after_kill(
    broker: BrokerProcess, postgres: Postgres, tmp_path: Path, seed: int
) -> None:
    example = Orders(broker.address, tmp_path, postgres)
    KilledExample(example, broker, Random(seed)).survive(KILLS)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", [2])
def test_changes_survive_kill_after_kill(broker: BrokerProcess, tmp_path: Path, seed: int) -> None:
    KilledExample(Customers(broker.address, tmp_path), broker, Random(seed)).survive(KILLS)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", [3])
def test_payments_survive_kill_after_kill(broker: BrokerProcess, tmp_path: Path, seed: int) -> None:
    with SchemaRegistry() as registry:
        example = Payments(broker.address, tmp_path, registry)
        KilledExample(example, broker, Random(seed)).survive(KILLS)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", [4])
def test_sessions_survive_kill_after_kill(broker: BrokerProcess, tmp_path: Path, seed: int) -> None:
    KilledExample(Sessions(broker.address, tmp_path), broker, Random(seed)).survive(KILLS)
