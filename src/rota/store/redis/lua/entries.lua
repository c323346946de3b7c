-- Edit entries in order, each whole and with its audit record, if it still has the version that was decided on.
-- {kind, name, version, new value or false, audit record or false}

local refused = {}
for _, edit in ipairs(ask.edits) do
  local kind, name, kept = edit[1], edit[2], edit[4]
  local found = redis.call('HGET', P .. 'entry:' .. kind, name)
  if tonumber(found and string.match(found, '^(%d+)|') or 0) ~= edit[3] then
    refused[#refused + 1] = name
  else
    if kept then
      redis.call('HSET', P .. 'entry:' .. kind, name, kept)
      redis.call('ZADD', P .. 'entries:' .. kind, 0, name)
      redis.call('ZADD', P .. 'kinds', 0, kind)
    else
      redis.call('HDEL', P .. 'entry:' .. kind, name)
      redis.call('ZREM', P .. 'entries:' .. kind, name)
    end
    if edit[5] then
      add_audit_record(edit[5])
    end
  end
end
return reply(refused)
