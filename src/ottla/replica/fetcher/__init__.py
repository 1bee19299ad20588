"""Followers: copying partitions from the brokers that lead them.

- `fetchers`         which fetcher copies which partition; starts and stops fetchers
- `fetcher_loop`     one task that fetches from one broker
- `follower`         what a follower does with its part of a reply (pure)
- `leader_requests`  what Fetch and ListOffsets to a leader contain
- `session`          incremental fetch sessions, the follower's side (pure)
- `settings`         the settings that fetchers use
"""
