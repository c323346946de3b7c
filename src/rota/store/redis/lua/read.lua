-- Read what a decision needs at one instant: any commands, any jobs.

local found = {}
for n, command in ipairs(ask.commands) do
  found[n] = redis.call(command[1], P .. command[2], unpack(command, 3))
end
return reply({ found, raw_jobs(ask.ids) })
