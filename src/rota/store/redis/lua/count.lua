-- How many jobs a filter shows between two positions, up to `most`. If one index alone has them, its size is the answer.
-- Otherwise each job is looked at, up to so many: the reply says which source and which of its indexes was read, and how
-- far. The next call goes on there, also if another source has fewer jobs by then. Two shortcuts take a tenth of that
-- time: Redis compares a short index with another itself; and in an index most of whose jobs are in a state that is asked
-- for, those in the others are looked for instead.

local WINDOW, SAMPLE = 2000, 100

table.sort(best)
local is_whole = first > tonumber(ask.first) and last < tonumber(ask.last)
local is_in_indexes = not (ask.since or ask['until'] or ask.least_attempts)  -- else records or attempts say what matches
local is_by_size = #sources == 1 and is_in_indexes
local others = is_in_indexes and other_indexes()
local rest = {}  -- the indexes of the states that are not asked for, if few jobs run: those are in no order
if ask.rest and #sources == 2 and best == sources[1] and is_in_indexes and redis.call('HLEN', P .. 'lease') < WINDOW then
  rest = SOURCES.states(false, ask.rest)
end
local number, left = 0, WINDOW

-- How many jobs of an index another has, by the server's own means. Those that it has, or those that it lacks: building
-- the answer is most of the time, and some jobs show which are fewer.
local function count_in_both(key, other)
  local found = 0
  for _, position in ipairs(redis.call('ZMSCORE', P .. other, unpack(redis.call('ZRANGE', P .. key, 0, SAMPLE - 1)))) do
    found = found + (position and 1 or 0)
  end
  if found > SAMPLE / 2 then
    return redis.call('ZCARD', P .. key) - #redis.call('ZDIFF', 2, P .. key, P .. other)
  end
  return #redis.call('ZINTER', 2, P .. key, P .. other)
end

-- The jobs of the other states between two positions, and all that run; nil if they are too many to gain from it.
local function rest_between(low, high)
  local ids = {}
  for _, key in ipairs(rest) do
    local some = key ~= 'lease' and redis.call('ZRANGEBYSCORE', P .. key, text(low), text(high), 'LIMIT', 0, WINDOW)
    for _, id in ipairs(some or redis.call('HKEYS', P .. key)) do
      ids[#ids + 1] = id
    end
    if #ids >= WINDOW then
      return nil
    end
  end
  return #rest > 0 and ids
end

-- Look at the jobs of an index from a position on; the first that is left, if there are too many.
local function look(key, low)
  while left > 0 and number < ask.most do
    local edge = redis.call('ZRANGEBYSCORE', P .. key, text(low), text(last), 'WITHSCORES', 'LIMIT', WINDOW - 1, 1)[2]
    local high = tonumber(edge or last)
    local few = edge and rest_between(low, high)
    if few then
      number, left = number + WINDOW, left - #few - #rest
      for _, position in ipairs(many_read('ZMSCORE', key, few)) do
        if position and tonumber(position) >= low and tonumber(position) <= high then
          number = number - 1
        end
      end
    else
      local ids = redis.call('ZRANGEBYSCORE', P .. key, text(low), text(high))
      number, left = number + #shown_of(ids), left - #ids
    end
    if not edge then
      return nil
    end
    low = high + 1
  end
  return low
end

for _, key in ipairs(first <= last and best or {}) do
  if not ask.key or key >= ask.key then
    if key == 'lease' then
      number = number + #shown_of(running_between(best.queue, first, last))
    elseif is_by_size then
      number = number + redis.call('ZCOUNT', P .. key, text(first), text(last))
    elseif others and is_whole and key ~= ask.key and redis.call('ZCARD', P .. key) > WINDOW then
      for _, other in ipairs(others) do
        number = number + count_in_both(key, other)
      end
    else
      local low = look(key, key == ask.key and tonumber(ask.from) or first)
      if low then
        return reply({ number, key, text(low), chosen })
      end
    end
  end
end
return reply({ number, false, false, false })
