"""A broker's resident memory, measured once everything that is loaded lazily is loaded."""

from __future__ import annotations

from importlib.util import find_spec

from ottla.model.errors import ErrorCode
from tests.cluster.process import BrokerProcess, wait_for
from tests.raw_requests import Line, batch, produced


def rss_after_first_record(broker: BrokerProcess, topic: str = "t") -> int:
    """The resident bytes after a first record, which loads the native kernels."""
    with Line(broker.address) as line:
        assert produced(line, topic, batch("v")).error_code is ErrorCode.none
    if find_spec("numba") is not None:
        wait_for(lambda: "native kernels" in broker.said, what="the kernels")
    return broker.rss_bytes
