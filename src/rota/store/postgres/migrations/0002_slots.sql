-- Version 2. A schedule's overlap slot and a user's key are two columns with a table each, so that no key that a user
-- chooses can be taken for a slot; and a job made ahead of its time says which key it asks for when it is due.

ALTER TABLE {ns}.ready ADD COLUMN slot text COLLATE "C", ADD COLUMN ahead text COLLATE "C";
ALTER TABLE {ns}.later ADD COLUMN slot text COLLATE "C", ADD COLUMN ahead text COLLATE "C";
ALTER TABLE {ns}.held ADD COLUMN slot text COLLATE "C", ADD COLUMN ahead text COLLATE "C";
ALTER TABLE {ns}.running ADD COLUMN slot text COLLATE "C", ADD COLUMN ahead text COLLATE "C";
ALTER TABLE {ns}.finished ADD COLUMN slot text COLLATE "C", ADD COLUMN ahead text COLLATE "C";

-- The live job in a schedule's slot; none while no job is live, or while overlaps are allowed.
CREATE TABLE {ns}.overlap_slot (
    slot text   COLLATE "C" PRIMARY KEY,
    seq  bigint NOT NULL UNIQUE,
    id   text   COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

INSERT INTO {ns}.overlap_slot (slot, seq, id)
SELECT j.schedule_id, k.seq, k.id FROM {ns}.unique_key k JOIN {ns}.job j ON j.seq = k.seq
WHERE k.key = 'schedule:' || j.schedule_id;
DELETE FROM {ns}.unique_key k USING {ns}.overlap_slot o WHERE o.seq = k.seq;
UPDATE {ns}.ready p SET slot = o.slot, key = NULL FROM {ns}.overlap_slot o WHERE o.seq = p.seq;
UPDATE {ns}.later p SET slot = o.slot, key = NULL FROM {ns}.overlap_slot o WHERE o.seq = p.seq;
UPDATE {ns}.running p SET slot = o.slot, key = NULL FROM {ns}.overlap_slot o WHERE o.seq = p.seq;
UPDATE {ns}.later SET ahead = '', waits_for = NULL WHERE is_ahead;

CREATE OR REPLACE VIEW {ns}.jobs AS
SELECT j.id, j.seq, j.task, j.payload, s.state, j.queue, j.priority, j.created_at, s.run_at, s.key, j.key_until,
       j.schedule_id, j.fire_at, j.after_at, j.generation, j.made_by, s.waits_for, s.queued_at, s.started_at,
       s.finished_at, s.attempts, s.failures, s.deaths, s.lease_no, s.holder, s.lease_until, s.cancel_reason, s.error,
       s.result, s.past, s.progress, s.slot, s.ahead
FROM {ns}.job j CROSS JOIN LATERAL (
    SELECT 'queued'::text AS state, r.run_at, r.key, r.waits_for, r.queued_at, NULL::bigint AS started_at,
           NULL::bigint AS finished_at, r.attempts, r.failures, r.deaths, r.lease_no, NULL::text AS holder,
           NULL::bigint AS lease_until, NULL::text AS cancel_reason, r.error, NULL::bytea AS result, r.past,
           r.progress, r.slot, r.ahead
    FROM {ns}.ready r WHERE r.seq = j.seq
    UNION ALL
    SELECT 'scheduled', r.run_at, r.key, r.waits_for, r.queued_at, NULL, NULL, r.attempts, r.failures, r.deaths,
           r.lease_no, NULL, NULL, NULL, r.error, NULL, r.past, r.progress, r.slot, r.ahead
    FROM {ns}.later r WHERE r.seq = j.seq
    UNION ALL
    SELECT 'held', r.run_at, r.key, r.waits_for, r.queued_at, NULL, NULL, r.attempts, r.failures, r.deaths,
           r.lease_no, NULL, NULL, NULL, r.error, NULL, r.past, r.progress, r.slot, r.ahead
    FROM {ns}.held r WHERE r.seq = j.seq
    UNION ALL
    SELECT 'running', r.run_at, r.key, r.waits_for, r.queued_at, r.started_at, NULL, r.attempts, r.failures,
           r.deaths, r.lease_no, r.holder, r.lease_until, r.cancel_reason, r.error, NULL, r.past, r.progress, r.slot,
           r.ahead
    FROM {ns}.running r WHERE r.seq = j.seq
    UNION ALL
    SELECT r.state, r.run_at, r.key, r.waits_for, r.queued_at, r.started_at, r.finished_at, r.attempts, r.failures,
           r.deaths, r.lease_no, r.holder, NULL, r.cancel_reason, r.error, r.result, r.past, r.progress, r.slot,
           r.ahead
    FROM {ns}.finished r WHERE r.seq = j.seq
) s;

-- Version 1 had these with other parameters or results.
DROP FUNCTION IF EXISTS {ns}.fire_ready, {ns}.exchange;
