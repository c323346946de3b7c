-- What every script begins with: its keys, the time, the seal, and what it takes to add, claim or settle a job.
-- Names come as data: KEYS[1] is "{namespace}:", the beginning of every key, so that all keys share one cluster slot.
-- ARGV: the schema version, the time or '', '1' for new work or ''; then what each script takes.

local P = KEYS[1]
local NOW = ARGV[2]
if NOW == '' then
  local time = redis.call('TIME')
  NOW = time[1] .. string.rep('0', 6 - #time[2]) .. time[2]  -- as text: no digit is lost
end

-- The version that open() wrote, and the seal. A version that is gone means that somebody emptied the server: it is
-- written again, and the reply says so.
local meta = redis.call('HMGET', P .. 'meta', 'version', 'seal', 'hour')
if not meta[1] then
  redis.call('HSET', P .. 'meta', 'version', ARGV[1])
end

local function reply(body)
  return { NOW, meta[1] and 0 or 1, meta[2], body }
end

if meta[2] and ARGV[3] ~= '' then
  return reply(false)  -- sealed: no new work
end

local function later(span)
  return string.format('%.0f', tonumber(NOW) + span)
end

-- Python dates new jobs by its estimate of the server's clock, which must be at most 1 s behind and never ahead.
local function is_dated_well(at)
  local behind = tonumber(NOW) - tonumber(at)
  return ARGV[2] ~= '' or (behind >= 0 and behind <= 1000000)
end

-- Record the first and last position of jobs created in this hour. The last is rounded up, so that it seldom changes.
local function index_hour(hour, first, last)
  local known, reached = string.match(meta[3] or '', '^(%d+)|(%d+)$')
  if known ~= hour or tonumber(reached) < last then
    reached = string.format('%d', math.ceil(last / 1000) * 1000)
    redis.call('ZADD', P .. 'hours:first', 'LT', first, hour)
    redis.call('ZADD', P .. 'hours:last', 'GT', reached, hour)
    redis.call('HSET', P .. 'meta', 'hour', hour .. '|' .. reached)
  end
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

