"""Groups for assignors: members by their topics, and partitions by short names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import strategies as st

from ottla.client.consumer.assignors.assignor import Shares, Subscription
from ottla.model.ids import TopicPartition


def group(**topics: str) -> dict[str, Subscription]:
    """`group(C0="t0 t1")`: one member for each argument."""
    return {member: Subscription(tuple(names.split())) for member, names in topics.items()}


def parts(text: str) -> list[TopicPartition]:
    """`t0p1 t2p0` as partitions."""
    found = (name.rpartition("p") for name in text.split())
    return [TopicPartition(topic, int(index)) for topic, _, index in found]


def short(shares: Mapping[str, Iterable[TopicPartition]]) -> dict[str, str]:
    """Shares as the examples write them."""
    return {
        member: " ".join(f"{at.topic}p{at.partition}" for at in sorted(share))
        for member, share in shares.items()
    }


def owned_once(shares: Shares) -> bool:
    everything = [at for share in shares.values() for at in share]
    return len(everything) == len(set(everything))


TOPICS = ["t0", "t1", "t2", "t3"]


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, Subscription], dict[str, int]]:
    """Up to six members with any subscriptions, and topics of up to eight partitions."""
    partitions = {topic: draw(st.integers(0, 8)) for topic in TOPICS}
    members = {
        f"C{number}": Subscription(tuple(draw(st.sets(st.sampled_from(TOPICS), min_size=1))))
        for number in range(draw(st.integers(1, 6)))
    }
    return members, partitions


@st.composite
def equal_groups(draw: st.DrawFn) -> tuple[dict[str, Subscription], dict[str, int]]:
    partitions = {topic: draw(st.integers(0, 8)) for topic in TOPICS}
    members = {
        f"C{number}": Subscription(tuple(TOPICS)) for number in range(draw(st.integers(1, 6)))
    }
    return members, partitions


def subscribed_partitions(
    members: Mapping[str, Subscription], partitions: Mapping[str, int]
) -> set[str]:
    """Every partition that somebody wants, written as in `short`."""
    topics = {topic for told in members.values() for topic in told.topics}
    return {f"{topic}p{index}" for topic in topics for index in range(partitions[topic])}


def dealt(shares: Shares) -> set[str]:
    return {name for share in short(shares).values() for name in share.split()}
