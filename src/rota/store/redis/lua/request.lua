-- What a script with a request begins with: the request, commands with any number of values, and how jobs are read.

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
  if not record then
    return nil
  end
  return string.match(record, '^(%d+)|(%-?%d+)|')
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

