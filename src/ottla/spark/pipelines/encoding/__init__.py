"""Rows as keys and values of a topic, written with schemas of a registry.

- `encoded_columns`  the Arrow functions that encode on the workers
- `column_schemas`   the schema that columns have: Avro, JSON Schema, Protobuf
"""
