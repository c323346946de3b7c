-- Jobs whose lease has expired, the oldest end first. While no holder's bound has passed, which is nearly always, no lease
-- is read. When one has, all leases are read once, and every bound is made exact again. The same happens if the holders'
-- numbers do not add up, which only a write from outside Rota can cause.

local due = redis.call('ZRANGEBYSCORE', P .. 'holders', '-inf', NOW, 'LIMIT', 0, 1)
local known = 0
for _, number in ipairs(redis.call('HVALS', P .. 'holding')) do
  known = known + tonumber(number)
end
if #due == 0 and known == redis.call('HLEN', P .. 'lease') then
  return reply(raw_jobs({}))
end

local expired, bounds, numbers = {}, {}, {}
local leases = redis.call('HGETALL', P .. 'lease')
for n = 1, #leases, 2 do
  local ends = tonumber(string.sub(leases[n + 1], 33, 64)) or 0
  local holder = string.match(fence_of(leases[n + 1]), '^%d+|(.*)$') or ''
  if ends <= tonumber(NOW) then
    expired[#expired + 1] = { ends, leases[n] }
  end
  bounds[holder] = math.min(bounds[holder] or ends, ends)
  numbers[holder] = (numbers[holder] or 0) + 1
end
redis.call('DEL', P .. 'holders', P .. 'holding')
for holder, bound in pairs(bounds) do
  add_leases(holder, numbers[holder], text(bound))
end
table.sort(expired, function(one, other)
  return one[1] < other[1] or (one[1] == other[1] and one[2] < other[2])
end)
local ids = {}
for n = 1, math.min(#expired, ask.limit) do
  ids[n] = expired[n][2]
end
return reply(raw_jobs(ids))
