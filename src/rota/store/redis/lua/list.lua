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
  if string.sub(key, 1, 5) == 'task:' then  -- what stands in sheaves is counted, not its sheaves
    return redis.call('ZCARD', P .. key) + (redis.call('HGET', P .. 'batch:jobs', string.sub(key, 6)) or 0)
  end
  local queue, state = string.match(key, '^in:(.*):([^:]*)$')
  if string.sub(key, 1, 6) == 'ready:' then
    queue, state = string.match(key, '^ready:(.*):'), 'queued'  -- of all its priorities: never too few
  end
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

local function text(place)
  return string.format('%.0f', place)
end

local function comes_first(one, other)
  if ask.is_rising then
    return one[1] < other[1]
  end
  return one[1] > other[1]
end

-- Of more than a page its end is cut off, and what could only come behind it is not looked for any more.
local function narrow()
  if #found < ask.count then
    return
  end
  table.sort(found, comes_first)
  for n = #found, ask.count + 1, -1 do
    found[n] = nil
  end
  if ask.is_rising then
    highest = found[#found][1] + 1
  else
    lowest = found[#found][1]
  end
end

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

-- A sheaf of ended jobs stands by its last place, and all its places lie within a span: some that begin above the
-- highest reach below.
local function look_above(key)
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', P .. key, text(highest), text(highest + ask.span))) do
    if is_sheaf(name) then
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
      'ZREVRANGEBYSCORE', P .. key, '(' .. text(highest), text(lowest), 'WITHSCORES', 'LIMIT', reached, ask.step)
    for n = 1, #some, 2 do
      if is_sheaf(some[n]) then
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

local function look_at_running(key)
  local running = redis.call('HKEYS', P .. key)
  local records = #running > 0 and many_read('HMGET', 'job', running) or {}
  for n, id in ipairs(running) do
    consider(tonumber(place_of(records[n]) or 0), id)
  end
end

-- Entries of an index by their places, in the order of the list.
local function entries_of(key, skipped, number)
  if ask.is_rising then
    return redis.call(
      'ZRANGEBYSCORE', P .. key, text(lowest), '(' .. text(highest), 'WITHSCORES', 'LIMIT', skipped, number)
  end
  return redis.call(
    'ZREVRANGEBYSCORE', P .. key, '(' .. text(highest), text(lowest), 'WITHSCORES', 'LIMIT', skipped, number)
end

local function look_at(key)
  local some = entries_of(key, 0, ask.count)
  for n = 1, #some, 2 do
    found[#found + 1] = { tonumber(some[n + 1]), some[n] }
  end
end

local function keep_living(ids, places)
  local there, seqs = living(ids, places)
  for n, id in ipairs(there) do
    found[#found + 1] = { seqs[n], id }
  end
end

-- The jobs of a batch that are there, in the order of the list, as long as some are wanted.
local function look_into(home, name, wanted)
  local ids, places = unpack_batch(home, name)
  local before = tonumber(string.sub(name, 2)) - #ids
  local from, to, step = #ids, 1, -1
  if ask.is_rising then
    from, to, step = 1, #ids, 1
  end
  local some, at = {}, {}
  for n = from, to, step do
    local place = places and places[n] or before + n
    if place < highest and place >= lowest then
      some[#some + 1], at[#at + 1] = ids[n], place
    end
    if #some == ask.count then
      keep_living(some, at)
      some, at = {}, {}
      if #found >= wanted then
        return
      end
    end
  end
  keep_living(some, at)
end

-- A batch that ends at the highest place or above it may begin below: none but the first, where that is near enough.
local function across(key)
  local name = redis.call('ZRANGEBYSCORE', P .. key, text(highest), '+inf', 'LIMIT', 0, 1)[1]
  return is_sheaf(name) and string.sub(name, 2) - ask.span < highest and name
end

local function look_across(key, home, wanted)
  local name = across(key)
  if name then
    look_into(home, name, wanted)
  end
end

-- Jobs stand alone, or in their batch. No other stands between those of a batch, so entries are gone through in their
-- order, until there are enough.
local function look_along(key, home, wanted)
  local reached, number = 0, ask.step
  while #found < wanted do
    local some = entries_of(key, reached, number)
    for n = 1, #some, 2 do
      if #found >= wanted then
        return
      end
      if is_sheaf(some[n]) then
        look_into(home, some[n], wanted)
      else
        found[#found + 1] = { tonumber(some[n + 1]), some[n] }
      end
    end
    if #some < 2 * number then
      return
    end
    reached, number = reached + number, math.min(2 * number, 1000)
  end
end

local function look_at_batches(key, home)
  local wanted = #found + ask.count
  if not ask.is_rising then
    look_across(key, home, wanted)
  end
  look_along(key, home, wanted)
  if ask.is_rising and #found < wanted then
    look_across(key, home, wanted)
  end
end

-- Where there are many indexes, those that begin the list come first: the others have little to add then.
local function sort_by_beginning(keys)
  local ranks, last = {}, ask.is_rising and math.huge or -math.huge
  for _, key in ipairs(keys) do
    if key == 'lease' then
      ranks[key] = -last
    else
      ranks[key] = not ask.is_rising and across(key) and highest or tonumber(entries_of(key, 0, 1)[2] or last)
    end
  end
  table.sort(keys, function(one, other)
    return comes_first({ ranks[one] }, { ranks[other] })
  end)
end

if #best > 1 then
  sort_by_beginning(best)
end
for _, key in ipairs(best) do
  if key == 'lease' then
    look_at_running(key)
  elseif string.sub(key, 1, 5) == 'task:' then
    look_at_batches(key, 'batch')
  elseif string.sub(key, 1, 6) == 'ready:' then
    look_at_batches(key, 'line')
  elseif string.sub(key, -10) == ':succeeded' then
    look_above(key)
    look_below(key)
  else
    look_at(key)
  end
  narrow()
end
table.sort(found, comes_first)
local ids = {}
for n = 1, math.min(#found, ask.count) do
  ids[n] = found[n][2]
end
return reply({ raw_jobs(ids), #ids > 0 and string.format('%.0f', found[#ids][1]) or '0' })
