"""Fetches that this broker serves: parts that `replica/read.py` and `fetch_sessions.py` use.

- `session_partition`  partitions of a session; those of a follower's session that changed
"""
