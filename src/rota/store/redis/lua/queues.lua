-- Every queue in numbers, and the first in line of each of its priorities.

local counts = redis.call('HGETALL', P .. 'count')
local paused = redis.call('HKEYS', P .. 'paused')
local queues, seen, ids = {}, {}, {}
for n = 1, #counts, 2 do
  local queue = string.match(counts[n], '^(.*)|[^|]*$')
  if queue and not seen[queue] then
    seen[queue] = true
    for _, priority in ipairs(redis.call('ZRANGE', P .. 'priorities:' .. queue, 0, -1)) do
      local first = redis.call('ZRANGE', P .. 'ready:' .. queue .. ':' .. priority, 0, 0)[1]
      if first then
        queues[#queues + 1] = queue
        ids[#ids + 1] = first
      end
    end
  end
end
return reply({ counts, paused, queues, raw_jobs(ids) })
