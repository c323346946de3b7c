-- Accept one new job that is ready at once: what add.lua does for many, with only the steps that one needs. It takes its
-- values one by one, because single adds are the most frequent call of all.

local id, record, queue, priority, task, hour, key = unpack(ARGV, 4)
if key ~= '' and (redis.call('HEXISTS', P .. 'job', id) == 1 or redis.call('HSETNX', P .. 'key', key, id) == 0) then
  return reply('taken')
end
local position = redis.call('INCR', P .. 'seq')
local seq = string.format('%d', position)
if redis.call('HSETNX', P .. 'job', id, seq .. record) == 0 then
  return reply('taken')  -- its position stays empty
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

if redis.call('EXISTS', P .. 'waiting') == 1 and redis.call('EXISTS', P .. 'priorities:' .. queue) == 0
  and redis.call('HEXISTS', P .. 'paused', queue) == 0 then
  -- Claim the job for an idle worker that waits (exchange.lua registers it), and publish it on the channel of its process.
  -- A worker's entry ends at a time. Notifications of other scripts delete all entries, so nothing else is ready for these
  -- workers. A queue that was paused since may still have them in its set. The server's ACL may forbid this user some of
  -- these commands (pcall): the job is written already, and becomes ready then.
  local function claim_for(holder)
    local entry = redis.call('HGET', P .. 'waiting', holder)
    redis.call('HDEL', P .. 'waiting', holder)
    local ends, lease_for, channel = string.match(entry or '', '^(%d+)|(%d+)|(.+)$')
    if not ends or tonumber(NOW) >= tonumber(ends) then
      return false
    end
    local direct = P .. 'direct:' .. holder
    local saved = redis.pcall('SET', direct, cmsgpack.pack({ id, queue }), 'PX', math.ceil(lease_for / 1000))
    if saved.err then
      return false
    end
    local till = string.format('%.0f', tonumber(NOW) + lease_for)
    local message = table.concat({ #holder, #id, NOW, till, holder .. id .. seq .. record }, '|')
    local readers = redis.pcall('PUBLISH', channel, message)
    if type(readers) ~= 'number' or readers == 0 then
      redis.call('DEL', direct)
      return false  -- its process has died
    end
    local times = string.rep('0', 32 - #NOW) .. NOW .. string.rep('0', 32 - #till) .. till
    redis.call('HSET', P .. 'lease', id, times .. '1|' .. holder)
    redis.call('HINCRBY', P .. 'holding', holder, 1)
    redis.call('ZADD', P .. 'holders', 'LT', till, holder)
    redis.call('HINCRBY', P .. 'count', queue .. '|running', 1)
    return true
  end

  repeat
    local holder = redis.pcall('SPOP', P .. 'waiting:' .. queue)
    local is_there = type(holder) == 'string'
    if is_there and claim_for(holder) then
      return reply('added')
    end
  until not is_there
end
redis.call('ZADD', P .. 'ready:' .. queue .. ':' .. priority, seq, id)
redis.call('HINCRBY', P .. 'count', queue .. '|queued', 1)
if redis.call('ZADD', P .. 'priorities:' .. queue, priority, priority) == 1 then
  redis.call('PUBLISH', P .. 'notify:jobs', '')
end
return reply('added')
