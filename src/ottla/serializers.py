"""Keys and values to bytes and back, under a short name; `ottla.client.serializers` has them."""

from ottla.client.serializers import (
    Avro,
    Deserializer,
    Protobuf,
    Serializer,
    from_float,
    from_int,
    from_int32,
    from_json,
    from_str,
    to_bytes,
    to_float,
    to_int,
    to_json,
    to_str,
)

__all__ = [
    "Avro",
    "Deserializer",
    "Protobuf",
    "Serializer",
    "from_float",
    "from_int",
    "from_int32",
    "from_json",
    "from_str",
    "to_bytes",
    "to_float",
    "to_int",
    "to_json",
    "to_str",
]
