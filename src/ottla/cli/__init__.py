"""The command line: `ottla <command>`, `ottla <noun> <verb>`, a folder for each noun.

Never imports the broker, except `serve`, whose work that is.

- `main`      the entry point; mistakes said in one line, exit codes
- `commands`  the table of commands, and typer, which reads their options
- `options`   options that several commands share
- `argument_parsing`  what people write to name partitions, offsets and moments (pure)
- `profile`   clusters by name, and which of them a command means
- `connection` the way from a command to a cluster
- `console`   tables, JSON, and a spinner for those who wait

- `table_layout`  what gives way when a terminal is narrow (pure)
- `watch_view`  the same tables again and again; `activity` is what changed in between (pure)
- `completion`  what shells offer; `confirmation` asks before something is destroyed
- `setting_names`  suggestions for misspelt settings
- `gateway`   serves topics over HTTP
- `secure_start`  what `serve --secure` makes at the first start
- `serve`     runs a broker; alone in reading its options without typer
- `produce`, `consume`, `delete_records`, `doctor`, `top`, `kafka_commands`: commands without a noun
- `topics`, `configs`, `groups`, `offsets`, `transactions`, `acls`, `quotas`, `users`, `tokens`,
  `certs`, `brokers`, `cluster`, `reassign`, `perf`, `log`, `metadata`, `zookeeper`: nouns, a
  folder each
- `records`   lines to records and back, for `produce` and `consume`
- `diagnosis` what is wrong with a cluster, for `doctor` and `cluster health`
- `kafka`     Kafka's own commands over the same functions
- `adopt`     takes over a data directory that Apache Kafka wrote
- `adopt_plan` the plan of that, without touching anything
- `topic_settings`  the file of topic settings it is given
"""
