-- Commit guarded writes: each is written whole if all that it was decided on is unchanged, and else not at all.

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

-- Whether a job is unchanged: {state, ready_at, lease, cancel, end}; false: there must be none.
local function is_unchanged(id, seen)
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
    if not is_unchanged(job[1], job[2]) then
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

local answers = {}
for n, item in ipairs(ask.items) do
  local is_held = holds(item)
  answers[n] = is_held and 1 or 0
  if is_held then
    for _, freed in ipairs(item.freed) do  -- {'key' or 'busy', key or schedule, id}: unless another job holds it
      if redis.call('HGET', P .. freed[1], freed[2]) == freed[3] then
        redis.call('HDEL', P .. freed[1], freed[2])
      end
    end
    for _, command in ipairs(item.commands) do
      redis.call(command[1], P .. command[2], unpack(command, 3))
    end
    for _, lease in ipairs(item.leases) do  -- {holder, how many more or fewer, when they end}
      if lease[2] > 0 then
        add_leases(lease[1], lease[2], lease[3])
      else
        drop_leases(lease[1], -lease[2])
      end
    end
    for _, run in ipairs(item.last_runs) do  -- {schedule, fields}: if the schedule still exists
      if redis.call('HEXISTS', P .. 'schedule', run[1]) == 1 then
        redis.call('HSET', P .. 'last:' .. run[1], unpack(run[2]))
      end
    end
    for _, record in ipairs(item.audit) do
      add_audit_record(record)
    end
    for _, channel in ipairs(item.channels) do
      ask.notified = ask.notified or {}
      ask.notified[channel] = true
    end
  end
end
for channel in pairs(ask.notified or {}) do
  notify(channel)
end
return reply(answers)
