-- Accept new jobs, in no slot, whose ids and keys are free: all or none. If one is taken, nothing is written.

if not is_dated_well() then
  return reply('clock')
end
for _, found in ipairs({ many_read('HMGET', 'job', ask.ids), holders_of('key', ask.keys) }) do
  for _, value in ipairs(found) do
    if value then
      return reply('taken')
    end
  end
end
accept_jobs()
return reply('added')
