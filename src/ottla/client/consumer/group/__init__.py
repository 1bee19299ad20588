"""Group membership and commits of a consumer.

- `membership`          the interface between a consumer and its group protocol
- `classic_member`      a member of a classic group: its state and requests (pure)
- `classic_loop`        join, sync, heartbeat, again
- `consumer_member`     a member of a consumer-protocol group, KIP-848 (pure)
- `consumer_loop`       its heartbeats
- `standalone_loop`     a consumer without a group
- `subscription_codec`  subscriptions and assignments as bytes (pure)
- `rebalance`           partitions revoked and assigned
- `error_reactions`     what each coordinator error leads to (pure)
- `offset_commits`      commit and committed, as a user calls them
- `commit_queue`        commits in order (pure)
- `commit_loop`         sends them
"""
