-- Returns the text of an error. Redis 7.0 does not name the command that the user may not run.
local function error_text(err)
  err = type(err) == 'table' and err.err or tostring(err)
  if redis.acl_check_cmd and string.find(err, "can't run this command", 1, true) then
    local denied = {}
    for _, name in ipairs({--[[ commands ]]}) do
      if not redis.acl_check_cmd(name, KEYS[1]) then denied[#denied + 1] = name end
    end
    return 'NOPERM the user of this connection may not run ' .. table.concat(denied, ', ')
  end
  return err
end
