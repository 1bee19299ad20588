"""State that all brokers share through the metadata store, outside of the controller.

May import `metadata`, `store`, `net`, `security`, `config` and `model`; never the controller.

- `registration`          this broker's node in the store, its epoch, the cluster id
- `config_store`          dynamic settings: written to the store, watched by every broker
- `quota_store`           quotas: written to the store, announced with settings
- `acl_store`             ACLs: written to the store, watched by every broker
- `token_store`           delegation tokens: written to the store, watched by every broker
- `change_notifications`  notification nodes that tell brokers what changed
- `producer_ids`          blocks of producer ids
- `zookeeper_access`      ZooKeeper as the settings say it is reached: TLS, login, ACLs
"""
