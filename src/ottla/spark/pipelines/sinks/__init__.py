"""How views are written: which sinks share a query, and what such a query does with a batch.

- `query_layout` which sinks share a query, and what has begun otherwise; pure
- `shared_reads` one query that reads a source for several sinks
- `state_changes` what a changed file means for the state of queries; pure
- `records`      rows as the records of a topic
"""
