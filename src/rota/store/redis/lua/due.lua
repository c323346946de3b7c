-- The schedules that are due, in order, by the index alone.

local due = redis.call('ZRANGEBYSCORE', P .. 'dues', '-inf', NOW, 'LIMIT', 0, ask.limit)
local found = {}
for n, id in ipairs(due) do
  found[n] = { id, redis.call('HGET', P .. 'schedule', id), redis.call('HGETALL', P .. 'last:' .. id) }
end
local following = redis.call('ZRANGE', P .. 'dues', #due, #due, 'WITHSCORES')[2]
return reply({ found, following or false })
