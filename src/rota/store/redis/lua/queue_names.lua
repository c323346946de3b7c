
-- The queues that have or had jobs.
local function queue_names()
  local names, seen = {}, {}
  for _, name in ipairs(redis.call('HKEYS', P .. 'count')) do
    local queue = string.match(name, '^(.*)|[^|]*$')
    if queue and not seen[queue] then
      seen[queue] = true
      names[#names + 1] = queue
    end
  end
  return names
end

