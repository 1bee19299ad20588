"""`ottla perf <verb>`: how fast a cluster is, from here.

- `produce`  records a second, and how long each takes to be acknowledged
- `consume`  records a second
- `latency`  how long a record takes from `send` to `poll`
- `figures`  percentiles and rates (pure)
"""
