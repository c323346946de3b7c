-- Record decisions: each item is written whole where all that it was decided on still is so, and else not at all.

local function is_same(one, other)
  if type(one) ~= 'table' or type(other) ~= 'table' then
    return (one or false) == (other or false)
  end
  if #one ~= #other then
    return false
  end
  for n = 1, #one do
    if not is_same(one[n], other[n]) then
      return false
    end
  end
  return true
end

-- A job still is what was seen: {state, ready_at, lease, cancel, end}; false: there must be none.
local function is_as_seen(id, seen)
  if not seen then
    return redis.call('HEXISTS', P .. 'job', id) == 0
  end
  return redis.call('HEXISTS', P .. 'job', id) == 1
    and redis.call('HGET', P .. 'state', id) == seen[1]
    and redis.call('HGET', P .. 'ready_at', id) == seen[2]
    and redis.call('HGET', P .. 'lease', id) == seen[3]
    and redis.call('HGET', P .. 'cancel', id) == seen[4]
    and redis.call('HGET', P .. 'end', id) == seen[5]
end

local function holds(item)
  for _, job in ipairs(item.jobs) do
    if not is_as_seen(job[1], job[2]) then
      return false
    end
  end
  for _, guard in ipairs(item.guards) do
    local command = guard[1]
    if not is_same(redis.call(command[1], P .. command[2], unpack(command, 3)), guard[2]) then
      return false
    end
  end
  return true
end

local function put_down(write)
  local command, key = write[1], write[2]
  local is_line = string.sub(key, 1, 6) == 'ready:'
  if is_line and command == 'ZADD' then
    make_room(key, write[3])
  end
  local answer = redis.call(command, P .. key, unpack(write, 3))
  if is_line and command == 'ZREM' and answer == 0 then
    leave_line(key, write[3])
  end
end

local answers = {}
for n, item in ipairs(ask.items) do
  local is_held = holds(item)
  answers[n] = is_held and 1 or 0
  if is_held then
    for _, freed in ipairs(item.freed) do  -- {'key' or 'busy', key or schedule, id}: unless another has it by now
      if redis.call('HGET', P .. freed[1], freed[2]) == freed[3] then
        redis.call('HDEL', P .. freed[1], freed[2])
      end
    end
    for _, gone in ipairs(item.gone) do  -- {task, id, place in line}
      leave_task(gone[1], gone[2], gone[3])
    end
    for _, write in ipairs(item.writes) do
      put_down(write)
    end
    for _, held in ipairs(item.held) do  -- {holder, number, bound}: leases that came, or went
      if held[2] > 0 then
        hold(held[1], held[2], held[3])
      else
        let_go(held[1], -held[2])
      end
    end
    for _, note in ipairs(item.notes) do  -- {schedule, fields}: where there still is one
      if redis.call('HEXISTS', P .. 'schedule', note[1]) == 1 then
        redis.call('HSET', P .. 'last:' .. note[1], unpack(note[2]))
      end
    end
    for _, note in ipairs(item.kept) do
      keep_note(note)
    end
    for _, channel in ipairs(item.channels) do
      ask.notified = ask.notified or {}
      ask.notified[channel] = true
    end
  end
end
thin_batches()
for channel in pairs(ask.notified or {}) do
  notify(channel)
end
return reply(answers)
