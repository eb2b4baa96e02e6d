-- What all algorithms use: errors, numbers, and the functions that keep expiries right. Everything here is made anew by each
-- call that needs it, so it is short.

--[[ errors.lua ]]

-- Writes a number as part of a value: Lua itself writes 1700000000000000 as 1.7e+15. Redis itself writes a number exactly that is
-- an argument of a command.
local function int(number)
  return string.format('%.0f', number)
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

-- The pauses of keys that were read, until they are over. `now` is then the time as of which a key is read and written: the end of
-- its pause. Twin of ratelimit-runtime/src/algorithm/paused.rs and penalty.rs: change both or neither.
--
-- A paused key has "paused: written until moved " before its value, or before the last element of its list: when that was written,
-- when the pause ends, and by how much the slots have moved that calls wait for. If it has been penalized, that is
-- "penalized: written until moved step spent forgiven ": the step of the last penalty when its pause was set, 1 if the key has
-- admitted no call since, and after how long one step is forgiven. No other value begins so.
local started, pauses = now, {}

-- Returns when neither the pause nor a penalty matters.
local function lasts(pause)
  return pause.till + pause.step * pause.forgiven
end

-- Returns what a key holds without its pause, nil if nothing, and reads the pause.
local function unwrap(key, value)
  pauses[key] = nil
  if not value or string.byte(value) ~= 112 then return value or nil end
  local written, till, moved, at = string.match(value, '^paused: (%d+) (%d+) (%d+) ()')
  local step, spent, forgiven = '0', '0', '0'
  if not written then
    written, till, moved, step, spent, forgiven, at =
      string.match(value, '^penalized: (%d+) (%d+) (%d+) (%d+) ([01]) (%d+) ()')
    if not written then return value end
  end
  -- One from the future has as much left of it as when it was written.
  local back, over = math.max(parse(written) - started, 0), parse(till)
  local pause = {moved = parse(moved), step = parse(step), spent = spent == '1', forgiven = parse(forgiven), till = over}
  if not (within_reach(over, written) and pause.step * pause.forgiven <= 4 * LONGEST) then corrupt() end
  pause.over = lasts(pause)
  -- Never a number that replies have in place of a pause.
  pause.till, pause.future = math.max(over - back, 2), back > 0
  pause.header = string.sub(value, 1, at - 1)
  pauses[key], now = pause, math.max(pause.till, started)
  return at <= #value and string.sub(value, at) or nil
end

-- Returns what to store of a key. A pause goes once it is over, no penalty matters, and no call waits, until `slot`, that knows of it.
local function wrap(key, value, slot)
  local pause = pauses[key]
  if not pause then return value end
  if type(value) == 'number' then value = int(value) end
  pause.future = false
  if lasts(pause) <= started and not pause.spent and (slot or 0) <= started then
    pauses[key] = nil
    return value
  end
  local written = string.format('%.0f %.0f %.0f ', started, pause.till, pause.moved)
  if pause.forgiven == 0 then return 'paused: ' .. written .. value end
  return 'penalized: ' .. written .. string.format('%.0f %d %.0f ', pause.step, pause.spent and 1 or 0, pause.forgiven) .. value
end

--[[ corrections ]]
-- The pauses that a penalty chooses from, in microseconds, and the step that it has chosen; nil for a pause that is none.
local penalty

-- Extends the pause of a key that was read, and moves now to its end. Returns the microseconds for which a bucket stands still. A
-- penalty pauses no key that is paused, or has admitted no call since the last one.
local function halt(key, duration)
  local pause = pauses[key] or {till = 0, moved = 0, step = 0, forgiven = 0}
  local past = math.max(started - pause.till, 0)
  local step = pause.forgiven > 0 and math.max(pause.step - math.floor(past / pause.forgiven), 0) or 0
  local spent, forgiven = pause.spent, pause.forgiven
  if penalty then
    if pause.till > started or spent then return 0 end
    step = math.min(step + 1, #penalty)
    penalty.step, spent, forgiven, duration = step, true, penalty[#penalty], penalty[step]
  end
  local till = math.max(pause.till, started + duration)
  local by = till - now
  if by == 0 then return 0 end
  pauses[key], now = {till = till, moved = pause.moved + by, step = step, spent = spent, forgiven = forgiven}, till
  return by
end

--[[ all ]]
local function get(key)
  return unwrap(key, redis.call('GET', key))
end

-- Returns whether a call may wait until this time.
local function can_wait(slot, wait)
  return math.max(slot, now) - started <= wait
end

-- Lets a key expire at the first whole second after `ends`, in microseconds. `was` is the `ends` that it expires by now,
-- nil if it has no expiry: most charges stay within the second and need no command.
local function expire(key, ends, was)
  if pauses[key] then ends, was = math.max(ends, lasts(pauses[key])), nil end
  local second = math.floor(ends / 1000000) + 1
  if not was or math.floor(was / 1000000) + 1 ~= second then
    redis.call('EXPIREAT', key, second)
  end
end

-- Stores a value with its expiry, in one command, so that no failure leaves it without one. Calls may wait until `slot`.
local function set(key, value, ends, was, slot)
  if pauses[key] then
    value, was = wrap(key, value, slot), nil
    if pauses[key] then ends = math.max(ends, lasts(pauses[key])) end
  end
  local second = math.floor(ends / 1000000) + 1
  if was and math.floor(was / 1000000) + 1 == second then
    redis.call('SET', key, value, 'KEEPTTL')
  else
    redis.call('SET', key, value, 'EXAT', second)
  end
end

-- Deletes a key, but for its pause. If the user may not run `DEL`, an expiry in the past does the same.
local function remove(key)
  if pauses[key] and lasts(pauses[key]) > started then return set(key, '', 0) end
  if type(redis.pcall('DEL', key)) == 'number' or type(redis.pcall('EXPIREAT', key, '1')) == 'number' then return end
  redis.call('SET', key, '', 'EXAT', '1')
end

--[[ decisions ]]
-- Restores the value and expiry that a check found, if `set` may have changed them.
local function restore_value(entry)
  if not entry.done then return end
  local key, pause = entry.key, entry.pause
  pauses[key] = nil
  if pause then
    set(key, pause.header .. (entry.value or ''), math.max(entry.was or 0, pause.over))
  elseif entry.value then
    set(key, entry.value, entry.was)
  else
    remove(key)
  end
end

--[[ all ]]
-- A bucket's running total of refunds wraps here.
local CREDITS_WRAP = 2 ^ 50

-- Returns what was refunded between two totals.
local function since(earlier, credited)
  return (credited - earlier) % CREDITS_WRAP
end
