-- A token bucket that refills at intervals: a whole refill at once, every period from the call that found the bucket full.
-- Twin of ratelimit-runtime/src/algorithm/interval_bucket.rs: change both or neither.
--
-- key    "anchor missing": the time of a refill in microseconds, and the permits missing right after it, which are more
--        than the bucket holds while calls wait; if a refund must be remembered "anchor missing credited until slot"; if burst
--        and refill can change "anchor missing credited until slot refill changed", with the permits of a refill and the time
--        of the first charge with this refill
-- args   cost, burst, refill, period, wait                     permits, permits, permits, microseconds, microseconds
-- reply  anchor, missing, credited                             as of the last refill, and the total of refunds; if burst and
--                                                              refill can change, also when the call would be admitted
--                                                              without waiting, and when the state expires
-- correct args: cost, negative for a debt; anchor, missing and credited right after the charge or nil, for a debt the most refills
--        that it may take; burst, refill, period; if burst and refill can change, the time of the charge instead of the anchor
-- pause args: microseconds; burst, refill, period

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
local function slot_of(anchor, missing, spec, refill)
  local over = missing - spec.burst
  return over > 0 and full(anchor, over, refill, spec.period) or 0
end

-- Returns the last refill after which permits are still missing. No call waits for a later one, unless a refill is more than
-- the bucket holds.
local function not_full(anchor, missing, spec, refill)
  local at = full(anchor, missing, refill, spec.period)
  return (adjustable or spec.burst < spec.refill) and at or at - spec.period
end

local function load(value, spec)
  if not value then return {anchor = 0, missing = 0, refill = spec.refill} end
  local anchor, missing, rest = string.match(value, '^(%d+) (%d+)(.*)$')
  if not anchor then corrupt() end
  local bucket = {anchor = parse(anchor), missing = parse(missing), refill = spec.refill}
  if rest ~= '' or adjustable then
    local pattern = adjustable and '^ (%d+) (%d+) (%d+) (%d+) (%d+)$' or '^ (%d+) (%d+) (%d+)$'
    local credited, till, slot, refill, changed = string.match(rest, pattern)
    if not credited then corrupt() end
    bucket.credited, bucket.till, bucket.slot = parse(credited), parse(till), parse(slot)
    if adjustable then bucket.refill, bucket.changed = parse(refill), parse(changed) end
    if bucket.refill == 0 then corrupt() end
  end
  return bucket
end

local function ends(bucket, spec)
  return math.max(full(bucket.anchor, bucket.missing, bucket.refill, spec.period), bucket.till or 0)
end

-- Returns the state as of now.
local function current(bucket, spec)
  if not within_reach(ends(bucket, spec), bucket.anchor) or ends(bucket, spec) > 2 ^ 53 then corrupt() end
  local anchor, missing = refilled(bucket.anchor, bucket.missing, now, bucket.refill, spec.period)
  local ahead = math.max(bucket.anchor - now, 0)
  local till = (bucket.till or 0) - ahead
  local slot = bucket.slot or 0
  -- With a changing burst the slot cannot be told from the missing permits.
  if not adjustable then slot = math.max(slot, slot_of(bucket.anchor, bucket.missing, spec, spec.refill)) end
  return {
    anchor = anchor, missing = missing, credited = till > now and bucket.credited or 0, till = till, slot = slot - ahead,
    refill = bucket.refill, changed = bucket.changed,
  }
end

-- Stores the bucket, without what has expired.
local function keep(key, bucket, spec, was)
  local value = int(bucket.anchor) .. ' ' .. int(bucket.missing)
  if bucket.credited == 0 then bucket.till = 0 end
  if bucket.credited > 0 or adjustable then
    value = value .. ' ' .. int(bucket.credited) .. ' ' .. int(bucket.till) .. ' ' .. int(math.max(bucket.slot, 0))
  end
  if adjustable then value = value .. ' ' .. int(bucket.refill) .. ' ' .. int(bucket.changed) end
  local ends = ends(bucket, spec)
  if ends <= now then return remove(key) end
  set(key, value, ends, was, bucket.slot)
end

-- Returns the permits missing if the bucket gets refills of this spec. Before a slot that a call waits for, larger refills
-- would return what is reserved.
local function own_missing(bucket, spec)
  local more = math.max(spec.refill - bucket.refill, 0)
  local refills = bucket.slot > now and math.floor((bucket.slot - bucket.anchor) / spec.period) or 0
  return math.min(bucket.missing + more * refills, MOST_MISSING + 1)
end

--[[ decisions ]]
local function check(key, at)
  local cost, wait = args[at], args[at + 4]
  local spec = {burst = args[at + 1], refill = args[at + 2], period = args[at + 3]}
  local value = get(key)
  local stored = load(value, spec)
  local bucket = current(stored, spec)
  local entry = {
    bucket.anchor, bucket.missing, bucket.credited, key = key, cost = cost, spec = spec, bucket = bucket,
    future = stored.anchor > now, value = value, was = value and ends(stored, spec),
  }
  if adjustable then
    entry[2] = own_missing(bucket, spec)
    if bucket.refill ~= spec.refill then entry[3] = 0 end
    -- A cost of 0 reads when one of 1 fits.
    local asked = math.max(cost, 1)
    entry[4] = slot_of(bucket.anchor, entry[2] + asked, spec, spec.refill)
    if spec.refill <= bucket.refill or entry[4] > bucket.slot then
      entry[4] = slot_of(bucket.anchor, bucket.missing + asked, spec, bucket.refill)
    end
    entry[5] = full(bucket.anchor, bucket.missing, bucket.refill, spec.period)
    -- Never so late if the cost fits, which is all that this is for.
    entry[4] = math.min(entry[4], 2 ^ 53)
  end
  local slot = slot_of(bucket.anchor, entry[2] + cost, spec, spec.refill)
  local countable = entry[2] + cost <= MOST_MISSING
  entry.admits = cost == 0 or cost <= spec.burst and countable and can_wait(slot, wait)
  return entry
end

local function commit(entry)
  local bucket, spec = entry.bucket, entry.spec
  bucket.missing = entry[2] + entry.cost
  if adjustable and (not bucket.changed or bucket.refill ~= spec.refill) then
    -- The receipts of earlier charges count with another refill.
    bucket.credited, bucket.till, bucket.refill, bucket.changed = 0, 0, spec.refill, now
  end
  bucket.slot = math.max(bucket.slot, slot_of(bucket.anchor, bucket.missing, spec, spec.refill))
  bucket.till = math.max(bucket.till, full(bucket.anchor, bucket.missing, spec.refill, spec.period))
  keep(entry.key, bucket, spec, entry.was)
end

local function undo(entry)
  if entry.future then keep(entry.key, entry.bucket, entry.spec, entry.was) end
end

local restore = restore_value

--[[ corrections ]]
local function correct(key, at)
  local cost, from, level, credited =
    args[at], args[at + 1], args[at + 2], args[at + 3]
  local spec = {burst = args[at + 4], refill = args[at + 5], period = args[at + 6]}
  local value = get(key)
  if not value and cost >= 0 then return end
  local stored = load(value, spec)
  local bucket = current(stored, spec)
  if cost < 0 then
    if adjustable and not bucket.changed then bucket.refill, bucket.changed = spec.refill, now end
    -- The state gets its own refills until the next charge.
    local full = math.min(spec.burst, math.ceil(spec.burst / spec.refill) * bucket.refill)
    local owed = bucket.missing - cost
    local most = math.max(math.min(from * bucket.refill + full, MOST_MISSING), bucket.missing)
    bucket.missing = math.min(owed, most)
    if not adjustable then bucket.slot = math.max(bucket.slot, slot_of(bucket.anchor, bucket.missing, spec, spec.refill)) end
    keep(key, bucket, spec, value and ends(stored, spec))
    return owed > most
  end
  local anchor, missing, total, identified = bucket.anchor, bucket.missing, bucket.credited, from ~= nil
  if adjustable and identified then
    if from < bucket.changed or bucket.refill ~= spec.refill then return end
    -- The last refill before the charge.
    from = from - (from - anchor) % spec.period
  end
  if not identified then from, level, credited = anchor, missing, total end
  local refill = bucket.refill
  local _, left = refilled(from, level, math.max(now, bucket.slot), refill, spec.period)
  local anchor_now, left_now = refilled(from, level, now, refill, spec.period)
  local last = identified and credited == total and anchor_now == anchor and left_now == missing
  local worth = last and cost or left - since(credited, total)
  local credit = math.min(cost, worth, missing)
  -- If more would be missing from the charged bucket than from this one, it was lost.
  if credit <= 0 or left_now - since(credited, total) > missing then return end
  local gone = last and credit == cost
  bucket.missing = missing - credit
  if gone and total == 0 and not adjustable then
    bucket.slot = slot_of(anchor, bucket.missing, spec, refill)
  else
    bucket.slot = math.min(bucket.slot, not_full(anchor, bucket.missing, spec, refill))
  end
  if not gone then
    bucket.credited = (total + credit) % CREDITS_WRAP
    bucket.till = math.max(bucket.till, full(anchor, missing, refill, spec.period))
  end
  keep(key, bucket, spec, ends(stored, spec))
end

-- Stands still, with one permit at most afterwards. Receipts from before are worth nothing then.
local function pause(key, at)
  local spec = {burst = args[at + 1], refill = args[at + 2], period = args[at + 3]}
  local bucket = current(load(get(key), spec), spec)
  local from, lost = now, bucket.missing
  local by = halt(key, args[at])
  if by == 0 then return end
  bucket.anchor, bucket.missing = bucket.anchor + by, math.max(lost, spec.burst - 1)
  if adjustable then
    if not bucket.changed then bucket.refill, bucket.changed = spec.refill, from end
    bucket.changed = bucket.changed + by
  end
  local full_at = full(bucket.anchor, bucket.missing, bucket.refill, spec.period)
  bucket.credited, bucket.till = ((bucket.credited or 0) + lost) % CREDITS_WRAP, math.max(bucket.till + by, full_at)
  bucket.slot = bucket.slot > from and bucket.slot + by or 0
  keep(key, bucket, spec)
end
