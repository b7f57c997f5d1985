-- At least the memory that an entry needs in a reply.
local function size(entry)
  local sum = 64 * #entry[2]
  for _, part in ipairs(entry[2]) do sum = sum + #part end
  return sum
end
-- The fields of an entry; of one that is larger than a limit only the header, if that is small.
local function readable(entry, limit)
  return size(entry) <= tonumber(limit) and entry[2] or header(entry)
end
