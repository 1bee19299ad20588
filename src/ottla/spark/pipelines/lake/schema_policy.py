"""What happens to a batch whose columns are not those of its table.

Owns: the comparison of two schemas and what each policy makes of the difference. Pure: Arrow
schemas in, a plan out.

    strict   a new column or another type is an error that names both
    evolve   new columns are added to the table; another type is an error
    rescue   new columns and values of another type go as JSON into the column `_rescued`

In all three a column that the batch lacks is null in the table, and a number of a smaller type is
widened to the table's type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.model.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

POLICIES: Final = ("strict", "evolve", "rescue")
RESCUED: Final = "_rescued"
WIDER: Final = {
    "int8": ("int16", "int32", "int64"),
    "int16": ("int32", "int64"),
    "int32": ("int64", "double"),
    "float": ("double",),
}
"""Types that a table may have where the batch has the first: no value is lost."""
SPARK_NAMES: Final = {"int16": "smallint", "int32": "int", "int64": "bigint", "double": "double"}


@dataclass(frozen=True)
class Conformance:
    """How a batch becomes one of its table."""

    added: tuple[str, ...] = ()
    """Columns that the table gets."""
    widened: tuple[tuple[str, str], ...] = ()
    """Columns to cast, and the table's type in Spark's words."""
    rescued: tuple[str, ...] = ()
    """Columns whose values go into the rescue column."""


def conform(policy: str, batch: pa.Schema, table: pa.Schema | None, where: str) -> Conformance:
    """Compare a batch with its table; UserError where the policy does not allow the difference."""
    if table is None:
        return Conformance()
    types = {field.name: plain_type(field.type) for field in table}
    batch_types = {field.name: plain_type(field.type) for field in batch}
    new = [name for name in batch_types if name not in types]
    widened = {
        name: SPARK_NAMES[types[name]]
        for name, kind in batch_types.items()
        if name in types and types[name] in WIDER.get(kind, ())
    }
    changed = [
        name
        for name, kind in batch_types.items()
        if name in types and types[name] != kind and name not in widened
    ]
    if policy == "rescue":
        added = () if RESCUED in types else (RESCUED,)
        rescued = (*new, *changed)
        return Conformance(added if rescued else (), tuple(widened.items()), rescued)
    if changed:
        listing = ", ".join(f"{name} is {batch_types[name]}, was {types[name]}" for name in changed)
        raise UserError(
            f"{where}: the type of a column differs from the table's: {listing}. Cast it in a "
            "step, write to a new table, or set schema: rescue"
        )
    if new and policy == "strict":
        raise UserError(
            f"{where}: columns that the table does not have: {', '.join(new)}. Remove them in a "
            "step, or set schema: evolve to add them to the table (rescue: to keep them as JSON)"
        )
    return Conformance(tuple(new), tuple(widened.items()))


def plain_type(kind: pa.DataType) -> str:
    """A type as text, the same for what differs only in Arrow's layout or in nullability."""
    import pyarrow as pa

    if pa.types.is_large_string(kind) or pa.types.is_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_large_binary(kind) or pa.types.is_binary(kind) or pa.types.is_binary_view(kind):
        return "binary"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{plain_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{plain_type(kind.key_type)}, {plain_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        fields = (kind.field(index) for index in range(kind.num_fields))
        return f"struct<{', '.join(f'{field.name}: {plain_type(field.type)}' for field in fields)}>"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    return str(kind)
