-- Every queue in numbers, and the first ready job of each of its priorities.

local queues, ids = {}, {}
for _, queue in ipairs(queue_names()) do
  for _, priority in ipairs(redis.call('ZRANGE', P .. 'priorities:' .. queue, 0, -1)) do
    local first = redis.call('ZRANGE', P .. 'ready:' .. queue .. ':' .. priority, 0, 0)[1]
    if first then
      queues[#queues + 1], ids[#ids + 1] = queue, first
    end
  end
end
return reply({ redis.call('HGETALL', P .. 'count'), redis.call('HKEYS', P .. 'paused'), queues, raw_jobs(ids) })
