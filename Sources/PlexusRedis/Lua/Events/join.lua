local created = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
local groups = redis.pcall('XINFO', 'GROUPS', KEYS[1])
if groups.err then return created end
for _, info in ipairs(groups) do
  local group = asTable(info)
  if group['name'] == ARGV[1] then
    for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
      local consumer = asTable(info)
      if consumer['pending'] == 0 and consumer['idle'] > 3600000 then
        redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer['name'])
      end
    end
    local id = group['last-delivered-id']
    return {id, header(entry(KEYS[1], id))}
  end
end
return created
