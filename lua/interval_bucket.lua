-- A token bucket that refills at intervals: a whole refill at once, every period from the call that found the bucket full.
-- Twin of ratelimit-runtime/src/algorithm/interval_bucket.rs: change both or neither.
--
-- key    "anchor missing": the time of a refill in microseconds, and the permits missing right after it, which are more
--        than the bucket holds while calls wait; if a refund must be remembered "anchor missing credited until slot"
-- args   cost, burst, refill, period, wait                     permits, permits, permits, microseconds, microseconds
-- reply  anchor, missing, credited                             as of the last refill, and the total of refunds
-- refund args: cost, anchor, missing and credited right after the charge or '', burst, refill, period
local width = 5
-- The maximum of missing permits. Up to it, division by a refill is exact.
local MOST_MISSING = 2 ^ 52

-- Returns the last refill and the permits missing after it. Comparing the number of refills before multiplying keeps the
-- product below 2^53.
local function refilled(anchor, missing, time, refill, period)
  local refills = math.floor((time - anchor) / period)
  if anchor > time then
    return time, missing
  elseif refills >= math.ceil(missing / refill) then
    return time, 0
  end
  return anchor + refills * period, missing - refills * refill
end

local function full(anchor, missing, refill, period)
  return anchor + math.ceil(missing / refill) * period
end

-- Returns when the bucket stops lacking more permits than it holds; 0 if it does not.
local function slot_of(anchor, missing, spec)
  local over = missing - spec.burst
  return over > 0 and full(anchor, over, spec.refill, spec.period) or 0
end

-- Returns the last refill after which permits are still missing. No call waits for a later one, unless a refill is more than
-- the bucket holds.
local function not_full(anchor, missing, spec)
  local at = full(anchor, missing, spec.refill, spec.period)
  return spec.burst < spec.refill and at or at - spec.period
end

local function load(value)
  if not value then return {anchor = 0, missing = 0} end
  local anchor, missing, rest = string.match(value, '^(%d+) (%d+)(.*)$')
  if not anchor then corrupt() end
  local bucket = {anchor = parse(anchor), missing = parse(missing)}
  if rest ~= '' then
    local credited, till, slot = string.match(rest, '^ (%d+) (%d+) (%d+)$')
    if not credited then corrupt() end
    bucket.credited, bucket.till, bucket.slot = parse(credited), parse(till), parse(slot)
  end
  return bucket
end

local function ends(bucket, spec)
  return math.max(full(bucket.anchor, bucket.missing, spec.refill, spec.period), bucket.till or 0)
end

-- Returns the state as of now.
local function current(bucket, spec)
  if ends(bucket, spec) > 2 ^ 53 then corrupt() end
  local anchor, missing = refilled(bucket.anchor, bucket.missing, now, spec.refill, spec.period)
  local ahead = math.max(bucket.anchor - now, 0)
  local till = (bucket.till or 0) - ahead
  local slot = math.max(bucket.slot or 0, slot_of(bucket.anchor, bucket.missing, spec)) - ahead
  return {
    anchor = anchor, missing = missing, credited = till > now and bucket.credited or 0, till = till, slot = slot,
  }
end

-- Stores the bucket, without what has expired.
local function keep(key, bucket, spec, was)
  local value = int(bucket.anchor) .. ' ' .. int(bucket.missing)
  if bucket.credited > 0 then
    value = value .. ' ' .. int(bucket.credited) .. ' ' .. int(bucket.till) .. ' ' .. int(math.max(bucket.slot, 0))
  else
    bucket.till = 0
  end
  local ends = ends(bucket, spec)
  if ends <= now then return remove(key) end
  set(key, value, ends, was)
end

local function check(key, at)
  local cost, wait = tonumber(ARGV[at]), tonumber(ARGV[at + 4])
  local spec = {burst = tonumber(ARGV[at + 1]), refill = tonumber(ARGV[at + 2]), period = tonumber(ARGV[at + 3])}
  local value = redis.call('GET', key)
  local stored = load(value)
  local bucket = current(stored, spec)
  local entry = {
    bucket.anchor, bucket.missing, bucket.credited, key = key, cost = cost, spec = spec, bucket = bucket,
    future = stored.anchor > now, value = value, was = value and ends(stored, spec),
  }
  local slot = slot_of(bucket.anchor, bucket.missing + cost, spec)
  local countable = bucket.missing + cost <= MOST_MISSING
  entry.admits = cost == 0 or cost <= spec.burst and countable and slot - now <= wait
  return entry
end

local function commit(entry)
  local bucket, spec = entry.bucket, entry.spec
  bucket.missing = bucket.missing + entry.cost
  bucket.slot = math.max(bucket.slot, slot_of(bucket.anchor, bucket.missing, spec))
  bucket.till = math.max(bucket.till, full(bucket.anchor, bucket.missing, spec.refill, spec.period))
  keep(entry.key, bucket, spec, entry.was)
end

local function undo(entry)
  if entry.future then keep(entry.key, entry.bucket, entry.spec, entry.was) end
end

local restore = restore_value

local function refund(key, at)
  local cost, from, level, credited =
    tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local spec = {burst = tonumber(ARGV[at + 4]), refill = tonumber(ARGV[at + 5]), period = tonumber(ARGV[at + 6])}
  local value = redis.call('GET', key)
  if not value then return end
  local stored = load(value)
  local bucket = current(stored, spec)
  local anchor, missing, total, identified = bucket.anchor, bucket.missing, bucket.credited, from ~= nil
  if not identified then from, level, credited = anchor, missing, total end
  local _, left = refilled(from, level, math.max(now, bucket.slot), spec.refill, spec.period)
  local anchor_now, left_now = refilled(from, level, now, spec.refill, spec.period)
  local last = identified and credited == total and anchor_now == anchor and left_now == missing
  local worth = last and cost or left - since(credited, total)
  local credit = math.min(cost, worth, missing)
  -- If more would be missing from the charged bucket than from this one, it was lost.
  if credit <= 0 or left_now - since(credited, total) > missing then return end
  local gone = last and credit == cost
  bucket.missing = missing - credit
  if gone and total == 0 then
    bucket.slot = slot_of(anchor, bucket.missing, spec)
  else
    bucket.slot = math.min(bucket.slot, not_full(anchor, bucket.missing, spec))
  end
  if not gone then
    bucket.credited = (total + credit) % CREDITS_WRAP
    bucket.till = math.max(bucket.till, full(anchor, missing, spec.refill, spec.period))
  end
  keep(key, bucket, spec, ends(stored, spec))
end
