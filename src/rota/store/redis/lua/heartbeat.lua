-- Store a node's heartbeat.

redis.call('HSET', P .. 'node', ask.id, ask.node)
redis.call('ZADD', P .. 'beats', NOW, ask.id)
return reply(true)
