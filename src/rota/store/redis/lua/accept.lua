-- Accept new jobs whose ids, keys and slots are known to be free: shared by the scripts that add jobs.

-- Python dates the jobs by its estimate of the server's clock, which must be at most 1 s behind and never ahead.
local function is_dated_well()
  local behind = tonumber(NOW) - tonumber(ask.at)
  return ask.now or (behind >= 0 and behind <= 1000000)
end

-- Record the first and last position of jobs created in this hour. The last is rounded up, so that it seldom changes.
local function index_hour(first, last)
  local known = redis.call('ZSCORE', P .. 'hours:last', ask.hour)
  if not known or tonumber(known) < last then
    redis.call('ZADD', P .. 'hours:first', 'LT', first, ask.hour)
    redis.call('ZADD', P .. 'hours:last', 'GT', math.ceil(last / 1000) * 1000, ask.hour)
  end
end

local function accept_jobs()
  local ids, sizes, total = ask.ids, ask.records_sizes, #ask.ids
  local base = redis.call('INCRBY', P .. 'seq', total) - total
  local records, positions, reached = {}, {}, 0
  for n = 1, total do
    positions[n] = string.format('%d', base + n)
    records[2 * n - 1] = ids[n]
    records[2 * n] = positions[n] .. string.sub(ask.records, reached + 1, reached + sizes[n])
    reached = reached + sizes[n]
  end
  many('HSET', 'job', records)
  for key, numbers in pairs(ask.by_position) do
    local entries = {}
    for n, number in ipairs(numbers) do
      entries[2 * n - 1], entries[2 * n] = positions[number], ids[number]
    end
    many('ZADD', key, entries)
  end
  local has_news = false
  for key, entries in pairs(ask.by_time) do
    local is_first = add_by_time(key, entries)
    has_news = has_news or (is_first and string.sub(key, 1, 4) == 'due:')
  end
  for _, one in ipairs(ask.priorities) do
    has_news = add_priority(one[1], one[2]) or has_news
  end
  many('ZADD', 'tasks', ask.tasks)
  index_hour(base + 1, base + total)
  for name, number in pairs(ask.counts) do
    redis.call('HINCRBY', P .. 'count', name, number)
  end
  many('HSET', 'key', ask.keys)
  many('HSET', 'busy', ask.slots)
  if has_news then
    notify('jobs')
  end
end

-- The holders of what is to be taken ({name, id, name, id …}), and false where it is free.
local function holders_of(home, taken)
  local names = {}
  for n = 1, #taken, 2 do
    names[#names + 1] = taken[n]
  end
  return #names > 0 and many_read('HMGET', home, names) or {}
end
