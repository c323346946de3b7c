-- Ask running jobs to stop; the first reason stays.

local asked = {}
for _, id in ipairs(ask.ids) do
  if redis.call('HEXISTS', P .. 'lease', id) == 1 then
    redis.call('HSETNX', P .. 'cancel', id, ask.reason)
    asked[#asked + 1] = id
  end
end
return reply(asked)
