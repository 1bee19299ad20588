"""What a client may do, as replies tell it: one bit for each operation of Kafka's ACLs.

Owns the numbers. There is no authorizer, so everybody may do everything that a resource knows.
"""

from __future__ import annotations

from typing import Final

NOT_ASKED: Final = -(2**31)
ON_TOPIC: Final = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
"""Read, write, create, delete, alter, describe, describe and alter configs."""
ON_CLUSTER: Final = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
"""Create, alter, describe, cluster action, describe and alter configs, idempotent write."""
