-- Jobs newest first (or oldest first), by the index that has the fewest of them; what it does not know, Python filters.

local function prefixed(prefix)
  if prefix == '' then
    return redis.call('ZRANGE', P .. 'tasks', 0, -1)
  end
  return redis.call('ZRANGEBYLEX', P .. 'tasks', '[' .. prefix, '[' .. prefix .. '\255')
end

local function queues()
  local names, seen = {}, {}
  for _, name in ipairs(redis.call('HKEYS', P .. 'count')) do
    local queue = string.match(name, '^(.*)|[^|]*$')
    if queue and not seen[queue] then
      seen[queue] = true
      names[#names + 1] = queue
    end
  end
  return names
end

local SOURCES = {}

function SOURCES.task(name)
  return { 'task:' .. name }
end

function SOURCES.tasks(prefix)
  local keys = {}
  for n, task in ipairs(prefixed(prefix)) do
    keys[n] = 'task:' .. task
  end
  return keys
end

function SOURCES.schedule(name)
  return { 'made:' .. name }
end

function SOURCES.states(queue, states)
  local keys = {}
  for _, name in ipairs(queue and { queue } or queues()) do
    for _, state in ipairs(states) do
      if state == 'queued' then
        for _, priority in ipairs(redis.call('ZRANGE', P .. 'priorities:' .. name, 0, -1)) do
          keys[#keys + 1] = 'ready:' .. name .. ':' .. priority
        end
      elseif state ~= 'running' then
        keys[#keys + 1] = 'in:' .. name .. ':' .. state
      end
    end
  end
  for _, state in ipairs(states) do
    if state == 'running' then
      keys[#keys + 1] = 'lease'  -- of all queues, in no order: they are few
    end
  end
  return keys
end

local function number_in(key)
  if key == 'lease' then
    return redis.call('HLEN', P .. key)
  end
  local queue, state = string.match(key, '^in:(.*):([^:]*)$')  -- what stands in sheaves is counted, not its sheaves
  return queue and tonumber(redis.call('HGET', P .. 'count', queue .. '|' .. state) or 0) or redis.call('ZCARD', P .. key)
end

local function size_of(keys)
  local size = 0
  for _, key in ipairs(keys) do
    size = size + number_in(key)
  end
  return size
end

local best, fewest
for _, source in ipairs(ask.sources) do
  local keys = SOURCES[source[1]](unpack(source, 2))
  local size = size_of(keys)
  if not best or size < fewest then
    best, fewest = keys, size
  end
end

local found = {}
local highest, lowest = tonumber(ask.below), tonumber(ask.least)

local function consider(seq, id)
  if seq < highest and seq >= lowest then
    found[#found + 1] = { seq, id }
  end
end

local function open_sheaf(name)
  local packed = redis.call('HGET', P .. 'sheaf', name)
  local _, ids, seqs = unpack(packed and cmsgpack.unpack(packed) or { '', {}, {} })
  local records = #ids > 0 and redis.call('HMGET', P .. 'job', unpack(ids)) or {}
  for n, id in ipairs(ids) do
    if tonumber(place_of(records[n]) or -1) == seqs[n] then  -- else it is gone, or it is another of that name
      consider(seqs[n], id)
    end
  end
end

-- A sheaf stands by its last place, and all its places lie within a span: some that begin above the highest reach below.
local function look_above(key)
  local last = string.format('%.0f', highest + ask.span)
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', P .. key, ask.below, last)) do
    if string.sub(name, 1, 1) == SHEAF then
      open_sheaf(name)
    end
  end
end

-- How many of those that were found stand at a place or above it.
local function number_above(place)
  local number = 0
  for _, one in ipairs(found) do
    number = number + (one[1] >= place and 1 or 0)
  end
  return number
end

local function look_below(key)
  local before, reached = #found, 0
  while true do
    local some = redis.call(
      'ZREVRANGEBYSCORE', P .. key, '(' .. ask.below, ask.least, 'WITHSCORES', 'LIMIT', reached, ask.step)
    for n = 1, #some, 2 do
      if string.sub(some[n], 1, 1) == SHEAF then
        open_sheaf(some[n])
      else
        found[#found + 1] = { tonumber(some[n + 1]), some[n] }
      end
    end
    reached = reached + #some / 2
    if #some < 2 * ask.step or (#found - before >= ask.count and number_above(tonumber(some[#some])) >= ask.count) then
      return
    end
  end
end

for _, key in ipairs(best) do
  if key == 'lease' then
    local running = redis.call('HKEYS', P .. key)
    local records = #running > 0 and many_read('HMGET', 'job', running) or {}
    for n, id in ipairs(running) do
      consider(tonumber(place_of(records[n]) or 0), id)
    end
  elseif string.sub(key, -10) == ':succeeded' then
    look_above(key)
    look_below(key)
  else
    local some
    if ask.is_rising then
      some = redis.call(
        'ZRANGEBYSCORE', P .. key, ask.least, '(' .. ask.below, 'WITHSCORES', 'LIMIT', 0, ask.count)
    else
      some = redis.call(
        'ZREVRANGEBYSCORE', P .. key, '(' .. ask.below, ask.least, 'WITHSCORES', 'LIMIT', 0, ask.count)
    end
    for n = 1, #some, 2 do
      found[#found + 1] = { tonumber(some[n + 1]), some[n] }
    end
  end
end
table.sort(found, function(one, other)
  if ask.is_rising then
    return one[1] < other[1]
  end
  return one[1] > other[1]
end)
local ids = {}
for n = 1, math.min(#found, ask.count) do
  ids[n] = found[n][2]
end
return reply({ raw_jobs(ids), #ids > 0 and string.format('%.0f', found[#ids][1]) or '0' })
