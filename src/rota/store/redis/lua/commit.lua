-- Commit guarded writes: each is written whole if all that it was decided on is unchanged, and else not at all.

-- Add an audit record, unless it exists.
function OWN.AUDIT(key, id, subject, kept)
  if redis.call('HSETNX', P .. 'audit', id, kept) == 1 then
    redis.call('ZADD', P .. 'audits', 0, key)
    redis.call('ZADD', P .. 'audits:' .. subject, 0, key)
  end
end

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

OWN.LEASE, OWN.UNLEASE = add_leases, drop_leases

local notified = {}
function OWN.NOTIFY(channel)
  notified[channel] = true
end

local answers = {}
for n, item in ipairs(ask.items) do
  local is_held = holds(item)
  answers[n] = is_held and 1 or 0
  if is_held then
    run(item.commands)
  end
end
for channel in pairs(notified) do
  notify(channel)
end
return reply(answers)
