-- Fire schedules whose occurrence only makes its job: the schedule is what was decided on, the occurrence has no job yet,
-- and its slot and key are free. If one is not so, nothing is written, and Python gets the number of the first of them.

if not is_dated_well() then
  return reply({ 'clock' })
end
local first = #ask.ids + 1
local function blocks(n)
  first = math.min(first, n)
end

for n, record in ipairs(many_read('HMGET', 'schedule', ask.names)) do
  local guard, at = ask.guards[n], ask.fire_times[n]
  local is_same = record and string.sub(record, 1, #guard) == guard
  if not is_same or redis.call('ZCOUNT', P .. 'slot:' .. ask.names[n], at, at) > 0 then
    blocks(n)
  end
end
for n, record in ipairs(many_read('HMGET', 'job', ask.ids)) do
  if record then
    blocks(n)
  end
end
local number_of = {}
for n, id in ipairs(ask.ids) do
  number_of[id] = n
end
for home, taken in pairs({ key = ask.keys, busy = ask.slots }) do
  for n, holder in ipairs(holders_of(home, taken)) do
    if holder then
      blocks(number_of[taken[2 * n]])
    end
  end
end
if first <= #ask.ids then
  return reply({ 'blocked', first })
end

accept_jobs()
local advanced, reached = {}, 0
for n, name in ipairs(ask.names) do
  local size = ask.schedules_sizes[n]
  advanced[2 * n - 1], advanced[2 * n] = name, string.sub(ask.schedules, reached + 1, reached + size)
  reached = reached + size
  redis.call('HSET', P .. 'last:' .. name, unpack(ask.lasts[n]))
end
many('HSET', 'schedule', advanced)
many('ZADD', 'dues', ask.dues)
many('ZREM', 'dues', ask.spent)
return reply({ 'fired' })
