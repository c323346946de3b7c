-- What jobs leave behind: written only if it is still theirs.

-- Free a key or a schedule's slot ('key' or 'busy'), unless another job holds it.
local function free(home, name, id)
  if name and redis.call('HGET', P .. home, name) == id then
    redis.call('HDEL', P .. home, name)
  end
end

-- Record how the last job of a schedule ended, if the schedule still exists.
local function set_last_run(schedule, fields)
  if redis.call('HEXISTS', P .. 'schedule', schedule) == 1 then
    redis.call('HSET', P .. 'last:' .. schedule, unpack(fields))
  end
end

