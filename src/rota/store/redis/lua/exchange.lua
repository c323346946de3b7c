-- Settle some jobs and claim some. What was settled was decided in Python; here it is fenced and recorded.

local refused, apart = {}, {}  -- apart: changes with consequences, which Python decides about in a step of their own
local is_apart = {}  -- by job, and by schedule: it must hear of its jobs' ends in their order
local is_news = false
local has_cancels = redis.call('EXISTS', P .. 'cancel') == 1
local has_held = redis.call('EXISTS', P .. 'held') == 1

-- Jobs that ended alike: one queue, state and fence, no key, no schedule. They are the most by far, so all that can be
-- is laid out in Python as the commands take it: {id, standing …}, {seq, id …}, {finished_at, id …}.
local function lay_out_again(group, is_left_out)
  local ids, kept, index, ended = {}, {}, {}, {}
  for n, id in ipairs(group.ids) do
    if not is_left_out[n] then
      ids[#ids + 1] = id
      kept[#kept + 1], kept[#kept + 2] = id, group.kept[2 * n]
      index[#index + 1], index[#index + 2] = group.index[2 * n - 1], id
      ended[#ended + 1], ended[#ended + 2] = group.ended[2 * n - 1], id
    end
  end
  group.ids, group.kept, group.index, group.ended = ids, kept, index, ended
end

local function settle_group(group)
  local leases, fence = many_read('HMGET', 'lease', group.ids), group.fence
  local is_left_out, some = {}, false
  for n, id in ipairs(group.ids) do
    if not leases[n] or fence_of(leases[n]) ~= fence then
      refused[#refused + 1] = { id, 'lease', '' }
      is_left_out[n], some = true, true
    elseif has_held and redis.call('EXISTS', P .. 'waits:' .. id) == 1 then
      apart[#apart + 1] = { id, fence }
      is_apart[id] = true
      is_left_out[n], some = true, true
    end
  end
  if some then
    lay_out_again(group, is_left_out)
  end
  local number = #group.ids
  if number == 0 then
    return
  end
  many('HDEL', 'lease', group.ids)
  let_go(ask.holder, number)
  many('HSET', 'state', group.kept)
  many('ZADD', 'in:' .. group.queue .. ':' .. group.state, group.index)
  many('ZADD', 'ended:' .. group.state, group.ended)
  if has_cancels then
    many('HDEL', 'cancel', group.ids)
  end
  if redis.call('EXISTS', P .. 'ready_at') == 1 then
    many('HDEL', 'ready_at', group.ids)
  end
  redis.call('HINCRBY', P .. 'count', group.queue .. '|running', -number)
  redis.call('HINCRBY', P .. 'count', group.queue .. '|' .. group.state, number)
  redis.call('HINCRBY', P .. 'count', group.queue .. '|total:' .. group.state, number)
end

-- Any other change: id, fence, queue, state, kept, at (finished_at or run_at), seq, priority, freed key, schedule, last, task.
local function settle(changes)
  local ids = {}
  for n, change in ipairs(changes) do
    ids[n] = change[1]
  end
  local leases = many_read('HMGET', 'lease', ids)
  local cancels = has_cancels and many_read('HMGET', 'cancel', ids) or {}
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
      local is_awaited = has_held and FINAL[change[4]] and redis.call('EXISTS', P .. 'waits:' .. id) == 1
      if is_awaited or (schedule and is_apart[schedule]) then
        apart[#apart + 1] = { id, change[2] }
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
  redis.call('HDEL', P .. 'state', id)
  redis.call('HDEL', P .. 'progress', id)
  redis.call('UNLINK', P .. 'log:' .. id)
  redis.call('ZREM', P .. 'task:' .. change[12], id)
  if change[10] then
    redis.call('ZREM', P .. 'made:' .. change[10], id)
  end
end

local function record(changes)
  local ids, kept, counts = {}, {}, {}
  local indexed, lines, waits = {}, {}, {}
  for _, change in ipairs(changes) do
    local id, queue, state, at, seq = change[1], change[3], change[4], change[6], change[7]
    ids[#ids + 1] = id
    counts[queue .. '|running'] = (counts[queue .. '|running'] or 0) - 1
    if FINAL[state] then
      local total = queue .. '|total:' .. state
      counts[total] = (counts[total] or 0) + 1
    end
    if change[12] then
      forget(change)
    else
      local now_in = queue .. '|' .. state
      counts[now_in] = (counts[now_in] or 0) + 1
      kept[#kept + 1] = id
      kept[#kept + 1] = change[5]
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
    if change[10] then
      redis.call('ZREM', P .. 'live:' .. change[10], id)
      if redis.call('HEXISTS', P .. 'schedule', change[10]) == 1 then
        redis.call('HSET', P .. 'last:' .. change[10], unpack(change[11]))
      end
    end
  end
  many('HDEL', 'lease', ids)
  let_go(ask.holder, #ids)
  many('HSET', 'state', kept)
  if redis.call('EXISTS', P .. 'ready_at') == 1 then
    many('HDEL', 'ready_at', ids)
  end
  if has_cancels then
    many('HDEL', 'cancel', ids)
  end
  for key, entries in pairs(indexed) do
    many('ZADD', key, entries)
  end
  for queue, priorities in pairs(lines) do
    for priority, entries in pairs(priorities) do
      is_news = put_in_line(queue, priority, entries) or is_news
    end
  end
  for queue, entries in pairs(waits) do
    is_news = put_in_wait(queue, entries) or is_news
  end
  for name, number in pairs(counts) do
    redis.call('HINCRBY', P .. 'count', name, number)
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

-- Make due jobs ready, a bounded number of them; says whether a line that was empty is so no more.
local function promote(queues)
  local room, filled = ask.most_promoted, false
  for _, queue in ipairs(queues) do
    local due = room > 0 and redis.call('ZRANGEBYSCORE', P .. 'due:' .. queue, '-inf', NOW, 'LIMIT', 0, room) or {}
    if #due > 0 then
      room = room - #due
      local records = many_read('HMGET', 'job', due)
      local lines, times = {}, {}
      for n, id in ipairs(due) do
        local seq, priority = place_of(records[n])
        if not seq then  -- a record that cannot be read: whoever claims it says so
          seq, priority = redis.call('ZSCORE', P .. 'in:' .. queue .. ':scheduled', id) or '0', '0'
        end
        push(lines, priority, seq, id)
        times[2 * n - 1], times[2 * n] = id, NOW
      end
      many('ZREM', 'due:' .. queue, due)
      many('ZREM', 'in:' .. queue .. ':scheduled', due)
      many('HSET', 'ready_at', times)
      for priority, entries in pairs(lines) do
        filled = put_in_line(queue, priority, entries) or filled
      end
      redis.call('HINCRBY', P .. 'count', queue .. '|scheduled', -#due)
      redis.call('HINCRBY', P .. 'count', queue .. '|queued', #due)
    end
  end
  return filled
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

-- The oldest of one queue and priority: {id, seq, id, seq …}.
local function pop(queue, priority, want)
  local key = P .. 'ready:' .. queue .. ':' .. priority
  local found = redis.call('ZPOPMIN', key, want)
  if #found < 2 * want or redis.call('EXISTS', key) == 0 then
    redis.call('ZREM', P .. 'priorities:' .. queue, priority)  -- so that the next job rings
  end
  return found
end

-- The oldest of several queues of one priority, in one merged order: {seq, id, queue} each.
local function merged(queues, priority, want)
  local found = {}
  for _, queue in ipairs(queues) do
    local first = redis.call('ZRANGE', P .. 'ready:' .. queue .. ':' .. priority, 0, want - 1, 'WITHSCORES')
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
      for n = 1, #found, 2 do
        ids[#ids + 1] = found[n]
        queues_of[#queues_of + 1] = having[1]
      end
      taken[having[1]] = (taken[having[1]] or 0) + #found / 2
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
  local records, kept = many_read('HMGET', 'job', ids), many_read('HMGET', 'state', ids)
  local ready = redis.call('EXISTS', P .. 'ready_at') == 1 and many_read('HMGET', 'ready_at', ids) or {}
  local till = later(ask.lease_for)
  local first = lease_text(NOW, till, '1|' .. ask.holder)
  local leases, is_first = {}, true
  for n, id in ipairs(ids) do
    local lease = first
    if kept[n] then
      local number = (string.match(kept[n], '^(%d+)|') or 0) + 1
      lease = lease_text(NOW, till, number .. '|' .. ask.holder)
      is_first = false
    end
    leases[2 * n - 1], leases[2 * n] = id, lease
  end
  many('HSET', 'lease', leases)
  hold(ask.holder, #ids, till)
  if redis.call('EXISTS', P .. 'progress') == 1 then
    many('HDEL', 'progress', ids)
  end
  for queue, number in pairs(taken) do
    if number > 0 then
      redis.call('HINCRBY', P .. 'count', queue .. '|queued', -number)
      redis.call('HINCRBY', P .. 'count', queue .. '|running', number)
    end
  end
  return { ids, #queues > 1 and queues_of or queues, records, is_first and {} or kept, ready, till }
end

local function next_due(queues)
  local first
  for _, queue in ipairs(queues) do
    local found = redis.call('ZRANGE', P .. 'due:' .. queue, 0, 0, 'WITHSCORES')[2]
    if found and (not first or tonumber(found) < tonumber(first)) then
      first = found
    end
  end
  return first or false
end

for _, group in ipairs(ask.groups) do
  settle_group(group)
end
if #ask.settled > 0 then
  local accepted = settle(ask.settled)
  if #accepted > 0 then
    record(accepted)
  end
end
local queues = #ask.queues > 0 and open_queues() or {}
local claimed = {}
if ask.want > 0 and #queues > 0 and #apart == 0 then  -- else what is released first comes first, too
  local filled = promote(queues)
  claimed = claim(queues)
  is_news = is_news or (filled and #claimed > 0 and #claimed[1] == ask.want)
end
if is_news then
  ring('jobs')
end
return reply({ refused, apart, claimed, next_due(queues) })
