"""Three whole brokers in one process, on virtual time, from one seed.

- `node`        one broker of the cluster: its host, disk, clock, and its session with the store
- `logins`      users, and the settings with which everybody logs in
- `routing`     a client that asks the leader, the coordinator, or any broker
- `plan`        what one seed draws: settings, topics, clients and faults
- `faults`      injects faults and repairs them
- `observer`    records which broker leads which partition, and its high watermark
- `verdict`     in-sync sets, logs and transactions after everything was repaired
- `simulation`  runs a plan
- `mutations`   protections removed on purpose, which the simulation must notice
"""
