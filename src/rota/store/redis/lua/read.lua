-- Read what a decision needs at one instant: any commands, any jobs; and reserve positions for new jobs.

local found = {}
for n, command in ipairs(ask.commands) do
  found[n] = redis.call(command[1], P .. command[2], unpack(command, 3))
end
local base = 0
if ask.reserve > 0 then
  base = redis.call('INCRBY', P .. 'seq', ask.reserve) - ask.reserve
end
return reply({ found, raw_jobs(ask.ids), base })
