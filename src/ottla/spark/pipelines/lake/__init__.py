"""Tables in a lake, written without a jar.

- `writer`    one batch of a query into a table, once
- `changes`   a batch as its table takes it: conformed, the last row of each key, files
- `schema_policy`  what happens to columns that the table does not have; pure
- `delta`, `iceberg`  the two kinds of tables
"""
