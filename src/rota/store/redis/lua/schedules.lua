-- Schedules as they are kept: the named ones, or a page by id.

local ids = ask.ids
if not ids then
  ids = redis.call('ZRANGEBYLEX', P .. 'names', ask.after and '(' .. ask.after or '-', '+', 'LIMIT', 0, ask.limit)
end
local found = {}
for n, id in ipairs(ids) do
  found[n] = { id, redis.call('HGET', P .. 'schedule', id), redis.call('HGETALL', P .. 'last:' .. id) }
end
return reply(found)
