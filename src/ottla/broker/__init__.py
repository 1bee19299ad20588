"""One broker, put together by hand. The top of the layers: may import everything below.

- `app`         builds the parts in order, and takes them down in reverse
- `world`       what is handed in: time, dice, disk, store, threads
- `lifecycle`   the process: signals, the ready line, exit codes
- `local_link`  the controller's way to its own broker
- `exposition`  metrics over HTTP
"""
