-- Accept new jobs whose ids and keys are free, all or none. Where one is not, nothing is written and Python looks closer.

if not ask.now then  -- Python dated the jobs by what it knows of this clock: it must be right, and never ahead
  local behind = tonumber(NOW) - tonumber(ask.at)
  if behind < 0 or behind > 1000000 then
    return reply({ 'clock' })
  end
end
for _, record in ipairs(many_read('HMGET', 'job', ask.ids)) do
  if record then
    return reply({ 'there' })
  end
end
if #ask.keys > 0 then
  for _, holder in ipairs(many_read('HMGET', 'key', ask.keys)) do
    if holder then
      return reply({ 'there' })
    end
  end
  local taken = {}
  for n, key in ipairs(ask.keys) do
    taken[2 * n - 1], taken[2 * n] = key, ask.keyed[n]
  end
  many('HSET', 'key', taken)
end

local total = #ask.ids
local base = redis.call('INCRBY', P .. 'seq', total) - total
local records, seqs = {}, {}
local all, ids, sizes, reached = ask.records, ask.ids, ask.sizes, 0
for n = 1, total do
  local seq, size = string.format('%d', base + n), sizes[n]
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

local is_news = false
for _, line in ipairs(ask.lines) do
  is_news = put_in_line(line[1], line[2], in_order(line[3])) or is_news
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
for _, task in ipairs(ask.tasks) do
  redis.call('ZADD', P .. 'tasks', 0, task)
end
local known = redis.call('ZSCORE', P .. 'hours:last', ask.hour)
if not known or tonumber(known) < base + total then  -- rounded up, so that it seldom changes
  redis.call('ZADD', P .. 'hours:first', 'LT', base + 1, ask.hour)
  redis.call('ZADD', P .. 'hours:last', 'GT', math.ceil((base + total) / 1000) * 1000, ask.hour)
end
for name, number in pairs(ask.counts) do
  redis.call('HINCRBY', P .. 'count', name, number)
end
if is_news then
  ring('jobs')
end
return reply({ 'added' })
