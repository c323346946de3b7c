-- Additions to schema version 1. Each is harmless to repeat.

-- Part of the block index: which blocks of 1,000 positions hold jobs that were created in ten minutes.
CREATE TABLE IF NOT EXISTS {ns}_time_block (
    slice INTEGER NOT NULL,
    block INTEGER NOT NULL,
    PRIMARY KEY (slice, block)
) WITHOUT ROWID;
INSERT OR IGNORE INTO {ns}_time_block SELECT DISTINCT created_at / 600000000, seq / 1000 FROM {ns}_job;

-- What happened in each minute, for charts: the numbers of the model, as JSON.
CREATE TABLE IF NOT EXISTS {ns}_series (minute INTEGER PRIMARY KEY, numbers TEXT NOT NULL);

-- Counts of a schedule's jobs, and lists and counts of a rare state, need nothing of a job but what these indexes have.
DROP INDEX IF EXISTS {ns}_job_made;
CREATE INDEX {ns}_job_made ON {ns}_job (schedule_id, seq, created_at) WHERE schedule_id IS NOT NULL;
DROP INDEX IF EXISTS {ns}_job_scheduled;
DROP INDEX IF EXISTS {ns}_job_waiting;
DROP INDEX IF EXISTS {ns}_job_failed;
DROP INDEX IF EXISTS {ns}_job_cancelled;
CREATE INDEX {ns}_job_scheduled ON {ns}_job (seq, task, queue, created_at, schedule_id, state)
    WHERE state = 'scheduled';
CREATE INDEX {ns}_job_waiting ON {ns}_job (seq, task, queue, created_at, schedule_id, state) WHERE state = 'held';
CREATE INDEX {ns}_job_failed ON {ns}_job (seq, task, queue, created_at, schedule_id, state) WHERE state = 'failed';
CREATE INDEX {ns}_job_cancelled ON {ns}_job (seq, task, queue, created_at, schedule_id, state)
    WHERE state = 'cancelled';

-- Lists and counts of jobs with more than one attempt.
CREATE INDEX IF NOT EXISTS {ns}_job_repeated ON {ns}_job (seq, attempts, task, queue, created_at, schedule_id, state)
    WHERE attempts >= 2;
