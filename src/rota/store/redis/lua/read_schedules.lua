-- All that a firing or an edit of a schedule is decided on, for many schedules at one instant; and places in line.

local base = 0
if ask.reserve > 0 then
  base = redis.call('INCRBY', P .. 'seq', ask.reserve) - ask.reserve
end

local ids, seen = {}, {}
local function also(id)
  if not seen[id] then
    seen[id] = true
    ids[#ids + 1] = id
  end
end

for _, id in ipairs(ask.jobs) do
  also(id)
end
local found = {}
-- {id, ledger from, slots, whether its live jobs matter, whether those do that were made ahead}
for n, want in ipairs(ask.schedules) do
  local live = want[4] and redis.call('ZRANGE', P .. 'live:' .. want[1], 0, -1) or {}
  local soon = want[5] and redis.call('ZRANGE', P .. 'soon:' .. want[1], 0, -1) or {}
  local holder = redis.call('HGET', P .. 'busy', want[1])
  local made = {}
  for slot, at in ipairs(want[3]) do
    made[slot] = redis.call('ZCOUNT', P .. 'slot:' .. want[1], at, at)
  end
  found[n] = {
    redis.call('HGET', P .. 'schedule', want[1]),
    holder,
    live,
    redis.call('ZRANGEBYSCORE', P .. 'ledger:' .. want[1], want[2], '+inf'),
    made,
    soon,
  }
  for _, id in ipairs(live) do
    also(id)
  end
  for _, id in ipairs(soon) do
    also(id)
  end
  if holder then
    also(holder)
  end
end
return reply({ found, raw_jobs(ids), base })
