-- Commands for one job each. Most are Redis's own; what a job leaves behind is written only if it is still the job's.

local OWN = {}

-- Free a key or a schedule's slot ('key' or 'busy'), unless another job holds it.
function OWN.FREE(home, name, id)
  if redis.call('HGET', P .. home, name) == id then
    redis.call('HDEL', P .. home, name)
  end
end

-- Record how the last job of a schedule ended, if the schedule still exists.
function OWN.LAST(schedule, fields)
  if redis.call('HEXISTS', P .. 'schedule', schedule) == 1 then
    redis.call('HSET', P .. 'last:' .. schedule, unpack(fields))
  end
end

-- Add what settled runs were to their minute: {name, number …}.
function OWN.RUNS(minute, runs)
  for n = 1, #runs, 2 do
    redis.call('HINCRBY', P .. 'series:' .. minute, runs[n], runs[n + 1])
  end
  if #runs > 0 then
    redis.call('ZADD', P .. 'series', minute, minute)
  end
end

local function run(commands)
  for _, command in ipairs(commands) do
    local own = OWN[command[1]]
    if own then
      own(unpack(command, 2))
    else
      redis.call(command[1], P .. command[2], unpack(command, 3))
    end
  end
end

