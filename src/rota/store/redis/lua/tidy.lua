-- Take jobs that are gone out of their sheaves, and out of the indexes those that are empty then.

for _, name in ipairs(ask.sheaves) do
  local packed = redis.call('HGET', P .. 'sheaf', name)
  if packed then
    local queue, ids, seqs, ended = unpack(cmsgpack.unpack(packed))
    local records = redis.call('HMGET', P .. 'job', unpack(ids))
    local left, places, times = {}, {}, {}
    for n, id in ipairs(ids) do
      if tonumber(place_of(records[n]) or -1) == seqs[n] then  -- else it is gone, or it is another of that name
        left[#left + 1], places[#places + 1], times[#times + 1] = id, seqs[n], ended[n]
      end
    end
    local index, by_end = P .. 'in:' .. queue .. ':succeeded', P .. 'ended:succeeded'
    if #left == 0 then
      redis.call('HDEL', P .. 'sheaf', name)
      redis.call('ZREM', index, name)
      redis.call('ZREM', by_end, name)
    elseif #left < #ids then
      redis.call('HSET', P .. 'sheaf', name, cmsgpack.pack({ queue, left, places, times }))
      redis.call('ZADD', index, math.max(unpack(places)), name)
      redis.call('ZADD', by_end, math.min(unpack(times)), name)
    end
  end
end
return reply(true)
