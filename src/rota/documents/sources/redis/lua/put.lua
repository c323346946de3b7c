-- Writes documents of the owner's and their place in the index. ARGV[7] is a list of {id, fields and values}.
local now = clock()
for _, entry in ipairs(cjson.decode(ARGV[7])) do
  if #entry[2] > 0 then redis.call('HSET', document(entry[1]), unpack(entry[2])) end
  index(entry[1], now)
end
return 'OK'
