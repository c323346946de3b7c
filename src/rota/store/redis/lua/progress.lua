-- The progress of running jobs, from their holders: {job, fence, text} each.

for _, report in ipairs(ask.reports) do
  local lease = redis.call('HGET', P .. 'lease', report[1])
  if lease and fence_of(lease) == report[2] then
    redis.call('HSET', P .. 'progress', report[1], report[3])
  end
end
return reply(true)
