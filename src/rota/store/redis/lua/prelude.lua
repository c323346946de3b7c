-- What every script begins with: where its keys are, what it was asked, what time it is, and how jobs are read.
-- Names come as data: KEYS[1] is "{namespace}:", the beginning of every key, so that all of them share one slot.

local P = KEYS[1]
local ask = cmsgpack.unpack(ARGV[1])
local FINAL = { succeeded = true, failed = true, cancelled = true }
local SHEAF = '\0'  -- what the names of sheaves begin with, and no job's id
local WIDE = 3000  -- values that one command takes at once (an even number, as many come in pairs)

local function server_time()
  local time = redis.call('TIME')
  return time[1] .. string.rep('0', 6 - #time[2]) .. time[2]  -- as text: no digit is lost
end

local NOW = ask.now or server_time()

-- The marker that open() wrote, and whether the store takes no more work. A marker that is gone means that somebody
-- emptied the server: it is written again, and the caller is told.
local meta = redis.call('HMGET', P .. 'meta', 'version', 'seal')
if not meta[1] then
  redis.call('HSET', P .. 'meta', 'version', ask.version)
end

local function reply(body)
  return { NOW, meta[1] and 0 or 1, meta[2], body }
end

if meta[2] and ask.is_work then
  return reply(false)  -- sealed: whoever brings or wants work is sent elsewhere
end

local function later(span)
  return string.format('%.0f', tonumber(NOW) + span)
end

-- A command whose values may be many: in pieces of bounded length, where order and result do not matter.
local function many(command, key, values)
  for first = 1, #values, WIDE do
    redis.call(command, P .. key, unpack(values, first, math.min(first + WIDE - 1, #values)))
  end
end

local function many_read(command, key, values)
  if #values <= WIDE then
    return redis.call(command, P .. key, unpack(values))
  end
  local all = {}
  for first = 1, #values, WIDE do
    local some = redis.call(command, P .. key, unpack(values, first, math.min(first + WIDE - 1, #values)))
    for n = 1, #some do
      all[#all + 1] = some[n]
    end
  end
  return all
end

-- Jobs as they are kept, field by field: Python puts them together.
local KEPT = { 'job', 'state', 'ready_at', 'lease', 'cancel', 'progress', 'end' }
local function raw_jobs(ids)
  local raw = { ids }
  if #ids == 0 then
    return raw
  end
  for n, name in ipairs(KEPT) do
    raw[n + 1] = many_read('HMGET', name, ids)
  end
  return raw
end

-- A lease: when it began and when it ends, in 32 digits each, then what fences it: its number and its holder. So wide,
-- because a hash of short values is a list to the server, which it searches from its beginning for each of them.
local function wide(instant)
  return string.rep('0', 32 - #instant) .. instant
end

local function lease_text(began, ends, fence)
  return wide(began) .. wide(ends) .. fence
end

local function fence_of(lease)
  return string.sub(lease, 65)
end

-- A job's place in line and its priority, which its record begins with.
local function place_of(record)
  if not record then
    return nil
  end
  return string.match(record, '^(%d+)|(%-?%d+)|')
end

local function push(groups, key, first, second)
  local group = groups[key]
  if not group then
    group = {}
    groups[key] = group
  end
  group[#group + 1] = first
  group[#group + 1] = second
end

-- Leases are looked for by holder: each has a bound that none of its leases ends before, and their number.
local function hold(holder, number, ends)
  redis.call('HINCRBY', P .. 'holding', holder, number)
  redis.call('ZADD', P .. 'holders', 'LT', ends, holder)
end

local function let_go(holder, number)
  if redis.call('HINCRBY', P .. 'holding', holder, -number) <= 0 then
    redis.call('HDEL', P .. 'holding', holder)
    redis.call('ZREM', P .. 'holders', holder)
  end
end

local function notify(channel)
  redis.call('PUBLISH', P .. 'notify:' .. channel, '')
end

-- Put jobs of a queue in line: {score, id, score, id …}. Says whether that line was empty before.
local function put_in_line(queue, priority, entries)
  many('ZADD', 'ready:' .. queue .. ':' .. priority, entries)
  return redis.call('ZADD', P .. 'priorities:' .. queue, priority, priority) == 1
end

-- Let jobs of a queue wait for their time: {run_at, id …}. Says whether one of them is now the first.
local function put_in_wait(queue, entries)
  local before = redis.call('ZRANGE', P .. 'due:' .. queue, 0, 0)[1]
  many('ZADD', 'due:' .. queue, entries)
  return redis.call('ZRANGE', P .. 'due:' .. queue, 0, 0)[1] ~= before
end
