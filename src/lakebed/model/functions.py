"""Functions of the engine that users may not call, and those that do not always answer the same."""

# Functions that read or change the engine's state, run SQL given as text, or only burn time.
_REFUSED = frozenset(
    {
        "add_parquet_key",
        "checkpoint",
        "copy_database",
        "current_query",
        "current_setting",
        "currval",
        "enable_logging",
        "disable_logging",
        "force_checkpoint",
        "getenv",
        "getvariable",
        "in_search_path",
        "json_deserialize_sql",
        "json_execute_serialized_sql",
        "json_serialize_plan",
        "nextval",
        "pg_sleep",
        "query",
        "query_table",
        "seq_scan",
        "set_config",
        "setval",
        "show_databases",
        "show_tables",
        "show_tables_expanded",
        "sleep_ms",
        "sniff_csv",
        "storage_info",
        "which_secret",
        "write_log",
    }
)
_REFUSED_PREFIXES = (
    "arrow_scan",
    "create_external_",
    "delta_",
    "deregister_external_",
    "destroy_external_",
    "duckdb_",
    "ducklake_",
    "http_",
    "iceberg_",
    "load_aws_",
    "mysql_",
    "pandas_scan",
    "parquet_",
    "postgres_",
    "pragma_",
    "python_",
    "read_",
    "register_external_",
    "shellfs_",
    "sqlite_",
    "st_read",
    "truncate_duckdb_",
)
# Functions that answer otherwise tomorrow, for somebody else, or each time.
_CHANGING = frozenset(
    {
        "age",
        "ago",
        "assert_true",
        "current_catalog",
        "current_connection_id",
        "current_database",
        "current_date",
        "current_localtime",
        "current_localtimestamp",
        "current_query_id",
        "current_role",
        "current_schema",
        "current_schemas",
        "current_time",
        "current_timestamp",
        "current_transaction_id",
        "current_user",
        "error",
        "gen_random_uuid",
        "get_block_size",
        "get_current_time",
        "get_current_timestamp",
        "localtime",
        "localtimestamp",
        "now",
        "random",
        "session_user",
        "setseed",
        "stats",
        "today",
        "transaction_timestamp",
        "txid_current",
        "user",
        "uuid",
        "uuidv4",
        "uuidv7",
        "vector_type",
        "version",
    }
)
_CHANGING_PREFIXES = ("has_", "inet_", "pg_")


def is_refused(function: str) -> bool:
    """Wherever the engine runs text of a user."""
    name = function.lower()
    return name in _REFUSED or name.startswith(_REFUSED_PREFIXES)


def is_changing(function: str) -> bool:
    """What is kept with a table must mean the same for every row, at any time."""
    name = function.lower()
    return is_refused(name) or name in _CHANGING or name.startswith(_CHANGING_PREFIXES)
