-- Jobs newest first (or oldest first), from the index that has the fewest of them. Those that another index of the
-- filter lacks, and those of another time, are left out; Python filters by the other values.

local others = ask.is_sparse and other_indexes()  -- of the jobs that were looked at before, hardly any is in it
local share = math.min(ask.count, math.max(100, math.ceil(2 * ask.count / #best)))  -- entries read of each index
local ids, ranks, is_last = {}, {}, true  -- a rank is a position, or below 0 if the oldest come first
local lowest, highest, sign = first, last, 1
if ask.is_rising then
  sign, lowest, highest = -1, -highest, -lowest
end

-- Merge entries {id, position …}, which are in order, with those before, and cut off what is more than a page: entries
-- that come after its end are not read from other indexes.
local function merge(some)
  local all_ids, all_ranks, number, here, there = {}, {}, 0, 1, 1
  while number < ask.count and (ids[here] or some[there]) do
    number = number + 1
    local rank = some[there] and sign * some[there + 1]
    if not rank or (ids[here] and ranks[here] > rank) then
      all_ids[number], all_ranks[number] = ids[here], ranks[here]
      here = here + 1
    else
      all_ids[number], all_ranks[number] = some[there], rank
      there = there + 2
    end
  end
  ids, ranks = all_ids, all_ranks
  if number == ask.count then
    lowest, is_last = math.max(lowest, ranks[number]), false
  end
end

-- The first entries of an index; jobs that come after them are not listed, if there are more.
local function read_index(key)
  local command = ask.is_rising and 'ZRANGEBYSCORE' or 'ZREVRANGEBYSCORE'
  local some = redis.call(
    command, P .. key, text(sign * highest), text(sign * lowest), 'WITHSCORES', 'LIMIT', 0, share)
  if #some == 2 * share then
    lowest, is_last = sign * some[#some], false
  end
  return some
end

-- Entries of jobs, in the order of the list.
local function in_order(some, positions)
  local numbers, entries = {}, {}
  for n, position in ipairs(positions) do
    if sign * position >= lowest and sign * position <= highest then
      numbers[#numbers + 1] = n
    end
  end
  table.sort(numbers, function(one, other)
    return sign * positions[one] > sign * positions[other]
  end)
  for at, n in ipairs(numbers) do
    entries[2 * at - 1], entries[2 * at] = some[n], positions[n]
  end
  return entries
end

-- The jobs of an index that the other source has too: the server intersects them.
local function read_both(key)
  local ids, positions = {}, {}
  for _, other in ipairs(others) do
    local some = redis.call('ZINTER', 2, P .. key, P .. other, 'WEIGHTS', 1, 0, 'WITHSCORES')
    for n = 1, #some, 2 do
      ids[#ids + 1], positions[#ids + 1] = some[n], tonumber(some[n + 1])
    end
  end
  return in_order(ids, positions)
end

for _, key in ipairs(best) do
  if key == 'lease' then
    merge(in_order(running_between(best.queue, 0, math.huge)))
  elseif others then
    merge(read_both(key))
  else
    merge(read_index(key))
  end
end
while #ids > 0 and ranks[#ids] < lowest do
  ids[#ids] = nil
end
local shown, numbers, reached = {}, shown_of(ids), #ids
for n, number in ipairs(numbers) do
  if ask.most and n > ask.most then
    reached, is_last = numbers[n - 1], false  -- the page is full, and the rest is left for another
    break
  end
  shown[n] = ids[number]
end
return reply({ raw_jobs(shown), text(sign * (ranks[reached] or 0)), is_last })
