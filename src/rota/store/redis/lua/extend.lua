-- Renew exactly the named leases, and report which of the holder's jobs were asked to stop.

local lost, renewed = {}, {}
if #ask.ids > 0 then
  local held = many_read('HMGET', 'lease', ask.ids)
  local till = later(ask.lease_for)
  local ends = wide(till)
  for n, id in ipairs(ask.ids) do
    if held[n] and fence_of(held[n]) == ask.fences[n] then
      renewed[#renewed + 1] = id
      renewed[#renewed + 1] = string.sub(held[n], 1, 32) .. ends .. ask.fences[n]
    else
      lost[#lost + 1] = id
    end
  end
  many('HSET', 'lease', renewed)
  local is_all = tonumber(redis.call('HGET', P .. 'holding', ask.holder) or 0) <= #renewed / 2
  if #renewed > 0 then  -- a lease that was not named, as its claim's reply was lost, keeps the bound where it is
    redis.call('ZADD', P .. 'holders', is_all and 'XX' or 'LT', till, ask.holder)
  end
end

local cancels = {}
if redis.call('EXISTS', P .. 'cancel') == 1 then
  local asked = redis.call('HGETALL', P .. 'cancel')
  for n = 1, #asked, 2 do
    local lease = redis.call('HGET', P .. 'lease', asked[n])
    if lease and string.match(fence_of(lease), '^%d+|(.*)$') == ask.holder then
      cancels[#cancels + 1] = asked[n]
      cancels[#cancels + 1] = asked[n + 1]
    end
  end
end
return reply({ lost, cancels })
