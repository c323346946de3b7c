-- What every script begins with. KEYS[1] is "{prefix}:", so that all keys lie in one slot. Instants are milliseconds.
local prefix = KEYS[1]
local due = prefix .. 'due'  -- ids by the time at which they are looked at next: sleepUntil, or the end of the lock
local sides = prefix .. 'side'  -- id -> "time token body": what Rota remembers while sleepUntil shows that time
local SLEEP, INTERVAL, END, REMOVE, UNTIL, BY = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local has_lock = UNTIL ~= ''

local function instant(value)
  if value and #value < 16 and string.find(value, '^%-?%d+$') then return tonumber(value) end
end

local function text(number) return string.format('%.0f', number) end

local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function flag(value)  -- true and false in the ways in which clients write them
  if not value or value == '' or value == '0' or value == 'false' or value == 'False' then return '' end
  if value == '1' or value == 'true' or value == 'True' then return '1' end
  return value
end

local function document(id) return prefix .. 'doc:' .. id end

-- The schedule as one list of texts: sleepUntil, interval, repeatUntil, autoRemove; then the lock's end and token.
local function read(id)
  local value = redis.pcall('HMGET', document(id), SLEEP, INTERVAL, END, REMOVE)
  if value.err then return nil, {'', '', '', '', false, ''} end  -- no hash: one such key must not stop the others
  local at = instant(value[1])
  local found = {at and text(at) or '', value[2] or '', value[3] or '', flag(value[4]), false, ''}
  if has_lock then
    local lock = redis.call('HMGET', document(id), UNTIL, BY)
    found[5], found[6] = instant(lock[1]), lock[2] or ''
  end
  return at, found
end

local function side_of(id)
  local kept = redis.call('HGET', sides, id)
  if not kept then return '', '', '' end
  local at, token, body = string.match(kept, '^(%S+) (%S+) (.*)$')
  return at, token, body
end

local function keep(id, at, token, body)
  redis.call('HSET', sides, id, at .. ' ' .. token .. ' ' .. body)
end

local function index(id, now)
  local at, found = read(id)
  if not at then return redis.call('ZREM', due, id) end
  if found[5] and found[5] > now and found[5] > at then at = found[5] end
  redis.call('ZADD', due, text(at), id)
end

local function holds(id, found, token)
  if has_lock then return found[6] == token, '' end
  local at, by, body = side_of(id)
  return at == found[1] and by == token, body
end
