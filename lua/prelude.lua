-- Every script begins with this: the one clock of all its decisions, and the one way a key gets its expiry.
local time = redis.call('TIME')
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

local function set(key, value, keeps_expiry)
  if keeps_expiry then
    redis.call('SET', key, value, 'KEEPTTL')
  else
    redis.call('SET', key, value)
  end
end

local function corrupt()
  error({err = 'ERR the value under this key is not the state of a limiter'})
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
