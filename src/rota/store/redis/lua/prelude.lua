-- What every script begins with: its keys, its request, the time, and how jobs are read.
-- Names come as data: KEYS[1] is "{namespace}:", the beginning of every key, so that all keys share one cluster slot.

local P = KEYS[1]
local ask = cmsgpack.unpack(ARGV[1])
local FINAL = { succeeded = true, failed = true, cancelled = true }
local WIDE = 3000  -- values of one command (even, as many come in pairs)

local function server_time()
  local time = redis.call('TIME')
  return time[1] .. string.rep('0', 6 - #time[2]) .. time[2]  -- as text: no digit is lost
end

local NOW = ask.now or server_time()

-- The version that open() wrote, and the seal. A version that is gone means that somebody emptied the server: it is
-- written again, and the reply says so.
local meta = redis.call('HMGET', P .. 'meta', 'version', 'seal')
if not meta[1] then
  redis.call('HSET', P .. 'meta', 'version', ask.version)
end

local function reply(body)
  return { NOW, meta[1] and 0 or 1, meta[2], body }
end

if meta[2] and ask.is_work then
  return reply(false)  -- sealed: no new work
end

local function later(span)
  return string.format('%.0f', tonumber(NOW) + span)
end

-- A command with any number of values, whose order and result do not matter, in pieces of bounded length.
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

-- The stored parts of jobs: Python puts them together.
local PARTS = { 'job', 'state', 'ready_at', 'lease', 'cancel', 'progress', 'end' }
local function raw_jobs(ids)
  local raw = { ids }
  if #ids == 0 then
    return raw
  end
  for n, name in ipairs(PARTS) do
    raw[n + 1] = many_read('HMGET', name, ids)
  end
  return raw
end

-- A lease: when it began and when it ends, in 32 digits each, then its fence: its number and its holder. So wide, because
-- the server stores a hash of short values as a list, and searches it from its beginning for each of them.
local function wide(instant)
  return string.rep('0', 32 - #instant) .. instant
end

local function lease_text(began, ends, fence)
  return wide(began) .. wide(ends) .. fence
end

local function fence_of(lease)
  return string.sub(lease, 65)
end

-- A job's position and its priority, which its record begins with.
local function position_of(record)
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

-- Expired leases are looked for by holder: each has the number of its leases, and a time before which none ends.
local function add_leases(holder, number, ends)
  redis.call('HINCRBY', P .. 'holding', holder, number)
  redis.call('ZADD', P .. 'holders', 'LT', ends, holder)
end

local function drop_leases(holder, number)
  if redis.call('HINCRBY', P .. 'holding', holder, -number) <= 0 then
    redis.call('HDEL', P .. 'holding', holder)
    redis.call('ZREM', P .. 'holders', holder)
  end
end

-- Wake listeners. Workers that wait for a single job (add_one.lua) must look for others first.
local function notify(channel)
  redis.call('PUBLISH', P .. 'notify:' .. channel, '')
  if channel == 'jobs' then
    redis.call('DEL', P .. 'waiting')
  end
end

-- Remember that a queue has ready jobs of a priority: whether it had none before.
local function add_priority(queue, priority)
  return redis.call('ZADD', P .. 'priorities:' .. queue, priority, priority) == 1
end

-- Add jobs to an index by time, {time, id …}: whether one of them is now the first.
local function add_by_time(key, entries)
  local before = redis.call('ZRANGE', P .. key, 0, 0)[1]
  many('ZADD', key, entries)
  return redis.call('ZRANGE', P .. key, 0, 0)[1] ~= before
end
