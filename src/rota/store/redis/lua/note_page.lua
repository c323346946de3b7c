-- Notes by their marks, newest first (or oldest first): all of them, or those of a subject.

local key, some = P .. ask.index, nil
if ask.is_rising then
  some = redis.call('ZRANGEBYLEX', key, ask.least, ask.most, 'LIMIT', 0, ask.limit)
else
  some = redis.call('ZREVRANGEBYLEX', key, ask.most, ask.least, 'LIMIT', 0, ask.limit)
end
local ids = {}
for n, mark in ipairs(some) do
  ids[n] = string.sub(mark, ask.width + 1)
end
return reply({ some, #ids > 0 and many_read('HMGET', 'note', ids) or {} })
