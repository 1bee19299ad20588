"""How kernels are compiled and kept, and the one form in which they take bytes.

Compiled code is kept beside the file it was written in and renewed when that file changes, but not
when a function it calls in another file does. So the kernels live in two files that do not import
from each other, `reading` and `writing`, and everything native that one of them needs is in it;
whoever changes what is native here changes them too or deletes the kept code (`__pycache__`).
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from ottla.protocol.records.compression import Bytes

F = TypeVar("F")
compiler: Any = cgutils  # both are typed only in part
kinds: Any = types


def native(function: F) -> F:
    """Compiled once per machine and kept on disk; runs without the interpreter's lock."""
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # nowhere to keep it: compile for this process alone
        return cast(F, numba.njit(nogil=True)(function))


def inlined(function: F) -> F:
    """A part of the kernels of its file: calling it once per field would be most of the cost."""
    return cast(F, numba.njit(nogil=True, forceinline=True)(function))


def as_array(buffer: Bytes) -> Any:
    """The bytes as the kernels take them: read-only, so that each is compiled only once."""
    return np.frombuffer(memoryview(buffer).toreadonly(), dtype=np.uint8)


def _copy(_: Any, target: Any, at: Any, source: Any, span: Any) -> Any:
    """`target[at : at + size] = source[start : start + size]`, span (start, size), as one memcpy.

    A loop is not vectorised, and assigning a slice costs more than most records are long.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, at, source, span = arguments
        target_type, _, source_type, _ = signature.args
        start, size = (builder.extract_value(span, index) for index in (0, 1))
        into = context.make_array(target_type)(context, builder, target).data
        out_of = context.make_array(source_type)(context, builder, source).data
        ends = builder.gep(into, [at]), builder.gep(out_of, [start])
        compiler.raw_memcpy(builder, *ends, size, 1)
        return context.get_dummy_value()

    return kinds.void(target, kinds.int64, source, kinds.UniTuple(kinds.int64, 2)), generate


def _byte(_: Any, data: Any, at: Any) -> Any:
    """`np.int64(data[at])` for a position that cannot be negative.

    An index could mean a place counted from the end, and asking so takes longer than the read.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data, at = arguments
        out_of = context.make_array(signature.args[0])(context, builder, data).data
        found = builder.load(builder.gep(out_of, [at]))
        return builder.zext(found, context.get_value_type(kinds.int64))

    return kinds.int64(data, kinds.int64), generate


copy: Any = intrinsic(_copy)
byte_at: Any = intrinsic(_byte)
