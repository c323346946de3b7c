-- Leaving: jobs that go are taken out of their task's index, and out of the sheaf that they were added in.

local leaving = {}  -- by sheaf: its task, and how many of its jobs go

-- Where a job has no entry of its own, the next is its sheaf.
local function leave_task(task, id, seq)
  local key = P .. 'task:' .. task
  if redis.call('ZREM', key, id) == 1 then
    return
  end
  local name = redis.call('ZRANGEBYSCORE', key, seq, '+inf', 'LIMIT', 0, 1)[1]
  if is_sheaf(name) then
    leaving[name] = leaving[name] or { task, 0 }
    leaving[name][2] = leaving[name][2] + 1
  end
end

local function put_batch(task, name, ids, places)
  if #ids == 0 then
    redis.call('HDEL', P .. 'batch', name)
    redis.call('HDEL', P .. 'batch:left', name)
    redis.call('ZREM', P .. 'task:' .. task, name)
  else
    redis.call('HSET', P .. 'batch', name, cmsgpack.pack(ids, places))
    redis.call('HSET', P .. 'batch:left', name, #ids)
  end
end

-- A sheaf is packed anew each time that it has become half as large, which says for sure who is left.
local function thin_batch(task, name, gone)
  local left = redis.call('HINCRBY', P .. 'batch:left', name, -gone)
  local _, size = math.frexp(math.max(left, 0))
  local _, former = math.frexp(left + gone)
  if left <= 0 or size ~= former then
    local ids, places = living(open_batch('batch', name))
    put_batch(task, name, ids, places)
    gone = gone + left - #ids
  end
  local number = redis.call('HINCRBY', P .. 'batch:jobs', task, -gone)
  if number <= 0 or redis.call('EXISTS', P .. 'task:' .. task) == 0 then
    redis.call('HDEL', P .. 'batch:jobs', task)
  end
end

-- To be called once all else is written.
local function thin_batches()
  for name, gone in pairs(leaving) do
    thin_batch(gone[1], name, gone[2])
  end
end

