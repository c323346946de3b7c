-- Schedules as they are kept: the named ones, or a page by id, of the smallest of some indexes.

local function smallest(indexes)
  local best, fewest
  for _, index in ipairs(indexes) do
    local number = #indexes > 1 and redis.call('ZCARD', P .. index) or 0
    if not best or number < fewest then
      best, fewest = index, number
    end
  end
  return P .. best
end

local ids = ask.ids
if not ids then
  local from = ask.after and '(' .. ask.after or '-'
  ids = redis.call('ZRANGEBYLEX', smallest(ask.indexes), from, '+', 'LIMIT', 0, ask.limit)
end
local found = {}
for n, id in ipairs(ids) do
  found[n] = { id, redis.call('HGET', P .. 'schedule', id), redis.call('HGETALL', P .. 'last:' .. id) }
end
return reply(found)
