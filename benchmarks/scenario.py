"""What a benchmark hands to the runner: named scenarios, and what each contender did in them.

Never: measures; a scenario is a name and a function, and the runner decides how often and in what
order the contenders take their turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from benchmarks.contenders import Contender

Readings = Mapping[str, float]  # metric, unit included -> value

KAFKA: Final = "kafka"
OTTLA: Final = "ottla"  # flush.before.ack=never: what Kafka does
DEFAULT: Final = "ottla-default"  # flush.before.ack=auto: fsync before acks=all on one node


class Scenario(NamedTuple):
    name: str
    measure: Callable[[Contender], Readings]
    contenders: tuple[str, ...] = (KAFKA, OTTLA)


def cores(metric: str) -> str:
    """The name under which a metric's share of server CPU is kept."""
    return f"{metric} (server cores)"
