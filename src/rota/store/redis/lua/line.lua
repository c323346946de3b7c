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

-- Have the first jobs of a line stand alone.
local function spread_first(key, want)
  local number = 0
  for _, name in ipairs(redis.call('ZRANGE', P .. key, 0, want - 1)) do
    if number >= want then
      return
    end
    number = number + (is_sheaf(name) and spread(key, name) or 1)
  end
end

-- Take the first jobs of a sheaf, or all of them: whether it is empty then.
local function take_from(name, room, some, places, ids)
  for n = 1, math.min(room, #some) do
    ids[#ids + 1] = some[n]
  end
  if #some <= room then
    return true
  end
  local rest = { unpack(some, room + 1) }
  local packed = places and cmsgpack.pack(rest, { unpack(places, room + 1) }) or cmsgpack.pack(rest)
  redis.call('HSET', P .. 'line', name, packed)
  return false
end

-- Take sheaves off the head of a line, as long as there are some and jobs are wanted. One of which little is wanted is
-- spread out instead.
local function pop_sheaves(key, want, ids)
  while #ids < want do
    local name, room = redis.call('ZRANGE', P .. key, 0, 0)[1], want - #ids
    if not is_sheaf(name) then
      return
    end
    local some, places = unpack_batch('line', name)
    if 4 * room < #some then
      spread(key, name)
      return
    end
    if take_from(name, room, some, places, ids) then
      drop_sheaf(key, name)
    end
  end
end

