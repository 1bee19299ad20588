"""The clients for asyncio, under their short names; loaded when they are first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ottla.client.admin.aio import Admin
    from ottla.client.consumer.aio import Consumer
    from ottla.client.producer.aio import Producer

__all__ = ["Admin", "Consumer", "Producer"]

_HOMES: Final = {
    "Admin": "ottla.client.admin.aio",
    "Consumer": "ottla.client.consumer.aio",
    "Producer": "ottla.client.producer.aio",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ottla.aio' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
