"""Protobuf values become columns on the workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from pyspark.sql import SparkSession

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding.formats import NO_VALUE, decode_records
from ottla.spark.pipelines.spec import Format
from tests.spark.pipelines.source_rows import records, rows_with_reason


def descriptors() -> bytes:
    """message View { string user = 1; repeated int64 pages = 2; Kind kind = 3; }"""
    found = descriptor_pb2.FileDescriptorSet()
    file = found.file.add(name="view.proto", package="shop", syntax="proto3")
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="NONE", number=0)
    kind.value.add(name="SOME", number=1)
    view = file.message_type.add(name="View")
    view.field.add(name="user", number=1, type=9, label=1)
    view.field.add(name="pages", number=2, type=3, label=3)
    view.field.add(name="kind", number=3, type=14, label=1, type_name=".shop.Kind")
    return bytes(found.SerializeToString())


def test_protobuf_is_read_from_a_file_of_descriptors(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "view.desc"
    path.write_bytes(descriptors())
    pool = descriptor_pool.DescriptorPool()
    parsed = descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes())
    pool.Add(parsed.file[0])
    view: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.View"))
    value = view(user="a", pages=[1, 2], kind=1).SerializeToString()
    format = Format("protobuf", str(path), "shop.View")
    frame = decode_records(records(spark, value, b"\xff\xff", None), format, "sources.v")
    found = rows_with_reason(frame, "user", "pages", "kind")
    assert found[0] == ("a", [1, 2], "SOME", None)
    assert found[1][-1].startswith("the value does not decode")
    assert found[2][-1] == NO_VALUE
    with pytest.raises(UserError, match=r"message shop\.Nothing"):
        decode_records(records(spark), Format("protobuf", str(path), "shop.Nothing"), "sources.v")
