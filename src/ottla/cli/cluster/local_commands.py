"""`ottla cluster start`, `stop`, `status`: a development cluster on this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from ottla.cli.cluster import local_cluster
from ottla.cli.cluster.local_cluster import HOST, STATE, LocalCluster, LocalProcess
from ottla.cli.console import Table, patience, show
from ottla.cli.options import AsJson, pairs
from ottla.model.errors import UserError

DEFAULT_BROKERS: Final = 3
BROKERS_MAX: Final = 32
STOP_TIMEOUT_S: Final = 20.0
ZOOKEEPER_PORT: Final = 2181

DataDir = Annotated[
    Path, typer.Option("--data-dir", metavar="DIR", help="Store the cluster's files here.")
]
DEFAULT_DIR: Final = Path("ottla-cluster")
COLUMNS: Final = ("process", "state", "address", "pid", "log")


def start(
    *,
    brokers: Annotated[
        int | None,
        typer.Option(
            "--brokers",
            "-n",
            min=1,
            max=BROKERS_MAX,
            help="Start this many; default: 3, or as many as the cluster has.",
        ),
    ] = None,
    zookeeper: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT[/PATH]", help="Use this ZooKeeper; default: start one."),
    ] = None,
    data_dir: DataDir = DEFAULT_DIR,
    port: Annotated[
        int, typer.Option(min=1, max=65_535, help="Listen on free ports from this one on.")
    ] = 9092,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a broker setting; repeatable."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="Wait this long for the brokers.")
    ] = 60.0,
) -> int:
    """Start a development cluster in the background, or what is down of it.

    A cluster that was stopped keeps its brokers, ports and data. ZooKeeper needs Java and PySpark's
    jars; an ensemble of your own needs neither.

    Examples:
      ottla cluster start
      ottla cluster start --brokers 3 --data-dir /tmp/demo --set num.partitions=6
      ottla cluster start --zookeeper zk1:2181,zk2:2181/dev
    """
    folder = data_dir.resolve()
    if (folder / STATE).exists():
        cluster = _existing(local_cluster.load(folder), brokers, zookeeper)
    else:
        cluster = _new(folder, brokers or DEFAULT_BROKERS, zookeeper, port)
    settings = {**cluster.settings, **pairs("--set", set_)}
    cluster = _launch(replace(cluster, settings=settings), timeout)
    print(f"connect to:  {cluster.bootstrap}")
    print(f"try:         ottla topics create orders --partitions 6 -b {cluster.bootstrap}")
    print(f"stop:        ottla cluster stop --data-dir {data_dir}")
    return 0


def stop(
    *,
    data_dir: DataDir = DEFAULT_DIR,
    timeout: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="Wait this long for each part.")
    ] = 60.0,
) -> int:
    """Stop a development cluster; its data stays.

    Examples:
      ottla cluster stop
      ottla cluster stop --data-dir /tmp/demo
    """
    cluster = local_cluster.load(data_dir)
    folder = cluster.folder
    running = [process for process in cluster.processes if process.is_running(folder)]
    if not running:
        print(f"{data_dir}: the cluster is not running")
        return 0
    servers = [] if cluster.zookeeper is None else [cluster.zookeeper]
    with patience(f"stopping {len(running)} processes"):
        for part in (cluster.brokers, servers):
            left = local_cluster.stop_processes(
                part, folder, timeout, lambda process: print(f"{process.name} stopped", flush=True)
            )
            if left:
                names = ", ".join(f"{process.name} (pid {process.pid})" for process in left)
                raise UserError(f"still running after {timeout:g} s: {names}; see their logs")
    return 0


def status(*, data_dir: DataDir = DEFAULT_DIR, as_json: AsJson = False) -> int:
    """Show the processes of a development cluster; exit code 1 if one is down.

    Examples:
      ottla cluster status
      ottla cluster status --data-dir /tmp/demo --json
    """
    cluster = local_cluster.load(data_dir)
    rows = []
    for process in cluster.processes:
        running = process.is_running(cluster.folder)
        rows.append(
            (
                process.name,
                "running" if running else "stopped",
                f"{HOST}:{process.port}",
                process.pid if running else None,
                str(process.log(cluster.folder)),
            )
        )
    show(Table("processes", COLUMNS, rows, ("log", "pid")), as_json=as_json)
    return 0 if all(row[1] == "running" for row in rows) else 1


def _new(folder: Path, count: int, zookeeper: str | None, port: int) -> LocalCluster:
    taken: set[int] = set()
    processes = tuple(
        LocalProcess(f"broker-{index}", local_cluster.free_port(port, taken))
        for index in range(count)
    )
    if zookeeper is not None:
        return LocalCluster(folder, zookeeper, processes)
    server = LocalProcess("zookeeper", local_cluster.free_port(ZOOKEEPER_PORT, taken))
    return LocalCluster(folder, f"{HOST}:{server.port}", processes, server)


def _existing(cluster: LocalCluster, count: int | None, zookeeper: str | None) -> LocalCluster:
    """The cluster as it was; a start may add brokers to it, nothing else."""
    down = [each for each in cluster.processes if not each.is_running(cluster.folder)]
    if not down and (count is None or count == len(cluster.brokers)):
        names = ", ".join(each.name for each in cluster.processes)
        raise UserError(
            f"{cluster.folder}: the cluster is running ({names}); "
            "see ottla cluster status, or stop it first"
        )
    if zookeeper not in (None, cluster.zookeeper_connect):
        raise UserError(
            f"--zookeeper {zookeeper}: the cluster in {cluster.folder} uses "
            f"{cluster.zookeeper_connect}"
        )
    if count is not None and count < len(cluster.brokers):
        raise UserError(
            f"--brokers {count}: the cluster in {cluster.folder} has {len(cluster.brokers)}; move "
            "partitions away and remove brokers with ottla brokers decommission"
        )
    taken = {process.port for process in cluster.processes}
    added = [
        LocalProcess(
            f"broker-{index}", local_cluster.free_port(cluster.brokers[-1].port + 1, taken)
        )
        for index in range(len(cluster.brokers), count or 0)
    ]
    return replace(cluster, brokers=(*cluster.brokers, *added))


def _launch(cluster: LocalCluster, timeout_s: float) -> LocalCluster:
    """Start the processes that are down, and wait for the brokers; these wait for ZooKeeper by
    themselves."""
    folder = cluster.folder
    folder.mkdir(parents=True, exist_ok=True)
    down = {process.name for process in cluster.processes if not process.is_running(folder)}
    try:
        if cluster.zookeeper is not None and cluster.zookeeper.name in down:
            cluster = local_cluster.launch_zookeeper(cluster)
            cluster.save()
        for index, broker in enumerate(cluster.brokers):
            if broker.name in down:
                cluster = local_cluster.launch_broker(cluster, index)
                cluster.save()
        started = [broker for broker in cluster.brokers if broker.name in down]
        local_cluster.wait_until_ready(started, folder, timeout_s, _report_ready)
    except BaseException:  # nothing is left behind by a start that failed
        processes = [process for process in cluster.processes[::-1] if process.name in down]
        local_cluster.stop_processes(processes, folder, STOP_TIMEOUT_S, lambda process: None)
        raise
    return cluster


def _report_ready(broker: LocalProcess, seconds: float) -> None:
    print(f"{broker.name} ready on {HOST}:{broker.port} after {seconds:.1f} s", flush=True)
