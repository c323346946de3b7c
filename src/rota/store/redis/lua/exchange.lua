-- Settle some jobs and claim some. Python decided what is settled; this script checks the leases and records it.

-- Python gets the numbers of the changes that are refused, each with the reason; and of those that it commits in a step of
-- its own: ends that release other jobs or add to a ledger, and successes of jobs that were asked to stop, whose record must
-- say so.
local refused, separate = {}, {}
local is_separate = {}  -- by schedule: the ends of a schedule's jobs are recorded in their order
local has_news = false

-- Hashes and sets that are mostly empty: nothing is read from those that are.
local has = {}
for _, name in ipairs({ 'ahead', 'state', 'ready_at', 'held', 'progress', 'cancel', 'waiting' }) do
  has[name] = redis.call('EXISTS', P .. name) == 1
end

local function delete_from(names, ids)
  for _, name in ipairs(names) do
    if has[name] then
      many('HDEL', name, ids)
    end
  end
end

local counts = {}
local function count(queue, name, number)
  name = queue .. '|' .. name
  counts[name] = (counts[name] or 0) + number
end

-- Jobs of one kind ended their run under leases of one number, in one queue, of one priority, in the same state; and are
-- all deleted, or all kept.
local kinds = {}
for n, kind in ipairs(ask.kinds) do
  local fence, queue, state, priority, is_deleted = unpack(kind)
  kinds[n] = {
    fence = fence, queue = queue, state = state, priority = priority, is_final = FINAL[state],
    is_deleted = is_deleted, by_position = {}, by_time = {},
  }
end

-- A change is {id, kind, standing, at (finished_at or run_at), position}; and after these, if there is more to record: the
-- schedule or false, and commands, or false if the end adds to a ledger.
local function check(changes)
  local ids = {}
  for n, change in ipairs(changes) do
    ids[n] = change[1]
  end
  local leases = many_read('HMGET', 'lease', ids)
  local cancels = has.cancel and many_read('HMGET', 'cancel', ids) or {}
  local taken, accepted = {}, {}
  for n, change in ipairs(changes) do
    local id, lease, cancel, kind = ids[n], leases[n], cancels[n], kinds[change[2]]
    if taken[id] or not lease or fence_of(lease) ~= kind.fence then
      refused[#refused + 1] = { n, 'lease', '' }
    elseif cancel and not kind.is_final then
      refused[#refused + 1] = { n, 'cancel', cancel }
    else
      taken[id] = true
      local schedule = change[6]
      local is_awaited = has.held and kind.is_final and redis.call('EXISTS', P .. 'waits:' .. id) == 1
      local is_late = cancel and kind.state == 'succeeded' and not kind.is_deleted
      if is_awaited or is_late or change[7] == false or (schedule and is_separate[schedule]) then
        separate[#separate + 1] = n
        if schedule then
          is_separate[schedule] = true
        end
      else
        accepted[#accepted + 1] = change
      end
    end
  end
  return accepted
end

-- Make jobs ready, {position, id …}: whether their queue had none of that priority.
local function add_ready(queue, priority, entries)
  many('ZADD', 'ready:' .. queue .. ':' .. priority, entries)
  return add_priority(queue, priority)
end

local function index(kind)
  local queue, state, number = kind.queue, kind.state, #kind.by_position / 2
  count(queue, 'running', -number)
  if kind.is_final then
    count(queue, 'total:' .. state, number)
  end
  if kind.is_deleted then
    return
  end
  count(queue, state, number)
  if state == 'queued' then
    has_news = add_ready(queue, kind.priority, kind.by_position) or has_news
    return
  end
  many('ZADD', 'in:' .. queue .. ':' .. state, kind.by_position)
  if state == 'scheduled' then
    has_news = add_by_time('due:' .. queue, kind.by_time) or has_news
  else
    many('ZADD', 'ended:' .. state, kind.by_time)
  end
end

local function record(changes)
  local ids, standing, ended = {}, {}, {}
  for n, change in ipairs(changes) do
    local id, kind = change[1], kinds[change[2]]
    ids[n] = id
    if change[7] then
      run(change[7])
    end
    local last = #kind.by_position
    kind.by_position[last + 1], kind.by_position[last + 2] = change[5], id
    kind.by_time[last + 1], kind.by_time[last + 2] = change[4], id
    if not kind.is_deleted then
      local kept = kind.is_final and ended or standing
      kept[#kept + 1], kept[#kept + 2] = id, change[3]
    end
  end
  many('HDEL', 'lease', ids)
  drop_leases(ask.holder, #ids)
  delete_from({ 'cancel', 'ready_at', 'state' }, ids)
  many('HSET', 'state', standing)
  many('HSET', 'end', ended)
  has.state = has.state or #standing > 0
  for _, kind in ipairs(kinds) do
    if #kind.by_position > 0 then
      index(kind)
    end
  end
end

local function open_queues()
  local paused = redis.call('HMGET', P .. 'paused', unpack(ask.queues))
  local open = {}
  for n, queue in ipairs(ask.queues) do
    if not paused[n] then
      open[#open + 1] = queue
    end
  end
  return open
end

-- When the first job of the queues' indexes by time is due.
local function first_time(index, queues)
  local first = math.huge
  for _, queue in ipairs(queues) do
    local at = redis.call('ZRANGE', P .. index .. queue, 0, 0, 'WITHSCORES')[2]
    first = math.min(first, tonumber(at or first))
  end
  return first
end

-- The first jobs of some queues' indexes up to a score, in the order of all: {score, id, queue}, at most `most`.
local function first_jobs(queues, before, behind, through, most)
  local found = {}
  for _, queue in ipairs(queues) do
    local key = P .. before .. queue .. behind
    local some = redis.call('ZRANGEBYSCORE', key, '-inf', through, 'WITHSCORES', 'LIMIT', 0, most)
    for n = 1, #some, 2 do
      found[#found + 1] = { tonumber(some[n + 1]), some[n], queue }
    end
  end
  table.sort(found, function(one, other)  -- two jobs may have the same score
    return one[1] < other[1] or (one[1] == other[1] and one[2] < other[2])
  end)
  return { unpack(found, 1, math.min(most, #found)) }
end

-- Jobs that are due up to this time are claimed; one whose time is still to come is ready at that time.
local REACH = later(ask.ahead)
local function not_before(instant)
  return tonumber(instant) > tonumber(NOW) and instant or NOW
end

-- How many due jobs each queue gives: of those of all queues the earliest, at most `most_promoted`.
local function shares(queues)
  if #queues == 1 then
    return { [queues[1]] = ask.most_promoted }
  end
  local share = {}
  for _, job in ipairs(first_jobs(queues, 'due:', '', REACH, ask.most_promoted)) do
    share[job[3]] = (share[job[3]] or 0) + 1
  end
  return share
end

-- Make due jobs of a queue ready, at most `room`: whether a priority of the queue was empty before.
local function promote_some(queue, room)
  local found = redis.call('ZRANGEBYSCORE', P .. 'due:' .. queue, '-inf', REACH, 'WITHSCORES', 'LIMIT', 0, room)
  local due, times, by_priority, was_empty = {}, {}, {}, false
  for n = 1, #found, 2 do
    due[#due + 1] = found[n]
    times[n], times[n + 1] = found[n], not_before(found[n + 1])
  end
  for n, record in ipairs(many_read('HMGET', 'job', due)) do
    local position, priority = position_of(record)
    if not position then  -- a record that cannot be read: the claim reports it
      position, priority = redis.call('ZSCORE', P .. 'in:' .. queue .. ':scheduled', due[n]) or '0', '0'
    end
    local entries = by_priority[priority] or {}
    by_priority[priority] = entries
    entries[#entries + 1], entries[#entries + 2] = position, due[n]
  end
  many('ZREM', 'due:' .. queue, due)
  many('ZREM', 'in:' .. queue .. ':scheduled', due)
  many('HSET', 'ready_at', times)
  has.ready_at = true
  for priority, entries in pairs(by_priority) do
    was_empty = add_ready(queue, priority, entries) or was_empty
  end
  count(queue, 'scheduled', -#due)
  count(queue, 'queued', #due)
  return was_empty
end

-- The same for all queues, if jobs are wanted: when the next is due, and whether a priority was empty before.
local function promote(queues, is_wanted)
  local next_due, was_empty = first_time('due:', queues), false
  if is_wanted and next_due <= tonumber(REACH) then
    for queue, room in pairs(shares(queues)) do
      was_empty = promote_some(queue, room) or was_empty
    end
    next_due = first_time('due:', queues)
  end
  return next_due, was_empty
end

-- Jobs that schedules created before they are due: when the first is due; and, if jobs are wanted, some that are due, with
-- their queues. Python decides on them in a step of its own, and calls again.
local function due_lookahead(queues, is_wanted)
  local first, ids, queues_of = first_time('ahead:', queues), {}, {}
  if is_wanted and first <= tonumber(NOW) then
    for n, job in ipairs(first_jobs(queues, 'ahead:', '', NOW, ask.most_promoted)) do
      ids[n], queues_of[n] = job[2], job[3]
    end
  end
  return first, #ids > 0 and { raw_jobs(ids), queues_of }
end

-- The priorities in use, highest first, and the queues that have jobs of each.
local function priorities_of(queues)
  local by_priority, priorities = {}, {}
  for _, queue in ipairs(queues) do
    for _, priority in ipairs(redis.call('ZREVRANGE', P .. 'priorities:' .. queue, 0, -1)) do
      if not by_priority[priority] then
        by_priority[priority] = {}
        priorities[#priorities + 1] = priority
      end
      table.insert(by_priority[priority], queue)
    end
  end
  table.sort(priorities, function(one, other) return tonumber(one) > tonumber(other) end)
  return priorities, by_priority
end

-- The oldest jobs of some queues of one priority, in one order; the queue of each, if there are several queues; and how many
-- each queue gives.
local function oldest(queues, priority, want)
  if #queues == 1 then  -- their positions are not needed, and would take twice the time
    local ids = redis.call('ZRANGE', P .. 'ready:' .. queues[1] .. ':' .. priority, 0, want - 1)
    return ids, {}, { [queues[1]] = #ids }
  end
  local ids, queues_of, numbers = {}, {}, {}
  for n, job in ipairs(first_jobs(queues, 'ready:', ':' .. priority, '+inf', want)) do
    local _, id, queue = unpack(job)
    ids[n], queues_of[n], numbers[queue] = id, queue, (numbers[queue] or 0) + 1
  end
  return ids, queues_of, numbers
end

-- Take the first `number` of a queue and priority. With the last of them the priority goes too, so that the next job
-- notifies the listeners.
local function pop(queue, priority, number)
  local key = P .. 'ready:' .. queue .. ':' .. priority
  if number > 0 then
    redis.call('ZREMRANGEBYRANK', key, 0, number - 1)
    count(queue, 'queued', -number)
    count(queue, 'running', number)
  end
  if redis.call('EXISTS', key) == 0 then
    redis.call('ZREM', P .. 'priorities:' .. queue, priority)
  end
end

local function take(queues, want)
  local ids, queues_of = {}, {}
  local priorities, by_priority = priorities_of(queues)
  for _, priority in ipairs(priorities) do
    local having, before = by_priority[priority], #ids
    if before == want then
      break
    end
    local some, of, numbers = oldest(having, priority, want - before)
    for n, id in ipairs(some) do
      ids[before + n], queues_of[before + n] = id, of[n] or having[1]
    end
    for _, queue in ipairs(having) do
      pop(queue, priority, numbers[queue] or 0)
    end
  end
  return ids, queues_of
end

local function claim(queues)
  local ids, queues_of = take(queues, ask.want)
  if #ids == 0 then
    return {}
  end
  local records = many_read('HMGET', 'job', ids)
  local standings = has.state and many_read('HMGET', 'state', ids) or {}
  local ready = has.ready_at and many_read('HMGET', 'ready_at', ids) or {}
  local till = later(ask.lease_for)
  local first = lease_text(NOW, till, '1|' .. ask.holder)
  local leases = {}
  for n, id in ipairs(ids) do
    local lease = first
    if standings[n] or ready[n] then
      local number = (standings[n] and string.match(standings[n], '^(%d+)|') or 0) + 1
      lease = lease_text(not_before(ready[n] or NOW), till, number .. '|' .. ask.holder)
    end
    leases[2 * n - 1], leases[2 * n] = id, lease
  end
  many('HSET', 'lease', leases)
  add_leases(ask.holder, #ids, till)
  delete_from({ 'progress' }, ids)
  return { ids, queues_of, records, standings, ready, till }
end

-- The job that add_one.lua has claimed for this worker since its last exchange, as claim() returns jobs, and when. Mostly
-- a message has brought it, and `known` is its id.
local function claimed_directly()
  local packed = redis.pcall('GETDEL', P .. 'direct:' .. ask.holder)
  if type(packed) == 'table' then
    ask.channel = nil  -- the server's ACL forbids it: a job whose message is lost would not come back
  end
  if type(packed) ~= 'string' then
    return false
  end
  local id, queue = unpack(cmsgpack.unpack(packed))
  local lease = id ~= ask.known and redis.call('HGET', P .. 'lease', id)
  if not lease or fence_of(lease) ~= '1|' .. ask.holder then
    return false
  end
  ask.want = math.max(0, ask.want - 1)
  local till = later(ask.lease_for)
  redis.call('HSET', P .. 'lease', id, string.sub(lease, 1, 32) .. wide(till) .. fence_of(lease))
  return { { id }, { queue }, { redis.call('HGET', P .. 'job', id) }, {}, {}, till, string.sub(lease, 1, 32) }
end

-- Look at one worker that waits for jobs of a queue, and forget it if it has died: each that lives renews its entry.
local function forget_dead(queue)
  local holder = redis.pcall('SPOP', P .. 'waiting:' .. queue)
  if type(holder) ~= 'string' then
    return
  end
  local ends = string.match(redis.call('HGET', P .. 'waiting', holder) or '', '^(%d+)|')
  if ends and tonumber(NOW) < tonumber(ends) then
    redis.pcall('SADD', P .. 'waiting:' .. queue, holder)
  else
    redis.call('HDEL', P .. 'waiting', holder)
  end
end

-- Until its next exchange, this idle worker waits for a single job of these queues, for some seconds and no longer than
-- until the next job is due. The server's ACL may forbid this user some of it (pcall).
local function register(queues, next_due)
  for _, queue in ipairs(queues) do
    forget_dead(queue)
  end
  local ends, most = later(ask.waits_for), math.ceil(ask.waits_for / 1000)
  local entry = table.concat({ text(math.min(next_due, tonumber(ends))), text(ask.lease_for), ask.channel }, '|')
  redis.call('HSET', P .. 'waiting', ask.holder, entry)
  redis.pcall('PEXPIRE', P .. 'waiting', most)
  for _, queue in ipairs(queues) do
    redis.pcall('SADD', P .. 'waiting:' .. queue, ask.holder)
    redis.pcall('PEXPIRE', P .. 'waiting:' .. queue, most)
  end
end

if has.waiting then
  redis.call('HDEL', P .. 'waiting', ask.holder)
end
local direct = claimed_directly()
local accepted = check(ask.settled)
if #accepted > 0 then
  record(accepted)
end
if #refused + #separate == 0 then  -- else Python counts the runs of the others
  OWN.RUNS(math.floor(tonumber(NOW) / 60000000), ask.runs)
end
local queues = #ask.queues > 0 and open_queues() or {}
local is_wanted = ask.want > 0 and #separate == 0  -- else jobs that those release are claimed first
local next_lookahead, lookahead = math.huge, false
if has.ahead then
  next_lookahead, lookahead = due_lookahead(queues, is_wanted and not ask.has_decided)
  is_wanted = is_wanted and not lookahead
end
local next_due, was_empty = promote(queues, is_wanted)
local claimed = {}
if is_wanted and #queues > 0 then
  claimed = claim(queues)
  has_news = has_news or (was_empty and #claimed > 0 and #claimed[1] == ask.want)
end
for name, number in pairs(counts) do
  if number ~= 0 then
    redis.call('HINCRBY', P .. 'count', name, number)
  end
end
if has_news then
  notify('jobs')
end
next_due = math.min(next_due, next_lookahead)
if ask.channel and is_wanted and #queues > 0 and not claimed[1] and not direct then
  register(queues, next_due)
end
return reply({ refused, separate, claimed, next_due < math.huge and text(next_due), lookahead, direct })
