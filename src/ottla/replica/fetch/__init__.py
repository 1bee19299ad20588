"""Fetches that this broker serves: parts that `replica/read.py` and `fetch_sessions.py` use.

- `options`            the options of a fetch request
- `delayed_fetch`      fetches that wait
- `session_partition`  partitions of a session; those of a follower's session that changed
- `follower_fetches`   what a leader learns from the fetches of followers
- `replication_quota`  how fast replicas may be copied (pure)
"""
