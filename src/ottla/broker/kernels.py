"""Native kernels, loaded when the first record arrives and only where they are installed.

They make full record validation cheap, but bring a compiler's worth of memory: a broker that takes
no records never pays for it.
"""

from __future__ import annotations

import logging

from ottla.log.validate import use_native_kernels
from ottla.replica.surroundings import Off

log = logging.getLogger(__name__)


async def load_kernels(off: Off) -> None:
    """From when this is done, `record.validation=auto` means full."""
    if await off.run(_warm_up):
        log.info("record validation runs on native kernels")


def _warm_up() -> bool:
    try:
        from ottla.protocol.records import columns
    except ImportError:  # the extra `arrow` is not installed
        return False
    columns.warm_up()
    use_native_kernels(columns.validate_records)
    return True
