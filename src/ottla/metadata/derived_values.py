"""What readers have made of topics, kept for as long as a topic stays the same.

Owns: of which topic, and for whom, something was made. Never knows what it is. Clients ask for all
topics again and again, and hardly any has changed: an image shares the others with the image before
it, so a topic that is the same object says the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

from ottla.metadata.image import BrokerMetadata, Image, TopicMetadata
from ottla.model.ids import BrokerId

KINDS: Final = 6
"""Of readers, such as a version and a listener; who has not asked for longest is dropped."""
SPARE: Final = 100
"""Topics that are gone, before they are looked for."""


class DerivedValues:
    def __init__(self) -> None:
        self._kinds: dict[Hashable, DerivedKind] = {}

    def kind(self, image: Image, name: Hashable) -> DerivedKind:
        """What there is for this kind of reader, while the same brokers are alive."""
        known = self._kinds.pop(name, None)
        if known is None or known.brokers != image.brokers:
            known = DerivedKind(image.brokers)
        self._kinds[name] = known
        if len(self._kinds) > KINDS:
            del self._kinds[next(iter(self._kinds))]
        known.forget_others(image)
        return known


class DerivedKind:
    """For one kind of reader."""

    def __init__(self, brokers: Mapping[BrokerId, BrokerMetadata]) -> None:
        self.brokers = brokers
        self._made: dict[str, tuple[TopicMetadata, Any]] = {}

    def find(self, name: str, topic: TopicMetadata) -> Any | None:
        """What was made of the topic before, if it is still the same."""
        made = self._made.get(name)
        return made[1] if made is not None and made[0] is topic else None

    def put(self, name: str, topic: TopicMetadata, made: object) -> None:
        """Keep what was made of the topic."""
        self._made[name] = topic, made

    def forget_others(self, image: Image) -> None:
        if len(self._made) > len(image.topics) + SPARE:
            self._made = {name: one for name, one in self._made.items() if name in image.topics}
