-- Version 2. A schedule's overlap slot and a user's key are two columns; a job made ahead of its time says what it asks for.

ALTER TABLE {ns}_job ADD COLUMN slot TEXT;
ALTER TABLE {ns}_job ADD COLUMN ahead TEXT;

UPDATE {ns}_job SET slot = schedule_id, key = NULL WHERE key = 'schedule:' || schedule_id;
UPDATE {ns}_job SET ahead = '', waits_for = NULL WHERE state = 'scheduled' AND waits_for = 'schedule:' || schedule_id;

CREATE UNIQUE INDEX {ns}_job_slot ON {ns}_job (slot) WHERE slot IS NOT NULL;
DROP INDEX {ns}_job_ahead;
CREATE INDEX {ns}_job_ahead ON {ns}_job (queue, run_at) WHERE state = 'scheduled' AND ahead IS NOT NULL;
