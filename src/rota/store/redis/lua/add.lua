-- Accept new jobs, in no slot, whose ids and keys are free, all or none. Where one is not, nothing is written and Python looks closer.

if not is_dated_well() then
  return reply({ 'clock' })
end
for _, record in ipairs(many_read('HMGET', 'job', ask.ids)) do
  if record then
    return reply({ 'there' })
  end
end
for _, holder in ipairs(holders_of_keys()) do
  if holder then
    return reply({ 'there' })
  end
end
accept_jobs()
return reply({ 'added' })
