"""`ottla reassign <verb>`: move partitions to other brokers, by a plan in JSON.

The plan is the file that Kafka's own tool takes:
`{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}`.

- `plan`     proposes where partitions should be
- `commands` `execute` begins the moves of a plan, `verify` says which of them are done
- `moves`    plans: reading, writing, proposing (pure)
- `progress` waits until partitions have moved
"""
