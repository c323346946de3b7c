-- Fire schedules whose occurrence just makes its job: the schedule is what was decided on, the occurrence has no job yet,
-- and nobody has its slot or its key. Where one is not so, nothing is written, and Python is told which.

if not is_dated_well() then
  return reply({ 'clock' })
end
local blocked = {}
for n, record in ipairs(many_read('HMGET', 'schedule', ask.names)) do
  local name, guard, slot = ask.names[n], ask.guards[n], ask.slots[n]
  local is_same = record and string.sub(record, 1, #guard) == guard
  if not is_same or redis.call('ZCOUNT', P .. 'slot:' .. name, slot, slot) > 0 then
    blocked[#blocked + 1] = ask.ids[n]
  end
end
for n, holder in ipairs(holders_of_keys()) do
  if holder then
    blocked[#blocked + 1] = ask.keyed[n]
  end
end
for n, holder in ipairs(holders_of_slots()) do
  if holder then
    blocked[#blocked + 1] = ask.slotted[n]
  end
end
for n, record in ipairs(many_read('HMGET', 'job', ask.ids)) do
  if record then
    blocked[#blocked + 1] = ask.ids[n]
  end
end
if #blocked > 0 then
  return reply({ 'blocked', blocked })
end

accept_jobs()
local advanced, reached = {}, 0
for n, name in ipairs(ask.names) do
  local size = ask.schedule_sizes[n]
  advanced[2 * n - 1], advanced[2 * n] = name, string.sub(ask.schedules, reached + 1, reached + size)
  reached = reached + size
  redis.call('HSET', P .. 'last:' .. name, unpack(ask.lasts[n]))
end
many('HSET', 'schedule', advanced)
many('ZADD', 'dues', ask.dues)
many('ZREM', 'dues', ask.spent)
return reply({ 'fired' })
