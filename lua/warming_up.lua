-- A token bucket that warms up: SmoothWarmingUp of Guava's RateLimiter (cold factor 3), by the same operations on doubles in
-- the same order. Twin of ratelimit-runtime/src/algorithm/warming_up.rs: change both or neither.
--
-- key    "next stored written": when the next call may go, what is stored until then, and when that was written, in
--        microseconds and permits
-- args   cost, interval, warmup, wait      permits, microseconds of a permit when warm, microseconds, microseconds
-- reply  next, stored                      as of now; what is stored as a text, which keeps all of a double
-- refund args: cost, next right after the charge and stored before it or '', interval, warmup
local width = 4
local COLD_FACTOR = 3
local LONGEST = 3650 * 86400 * 1000000

local function curve_of(interval, warmup)
  local threshold = 0.5 * warmup / interval
  local cold = interval * COLD_FACTOR
  local most = threshold + 2 * warmup / (interval + cold)
  return {
    interval = interval, threshold = threshold, most = most, slope = (cold - interval) / (most - threshold),
    cool_down = warmup / most,
  }
end

-- The microseconds that one permit takes where so many are stored above the threshold.
local function time_of(curve, above)
  return curve.interval + above * curve.slope
end

-- The microseconds that it takes to take so much of what is stored.
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

-- The microseconds of so many permits when warm.
local function fresh(curve, permits)
  return math.ceil(permits * curve.interval)
end

-- The microseconds that a call takes, and what it leaves in store. Each part is cut to whole microseconds, as Guava does; where
-- that comes to less than the rate allows it is one more.
local function taken(curve, stored, cost)
  local spent = math.min(cost, stored)
  local takes = stored_time(curve, stored, spent) + math.floor((cost - spent) * curve.interval)
  if takes < fresh(curve, cost) then takes = takes + 1 end
  return takes, stored - spent
end

local function cold_at(curve, next_at, stored)
  return next_at + math.ceil((curve.most - stored) * curve.cool_down)
end

local function load(value, curve)
  local next_at, stored, written = string.match(value, '^(%d+) (%S+) (%d+)$')
  if exactly(stored) > curve.most then corrupt() end
  return exactly(next_at), exactly(stored), exactly(written)
end

local function exact(stored)
  return string.format('%.17g', stored)
end

local function store(key, curve, next_at, stored, written, was)
  local ends = cold_at(curve, next_at, stored)
  if ends <= now then return remove(key) end
  set(key, int(next_at) .. ' ' .. exact(stored) .. ' ' .. int(written), ends, was)
end

-- When the next call may go, not before now, and what is stored then.
local function current(curve, next_at, stored, written)
  next_at = next_at - math.max(written - now, 0)
  if next_at >= now then return next_at, stored end
  -- The sum below may miss it by the last bit.
  if cold_at(curve, next_at, stored) <= now then return now, curve.most end
  return now, math.min(stored + (now - next_at) / curve.cool_down, curve.most)
end

local function check(key, at)
  local cost, wait = tonumber(ARGV[at]), tonumber(ARGV[at + 3])
  local curve = curve_of(tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]))
  local value = redis.call('GET', key)
  local entry = {now, curve.most, key = key, cost = cost, curve = curve, value = value}
  if value then
    local next_at, stored, written = load(value, curve)
    entry.was = cold_at(curve, next_at, stored)
    entry.future = written > now
    entry[1], entry[2] = current(curve, next_at, stored, written)
  end
  entry.stored = entry[2]
  entry[2] = exact(entry.stored)
  local takes = taken(curve, entry.stored, cost)
  entry.admits = cost == 0 or takes <= LONGEST and entry[1] - now <= wait
  return entry
end

local function commit(entry)
  local takes, stored = taken(entry.curve, entry.stored, entry.cost)
  store(entry.key, entry.curve, entry[1] + takes, stored, now, entry.was)
end

local function undo(entry)
  if entry.future then store(entry.key, entry.curve, entry[1], entry.stored, now, entry.was) end
end

local restore = put_back

-- The last charge is taken back as if it had never been, of those before nothing is. Without a mark the debt is lowered.
local function refund(key, at)
  local cost, from, before = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local curve = curve_of(tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]))
  local value = redis.call('GET', key)
  if not value then return end
  local next_at, stored, written = load(value, curve)
  local was = cold_at(curve, next_at, stored)
  if from then
    local takes, left = taken(curve, before, cost)
    if from ~= next_at or left ~= stored then return end
    return store(key, curve, from - takes, before, written, was)
  end
  next_at, stored = current(curve, next_at, stored, written)
  if next_at > now then
    store(key, curve, math.max(next_at - fresh(curve, cost), now), stored, now, was)
  end
end
