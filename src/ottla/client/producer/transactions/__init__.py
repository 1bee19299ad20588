"""Transactions of a producer.

- `state`                 the phases of a transaction, and the allowed transitions (pure)
- `user_operations`       begin, commit, abort, prepare, send offsets
- `coordinator_requests`  requests to the transaction and group coordinators
- `prepared_transaction`  ends a transaction that another process prepared
"""
