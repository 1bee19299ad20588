"""Native kernels, loaded when the first record arrives and only where they are installed.

They make full record validation cheap, but bring a compiler's worth of memory: a broker that takes
no records never pays for it. Loading takes a second, in which records are examined in Python.
"""

from __future__ import annotations

import logging

from ottla.log import validate
from ottla.replica.environment import ThreadPool

log = logging.getLogger(__name__)


async def load_kernels(off: ThreadPool) -> None:
    """From when this is done, records are examined natively."""
    if await off.run(_warm_up):
        log.info("record validation runs on native kernels")


def _warm_up() -> bool:
    try:
        from ottla.protocol.records import columns
    except ImportError as missing:  # the extra `arrow` is not installed, or not well
        if validate.installed:
            log.warning("record validation runs in Python, not on native kernels: %s", missing)
        return False
    columns.warm_up()
    validate.use_native_kernels(columns.validate_records)
    return True
