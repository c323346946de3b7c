-- Schema version 1: the functions, each one round trip of a verb that is called often. They compare and set; the model
-- has decided before what a job becomes. An array whose values are all the same has one element; one whose values are
-- all NULL is NULL.

-- The server's clock, in microseconds.
CREATE FUNCTION {ns}.micros() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- Wake the listeners of a channel when the transaction commits. Several calls in one transaction wake them once.
CREATE FUNCTION {ns}.notify_listeners(p_channel text) RETURNS void LANGUAGE sql VOLATILE AS
$$ SELECT pg_notify({ns_text} || '_' || p_channel, '') $$;

-- Whether a worker may be idle and must be woken for a new job: no job of its queue is ready, or none is due before
-- p_run_at. (A busy worker asks again by itself.)
CREATE FUNCTION {ns}.must_notify(p_queue text, p_run_at bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF p_run_at IS NULL THEN
        RETURN NOT EXISTS (SELECT FROM {ns}.ready r WHERE r.queue = p_queue);
    END IF;
    RETURN NOT EXISTS (SELECT FROM {ns}.later l WHERE l.queue = p_queue AND l.run_at <= p_run_at);
END $$;

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

-- (`add_job` and `add_jobs` are in additions.sql.)

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

-- Settle jobs that ended and concern no other job, make due jobs ready, and claim, all or none. The rows are the claimed
-- jobs, unordered. The last row is none: it has no id; `seq` is the time, `run_at` when the next job is due, `error` the
-- seal of the store, `task` is set if due jobs of a lookahead must be decided on first (`p_is_decided` goes on without
-- them); with a seal or a task, nothing was done. Raises RO001 if another job waits for one of the settled ones, or
-- if one of them is no longer what was decided on. The caller, who knows the jobs, has counted how those of each queue
-- ended. (`p_is_alike` means nothing: processes of an earlier Rota pass it.)
CREATE FUNCTION {ns}.exchange(
    p_now bigint, p_holder text, p_want integer, p_queues text[], p_lease_for bigint, p_most_promoted integer,
    p_counter_slot bigint, p_is_decided boolean, p_early bigint, p_seqs bigint[], p_lease_nos integer[], p_states text[],
    p_finished_at bigint[], p_attempts integer[], p_failures integer[], p_errors text[], p_cancel_reasons text[],
    p_results bytea[], p_keys text[], p_freed bigint[], p_is_alike boolean, p_ended_queues text[], p_succeeded integer[],
    p_failed integer[], p_cancelled integer[]
) RETURNS TABLE (
    id text, seq bigint, task text, payload bytea, queue text, priority smallint, created_at bigint, run_at bigint,
    key text, key_until bigint, schedule_id text, fire_at bigint, after_at bigint, generation integer, made_by text,
    waits_for text, queued_at bigint, attempts integer, failures integer, deaths integer, lease_no integer,
    error text, past bytea, slot text, ahead text
) LANGUAGE plpgsql VOLATILE
-- Plans are made once per connection, perhaps while the tables are empty. By index, they hold when the tables are large.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_now      bigint := coalesce(p_now, {ns}.micros());
    v_open     text[] := p_queues;
    v_due      bigint;
    v_best     tid[] := '{}';
    v_seqs     bigint[];
    v_reach    integer;
    v_found    integer;
    v_seal     text;
    v_lease    integer := p_lease_nos[1];
    v_state    text := p_states[1];
    v_ended_at bigint := p_finished_at[1];
    v_attempts integer := p_attempts[1];
    v_settled  integer;
    v_claimed  text[];    -- the queues of the claimed jobs, and how many of each
    v_sums     bigint[];
    v_promoted text[];    -- the queues of jobs that became ready, and how many of each
    v_numbers  bigint[];
BEGIN
    IF p_want > 0 THEN
        SELECT s.value INTO v_seal FROM {ns}.seal s;
        IF v_seal IS NOT NULL THEN
            seq := v_now; error := v_seal;
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    IF p_seqs IS NOT NULL AND {ns}.are_awaited(p_seqs) THEN
        RAISE EXCEPTION 'a job waits for one that ends' USING ERRCODE = 'RO001';
    END IF;
    IF EXISTS (SELECT FROM {ns}.paused_queue) OR cardinality(p_queues) <> 1 THEN
        SELECT coalesce(array_agg(DISTINCT q), '{}') INTO v_open FROM unnest(p_queues) AS q
        WHERE NOT EXISTS (SELECT FROM {ns}.paused_queue p WHERE p.name = q);
    END IF;
    v_due := {ns}.next_due(v_open);

    IF p_want > 0 THEN
        -- Scheduled jobs that are due, or will be within p_early, become ready, a bounded number of all queues together.
        IF v_due <= v_now + p_early THEN
            IF NOT p_is_decided AND EXISTS (
                SELECT FROM {ns}.later l WHERE l.is_ahead AND l.queue = ANY (v_open) AND l.run_at <= v_now
            ) THEN
                seq := v_now; task := 'decide';
                RETURN NEXT;
                RETURN;
            END IF;
            WITH due AS (
                DELETE FROM {ns}.later l WHERE l.ctid = ANY (ARRAY(
                    SELECT d.ctid FROM unnest(v_open) AS q CROSS JOIN LATERAL (
                        SELECT x.ctid, x.run_at, x.seq FROM {ns}.later x WHERE x.queue = q AND x.run_at <= v_now + p_early
                            AND x.is_ahead IS NULL
                        ORDER BY x.run_at, x.seq LIMIT p_most_promoted FOR UPDATE SKIP LOCKED) d
                    ORDER BY d.run_at, d.seq LIMIT p_most_promoted))
                RETURNING l.*
            ), promoted AS (
                INSERT INTO {ns}.ready (seq, run_at, queued_at, attempts, failures, deaths, lease_no, rank, queue, key,
                                        waits_for, error, past, progress, slot, ahead)
                SELECT d.seq, d.run_at, greatest(v_now, d.run_at), d.attempts, d.failures, d.deaths, d.lease_no, d.rank,
                       d.queue, d.key, d.waits_for, d.error, d.past, d.progress, d.slot, d.ahead
                FROM due d
            )
            SELECT array_agg(p.queue), array_agg(p.number) INTO v_promoted, v_numbers
            FROM (SELECT d.queue, count(*) AS number FROM due d GROUP BY d.queue) p;
            v_due := {ns}.next_due(v_open);
        END IF;

        -- The best jobs that no other caller is claiming, in one order over all queues.
        IF cardinality(v_open) = 1 THEN
            SELECT coalesce(array_agg(b.ctid), '{}'), array_agg(b.seq) INTO v_best, v_seqs FROM (
                SELECT r.ctid, r.seq FROM {ns}.ready r WHERE r.queue = v_open[1] ORDER BY r.rank, r.seq
                LIMIT p_want FOR UPDATE SKIP LOCKED) b;
            v_claimed := v_open;
            v_sums := ARRAY[cardinality(v_best)];
        ELSIF cardinality(v_open) > 1 THEN
            v_reach := p_want;
            LOOP  -- locks no more than it claims; looks further only if rivals were faster
                SELECT count(*) INTO v_found FROM (
                    SELECT FROM unnest(v_open) AS q CROSS JOIN LATERAL (
                        SELECT FROM {ns}.ready r WHERE r.queue = q ORDER BY r.rank, r.seq LIMIT v_reach) c
                    LIMIT v_reach) f;
                v_best := v_best || ARRAY(
                    SELECT r.ctid FROM {ns}.ready r JOIN (
                        SELECT c.queue, c.rank, c.seq FROM unnest(v_open) AS q CROSS JOIN LATERAL (
                            SELECT x.queue, x.rank, x.seq FROM {ns}.ready x WHERE x.queue = q
                            ORDER BY x.rank, x.seq LIMIT v_reach) c
                        ORDER BY c.rank, c.seq LIMIT v_reach
                    ) b ON r.queue = b.queue AND r.rank = b.rank AND r.seq = b.seq
                    WHERE r.ctid <> ALL (v_best)
                    ORDER BY b.rank, b.seq LIMIT p_want - cardinality(v_best) FOR UPDATE OF r SKIP LOCKED);
                EXIT WHEN cardinality(v_best) >= p_want OR v_found < v_reach;
                v_reach := v_reach * 2;
            END LOOP;
            v_seqs := ARRAY(SELECT r.seq FROM {ns}.ready r WHERE r.ctid = ANY (v_best));
            SELECT array_agg(c.queue), array_agg(c.number) INTO v_claimed, v_sums FROM (
                SELECT r.queue, count(*) AS number FROM {ns}.ready r WHERE r.ctid = ANY (v_best) GROUP BY r.queue) c;
        END IF;
        -- A claimed job may have been added since the call began, and none starts before it was added.
        v_now := coalesce(p_now, {ns}.micros());
    END IF;

    -- What ended: through the primary key, in the order of positions, so that no two callers block each other.
    IF p_seqs IS NOT NULL THEN
        WITH outcome AS MATERIALIZED (
            SELECT * FROM unnest(p_seqs, p_states, p_finished_at, p_attempts, p_failures, p_errors, p_cancel_reasons,
                                 p_results, p_keys)
                AS o (seq, state, finished_at, attempts, failures, error, cancel_reason, result, key)
        ), gone AS (
            DELETE FROM {ns}.running r
            WHERE r.seq = ANY (p_seqs) AND r.holder = p_holder
                AND CASE cardinality(p_lease_nos) WHEN 1 THEN r.lease_no = v_lease
                    ELSE r.lease_no = p_lease_nos[array_position(p_seqs, r.seq)] END
            RETURNING r.*
        )
        INSERT INTO {ns}.finished (seq, run_at, queued_at, attempts, failures, deaths, lease_no, rank, queue, key,
                                   waits_for, error, past, progress, started_at, finished_at, state, holder,
                                   cancel_reason, result, ahead)
        SELECT g.seq, g.run_at, g.queued_at, coalesce(o.attempts, v_attempts), coalesce(o.failures, g.failures),
               g.deaths, g.lease_no, g.rank, g.queue, o.key, g.waits_for, o.error, g.past, g.progress, g.started_at,
               coalesce(o.finished_at, v_ended_at), coalesce(o.state, v_state), g.holder,
               -- a success keeps a cancel that came too late
               coalesce(o.cancel_reason, CASE coalesce(o.state, v_state) WHEN 'succeeded' THEN g.cancel_reason END),
               o.result, g.ahead
        FROM gone g LEFT JOIN outcome o ON o.seq = g.seq;
        GET DIAGNOSTICS v_settled = ROW_COUNT;
        IF v_settled <> cardinality(p_seqs) THEN
            RAISE EXCEPTION 'a job is not what was decided on' USING ERRCODE = 'RO001';
        END IF;
        IF p_freed IS NOT NULL THEN
            DELETE FROM {ns}.unique_key k WHERE k.seq = ANY (p_freed);
        END IF;
    END IF;

    IF cardinality(v_best) > 0 THEN
        -- Only a full join never compares every pair, however few rows the plan expects.
        RETURN QUERY
        WITH taken AS (
            DELETE FROM {ns}.ready r WHERE r.ctid = ANY (v_best) RETURNING r.*
        ), started AS (
            INSERT INTO {ns}.running (seq, run_at, queued_at, attempts, failures, deaths, lease_no, rank, queue, key,
                                      waits_for, error, past, started_at, lease_until, holder, slot, ahead)
            SELECT t.seq, t.run_at, t.queued_at, t.attempts, t.failures, t.deaths, t.lease_no + 1, t.rank, t.queue,
                   t.key, t.waits_for, t.error, t.past, greatest(v_now, t.queued_at), v_now + p_lease_for, p_holder,
                   t.slot, t.ahead
            FROM taken t
        )
        SELECT j.id, t.seq, j.task, j.payload, t.queue, j.priority, j.created_at, t.run_at, t.key, j.key_until,
               j.schedule_id, j.fire_at, j.after_at, j.generation, j.made_by, t.waits_for, t.queued_at, t.attempts,
               t.failures, t.deaths, t.lease_no + 1, t.error, t.past, t.slot, t.ahead
        FROM taken t FULL JOIN (SELECT * FROM {ns}.job x WHERE x.seq = ANY (v_seqs)) j ON j.seq = t.seq;
    END IF;
    -- What each queue gained and lost, in one order.
    PERFORM {ns}.count(p_counter_slot, q.queue, q.promoted - q.claimed, -q.promoted, 0,
                       q.claimed - q.succeeded - q.failed - q.cancelled, q.succeeded, q.failed, q.cancelled,
                       q.succeeded, q.failed, q.cancelled)
    FROM (SELECT m.queue, sum(m.promoted)::bigint AS promoted, sum(m.claimed)::bigint AS claimed,
                 sum(m.succeeded) AS succeeded, sum(m.failed) AS failed, sum(m.cancelled) AS cancelled
          FROM (SELECT n.queue, n.number AS promoted, 0 AS claimed, 0 AS succeeded, 0 AS failed, 0 AS cancelled
                FROM unnest(v_promoted, v_numbers) AS n (queue, number)
                UNION ALL SELECT n.queue, 0, n.number, 0, 0, 0 FROM unnest(v_claimed, v_sums) AS n (queue, number)
                WHERE n.number > 0
                UNION ALL SELECT n.queue, 0, 0, n.succeeded, n.failed, n.cancelled
                FROM unnest(p_ended_queues, p_succeeded, p_failed, p_cancelled) AS n (queue, succeeded, failed, cancelled)) m
          GROUP BY m.queue ORDER BY m.queue) q;

    -- A job that came to wait for one of these while they were settled must be released in the same transaction.
    IF p_seqs IS NOT NULL AND {ns}.are_awaited(p_seqs) THEN
        RAISE EXCEPTION 'a job waits for one that ends' USING ERRCODE = 'RO001';
    END IF;
    seq := v_now; run_at := v_due;
    RETURN NEXT;
END $$;
