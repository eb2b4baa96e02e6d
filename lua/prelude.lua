-- What all algorithms use: errors, numbers, and the functions that keep expiries right. Everything here is made anew by each
-- call that needs it, so it is short.

--[[ errors.lua ]]

-- Writes a number as part of a value: Lua itself writes 1700000000000000 as 1.7e+15. Redis itself writes a number exactly that is
-- an argument of a command.
local function int(number)
  return string.format('%.0f', number)
end

-- Lets a key expire at the first whole second after `ends`, in microseconds. `was` is the `ends` that it expires by now,
-- nil if it has no expiry: most charges stay within the second and need no command.
local function expire(key, ends, was)
  local second = math.floor(ends / 1000000) + 1
  if not was or math.floor(was / 1000000) + 1 ~= second then
    redis.call('EXPIREAT', key, second)
  end
end

-- Stores a value with its expiry, in one command, so that no failure leaves it without one.
local function set(key, value, ends, was)
  local second = math.floor(ends / 1000000) + 1
  if was and math.floor(was / 1000000) + 1 == second then
    redis.call('SET', key, value, 'KEEPTTL')
  else
    redis.call('SET', key, value, 'EXAT', second)
  end
end

-- Deletes a key. If the user may not run `DEL`, an expiry in the past does the same.
local function remove(key)
  if type(redis.pcall('DEL', key)) == 'number' or type(redis.pcall('EXPIREAT', key, '1')) == 'number' then return end
  redis.call('SET', key, '', 'EXAT', '1')
end

-- Restores the value and expiry that a check found, if `set` may have changed them.
local function restore_value(entry)
  if not entry.done then return end
  if entry.value then set(entry.key, entry.value, entry.was) else remove(entry.key) end
end

local function corrupt()
  error({err = 'CORRUPT the value under this key is not the state of a limiter'})
end

-- Parses a number of a state. Limiters write none beyond 2^53, up to which Lua represents integers exactly.
local function parse(text)
  local number = tonumber(text)
  return number and number >= 0 and number <= 2 ^ 53 and number or corrupt()
end

-- Parses a number without a fraction.
local function parse_whole(text)
  local number = parse(text)
  return number % 1 == 0 and number or corrupt()
end

-- The longest time that a policy covers, and the longest that a call waits.
local LONGEST = 3650 * 86400 * 1000000

-- Returns whether a bucket that was written then can be full at `time`: it fills up in the longest time that a policy covers,
-- and calls wait for as long, and may borrow as much. Beyond that the value is from another program, and must not block the key.
local function within_reach(time, written)
  return time - written <= 4 * LONGEST
end

-- A bucket's running total of refunds wraps here.
local CREDITS_WRAP = 2 ^ 50

-- Returns what was refunded between two totals.
local function since(earlier, credited)
  return (credited - earlier) % CREDITS_WRAP
end
