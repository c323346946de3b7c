-- Entries of a kind by name: a page of their names, and what is kept of each.

local names = redis.call(
  'ZRANGEBYLEX', P .. 'entries:' .. ask.kind, ask.after and '(' .. ask.after or '-', '+', 'LIMIT', 0, ask.limit)
return reply({ names, #names > 0 and many_read('HMGET', 'entry:' .. ask.kind, names) or {} })
