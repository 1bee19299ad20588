"""ARCHITECTURE.md names the modules that requests pass through, in the order they are entered.

A broker runs in this process. A profile hook on its threads records which modules of `ottla` are
entered from the moment the listener accepts a connection until the reply arrives. The page lists
the hops of each path in numbered lists; page and record must be equal.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import ottla
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.raw_requests import FETCH, Line, batch, create_topics, fetch_fields, produced

PAGE: Final = Path(__file__).resolve().parents[2] / "ARCHITECTURE.md"
SOURCE: Final = f"{Path(ottla.__file__).parent}/"
FIND_COORDINATOR: Final = 10
JOIN_GROUP: Final = 11
SYNC_GROUP: Final = 14

# A hop is a module of one of these packages ...
PACKAGES: Final = [
    "net",
    "protocol",
    "api",
    "shared_state",
    "replica",
    "log",
    "delay",
    "controller",
    "coordinator",
    "store",
    "metadata",
]
# ... unless it is listed here.
NOT_HOPS: Final = {
    # counts and times
    "api/throttling.py",
    "net/request_metrics.py",
    "controller/runtime/metrics.py",
    "coordinator/group/metrics.py",
    "replica/topic_metrics.py",
    # values, names, and working copies of a decision
    "api/api.py",
    "controller/draft.py",
    "controller/event_size.py",
    "controller/state.py",
    "coordinator/group/draft.py",
    "log/directories/partition_metadata.py",
    "net/limits.py",
    "replica/environment.py",
    "replica/fetch/options.py",
    "replica/partition_fetch.py",
    "store/nodes.py",
    "store/paths.py",
    "store/port.py",
    # parts of a log that a new one only constructs
    "log/producers/snapshot_loading.py",
    "log/segment_deletion.py",
    # fields of messages: one conversion for every API
    "coordinator/record_fields.py",
    "protocol/chunked_encoding.py",
    "protocol/encode.py",
    "protocol/hot/parts.py",
    "protocol/schema.py",
    # used where the kernel offers it
    "log/io_uring.py",
}
RECORD_FORMATS: Final = "protocol/records/"  # entered by kernels and by their warm-up as well
EVERY_REQUEST: Final = "Every request"
PATHS: Final = (
    "A produce request",
    "A fetch request",
    "A member joins a group",
    "A topic is created",
)
RUNS: Final = 3


class Recorder:
    """The modules entered since the last connection was accepted, in that order."""

    def __init__(self) -> None:
        self._entered: dict[str, None] = {}
        self._armed = False

    def hook(self, frame: FrameType, event: str, argument: object) -> None:
        if not self._armed or event != "call" or frame.f_code.co_name == "<module>":
            return
        path = frame.f_code.co_filename
        if not path.startswith(SOURCE):
            return
        module = path.removeprefix(SOURCE)
        begun = self._entered or module == "net/acceptor.py"
        if begun and module not in self._entered and not is_property(frame):
            self._entered[module] = None

    @contextmanager
    def recording(self) -> Iterator[None]:
        self._entered = {}
        self._armed = True
        yield
        self._armed = False

    def hops(self) -> list[str]:
        return [module for module in self._entered if is_hop(module)]


def is_property(frame: FrameType) -> bool:
    """Whether an attribute is read: that alone does not enter a module."""
    owner = type(frame.f_locals.get("self"))
    return isinstance(getattr(owner, frame.f_code.co_name, None), property)


def is_hop(module: str) -> bool:
    return (
        module.partition("/")[0] in PACKAGES
        and module not in NOT_HOPS
        and not module.endswith("__init__.py")
        and not module.startswith(RECORD_FORMATS)
    )


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[list[str]]]:
    """For each heading of the page, the hops of each run that all runs have in common.

    What a timer of the broker happens to do meanwhile is not in all of them. The first run, in
    which messages are compiled, does not count.
    """
    walks = [walk() for _ in range(1 + RUNS)][1:]
    paths = {
        name: [common_to_all(run[name], [other[name] for other in walks]) for run in walks]
        for name in PATHS
    }
    shared = set.intersection(*(before_handler(paths[name][0]) for name in PATHS))
    every = [[hop for hop in run if hop in shared] for run in paths[PATHS[0]]]
    return {
        EVERY_REQUEST: every,
        **{
            name: [[hop for hop in run if hop not in shared] for run in runs]
            for name, runs in paths.items()
        },
    }


def before_handler(hops: list[str]) -> set[str]:
    """The hops before the first module that belongs to one API."""
    handlers = {"api/produce.py", "api/fetch.py", "api/join_group.py", "api/create_topics.py"}
    first = next(number for number, hop in enumerate(hops) if hop in handlers)
    return set(hops[:first])


def common_to_all(hops: list[str], runs: list[list[str]]) -> list[str]:
    return [hop for hop in hops if all(hop in run for run in runs)]


def walk() -> dict[str, list[str]]:
    """One fresh broker, and the hops of each path in it."""
    recorder = Recorder()
    threading.setprofile(recorder.hook)
    try:
        broker = Broker({"flush.before.ack": "auto", "offsets.topic.num.partitions": "1"})
        with broker, ExitStack() as connections:

            def walked(request: Callable[[Line], None]) -> list[str]:
                with recorder.recording():
                    line = connections.enter_context(Line(broker.bootstrap_servers))
                    request(line)
                return recorder.hops()

            created = walked(lambda line: create_topics(line, ["walk"]))
            produced_hops = walked(produce)
            fetched_hops = walked(fetch)
            member_id = member_of_group(connections.enter_context(Line(broker.bootstrap_servers)))
            joined = walked(lambda line: join(line, member_id))
    finally:
        threading.setprofile(None)
    return dict(zip(PATHS, (produced_hops, fetched_hops, joined, created), strict=True))


def produce(line: Line) -> None:
    assert produced(line, "walk", batch("x")).error_code == ErrorCode.none


def fetch(line: Line) -> None:
    reply = line.ask(FETCH, 12, **fetch_fields("walk"))
    assert reply.responses[0].partitions[0].records


def join_fields(member_id: str) -> dict[str, Any]:
    return {
        "group_id": "walkers",
        "session_timeout": 10_000,
        "rebalance_timeout": 10_000,
        "member_id": member_id,
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }


def member_of_group(line: Line) -> str:
    """A member id, once the group's coordinator has loaded."""
    for _ in range(1000):
        line.ask(FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["walkers"])
        reply = line.ask(JOIN_GROUP, 5, **join_fields(""))
        if reply.error_code == ErrorCode.member_id_required:
            return str(reply.member_id)
    raise AssertionError(f"no member id: {reply}")


def join(line: Line, member_id: str) -> None:
    joined = line.ask(JOIN_GROUP, 5, **join_fields(member_id))
    assert joined.error_code == ErrorCode.none
    synced = line.ask(
        SYNC_GROUP,
        3,
        group_id="walkers",
        generation_id=joined.generation_id,
        member_id=member_id,
        group_instance_id=None,
        assignments=[{"member_id": member_id, "assignment": b"x"}],
    )
    assert synced.error_code == ErrorCode.none


def hops_on_page(heading: str, text: str) -> list[str]:
    """The modules named in the numbered list under a heading, in order."""
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    steps = re.findall(r"^\d+\. (?:.+\n?)(?:^   .+\n?)*", section, re.MULTILINE)
    return re.findall(r"`([\w/]+\.py)`", "".join(steps))


@pytest.mark.parametrize("heading", [EVERY_REQUEST, *PATHS])
def test_the_page_names_every_hop_of_a_path_in_order(
    heading: str, recorded: dict[str, list[list[str]]]
) -> None:
    named = hops_on_page(heading, PAGE.read_text())
    runs = recorded[heading]
    passed = runs[0]
    assert [hop for hop in named if hop not in passed] == [], "named, but not passed"
    assert [hop for hop in passed if hop not in named] == [], "passed, but not named"
    assert named in runs, f"another order than on the page: {passed}"


def test_a_hop_is_named_once_on_a_path() -> None:
    text = PAGE.read_text()
    shared = hops_on_page(EVERY_REQUEST, text)
    for heading in PATHS:
        hops = shared + hops_on_page(heading, text)
        assert len(hops) == len(set(hops)), heading


def test_hops_are_read_from_numbered_steps_only() -> None:
    steps = "1. `net/a.py` and\n   `net/b.py`\n2. `log/c.py`\n"
    text = f"# T\n\n## A\n\nSee `log/x.py`.\n\n{steps}\n`d/e.py`\n\n## B\n"
    assert hops_on_page("A", text) == ["net/a.py", "net/b.py", "log/c.py"]


def test_modules_that_are_not_hops_exist() -> None:
    assert [module for module in NOT_HOPS if not (Path(SOURCE) / module).exists()] == []
