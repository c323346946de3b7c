-- A lock: who has it, until when, and the number that rises with every new owner.

local found = redis.call('HGET', P .. 'lock', ask.lock)
local number, till, token = 0, '0', ''
if found then
  number, till, token = string.match(found, '^(%d+)|(%d+)|(.*)$')
end
local owner = tonumber(till) > tonumber(NOW) and token or ''

local function keep(new_token, new_till, new_number)
  redis.call('HSET', P .. 'lock', ask.lock, string.format('%d|%s|%s', new_number, new_till, new_token))
  return reply(new_number)
end

number = tonumber(number)
if ask.act == 'acquire' and (owner == '' or owner == ask.token) then
  return keep(ask.token, later(ask.ttl), owner == ask.token and number or number + 1)
end
if owner ~= ask.token or ask.act == 'acquire' then
  return reply(0)
end
if ask.act == 'extend' then
  return keep(ask.token, later(ask.ttl), number)
end
return keep('', '0', number)  -- the number stays: the next owner's is higher
