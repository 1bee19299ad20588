"""The transaction coordinator; its state is kept in `__transaction_state`.

Decisions are functions of a transaction, a request and the time; they yield the next state of the
transaction. The shard makes records of it, and the runtime persists them.

- `state`                one transactional id; the legal state changes, as a table
- `init_producer_id`     InitProducerId: new epochs and fencing (pure)
- `add_partitions`       AddPartitionsToTxn (pure)
- `end_transaction`      commit, abort, completion, timeouts (pure)
- `records`              Kafka's own formats of the topic's keys and values
- `shard`                the transactional ids of one partition
- `markers`              writes transaction markers to partitions led by this broker
- `marker_routing`       sends each marker to the leader of its partition
- `remote_coordinator`   verifies partitions with the coordinator on another broker
- `completion`           completes decided transactions, with retries
- `service`              the asynchronous interface for API handlers
- `verification`         verifies that a transactional batch may be appended
"""
