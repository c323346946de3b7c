-- Additions to schema version 1. Each is harmless to repeat.

-- What happened in each minute, for charts: the numbers of the model. Each connection adds to the row of its own slot, as
-- for the counters. Upkeep adds the rows of minutes that are over to slot 0.
CREATE TABLE IF NOT EXISTS {ns}.series (
    minute  bigint   NOT NULL,
    slot    bigint   NOT NULL,
    numbers bigint[] NOT NULL,
    PRIMARY KEY (minute, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);

-- Add numbers to a minute. It is part of the statement that calls `exchange`, so it says true.
CREATE OR REPLACE FUNCTION {ns}.add_runs(p_slot bigint, p_minute bigint, p_numbers bigint[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    WHILE p_numbers IS NOT NULL LOOP
        UPDATE {ns}.series s SET numbers = ARRAY(
            SELECT coalesce(n.kept, 0) + coalesce(n.added, 0)
            FROM unnest(s.numbers, p_numbers) WITH ORDINALITY AS n (kept, added, place) ORDER BY n.place)
        WHERE s.minute = p_minute AND s.slot = p_slot;
        EXIT WHEN FOUND;
        INSERT INTO {ns}.series VALUES (p_minute, p_slot, p_numbers) ON CONFLICT DO NOTHING;
        EXIT WHEN FOUND;
    END LOOP;
    RETURN true;
END $$;

-- Part of the block index: which blocks of 1,000 positions hold jobs that were created in ten minutes. As there, no entry is
-- unique, and one may be stale and is never missing.
CREATE TABLE IF NOT EXISTS {ns}.time_block (
    slice bigint NOT NULL,  -- created_at / 600000000
    block bigint NOT NULL   -- seq / 1000
);
CREATE INDEX IF NOT EXISTS time_block_order ON {ns}.time_block (slice, block);
LOCK TABLE {ns}.job IN SHARE MODE;  -- nobody adds a job that is not entered
INSERT INTO {ns}.time_block SELECT DISTINCT j.created_at / 600000000, j.seq / 1000 FROM {ns}.job j
WHERE NOT EXISTS (SELECT FROM {ns}.time_block);

-- Enter blocks of these times, where no committed entry exists. One slice of time stands for all.
CREATE OR REPLACE FUNCTION {ns}.index_times(p_slices bigint[], p_blocks bigint[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO {ns}.time_block
    SELECT DISTINCT coalesce(n.slice, p_slices[1]), n.block FROM unnest(p_slices, p_blocks) AS n (slice, block)
    WHERE NOT EXISTS (
        SELECT FROM {ns}.time_block h WHERE h.slice = coalesce(n.slice, p_slices[1]) AND h.block = n.block OFFSET 0);
END $$;

-- Add one job that has no key and belongs to no schedule; the rest is as in add_jobs, which takes twice as long for one.
CREATE OR REPLACE FUNCTION {ns}.add_job(
    p_now bigint, p_counter_slot bigint, p_id text, p_task text, p_payload bytea, p_queue text, p_priority smallint,
    p_run_at bigint, p_past bytea
) RETURNS boolean LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    v_now bigint := coalesce(p_now, {ns}.micros());
    v_seq bigint;
BEGIN
    IF EXISTS (SELECT FROM {ns}.seal) THEN
        RETURN false;
    END IF;
    PERFORM pg_current_xact_id();
    INSERT INTO {ns}.job (created_at, priority, id, task, queue, payload)
    VALUES (v_now, p_priority, p_id, p_task, p_queue, p_payload) RETURNING seq INTO v_seq;
    IF NOT EXISTS (SELECT FROM {ns}.block_index b
                   WHERE b.queue = p_queue AND b.task = p_task AND b.block = v_seq / 1000) THEN
        INSERT INTO {ns}.block_index (block, queue, task) VALUES (v_seq / 1000, p_queue, p_task);
    END IF;
    IF NOT EXISTS (SELECT FROM {ns}.time_block h WHERE h.slice = v_now / 600000000 AND h.block = v_seq / 1000) THEN
        INSERT INTO {ns}.time_block VALUES (v_now / 600000000, v_seq / 1000);
    END IF;
    IF p_run_at IS NULL THEN
        IF NOT EXISTS (SELECT FROM {ns}.ready r WHERE r.queue = p_queue) THEN
            PERFORM {ns}.notify_listeners('jobs');
        END IF;
        INSERT INTO {ns}.ready (seq, run_at, rank, queue, past) VALUES (v_seq, v_now, -p_priority, p_queue, p_past);
        UPDATE {ns}.counter c SET queued = c.queued + 1 WHERE c.queue = p_queue AND c.slot = p_counter_slot;
    ELSE
        IF {ns}.must_notify(p_queue, p_run_at) THEN
            PERFORM {ns}.notify_listeners('jobs');
        END IF;
        INSERT INTO {ns}.later (seq, run_at, rank, queue, past) VALUES (v_seq, p_run_at, -p_priority, p_queue, p_past);
        UPDATE {ns}.counter c SET scheduled = c.scheduled + 1 WHERE c.queue = p_queue AND c.slot = p_counter_slot;
    END IF;
    IF NOT FOUND THEN
        PERFORM {ns}.count(p_counter_slot, p_queue, (p_run_at IS NULL)::int, (p_run_at IS NOT NULL)::int, 0, 0, 0, 0, 0, 0, 0, 0);
    END IF;
    RETURN true;
END $$;

-- Add jobs that wait for no other job, all or none; false if the store is sealed. Raises a unique violation if one of
-- them exists. Jobs without run_at are ready now. Slots and keys are known to be free.
CREATE OR REPLACE FUNCTION {ns}.add_jobs(
    p_now bigint, p_counter_slot bigint, p_ids text[], p_tasks text[], p_payloads bytea[], p_queues text[],
    p_priorities smallint[], p_run_at bigint[], p_pasts bytea[], p_schedule_ids text[], p_fire_at bigint[],
    p_after_at bigint[], p_generations integer[], p_made_by text[], p_slots text[], p_keys text[], p_key_until bigint[]
) RETURNS boolean LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    v_now        bigint := coalesce(p_now, {ns}.micros());
    v_number     integer := cardinality(p_ids);
    v_task       text := p_tasks[1];
    v_payload    bytea := p_payloads[1];
    v_queue      text := p_queues[1];
    v_priority   smallint := p_priorities[1];
    v_past       bytea := coalesce(p_pasts[1], '');
    v_generation integer := coalesce(p_generations[1], 0);
    v_seqs       bigint[];
    v_is_alike   boolean := cardinality(p_queues) = 1 AND p_run_at IS NULL;
BEGIN
    IF EXISTS (SELECT FROM {ns}.seal) THEN
        RETURN false;
    END IF;
    PERFORM pg_current_xact_id();  -- before a position is drawn: upkeep knows by it that this transaction is open
    v_seqs := ARRAY(SELECT nextval('{ns}.job_seq_seq') FROM generate_series(1, v_number));
    IF (SELECT bool_or({ns}.must_notify(f.queue, f.run_at)) FROM (
            SELECT coalesce(n.queue, v_queue) AS queue, min(n.run_at) AS run_at FROM unnest(p_queues, p_run_at) AS n (queue, run_at)
            GROUP BY 1, n.run_at IS NULL) f) THEN
        PERFORM {ns}.notify_listeners('jobs');
    END IF;
    INSERT INTO {ns}.job (seq, created_at, key_until, fire_at, after_at, generation, priority, id, task, queue,
                          schedule_id, made_by, payload)
    SELECT n.seq, v_now, coalesce(n.key_until, 0), n.fire_at, n.after_at, coalesce(n.generation, v_generation),
           coalesce(n.priority, v_priority), n.id, coalesce(n.task, v_task), coalesce(n.queue, v_queue),
           n.schedule_id, n.made_by, coalesce(n.payload, v_payload)
    FROM unnest(v_seqs, p_ids, p_tasks, p_payloads, p_queues, p_priorities, p_schedule_ids, p_fire_at, p_after_at,
                p_generations, p_made_by, p_key_until)
        AS n (seq, id, task, payload, queue, priority, schedule_id, fire_at, after_at, generation, made_by, key_until);
    INSERT INTO {ns}.ready (seq, run_at, rank, queue, slot, key, past)
    SELECT n.seq, v_now, -coalesce(n.priority, v_priority), coalesce(n.queue, v_queue), n.slot, n.key,
           coalesce(n.past, v_past)
    FROM unnest(v_seqs, p_run_at, p_priorities, p_queues, p_slots, p_keys, p_pasts)
        AS n (seq, run_at, priority, queue, slot, key, past)
    WHERE n.run_at IS NULL;
    IF p_run_at IS NOT NULL THEN
        INSERT INTO {ns}.later (seq, run_at, rank, queue, slot, key, past)
        SELECT n.seq, n.run_at, -coalesce(n.priority, v_priority), coalesce(n.queue, v_queue), n.slot, n.key,
               coalesce(n.past, v_past)
        FROM unnest(v_seqs, p_run_at, p_priorities, p_queues, p_slots, p_keys, p_pasts)
            AS n (seq, run_at, priority, queue, slot, key, past)
        WHERE n.run_at IS NOT NULL;
    END IF;
    IF p_slots IS NOT NULL THEN
        INSERT INTO {ns}.overlap_slot (slot, seq, id)
        SELECT n.slot, n.seq, n.id FROM unnest(p_slots, v_seqs, p_ids) AS n (slot, seq, id)
        WHERE n.slot IS NOT NULL ORDER BY n.slot;
    END IF;
    IF p_keys IS NOT NULL THEN
        INSERT INTO {ns}.unique_key (key, seq, id)
        SELECT n.key, n.seq, n.id FROM unnest(p_keys, v_seqs, p_ids) AS n (key, seq, id)
        WHERE n.key IS NOT NULL ORDER BY n.key;
    END IF;
    -- Jobs of one kind may lie in every block between the first and the last position.
    PERFORM {ns}.index_blocks(
        CASE WHEN cardinality(p_queues) = 1 AND cardinality(p_tasks) = 1
             THEN ARRAY(SELECT generate_series(v_seqs[1] / 1000, v_seqs[v_number] / 1000) * 1000) ELSE v_seqs END,
        p_queues, p_tasks);
    PERFORM {ns}.index_times(
        ARRAY[v_now / 600000000], ARRAY(SELECT generate_series(v_seqs[1] / 1000, v_seqs[v_number] / 1000)));
    PERFORM {ns}.count(p_counter_slot, c.queue, c.queued, c.scheduled, 0, 0, 0, 0, 0, 0, 0, 0) FROM (
        SELECT coalesce(n.queue, v_queue) AS queue, count(n.run_at) AS scheduled,
               CASE WHEN v_is_alike THEN v_number ELSE count(*) - count(n.run_at) END AS queued
        FROM unnest(p_queues, p_run_at) AS n (queue, run_at) GROUP BY 1 ORDER BY 1) c;
    RETURN true;
END $$;

-- Lists and counts of jobs with more than one attempt.
CREATE INDEX IF NOT EXISTS ready_repeated ON {ns}.ready (seq) WHERE attempts >= 2;
CREATE INDEX IF NOT EXISTS later_repeated ON {ns}.later (seq) WHERE attempts >= 2;
CREATE INDEX IF NOT EXISTS held_repeated ON {ns}.held (seq) WHERE attempts >= 2;
CREATE INDEX IF NOT EXISTS running_repeated ON {ns}.running (seq) WHERE attempts >= 2;
CREATE INDEX IF NOT EXISTS finished_repeated ON {ns}.finished (seq, state) WHERE attempts >= 2;
