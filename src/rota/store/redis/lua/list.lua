-- Jobs newest first (or oldest first), from the index that has the fewest of them. Those that another index of the
-- filter lacks, and those of another time, are left out; Python filters by the other values.

local best = chosen_source(40)  -- a source of more indexes is left to Python
local other = ask.is_sparse and other_index()  -- of the jobs that were looked at before, hardly any is in it
local ids, positions, is_last = {}, {}, true
local lowest, highest = common_span(tonumber(ask.least), tonumber(ask.below) - 1)
local share = math.min(ask.count, math.max(100, math.ceil(2 * ask.count / #best)))  -- entries read of each index

local function is_before(one, other)
  if ask.is_rising then
    return one < other
  end
  return one > other
end

-- List no jobs beyond this position: more of an index were not read.
local function end_at(position)
  is_last = false
  if ask.is_rising then
    highest = math.min(highest, position)
  else
    lowest = math.max(lowest, position)
  end
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
  if number == ask.count then
    end_at(positions[number])
  end
end

local function read_index(key)
  local low, high = string.format('%.0f', lowest), string.format('%.0f', highest)
  local some
  if ask.is_rising then
    some = redis.call('ZRANGEBYSCORE', P .. key, low, high, 'WITHSCORES', 'LIMIT', 0, share)
  else
    some = redis.call('ZREVRANGEBYSCORE', P .. key, high, low, 'WITHSCORES', 'LIMIT', 0, share)
  end
  if #some == 2 * share then
    end_at(tonumber(some[#some]))
  end
  return some
end

-- Entries of running jobs, and those of an index that the other source has too, in the order of the list.
local function in_order(found)
  local entries = {}
  table.sort(found, function(one, other)
    return is_before(one[2], other[2])
  end)
  for _, one in ipairs(found) do
    entries[#entries + 1], entries[#entries + 2] = one[1], one[2]
  end
  return entries
end

local function read_both(key)
  local some, found = redis.call('ZINTER', 2, P .. key, P .. other, 'WEIGHTS', 1, 0, 'WITHSCORES'), {}
  for n = 1, #some, 2 do
    local position = tonumber(some[n + 1])
    if position >= lowest and position <= highest then
      found[#found + 1] = { some[n], position }
    end
  end
  return in_order(found)
end

for _, key in ipairs(best) do
  if key == 'lease' then
    merge(in_order(running_between(best.queue, lowest, highest)))
  elseif other and redis.call('ZCARD', P .. key) <= SHORT then
    merge(read_both(key))
  else
    merge(read_index(key))
  end
end
for n = #ids, 1, -1 do
  if positions[n] < lowest or positions[n] > highest then
    ids[n] = nil
  end
end
local shown, numbers, last = {}, shown_of(ids), #ids
for n, number in ipairs(numbers) do
  if ask.most and n > ask.most then
    last, is_last = numbers[n - 1], false  -- the page is full, and the rest is left for another
    break
  end
  shown[n] = ids[number]
end
return reply({ raw_jobs(shown), string.format('%.0f', positions[last] or 0), is_last })
