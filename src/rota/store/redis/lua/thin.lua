-- Drop lines of ledgers that are too old, or too many for one schedule; goes round all schedules, some at a time.

local ids = redis.call(
  'ZRANGEBYLEX', P .. 'names', ask.after ~= '' and '(' .. ask.after or '-', '+', 'LIMIT', 0, ask.limit)
local removed = 0
for _, id in ipairs(ids) do
  removed = removed + redis.call('ZREMRANGEBYSCORE', P .. 'ledger:' .. id, '-inf', ask.before)
  removed = removed + redis.call('ZREMRANGEBYRANK', P .. 'ledger:' .. id, 0, -(ask.most + 1))
end
local silent = redis.call('ZRANGEBYSCORE', P .. 'beats', '-inf', ask.silent_since)
if #silent > 0 then
  redis.call('HDEL', P .. 'node', unpack(silent))
  redis.call('ZREM', P .. 'beats', unpack(silent))
end
return reply({ removed, #silent, #ids == ask.limit and ids[#ids] or '' })
