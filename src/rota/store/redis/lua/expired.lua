-- Jobs whose lease has run out, the longest first. While no holder's bound has passed, which is nearly always, there is
-- nothing to look at. When one has, all leases are gone through once, and every bound is made exact again; so they are
-- where the holders' numbers do not add up, which only a hand from outside can bring about.

local due = redis.call('ZRANGEBYSCORE', P .. 'holders', '-inf', NOW, 'LIMIT', 0, 1)
local known = 0
for _, number in ipairs(redis.call('HVALS', P .. 'holding')) do
  known = known + tonumber(number)
end
if #due == 0 and known == redis.call('HLEN', P .. 'lease') then
  return reply(raw_jobs({}))
end

local lapsed, bounds, numbers = {}, {}, {}
local leases = redis.call('HGETALL', P .. 'lease')
for n = 1, #leases, 2 do
  local ends = tonumber(string.sub(leases[n + 1], 33, 64)) or 0
  local holder = string.match(fence_of(leases[n + 1]), '^%d+|(.*)$') or ''
  if ends <= tonumber(NOW) then
    lapsed[#lapsed + 1] = { ends, leases[n] }
  end
  bounds[holder] = math.min(bounds[holder] or ends, ends)
  numbers[holder] = (numbers[holder] or 0) + 1
end
redis.call('DEL', P .. 'holders', P .. 'holding')
for holder, bound in pairs(bounds) do
  add_leases(holder, numbers[holder], string.format('%.0f', bound))
end
table.sort(lapsed, function(one, other)
  return one[1] < other[1] or (one[1] == other[1] and one[2] < other[2])
end)
local ids = {}
for n = 1, math.min(#lapsed, ask.limit) do
  ids[n] = lapsed[n][2]
end
return reply(raw_jobs(ids))
