local found = ARGV[3] ~= '' and entry(KEYS[1], ARGV[2])
if found and not isSame(found, ARGV[3]) then
  return redis.error_reply('SUPERSEDED The engine has another message at the position.')
end
return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
