-- The first jobs of a state to have ended, oldest first, behind some that are skipped; and the sheaves that were opened.

local key = P .. 'ended:' .. ask.state
local most = ask.skip + ask.count
local found, opened, reached = {}, {}, 0

local function take(name, score)
  local packed = string.sub(name, 1, 1) == SHEAF and redis.call('HGET', P .. 'sheaf', name)
  if not packed then
    found[#found + 1] = { tonumber(score), name }
    return
  end
  opened[#opened + 1] = name
  local _, ids, _, ended = unpack(cmsgpack.unpack(packed))
  for n, id in ipairs(ids) do
    if ended[n] <= tonumber(ask.before) then
      found[#found + 1] = { ended[n], id }
    end
  end
end

-- Whatever is behind what was looked at ended at `bound` or later: those that ended before are enough, or more is read.
local function are_enough(bound)
  local sure = 0
  for _, one in ipairs(found) do
    if one[1] <= bound then
      sure = sure + 1
    end
  end
  return sure >= most
end

while true do
  local some = redis.call('ZRANGEBYSCORE', key, '-inf', ask.before, 'WITHSCORES', 'LIMIT', reached, ask.step)
  for n = 1, #some, 2 do
    take(some[n], some[n + 1])
  end
  reached = reached + #some / 2
  if #some < 2 * ask.step or are_enough(tonumber(some[#some])) then
    break
  end
end

table.sort(found, function(one, other)
  return one[1] < other[1] or (one[1] == other[1] and one[2] < other[2])
end)
local ids = {}
for n = ask.skip + 1, math.min(#found, most) do
  ids[#ids + 1] = found[n][2]
end
return reply({ ids, opened })
