
-- Keep a note of who changed what: {id, mark, subject, kept}. One that is there already is left alone.
local function keep_note(note)
  if redis.call('HSETNX', P .. 'note', note[1], note[4]) == 1 then
    redis.call('ZADD', P .. 'notes', 0, note[2])
    redis.call('ZADD', P .. 'notes:' .. note[3], 0, note[2])
  end
end

