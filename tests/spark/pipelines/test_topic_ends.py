"""How far sources could be read now; a cluster that is away changes nothing."""

from __future__ import annotations

import ottla
from ottla.client.admin import NewTopic
from ottla.model.clock import SystemClock
from ottla.spark.pipelines.spec import Source
from ottla.spark.pipelines.topic_ends import TopicEnds
from ottla.testing import Broker


def source(broker: Broker, **options: str) -> Source:
    return Source("s", {"kafka.bootstrap.servers": broker.bootstrap_servers, **options})


def test_the_ends_of_every_cluster_are_told_and_kept_while_one_is_away() -> None:
    with Broker() as here:
        with Broker() as there:
            for broker, topics in ((here, ("a", "b")), (there, ("c",))):
                with ottla.Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
                    admin.create_topics([NewTopic(name, 2) for name in topics]).all()
            with ottla.Producer(bootstrap_servers=there.bootstrap_servers) as producer:
                producer.send("c", b"1", partition=1)
            sources = [
                source(here, subscribePattern="a|b|c"),
                source(there, subscribe="c"),
                source(there, subscribe="not-yet"),
            ]
            with TopicEnds(sources, SystemClock()) as ends:
                expected = {"a-0": 0, "a-1": 0, "b-0": 0, "b-1": 0, "c-0": 0, "c-1": 1}
                assert ends() == expected
                with ottla.Producer(bootstrap_servers=here.bootstrap_servers) as producer:
                    producer.send("a", b"1", partition=0)
                assert ends() == {**expected, "a-0": 1}
        with TopicEnds([*sources[:1], sources[1]], SystemClock()) as later:
            assert later() == {"a-0": 1, "a-1": 0, "b-0": 0, "b-1": 0}, "the other is away"


def test_what_a_delay_holds_back_is_not_behind() -> None:
    with Broker() as broker, ottla.Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        now = SystemClock().wall_ms()
        producer.send("t", b"old", timestamp_ms=now - 3_600_000)
        producer.send("t", b"new")
        producer.flush()
        delayed = source(broker, subscribe="t", **{"ottla.delay": "30m"})
        with TopicEnds([delayed], SystemClock()) as ends:
            assert ends() == {"t-0": 1}
