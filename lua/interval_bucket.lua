-- Token bucket with interval refill: all of a refill at once, every period from the call that found the bucket full.
-- Twin of ratelimit-runtime/src/algorithm/interval_bucket.rs: change both or neither.
--
-- key    "anchor missing": a moment of refill in microseconds, and the permits missing right after it
-- args   cost, burst, refill, period                           permits, permits, permits, microseconds
-- reply  anchor, missing                                       as of the last refill
-- refund args: cost, anchor and missing right after the charge or '', refill, period
local width = 4

-- The bucket as of its last refill. The number of refills is compared before it is multiplied, which stays below 2^53.
local function refilled(anchor, missing, refill, period)
  local refills = math.floor((now - anchor) / period)
  if anchor > now then
    return now, missing
  elseif refills >= math.ceil(missing / refill) then
    return now, 0
  end
  return anchor + refills * period, missing - refills * refill
end

local function full(anchor, missing, refill, period)
  return anchor + math.ceil(missing / refill) * period
end

local function load(value)
  local anchor, missing = string.match(value, '^(%d+) (%d+)$')
  if not missing then corrupt() end
  return tonumber(anchor), tonumber(missing)
end

local function store(entry, anchor, missing)
  local ends = full(anchor, missing, entry.refill, entry.period)
  set(entry.key, int(anchor) .. ' ' .. int(missing), entry.ends)
  keep(entry.key, ends, entry.ends)
end

local function check(key, at)
  local cost, burst, refill, period =
    tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local value = redis.call('GET', key)
  local entry = {now, 0, key = key, cost = cost, refill = refill, period = period}
  if value then
    local anchor, missing = load(value)
    if missing > burst then corrupt() end
    entry.future = anchor > now
    entry.ends = full(anchor, missing, refill, period)
    entry[1], entry[2] = refilled(anchor, missing, refill, period)
  end
  entry.admits = cost == 0 or entry[2] + cost <= burst
  return entry
end

local function commit(entry)
  store(entry, entry[1], entry[2] + entry.cost)
end

local function undo(entry)
  if entry.future then store(entry, entry[1], entry[2]) end
end

local function refund(key, at)
  local cost, from, level, refill, period = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]),
    tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local value = redis.call('GET', key)
  if not value then return end
  local stored_anchor, stored_missing = load(value)
  local anchor, missing = refilled(stored_anchor, stored_missing, refill, period)
  if from then
    local _, left = refilled(from, level, refill, period)
    cost = math.min(cost, left)
  end
  if cost == 0 or missing == 0 then return end
  if missing - cost <= 0 then
    redis.call('DEL', key)
  else
    store({key = key, refill = refill, period = period}, anchor, missing - cost)
  end
end
