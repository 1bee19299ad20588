"""APIs between brokers; a client gets CLUSTER_AUTHORIZATION_FAILED.

A controller sends the first three, also to its own broker.

- `leader_and_isr`       leaders and in-sync replicas of this broker's partitions
- `stop_replica`         stop, and perhaps delete, replicas of this broker
- `update_metadata`      the cluster metadata for this broker's clients
- `controlled_shutdown`  a broker asks the controller to move its leaders
- `alter_partition`      a leader asks the controller to change an in-sync set
- `envelope`             a client's request, forwarded to the controller

Only the versions with topic ids are served: controller and brokers of one cluster are released
together.
"""
