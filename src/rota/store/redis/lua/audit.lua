
-- Add an audit record: {sort key, id, subject, kept}. One that exists already is left alone.
local function add_audit_record(record)
  if redis.call('HSETNX', P .. 'audit', record[2], record[4]) == 1 then
    redis.call('ZADD', P .. 'audits', 0, record[1])
    redis.call('ZADD', P .. 'audits:' .. record[3], 0, record[1])
  end
end

