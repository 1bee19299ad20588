"""The command line: `ottla <command>`, `ottla <noun> <verb>`, a file each.

Never imports the broker, except `serve`, whose work that is.

- `main`      the entry point; mistakes said in one line, with exit code 2
- `commands`  the table of commands, and typer, which reads their options
- `console`   how tables are shown to people
- `serve`     runs a broker; alone in reading its options without typer
- `adopt`     takes over a data directory that Apache Kafka wrote
- `adoption`  the plan of that, without touching anything
- `topic_settings`  the file of topic settings it is given
- `log`       looks into the files of a data directory
"""
