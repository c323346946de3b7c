-- Accepting new jobs whose ids, keys and slots are known to be free: what scripts that add jobs have in common.

ask.ids = cmsgpack.unpack(ask.packed_ids)

-- Python dated the jobs by what it knows of the server's clock: it must be right, and never ahead.
local function is_dated_well()
  if ask.now then
    return true
  end
  local behind = tonumber(NOW) - tonumber(ask.at)
  return behind >= 0 and behind <= 1000000
end

local function holders_of_keys()
  return #ask.keys > 0 and many_read('HMGET', 'key', ask.keys) or {}
end

-- The live jobs of schedules that allow no overlap, by schedule.
local function holders_of_slots()
  return #ask.busy > 0 and many_read('HMGET', 'busy', ask.busy) or {}
end

local function take(home, names, ids)
  local taken = {}
  for n, name in ipairs(names) do
    taken[2 * n - 1], taken[2 * n] = name, ids[n]
  end
  many('HSET', home, taken)
end

local function note_hour(first, last)
  local known = redis.call('ZSCORE', P .. 'hours:last', ask.hour)
  -- The last is rounded up, so that it seldom changes; reserved places may lie before the hour's first.
  if ask.seats or not known or tonumber(known) < last then
    redis.call('ZADD', P .. 'hours:first', 'LT', first, ask.hour)
    redis.call('ZADD', P .. 'hours:last', 'GT', math.ceil(last / 1000) * 1000, ask.hour)
  end
end

-- Jobs that were added together and are ready stand in line in sheaves of a bounded size, packed likewise.
local function line_up(queue, priority, sheaves)
  many('HSET', 'line', sheaves)
  local entries = {}
  for n = 1, #sheaves, 2 do
    entries[n], entries[n + 1] = string.sub(sheaves[n], 2), sheaves[n]
  end
  return put_in_line(queue, priority, entries)
end

-- Jobs of a task that were added together are one entry of its index, by the last of their places: a sheaf, packed as
-- {ids, places}, the places being left out where each is the next. It is called by its last place, which nobody shares.
local function index_batch(task, packed, number, last)
  local name = SHEAF .. last
  redis.call('HSET', P .. 'batch', name, packed)
  redis.call('HSET', P .. 'batch:left', name, number)
  redis.call('HINCRBY', P .. 'batch:jobs', task, number)
  redis.call('ZADD', P .. 'task:' .. task, last, name)
end

local function accept_jobs()
  local ids, total, seats = ask.ids, #ask.ids, ask.seats  -- places in line that were reserved, or else the next ones
  local base = seats and 0 or redis.call('INCRBY', P .. 'seq', total) - total
  local records, seqs = {}, {}
  local all, sizes, reached = ask.records, ask.sizes, 0
  for n = 1, total do
    local seq, size = string.format('%d', seats and seats[n] or base + n), sizes[n]
    seqs[n] = seq
    records[2 * n - 1] = ids[n]
    records[2 * n] = seq .. string.sub(all, reached + 1, reached + size)
    reached = reached + size
  end
  many('HSET', 'job', records)

  -- Groups of jobs by their numbers in this call (false: all of them): their place in line is their score.
  local whole
  local function in_order(numbers)
    if not numbers and whole then
      return whole
    end
    local entries = {}
    if not numbers then
      for n = 1, total do
        entries[2 * n - 1], entries[2 * n] = seqs[n], ids[n]
      end
      whole = entries
      return whole
    end
    for n, number in ipairs(numbers) do
      entries[2 * n - 1], entries[2 * n] = seqs[number], ids[number]
    end
    return entries
  end

  local function pack_some(numbers, first, last)
    local some, places = {}, {}
    for n = first, last do
      some[#some + 1], places[#places + 1] = ids[numbers[n]], base + numbers[n]
    end
    return cmsgpack.pack(some, places)
  end

  -- {name, packed …}: packed as they came where it is all of them.
  local function sheaves_of(numbers)
    local sheaves, size = {}, ask.line_sheaf
    for n = 1, math.ceil((numbers and #numbers or total) / size) do
      local first, last = (n - 1) * size + 1, math.min(n * size, numbers and #numbers or total)
      sheaves[2 * n - 1] = SHEAF .. seqs[numbers and numbers[last] or last]
      sheaves[2 * n] = numbers and pack_some(numbers, first, last) or ask.pieces[n]
    end
    return sheaves
  end

  local function may_bind(numbers)
    local number = numbers and #numbers or total
    return not seats and number >= ask.least_sheaf and total <= ask.span  -- reserved places may have others in between
  end

  local is_news = false
  for _, line in ipairs(ask.lines) do
    local queue, priority, numbers = unpack(line)
    if may_bind(numbers) then
      is_news = line_up(queue, priority, sheaves_of(numbers)) or is_news
    else
      is_news = put_in_line(queue, priority, in_order(numbers)) or is_news
    end
  end
  for _, wait in ipairs(ask.waits) do
    is_news = put_in_wait(wait[1], wait[2]) or is_news
  end
  for key, numbers in pairs(ask.places) do
    many('ZADD', key, in_order(numbers))
  end
  for key, entries in pairs(ask.scored) do
    many('ZADD', key, entries)
  end
  for _, kind in ipairs(ask.tasks) do
    local task, numbers = kind[1], kind[2]
    local number = numbers and #numbers or total
    redis.call('ZADD', P .. 'tasks', 0, task)
    if not may_bind(numbers) then
      many('ZADD', 'task:' .. task, in_order(numbers))
    elseif numbers then
      index_batch(task, pack_some(numbers, 1, number), number, seqs[numbers[number]])
    else
      index_batch(task, ask.packed_ids, number, seqs[total])
    end
  end
  note_hour(tonumber(seqs[1]), tonumber(seqs[total]))
  for name, number in pairs(ask.counts) do
    redis.call('HINCRBY', P .. 'count', name, number)
  end
  take('key', ask.keys, ask.keyed)
  take('busy', ask.busy, ask.slotted)
  if is_news then
    notify('jobs')
  end
end
