-- Extends locks by ARGV[8]. ARGV[7] is a list of {id, token}. A lock that is gone gets an empty reply.
local now = clock()
local ends = text(now + tonumber(ARGV[8]))
local replies = {}
for number, entry in ipairs(cjson.decode(ARGV[7])) do
  local id, token = entry[1], entry[2]
  local _, found = read(id)
  local is_held, body = holds(id, found, token)
  if not is_held then
    replies[number] = ''
  else
    if has_lock then
      redis.call('HSET', document(id), UNTIL, ends)
    else
      redis.call('HSET', document(id), SLEEP, ends)
      keep(id, ends, token, body)
    end
    redis.call('ZADD', due, ends, id)
    replies[number] = ends
  end
end
return replies
