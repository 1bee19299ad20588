"""One broker, put together by hand. The top of the layers: may import everything below.

- `app`         builds the parts in order, and takes them down in reverse
- `world`       what is handed in: time, dice, disk, store, threads
- `log_format`  the level and the format of the log
- `lifecycle`   the process: signals, the ready line, exit codes
- `control`     the control side: registration, controller, settings that change
- `data`        the data side: partitions and everything that waits on them
- `coordination`  groups and transactions, each on its own internal topic
- `transactions`  the transaction coordinator's parts
- `doors`       the listeners, which may change while it runs
- `home`        where the metadata live: its own directory, or ZooKeeper
- `identity`    which broker of which cluster this is
- `loading`, `closing`, `chunks`   every log opened at the start, closed at the end, side by side
- `kernels`     native record validation, when it is first needed
- `net_settings`  the network's limits, as the settings have them
- `machine_memory`  how much memory the process may use
- `memory_shares`   how much of it each thing may take that clients can make grow
- `local_link`  the controller's way to its own broker
- `spawning`    work that is started on the way, until the broker ends
- `exposition`  metrics over HTTP
"""
