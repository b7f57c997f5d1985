local last, oldest = '0-0', false
for _, info in ipairs(redis.pcall('XINFO', 'GROUPS', KEYS[1])) do
  local group = asTable(info)
  if group['name'] == ARGV[1] then last = group['last-delivered-id'] end
end
if last ~= '0-0' then
  local next = redis.call('XRANGE', KEYS[1], last, '+', 'COUNT', 1)[1]
  oldest = next and next[1] or false
end
return {last, oldest}
