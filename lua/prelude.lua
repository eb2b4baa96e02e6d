-- Every script begins with this: the one clock of all its decisions, and the one way a key gets its expiry. What stands here is
-- made anew at each run, so it is little.

-- What an error says. Redis 7.0 does not say which of the script's commands the user may not run.
local function told(problem)
  problem = type(problem) == 'table' and problem.err or tostring(problem)
  if redis.acl_check_cmd and string.find(problem, "can't run this command", 1, true) then
    local denied = {}
    for _, name in ipairs({--[[ commands ]]}) do
      if not redis.acl_check_cmd(name, KEYS[1]) then denied[#denied + 1] = name end
    end
    return 'NOPERM the user of this connection may not run ' .. table.concat(denied, ', ')
  end
  return problem
end

local time = redis.pcall('TIME')
if time.err then return {err = told(time)} end
local now = time[1] * 1000000 + time[2]

-- Numbers are written by this alone: Lua's own form of 1700000000000000 is 1.7e+15.
local function int(number)
  return string.format('%.0f', number)
end

-- Keeps a key to the first whole second after its state has ended at `ends` microseconds. `was` is the end it already
-- expires by, nil for a key without an expiry: most charges stay within a second and need no command here.
local function keep(key, ends, was)
  local second = math.floor(ends / 1000000) + 1
  if not was or math.floor(was / 1000000) + 1 ~= second then
    redis.call('EXPIREAT', key, int(second))
  end
end

-- Stores a value and keeps it, by one command: no failure leaves it without an expiry.
local function set(key, value, ends, was)
  local second = math.floor(ends / 1000000) + 1
  if was and math.floor(was / 1000000) + 1 == second then
    redis.call('SET', key, value, 'KEEPTTL')
  else
    redis.call('SET', key, value, 'PXAT', int(second * 1000))
  end
end

-- Takes a key away. Where the user may not delete it, an expiry in the past does the same.
local function remove(key)
  if type(redis.pcall('DEL', key)) == 'number' or type(redis.pcall('EXPIREAT', key, '1')) == 'number' then return end
  redis.call('SET', key, '', 'EXAT', '1')
end

-- Brings back the value and expiry that a check found, where `set` may have changed them.
local function put_back(entry)
  if not entry.done then return end
  if entry.value then set(entry.key, entry.value, entry.was) else remove(entry.key) end
end

local function corrupt()
  error({err = 'CORRUPT the value under this key is not the state of a limiter'})
end

-- The number that a text says. None that a limiter writes is beyond what a double counts exactly.
local function exactly(text)
  local number = tonumber(text)
  return number and number >= 0 and number <= 2 ^ 53 and number or corrupt()
end

-- The running total of what a bucket gave back wraps here.
local CREDITS_WRAP = 2 ^ 50

-- What was given back from one total to the other.
local function since(earlier, credited)
  return (credited - earlier) % CREDITS_WRAP
end
