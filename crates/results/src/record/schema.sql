-- Schema of stackrace.db; every column is explained in docs/formats/index.md.
-- Times of day are RFC 3339 in UTC, durations nanoseconds, amounts bytes. Everything here is
-- derived from the logs in runs/: it may be deleted and rebuilt at any time. Tables of many rows
-- are kept in the order of their keys alone (WITHOUT ROWID): half the size, and half the time of a rebuild.
CREATE TABLE runs (
    run             TEXT PRIMARY KEY,
    format          INTEGER NOT NULL,
    stackrace       TEXT NOT NULL,
    title           TEXT NOT NULL,
    study_name      TEXT NOT NULL,
    study_hash      TEXT NOT NULL,
    command         TEXT NOT NULL,
    seed            TEXT NOT NULL,
    comparison      TEXT,
    margin          REAL NOT NULL,
    confidence      REAL NOT NULL,
    rounds_max      INTEGER NOT NULL,
    time_max_ns     INTEGER NOT NULL,
    started_at      TEXT NOT NULL,
    rounds_complete INTEGER NOT NULL DEFAULT 0,
    ended_at        TEXT,
    ended_reason    TEXT,
    ended_detail    TEXT
) STRICT;

-- What lists of runs show, with the state of the log it was made of.
CREATE TABLE listed (
    run             TEXT PRIMARY KEY,
    log_bytes       INTEGER NOT NULL,
    log_modified_ns INTEGER NOT NULL,
    log_changed_ns  INTEGER NOT NULL,
    log_inode       INTEGER NOT NULL,
    summary         TEXT NOT NULL
) STRICT;

CREATE TABLE environment (
    run   TEXT NOT NULL REFERENCES runs,
    fact  INTEGER NOT NULL,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run, fact)
) STRICT, WITHOUT ROWID;

CREATE TABLE configurations (
    run           TEXT NOT NULL REFERENCES runs,
    configuration INTEGER NOT NULL,
    name          TEXT NOT NULL,
    dropped_after INTEGER,
    PRIMARY KEY (run, configuration)
) STRICT, WITHOUT ROWID;

CREATE TABLE levels (
    run           TEXT NOT NULL REFERENCES runs,
    configuration INTEGER NOT NULL,
    factor        TEXT NOT NULL,
    level         TEXT NOT NULL,
    PRIMARY KEY (run, configuration, factor)
) STRICT, WITHOUT ROWID;

CREATE TABLE workloads (
    run      TEXT NOT NULL REFERENCES runs,
    workload INTEGER NOT NULL,
    name     TEXT NOT NULL,
    kind     TEXT NOT NULL,
    summary  TEXT NOT NULL,
    weight   REAL NOT NULL,
    PRIMARY KEY (run, workload)
) STRICT, WITHOUT ROWID;

CREATE TABLE workload_metrics (
    run       TEXT NOT NULL REFERENCES runs,
    workload  INTEGER NOT NULL,
    metric    INTEGER NOT NULL,
    name      TEXT NOT NULL,
    unit      TEXT NOT NULL,
    better    TEXT NOT NULL,
    PRIMARY KEY (run, workload, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE trials (
    run                  TEXT NOT NULL REFERENCES runs,
    trial                INTEGER NOT NULL,
    round                INTEGER NOT NULL,
    position             INTEGER NOT NULL,
    configuration        INTEGER NOT NULL,
    workload             INTEGER NOT NULL,
    ended                TEXT NOT NULL,
    error                TEXT,
    started_at           TEXT NOT NULL,
    prepare_ns           INTEGER NOT NULL,
    settle_ns            INTEGER NOT NULL,
    elapsed_ns           INTEGER NOT NULL,
    caches               TEXT NOT NULL,
    remounted            INTEGER NOT NULL,
    resident_bytes       INTEGER,
    prepared_bytes       INTEGER,
    cpu_user_ns          INTEGER NOT NULL,
    cpu_system_ns        INTEGER NOT NULL,
    cpu_machine_busy_ns  INTEGER NOT NULL,
    cpu_steal_ns         INTEGER NOT NULL,
    cpus                 INTEGER NOT NULL,
    asked_read_bytes     INTEGER NOT NULL,
    fetched_bytes        INTEGER NOT NULL,
    sent_bytes           INTEGER NOT NULL,
    cache_hit_bytes      INTEGER,
    pressure_cpu_ns      INTEGER,
    pressure_io_ns       INTEGER,
    pressure_memory_ns   INTEGER,
    notes                TEXT NOT NULL,
    PRIMARY KEY (run, trial),
    -- What makes noting the same line twice harmless.
    UNIQUE (run, round, configuration, workload, started_at)
) STRICT, WITHOUT ROWID;

CREATE TABLE metrics (
    run    TEXT NOT NULL REFERENCES runs,
    trial  INTEGER NOT NULL,
    metric INTEGER NOT NULL,
    name   TEXT NOT NULL,
    unit   TEXT NOT NULL,
    value  REAL,
    PRIMARY KEY (run, trial, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE operations (
    run             TEXT NOT NULL REFERENCES runs,
    trial           INTEGER NOT NULL,
    phase           INTEGER NOT NULL,
    operation       INTEGER NOT NULL,
    phase_name      TEXT NOT NULL,
    op              TEXT NOT NULL,
    count           INTEGER NOT NULL,
    bytes           INTEGER NOT NULL,
    latency_ns_min  INTEGER NOT NULL,
    latency_ns_mean REAL NOT NULL,
    latency_ns_p50  INTEGER NOT NULL,
    latency_ns_p95  INTEGER NOT NULL,
    latency_ns_p99  INTEGER NOT NULL,
    latency_ns_p999 INTEGER,
    latency_ns_max  INTEGER NOT NULL,
    PRIMARY KEY (run, trial, phase, operation)
) STRICT, WITHOUT ROWID;

CREATE TABLE devices (
    run           TEXT NOT NULL REFERENCES runs,
    trial         INTEGER NOT NULL,
    position      INTEGER NOT NULL,
    device        TEXT NOT NULL,
    reads         INTEGER NOT NULL,
    read_bytes    INTEGER NOT NULL,
    writes        INTEGER NOT NULL,
    written_bytes INTEGER NOT NULL,
    flushes       INTEGER,
    busy_ns       INTEGER NOT NULL,
    weighted_ns   INTEGER NOT NULL,
    PRIMARY KEY (run, trial, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE checks (
    run      TEXT NOT NULL REFERENCES runs,
    rounds   INTEGER NOT NULL,
    sentence TEXT NOT NULL,
    PRIMARY KEY (run, rounds)
) STRICT, WITHOUT ROWID;

-- The one view most questions start from: a figure with the names of everything it belongs to.
CREATE VIEW results AS
SELECT t.run, r.title, t.round, t.position, t.configuration, tr.name AS configuration_name,
       t.workload, w.name AS workload_name, m.name AS metric, m.unit, m.value, t.ended,
       t.elapsed_ns
FROM metrics m
JOIN trials t USING (run, trial)
JOIN runs r USING (run)
JOIN configurations tr ON tr.run = t.run AND tr.configuration = t.configuration
JOIN workloads w ON w.run = t.run AND w.workload = t.workload;
