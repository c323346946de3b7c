-- Locks up to ARGV[7] documents for ARGV[8]; says what is next within ARGV[9]. ARGV[10] is the token, ARGV[11] the owner's
-- condition: a list of fields and the values that they must have. The hash is what counts; the index is mended by it.
local limit, lock_for, horizon, token = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10]
local condition = cjson.decode(ARGV[11])
local PAGE = 100
local now = clock()
local ends = now + lock_for

local function is_wanted(id)
  for _, pair in ipairs(condition) do
    if redis.call('HGET', document(id), pair[1]) ~= pair[2] then return false end
  end
  return true
end

local function lock(id, at, found)
  local shown, _, body = side_of(id)
  if shown ~= found[1] then body = '' end
  local fields = redis.call('HGETALL', document(id))
  if has_lock then
    redis.call('HSET', document(id), UNTIL, text(ends), BY, token)
  else
    if body == '' then body = '{"nominal":' .. text(at) .. '000}' end
    redis.call('HSET', document(id), SLEEP, text(ends))
    keep(id, text(ends), token, body)
  end
  redis.call('ZADD', due, text(ends), id)
  return {id, found[1], found[2], found[3], found[4], body, fields}
end

local locked, passed = {}, 0
repeat
  local page = redis.call('ZRANGEBYSCORE', due, '-inf', text(now), 'LIMIT', passed, PAGE)
  for _, id in ipairs(page) do
    if #locked == limit then break end
    local at, found = read(id)
    if not at or at > now or (found[5] and found[5] > now) then
      index(id, now)
    elseif not is_wanted(id) then
      passed = passed + 1
    else
      locked[#locked + 1] = lock(id, at, found)
    end
  end
until #page < PAGE or #locked == limit

local after = {}
if #locked == 0 then
  after = redis.call('ZRANGEBYSCORE', due, '(' .. text(now), text(now + horizon), 'WITHSCORES', 'LIMIT', 0, 1)
end
return {text(now), text(ends), locked, after[2] or ''}
