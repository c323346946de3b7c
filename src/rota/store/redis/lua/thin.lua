-- Drop lines of ledgers that are too old, or too many for one schedule; goes round all schedules, some at a time. Nodes
-- that fell silent go, too, and some of the notes that are too old.

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
local marks = redis.call('ZRANGEBYLEX', P .. 'notes', '-', '(' .. ask.notes_until, 'LIMIT', 0, ask.limit)
for _, mark in ipairs(marks) do
  local id = string.sub(mark, ask.width + 1)
  local packed = redis.call('HGET', P .. 'note', id)
  if packed then
    redis.call('ZREM', P .. 'notes:' .. cmsgpack.unpack(packed)[1], mark)
  end
  redis.call('HDEL', P .. 'note', id)
  redis.call('ZREM', P .. 'notes', mark)
end
return reply({ removed, #silent, #ids == ask.limit and ids[#ids] or '', #marks })
