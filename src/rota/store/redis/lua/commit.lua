-- Commit guarded writes: each is written whole if all that it was decided on is unchanged, and else not at all.

-- Add an audit record, unless it exists.
function OWN.AUDIT(key, id, subject, kept)
  if redis.call('HSETNX', P .. 'audit', id, kept) == 1 then
    redis.call('ZADD', P .. 'audits', 0, key)
    redis.call('ZADD', P .. 'audits:' .. subject, 0, key)
  end
end

-- Whether the values of a job are those that were seen; none: there must be no such job.
local SEEN = { 'state', 'ready_at', 'lease', 'cancel', 'end' }
local function is_unchanged(id, seen)
  for n, name in ipairs(seen and SEEN or {}) do
    if redis.call('HGET', P .. name, id) ~= seen[n] then
      return false
    end
  end
  return redis.call('HEXISTS', P .. 'job', id) == (seen and 1 or 0)
end

local function holds(item)
  for _, job in ipairs(item.jobs) do
    if not is_unchanged(job[1], job[2]) then
      return false
    end
  end
  for _, guard in ipairs(item.guards) do
    local command, answer = unpack(guard)
    local now = redis.call(command[1], P .. command[2], unpack(command, 3)) or false
    if now ~= answer and cmsgpack.pack(now) ~= cmsgpack.pack(answer) then  -- answers may be lists
      return false
    end
  end
  return true
end

OWN.LEASE, OWN.UNLEASE = add_leases, drop_leases

-- The progress of a running job, from its holder.
function OWN.PROGRESS(id, fence, progress)
  local lease = redis.call('HGET', P .. 'lease', id)
  if lease and fence_of(lease) == fence then
    redis.call('HSET', P .. 'progress', id, progress)
  end
end

-- Append lines to the log of a job, numbered from the last, if the job exists.
function OWN.LOG(id, lines)
  if redis.call('HEXISTS', P .. 'job', id) == 1 then
    local last = tonumber(redis.call('ZRANGE', P .. 'log:' .. id, -1, -1, 'WITHSCORES')[2] or 0)
    local entries = {}
    for n, line in ipairs(lines) do
      entries[2 * n - 1], entries[2 * n] = text(last + n), text(last + n) .. '|' .. line
    end
    many('ZADD', 'log:' .. id, entries)
  end
end

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
