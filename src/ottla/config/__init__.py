"""Settings under Kafka's own names: declaration, parsing, which may change at run time.

May import `model`. Never opens a socket, never starts anything, never logs: it returns values,
warnings as text, or a `UserError` that names the key.

- `settings`    how settings are declared: one typed line each; parsing, bounds, documentation
- `broker`      every setting of a broker, and the rules between them; made up of
  `network`, `logs`, `replication`, `zookeeper`, `coordination` and `security`
- `tls`, `sasl`  settings of TLS and SASL, shared by brokers and clients
- `topic`       every setting of a topic, and the broker setting each one falls back to
- `group`       every setting of a single group, and the broker setting each one falls back to
- `client`      every setting of a producer, a consumer and an admin client
- `retired`     names of Kafka settings that are not supported, each with its reason
- `listeners`   `listeners` and related settings, parsed into endpoints
- `listener_settings`  settings of a single listener, `listener.name.<name>.` before their names
- `properties`  server.properties, the environment and `--set` turned into one `BrokerConfig`
- `providers`   `${file:…}`, `${dir:…}` and `${env:…}` in them: values that stand elsewhere
- `dynamic`     settings changed at run time: precedence, change listeners
- `changes`     AlterConfigs and IncrementalAlterConfigs, as pure functions
- `entries`     DescribeConfigs: values, sources, synonyms
"""
