"""Transactions of a producer.

- `state`                 the states of a transaction, and the legal moves (pure)
- `user_operations`       begin, commit, abort, prepare, send offsets
- `coordinator_requests`  requests to the transaction and group coordinators
- `prepared_transaction`  ends a transaction that another process prepared
"""
