"""CRC-32C, the checksum of record batches.

Owns which function computes it: the compiled one of the package `crc32c`. Importing the whole
package looks up its version, for which Python loads modules for archives and mail headers: 1.6 MB
and 10 ms in every broker. So only its compiled part is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Final, TypeAlias

Checksum: TypeAlias = Callable[..., int]
"""Of bytes; the second argument is the checksum of the bytes before them."""


def _compiled_part() -> Checksum | None:
    package = find_spec("crc32c")
    part = package and PathFinder.find_spec("_crc32c", package.submodule_search_locations)
    if part is None or part.loader is None:
        return None
    module = module_from_spec(part)
    part.loader.exec_module(module)
    checksum: Checksum = module.crc32c
    return checksum


def _whole_package() -> Checksum:
    from crc32c import crc32c

    return crc32c


crc32c: Final = _compiled_part() or _whole_package()
