-- Settle some jobs and claim some. What was settled was decided in Python; here it is fenced and recorded.

-- Apart are changes that Python makes in a step of their own: those with consequences, and successes of jobs that were
-- asked to stop, whose standing must say so.
local refused, apart = {}, {}
local is_apart = {}  -- by job, and by schedule: it must hear of its jobs' ends in their order
local is_news = false

-- What is seldom there at all is asked for in one call: sheaves in lines, jobs that were made ahead, standings of live
-- jobs, times of promotion, held jobs, progress, requests to stop. How many of these there are is known then, and ends
-- the search.
local SELDOM = { 'line', 'ahead', 'state', 'ready_at', 'held', 'progress', 'cancel' }
local has = {}
local unknown = redis.call(
  'EXISTS', P .. 'line', P .. 'ahead', P .. 'state', P .. 'ready_at', P .. 'held', P .. 'progress', P .. 'cancel')
for _, name in ipairs(SELDOM) do
  if unknown == 0 then
    break
  end
  local found = redis.call('EXISTS', P .. name)
  has[name], unknown = found == 1, unknown - found
end

local function forget_in(names, ids)
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

-- Jobs of one queue that succeeded at their first attempt, with no key and no schedule: they are the most by far. They
-- come as a sheaf, packed as it is kept: {queue, ids, places in line, times of their ends}. Where all of it holds, two
-- entries index it, and not two for each job; a few jobs, or a sheaf of which some are left out, are indexed one by one.
local function index_apart(queue, ids, seqs, ended)
  local places, times = {}, {}
  for n, id in ipairs(ids) do
    places[2 * n - 1], places[2 * n] = seqs[n], id
    times[2 * n - 1], times[2 * n] = ended[n], id
  end
  many('ZADD', 'in:' .. queue .. ':succeeded', places)
  many('ZADD', 'ended:succeeded', times)
end

local function index_sheaf(group)
  local number = redis.call('INCR', P .. 'sheaves')
  local name = SHEAF .. string.format('%d', number)
  redis.call('HSET', P .. 'sheaf', name, group.sheaf)
  redis.call('ZADD', P .. 'in:' .. group.queue .. ':succeeded', group.last, name)
  redis.call('ZADD', P .. 'ended:succeeded', group.first, name)
end

local function are_held(group, ids)
  local leases, fence, known = many_read('HMGET', 'lease', ids), group.fence, nil
  local cancels = has.cancel and many_read('HMGET', 'cancel', ids) or {}
  local held, all = {}, true
  for n = 1, #ids do
    local lease = leases[n]
    if not lease or (lease ~= known and fence_of(lease) ~= fence) then
      refused[#refused + 1] = { ids[n], 'lease', '' }
      all = false
    elseif cancels[n] or (has.held and redis.call('EXISTS', P .. 'waits:' .. ids[n]) == 1) then
      apart[#apart + 1] = { ids[n], fence, 'succeeded' }
      is_apart[ids[n]] = true
      all = false
    else
      known = lease
      held[#held + 1] = n
    end
  end
  return held, all
end

local function settle_group(group)
  local _, ids, seqs, ended = unpack(cmsgpack.unpack(group.sheaf))
  local standing, standings = group.standing, group.standings
  local held, all = are_held(group, ids)
  if #held == 0 then
    return
  end
  if not all then
    local some, places, times, others = {}, {}, {}, {}
    for n, number in ipairs(held) do
      some[n], places[n], times[n] = ids[number], seqs[number], ended[number]
      others[n] = standing or standings[number]
    end
    ids, seqs, ended, standing, standings = some, places, times, nil, others
  end
  local number, kept = #ids, {}
  for n = 1, number do
    kept[2 * n - 1], kept[2 * n] = ids[n], standing or standings[n]
  end
  many('HDEL', 'lease', ids)
  let_go(ask.holder, number)
  many('HSET', 'end', kept)
  if all and number >= ask.least_sheaf then
    index_sheaf(group)
  else
    index_apart(group.queue, ids, seqs, ended)
  end
  forget_in({ 'ready_at', 'state' }, ids)
  count(group.queue, 'running', -number)
  count(group.queue, 'succeeded', number)
  count(group.queue, 'total:succeeded', number)
end

-- Any other change: id, fence, queue, state, kept, at (finished_at or run_at), seq, priority, freed key, schedule, last,
-- task, freed slot.
local function settle(changes)
  local ids = {}
  for n, change in ipairs(changes) do
    ids[n] = change[1]
  end
  local leases = many_read('HMGET', 'lease', ids)
  local cancels = has.cancel and many_read('HMGET', 'cancel', ids) or {}
  local taken, accepted = {}, {}
  for n, change in ipairs(changes) do
    local id, lease = ids[n], leases[n]
    if taken[id] or is_apart[id] or not lease or fence_of(lease) ~= change[2] then
      refused[#refused + 1] = { id, 'lease', '' }
    elseif cancels[n] and not FINAL[change[4]] then
      refused[#refused + 1] = { id, 'cancel', cancels[n] }
    else
      taken[id] = true
      local schedule = change[10] and 'schedule:' .. change[10]
      local is_awaited = has.held and FINAL[change[4]] and redis.call('EXISTS', P .. 'waits:' .. id) == 1
      local is_late = cancels[n] and change[4] == 'succeeded' and not change[12]
      if is_awaited or is_late or (schedule and is_apart[schedule]) then
        apart[#apart + 1] = { id, change[2], change[4] }
        is_apart[schedule or id] = true
      else
        accepted[#accepted + 1] = change
      end
    end
  end
  return accepted
end

local function forget(change)
  local id = change[1]
  redis.call('HDEL', P .. 'job', id)
  redis.call('HDEL', P .. 'progress', id)
  redis.call('UNLINK', P .. 'log:' .. id)
  leave_task(change[12], id, change[7])
  if change[10] then
    redis.call('ZREM', P .. 'made:' .. change[10], id)
  end
end

-- Put jobs that stood in line before back to their places, or where they belong now.
local function put_back(queue, priority, entries)
  if has.line then
    for n = 1, #entries, 2 do
      make_room('ready:' .. queue .. ':' .. priority, entries[n])
    end
  end
  return put_in_line(queue, priority, entries)
end

local function record(changes)
  local ids, kept, over = {}, {}, {}
  local indexed, lines, waits = {}, {}, {}
  for _, change in ipairs(changes) do
    local id, queue, state, at, seq = change[1], change[3], change[4], change[6], change[7]
    ids[#ids + 1] = id
    count(queue, 'running', -1)
    if FINAL[state] then
      count(queue, 'total:' .. state, 1)
    end
    if change[12] then
      forget(change)
    else
      count(queue, state, 1)
      local standings = FINAL[state] and over or kept
      standings[#standings + 1] = id
      standings[#standings + 1] = change[5]
      if state == 'queued' then
        lines[queue] = lines[queue] or {}
        push(lines[queue], change[8], seq, id)
      else
        push(indexed, 'in:' .. queue .. ':' .. state, seq, id)
        if state == 'scheduled' then
          push(waits, queue, at, id)
        else
          push(indexed, 'ended:' .. state, at, id)
        end
      end
    end
    if change[9] and redis.call('HGET', P .. 'key', change[9]) == id then
      redis.call('HDEL', P .. 'key', change[9])
    end
    if change[13] and redis.call('HGET', P .. 'busy', change[13]) == id then
      redis.call('HDEL', P .. 'busy', change[13])
    end
    if change[10] then
      if FINAL[state] then
        redis.call('ZREM', P .. 'live:' .. change[10], id)
      end
      if redis.call('HEXISTS', P .. 'schedule', change[10]) == 1 then
        redis.call('HSET', P .. 'last:' .. change[10], unpack(change[11]))
      end
    end
  end
  many('HDEL', 'lease', ids)
  let_go(ask.holder, #ids)
  forget_in({ 'cancel', 'ready_at', 'state' }, ids)
  many('HSET', 'state', kept)
  many('HSET', 'end', over)
  has.state = has.state or #kept > 0
  for key, entries in pairs(indexed) do
    many('ZADD', key, entries)
  end
  for queue, priorities in pairs(lines) do
    for priority, entries in pairs(priorities) do
      is_news = put_back(queue, priority, entries) or is_news
    end
  end
  for queue, entries in pairs(waits) do
    is_news = put_in_wait(queue, entries) or is_news
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

-- When the first job of a queue that waits for its time is due, as text.
local function first_due(queue)
  return redis.call('ZRANGE', P .. 'due:' .. queue, 0, 0, 'WITHSCORES')[2]
end

-- Until when a job may be due that is wanted; one whose time is still to come is ready at that time.
local REACH = ask.ahead > 0 and later(ask.ahead) or NOW
local function not_before(instant)
  return tonumber(instant) > tonumber(NOW) and instant or NOW
end

-- Make due jobs of a queue ready, a bounded number of them: how many, and whether a line is no longer empty.
local function promote_some(queue, room)
  local found = redis.call('ZRANGEBYSCORE', P .. 'due:' .. queue, '-inf', REACH, 'WITHSCORES', 'LIMIT', 0, room)
  local due = {}
  for n = 1, #found, 2 do
    due[#due + 1] = found[n]
  end
  local records = many_read('HMGET', 'job', due)
  local lines, times, filled = {}, {}, false
  for n, id in ipairs(due) do
    local seq, priority = place_of(records[n])
    if not seq then  -- a record that cannot be read: whoever claims it says so
      seq, priority = redis.call('ZSCORE', P .. 'in:' .. queue .. ':scheduled', id) or '0', '0'
    end
    push(lines, priority, seq, id)
    times[2 * n - 1], times[2 * n] = id, not_before(found[2 * n])
  end
  many('ZREM', 'due:' .. queue, due)
  many('ZREM', 'in:' .. queue .. ':scheduled', due)
  many('HSET', 'ready_at', times)
  has.ready_at = true
  for priority, entries in pairs(lines) do
    filled = put_back(queue, priority, entries) or filled
  end
  count(queue, 'scheduled', -#due)
  count(queue, 'queued', #due)
  return #due, filled
end

-- The same for all queues, where jobs are wanted: when the next is due, and whether a line is no longer empty.
local function promote(queues, is_wanted)
  local room, next_due, filled = is_wanted and ask.most_promoted or 0, nil, false
  for _, queue in ipairs(queues) do
    local first = first_due(queue)
    if first and room > 0 and tonumber(first) <= tonumber(REACH) then
      local number, is_news_here = promote_some(queue, room)
      room, filled, first = room - number, filled or is_news_here, first_due(queue)
    end
    if first and (not next_due or tonumber(first) < tonumber(next_due)) then
      next_due = first
    end
  end
  return next_due or false, filled
end

-- Jobs of these queues that were made ahead: when the first is due; and, where they are to be judged now, a bounded
-- number of those that are, with their queues. Python judges them in a step of its own, and asks again.
local function look_ahead(queues, is_wanted)
  local first, ids, queues_of = nil, {}, {}
  for _, queue in ipairs(queues) do
    local at = redis.call('ZRANGE', P .. 'ahead:' .. queue, 0, 0, 'WITHSCORES')[2]
    if at and (not first or tonumber(at) < tonumber(first)) then
      first = at
    end
    if at and is_wanted and tonumber(at) <= tonumber(NOW) then
      local room = ask.most_promoted - #ids
      for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'ahead:' .. queue, '-inf', NOW, 'LIMIT', 0, room)) do
        ids[#ids + 1], queues_of[#queues_of + 1] = id, queue
      end
    end
  end
  return first, #ids > 0 and { raw_jobs(ids), queues_of }
end

-- The priorities in use, highest first, and which of the queues have them.
local function lines_of(queues)
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

-- Take jobs that stand alone off the head of a line: whether it was seen to its end. (ZPOPMIN would tell their places,
-- too, and take twice the time.)
local function pop_alone(key, want, ids)
  local room, taken = want - #ids, 0
  local found = redis.call('ZRANGE', P .. key, 0, room)
  for n = 1, math.min(room, #found) do
    if has.line and is_sheaf(found[n]) then
      break
    end
    ids[#ids + 1], taken = found[n], n
  end
  if taken > 0 then
    redis.call('ZREMRANGEBYRANK', P .. key, 0, taken - 1)
  end
  return taken == #found
end

-- The oldest of one queue and priority.
local function pop(queue, priority, want)
  local key, ids = 'ready:' .. queue .. ':' .. priority, {}
  local is_empty = false
  repeat
    if has.line then
      pop_sheaves(key, want, ids)
    end
    is_empty = pop_alone(key, want, ids)
  until is_empty or #ids == want
  if is_empty then
    redis.call('ZREM', P .. 'priorities:' .. queue, priority)  -- so the next job notifies
  end
  return ids
end

-- The oldest of several queues of one priority, in one merged order: {seq, id, queue} each.
local function merged(queues, priority, want)
  local found = {}
  for _, queue in ipairs(queues) do
    local key = 'ready:' .. queue .. ':' .. priority
    if has.line then
      spread_first(key, want)
    end
    local first = redis.call('ZRANGE', P .. key, 0, want - 1, 'WITHSCORES')
    for n = 1, #first, 2 do
      found[#found + 1] = { tonumber(first[n + 1]), first[n], queue }
    end
    if #first == 0 then
      redis.call('ZREM', P .. 'priorities:' .. queue, priority)
    end
  end
  table.sort(found, function(one, other) return one[1] < other[1] end)
  return found
end

local function take(queues, want)
  local ids, queues_of, taken = {}, {}, {}
  local priorities, by_priority = lines_of(queues)
  for _, priority in ipairs(priorities) do
    local left = want - #ids
    if left <= 0 then
      break
    end
    local having = by_priority[priority]
    if #having == 1 then
      local found = pop(having[1], priority, left)
      local before = #ids
      for n = 1, #found do
        ids[before + n] = found[n]
        queues_of[before + n] = having[1]
      end
      taken[having[1]] = (taken[having[1]] or 0) + #found
    else
      local gone = {}
      local found = merged(having, priority, left)
      for n = 1, math.min(left, #found) do
        local entry = found[n]
        ids[#ids + 1] = entry[2]
        queues_of[#queues_of + 1] = entry[3]
        gone[entry[3]] = gone[entry[3]] or {}
        table.insert(gone[entry[3]], entry[2])
        taken[entry[3]] = (taken[entry[3]] or 0) + 1
      end
      for queue, members in pairs(gone) do
        many('ZREM', 'ready:' .. queue .. ':' .. priority, members)
        if redis.call('EXISTS', P .. 'ready:' .. queue .. ':' .. priority) == 0 then
          redis.call('ZREM', P .. 'priorities:' .. queue, priority)
        end
      end
    end
  end
  return ids, queues_of, taken
end

local function claim(queues)
  local ids, queues_of, taken = take(queues, ask.want)
  if #ids == 0 then
    return {}
  end
  local records = many_read('HMGET', 'job', ids)
  local kept = has.state and many_read('HMGET', 'state', ids) or {}
  local ready = has.ready_at and many_read('HMGET', 'ready_at', ids) or {}
  local till = later(ask.lease_for)
  local first = lease_text(NOW, till, '1|' .. ask.holder)
  local leases, is_first = {}, true
  for n, id in ipairs(ids) do
    local lease = first
    if kept[n] then
      local number = (string.match(kept[n], '^(%d+)|') or 0) + 1
      lease = lease_text(not_before(ready[n] or NOW), till, number .. '|' .. ask.holder)
      is_first = false
    elseif ready[n] then
      lease = lease_text(not_before(ready[n]), till, '1|' .. ask.holder)
    end
    leases[2 * n - 1], leases[2 * n] = id, lease
  end
  many('HSET', 'lease', leases)
  hold(ask.holder, #ids, till)
  forget_in({ 'progress' }, ids)
  for queue, number in pairs(taken) do
    count(queue, 'queued', -number)
    count(queue, 'running', number)
  end
  return { ids, #queues > 1 and queues_of or queues, records, is_first and {} or kept, ready, till }
end

for _, group in ipairs(ask.groups) do
  settle_group(group)
end
if #ask.settled > 0 then
  local accepted = settle(ask.settled)
  if #accepted > 0 then
    record(accepted)
    thin_batches()
  end
end
local queues = #ask.queues > 0 and open_queues() or {}
local is_wanted = ask.want > 0 and #apart == 0  -- else what is released first comes first, too
local next_ahead, ahead = nil, false
if has.ahead then
  next_ahead, ahead = look_ahead(queues, is_wanted and not ask.has_judged)
  is_wanted = is_wanted and not ahead
end
local next_due, filled = promote(queues, is_wanted)
if next_ahead and (not next_due or tonumber(next_ahead) < tonumber(next_due)) then
  next_due = next_ahead
end
local claimed = {}
if is_wanted and #queues > 0 then
  claimed = claim(queues)
  is_news = is_news or (filled and #claimed > 0 and #claimed[1] == ask.want)
end
for name, number in pairs(counts) do
  if number ~= 0 then
    redis.call('HINCRBY', P .. 'count', name, number)
  end
end
if is_news then
  notify('jobs')
end
return reply({ refused, apart, claimed, next_due, ahead })
