"""Settings under Kafka's own names: what they are, how they are read, which may change live.

May import `model`. Never opens a socket, never starts anything, never logs: it returns values,
warnings as text, or a `UserError` that names the key.

- `settings`    the kit: one typed line per setting, parsing, bounds, text for people
- `broker`      every setting of a broker, and the rules between them; made of the parts
  `network`, `logs`, `replication`, `coordination` and `security`
- `topic`       every setting of a topic, and the broker setting each one falls back to
- `group`       the same of a single consumer group
- `client`      every setting of a producer, a consumer and an admin client
- `retired`     names Kafka has or had that we do not offer, each with its reason
- `listeners`   `listeners` and its family turned into endpoints
- `listener_settings`  settings of a single listener, `listener.name.<name>.` before their names
- `properties`  server.properties, the environment and `--set` turned into one `BrokerConfig`
- `dynamic`     settings changed at run time: precedence, change listeners
- `changes`     what AlterConfigs and IncrementalAlterConfigs may do, as pure functions
- `entries`     what DescribeConfigs shows: values, sources, synonyms
"""
