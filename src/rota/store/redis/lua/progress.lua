-- How far running jobs are, from those who hold them: {job, fence, text} each.

for _, note in ipairs(ask.notes) do
  local lease = redis.call('HGET', P .. 'lease', note[1])
  if lease and fence_of(lease) == note[2] then
    redis.call('HSET', P .. 'progress', note[1], note[3])
  end
end
return reply(true)
