-- Deletion vectors, branches and tags, views, constraints.

-- The deleted positions of one data file, as a portable 64-bit Roaring bitmap. A vector is never
-- changed: a file that loses more rows gets another one. Offsets say where the files of both
-- formats hold it: decided with the commit, so that publishing never has to look anything up.
CREATE TABLE deletion_vectors (
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    vector_id BIGINT NOT NULL,
    file_id BIGINT NOT NULL,
    cardinality BIGINT NOT NULL,
    positions {blob} NOT NULL,
    size_bytes BIGINT NOT NULL,
    sequence_number BIGINT NOT NULL,
    snapshot_id BIGINT NOT NULL,
    delta_offset BIGINT,
    puffin_offset BIGINT NOT NULL,
    PRIMARY KEY (table_id, vector_id)
);
CREATE INDEX deletion_vectors_by_snapshot ON deletion_vectors (table_id, snapshot_id);

-- The vector in force while the interval lasts; another vector begins another interval.
ALTER TABLE file_intervals ADD COLUMN vector_id BIGINT;
CREATE INDEX file_intervals_live_vectors ON file_intervals (table_id, line, vector_id)
    WHERE vector_id IS NOT NULL AND removed_version IS NULL;

ALTER TABLE tables ADD COLUMN next_vector_id BIGINT NOT NULL DEFAULT 0;
-- Whoever holds a table is the only one to change its rows until then: the last attempt of a change
-- that others keep overtaking. Not strict: appends that look at nothing may pass.
ALTER TABLE tables ADD COLUMN held_by TEXT;
ALTER TABLE tables ADD COLUMN held_strict BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tables ADD COLUMN held_until_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tables ADD COLUMN live_vectors BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tables ADD COLUMN live_deletes BIGINT NOT NULL DEFAULT 0;

ALTER TABLE table_states ADD COLUMN delta_vectors BIGINT NOT NULL DEFAULT 0;
ALTER TABLE table_states ADD COLUMN constraints TEXT NOT NULL DEFAULT '{}';

-- The snapshot that is current after a commit: a fast-forward makes another line's current.
ALTER TABLE commits ADD COLUMN snapshot_id BIGINT;
UPDATE commits SET snapshot_id = (
    SELECT s.snapshot_id FROM snapshots s
    WHERE s.table_id = commits.table_id AND s.line = commits.line AND s.version <= commits.version
    ORDER BY s.version DESC, s.sequence_number DESC LIMIT 1
);

-- A branch's history. Its versions go on from the fork; what came before is its parent's.
CREATE TABLE lines (
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    line BIGINT NOT NULL,
    parent_line BIGINT NOT NULL,
    fork_version BIGINT NOT NULL,
    merged_version BIGINT NOT NULL,
    main_version BIGINT NOT NULL,
    head_version BIGINT NOT NULL,
    head_time_ms BIGINT NOT NULL,
    snapshot_id BIGINT,
    live_files BIGINT NOT NULL,
    live_rows BIGINT NOT NULL,
    live_bytes BIGINT NOT NULL,
    live_vectors BIGINT NOT NULL,
    live_deletes BIGINT NOT NULL,
    PRIMARY KEY (table_id, line)
);

-- A branch names a line, a tag a version of a line. "main" is not here: it is always line 0.
CREATE TABLE refs (
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    name {key} NOT NULL,
    kind TEXT NOT NULL,
    line BIGINT NOT NULL,
    version BIGINT NOT NULL,
    snapshot_id BIGINT,
    created_ms BIGINT NOT NULL,
    max_age_ms BIGINT,
    min_snapshots BIGINT,
    max_snapshot_age_ms BIGINT,
    PRIMARY KEY (table_id, name)
);

-- Manifests of deletes are runs of vector ids as those of data are runs of file ids.
ALTER TABLE manifests ADD COLUMN line BIGINT NOT NULL DEFAULT 0;
ALTER TABLE manifests ADD COLUMN content BIGINT NOT NULL DEFAULT 0;

ALTER TABLE publications ADD COLUMN line BIGINT NOT NULL DEFAULT 0;

-- The outbox again, with the line in its key: versions of two lines may have one number.
ALTER TABLE outbox RENAME TO outbox_before;
CREATE TABLE outbox (
    outbox_id {id},
    table_id BIGINT NOT NULL REFERENCES tables (table_id),
    format TEXT NOT NULL,
    kind TEXT NOT NULL,
    line BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    next_ms BIGINT NOT NULL,
    error_code TEXT,
    error TEXT,
    UNIQUE (table_id, format, kind, line, version)
);
INSERT INTO outbox (table_id, format, kind, line, version, created_ms, attempts, next_ms,
    error_code, error)
SELECT table_id, format, kind, 0, version, created_ms, attempts, next_ms, error_code, error
FROM outbox_before ORDER BY outbox_id;
DROP TABLE outbox_before;

CREATE TABLE views (
    view_id {id},
    uuid TEXT NOT NULL UNIQUE,
    namespace_id BIGINT NOT NULL REFERENCES namespaces (namespace_id),
    name {key} NOT NULL,
    body TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    changed_ms BIGINT NOT NULL,
    UNIQUE (namespace_id, name)
);
