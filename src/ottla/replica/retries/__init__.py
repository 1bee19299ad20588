"""Replicas that could not be opened, truncated or deleted because descriptors or memory ran out.

- `schedule`    which of them wait, and when they are tried again (pure)
- `retry_loop`  tries again, and has the controller ask for those that are available
"""
