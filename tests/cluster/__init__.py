"""Real broker processes on real disks: killed, stopped, starved, and given bad directories.

- `process`       one `ottla serve` that is started, killed and looked at
- `load`          producers and consumers whose every step is written into a history
- `transacting`   transactional producers, a pipeline and readers, into the same history
- `proxies`       links between processes that can be cut, healed and reset
- `routed_ottla`  the program `ottla` with its connections sent through such links
- `three_brokers`  three brokers and a ZooKeeper ensemble, with a link between each two of them
- `chaos`         random faults on three brokers
- `test_kill`     `kill -9` under load, in recovery, SIGTERM, SIGSTOP, what a restart keeps
- `test_groups`   a group goes on where it committed, through kills
- `test_transactions`  transactions and pipelines through kills; prepared ones wait through them
- `test_damage`   torn tails, flipped bits, lost indexes and checkpoints
- `test_disks`    full disks, failing disks, several directories, wiped and locked ones
- `test_scenarios_failover`, `test_scenarios_control`  the numbered scenarios of three brokers
- `test_growing`  a single broker that becomes a cluster, and then dies
- `test_zookeeper_data_loss`  a cluster whose metadata are lost and restored
- `test_chaos`    random faults under load
- `test_hostile`  peers that stall, never read, or ask for more memory than there is

The long forms carry the mark `slow` and run with `make soak`.
"""
