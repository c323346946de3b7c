-- Version 2, the verbs that are called most, each one round trip. They compare and set; what a job becomes was
-- decided before they are called.

CREATE OR REPLACE FUNCTION {ns}.micros() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- Tell whoever waits for jobs. Listeners hear it when the transaction commits, and one transaction tells once.
CREATE OR REPLACE FUNCTION {ns}.notify_listeners(p_channel text) RETURNS void LANGUAGE sql VOLATILE AS
$$ SELECT pg_notify({ns_text} || '_' || p_channel, '') $$;

-- Whether one of these queues has an empty line: then somebody may be waiting for it. (A worker that is busy comes back
-- by itself, and finds what was added meanwhile.)
CREATE OR REPLACE FUNCTION {ns}.is_idle(p_queues text[]) RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT EXISTS (SELECT FROM unnest(p_queues) AS q
                  WHERE NOT EXISTS (SELECT FROM {ns}.ready r WHERE r.queue = q)) $$;

-- Mark a block of places for a kind of jobs, unless that was done and committed before. The plan may have been made
-- while there were hardly any marks.
CREATE OR REPLACE FUNCTION {ns}.mark_kind(p_queue text, p_task text, p_block bigint) RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM {ns}.mark m WHERE m.queue = p_queue AND m.task = p_task AND m.block = p_block) THEN
        INSERT INTO {ns}.mark (block, queue, task) VALUES (p_block, p_queue, p_task);
    END IF;
END $$;

-- The same for many kinds, each with the first and the last place that it may have. (An OFFSET keeps the question for
-- each from becoming a join with all marks.)
CREATE OR REPLACE FUNCTION {ns}.mark_kinds(p_queues text[], p_tasks text[], p_first bigint[], p_last bigint[])
RETURNS void LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
BEGIN
    INSERT INTO {ns}.mark (block, queue, task)
    SELECT d.block, d.queue, d.task FROM (
        SELECT DISTINCT b.block, k.queue, k.task
        FROM unnest(p_queues, p_tasks, p_first, p_last) AS k (queue, task, first, last)
        CROSS JOIN LATERAL generate_series(k.first / 1000, k.last / 1000) AS b (block)) d
    WHERE NOT EXISTS (
        SELECT FROM {ns}.mark m WHERE m.queue = d.queue AND m.task = d.task AND m.block = d.block OFFSET 0);
END $$;

-- One job without a key that waits for nobody. Gives its place, or null where the store is sealed, and writes nothing
-- then; an error says that a job of that id is there already. (To look first would cost every new job what one in a
-- million needs.) Without times, it is made and ready now. `p_marked` is a block that the caller knows to be marked.
CREATE OR REPLACE FUNCTION {ns}.add_job(
    p_id text, p_task text, p_payload bytea, p_queue text, p_priority smallint, p_created_at bigint, p_run_at bigint,
    p_is_due boolean, p_key_until bigint, p_schedule_id text, p_fire_at bigint, p_after_at bigint, p_generation integer,
    p_made_by text, p_past bytea, p_slot bigint, p_marked bigint
) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint := coalesce(p_created_at, {ns}.micros());
    v_seq bigint;
BEGIN
    IF EXISTS (SELECT FROM {ns}.seal) THEN
        RETURN NULL;
    END IF;
    INSERT INTO {ns}.job (created_at, key_until, fire_at, after_at, generation, priority, id, task, queue, schedule_id,
                          made_by, payload)
    VALUES (v_now, p_key_until, p_fire_at, p_after_at, p_generation, p_priority, p_id, p_task, p_queue,
            p_schedule_id, p_made_by, p_payload)
    RETURNING seq INTO v_seq;
    IF v_seq / 1000 IS DISTINCT FROM p_marked THEN
        PERFORM {ns}.mark_kind(p_queue, p_task, v_seq / 1000);
    END IF;
    IF p_is_due THEN
        IF NOT EXISTS (SELECT FROM {ns}.ready r WHERE r.queue = p_queue) THEN
            PERFORM {ns}.notify_listeners('jobs');
        END IF;
        INSERT INTO {ns}.ready (seq, run_at, rank, queue, past)
        VALUES (v_seq, coalesce(p_run_at, v_now), -p_priority, p_queue, p_past);
        UPDATE {ns}.tally t SET queued = t.queued + 1 WHERE t.queue = p_queue AND t.slot = p_slot;
    ELSE
        IF NOT EXISTS (SELECT FROM {ns}.later l WHERE l.queue = p_queue AND l.run_at <= p_run_at) THEN
            PERFORM {ns}.notify_listeners('jobs');
        END IF;
        INSERT INTO {ns}.later (seq, run_at, rank, queue, past) VALUES (v_seq, p_run_at, -p_priority, p_queue, p_past);
        UPDATE {ns}.tally t SET scheduled = t.scheduled + 1 WHERE t.queue = p_queue AND t.slot = p_slot;
    END IF;
    IF NOT FOUND THEN
        INSERT INTO {ns}.tally AS t (queue, slot, queued, scheduled)
        VALUES (p_queue, p_slot, p_is_due::int, 1 - p_is_due::int)
        ON CONFLICT (queue, slot) DO UPDATE SET queued = t.queued + excluded.queued,
                                                scheduled = t.scheduled + excluded.scheduled;
    END IF;
    RETURN v_seq;
END $$;

-- Many jobs that are ready at once, have no key and wait for nobody. A column that is the same throughout has one
-- element. Gives the last one's place, or null where the store is sealed, and writes nothing then; all are written, or
-- an error says that one of them is there already. Without a time, they are made now. `p_kind_*` are their kinds, each
-- with how many of the list come before its first and behind its last; null where all are alike. `p_marked` is the
-- block of the caller's last place, where it knows that one to be marked for all of them.
CREATE OR REPLACE FUNCTION {ns}.add_ready_jobs(
    p_created_at bigint, p_slot bigint, p_ids text[], p_tasks text[], p_payloads bytea[], p_queues text[],
    p_priorities smallint[], p_schedule_ids text[], p_made_by text[], p_marked bigint, p_kind_queues text[],
    p_kind_tasks text[], p_kind_from integer[], p_kind_behind integer[]
) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now      bigint := coalesce(p_created_at, {ns}.micros());
    v_task     text := p_tasks[1];
    v_payload  bytea := p_payloads[1];
    v_queue    text := p_queues[1];
    v_priority smallint := p_priorities[1];
    v_first    bigint;
    v_last     bigint;
BEGIN
    IF EXISTS (SELECT FROM {ns}.seal) THEN
        RETURN NULL;
    END IF;
    IF {ns}.is_idle(ARRAY(SELECT DISTINCT q FROM unnest(p_queues) AS q)) THEN
        PERFORM {ns}.notify_listeners('jobs');
    END IF;
    IF cardinality(p_queues) = 1 AND cardinality(p_priorities) = 1 AND p_schedule_ids IS NULL AND p_made_by IS NULL THEN
        WITH made AS (
            INSERT INTO {ns}.job (created_at, id, task, payload, queue, priority)
            SELECT v_now, n.id, coalesce(n.task, v_task), coalesce(n.payload, v_payload), v_queue, v_priority
            FROM unnest(p_ids, p_tasks, p_payloads) AS n (id, task, payload)
            RETURNING seq
        )
        INSERT INTO {ns}.ready (seq, run_at, rank, queue) SELECT m.seq, v_now, -v_priority, v_queue FROM made m;
        INSERT INTO {ns}.tally AS t (queue, slot, queued) VALUES (v_queue, p_slot, cardinality(p_ids))
        ON CONFLICT (queue, slot) DO UPDATE SET queued = t.queued + excluded.queued;
    ELSE
        WITH made AS (
            INSERT INTO {ns}.job (created_at, id, task, payload, queue, priority, schedule_id, made_by)
            SELECT v_now, n.id, coalesce(n.task, v_task), coalesce(n.payload, v_payload),
                   coalesce(n.queue, v_queue), coalesce(n.priority, v_priority), n.schedule_id, n.made_by
            FROM unnest(p_ids, p_tasks, p_payloads, p_queues, p_priorities, p_schedule_ids, p_made_by)
                AS n (id, task, payload, queue, priority, schedule_id, made_by)
            RETURNING seq, queue, priority
        ), placed AS (
            INSERT INTO {ns}.ready (seq, run_at, rank, queue) SELECT m.seq, v_now, -m.priority, m.queue FROM made m
        )
        INSERT INTO {ns}.tally AS t (queue, slot, queued)
        SELECT m.queue, p_slot, count(*) FROM made m GROUP BY m.queue ORDER BY m.queue
        ON CONFLICT (queue, slot) DO UPDATE SET queued = t.queued + excluded.queued;
    END IF;
    -- Places rise, so that none of these is before the block where the caller's last one was. Others may have drawn some
    -- in between, so that only the first and the last are known: a job is as far from both as there are others between.
    v_last := currval('{ns}.job_seq_seq');
    IF v_last / 1000 IS DISTINCT FROM p_marked THEN
        SELECT j.seq INTO v_first FROM {ns}.job j WHERE j.id = p_ids[1];
        IF p_kind_queues IS NULL THEN
            PERFORM {ns}.mark_kinds(ARRAY[v_queue], ARRAY[v_task], ARRAY[v_first], ARRAY[v_last]);
        ELSE
            PERFORM {ns}.mark_kinds(p_kind_queues, p_kind_tasks, ARRAY(SELECT v_first + f FROM unnest(p_kind_from) AS f),
                                    ARRAY(SELECT v_last - t FROM unnest(p_kind_behind) AS t));
        END IF;
    END IF;
    RETURN v_last;
END $$;

-- Fire schedules each of which just makes a job that is ready at once, all or none. Gives the last job's place, or null
-- where the store is sealed; 0 where something is in the way of one, -1 where none of the schedules is what was decided
-- on any more, -2 where the time that was guessed is not now: then nothing is written. An error says that an occurrence
-- has its job already. `p_names` are in order, and all up to `p_lasts` goes with them; the jobs are in the order of
-- their places. What the workers have noted of the last run stays, but for what `p_lasts` says. (The rest is as above.)
CREATE OR REPLACE FUNCTION {ns}.fire_ready(
    p_now bigint, p_is_guessed boolean, p_slot bigint, p_names text[], p_versions bigint[], p_created_at bigint[],
    p_new_versions bigint[], p_next_at bigint[], p_due_at bigint[], p_fired_through bigint[], p_run_counts bigint[],
    p_aheads text[], p_lasts text[], p_ids text[], p_schedule_ids text[], p_fire_at bigint[], p_after_at bigint[],
    p_made_by text[], p_slots text[], p_keys text[], p_key_until bigint[], p_tasks text[], p_payloads bytea[],
    p_queues text[], p_priorities smallint[], p_generations integer[], p_pasts bytea[], p_marked bigint,
    p_kind_queues text[], p_kind_tasks text[], p_kind_from integer[], p_kind_behind integer[]
) RETURNS bigint LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
    v_versions   bigint[];
    v_created_at bigint[];
    v_first      bigint;
    v_last       bigint;
BEGIN
    IF EXISTS (SELECT FROM {ns}.seal) THEN
        RETURN NULL;
    END IF;
    IF p_is_guessed AND {ns}.micros() - p_now NOT BETWEEN 0 AND 1000000 THEN
        RETURN -2;
    END IF;
    SELECT array_agg(l.version), array_agg(l.created_at) INTO v_versions, v_created_at FROM (
        SELECT s.version, s.created_at FROM {ns}.schedule s WHERE s.id = ANY (p_names) AND s.problem IS NULL
        ORDER BY s.id FOR UPDATE) l;
    IF v_versions IS DISTINCT FROM p_versions OR v_created_at IS DISTINCT FROM p_created_at THEN
        RETURN CASE WHEN EXISTS (
            SELECT FROM unnest(p_names, p_versions, p_created_at) AS w (id, version, created_at) JOIN {ns}.schedule s
                ON s.id = w.id AND s.version = w.version AND s.created_at = w.created_at) THEN 0 ELSE -1 END;
    END IF;
    IF EXISTS (SELECT FROM {ns}.overlap_slot o WHERE o.slot = ANY (p_slots)) THEN
        RETURN 0;
    END IF;
    IF p_keys IS NOT NULL AND EXISTS (SELECT FROM {ns}.unique_key k WHERE k.key = ANY (p_keys)) THEN
        RETURN 0;
    END IF;
    IF {ns}.is_idle(ARRAY(SELECT DISTINCT q FROM unnest(p_queues) AS q)) THEN
        PERFORM {ns}.notify_listeners('jobs');
    END IF;
    WITH told AS MATERIALIZED (
        SELECT nextval('{ns}.job_seq_seq') AS seq, n.id, n.schedule_id, n.fire_at, n.after_at, n.made_by, n.slot,
               n.key, coalesce(n.key_until, 0) AS key_until,
               coalesce(n.task, p_tasks[1]) AS task, coalesce(n.payload, p_payloads[1]) AS payload,
               coalesce(n.queue, p_queues[1]) AS queue, coalesce(n.priority, p_priorities[1]) AS priority,
               coalesce(n.generation, p_generations[1]) AS generation, coalesce(n.past, p_pasts[1]) AS past
        FROM unnest(p_ids, p_schedule_ids, p_fire_at, p_after_at, p_made_by, p_slots, p_keys, p_key_until, p_tasks,
                    p_payloads, p_queues, p_priorities, p_generations, p_pasts)
            AS n (id, schedule_id, fire_at, after_at, made_by, slot, key, key_until, task, payload, queue, priority,
                  generation, past)
    ), made AS (
        INSERT INTO {ns}.job (seq, created_at, key_until, fire_at, after_at, generation, priority, id, task, queue,
                              schedule_id, made_by, payload)
        SELECT t.seq, p_now, t.key_until, t.fire_at, t.after_at, t.generation, t.priority, t.id, t.task, t.queue, t.schedule_id,
               t.made_by, t.payload
        FROM told t
    ), placed AS (
        INSERT INTO {ns}.ready (seq, run_at, rank, queue, slot, key, past)
        SELECT t.seq, p_now, -t.priority, t.queue, t.slot, t.key, t.past FROM told t
    ), slotted AS (
        INSERT INTO {ns}.overlap_slot (slot, seq, id)
        SELECT t.slot, t.seq, t.id FROM told t WHERE t.slot IS NOT NULL ORDER BY t.slot
    ), keyed AS (
        INSERT INTO {ns}.unique_key (key, seq, id)
        SELECT t.key, t.seq, t.id FROM told t WHERE t.key IS NOT NULL ORDER BY t.key
    )
    SELECT min(t.seq), max(t.seq) INTO v_first, v_last FROM told t;
    UPDATE {ns}.schedule s SET version = w.version, next_at = w.next_at, due_at = w.due_at,
        fired_through = w.fired_through, run_count = w.run_count, ahead = w.ahead,
        last = (s.last::jsonb || w.last::jsonb)::text
    FROM unnest(p_names, p_new_versions, p_next_at, p_due_at, p_fired_through, p_run_counts, p_aheads, p_lasts)
        AS w (id, version, next_at, due_at, fired_through, run_count, ahead, last)
    WHERE s.id = w.id;
    IF v_last / 1000 IS DISTINCT FROM p_marked THEN
        IF p_kind_queues IS NULL THEN
            PERFORM {ns}.mark_kinds(ARRAY[p_queues[1]], ARRAY[p_tasks[1]], ARRAY[v_first], ARRAY[v_last]);
        ELSE
            PERFORM {ns}.mark_kinds(p_kind_queues, p_kind_tasks, ARRAY(SELECT v_first + f FROM unnest(p_kind_from) AS f),
                                    ARRAY(SELECT v_last - t FROM unnest(p_kind_behind) AS t));
        END IF;
    END IF;
    INSERT INTO {ns}.tally AS t (queue, slot, queued)
    SELECT q, p_slot, CASE cardinality(p_queues) WHEN 1 THEN cardinality(p_ids) ELSE count(*) END
    FROM unnest(p_queues) AS q GROUP BY q ORDER BY q
    ON CONFLICT (queue, slot) DO UPDATE SET queued = t.queued + excluded.queued;
    RETURN v_last;
END $$;

-- Whether a held job waits for one of these. Mostly nothing is held at all.
CREATE OR REPLACE FUNCTION {ns}.are_awaited(p_seqs bigint[]) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM {ns}.held) THEN
        RETURN false;
    END IF;
    RETURN EXISTS (SELECT FROM {ns}.job j WHERE j.seq = ANY (p_seqs)
                   AND EXISTS (SELECT FROM {ns}.held h WHERE h.waits_for = j.id));
END $$;

-- When the first scheduled job of these queues is due.
CREATE OR REPLACE FUNCTION {ns}.next_due(p_queues text[]) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF cardinality(p_queues) = 1 THEN
        RETURN (SELECT l.run_at FROM {ns}.later l WHERE l.queue = p_queues[1] ORDER BY l.run_at LIMIT 1);
    END IF;
    RETURN (SELECT min(d.run_at) FROM unnest(p_queues) AS q CROSS JOIN LATERAL
                (SELECT l.run_at FROM {ns}.later l WHERE l.queue = q ORDER BY l.run_at LIMIT 1) d);
END $$;

-- Settle jobs that ended plainly, make due jobs ready, and claim, all or none. The rows are the claimed jobs in no order;
-- the last one is none: it has no id, `seq` says the time, `run_at` when the next job is due, `error` what seals the
-- store (then nothing was done), `task` that jobs which were made ahead are due and must be judged first (then nothing
-- was done either; `p_is_judged` goes on without those that are left). RO001 is raised where that is not enough: others wait for one of the jobs, or one of
-- them is no longer what was decided on. What is the same throughout has one element, what is empty throughout is null.
-- The counts by queue of what ended were made by the caller, who knows the jobs; they hold only if all are settled.
CREATE OR REPLACE FUNCTION {ns}.exchange(
    p_now bigint, p_holder text, p_want integer, p_queues text[], p_lease_for bigint, p_most_promoted integer,
    p_slot bigint, p_is_judged boolean, p_ahead bigint, p_seqs bigint[], p_lease_nos integer[], p_states text[],
    p_finished_at bigint[], p_attempts integer[], p_failures integer[], p_errors text[], p_cancel_reasons text[], p_results bytea[],
    p_keys text[], p_freed bigint[], p_ended_queues text[], p_succeeded integer[], p_failed integer[],
    p_cancelled integer[]
) RETURNS TABLE (
    id text, seq bigint, task text, payload bytea, queue text, priority smallint, created_at bigint, run_at bigint,
    key text, key_until bigint, schedule_id text, fire_at bigint, after_at bigint, generation integer, made_by text,
    waits_for text, queued_at bigint, attempts integer, failures integer, deaths integer, lease_no integer,
    error text, past bytea, slot text, ahead text
) LANGUAGE plpgsql VOLATILE
-- Plans are made once per connection, maybe while the tables are empty, and must hold when they are large: by index.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_now        bigint := coalesce(p_now, {ns}.micros());
    v_open       text[] := p_queues;
    v_due        bigint;
    v_best       tid[] := '{}';
    v_seqs       bigint[];
    v_reach      integer;
    v_found      integer;
    v_seal       text;
    v_lease      integer;
    v_state      text;
    v_ended_at   bigint;
    v_attempts   integer;
    v_settled    integer;
    v_queue      text;
    v_is_counted boolean := false;
    v_is_uniform boolean;
    v_taken      text[];
    v_numbers    integer[];
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
        -- Scheduled jobs that are due, or will be in a moment, become ready, a bounded number of each queue.
        IF v_due <= v_now + p_ahead THEN
            IF NOT p_is_judged AND EXISTS (
                SELECT FROM {ns}.later l WHERE l.is_ahead AND l.queue = ANY (v_open) AND l.run_at <= v_now
            ) THEN
                seq := v_now; task := 'judge';
                RETURN NEXT;
                RETURN;
            END IF;
            WITH due AS (
                DELETE FROM {ns}.later l WHERE l.ctid = ANY (ARRAY(
                    SELECT d.ctid FROM unnest(v_open) AS q CROSS JOIN LATERAL (
                        SELECT x.ctid FROM {ns}.later x WHERE x.queue = q AND x.run_at <= v_now + p_ahead
                            AND NOT x.is_ahead
                        ORDER BY x.run_at, x.seq LIMIT p_most_promoted FOR UPDATE SKIP LOCKED) d))
                RETURNING l.*
            ), promoted AS (
                INSERT INTO {ns}.ready (seq, run_at, queued_at, attempts, failures, deaths, lease_no, rank, queue, key,
                                        waits_for, error, past, progress, slot, ahead)
                SELECT d.seq, d.run_at, greatest(v_now, d.run_at), d.attempts, d.failures, d.deaths, d.lease_no, d.rank,
                       d.queue, d.key, d.waits_for, d.error, d.past, d.progress, d.slot, d.ahead
                FROM due d
            )
            INSERT INTO {ns}.tally AS t (queue, slot, scheduled, queued)
            SELECT d.queue, p_slot, -count(*), count(*) FROM due d GROUP BY d.queue ORDER BY d.queue
            ON CONFLICT (queue, slot) DO UPDATE SET scheduled = t.scheduled + excluded.scheduled,
                                                    queued = t.queued + excluded.queued;
            v_due := {ns}.next_due(v_open);
        END IF;

        -- The best jobs that nobody else is taking, in one order over all queues.
        IF cardinality(v_open) = 1 THEN
            SELECT coalesce(array_agg(b.ctid), '{}'), array_agg(b.seq) INTO v_best, v_seqs FROM (
                SELECT r.ctid, r.seq FROM {ns}.ready r WHERE r.queue = v_open[1] ORDER BY r.rank, r.seq
                LIMIT p_want FOR UPDATE SKIP LOCKED) b;
            v_taken := v_open;
            v_numbers := ARRAY[cardinality(v_best)];
        ELSIF cardinality(v_open) > 1 THEN
            v_reach := p_want;
            LOOP  -- locks no more than it takes; looks further only where rivals were faster
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
            SELECT array_agg(c.queue), array_agg(c.number) INTO v_taken, v_numbers FROM (
                SELECT r.queue, count(*)::integer AS number FROM {ns}.ready r WHERE r.ctid = ANY (v_best)
                GROUP BY r.queue) c;
        END IF;
        -- What was taken may have been made since the call began; nothing starts before it was made.
        v_now := coalesce(p_now, {ns}.micros());
    END IF;

    IF p_seqs IS NOT NULL THEN
        v_lease := p_lease_nos[1]; v_state := p_states[1]; v_ended_at := p_finished_at[1]; v_attempts := p_attempts[1];
        v_is_uniform := cardinality(p_lease_nos) = 1 AND cardinality(p_states) = 1 AND cardinality(p_finished_at) = 1
            AND cardinality(p_attempts) = 1 AND p_failures IS NULL AND p_errors IS NULL AND p_cancel_reasons IS NULL
            AND p_results IS NULL AND p_keys IS NULL;
    END IF;
    -- What ended: through the key, in the order of places, so that no two callers meet crosswise.
    IF v_is_uniform THEN
        WITH gone AS (
            DELETE FROM {ns}.running r WHERE r.seq = ANY (p_seqs) AND r.holder = p_holder AND r.lease_no = v_lease
            RETURNING r.*
        )
        INSERT INTO {ns}.finished (seq, run_at, queued_at, attempts, failures, deaths, lease_no, rank, queue, waits_for,
                                   past, progress, started_at, finished_at, state, holder, cancel_reason, ahead)
        SELECT g.seq, g.run_at, g.queued_at, v_attempts, g.failures, g.deaths, g.lease_no, g.rank, g.queue, g.waits_for,
               g.past, g.progress, g.started_at, v_ended_at, v_state, g.holder,
               CASE v_state WHEN 'succeeded' THEN g.cancel_reason END, g.ahead  -- a cancel that came too late is kept
        FROM gone g;
        GET DIAGNOSTICS v_settled = ROW_COUNT;
    ELSIF p_seqs IS NOT NULL THEN
        WITH told AS MATERIALIZED (
            SELECT * FROM unnest(p_seqs, p_states, p_finished_at, p_attempts, p_failures, p_errors, p_cancel_reasons,
                                 p_results, p_keys)
                AS w (seq, state, finished_at, attempts, failures, error, cancel_reason, result, key)
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
        SELECT g.seq, g.run_at, g.queued_at, coalesce(w.attempts, v_attempts), coalesce(w.failures, g.failures),
               g.deaths, g.lease_no, g.rank, g.queue, w.key, g.waits_for, w.error, g.past, g.progress, g.started_at,
               coalesce(w.finished_at, v_ended_at), coalesce(w.state, v_state), g.holder,
               coalesce(w.cancel_reason, CASE coalesce(w.state, v_state) WHEN 'succeeded' THEN g.cancel_reason END),
               w.result, g.ahead
        FROM gone g LEFT JOIN told w ON w.seq = g.seq;
        GET DIAGNOSTICS v_settled = ROW_COUNT;
    END IF;
    IF v_settled <> cardinality(p_seqs) THEN
        RAISE EXCEPTION 'a job is not what was decided on' USING ERRCODE = 'RO001';
    END IF;
    IF p_freed IS NOT NULL THEN
        DELETE FROM {ns}.unique_key k WHERE k.seq = ANY (p_freed);
    END IF;

    IF cardinality(v_best) > 0 THEN
        -- Only a full join is never made by looking at every pair, however few rows the plan expects.
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
    v_queue := coalesce(p_ended_queues[1], v_taken[1]);
    IF v_queue = ALL (p_ended_queues || v_taken) AND (v_settled > 0 OR cardinality(v_best) > 0) THEN
        UPDATE {ns}.tally t SET
            queued = t.queued - coalesce(v_numbers[1], 0),
            running = t.running + coalesce(v_numbers[1], 0) - coalesce(v_settled, 0),
            succeeded = t.succeeded + coalesce(p_succeeded[1], 0), failed = t.failed + coalesce(p_failed[1], 0),
            cancelled = t.cancelled + coalesce(p_cancelled[1], 0),
            total_succeeded = t.total_succeeded + coalesce(p_succeeded[1], 0),
            total_failed = t.total_failed + coalesce(p_failed[1], 0),
            total_cancelled = t.total_cancelled + coalesce(p_cancelled[1], 0)
        WHERE t.queue = v_queue AND t.slot = p_slot;
        v_is_counted := FOUND;
    END IF;
    IF NOT v_is_counted AND (v_settled > 0 OR cardinality(v_best) > 0) THEN
        INSERT INTO {ns}.tally AS t (queue, slot, queued, running, succeeded, failed, cancelled, total_succeeded,
                                     total_failed, total_cancelled)
        SELECT m.queue, p_slot, -sum(m.taken), sum(m.taken - m.succeeded - m.failed - m.cancelled), sum(m.succeeded),
               sum(m.failed), sum(m.cancelled), sum(m.succeeded), sum(m.failed), sum(m.cancelled)
        FROM (SELECT e.queue, 0 AS taken, e.succeeded, e.failed, e.cancelled
              FROM unnest(p_ended_queues, p_succeeded, p_failed, p_cancelled) AS e (queue, succeeded, failed, cancelled)
              UNION ALL SELECT c.queue, c.number, 0, 0, 0 FROM unnest(v_taken, v_numbers) AS c (queue, number)) m
        GROUP BY m.queue ORDER BY m.queue
        ON CONFLICT (queue, slot) DO UPDATE SET
            queued = t.queued + excluded.queued, running = t.running + excluded.running,
            succeeded = t.succeeded + excluded.succeeded, failed = t.failed + excluded.failed,
            cancelled = t.cancelled + excluded.cancelled,
            total_succeeded = t.total_succeeded + excluded.total_succeeded,
            total_failed = t.total_failed + excluded.total_failed,
            total_cancelled = t.total_cancelled + excluded.total_cancelled;
    END IF;

    -- A job that came to wait for one of these while they were being settled must be let go in this very step.
    IF p_seqs IS NOT NULL AND {ns}.are_awaited(p_seqs) THEN
        RAISE EXCEPTION 'a job waits for one that ends' USING ERRCODE = 'RO001';
    END IF;
    seq := v_now; run_at := v_due;
    RETURN NEXT;
END $$;
