-- Writes ends of runs. ARGV[7] is a list of {kind, id, token, sleepUntil, interval, repeatUntil, autoRemove, new, body}.
local now = clock()

local function is_changed(entry, found)
  if has_lock and entry[4] ~= found[1] then return true end
  return entry[5] ~= found[2] or entry[6] ~= found[3] or entry[7] ~= found[4]
end

local function write(entry)
  local kind, id, new, body = entry[1], entry[2], entry[8], entry[9]
  redis.call('HDEL', sides, id)
  if kind == 'remove' then
    redis.call('DEL', document(id))
    redis.call('ZREM', due, id)
    return
  end
  if kind == 'update' then
    redis.call('HSET', document(id), SLEEP, new)
    if new ~= '' and body ~= '' then keep(id, new, '-', body) end
  end
  if has_lock then redis.call('HDEL', document(id), UNTIL, BY) end
  index(id, now)
end

local replies = {}
for number, entry in ipairs(cjson.decode(ARGV[7])) do
  local _, found = read(entry[2])
  if not holds(entry[2], found, entry[3]) then
    replies[number] = {'lost'}
  elseif is_changed(entry, found) then
    replies[number] = {'changed', found[1], found[2], found[3], found[4], redis.call('HGETALL', document(entry[2]))}
  else
    write(entry)
    replies[number] = {'applied'}
  end
end
return replies
