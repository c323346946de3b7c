-- Lines: what is ready, each job alone or in a sheaf. Whatever must come between the jobs of a sheaf, or go from its
-- middle, has it spread out first: that is done once to a job, and costs what its own entry would have cost before.

local function drop_sheaf(key, name)
  redis.call('ZREM', P .. key, name)
  redis.call('HDEL', P .. 'line', name)
end

local function spread(key, name)
  local ids, places = open_batch('line', name)
  local entries = {}
  for n, id in ipairs(ids) do
    entries[2 * n - 1], entries[2 * n] = string.format('%.0f', places[n]), id
  end
  drop_sheaf(key, name)
  many('ZADD', key, entries)
  return #ids
end

-- A job is about to stand at a place.
local function make_room(key, seq)
  local name = redis.call('ZRANGEBYSCORE', P .. key, seq, '+inf', 'LIMIT', 0, 1)[1]
  if is_sheaf(name) then
    local _, places = open_batch('line', name)
    if #places == 0 or places[1] < tonumber(seq) then
      spread(key, name)
    end
  end
end

-- A job goes that has no entry of its own.
local function leave_line(key, id)
  local seq = place_of(redis.call('HGET', P .. 'job', id))
  local name = seq and redis.call('ZRANGEBYSCORE', P .. key, seq, '+inf', 'LIMIT', 0, 1)[1]
  if is_sheaf(name) then
    spread(key, name)
    redis.call('ZREM', P .. key, id)
  end
end

