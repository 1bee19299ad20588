"""What brokers ask of each other; a client that tries is refused with CLUSTER_AUTHORIZATION_FAILED.

A controller sends the first three, also to its own broker.

- `leader_and_isr`       who leads the partitions held here
- `stop_replica`         stop, and perhaps delete, replicas held here
- `update_metadata`      the cluster as everybody shall see it
- `controlled_shutdown`  a broker asks the controller to take its leaders

Only the versions that name topics by id are served: controller and brokers of one cluster are
released together.
"""
