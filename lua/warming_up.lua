-- A token bucket that warms up: SmoothWarmingUp of Guava's SmoothRateLimiter with its cold factor of 3, by the same
-- operations on doubles in the same order. Twin of ratelimit-runtime/src/algorithm/warming_up.rs: change both or neither.
--
-- key    "next stored written": when the next call may start, the permits stored until then, and when the state was
--        written; times in microseconds; if the numbers can change, also when the bucket will be cold
-- args   cost, interval, warmup, wait      permits, microseconds of a permit when warm, microseconds, microseconds
-- reply  next, stored                      as of now; stored is a text, which represents a double exactly; if the numbers can
--                                          change also 0, 0, and when the state expires
-- correct args: cost, next right after the charge and stored before it or nil, interval, warmup
-- pause args: microseconds; interval, warmup
local COLD_FACTOR = 3

local function curve_of(interval, warmup)
  local threshold = 0.5 * warmup / interval
  local cold = interval * COLD_FACTOR
  local max_stored = threshold + 2 * warmup / (interval + cold)
  return {
    interval = interval, threshold = threshold, max_stored = max_stored,
    slope = (cold - interval) / (max_stored - threshold), cool_down = warmup / max_stored,
  }
end

-- Returns the microseconds of one permit with this many stored above the threshold.
local function time_of(curve, above)
  return curve.interval + above * curve.slope
end

-- Returns the microseconds in which stored permits are spent.
local function stored_time(curve, stored, spent)
  local above, micros = stored - curve.threshold, 0
  if above > 0 then
    local spent_above = math.min(above, spent)
    local length = time_of(curve, above) + time_of(curve, above - spent_above)
    micros = math.floor(spent_above * length / 2)
    spent = spent - spent_above
  end
  return micros + math.floor(curve.interval * spent)
end

-- Returns the microseconds of permits when warm.
local function fresh(curve, permits)
  return math.ceil(permits * curve.interval)
end

-- Returns the microseconds that a call takes, and the permits it leaves stored. As in Guava each part is cut to whole
-- microseconds; if that is less than the rate requires, one is added.
local function taken(curve, stored, cost)
  local spent = math.min(cost, stored)
  local takes = stored_time(curve, stored, spent) + math.floor((cost - spent) * curve.interval)
  if takes < fresh(curve, cost) then takes = takes + 1 end
  return takes, stored - spent
end

local function cold_at(curve, next_at, stored)
  return next_at + math.ceil((curve.max_stored - stored) * curve.cool_down)
end

local function load(value, curve)
  local pattern = adjustable and '^(%d+) (%S+) (%d+) (%d+)$' or '^(%d+) (%S+) (%d+)$'
  local next_at, stored, written, cold = string.match(value, pattern)
  local bucket = {next_at = parse(next_at), stored = parse(stored), written = parse(written)}
  if bucket.stored > curve.max_stored and not adjustable then corrupt() end
  bucket.cold_at = adjustable and parse(cold) or cold_at(curve, bucket.next_at, bucket.stored)
  if not within_reach(math.max(bucket.next_at, bucket.cold_at), bucket.written) then corrupt() end
  return bucket
end

local function format(stored)
  return string.format('%.17g', stored)
end

-- Calls wait until `slot`, or at most until the next one may start.
local function store(key, curve, next_at, stored, written, was, slot)
  local ends = cold_at(curve, next_at, stored)
  if ends <= now then return remove(key) end
  local value = int(next_at) .. ' ' .. format(stored) .. ' ' .. int(written)
  set(key, adjustable and value .. ' ' .. int(ends) or value, ends, was, slot or next_at)
end

-- Returns when the next call may start, not before now, and the permits stored then.
local function current(curve, bucket)
  local back = math.max(bucket.written - now, 0)
  local next_at, stored = bucket.next_at - back, math.min(bucket.stored, curve.max_stored)
  if next_at >= now then return next_at, stored end
  -- The sum below may be off by the last bit.
  if bucket.cold_at - back <= now then return now, curve.max_stored end
  return now, math.min(stored + (now - next_at) / curve.cool_down, curve.max_stored)
end

--[[ decisions ]]
local function check(key, at)
  local cost, wait = args[at], args[at + 3]
  local curve = curve_of(args[at + 1], args[at + 2])
  local value = get(key)
  local entry = {now, curve.max_stored, key = key, cost = cost, curve = curve, value = value}
  local unchanged_until = 0
  if value then
    local bucket = load(value, curve)
    entry.was = bucket.cold_at
    entry.future = bucket.written > now
    entry[1], entry[2] = current(curve, bucket)
    unchanged_until = bucket.cold_at - math.max(bucket.written - now, 0)
  end
  if adjustable then entry[3], entry[4], entry[5] = 0, 0, unchanged_until end
  entry.stored = entry[2]
  entry[2] = format(entry.stored)
  local takes = taken(curve, entry.stored, cost)
  entry.admits = cost == 0 or takes <= LONGEST and can_wait(entry[1], wait)
  return entry
end

local function commit(entry)
  local takes, stored = taken(entry.curve, entry.stored, entry.cost)
  store(entry.key, entry.curve, entry[1] + takes, stored, now, entry.was, entry[1])
end

local function undo(entry)
  if entry.future then store(entry.key, entry.curve, entry[1], entry.stored, now, entry.was) end
end

local restore = restore_value

--[[ corrections ]]
-- Undoes the last charge completely, and refunds nothing of earlier ones. Without a charge it lowers the debt.
local function correct(key, at)
  local cost, from, before = args[at], args[at + 1], args[at + 2]
  local curve = curve_of(args[at + 3], args[at + 4])
  local value = get(key)
  if not value then return end
  local bucket = load(value, curve)
  if from then
    local takes, left = taken(curve, before, cost)
    if from ~= bucket.next_at or left ~= bucket.stored then return end
    return store(key, curve, from - takes, before, bucket.written, bucket.cold_at)
  end
  local next_at, stored = current(curve, bucket)
  if next_at > now then
    store(key, curve, math.max(next_at - fresh(curve, cost), now), stored, now, bucket.cold_at)
  end
end

-- Stands still, and is cold afterwards.
local function pause(key, at)
  local curve = curve_of(args[at + 1], args[at + 2])
  local value, next_at = get(key), nil
  next_at = value and current(curve, load(value, curve)) or now
  local by = halt(key, args[at])
  if by > 0 then store(key, curve, next_at + by, curve.max_stored, now) end
end
