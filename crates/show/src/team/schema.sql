-- The tables of a team's results, version 1; every column is explained in docs/formats/team.md.
-- Times of day are timestamptz, durations nanoseconds, amounts bytes.
CREATE SCHEMA stackrace;

CREATE TABLE stackrace.schema_version (
    version integer PRIMARY KEY
);

CREATE TABLE stackrace.runs (
    run            text PRIMARY KEY,
    lines          bigint NOT NULL,
    bytes          bigint NOT NULL,
    log_hash       text NOT NULL,
    format         integer NOT NULL,
    stackrace      text NOT NULL,
    title          text NOT NULL,
    study          text NOT NULL,
    study_hash     text NOT NULL,
    started_at     timestamptz,
    ended_at       timestamptz,
    ended          text,
    configurations text[] NOT NULL,
    workloads      bigint NOT NULL,
    rounds         bigint NOT NULL,
    trials         bigint NOT NULL,
    sentence       text,
    tags           text[] NOT NULL,
    pushed_at      timestamptz NOT NULL DEFAULT now(),
    pushed_by      text NOT NULL DEFAULT current_user
);
CREATE INDEX runs_newest ON stackrace.runs (started_at DESC NULLS LAST);
-- A title may be longer than what an ordered index takes.
CREATE INDEX runs_title ON stackrace.runs USING hash (title);

-- The log as it is, byte for byte: everything else can be made from it.
CREATE TABLE stackrace.log_lines (
    run    text NOT NULL REFERENCES stackrace.runs,
    number bigint NOT NULL,
    line   bytea NOT NULL,
    PRIMARY KEY (run, number)
);

CREATE TABLE stackrace.environment (
    run           text NOT NULL REFERENCES stackrace.runs,
    round         bigint,
    configuration text,
    height        bigint,
    layer         text,
    fact          text,
    value         text
);
CREATE INDEX environment_run ON stackrace.environment (run);

CREATE TABLE stackrace.trials (
    run                   text NOT NULL REFERENCES stackrace.runs,
    study                 text,
    title                 text,
    trial                 bigint NOT NULL,
    round                 bigint NOT NULL,
    position              bigint NOT NULL,
    configuration         text,
    levels                jsonb NOT NULL,
    workload              text,
    kind                  text,
    ended                 text,
    error                 text,
    started_at            timestamptz,
    elapsed_ns            bigint,
    slice_ns              bigint,
    slices                bigint,
    prepare_ns            bigint,
    settle_ns             bigint,
    precondition_ns       bigint,
    precondition_passes   bigint,
    precondition_steady   boolean,
    caches                text,
    remounted             boolean,
    resident_bytes        bigint,
    prepared_bytes        bigint,
    cpu_user_ns           bigint,
    cpu_system_ns         bigint,
    cpu_machine_busy_ns   bigint,
    cpu_steal_ns          bigint,
    cpus                  bigint,
    asked_read_bytes      bigint,
    fetched_bytes         bigint,
    sent_bytes            bigint,
    cache_hit_bytes       bigint,
    pressure_cpu_ns       bigint,
    pressure_io_ns        bigint,
    pressure_memory_ns    bigint,
    notes                 text,
    PRIMARY KEY (run, trial)
);

CREATE TABLE stackrace.observations (
    run             text NOT NULL REFERENCES stackrace.runs,
    study           text,
    title           text,
    trial           bigint NOT NULL,
    round           bigint NOT NULL,
    position        bigint NOT NULL,
    configuration   text,
    levels          jsonb NOT NULL,
    workload        text,
    kind            text,
    ended           text,
    metric          text,
    unit            text,
    better          text,
    "primary"       boolean,
    value           double precision,
    started_at      timestamptz,
    elapsed_ns      bigint
);
CREATE INDEX observations_run ON stackrace.observations (run, trial);
-- One metric of each workload is its first; most questions are about that one, in all runs of a study.
CREATE INDEX observations_primary ON stackrace.observations (run) WHERE "primary";
