-- Accept new jobs whose ids, keys and slots are free, and run the commands that come with them: these count the jobs, and
-- advance the schedules that make them, if any. Each schedule must be what was decided on, and its occurrence must have no
-- job. All or none; Python gets the number of jobs before the first that is blocked.

local ids, names = ask.ids, ask.names or {}
local unblocked = #ids
local function block(n)
  unblocked = math.min(unblocked, n - 1)
end

for n, record in ipairs(many_read('HMGET', 'schedule', names)) do
  local guard, at = ask.guards[n], ask.fire_times[n]
  local is_same = record and string.sub(record, 1, #guard) == guard
  if not is_same or redis.call('ZCOUNT', P .. 'slot:' .. names[n], at, at) > 0 then
    block(n)
  end
end
for n, record in ipairs(many_read('HMGET', 'job', ids)) do
  if record then
    block(n)
  end
end
for home, taken in pairs({ key = ask.keys, busy = ask.slots }) do  -- {name, id, name, id …}
  local held = {}
  for n = 1, #taken, 2 do
    held[#held + 1] = taken[n]
  end
  for n, holder in ipairs(many_read('HMGET', home, held)) do
    for number = 1, holder and unblocked or 0 do
      if ids[number] == taken[2 * n] then
        block(number)
      end
    end
  end
end
if unblocked < #ids then
  return reply(unblocked)
end

local last = redis.call('INCRBY', P .. 'seq', #ids)
local positions, records, has_news = {}, {}, false
for n, id in ipairs(ids) do
  positions[n] = string.format('%d', last - #ids + n)
  records[2 * n - 1], records[2 * n] = id, positions[n] .. ask.records[n]
end
many('HSET', 'job', records)
for key, numbers in pairs(ask.by_position) do
  local entries = {}
  for n, number in ipairs(numbers) do
    entries[2 * n - 1], entries[2 * n] = positions[number], ids[number]
  end
  many('ZADD', key, entries)
end
for key, entries in pairs(ask.by_time) do
  local is_first = add_by_time(key, entries)
  has_news = has_news or (is_first and string.sub(key, 1, 4) == 'due:')
end
for _, one in ipairs(ask.priorities) do
  has_news = add_priority(one[1], one[2]) or has_news
end
redis.call('ZADD', P .. 'hours:first', 'LT', positions[1], ask.hour)
redis.call('ZADD', P .. 'hours:last', 'GT', last, ask.hour)
many('HSET', 'key', ask.keys)
many('HSET', 'busy', ask.slots)
run(ask.commands)
if has_news then
  notify('jobs')
end
return reply(unblocked)
