local found = entry(KEYS[1], ARGV[2])
if found and ARGV[3] ~= '' and not isSame(found, ARGV[3]) then
  return redis.error_reply('SUPERSEDED The engine has another message at the position.')
end
local message = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)[1]
if not message then return 0 end
if ARGV[7] ~= '' and message[2] ~= ARGV[7] then
  return redis.error_reply('OVERTAKEN Another reader of the group has the message.')
end
if found then
  local fields = {}
  if #found[2] <= 2000 then
    for index = 1, #found[2], 2 do
      -- The dead letters themselves are complete.
      if found[2][index] ~= 'l' then
        fields[#fields + 1] = found[2][index]
        fields[#fields + 1] = found[2][index + 1]
      end
    end
  else
    -- A script can pass on a few thousand values only.
    fields = {'f', cmsgpack.pack(found[2])}
  end
  fields[#fields + 1] = 'r'
  fields[#fields + 1] = ARGV[4]
  local id = append(KEYS[2], redis.call('XLEN', KEYS[2]), '', false, fields)
  if type(id) == 'table' then return id end
  redis.call('XTRIM', KEYS[2], 'MAXLEN', '~', ARGV[5])
  announce(ARGV[6], id, field(found, 'h') or '', field(found, 'd') or '')
end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
return 1
