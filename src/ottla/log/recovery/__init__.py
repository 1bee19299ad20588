"""Loading logs at startup.

- `startup_scan`  finds every partition of a broker's log directories and loads them
- `log_loader`    opens one partition's directory as a log
- `swap_files`    completes or undoes interrupted compaction and deletion (`.cleaned`, `.swap`)
- `recovery`      validates the batches above the recovery point after an unclean shutdown
"""
