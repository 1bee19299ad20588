"""Record batches as columns, and back: native kernels (Numba), one call for millions of records.

Needs the extra `arrow`. Compiled code is kept on disk; the first compilation takes seconds.
"""

from ottla.protocol.records.columns.validate import validate_records, warm_up

__all__ = ["validate_records", "warm_up"]
