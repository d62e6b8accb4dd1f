-- Runs of pipelines, how far their steps have read, and what was made from what.

-- At most one run of a pipeline is under way: it renews alive_until_ms, and whoever finds it in the
-- past may take its place. The report (steps, rows, expectations, error) is JSON: nobody queries it.
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    pipeline {key} NOT NULL,
    status TEXT NOT NULL,
    started_ms BIGINT NOT NULL,
    finished_ms BIGINT,
    alive_until_ms BIGINT NOT NULL,
    author TEXT NOT NULL,
    owner TEXT NOT NULL,
    report TEXT NOT NULL
);
CREATE UNIQUE INDEX runs_under_way ON runs (pipeline) WHERE status = 'running';
CREATE INDEX runs_by_time ON runs (started_ms);

CREATE TABLE cursors (
    pipeline {key} NOT NULL,
    step {key} NOT NULL,
    input {key} NOT NULL,
    table_id BIGINT,
    version BIGINT,
    mark TEXT,
    run_id TEXT NOT NULL,
    PRIMARY KEY (pipeline, step, input)
);

-- Files that steps have read; a row each, so that a run writes only what is new.
CREATE TABLE input_files (
    pipeline {key} NOT NULL,
    step {key} NOT NULL,
    input {key} NOT NULL,
    path {key} NOT NULL,
    size_bytes BIGINT NOT NULL,
    modified_ms BIGINT NOT NULL,
    run_id TEXT NOT NULL,
    PRIMARY KEY (pipeline, step, input, path)
);

-- Tables by id where they are the lake's: names change. No reference, so that lineage outlives a
-- table that is dropped and purged.
CREATE TABLE lineage (
    run_id TEXT NOT NULL,
    output_id BIGINT NOT NULL,
    output TEXT NOT NULL,
    output_version BIGINT NOT NULL,
    input TEXT NOT NULL,
    input_id BIGINT,
    after_version BIGINT,
    until_version BIGINT,
    columns TEXT NOT NULL,
    PRIMARY KEY (run_id, output_id, input)
);
CREATE INDEX lineage_by_output ON lineage (output_id, output_version);
CREATE INDEX lineage_by_input ON lineage (input_id);
