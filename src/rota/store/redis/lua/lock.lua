-- A lock: its owner's token, its end, its term, and the number that rises with every new owner.

local TERM = string.format('%.0f', ask.ttl)

local found = redis.call('HGET', P .. 'lock', ask.lock)
local number, till, term, token = 0, '0', '', ''
if found then
  number, till, term, token = string.match(found, '^(%d+)|(%d+):?(%d*)|(.*)$')
end
local owner = tonumber(till) > tonumber(NOW) and token or ''

local function keep(new_token, new_till, new_term, new_number)
  redis.call('HSET', P .. 'lock', ask.lock, string.format('%d|%s:%s|%s', new_number, new_till, new_term, new_token))
  return new_number
end

number = tonumber(number)
if ask.act == 'acquire' and (owner == '' or owner == ask.token) then
  return reply(keep(ask.token, later(ask.ttl), TERM, owner == ask.token and number or number + 1))
end
if ask.act == 'acquire' then
  -- As in the model's lock_end: it was taken while the clock was ahead.
  local rest = tonumber(term)
  if rest and tonumber(till) > tonumber(NOW) + rest + ask.tolerance then
    keep(owner, later(rest), term, number)
  end
  return reply(0)
end
if owner ~= ask.token then
  return reply(0)
end
if ask.act == 'extend' then
  return reply(keep(ask.token, later(ask.ttl), TERM, number))
end
return reply(keep('', '0', '', number))  -- the number stays: the next owner's is higher
