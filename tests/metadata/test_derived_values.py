"""What was made of a topic is made anew when, and only when, it would be different."""

from __future__ import annotations

from ottla.metadata.cache import KINDS, SPARE, DerivedValues
from ottla.metadata.image import (
    DELETED,
    BrokerMetadata,
    Endpoint,
    Image,
    PartitionMetadata,
    TopicMetadata,
    Update,
)
from ottla.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, TopicId, TopicPartition
from ottla.protocol.encode import Encoded

ME = BrokerId(1)
HERE = BrokerMetadata(ME, {"PLAINTEXT": Endpoint("here", 9092)})
ID = TopicId(int=7)


def updated(
    image: Image, *partitions: tuple[str, int, int], brokers: tuple[BrokerMetadata, ...]
) -> Image:
    """The image after (topic, partition, leader) were told."""
    changes = [
        (
            TopicPartition(topic, number),
            ID,
            PartitionMetadata(BrokerId(leader), LeaderEpoch(0), (ME,), (ME,)),
        )
        for topic, number, leader in partitions
    ]
    return image.changed_by(Update(ME, ControllerEpoch(1), brokers, changes))[0]


def _encoded(name: str, topic: TopicMetadata) -> Encoded:
    return Encoded(f"{name} {len(topic.partitions)}".encode())


class Maker:
    """Counts what it makes."""

    def __init__(self) -> None:
        self.derived = DerivedValues()
        self.computed: list[str] = []

    def compute(self, image: Image, kind: str = "kind") -> list[str]:
        """The topics that were made anew for this question."""
        self.computed.clear()
        cached = self.derived.kind(image, kind)
        for name, topic in image.topics.items():
            if cached.find(name, topic) is None:
                self.computed.append(name)
                cached.put(name, topic, _encoded(name, topic))
            assert cached.find(name, topic) == _encoded(name, topic)
        return self.computed[:]


def test_a_topic_is_made_once_and_again_only_when_it_has_changed() -> None:
    maker = Maker()
    image = updated(Image(), ("a", 0, 1), ("b", 0, 1), brokers=(HERE,))
    assert maker.compute(image) == ["a", "b"]
    assert maker.compute(image) == []
    image = updated(image, brokers=(HERE,))  # told again, and nothing new
    assert maker.compute(image) == []
    image = updated(image, ("b", 1, 1), brokers=(HERE,))
    assert maker.compute(image) == ["b"]


def test_all_is_made_anew_when_a_broker_comes_goes_or_moves() -> None:
    maker = Maker()
    image = updated(Image(), ("a", 0, 1), brokers=(HERE,))
    assert maker.compute(image) == ["a"]
    moved = HERE._replace(endpoints={"PLAINTEXT": Endpoint("there", 9092)})
    for brokers in ((moved,), (moved, BrokerMetadata(BrokerId(2), {})), ()):
        image = updated(image, brokers=brokers)
        assert maker.compute(image) == ["a"]
        assert maker.compute(image) == []


def test_each_kind_of_reader_has_its_own_and_the_oldest_is_dropped() -> None:
    maker = Maker()
    image = updated(Image(), ("a", 0, 1), brokers=(HERE,))
    kinds = [f"kind {number}" for number in range(KINDS)]
    for kind in kinds:
        assert maker.compute(image, kind) == ["a"]
    assert maker.compute(image, kinds[0]) == []
    assert maker.compute(image, "one more") == ["a"]
    assert maker.compute(image, kinds[0]) == []
    assert maker.compute(image, kinds[1]) == ["a"]


def test_topics_that_are_gone_are_forgotten() -> None:
    maker = Maker()
    many = [(f"t{number}", 0, 1) for number in range(SPARE + 2)]
    image = updated(Image(), ("stays", 0, 1), *many, brokers=(HERE,))
    maker.compute(image)
    image = updated(image, *[(name, 0, DELETED) for name, _, _ in many], brokers=(HERE,))
    assert maker.compute(image) == []
    cached = maker.derived.kind(image, "kind")
    assert list(cached._values) == ["stays"]
