-- The generic cell rate algorithm for numbers that change from call to call. A state counts in microseconds of refill at the
-- rate of the last charge. Twin of ratelimit-runtime/src/algorithm/adjustable_gcra.rs: change both or neither.
--
-- key    seven doubles, packed: tat, written, credited, until and slot as in gcra.lua; changed, the time of the first charge at this
--        rate, while one at another rate is refundable, which is until `until`; and pace, the microseconds in which one permit
--        refills, which may have a fraction
-- args   charge, lead, wait, pace, total    as in gcra.lua, at the rate of the call; the lead of a charge of 0 is that of one permit;
--                                           and the maximum wait with a pause, of which a queue is not to take more than `wait`
-- reply  tat, credited, made, free_at, full_at    the arrival time at the call's rate, and the total of refunds; the time of the
--                                                 charge; when the call would be admitted without waiting; when the state
--                                                 expires
-- correct args: charge, negative for a debt; tat right after the charge and its time or nil, for a debt the most that may be missing;
--        credited, pace, 1 if only the last charge is refundable
-- pause args: microseconds; the least that is missing afterwards, pace

-- Up to here products are exact.
local EXACT = 2 ^ 53
-- More than any call waits.
local MAX_LEVEL = 2 ^ 51

-- Returns whether a quotient of the product is exact up to its own rounding. Otherwise it is off by less than one.
local function is_exact(product, from, to)
  return product <= EXACT and from % 1 == 0 and to % 1 == 0
end

-- Returns the time in which the permits refill at pace `to` that refill in this time at pace `from`, rounded up.
local function rounded_up(micros, from, to)
  if micros == 0 then return 0 end
  local product = micros * to
  local least = math.ceil(product / from) + (is_exact(product, from, to) and 0 or 1)
  return math.min(least, MAX_LEVEL)
end

-- Returns the same rounded down.
local function rounded_down(micros, from, to)
  local product = micros * to
  local most = math.floor(product / from) - (is_exact(product, from, to) and 0 or 1)
  return math.min(math.max(most, 0), MAX_LEVEL)
end

local function load(value)
  if not value then return end
  if #value ~= 56 then corrupt() end
  local tat, written, credited, till, slot, changed, pace = struct.unpack('<ddddddd', value)
  local bucket = {
    tat = parse_whole(tat), written = parse_whole(written), credited = parse_whole(credited), till = parse_whole(till),
    slot = parse_whole(slot), changed = parse_whole(changed), pace = parse(pace),
  }
  if bucket.pace == 0 or not within_reach(math.max(bucket.tat, bucket.slot), bucket.written) then corrupt() end
  return bucket
end

local function ends(bucket)
  return math.max(bucket.tat, bucket.till)
end

-- Returns the state as of now. One written in the future is as far ahead of now as it was when written.
local function current(bucket, pace)
  if not bucket or ends(bucket) <= now then
    return {tat = bucket and bucket.tat or 0, credited = 0, till = 0, slot = 0, changed = 0, pace = pace}
  end
  local tat = math.min(bucket.tat, now + math.max(bucket.tat - bucket.written, 0))
  local back = bucket.tat - tat
  local till = bucket.till - back
  local counts = till > now
  return {
    tat = tat, credited = counts and bucket.credited or 0, till = counts and till or 0, slot = bucket.slot - back,
    changed = counts and bucket.changed or 0, pace = bucket.pace,
  }
end

-- Stores the bucket, without what has expired.
local function keep(key, bucket, was)
  local slot = bucket.slot > now and bucket.slot or 0
  local till = (bucket.credited > 0 or bucket.changed > 0) and bucket.till or 0
  local ends = math.max(bucket.tat, till)
  if ends <= now then return remove(key) end
  local value = struct.pack('<ddddddd', bucket.tat, now, bucket.credited, till, slot, bucket.changed, bucket.pace)
  set(key, value, ends, was, slot)
end

--[[ decisions ]]
local restore = restore_value

-- Checks a state as of now.
local function check_current(bucket, at)
  local charge, lead, wait, to =
    args[at], args[at + 1], args[at + 2], args[at + 3]
  local from, full_at, allowed = bucket.pace, math.max(bucket.tat, now), math.max(lead, 0)
  local tat, credited, made, free_at = full_at, bucket.credited, math.max(now, bucket.changed), full_at - allowed
  if from ~= to then
    -- Before a slot that a call waits for, a faster rate would refill what is reserved.
    local base = to < from and math.max(bucket.slot, now) or now
    local level = rounded_up(math.max(full_at - base, 0), from, to)
    -- Later than all charges at the other rate, even those of the same microsecond.
    tat, credited, made = base + level, 0, math.max(now, bucket.changed + 1)
    if base > now and level <= allowed then
      free_at = base + level - allowed
    else
      free_at = full_at - rounded_down(allowed, to, from)
    end
  end
  local until_slot = free_at <= now and 0 or math.max(tat - now - allowed, 1)
  return {
    tat, credited, made, math.max(free_at, 0), full_at, cost = charge, lead = allowed, pace = to, bucket = bucket,
    admits = charge == 0 or lead >= 0 and until_slot <= wait and can_wait(now + until_slot, args[at + 4]),
  }
end

local function check(key, at)
  local value = get(key)
  local stored = load(value)
  local bucket = current(stored, args[at + 3])
  local entry = check_current(bucket, at)
  entry.key, entry.value, entry.was, entry.moved = key, value, stored and ends(stored), stored and bucket.tat < stored.tat
  return entry
end

local function commit(entry)
  local bucket, tat = entry.bucket, entry[1] + entry.cost
  bucket.slot = math.max(bucket.slot, entry[1] - entry.lead)
  if entry.pace ~= bucket.pace then
    -- The receipts of earlier charges count at another rate, for as long as they do.
    bucket.till = math.max(bucket.till, bucket.tat)
    bucket.credited, bucket.changed, bucket.pace = 0, entry[3], entry.pace
  elseif bucket.credited > 0 then
    bucket.till = math.max(bucket.till, tat)
  end
  bucket.tat = tat
  keep(entry.key, bucket, entry.was)
end

local function undo(entry)
  if entry.moved then keep(entry.key, entry.bucket, entry.was) end
end

--[[ corrections ]]
-- Corrects as gcra.lua does, but refunds nothing of a charge that was made before the rate changed.
local function correct(key, at)
  local charge, from, made, credited =
    args[at], args[at + 1], args[at + 2], args[at + 3]
  local pace, last_only = args[at + 4], args[at + 5] == 1
  local stored = load(get(key))
  if not stored and charge > 0 then return end
  local bucket = current(stored, pace)
  if charge < 0 then
    local debt = pace == bucket.pace and -charge or rounded_up(-charge, pace, bucket.pace)
    bucket.tat = math.max(bucket.tat, now)
    local owed, most = bucket.tat + debt, math.max(bucket.tat, now + from)
    bucket.tat = math.min(owed, most)
    keep(key, bucket, stored and ends(stored))
    return owed > most
  end
  local tat, total, identified = bucket.tat, bucket.credited, from ~= nil
  if identified and (made < bucket.changed or pace ~= bucket.pace) then return end
  if not identified then from, credited = tat, total end
  if pace ~= bucket.pace then charge = rounded_up(charge, pace, bucket.pace) end
  local last = from == tat and credited == total
  local full = from - since(credited, total)
  local worth = full - math.max(now, bucket.slot)
  local credit = (last or not last_only) and math.min(charge, worth) or 0
  -- If the charged bucket would be full later than this one, it was lost.
  if credit <= 0 or full > tat then return end
  local gone = last and (identified and credit == charge or last_only)
  bucket.tat = tat - credit
  -- Each of the remaining charges takes at least a permit.
  bucket.slot = math.min(bucket.slot, bucket.tat - math.floor(bucket.pace))
  if not gone then
    bucket.credited, bucket.till = (total + credit) % CREDITS_WRAP, math.max(bucket.till, tat)
  end
  keep(key, bucket, ends(stored))
end

-- Pauses a bucket as of now, which stands still as in gcra.lua, at its rate. Returns for how long, and what was missing.
local function stand_still(key, at, bucket)
  local least, pace, from = args[at + 1], args[at + 2], now
  local by, missing = halt(key, args[at]), math.max(bucket.tat - from, 0)
  if pace ~= bucket.pace then least = rounded_up(least, pace, bucket.pace) end
  bucket.tat = now + math.max(missing, least)
  bucket.slot = bucket.slot > from and bucket.slot + by or 0
  return by, missing
end

local function pause(key, at)
  local bucket = current(load(get(key)), args[at + 2])
  local by, missing = stand_still(key, at, bucket)
  if by == 0 then return end
  if bucket.changed > 0 then bucket.changed = bucket.changed + by end
  bucket.credited, bucket.till = (bucket.credited + missing) % CREDITS_WRAP, math.max(bucket.till + by, bucket.tat)
  keep(key, bucket)
end
