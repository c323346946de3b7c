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

-- Dead index entries. While a long transaction of another program holds back vacuum, the entries of claimed jobs stay in
-- `ready_order`, and a claim that began at the front of the queue would read all of them. So a session that claims keeps
-- floors: of a queue and rank, a position below which no new job can be. It begins there. A floor is only a fact of this
-- session, in a setting of it, so that it leaves no dead row itself.
--
-- Only new jobs obey a floor: a row at a position that its own transaction has just drawn, after it had its id, has is_new.
-- A row that anything else inserts (a retry, a return, a scheduled job that is due, code that does not
-- know the column) may have any position. It is in an index of its own, which every claim reads from its start.
ALTER TABLE {ns}.ready ADD COLUMN IF NOT EXISTS is_new boolean;
CREATE INDEX IF NOT EXISTS ready_not_new ON {ns}.ready (queue, rank, seq) WHERE is_new IS NULL;

-- Whether so many rows of `ready` are dead that what reads it from its start may read many of them.
CREATE OR REPLACE FUNCTION {ns}.has_many_dead() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN pg_stat_get_dead_tuples('{ns}.ready'::regclass) > 10000;
END $$;

-- Whether a worker may be idle and must be woken for a new job: no job of its queue is ready, or none is due before
-- p_run_at. (A busy worker asks again by itself.) With many dead rows, only the last 2,000 positions are looked at, backwards: to
-- wake a busy worker is harmless. (The expression keeps the server from walking over the queue's index.)
CREATE OR REPLACE FUNCTION {ns}.must_notify(p_queue text, p_run_at bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF p_run_at IS NOT NULL THEN
        RETURN NOT EXISTS (SELECT FROM {ns}.later l WHERE l.queue = p_queue AND l.run_at <= p_run_at);
    END IF;
    IF {ns}.has_many_dead() THEN
        RETURN (SELECT r.seq FROM {ns}.ready r WHERE r.queue || '' = p_queue
                AND r.seq > (SELECT s.last_value - 2000 FROM {ns}.job_seq_seq s) ORDER BY r.seq DESC LIMIT 1) IS NULL;
    END IF;
    RETURN NOT EXISTS (SELECT FROM {ns}.ready r WHERE r.queue = p_queue);
END $$;

-- The floors of this session, one step further. A position that was claimed (`coming`, noted by an earlier transaction)
-- becomes the floor if no new job is below it, and none can appear there: every transaction that drew a position below it
-- had its id before, and so a lower id than `since`, and has ended. The check reads what lies between the old floor and
-- the new one, once. Floors are forgotten after a minute, or if the table was emptied or positions begin again, so that
-- what somebody does by hand is found, too.
CREATE OR REPLACE FUNCTION {ns}.advance_floors() RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_kept   jsonb := nullif(current_setting('rota.claim_floors', true), '')::jsonb;
    v_table  text := '{ns}.ready'::regclass::oid || '/' || pg_relation_filenode('{ns}.ready'::regclass);
    v_now    bigint := {ns}.micros();
    v_drawn  bigint;
    v_floors jsonb := '[]';
    v_floor  record;
BEGIN
    IF v_kept IS NULL OR v_kept ->> 'table' <> v_table OR v_now - (v_kept ->> 'at')::bigint NOT BETWEEN 0 AND 60000000 THEN
        v_kept := jsonb_build_object('table', v_table, 'at', v_now, 'floors', '[]'::jsonb);
    END IF;
    SELECT s.last_value INTO v_drawn FROM {ns}.job_seq_seq s;
    FOR v_floor IN SELECT * FROM jsonb_to_recordset(v_kept -> 'floors')
            AS f (queue text, rank smallint, floor bigint, coming bigint, noted xid8, since xid8)
            WHERE f.floor <= v_drawn LOOP
        IF v_floor.coming IS NOT NULL AND v_floor.since IS NULL AND v_floor.noted <> pg_current_xact_id() THEN
            v_floor.since := pg_current_xact_id();
        ELSIF v_floor.since <= pg_snapshot_xmin(pg_current_snapshot()) THEN
            IF NOT EXISTS (SELECT FROM {ns}.ready r WHERE r.queue = v_floor.queue AND r.rank = v_floor.rank
                           AND r.seq >= v_floor.floor AND r.seq < v_floor.coming AND r.is_new) THEN
                v_floor.floor := v_floor.coming;
            END IF;
            v_floor.coming := NULL;
            v_floor.since := NULL;
        END IF;
        v_floors := v_floors || to_jsonb(v_floor);
    END LOOP;
    PERFORM set_config('rota.claim_floors', jsonb_set(v_kept, '{floors}', v_floors)::text, false);
    RETURN v_floors;
END $$;

-- Note how far new jobs were claimed, of queues and ranks for which no position is noted.
CREATE OR REPLACE FUNCTION {ns}.note_claims(p_best tid[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_kept   jsonb := current_setting('rota.claim_floors')::jsonb;
    v_floors jsonb;
BEGIN
    SELECT jsonb_agg(jsonb_build_object(
        'queue', n.queue, 'rank', n.rank, 'floor', n.floor, 'since', n.since,
        'coming', n.coming, 'noted', n.noted)) INTO v_floors
    FROM (
        SELECT queue, rank, coalesce(f.floor, 0) AS floor, f.since, coalesce(f.coming, c.seq) AS coming,
               CASE WHEN f.coming IS NULL THEN pg_current_xact_id() ELSE f.noted END AS noted
        FROM jsonb_to_recordset(v_kept -> 'floors')
            AS f (queue text, rank smallint, floor bigint, coming bigint, noted xid8, since xid8)
        FULL JOIN (SELECT r.queue, r.rank, max(r.seq) AS seq FROM {ns}.ready r
                   WHERE r.ctid = ANY (p_best) AND r.is_new GROUP BY r.queue, r.rank) c USING (queue, rank)
        ORDER BY f.floor DESC NULLS LAST LIMIT 32) n;
    PERFORM set_config('rota.claim_floors', jsonb_set(v_kept, '{floors}', coalesce(v_floors, '[]'))::text, false);
END $$;

-- Where claims of some queues begin: each range goes from a floor up to the next rank that has one. Of the rows below its
-- floor, those that are not new belong to a range, too, and come first.
CREATE OR REPLACE FUNCTION {ns}.claim_ranges(p_queues text[], p_floors jsonb)
RETURNS TABLE (queue text, rank integer, floor bigint, end_rank integer) LANGUAGE sql STABLE AS $$
    SELECT s.queue, s.rank, s.floor, coalesce(lead(s.rank) OVER (PARTITION BY s.queue ORDER BY s.rank), 40000)
    FROM (SELECT q AS queue, -32768 AS rank, 0 AS floor FROM unnest(p_queues) AS q
          UNION ALL SELECT f.queue, f.rank, f.floor
          FROM jsonb_to_recordset(p_floors) AS f (queue text, rank integer, floor bigint)
          WHERE f.queue = ANY (p_queues) AND f.floor > 0) s
    ORDER BY s.queue, s.rank
$$;

-- Lock the best ready jobs of one queue that no other caller has locked. The ranges are read one after another, and only
-- until enough rows are locked.
CREATE OR REPLACE FUNCTION {ns}.lock_ready(
    p_queue text, p_want integer, p_floors jsonb, OUT best tid[], OUT seqs bigint[]
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    SELECT coalesce(array_agg(b.ctid), '{}'), array_agg(b.seq) INTO best, seqs FROM (
        SELECT c.ctid, c.seq FROM {ns}.claim_ranges(ARRAY[p_queue], p_floors) g CROSS JOIN LATERAL (
            SELECT * FROM (
                SELECT r.ctid, r.seq FROM {ns}.ready r
                WHERE r.queue = p_queue AND r.rank = g.rank AND r.seq < g.floor AND r.is_new IS NULL
                ORDER BY r.rank, r.seq LIMIT p_want FOR UPDATE SKIP LOCKED) below
            UNION ALL SELECT * FROM (
                SELECT r.ctid, r.seq FROM {ns}.ready r
                WHERE r.queue = p_queue AND (r.rank, r.seq) >= (g.rank, g.floor) AND r.rank < g.end_rank
                ORDER BY r.rank, r.seq LIMIT p_want FOR UPDATE SKIP LOCKED) above) c
        LIMIT p_want) b;
END $$;

-- The best ready jobs of several queues, not locked, in the order of a claim; read as in lock_ready.
CREATE OR REPLACE FUNCTION {ns}.best_ready(p_queues text[], p_reach integer, p_floors jsonb)
RETURNS TABLE (queue text, rank smallint, seq bigint) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT c.queue, c.rank, c.seq FROM {ns}.claim_ranges(p_queues, p_floors) g CROSS JOIN LATERAL (
        (SELECT r.queue, r.rank, r.seq FROM {ns}.ready r
         WHERE r.queue = g.queue AND r.rank = g.rank AND r.seq < g.floor AND r.is_new IS NULL
         ORDER BY r.rank, r.seq LIMIT p_reach)
        UNION ALL
        (SELECT r.queue, r.rank, r.seq FROM {ns}.ready r
         WHERE r.queue = g.queue AND (r.rank, r.seq) >= (g.rank, g.floor) AND r.rank < g.end_rank
         ORDER BY r.rank, r.seq LIMIT p_reach)) c
    ORDER BY c.rank, c.seq LIMIT p_reach;
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
    IF {ns}.must_notify(p_queue, p_run_at) THEN
        PERFORM {ns}.notify_listeners('jobs');
    END IF;
    IF p_run_at IS NULL THEN
        INSERT INTO {ns}.ready (seq, run_at, rank, queue, past, is_new)
        VALUES (v_seq, v_now, -p_priority, p_queue, p_past, true);
        UPDATE {ns}.counter c SET queued = c.queued + 1 WHERE c.queue = p_queue AND c.slot = p_counter_slot;
    ELSE
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
    INSERT INTO {ns}.ready (seq, run_at, rank, queue, slot, key, past, is_new)
    SELECT n.seq, v_now, -coalesce(n.priority, v_priority), coalesce(n.queue, v_queue), n.slot, n.key,
           coalesce(n.past, v_past), true
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

-- Failed and cancelled jobs of a task or a time are found without a look at `job`: their own rows say both. The server fills
-- them in, whatever code writes the rows. Rows of jobs that succeeded do not have them, and are not in the index.
ALTER TABLE {ns}.finished ADD COLUMN IF NOT EXISTS task text COLLATE "C", ADD COLUMN IF NOT EXISTS created_at bigint;
CREATE OR REPLACE FUNCTION {ns}.describe_rare() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    SELECT j.task, j.created_at INTO NEW.task, NEW.created_at FROM {ns}.job j WHERE j.seq = NEW.seq;
    RETURN NEW;
END $$;
DROP TRIGGER IF EXISTS describe_rare ON {ns}.finished;
CREATE TRIGGER describe_rare BEFORE INSERT ON {ns}.finished FOR EACH ROW WHEN (NEW.state <> 'succeeded')
    EXECUTE FUNCTION {ns}.describe_rare();
UPDATE {ns}.finished f SET task = j.task, created_at = j.created_at FROM {ns}.job j
WHERE j.seq = f.seq AND f.state <> 'succeeded' AND f.task IS NULL;
CREATE INDEX IF NOT EXISTS finished_of_task ON {ns}.finished (task, state, seq) WHERE task IS NOT NULL;

-- Settle jobs that ended and concern no other job, make due jobs ready, and claim, all or none. The rows are the claimed
-- jobs, unordered. The last row is none: it has no id; `seq` is the time, `run_at` when the next job is due, `error` the
-- seal of the store, `task` is set if due jobs of a lookahead must be decided on first (`p_is_decided` goes on without
-- them); with a seal or a task, nothing was done. Raises RO001 if another job waits for one of the settled ones, or
-- if one of them is no longer what was decided on. The caller, who knows the jobs, has counted how those of each queue
-- ended. (`p_is_alike` means nothing: processes of an earlier Rota pass it.)
CREATE OR REPLACE FUNCTION {ns}.exchange(
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
    v_floors   jsonb;
    v_queues   text[];    -- candidates of several queues
    v_ranks    smallint[];
    v_near     bigint[];
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
        IF {ns}.has_many_dead() THEN
            v_floors := {ns}.advance_floors();
        END IF;
        IF cardinality(v_open) = 1 THEN
            SELECT b.best, b.seqs INTO v_best, v_seqs
            FROM {ns}.lock_ready(v_open[1], p_want, coalesce(v_floors, '[]')) b;
            v_claimed := v_open;
            v_sums := ARRAY[cardinality(v_best)];
        ELSIF cardinality(v_open) > 1 THEN
            v_reach := p_want;
            LOOP  -- locks no more than it claims; looks further only if rivals were faster
                SELECT coalesce(array_agg(c.queue), '{}'), array_agg(c.rank), array_agg(c.seq) INTO v_queues, v_ranks, v_near
                FROM {ns}.best_ready(v_open, v_reach, coalesce(v_floors, '[]')) c;
                v_best := v_best || ARRAY(
                    SELECT r.ctid FROM {ns}.ready r JOIN unnest(v_queues, v_ranks, v_near) AS b (queue, rank, seq)
                        ON r.queue = b.queue AND r.rank = b.rank AND r.seq = b.seq
                    WHERE r.ctid <> ALL (v_best)
                    ORDER BY b.rank, b.seq LIMIT p_want - cardinality(v_best) FOR UPDATE OF r SKIP LOCKED);
                EXIT WHEN cardinality(v_best) >= p_want OR cardinality(v_queues) < v_reach;
                v_reach := v_reach * 2;
            END LOOP;
            v_seqs := ARRAY(SELECT r.seq FROM {ns}.ready r WHERE r.ctid = ANY (v_best));
            SELECT array_agg(c.queue), array_agg(c.number) INTO v_claimed, v_sums FROM (
                SELECT r.queue, count(*) AS number FROM {ns}.ready r WHERE r.ctid = ANY (v_best) GROUP BY r.queue) c;
        END IF;
        IF v_floors IS NOT NULL AND cardinality(v_best) > 0 THEN
            PERFORM {ns}.note_claims(v_best);
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
