-- Schema version 1: the functions, each one round trip of a verb that is called often. They compare and set; the model
-- has decided before what a job becomes. An array whose values are all the same has one element; one whose values are
-- all NULL is NULL.

-- The server's clock, in microseconds.
CREATE FUNCTION {ns}.micros() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- Wake the listeners of a channel when the transaction commits. Several calls in one transaction wake them once.
CREATE FUNCTION {ns}.notify_listeners(p_channel text) RETURNS void LANGUAGE sql VOLATILE AS
$$ SELECT pg_notify({ns_text} || '_' || p_channel, '') $$;

-- (`must_notify`, `add_job`, `add_jobs` and `exchange` are in additions.sql.)

-- Add ten numbers to the counters of a queue, in the order of the columns.
CREATE FUNCTION {ns}.count(p_slot bigint, p_queue text, VARIADIC p_numbers bigint[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    LOOP
        UPDATE {ns}.counter c SET
            queued = c.queued + p_numbers[1], scheduled = c.scheduled + p_numbers[2], held = c.held + p_numbers[3],
            running = c.running + p_numbers[4], succeeded = c.succeeded + p_numbers[5], failed = c.failed + p_numbers[6],
            cancelled = c.cancelled + p_numbers[7], total_succeeded = c.total_succeeded + p_numbers[8],
            total_failed = c.total_failed + p_numbers[9], total_cancelled = c.total_cancelled + p_numbers[10]
        WHERE c.queue = p_queue AND c.slot = p_slot;
        EXIT WHEN FOUND;
        INSERT INTO {ns}.counter (queue, slot) VALUES (p_queue, p_slot) ON CONFLICT DO NOTHING;
    END LOOP;
END $$;

-- Enter jobs into the block index, where no committed entry exists. (The OFFSET keeps the question about each entry from
-- becoming a join with all of them. The plan may have been made while the table was empty.)
CREATE FUNCTION {ns}.index_blocks(p_seqs bigint[], p_queues text[], p_tasks text[]) RETURNS void LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    INSERT INTO {ns}.block_index (block, queue, task)
    SELECT d.block, d.queue, d.task FROM (
        SELECT DISTINCT n.seq / 1000 AS block, coalesce(n.queue, p_queues[1]) AS queue, coalesce(n.task, p_tasks[1]) AS task
        FROM unnest(p_seqs, p_queues, p_tasks) AS n (seq, queue, task)) d
    WHERE NOT EXISTS (
        SELECT FROM {ns}.block_index b WHERE b.queue = d.queue AND b.task = d.task AND b.block = d.block OFFSET 0);
END $$;

-- Fire schedules that each add one job which is ready now, all or none. Answers 'fired'; 'blocked' if one of them needs a
-- decision; 'outdated' if none of the schedules is what was decided on; 'clock' if the estimated time is wrong; NULL if
-- the store is sealed. Only 'fired' has written. Raises a unique violation if an occurrence has its job already. The
-- schedules are in the order of their ids, the jobs in the order of their positions. `p_lasts` is merged into what
-- workers have recorded of the last run.
CREATE FUNCTION {ns}.fire(
    p_now bigint, p_is_estimated boolean, p_counter_slot bigint, p_names text[], p_versions bigint[],
    p_created_at bigint[], p_new_versions bigint[], p_next_at bigint[], p_due_at bigint[], p_fired_through bigint[],
    p_run_counts bigint[], p_aheads text[], p_lasts text[], p_ids text[], p_tasks text[], p_payloads bytea[],
    p_queues text[], p_priorities smallint[], p_run_at bigint[], p_pasts bytea[], p_schedule_ids text[], p_fire_at bigint[],
    p_after_at bigint[], p_generations integer[], p_made_by text[], p_slots text[], p_keys text[], p_key_until bigint[]
) RETURNS text LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
    v_versions   bigint[];
    v_created_at bigint[];
BEGIN
    IF EXISTS (SELECT FROM {ns}.seal) THEN
        RETURN NULL;
    END IF;
    IF p_is_estimated AND {ns}.micros() - p_now NOT BETWEEN 0 AND 1000000 THEN
        RETURN 'clock';
    END IF;
    SELECT array_agg(l.version), array_agg(l.created_at) INTO v_versions, v_created_at FROM (
        SELECT s.version, s.created_at FROM {ns}.schedule s WHERE s.id = ANY (p_names) AND s.problem IS NULL
        ORDER BY s.id FOR UPDATE) l;
    IF v_versions IS DISTINCT FROM p_versions OR v_created_at IS DISTINCT FROM p_created_at THEN
        RETURN CASE WHEN EXISTS (
            SELECT FROM unnest(p_names, p_versions, p_created_at) AS w (id, version, created_at) JOIN {ns}.schedule s
                ON s.id = w.id AND s.version = w.version AND s.created_at = w.created_at)
            THEN 'blocked' ELSE 'outdated' END;
    END IF;
    IF EXISTS (SELECT FROM {ns}.overlap_slot o WHERE o.slot = ANY (p_slots))
            OR EXISTS (SELECT FROM {ns}.unique_key k WHERE k.key = ANY (p_keys)) THEN
        RETURN 'blocked';
    END IF;
    PERFORM {ns}.add_jobs(p_now, p_counter_slot, p_ids, p_tasks, p_payloads, p_queues, p_priorities, p_run_at, p_pasts,
                          p_schedule_ids, p_fire_at, p_after_at, p_generations, p_made_by, p_slots, p_keys, p_key_until);
    UPDATE {ns}.schedule s SET version = w.version, next_at = w.next_at, due_at = w.due_at,
        fired_through = w.fired_through, run_count = w.run_count, ahead = w.ahead,
        last = (s.last::jsonb || w.last::jsonb)::text
    FROM unnest(p_names, p_new_versions, p_next_at, p_due_at, p_fired_through, p_run_counts, p_aheads, p_lasts)
        AS w (id, version, next_at, due_at, fired_through, run_count, ahead, last)
    WHERE s.id = w.id;
    RETURN 'fired';
END $$;

-- Whether a held job waits for one of these. Mostly no job is held at all.
CREATE FUNCTION {ns}.are_awaited(p_seqs bigint[]) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM {ns}.held) THEN
        RETURN false;
    END IF;
    RETURN EXISTS (SELECT FROM {ns}.job j WHERE j.seq = ANY (p_seqs)
                   AND EXISTS (SELECT FROM {ns}.held h WHERE h.waits_for = j.id));
END $$;

-- When the first scheduled job of these queues is due.
CREATE FUNCTION {ns}.next_due(p_queues text[]) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT min(d.run_at) FROM unnest(p_queues) AS q CROSS JOIN LATERAL
                (SELECT l.run_at FROM {ns}.later l WHERE l.queue = q ORDER BY l.run_at LIMIT 1) d);
END $$;
