-- Batches: sheaves of jobs that were added together, in a task's index (`batch`) and in a line (`line`). A sheaf's name
-- tells the last of its places, by which it stands. No other job of that index stands between those of a sheaf.

local function is_sheaf(name)
  return name and string.sub(name, 1, 1) == SHEAF
end

-- The ids of a sheaf, and their places unless each is the next.
local function unpack_batch(home, name)
  local packed = redis.call('HGET', P .. home, name)
  if not packed then
    return {}, {}
  end
  return cmsgpack.unpack(packed)
end

local function open_batch(home, name)
  local ids, places = unpack_batch(home, name)
  if not places then
    local last = tonumber(string.sub(name, 2))
    places = {}
    for n = 1, #ids do
      places[n] = last - #ids + n
    end
  end
  return ids, places
end

-- Which of some jobs are there, and are those that were added then, and not others of that name.
local function living(ids, places)
  local records = #ids > 0 and many_read('HMGET', 'job', ids) or {}
  local some, at = {}, {}
  for n, id in ipairs(ids) do
    if records[n] and tonumber(place_of(records[n]) or places[n]) == places[n] then
      some[#some + 1], at[#at + 1] = id, places[n]
    end
  end
  return some, at
end

