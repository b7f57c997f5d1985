local key, group = KEYS[1], ARGV[1]
local result, total, others = {}, 0, {}
for _, message in ipairs(redis.call('XPENDING', key, group, 'IDLE', ARGV[3], '-', '+', ARGV[4])) do
  local id, owner, attempt = message[1], message[2], message[4]
  local found = entry(key, id)
  local bytes = found and size(found) or 0
  local isTooLarge = bytes > tonumber(ARGV[6])
  if isTooLarge then bytes = 0 end
  if #result > 0 and total + bytes > tonumber(ARGV[5]) then break end
  total = total + bytes
  if owner ~= 'released' and owner ~= ARGV[2] and not others[owner] then
    others[owner] = true
    if redis.call('XPENDING', key, group, '-', '+', 1, owner)[1][1] == id then
      attempt = attempt + 1
      release(key, group, owner, id, ARGV[3], ARGV[3])
    end
  end
  if found then
    redis.call('XCLAIM', key, group, ARGV[2], 0, id, 'RETRYCOUNT', attempt, 'JUSTID')
    result[#result + 1] = {id, readable(found, ARGV[6]), attempt, isTooLarge and 1 or 0}
  else
    redis.call('XACK', key, group, id)
    result[#result + 1] = {id, {}, 0, 0}
  end
end
return result
