"""The parts of this layer that API handlers use, in one record."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.log.directories.log_directories import LogDirectories
from ottla.replica.append import Appends
from ottla.replica.delete_records import Deletes
from ottla.replica.fetch_sessions import FetchSessions
from ottla.replica.hosted_partitions import Hosted
from ottla.replica.move_loop import MoveLoop
from ottla.replica.read import Reads
from ottla.replica.topic_metrics import Traffic
from ottla.replica.transitions import Transitions


@dataclass(frozen=True, slots=True)
class ReplicaServices:
    hosted: Hosted
    appends: Appends
    reads: Reads
    deletes: Deletes
    sessions: FetchSessions
    transitions: Transitions
    directories: LogDirectories
    moves: MoveLoop
    traffic: Traffic
