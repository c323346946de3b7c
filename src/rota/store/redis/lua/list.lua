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

local function size_of(keys)
  local size = 0
  for _, key in ipairs(keys) do
    size = size + redis.call(key == 'lease' and 'HLEN' or 'ZCARD', P .. key)
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

local function comes_first(one, other)
  if ask.is_rising then
    return one[1] < other[1]
  end
  return one[1] > other[1]
end

-- The first entries of an index between the two positions, in the order of the list.
local function entries_of(key, number)
  local low, high = string.format('%.0f', lowest), string.format('(%.0f', highest)
  if ask.is_rising then
    return redis.call('ZRANGEBYSCORE', P .. key, low, high, 'WITHSCORES', 'LIMIT', 0, number)
  end
  return redis.call('ZREVRANGEBYSCORE', P .. key, high, low, 'WITHSCORES', 'LIMIT', 0, number)
end

local function read_index(key)
  local some = entries_of(key, ask.count)
  for n = 1, #some, 2 do
    found[#found + 1] = { tonumber(some[n + 1]), some[n] }
  end
end

local function read_running()
  local running = redis.call('HKEYS', P .. 'lease')
  local records = #running > 0 and many_read('HMGET', 'job', running) or {}
  for n, id in ipairs(running) do
    local position = tonumber(position_of(records[n]) or 0)
    if position < highest and position >= lowest then
      found[#found + 1] = { position, id }
    end
  end
end

-- Cut off what is more than a page; entries that come after its end are not read from other indexes.
local function narrow()
  table.sort(found, comes_first)
  for n = #found, ask.count + 1, -1 do
    found[n] = nil
  end
  if #found == ask.count and ask.is_rising then
    highest = found[#found][1] + 1
  elseif #found == ask.count then
    lowest = found[#found][1]
  end
end

-- Of many indexes, those with the first entries are read first: then the others have few to add.
local function sort_by_first_entry(keys)
  local ranks = {}
  for _, key in ipairs(keys) do
    local first = key ~= 'lease' and tonumber(entries_of(key, 1)[2])
    ranks[key] = first or (ask.is_rising and math.huge or -math.huge)
  end
  table.sort(keys, function(one, other)
    return comes_first({ ranks[one] }, { ranks[other] })
  end)
end

if #best > 1 then
  sort_by_first_entry(best)
end
for _, key in ipairs(best) do
  if key == 'lease' then
    read_running()
  else
    read_index(key)
  end
  narrow()
end
local ids = {}
for n, one in ipairs(found) do
  ids[n] = one[2]
end
return reply({ raw_jobs(ids), #ids > 0 and string.format('%.0f', found[#ids][1]) or '0' })
