-- Batches: the sheaves of a task's index, of jobs that were added together. A name tells the last place in line.

local function open_batch(name)
  local packed = redis.call('HGET', P .. 'batch', name)
  if not packed then
    return {}, {}
  end
  local ids, places = cmsgpack.unpack(packed)
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

