"""What each ready-made job must do, from its template as it is, on one broker or several.

Owns: the records sent, and what is expected of them. Never: starts a broker.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

from deltalake import DeltaTable

from ottla.model.clock import SystemClock
from ottla.spark.pipelines.decoding.formats import NOT_JSON
from ottla.spark.pipelines.dlq.letters import (
    OFFSET_HEADER,
    PARTITION_HEADER,
    PIPELINE_HEADER,
    REASON_HEADER,
    TOPIC_HEADER,
)
from ottla.spark.pipelines.dlq.replay import REPLAYS_HEADER, Selection, replay
from tests.spark.pipelines.jobs import Sent, Stage, headers, values

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def rows(stage: Stage, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        DeltaTable(str(stage.folder / "lake" / table)).to_pyarrow_table().to_pylist()
    )
    return found


def told(stage: Stage, topic: str) -> list[dict[str, Any]]:
    """A topic's values, which are objects."""
    return [json.loads(one.value or b"") for one in stage.read(topic)]


def land(stage: Stage) -> None:
    """Every record once, with its place, however often a batch runs."""
    stage.topics("orders", "payments")
    job = stage.template("land")
    stage.send("orders", [Sent(str(at).encode(), b"k", {"h": "1"}) for at in range(20)])
    stage.send("payments", [Sent(None, b"gone")])
    stage.once(job)
    stage.send("payments", [Sent(str(at).encode()) for at in range(20)])
    stage.once(job)
    stage.forget_the_last_commit(job, "landed")
    stage.once(job)
    landed = rows(stage, "landed")
    places = Counter((row["topic"], row["partition"], row["offset"]) for row in landed)
    assert len(landed) == 41
    assert set(places.values()) == {1}
    sent = {
        (one.topic, one.partition, one.offset): (one.key, one.value, one.timestamp)
        for topic in ("orders", "payments")
        for one in stage.read(topic)
    }
    assert sent == {
        (row["topic"], row["partition"], row["offset"]): (
            row["key"],
            row["value"],
            round(row["timestamp"].timestamp() * 1000),
        )
        for row in landed
    }
    assert {row["headers"][0]["key"] for row in landed if row["headers"]} == {"h"}


def ttl(stage: Stage) -> None:
    """What is still alive is passed on."""
    stage.topics("offers", "fresh-offers")
    now = SystemClock().wall_ms()
    stage.send(
        "offers",
        [
            Sent(b"for ever"),
            Sent(b"young", headers={"ttl": "3600000"}),
            Sent(b"old", headers={"ttl": "3600000"}, timestamp_ms=now - 3_600_001),
            Sent(b"old, and for ever", timestamp_ms=now - 3_600_001),
        ],
    )
    stage.once(stage.template("ttl"))
    assert values(stage.read("fresh-offers")) == [b"for ever", b"old, and for ever", b"young"]


def route(stage: Stage) -> None:
    """Headers, then predicates; what cannot be read can be replayed."""
    targets = ("orders-large", "orders-sweden", "orders-other", "by-hand")
    stage.topics("orders", "orders-dead", "orders-mended", *targets)

    def order(id: str, country: str, total: float) -> bytes:
        return json.dumps({"id": id, "country": country, "total": total}).encode()

    stage.send(
        "orders",
        [
            Sent(order("a", "SE", 1000), b"a"),
            Sent(order("b", "SE", 10), b"b"),
            Sent(order("c", "NO", 10), b"c"),
            Sent(order("d", "SE", 5000), b"d", {"route": "by-hand"}),
            Sent(b"not JSON", b"e", {"mine": "1"}),
        ],
    )
    job = stage.template("route")
    stage.once(job)
    assert {name: [one.key for one in stage.read(name)] for name in targets} == {
        "orders-large": [b"a"],
        "orders-sweden": [b"b"],
        "orders-other": [b"c"],
        "by-hand": [b"d"],
    }
    (letter,) = stage.read("orders-dead")
    (lost,) = (one for one in stage.read("orders") if one.key == b"e")
    assert (letter.key, letter.value) == (b"e", b"not JSON")
    why = headers(letter)
    assert why["mine"] == "1"
    assert (why[REASON_HEADER], why[PIPELINE_HEADER]) == (NOT_JSON, "route")
    assert why[TOPIC_HEADER] == "orders"
    assert (why[PARTITION_HEADER], why[OFFSET_HEADER]) == (
        str(lost.partition),
        str(lost.offset),
    )

    client = {"bootstrap.servers": stage.servers}
    assert replay(client, "orders-dead").sent == {("orders", NOT_JSON): 1}
    stage.once(job)
    again = stage.read("orders-dead")
    assert len(again) == 2, "what is still wrong comes back"
    assert {headers(one).get(REPLAYS_HEADER) for one in again} == {None, "1"}
    mending = Selection(to="orders-mended")
    assert replay(client, "orders-dead", mending).sent == {("orders-mended", NOT_JSON): 1}
    (mended,) = stage.read("orders-mended")
    assert headers(mended) == {"mine": "1", REPLAYS_HEADER: "2"}


def trace(stage: Stage) -> None:
    """Where and when every record was."""
    stage.topics("orders", "payments", "traces")
    stage.send("orders", [Sent(b"12345", b"order-1", {"trace-id": "t1"}, timestamp_ms=1_000)])
    stage.send("payments", [Sent(b"1", b"order-1", timestamp_ms=2_000), Sent(b"", b"k")])
    stage.once(stage.template("trace"))
    traces = {row["trace"]: row for row in told(stage, "traces")}
    assert traces.keys() == {"t1", "order-1", "k"}
    (sent,) = stage.read("orders")
    assert traces["t1"] == {
        "trace": "t1",
        "topic": "orders",
        "partition": sent.partition,
        "offset": 0,
        "at": "1970-01-01T00:00:01.000Z",
        "key": "order-1",
        "bytes": 5,
    }


def audit(stage: Stage) -> None:
    """The one record that was lost is found."""
    stage.topics("orders", "orders-done", "audit", "audit-gaps", partitions=1)
    events = [
        json.dumps({"id": str(at), "at": (NOON + timedelta(seconds=10 * at)).isoformat()}).encode()
        for at in range(18)
    ]
    later = json.dumps({"id": "z", "at": (NOON + timedelta(hours=1)).isoformat()}).encode()
    lost = events[8]
    stage.send("orders", [Sent(event) for event in (*events, later)])
    stage.send("orders-done", [Sent(event) for event in (*events, later) if event is not lost])
    stage.once(stage.template("audit"))
    counts = sorted(told(stage, "audit"), key=itemgetter("minute"))
    assert [(row["produced"], row["consumed"], row["missing"]) for row in counts] == [
        (6, 6, 0),
        (6, 5, 1),
        (6, 6, 0),
    ]
    (gap,) = told(stage, "audit-gaps")
    assert (gap["minute"], gap["missing"]) == ("2026-05-01T12:01:00.000Z", 1)


def compact(stage: Stage) -> None:
    """The latest value of every key."""
    stage.topics("customers")
    job = stage.template("compact")
    stage.send("customers", [Sent(b"1", b"a"), Sent(b"2", b"b"), Sent(b"3", b"a"), Sent(b"?")])
    stage.once(job)
    stage.send("customers", [Sent(b"4", b"b"), Sent(b"5", b"c"), Sent(None, b"a")])
    stage.once(job)
    stage.forget_the_last_commit(job, "customers")
    stage.once(job)
    found = {row["key"]: row["value"] for row in rows(stage, "customers")}
    assert found == {"a": None, "b": "4", "c": "5"}
    assert len(rows(stage, "customers")) == 3


def views(stage: Stage) -> None:
    """Cleaned, counted, and sessions kept."""
    written = ("clean-views", "top-pages", "sessions", "page-views-dead")
    stage.topics("page-views", *written, partitions=1)

    def view(id: str, user: str | None, url: str, second: int) -> Sent:
        at = (NOON + timedelta(seconds=second)).isoformat()
        return Sent(json.dumps({"id": id, "user": user, "url": url, "at": at}).encode())

    stage.send(
        "page-views",
        [
            view("1", "ann", "/", 0),
            view("1", "ann", "/", 0),
            view("2", "ann", "/hats", 20),
            view("3", None, "/", 30),
            view("4", "bob", "/", 90),
            Sent(b"?"),
            view("9", "eve", "/", 90_000),
        ],
    )
    stage.once(stage.template("views"))
    assert sorted(row["id"] for row in told(stage, "clean-views")) == ["1", "2", "4", "9"]
    reasons = Counter(headers(one)[REASON_HEADER] for one in stage.read("page-views-dead"))
    assert reasons == {NOT_JSON: 1, "nobody looked": 1}
    assert {(row["user"], row["pages"]) for row in told(stage, "sessions")} == {
        ("ann", 3),
        ("bob", 1),
    }
    top = {(row["minute"][11:16], row["url"]): row["views"] for row in told(stage, "top-pages")}
    assert top[("12:00", "/")] == 2
    assert stage.spark.read.parquet(str(stage.folder / "lake" / "views")).count() == 5
