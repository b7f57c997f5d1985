-- A table of the fields and values of a reply.
local function asTable(reply)
  local result = {}
  for index = 1, #reply, 2 do result[reply[index]] = reply[index + 1] end
  return result
end
