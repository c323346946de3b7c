
-- The queue and the creation time of a job: in its record they follow its task and its payload. The payload is not decoded:
-- cmsgpack knows no binary type.
local LENGTHS = { [0xc4] = '>I1', [0xc5] = '>I2', [0xc6] = '>I4' }
local function parse(record)
  local _, head = string.find(record, '^%d+|%-?%d+|.')
  local payload = cmsgpack.unpack_one(record, string.byte(record, head) == 0xdc and head + 2 or head)
  local length, first = struct.unpack(LENGTHS[string.byte(record, payload + 1)], record, payload + 2)
  local _, queue, created = cmsgpack.unpack_limit(record, 2, first - 1 + length)
  return queue, tonumber(created)
end

local function queue_and_time(record)
  local is_readable, queue, created = pcall(parse, record)
  if is_readable and created then
    return queue, created
  end
  return false, 0  -- as Python shows a job that it cannot read
end

-- The creation time alone: the record of a plain job, an array of four, ends with it.
local function time_of(record)
  if string.find(record, '^%d+|%-?%d+|\148') and string.byte(record, -9) == 0xcf then
    return struct.unpack('>I8', record, #record - 7)
  end
  local _, created = queue_and_time(record)
  return created
end

-- The running jobs of a queue, or of all, between two positions; and their positions.
local function running_between(queue, first, last)
  local running, ids, positions = redis.call('HKEYS', P .. 'lease'), {}, {}
  for n, record in ipairs(many_read('HMGET', 'job', running)) do
    local position = tonumber(position_of(record) or 0)
    if position >= first and position <= last and (not queue or queue_and_time(record) == queue) then
      ids[#ids + 1], positions[#ids + 1] = running[n], position
    end
  end
  return ids, positions
end

-- The keys of the indexes that a source of jobs is made of.

local SOURCES = {}

function SOURCES.index(key)
  return { key }
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
  local keys = { queue = queue }
  for _, state in ipairs(states) do
    if state == 'running' then
      keys[#keys + 1] = 'lease'  -- of all queues, in no order: they are few
      keys.has_running = true
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

-- The keys of a source, and how many jobs they have.
local function keys_of(source)
  local keys, size = SOURCES[source[1]](unpack(source, 2)), 0
  for _, key in ipairs(keys) do
    size = size + redis.call(key == 'lease' and 'HLEN' or 'ZCARD', P .. key)
  end
  return keys, size
end

-- The source with the fewest jobs, or the one that an earlier call chose; how many it has, and its number.
local sources, best, size, chosen = {}, nil, nil, nil
for n, source in ipairs(ask.sources) do
  local keys, number = keys_of(source)
  sources[n] = keys
  if n == ask.chosen or not (ask.chosen or best and number >= size) then
    best, size, chosen = keys, number, n
  end
end

-- The first and the last position of a source's jobs.
local function span_of(keys)
  local first, last = math.huge, -1
  for _, key in ipairs(keys) do
    local low = redis.call('ZRANGE', P .. key, 0, 0, 'WITHSCORES')[2]
    if low then
      local high = redis.call('ZREVRANGE', P .. key, 0, 0, 'WITHSCORES')[2]
      first, last = math.min(first, tonumber(low)), math.max(last, tonumber(high))
    end
  end
  return first, last
end

-- The first and the last position to look at: all sources have jobs between them. Those that wait are as a rule the newest,
-- so that most jobs of a task or a schedule need not be looked at for them.
local FEW_KEYS = 40
local first, last = tonumber(ask.first), tonumber(ask.last)
for _, keys in ipairs(#sources > 1 and sources or {}) do
  if #keys <= FEW_KEYS and not keys.has_running then  -- running ones are in no order
    local low, high = span_of(keys)
    first, last = math.max(first, low), math.min(last, high)
  end
end

-- The indexes of the only other source, if they are few, and the chosen one is so short that Redis may intersect all of it
-- with each at once.
local SHORT, MOST_INTERSECTED = 20000, 4
local function other_indexes()
  local others = sources[best == sources[1] and 2 or 1]
  return size <= SHORT and #sources == 2 and #others <= MOST_INTERSECTED and not others.has_running and others
end

-- Divide jobs, by their numbers, into those for which a test of what a command says of them holds, and the others.
local function divide(ids, numbers, command, key, holds)
  local asked, kept, others = {}, {}, {}
  for at, n in ipairs(numbers) do
    asked[at] = ids[n]
  end
  local values = many_read(command, key, asked)
  for at, n in ipairs(numbers) do
    local value = values[at]
    if value and (not holds or holds(value, n)) then
      kept[#kept + 1] = n
    else
      others[#others + 1] = n
    end
  end
  return kept, others
end

-- Leave out those that none of these indexes has. A job is in one of them at most: the next index is asked only for those
-- that were not found yet.
local function keep_those_in(keys, ids, numbers)
  local kept, some, unknown = {}, nil, numbers
  for _, key in ipairs(keys) do
    if key ~= 'lease' then
      some, unknown = divide(ids, unknown, 'ZMSCORE', key)
    else  -- running jobs of all queues
      some, unknown = divide(ids, unknown, 'HMGET', key, keys.queue and function(_, n)
        return queue_and_time(redis.call('HGET', P .. 'job', ids[n])) == keys.queue
      end)
    end
    for _, n in ipairs(some) do
      kept[#kept + 1] = n
    end
  end
  table.sort(kept)
  return kept
end

-- Leave out those that were created at another time.
local function keep_those_of_time(ids, numbers)
  local since, till = tonumber(ask.since or '-inf'), tonumber(ask['until'] or 'inf')
  return divide(ids, numbers, 'HMGET', 'job', function(record)
    local created = time_of(record)
    return created >= since and created < till
  end)
end

-- Leave out those with fewer or more attempts; all of them are in the index of attempts.
local function keep_those_with_attempts(ids, numbers)
  local least, most = tonumber(ask.least_attempts), tonumber(ask.most_attempts or 'inf')
  return divide(ids, numbers, 'ZMSCORE', 'attempts', function(attempts)
    return tonumber(attempts) >= least and tonumber(attempts) <= most
  end)
end

-- Which of the jobs of the chosen source, in their order, the filter shows: their numbers. A source of more indexes than
-- `most_keys` is left to Python.
local function shown_of(ids)
  local numbers = {}
  for n = 1, #ids do
    numbers[n] = n
  end
  for _, keys in ipairs(sources) do
    if keys ~= best and #keys <= (ask.most_keys or math.huge) then
      numbers = keep_those_in(keys, ids, numbers)
    end
  end
  if ask.since or ask['until'] then
    numbers = keep_those_of_time(ids, numbers)
  end
  if ask.least_attempts then
    numbers = keep_those_with_attempts(ids, numbers)
  end
  return numbers
end
