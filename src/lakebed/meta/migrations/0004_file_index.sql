-- The index that plans use, and kept least and greatest values. All of it is made from other rows,
-- which never change once they are there: dropping it costs time and nothing else.
-- No references: making it never waits for a commit that holds the table.

-- Chunks 0 to chunks - 1 are there; chunk n is of the files with ids n * width and on.
CREATE TABLE file_indexes (
    table_id BIGINT PRIMARY KEY,
    layout BIGINT NOT NULL,
    width BIGINT NOT NULL,
    chunks BIGINT NOT NULL
);

-- Between what keys all values of a field lie in the files of a chunk: one narrow row each, apart
-- from what is known of the single files. A chunk without a row can hold anything.
CREATE TABLE file_zones (
    table_id BIGINT NOT NULL,
    field_id BIGINT NOT NULL,
    chunk BIGINT NOT NULL,
    low {blob} NOT NULL,
    high {blob} NOT NULL,
    flags BIGINT NOT NULL,
    PRIMARY KEY (table_id, field_id, chunk)
) {packed};

-- The same of every single file, as arrays in the order of the ids; most keys begin with the prefix.
CREATE TABLE file_bounds (
    table_id BIGINT NOT NULL,
    field_id BIGINT NOT NULL,
    chunk BIGINT NOT NULL,
    prefix {blob} NOT NULL,
    flags {blob} NOT NULL,
    lows {blob} NOT NULL,
    highs {blob} NOT NULL,
    PRIMARY KEY (table_id, field_id, chunk)
);

-- The least and greatest values of columns at a version of main.
CREATE TABLE table_extremes (
    table_id BIGINT PRIMARY KEY,
    version BIGINT NOT NULL,
    next_file_id BIGINT NOT NULL,
    live_files BIGINT NOT NULL,
    live_rows BIGINT NOT NULL,
    body TEXT NOT NULL
);
