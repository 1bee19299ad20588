"""One broker, assembled by hand. The top layer: may import everything below.

- `app`                      builds the parts in order, and closes them in reverse
- `environment`              what is handed in: clock, randomness, disk, store, threads
- `lifecycle`                the process: signals, the log, the ready line, exit codes
- `control_plane`            registration, controller, dynamic settings, ACLs
- `data_plane`               partitions, their logs and everything that waits on them
- `coordinators`             the group and transaction coordinators
- `transaction_coordinator`  the parts of the transaction coordinator
- `broker_links`             connections to other brokers and to the active controller
- `listeners`                listening sockets, opened, closed and changed at run time
- `listener_security`        TLS and SASL of listeners, replaced while they are served
- `link_security`            TLS and login of connections to other brokers
- `metadata_store`           opens the metadata store: embedded or ZooKeeper
- `identity`                 broker id, cluster id and log directory ids
- `log_tasks`                opening and closing every log, in parallel
- `metrics_server`           metrics over HTTP
- `descriptors`              the share of each part of the process's file descriptors
- `memory`                   the memory limit, and the share of each part that clients can grow
"""
