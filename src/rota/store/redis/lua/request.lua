-- What a script with a request begins with: the request, commands with any number of values, and how jobs, leases and
-- notifications are read and written.

local ask = cmsgpack.unpack(ARGV[4])
local FINAL = { succeeded = true, failed = true, cancelled = true }
local WIDE = 3000  -- values of one command (even, as many come in pairs)

-- A command with any number of values, whose order and result do not matter, in pieces of bounded length.
local function many(command, key, values)
  for first = 1, #values, WIDE do
    redis.call(command, P .. key, unpack(values, first, math.min(first + WIDE - 1, #values)))
  end
end

local function many_read(command, key, values)
  local all = {}
  for first = 1, #values, WIDE do
    local some = redis.call(command, P .. key, unpack(values, first, math.min(first + WIDE - 1, #values)))
    if #values <= WIDE then
      return some
    end
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
  for n, name in ipairs(PARTS) do
    raw[n + 1] = many_read('HMGET', name, ids)
  end
  return raw
end

-- A job's position and its priority, which its record begins with.
local function position_of(record)
  return string.match(record or '', '^(%d+)|(%-?%d+)|')
end

local function drop_leases(holder, number)
  if redis.call('HINCRBY', P .. 'holding', holder, -number) <= 0 then
    redis.call('HDEL', P .. 'holding', holder)
    redis.call('ZREM', P .. 'holders', holder)
  end
end

-- Add jobs to an index by time, {time, id …}: whether one of them is now the first.
local function add_by_time(key, entries)
  local before = redis.call('ZRANGE', P .. key, 0, 0)[1]
  many('ZADD', key, entries)
  return redis.call('ZRANGE', P .. key, 0, 0)[1] ~= before
end

-- A number as text: no digit is lost.
local function text(number)
  return string.format('%.0f', number)
end

local function later(span)
  return text(tonumber(NOW) + span)
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

-- Expired leases are looked for by holder: each has the number of its leases, and a time before which none ends.
local function add_leases(holder, number, ends)
  redis.call('HINCRBY', P .. 'holding', holder, number)
  redis.call('ZADD', P .. 'holders', 'LT', ends, holder)
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

