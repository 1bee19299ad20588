"""Who a broker is: settings, directories and store must tell the same story."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from ottla.broker.identity import BrokerIdentity, identify
from ottla.broker.metadata_store import MetadataStoreChoice
from ottla.config.dynamic import DynamicConfig
from ottla.log.directories import meta_properties
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.directories.meta_properties import MetaProperties
from ottla.model.errors import UserError
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.nodes import LogDirsNode
from ottla.store.port import StoreUnavailable
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.fakes.manual_time import ManualClock

A, B = "/a", "/b"


class Machine:
    """A disk and a metadata store that outlive the broker's lives."""

    def __init__(self) -> None:
        self.disk = ForgettingDisk()
        self.ensemble = Ensemble()
        self.seed = 0

    async def start(self, *dirs: str, **settings: str) -> BrokerIdentity:
        self.seed += 1
        self.disk.kill()
        self.store = store = MemoryStore(self.ensemble)
        await store.start()
        named = {name.replace("_", "."): value for name, value in settings.items()}
        directories = LogDirectories(
            [Path(one) for one in dirs or (A,)], self.disk, ManualClock(), Random(self.seed)
        )
        directories.open()
        return await identify(
            MetadataStoreChoice(store, "memory", "it was lost"),
            directories,
            DynamicConfig(named),
            Random(self.seed),
        )

    def meta(self, directory: str) -> MetaProperties:
        path = Path(directory) / meta_properties.FILE_NAME
        return MetaProperties.parse(self.disk.read(path).decode(), source=str(path))

    def wipe(self, directory: str) -> None:
        self.disk.remove_tree(Path(directory))


@pytest.mark.spec("CFG-001")
async def test_an_identity_is_settled_once_and_written_down_everywhere() -> None:
    machine = Machine()
    first = await machine.start(A, B, broker_id="7")
    assert first.broker_id == 7
    for directory in (A, B):
        meta = machine.meta(directory)
        assert (meta.broker_id, meta.cluster_id) == first[:2]
    assert machine.meta(A).directory_id != machine.meta(B).directory_id
    assert await machine.start(A, B, broker_id="7") == first


@pytest.mark.spec("CFG-001")
async def test_a_default_id_yields_to_the_directories_and_a_set_one_must_agree() -> None:
    machine = Machine()
    first = await machine.start(broker_id="7")
    assert await machine.start() == first, "nobody said 0, it is only the default"
    with pytest.raises(UserError, match=r"broker\.id"):
        await machine.start(broker_id="0")


@pytest.mark.spec("CFG-002", "CFG-003")
async def test_an_id_can_be_generated_above_the_reserved_ones_and_is_kept() -> None:
    machine = Machine()
    identity = await machine.start(broker_id="-1", reserved_broker_max_id="50")
    assert identity.broker_id == 51
    assert await machine.start(broker_id="-1", reserved_broker_max_id="50") == identity
    other = Machine()
    other.ensemble = machine.ensemble
    assert (await other.start(broker_id="-1", reserved_broker_max_id="50")).broker_id == 52


async def test_a_directory_of_another_cluster_stops_the_start() -> None:
    machine, other = Machine(), Machine()
    other.seed = 99
    await machine.start()
    await other.start()
    machine.ensemble = other.ensemble
    with pytest.raises(UserError, match="cluster"):
        await machine.start()


async def test_directories_of_two_brokers_stop_the_start() -> None:
    machine = Machine()
    await machine.start(A, broker_id="1")
    machine.ensemble = Ensemble()
    await machine.start(B, broker_id="2")
    with pytest.raises(UserError):
        await machine.start(A, B)


async def test_data_without_its_metadata_stops_the_start_unless_accepted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    machine = Machine()
    first = await machine.start()
    machine.ensemble = Ensemble()
    with pytest.raises(UserError, match="has no metadata of that cluster: it was lost;"):
        await machine.start()
    again = await machine.start(log_dirs_accept_missing="true")
    assert again.cluster_id == first.cluster_id
    assert "because of log.dirs.accept.missing=true" in caplog.text


async def test_a_broker_that_runs_opens_no_session_with_a_store_that_lost_its_data() -> None:
    machine = Machine()
    await machine.start()
    store, ensemble = machine.store, machine.ensemble
    node = await store.get(paths.CLUSTER_ID)
    assert node is not None
    await store.delete(paths.CLUSTER_ID)
    ensemble.expire(store)
    with pytest.raises(StoreUnavailable, match="the metadata store lost its data"):
        await store.start()
    restored = MemoryStore(ensemble)
    await restored.start()
    await restored.create(paths.CLUSTER_ID, node.data)
    await store.start()
    assert await store.get(paths.CLUSTER_ID) is not None


async def test_a_directory_that_was_wiped_or_is_missing_stops_the_start_unless_accepted() -> None:
    machine = Machine()
    await machine.start(A, B)
    with pytest.raises(UserError, match="log directories of broker 0 are missing"):
        await machine.start(A)
    machine.wipe(B)
    with pytest.raises(UserError, match="are missing: /b: the disk was wiped"):
        await machine.start(A, B)
    await machine.start(A, B, log_dirs_accept_missing="true")
    await machine.start(A, B)


@pytest.mark.spec("REP-71")
async def test_in_a_cluster_a_wiped_directory_is_announced_and_not_yet_remembered() -> None:
    machine, cluster = Machine(), {"zookeeper_connect": "zk:2181"}
    first = await machine.start(A, B, **cluster)
    assert first.log_dirs is None
    machine.wipe(B)
    again = await machine.start(A, B, **cluster)
    assert again.log_dirs is not None
    present = {machine.meta(A).directory_id: A, machine.meta(B).directory_id: B}
    assert again.log_dirs.paths == present
    remembered = machine.ensemble.tree.find(paths.log_dirs(first.broker_id))
    assert remembered is not None
    assert LogDirsNode.decode(remembered.data).paths != present
    assert (await machine.start(A, B, **cluster)).log_dirs == again.log_dirs, "until it is"


async def test_a_new_directory_is_welcome() -> None:
    machine = Machine()
    first = await machine.start(A)
    assert await machine.start(A, B) == first
    assert machine.meta(B).cluster_id == first.cluster_id


async def test_the_store_remembers_the_directories() -> None:
    machine = Machine()
    identity = await machine.start(A, B)
    store = MemoryStore(machine.ensemble)
    await store.start()
    node = await store.get(paths.log_dirs(identity.broker_id))
    assert node is not None
    assert b"/a" in node.data and b"/b" in node.data
