-- Delete entries of ledgers that are too old, or too many for one schedule, of some schedules per call; nodes that are
-- silent for too long; minutes that are too old; and some of the audit records that are too old.

local ids = redis.call(
  'ZRANGEBYLEX', P .. 'names', ask.after ~= '' and '(' .. ask.after or '-', '+', 'LIMIT', 0, ask.limit)
local removed = 0
for _, id in ipairs(ids) do
  removed = removed + redis.call('ZREMRANGEBYSCORE', P .. 'ledger:' .. id, '-inf', ask.before)
  removed = removed + redis.call('ZREMRANGEBYRANK', P .. 'ledger:' .. id, 0, -(ask.most + 1))
end
local silent = redis.call('ZRANGEBYSCORE', P .. 'beats', '-inf', ask.silent_since)
many('HDEL', 'node', silent)
many('ZREM', 'beats', silent)
for _, range in ipairs({ { '-inf', '(' .. ask.first_minute }, { '(' .. ask.last_minute, '+inf' } }) do
  local minutes = redis.call('ZRANGEBYSCORE', P .. 'series', unpack(range))
  for _, minute in ipairs(minutes) do
    redis.call('UNLINK', P .. 'series:' .. minute)
  end
  many('ZREM', 'series', minutes)
end
local keys = redis.call('ZRANGEBYLEX', P .. 'audits', '-', '(' .. ask.audit_until, 'LIMIT', 0, ask.limit)
for _, key in ipairs(keys) do
  local id = string.sub(key, ask.width + 1)
  local packed = redis.call('HGET', P .. 'audit', id)
  if packed then
    redis.call('ZREM', P .. 'audits:' .. cmsgpack.unpack(packed)[1], key)
  end
  redis.call('HDEL', P .. 'audit', id)
end
many('ZREM', 'audits', keys)
return reply({ removed, #silent, #ids == ask.limit and ids[#ids] or '', #keys })
