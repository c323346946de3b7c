-- Jobs newest first (or oldest first), from the index that has the fewest of them. Those that another index of the
-- filter lacks, and those of another time, are left out; Python filters by the other values.

local best = chosen_source(40)  -- a source of more indexes is left to Python
local ids, positions = {}, {}
local lowest, highest = common_span(tonumber(ask.least), tonumber(ask.below) - 1)
highest = highest + 1  -- the first that is too high

local function is_before(one, other)
  if ask.is_rising then
    return one < other
  end
  return one > other
end

-- Merge entries {id, position …}, which are in order, with those before, and cut off what is more than a page: entries
-- that come after its end are not read from other indexes.
local function merge(some)
  local all_ids, all_positions, number, here, there = {}, {}, 0, 1, 1
  while number < ask.count and (ids[here] or some[there]) do
    number = number + 1
    local position = tonumber(some[there + 1])
    if not position or (ids[here] and is_before(positions[here], position)) then
      all_ids[number], all_positions[number] = ids[here], positions[here]
      here = here + 1
    else
      all_ids[number], all_positions[number] = some[there], position
      there = there + 2
    end
  end
  ids, positions = all_ids, all_positions
  if number == ask.count and ask.is_rising then
    highest = positions[number] + 1
  elseif number == ask.count then
    lowest = positions[number]
  end
end

local function read_index(key)
  local low, high = string.format('%.0f', lowest), string.format('(%.0f', highest)
  if ask.is_rising then
    return redis.call('ZRANGEBYSCORE', P .. key, low, high, 'WITHSCORES', 'LIMIT', 0, ask.count)
  end
  return redis.call('ZREVRANGEBYSCORE', P .. key, high, low, 'WITHSCORES', 'LIMIT', 0, ask.count)
end

local function read_running()
  local found = running_between(best.queue, lowest, highest - 1)
  table.sort(found, function(one, other)
    return is_before(one[2], other[2])
  end)
  local entries = {}
  for _, one in ipairs(found) do
    entries[#entries + 1], entries[#entries + 2] = one[1], one[2]
  end
  return entries
end

for _, key in ipairs(best) do
  merge(key == 'lease' and read_running() or read_index(key))
end
local shown, numbers = {}, shown_of(ids, positions)
local last = #ids
for n, number in ipairs(numbers) do
  if ask.most and n > ask.most then
    last = numbers[n - 1]  -- the page is full, and the rest is left for another
    break
  end
  shown[n] = ids[number]
end
local reached = last > 0 and string.format('%.0f', positions[last]) or '0'
return reply({ raw_jobs(shown), reached, last < #ids and ask.count or #ids })
