-- Starts every script: the time of all its decisions.
local time = redis.pcall('TIME')
if time.err then
  --[[ errors.lua ]]
  return {err = error_text(time)}
end
local now = time[1] * 1000000 + time[2]
