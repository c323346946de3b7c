-- Append lines to the logs of jobs that exist, numbered from the last: {job, line, line …} each.

for _, lines in ipairs(ask.logs) do
  local key = 'log:' .. lines[1]
  if redis.call('HEXISTS', P .. 'job', lines[1]) == 1 then
    local last = tonumber(redis.call('ZRANGE', P .. key, -1, -1, 'WITHSCORES')[2] or 0)
    local entries = {}
    for n = 2, #lines do
      local number = string.format('%.0f', last + n - 1)
      entries[#entries + 1] = number
      entries[#entries + 1] = number .. '|' .. lines[n]
    end
    many('ZADD', key, entries)
  end
end
return reply(true)
