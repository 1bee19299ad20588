"""The parts of this layer that API handlers use, in one record."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.log.directories.log_directories import LogDirectories
from ottla.replica.append import Appender
from ottla.replica.delete_records import RecordDeleter
from ottla.replica.fetch_sessions import FetchSessions
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.move_loop import MoveLoop
from ottla.replica.read import Reader
from ottla.replica.topic_metrics import BrokerTopicMetrics
from ottla.replica.transitions import Transitions


@dataclass(frozen=True, slots=True)
class ReplicaServices:
    hosted: HostedPartitions
    appends: Appender
    reads: Reader
    deletes: RecordDeleter
    sessions: FetchSessions
    transitions: Transitions
    directories: LogDirectories
    moves: MoveLoop
    topic_metrics: BrokerTopicMetrics
