-- The rows of a lake. docs/decisions/0002-the-rows.md says why they look like this.
-- {id}, {blob} and {key} are the words that differ between databases (meta/dialect.py).
-- Times are milliseconds since the epoch; JSON is text; "line" 0 is main.

CREATE TABLE lake (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    uuid TEXT NOT NULL,
    warehouse TEXT NOT NULL,
    created_ms BIGINT NOT NULL
);

CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE namespaces (
    namespace_id {id},
    name {key} NOT NULL UNIQUE,
    parent {key} NOT NULL,
    properties TEXT NOT NULL,
    created_ms BIGINT NOT NULL
);
CREATE INDEX namespaces_by_parent ON namespaces (parent);

-- A dropped table keeps its row until its files are purged: its folder must not be given away.
CREATE TABLE tables (
    table_id {id},
    uuid TEXT NOT NULL UNIQUE,
    namespace_id BIGINT NOT NULL REFERENCES namespaces (namespace_id),
    name {key} NOT NULL,
    location {key} NOT NULL UNIQUE,
    write_mode TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    dropped_ms BIGINT,
    head_version BIGINT NOT NULL,
    head_time_ms BIGINT NOT NULL,
    state_id BIGINT NOT NULL,
    snapshot_id BIGINT,
    last_sequence_number BIGINT NOT NULL,
    next_file_id BIGINT NOT NULL,
    next_row_id BIGINT NOT NULL,
    live_files BIGINT NOT NULL,
    live_rows BIGINT NOT NULL,
    live_bytes BIGINT NOT NULL
);
CREATE UNIQUE INDEX tables_by_name ON tables (namespace_id, name) WHERE dropped_ms IS NULL;

CREATE TABLE table_schemas (
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    schema_id BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (table_id, schema_id)
);

CREATE TABLE partition_specs (
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    spec_id BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (table_id, spec_id)
);

CREATE TABLE sort_orders (
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    sort_order_id BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (table_id, sort_order_id)
);

-- What a table is besides its files. Immutable: every commit names the state it left behind, so an
-- old version can be published or read with the properties and schema it had.
CREATE TABLE table_states (
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    state_id BIGINT NOT NULL,
    schema_id BIGINT NOT NULL,
    spec_id BIGINT NOT NULL,
    sort_order_id BIGINT NOT NULL,
    properties TEXT NOT NULL,
    formats TEXT NOT NULL,
    last_column_id BIGINT NOT NULL,
    last_partition_id BIGINT NOT NULL,
    iceberg_version BIGINT NOT NULL,
    delta_mapping BIGINT NOT NULL,
    delta_partitioned BIGINT NOT NULL,
    comment TEXT,
    PRIMARY KEY (table_id, state_id)
);

CREATE TABLE commits (
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    line BIGINT NOT NULL,
    version BIGINT NOT NULL,
    time_ms BIGINT NOT NULL,
    operation TEXT NOT NULL,
    state_id BIGINT NOT NULL,
    author TEXT NOT NULL,
    message TEXT,
    transaction_id TEXT NOT NULL,
    blind_append BIGINT NOT NULL,
    summary TEXT NOT NULL,
    app_id TEXT,
    app_number BIGINT,
    PRIMARY KEY (table_id, line, version)
);
CREATE INDEX commits_by_time ON commits (table_id, line, time_ms);
CREATE INDEX commits_by_transaction ON commits (transaction_id);

CREATE TABLE snapshots (
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    snapshot_id BIGINT NOT NULL,
    line BIGINT NOT NULL,
    version BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    sequence_number BIGINT NOT NULL,
    parent_id BIGINT,
    time_ms BIGINT NOT NULL,
    operation TEXT NOT NULL,
    summary TEXT NOT NULL,
    schema_id BIGINT NOT NULL,
    first_row_id BIGINT,
    added_rows BIGINT,
    manifest_list TEXT,
    PRIMARY KEY (table_id, snapshot_id)
);
CREATE UNIQUE INDEX snapshots_by_sequence ON snapshots (table_id, sequence_number);
CREATE INDEX snapshots_by_version ON snapshots (table_id, line, version);

-- file_id grows with the commits of its table (it is given under the table's lock), so a run of
-- ids is a run of history: manifests are recorded as such runs.
CREATE TABLE files (
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    file_id BIGINT NOT NULL,
    path TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    record_count BIGINT NOT NULL,
    spec_id BIGINT NOT NULL,
    sort_order_id BIGINT NOT NULL,
    split_offsets TEXT NOT NULL,
    partition TEXT NOT NULL,
    stats {blob} NOT NULL,
    sequence_number BIGINT NOT NULL,
    snapshot_id BIGINT NOT NULL,
    first_row_id BIGINT,
    PRIMARY KEY (table_id, file_id)
);

-- A file is visible on a line at version v while added_version <= v < removed_version.
CREATE TABLE file_intervals (
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    line BIGINT NOT NULL,
    file_id BIGINT NOT NULL,
    added_version BIGINT NOT NULL,
    removed_version BIGINT,
    PRIMARY KEY (table_id, line, file_id, added_version)
);
CREATE INDEX file_intervals_added ON file_intervals (table_id, line, added_version);
CREATE INDEX file_intervals_removed ON file_intervals (table_id, line, removed_version)
    WHERE removed_version IS NOT NULL;
CREATE INDEX file_intervals_live ON file_intervals (table_id, line, file_id)
    WHERE removed_version IS NULL;

-- What has to be published still; a row goes when its files are written and recorded.
CREATE TABLE outbox (
    outbox_id {id},
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    format TEXT NOT NULL,
    kind TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    next_ms BIGINT NOT NULL,
    error_code TEXT,
    error TEXT,
    UNIQUE (table_id, format, kind, version)
);

-- What was published: publishing again must give the same names and bytes.
CREATE TABLE publications (
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    format TEXT NOT NULL,
    kind TEXT NOT NULL,
    number BIGINT NOT NULL,
    version BIGINT NOT NULL,
    path TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    digest TEXT NOT NULL,
    written_ms BIGINT NOT NULL,
    PRIMARY KEY (table_id, format, kind, number)
);
CREATE INDEX publications_by_version ON publications (table_id, format, kind, version);

-- A manifest holds the files of one run of ids (first_file_id..last_file_id) of one spec; it is in
-- the manifest lists of publications added_number <= n < removed_number.
CREATE TABLE manifests (
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    manifest_id BIGINT NOT NULL,
    path TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    digest TEXT NOT NULL,
    spec_id BIGINT NOT NULL,
    sequence_number BIGINT NOT NULL,
    min_sequence_number BIGINT NOT NULL,
    snapshot_id BIGINT NOT NULL,
    counts TEXT NOT NULL,
    partitions TEXT NOT NULL,
    first_row_id BIGINT,
    first_file_id BIGINT NOT NULL,
    last_file_id BIGINT NOT NULL,
    added_number BIGINT NOT NULL,
    removed_number BIGINT,
    PRIMARY KEY (table_id, manifest_id)
);
CREATE INDEX manifests_live ON manifests (table_id, first_file_id) WHERE removed_number IS NULL;

CREATE TABLE app_transactions (
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    app_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    version BIGINT NOT NULL,
    time_ms BIGINT NOT NULL,
    PRIMARY KEY (table_id, app_id)
);

CREATE TABLE idempotency (
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    status TEXT NOT NULL,
    result TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    PRIMARY KEY (principal, key)
);

-- A read lease keeps a version, a write lease keeps a folder, from being cleaned until it expires.
CREATE TABLE leases (
    lease_id TEXT PRIMARY KEY,
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    kind TEXT NOT NULL,
    version BIGINT,
    prefix TEXT,
    owner TEXT NOT NULL,
    expires_ms BIGINT NOT NULL
);
CREATE INDEX leases_by_table ON leases (table_id, expires_ms);
