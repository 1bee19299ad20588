"""Kafka's own commands, over the same functions as ours: `ottla kafka-commands DIR` installs them.

Options are read with argparse, as Kafka spells them; what people parse is printed as Kafka's tools
print it.

- `main`              which name runs which tool
- `arguments`         options that the tools share, mistakes as Kafka's tools say them
- `servers`           brokers by `--bootstrap-server`, or looked up in ZooKeeper
- `columns`           padded columns, as Kafka prints tables
- `topics`            kafka-topics.sh
- `topic_lines`       the lines of its --describe
- `console_producer`  kafka-console-producer.sh
- `line_reader`       how it makes records of lines
- `console_consumer`  kafka-console-consumer.sh
- `simple_consumer_shell`  kafka-simple-consumer-shell.sh, which it replaced
- `formatters`        how it shows records
- `offset_formatters` how it shows `__consumer_offsets`
- `consumer_groups`   kafka-consumer-groups.sh
- `group_lines`       the tables of its --describe
- `group_resets`      its --reset-offsets
- `configs`           kafka-configs.sh
- `user_configs`      its --entity-type users: credentials
- `quota_configs`     its quotas of users, clients and ips
- `acls`              kafka-acls.sh
- `delegation_tokens` kafka-delegation-tokens.sh
- `run_class`         kafka-run-class.sh, for the dump tool
- `server_start`      kafka-server-start.sh
- `server_stop`       kafka-server-stop.sh
- `daemon`            a program in the background
- `zookeeper_start`   zookeeper-server-start.sh
"""
