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
redis.call('ZADD', P .. 'task:' .. task, seq, id)
redis.call('ZADD', P .. 'tasks', 0, task)
local of, last = string.match(meta[3] or '', '^(%d+)|(%d+)$')
if of ~= hour or tonumber(last) < position then  -- rounded up, so that it seldom changes
  last = string.format('%d', math.ceil(position / 1000) * 1000)
  redis.call('ZADD', P .. 'hours:first', 'LT', seq, hour)
  redis.call('ZADD', P .. 'hours:last', 'GT', last, hour)
  redis.call('HSET', P .. 'meta', 'hour', hour .. '|' .. last)
end

-- Claim the job for an idle worker that waits (exchange.lua registers it), and publish it on the channel of its process. A
-- worker's entry ends at a time. Every notification about jobs deletes all entries, so nothing else is ready for these
-- workers. A queue that was paused since may still have them in its set.
local function hand_over()
  if redis.call('EXISTS', P .. 'priorities:' .. queue) == 1 or redis.call('HEXISTS', P .. 'paused', queue) == 1 then
    return false
  end
  local waiting = P .. 'waiting:' .. queue
  local holder = redis.call('SPOP', waiting)
  while holder do
    local entry = redis.call('HGET', P .. 'waiting', holder)
    redis.call('HDEL', P .. 'waiting', holder)
    local ends, lease_for, channel = string.match(entry or '', '^(%d+)|(%d+)|(.+)$')
    if ends and tonumber(now) < tonumber(ends) then
      local till = string.format('%.0f', tonumber(now) + lease_for)
      local message = table.concat({ #holder, #id, now, till, holder .. id .. seq .. record }, '|')
      if redis.call('PUBLISH', channel, message) > 0 then  -- else its process has died
        local times = string.rep('0', 32 - #now) .. now .. string.rep('0', 32 - #till) .. till
        redis.call('HSET', P .. 'lease', id, times .. '1|' .. holder)
        redis.call('HINCRBY', P .. 'holding', holder, 1)
        redis.call('ZADD', P .. 'holders', 'LT', till, holder)
        redis.call('HSET', P .. 'handed', holder, #id .. '|' .. id .. queue)
        redis.call('PEXPIRE', P .. 'handed', 3600000)
        redis.call('HINCRBY', P .. 'count', queue .. '|running', 1)
        return true
      end
    end
    holder = redis.call('SPOP', waiting)
  end
  return false
end

if redis.call('EXISTS', P .. 'waiting') == 1 and hand_over() then
  return { now, lost, false, 'added' }
end
redis.call('ZADD', P .. 'ready:' .. queue .. ':' .. priority, seq, id)
redis.call('HINCRBY', P .. 'count', queue .. '|queued', 1)
if redis.call('ZADD', P .. 'priorities:' .. queue, priority, priority) == 1 then
  redis.call('PUBLISH', P .. 'notify:jobs', '')
end
return { now, lost, false, 'added' }
