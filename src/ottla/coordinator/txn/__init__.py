"""Transactional ids and their transactions, kept in `__transaction_state`.

The decisions are functions of a transaction, what is asked and the time; they yield the
transaction as it will be. The shard makes records of that, and the runtime persists them.

- `state`       what is known of a transactional id; the legal moves, as a table
- `initialise`  pure: who a producer is from now on, and whom that fences
- `adding`      pure: partitions join a transaction, or are looked up in it
- `ending`      pure: commit, abort, completion, and transactions that took too long
- `records`     Kafka's own formats of the topic's keys and values
- `shard`       the transactional ids of one partition of the topic
- `markers`     how a transaction's end reaches the partitions it wrote to
- `marker_results`  pure: which markers are still missing, and when to try again
- `finishing`   carries a decided transaction to its completion, whatever it takes
- `service`     what handlers ask
- `gate`        whether a transactional batch may be appended
"""
