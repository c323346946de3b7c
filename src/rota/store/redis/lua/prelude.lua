-- What every script begins with: its keys, the time and the seal.
-- Names come as data: KEYS[1] is "{namespace}:", the beginning of every key, so that all keys share one cluster slot.
-- It is short, because each function in it costs a single add 0.04 of 10 µs.
-- ARGV: the time or '', '1' for new work or '', the date of new jobs or ''; then what each script takes.

local P = KEYS[1]
local NOW = ARGV[1]
if NOW == '' then
  local time = redis.call('TIME')
  NOW = time[1] .. string.rep('0', 6 - #time[2]) .. time[2]  -- as text: no digit is lost
end

-- The version that open() wrote, and the seal. A version that is gone means that somebody emptied the server: it is
-- written again, and the reply says so.
local meta = redis.call('HMGET', P .. 'meta', 'version', 'seal', 'hour')
if not meta[1] then
  redis.call('HSET', P .. 'meta', 'version', '$VERSION')  -- scripts.py writes it here
end

local function reply(body)
  return { NOW, meta[1] and 0 or 1, meta[2], body }
end

if meta[2] and ARGV[2] ~= '' then
  return reply(false)  -- sealed: no new work
end

-- Python dates new jobs by its estimate of the server's clock, which must be at most 1 s behind and never ahead.
local behind = ARGV[1] == '' and ARGV[3] ~= '' and tonumber(NOW) - tonumber(ARGV[3]) or 0
if behind < 0 or behind > 1000000 then
  return reply('clock')
end

