-- Token bucket with interval refill: all of a refill at once, every period from the call that found the bucket full.
-- Twin of ratelimit-runtime/src/algorithm/interval_bucket.rs: change both or neither.
--
-- key    "anchor missing": a moment of refill in microseconds, and the permits missing right after it, more than there are while
--        calls wait; where a refund is to be remembered "anchor missing credited until slot"
-- args   cost, burst, refill, period, wait                     permits, permits, permits, microseconds, microseconds
-- reply  anchor, missing, credited                             as of the last refill, and the total given back
-- refund args: cost, anchor, missing and credited right after the charge or '', burst, refill, period
local width = 5
-- No line takes more than this: below it, dividing by a refill is exact.
local MOST_MISSING = 2 ^ 52

-- The bucket as of its last refill. The number of refills is compared before it is multiplied, which stays below 2^53.
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

-- When so many permits are no longer more than there are.
local function slot_of(anchor, missing, rule)
  local over = missing - rule.burst
  return over > 0 and full(anchor, over, rule.refill, rule.period) or 0
end

-- The last refill that leaves so many missing, or some: no call waits for one beyond, unless a refill is more than the bucket
-- holds.
local function not_full(anchor, missing, rule)
  local at = full(anchor, missing, rule.refill, rule.period)
  return rule.burst < rule.refill and at or at - rule.period
end

local function load(value)
  if not value then return {anchor = 0, missing = 0} end
  local anchor, missing, rest = string.match(value, '^(%d+) (%d+)(.*)$')
  if not anchor then corrupt() end
  local bucket = {anchor = exactly(anchor), missing = exactly(missing)}
  if rest ~= '' then
    local credited, till, slot = string.match(rest, '^ (%d+) (%d+) (%d+)$')
    if not credited then corrupt() end
    bucket.credited, bucket.till, bucket.slot = exactly(credited), exactly(till), exactly(slot)
  end
  return bucket
end

local function ends(bucket, rule)
  return math.max(full(bucket.anchor, bucket.missing, rule.refill, rule.period), bucket.till or 0)
end

-- The bucket as of now.
local function current(bucket, rule)
  if ends(bucket, rule) > 2 ^ 53 then corrupt() end
  local anchor, missing = refilled(bucket.anchor, bucket.missing, now, rule.refill, rule.period)
  local ahead = math.max(bucket.anchor - now, 0)
  local till = (bucket.till or 0) - ahead
  local slot = math.max(bucket.slot or 0, slot_of(bucket.anchor, bucket.missing, rule)) - ahead
  return {
    anchor = anchor, missing = missing, credited = till > now and bucket.credited or 0, till = till, slot = slot,
  }
end

-- Stores the bucket with no more than what says something.
local function keep_bucket(key, bucket, rule, was)
  local value = int(bucket.anchor) .. ' ' .. int(bucket.missing)
  if bucket.credited > 0 then
    value = value .. ' ' .. int(bucket.credited) .. ' ' .. int(bucket.till) .. ' ' .. int(math.max(bucket.slot, 0))
  else
    bucket.till = 0
  end
  local ends = ends(bucket, rule)
  if ends <= now then return remove(key) end
  set(key, value, ends, was)
end

local function check(key, at)
  local cost, wait = tonumber(ARGV[at]), tonumber(ARGV[at + 4])
  local rule = {burst = tonumber(ARGV[at + 1]), refill = tonumber(ARGV[at + 2]), period = tonumber(ARGV[at + 3])}
  local value = redis.call('GET', key)
  local stored = load(value)
  local bucket = current(stored, rule)
  local entry = {
    bucket.anchor, bucket.missing, bucket.credited, key = key, cost = cost, rule = rule, bucket = bucket,
    future = stored.anchor > now, value = value, was = value and ends(stored, rule),
  }
  local slot = slot_of(bucket.anchor, bucket.missing + cost, rule)
  local countable = bucket.missing + cost <= MOST_MISSING
  entry.admits = cost == 0 or cost <= rule.burst and countable and slot - now <= wait
  return entry
end

local function commit(entry)
  local bucket, rule = entry.bucket, entry.rule
  bucket.missing = bucket.missing + entry.cost
  bucket.slot = math.max(bucket.slot, slot_of(bucket.anchor, bucket.missing, rule))
  bucket.till = math.max(bucket.till, full(bucket.anchor, bucket.missing, rule.refill, rule.period))
  keep_bucket(entry.key, bucket, rule, entry.was)
end

local function undo(entry)
  if entry.future then keep_bucket(entry.key, entry.bucket, entry.rule, entry.was) end
end

local restore = put_back

local function refund(key, at)
  local cost, from, level, credited =
    tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local rule = {burst = tonumber(ARGV[at + 4]), refill = tonumber(ARGV[at + 5]), period = tonumber(ARGV[at + 6])}
  local value = redis.call('GET', key)
  if not value then return end
  local stored = load(value)
  local bucket = current(stored, rule)
  local anchor, missing, total, marked = bucket.anchor, bucket.missing, bucket.credited, from ~= nil
  if not marked then from, level, credited = anchor, missing, total end
  local _, left = refilled(from, level, math.max(now, bucket.slot), rule.refill, rule.period)
  local anchor_now, left_now = refilled(from, level, now, rule.refill, rule.period)
  local last = marked and credited == total and anchor_now == anchor and left_now == missing
  local worth = last and cost or left - since(credited, total)
  local credit = math.min(cost, worth, missing)
  -- Where more would be missing than there is, the charge was to a state that is lost.
  if credit <= 0 or left_now - since(credited, total) > missing then return end
  local gone = last and credit == cost
  bucket.missing = missing - credit
  if gone and total == 0 then
    bucket.slot = slot_of(anchor, bucket.missing, rule)
  else
    bucket.slot = math.min(bucket.slot, not_full(anchor, bucket.missing, rule))
  end
  if not gone then
    bucket.credited = (total + credit) % CREDITS_WRAP
    bucket.till = math.max(bucket.till, full(anchor, missing, rule.refill, rule.period))
  end
  keep_bucket(key, bucket, rule, ends(stored, rule))
end
