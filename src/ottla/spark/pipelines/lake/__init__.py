"""Tables in a lake, written without a jar.

- `writer`    one batch of a query into a table, once
- `delta`, `iceberg`  the two kinds of tables
"""
