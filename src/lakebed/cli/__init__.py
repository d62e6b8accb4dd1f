"""The command line: one file per command group. It translates and calls `api`, late and lightly."""
