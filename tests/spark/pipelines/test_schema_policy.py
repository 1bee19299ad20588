"""Columns that a table does not have are refused, added or rescued, as the file says."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ottla.model.errors import UserError
from ottla.spark.pipelines.lake.schema_policy import RESCUED, Conformance, conform, plain_type

TABLE = pa.schema([("k", pa.large_string()), ("v", pa.int64())])


def batch(**types: pa.DataType) -> pa.Schema:
    return pa.schema(list(types.items()))


SAME = batch(k=pa.string(), v=pa.int64())
NEW = batch(k=pa.string(), v=pa.int64(), extra=pa.string())
CHANGED = batch(k=pa.string(), v=pa.string())


@pytest.mark.parametrize("policy", ["strict", "evolve", "rescue"])
def test_the_same_columns_a_missing_one_and_a_first_batch_are_taken_as_they_are(
    policy: str,
) -> None:
    assert conform(policy, SAME, TABLE, "t") == Conformance()
    assert conform(policy, batch(k=pa.string()), TABLE, "t") == Conformance()
    assert conform(policy, NEW, None, "t") == Conformance()


def test_a_new_column_is_refused_added_or_rescued() -> None:
    with pytest.raises(
        UserError, match=r"delta table x: columns .* does not have: extra\. .*evolve"
    ):
        conform("strict", NEW, TABLE, "delta table x")
    assert conform("evolve", NEW, TABLE, "t") == Conformance(added=("extra",))
    assert conform("rescue", NEW, TABLE, "t") == Conformance((RESCUED,), (), ("extra",))


@pytest.mark.parametrize("policy", ["strict", "evolve"])
def test_a_changed_type_is_refused_with_both_types(policy: str) -> None:
    with pytest.raises(UserError, match="v is string, was int64"):
        conform(policy, CHANGED, TABLE, "t")


def test_a_changed_type_is_rescued_into_the_column_that_is_there() -> None:
    table = TABLE.append(pa.field(RESCUED, pa.string()))
    assert conform("rescue", CHANGED, table, "t") == Conformance((), (), ("v",))


@pytest.mark.parametrize("policy", ["strict", "evolve", "rescue"])
def test_a_smaller_number_is_widened(policy: str) -> None:
    plan = conform(policy, batch(k=pa.string(), v=pa.int32()), TABLE, "t")
    assert plan == Conformance(widened=(("v", "bigint"),))


def test_types_that_differ_in_layout_alone_are_the_same() -> None:
    inner = pa.struct([pa.field("a", pa.large_string(), nullable=False)])
    other = pa.struct([pa.field("a", pa.string())])
    assert plain_type(pa.list_(inner)) == plain_type(pa.large_list(pa.field("element", other)))
    assert plain_type(pa.timestamp("us", "UTC")) != plain_type(pa.timestamp("us"))
