-- Jobs newest first (or oldest first), from the index that has the fewest of them; Python filters by the other values.

local SOURCES = {}

function SOURCES.task(name)
  return { 'task:' .. name }
end

function SOURCES.schedule(name)
  return { 'made:' .. name }
end

function SOURCES.tasks(prefix)
  local first, last = '-', '+'
  if prefix ~= '' then
    first, last = '[' .. prefix, '[' .. prefix .. '\255'
  end
  local keys = {}
  for n, task in ipairs(redis.call('ZRANGEBYLEX', P .. 'tasks', first, last)) do
    keys[n] = 'task:' .. task
  end
  return keys
end

function SOURCES.states(queue, states)
  local keys = {}
  for _, state in ipairs(states) do
    if state == 'running' then
      keys[#keys + 1] = 'lease'  -- of all queues, in no order: they are few
    else
      for _, name in ipairs(queue and { queue } or queue_names()) do
        if state == 'queued' then
          for _, priority in ipairs(redis.call('ZRANGE', P .. 'priorities:' .. name, 0, -1)) do
            keys[#keys + 1] = 'ready:' .. name .. ':' .. priority
          end
        else
          keys[#keys + 1] = 'in:' .. name .. ':' .. state
        end
      end
    end
  end
  return keys
end

local best, fewest
for _, source in ipairs(ask.sources) do
  local keys, size = SOURCES[source[1]](unpack(source, 2)), 0
  for _, key in ipairs(keys) do
    size = size + redis.call(key == 'lease' and 'HLEN' or 'ZCARD', P .. key)
  end
  if not best or size < fewest then
    best, fewest = keys, size
  end
end

local found = {}
local highest, lowest = tonumber(ask.below), tonumber(ask.least)

local function read_index(key)
  local low, high = string.format('%.0f', lowest), string.format('(%.0f', highest)
  local command = { 'ZREVRANGEBYSCORE', P .. key, high, low, 'WITHSCORES', 'LIMIT', 0, ask.count }
  if ask.is_rising then
    command[1], command[3], command[4] = 'ZRANGEBYSCORE', low, high
  end
  local some = redis.call(unpack(command))
  for n = 1, #some, 2 do
    found[#found + 1] = { tonumber(some[n + 1]), some[n] }
  end
end

local function read_running()
  local running = redis.call('HKEYS', P .. 'lease')
  for n, record in ipairs(#running > 0 and many_read('HMGET', 'job', running) or {}) do
    local position = tonumber(position_of(record) or 0)
    if position < highest and position >= lowest then
      found[#found + 1] = { position, running[n] }
    end
  end
end

-- Cut off what is more than a page; entries that come after its end are not read from other indexes.
local function narrow()
  table.sort(found, function(one, other)
    if ask.is_rising then
      return one[1] < other[1]
    end
    return one[1] > other[1]
  end)
  for n = #found, ask.count + 1, -1 do
    found[n] = nil
  end
  if #found == ask.count and ask.is_rising then
    highest = found[#found][1] + 1
  elseif #found == ask.count then
    lowest = found[#found][1]
  end
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
