-- How many jobs a filter shows between two positions. If one index alone has them, its size is the answer. Otherwise each
-- job is looked at, up to so many: the reply says which index was read, and how far. A short index of which more than these
-- are between the positions is intersected with the others by Redis itself, which takes a tenth of that time.

local BUDGET, AT_ONCE, SHORT = 2000, 1000, 20000

local best = chosen_source()
table.sort(best)
local first, last = ask.first, ask.last
if #sources > 1 then
  local low, high = common_span(tonumber(first), tonumber(last))
  if low > high then
    return reply({ 0, false, false })
  end
  first, last = string.format('%.0f', low), string.format('%.0f', high)
end
local number, left = 0, BUDGET

local function count_running()
  local ids, positions = {}, {}
  for n, one in ipairs(running_between(best.queue, tonumber(first), tonumber(last))) do
    ids[n], positions[n] = one[1], one[2]
  end
  number = number + #shown_of(ids, positions)
end

-- Look at the jobs of an index from a position on; the first that is left, if there are too many.
local function look(key, from)
  while left > 0 do
    local some = redis.call('ZRANGEBYSCORE', P .. key, from, last, 'WITHSCORES', 'LIMIT', 0, AT_ONCE)
    local ids, positions = {}, {}
    for n = 1, #some / 2 do
      ids[n], positions[n] = some[2 * n - 1], tonumber(some[2 * n])
    end
    number, left = number + #shown_of(ids, positions), left - #ids
    if #some < 2 * AT_ONCE then
      return nil
    end
    from = '(' .. some[#some]
  end
  return from
end

-- The keys of the other source, if there is one alone and Redis can intersect them.
local function other_keys()
  local other = sources[best == sources[1] and 2 or 1]
  if #sources == 2 and not (other.has_running or ask.since or ask['until'] or ask.least_attempts) then
    return other
  end
end

-- How many jobs of an index the other source has: each is in one of its indexes at most.
local function count_in_both(key, others)
  for _, other in ipairs(others) do
    number = number + #redis.call('ZINTER', 2, P .. key, P .. other)
  end
end

local others = other_keys()
for _, key in ipairs(best) do
  if not ask.key or key >= ask.key then
    if key == 'lease' then
      count_running()
    elseif ask.is_by_size then
      number = number + redis.call('ZCOUNT', P .. key, first, last)
    elseif others and key ~= ask.key and redis.call('ZCARD', P .. key) <= SHORT and redis.call('ZCOUNT', P .. key, first, last) > BUDGET then
      count_in_both(key, others)
    else
      local from = look(key, key == ask.key and ask.from or first)
      if from then
        return reply({ number, key, from })
      end
    end
  end
end
return reply({ number, false, false })
