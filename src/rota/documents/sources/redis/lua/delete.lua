-- Deletes documents of the owner's with all that Rota knows of them. ARGV[7] is a list of ids.
for _, id in ipairs(cjson.decode(ARGV[7])) do
  redis.call('DEL', document(id))
  redis.call('ZREM', due, id)
  redis.call('HDEL', sides, id)
end
return 'OK'
