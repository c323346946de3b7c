-- Accept one new job that is ready at once: what add.lua does for many, with only the steps that one needs. It has no
-- prelude, because single adds are the most frequent call of all.
-- ARGV: schema version, now or '', at, id, record, queue, priority, task, hour, key or ''.

local P = KEYS[1]
local version, injected, at, id, record, queue, priority, task, hour, key = unpack(ARGV)
local now = injected
if now == '' then
  local time = redis.call('TIME')
  now = time[1] .. string.rep('0', 6 - #time[2]) .. time[2]
end
local meta = redis.call('HMGET', P .. 'meta', 'version', 'seal', 'hour')
local lost = 0
if not meta[1] then
  redis.call('HSET', P .. 'meta', 'version', version)
  lost = 1
end
if meta[2] then
  return { now, lost, meta[2], false }
end
local behind = tonumber(now) - tonumber(at)
if injected == '' and (behind < 0 or behind > 1000000) then
  return { now, lost, false, 'clock' }
end
if key ~= '' and (redis.call('HEXISTS', P .. 'job', id) == 1 or redis.call('HSETNX', P .. 'key', key, id) == 0) then
  return { now, lost, false, 'taken' }
end

local position = redis.call('INCR', P .. 'seq')
local seq = string.format('%d', position)
if redis.call('HSETNX', P .. 'job', id, seq .. record) == 0 then
  return { now, lost, false, 'taken' }  -- its position stays empty
end
redis.call('ZADD', P .. 'ready:' .. queue .. ':' .. priority, seq, id)
redis.call('ZADD', P .. 'task:' .. task, seq, id)
redis.call('ZADD', P .. 'tasks', 0, task)
redis.call('HINCRBY', P .. 'count', queue .. '|queued', 1)
local of, last = string.match(meta[3] or '', '^(%d+)|(%d+)$')
if of ~= hour or tonumber(last) < position then  -- rounded up, so that it seldom changes
  last = string.format('%d', math.ceil(position / 1000) * 1000)
  redis.call('ZADD', P .. 'hours:first', 'LT', seq, hour)
  redis.call('ZADD', P .. 'hours:last', 'GT', last, hour)
  redis.call('HSET', P .. 'meta', 'hour', hour .. '|' .. last)
end
if redis.call('ZADD', P .. 'priorities:' .. queue, priority, priority) == 1 then
  redis.call('PUBLISH', P .. 'notify:jobs', '')
end
return { now, lost, false, 'added' }
