-- Schema version 1. {ns} is the namespace, a checked identifier. The columns of a job carry the names of its fields.

CREATE TABLE {ns}_job (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,  -- a position is never given twice
    id            TEXT    NOT NULL,
    task          TEXT    NOT NULL,
    payload       BLOB    NOT NULL,
    state         TEXT    NOT NULL,
    queue         TEXT    NOT NULL,
    priority      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    run_at        INTEGER NOT NULL,
    key           TEXT,
    key_until     INTEGER NOT NULL,
    schedule_id   TEXT,
    fire_at       INTEGER,
    after_at      INTEGER,
    generation    INTEGER NOT NULL,
    made_by       TEXT,
    waits_for     TEXT,
    queued_at     INTEGER,
    started_at    INTEGER,
    finished_at   INTEGER,
    attempts      INTEGER NOT NULL,
    failures      INTEGER NOT NULL,
    deaths        INTEGER NOT NULL,
    lease_no      INTEGER NOT NULL,
    holder        TEXT,
    lease_until   INTEGER,   -- by the lease clock, which nobody can set
    cancel_reason TEXT,
    error         TEXT,
    result        BLOB,
    past          BLOB    NOT NULL,
    progress      TEXT,
    slot          TEXT,      -- of its schedule, while it is the live job that an overlap would meet
    ahead         TEXT,      -- created ahead of its time: the unique key that it asks for when it is due, or ''
    lease_boot    TEXT       -- the boot that the lease clock counts from; a lease of another boot has expired
);

CREATE UNIQUE INDEX {ns}_job_id ON {ns}_job (id);
CREATE INDEX {ns}_job_ready ON {ns}_job (queue, priority DESC, seq) WHERE state = 'queued';
CREATE INDEX {ns}_job_due ON {ns}_job (queue, run_at) WHERE state = 'scheduled';
CREATE INDEX {ns}_job_ahead ON {ns}_job (queue, run_at) WHERE state = 'scheduled' AND ahead IS NOT NULL;
CREATE INDEX {ns}_job_leased ON {ns}_job (lease_until) WHERE state = 'running';
CREATE INDEX {ns}_job_ended ON {ns}_job (state, finished_at) WHERE finished_at IS NOT NULL;
-- Those for lists of states that few jobs have are among the additions. One index each: a condition with IN would cost
-- every change of any job.
CREATE INDEX {ns}_job_held ON {ns}_job (waits_for) WHERE state = 'held';
CREATE UNIQUE INDEX {ns}_job_key ON {ns}_job (key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX {ns}_job_slot ON {ns}_job (slot) WHERE slot IS NOT NULL;
-- Each occurrence makes exactly one job, whatever the code above does.
CREATE UNIQUE INDEX {ns}_job_occurrence ON {ns}_job (schedule_id, fire_at) WHERE fire_at IS NOT NULL;

-- The block index: which blocks of 1,000 positions hold jobs of a queue and task, and which hold successes. A usual
-- index would cost an entry per job.
CREATE TABLE {ns}_kind_block (
    queue TEXT    NOT NULL,
    task  TEXT    NOT NULL,
    block INTEGER NOT NULL,
    PRIMARY KEY (queue, task, block)
) WITHOUT ROWID;

CREATE TABLE {ns}_success_block (
    block INTEGER PRIMARY KEY
);

CREATE TABLE {ns}_schedule (
    id            TEXT    PRIMARY KEY,
    spec          TEXT    NOT NULL,
    origin        TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    generation    INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    is_enabled    INTEGER NOT NULL,
    pause         TEXT,
    next_at       INTEGER,
    fired_through INTEGER NOT NULL,
    run_count     INTEGER NOT NULL,
    last          TEXT    NOT NULL,
    problem       TEXT,
    tenant_pause  TEXT,
    ahead         TEXT,
    due_at        INTEGER,
    tenant        TEXT,               -- NULL: it follows none
    origin_name   TEXT    NOT NULL    -- code:shop
) WITHOUT ROWID;

CREATE INDEX {ns}_schedule_due ON {ns}_schedule (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX {ns}_schedule_tenant ON {ns}_schedule (tenant, id) WHERE tenant IS NOT NULL;
CREATE INDEX {ns}_schedule_origin ON {ns}_schedule (origin_name, id);

CREATE TABLE {ns}_entry (
    kind    TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    version INTEGER NOT NULL,
    data    TEXT    NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

CREATE TABLE {ns}_audit (
    at      INTEGER NOT NULL,
    id      TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    record  TEXT    NOT NULL,
    PRIMARY KEY (at, id)
) WITHOUT ROWID;

CREATE INDEX {ns}_audit_subject ON {ns}_audit (subject, at, id);

CREATE TABLE {ns}_occurrence (
    schedule_id TEXT    NOT NULL,
    through_at  INTEGER NOT NULL,
    after_at    INTEGER NOT NULL,
    count       INTEGER NOT NULL,
    outcome     TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    PRIMARY KEY (schedule_id, through_at)
) WITHOUT ROWID;

CREATE INDEX {ns}_occurrence_age ON {ns}_occurrence (through_at);

CREATE TABLE {ns}_queue (name TEXT PRIMARY KEY, is_paused INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE {ns}_count (
    queue TEXT    NOT NULL,
    name  TEXT    NOT NULL,
    n     INTEGER NOT NULL,
    PRIMARY KEY (queue, name)
) WITHOUT ROWID;

CREATE TABLE {ns}_node (id TEXT PRIMARY KEY, beat_at INTEGER NOT NULL, data TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE {ns}_lock (
    name   TEXT    PRIMARY KEY,
    token  TEXT    NOT NULL,
    until  INTEGER NOT NULL,  -- by the lease clock, as for jobs
    boot   TEXT    NOT NULL,
    number INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE {ns}_log (
    job_id TEXT    NOT NULL,
    number INTEGER NOT NULL,  -- within the job
    at     INTEGER NOT NULL,
    level  TEXT    NOT NULL,
    text   TEXT    NOT NULL,
    PRIMARY KEY (job_id, number)
) WITHOUT ROWID;
