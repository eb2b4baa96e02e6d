-- The generic cell rate algorithm for numbers that change and calls that are settled. Twin of
-- ratelimit-runtime/src/algorithm/settled_gcra.rs and lows.rs: change all or none. It follows adjustable_gcra.lua, which converts
-- between rates.
--
-- key    eleven doubles, packed: tat, written, slot and pace as in adjustable_gcra.lua; made, the time of the last charge, later than
--        all before it; and three lows, oldest first: the time of the first charge that each is for, and what has been missing at least
--        since then; those that are 0 are none
-- args   as in adjustable_gcra.lua
-- reply  tat, 0, made, free_at, full_at    as in adjustable_gcra.lua
-- correct args: charge, negative for a debt; for a debt the most that may be missing; the time of the charge or nil; pace
-- pause args: as in adjustable_gcra.lua

-- Adds the low since the last charge, when so much is missing before one that is made then. The one goes without which charges get
-- least less.
local function add_low(bucket, missing, made)
  local since1, low1, since2, low2, since3, low3 = unpack(bucket.lows)
  local since4, low4 = bucket.made, missing
  low1, low2, low3 = math.min(low1, missing), math.min(low2, missing), math.min(low3, missing)
  local loss1, loss2 = low1 * (since2 - since1), (low2 - low1) * (since3 - since2)
  local loss3, loss4 = (low3 - low2) * (since4 - since3), (low4 - low3) * (made - since4)
  local least = math.min(loss1, loss2, loss3, loss4)
  if loss1 == least then
    bucket.lows = {since2, low2, since3, low3, since4, low4}
  elseif loss2 == least then
    bucket.lows = {since1, low1, since3, low3, since4, low4}
  elseif loss3 == least then
    bucket.lows = {since1, low1, since2, low2, since4, low4}
  else
    bucket.lows = {since1, low1, since2, low2, since3, low3}
  end
end

--[[ corrections ]]
-- Returns what has been missing at least since the charge that was made then.
local function low_since(bucket, made)
  local missing = math.max(bucket.tat - now, 0)
  if made == bucket.made then return missing end
  local low = 0
  for i = 1, made < bucket.made and 5 or 0, 2 do
    if bucket.lows[i] <= made then low = bucket.lows[i + 1] end
  end
  return math.min(low, missing)
end

--[[ all ]]
local function load(value)
  if not value then return end
  if #value ~= 88 then corrupt() end
  local numbers = {struct.unpack('<ddddddddddd', value)}
  for i = 1, 11 do
    if i ~= 4 then parse_whole(numbers[i]) end
  end
  local tat, written, slot, pace, made = unpack(numbers)
  if parse(pace) == 0 or not within_reach(math.max(tat, slot), written) then corrupt() end
  local lows = {unpack(numbers, 6, 11)}
  for i = 1, 3, 2 do
    if lows[i] > lows[i + 2] or lows[i + 1] > lows[i + 3] then corrupt() end
  end
  if lows[5] > made then corrupt() end
  return {tat = tat, written = written, slot = slot, pace = pace, made = made, lows = lows}
end

-- Returns when the state expires: when the bucket is full, and later charges have other times than those before.
local function ends(bucket)
  return math.max(bucket.tat, bucket.made + 1)
end

-- Returns the state as of now. One written in the future is as far ahead of now as it was when written.
local function current(bucket, pace)
  if not bucket or ends(bucket) <= now then
    return {
      tat = bucket and bucket.tat or 0, credited = 0, slot = 0, changed = 0, pace = pace, made = 0, lows = {0, 0, 0, 0, 0, 0},
    }
  end
  local tat = math.min(bucket.tat, now + math.max(bucket.tat - bucket.written, 0))
  local back, lows = bucket.tat - tat, bucket.lows
  for i = 1, back > 0 and 5 or 0, 2 do lows[i] = math.max(lows[i] - back, 0) end
  return {
    tat = tat, credited = 0, slot = math.max(bucket.slot - back, 0), changed = 0, pace = bucket.pace,
    made = math.max(bucket.made - back, 0), lows = lows,
  }
end

-- Stores the bucket, without what has expired.
local function keep(key, bucket, was)
  local slot = bucket.slot > now and bucket.slot or 0
  if ends(bucket) <= now then return remove(key) end
  local value = struct.pack('<ddddddddddd', bucket.tat, now, slot, bucket.pace, bucket.made, unpack(bucket.lows))
  set(key, value, ends(bucket), was, slot)
end

--[[ decisions ]]
local restore = restore_value

local function check(key, at)
  local value = get(key)
  local stored = load(value)
  local bucket = current(stored, args[at + 3])
  local entry = check_current(bucket, at)
  entry[3] = math.max(now, bucket.made + 1)
  entry.key, entry.value, entry.was, entry.moved = key, value, stored and ends(stored), stored and bucket.tat < stored.tat
  return entry
end

local function commit(entry)
  local bucket = entry.bucket
  if entry.pace == bucket.pace then
    -- At the slot of a call that waits, less is missing than now.
    add_low(bucket, math.min(entry[1] - now, entry.lead), entry[3])
  else
    -- Charges at another rate were worth something else.
    bucket.lows = {0, 0, 0, 0, 0, 0}
  end
  bucket.slot = math.max(bucket.slot, entry[1] - entry.lead)
  bucket.tat, bucket.pace, bucket.made = entry[1] + entry.cost, entry.pace, entry[3]
  keep(entry.key, bucket, entry.was)
end

local function undo(entry)
  if entry.moved then keep(entry.key, entry.bucket, entry.was) end
end

--[[ corrections ]]
-- Refunds as much of a charge as has been missing ever since; without one, what is missing now or after the last slot.
local function correct(key, at)
  local charge, most, charged, pace = args[at], args[at + 1], args[at + 2], args[at + 3]
  local stored = load(get(key))
  if not stored and charge > 0 then return end
  local bucket = current(stored, pace)
  local was = stored and ends(stored)
  if charge < 0 then
    local debt = pace == bucket.pace and -charge or rounded_up(-charge, pace, bucket.pace)
    local tat, made = math.max(bucket.tat, now), math.max(now, bucket.made + 1)
    add_low(bucket, tat - now, made)
    local owed, longest = tat + debt, math.max(tat, now + most)
    bucket.tat, bucket.made = math.min(owed, longest), made
    keep(key, bucket, was)
    return owed > longest
  end
  local worth = 0
  if not charged then
    worth = bucket.tat - math.max(now, bucket.slot)
  elseif pace == bucket.pace then
    worth = low_since(bucket, charged)
  end
  if pace ~= bucket.pace then charge = rounded_up(charge, pace, bucket.pace) end
  local credit = math.min(charge, worth)
  if credit <= 0 then return end
  for i = 1, 5, 2 do
    local low = bucket.lows[i + 1]
    local is_before = charged and bucket.lows[i] <= charged
    bucket.lows[i + 1] = is_before and math.min(low, worth - credit) or math.max(low - credit, 0)
  end
  bucket.tat = bucket.tat - credit
  -- Each of the remaining charges takes at least a permit.
  bucket.slot = math.max(math.min(bucket.slot, bucket.tat - math.floor(bucket.pace)), 0)
  keep(key, bucket, was)
end

local function pause(key, at)
  local bucket = current(load(get(key)), args[at + 2])
  local by = stand_still(key, at, bucket)
  if by == 0 then return end
  bucket.made = math.max(now, bucket.made + by + 1)
  bucket.lows = {0, 0, 0, 0, 0, 0}
  keep(key, bucket)
end
