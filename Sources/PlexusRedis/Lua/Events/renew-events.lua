local kept = {}
for index = 4, #ARGV do
  local id = ARGV[index]
  local message = redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1)[1]
  if not message then
    if ARGV[3] == '1' then kept[#kept + 1] = id end
  elseif message[2] == ARGV[2] then
    if entry(KEYS[1], id) then
      redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, id, 'JUSTID')
    end
    kept[#kept + 1] = id
  end
end
return kept
