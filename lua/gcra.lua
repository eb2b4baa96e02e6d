-- Generic cell rate algorithm (ITU-T I.371): continuous token buckets and leaky buckets, as a meter and as a queue.
-- Twin of ratelimit-runtime/src/algorithm/gcra.rs: change both or neither.
--
-- key    the theoretical arrival time, when the bucket will be full again, in microseconds since the epoch; where that is beyond
--        what the bucket holds, a call waits, or a refund is to be remembered: "tat written credited until slot"
-- args   charge, capacity, lead, wait      microseconds of refill; how far the arrival time may be ahead of a call's slot,
--                                          -1 for never; how long the call may wait
-- reply  tat, credited                     the arrival time before the charge, not before now, and the total given back
-- refund args: charge, tat and credited right after the charge or '', capacity, interval, 1 if only the last is given back
local width = 4
local CREDITS_WRAP = 2 ^ 50

local function load(value)
  if not value then return {tat = 0} end
  local tat, written, credited, till, slot = string.match(value, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  if tat then
    return {
      tat = tonumber(tat), written = tonumber(written), credited = tonumber(credited), till = tonumber(till),
      slot = tonumber(slot),
    }
  end
  return {tat = tonumber(string.match(value, '^%d+$')) or corrupt()}
end

-- The bucket as of now. One that was written later reaches no further from now than it did from then.
local function current(bucket, capacity)
  local reach = math.max(bucket.written and bucket.tat - bucket.written or 0, capacity)
  local tat = math.min(bucket.tat, now + reach)
  local back = bucket.tat - tat
  local till, slot = (bucket.till or 0) - back, (bucket.slot or 0) - back
  return {tat = tat, credited = till > now and bucket.credited or 0, till = till, slot = slot}
end

-- Stores the bucket with no more than what says something.
local function keep_bucket(key, bucket, capacity, was)
  local slot = bucket.slot > now and bucket.slot or 0
  local till = bucket.credited > 0 and bucket.till or 0
  local ends = math.max(bucket.tat, till)
  if ends <= now then return redis.call('DEL', key) end
  local value = int(bucket.tat)
  if bucket.tat > now + capacity or slot > 0 or bucket.credited > 0 then
    value = table.concat({value, int(now), int(bucket.credited), int(till), int(slot)}, ' ')
  end
  set(key, value, was)
  keep(key, ends, was)
end

local function ends(bucket)
  return math.max(bucket.tat, bucket.till or 0)
end

-- Adds the charge at once, which on a busy key where nobody waits is the only command. A bucket that is more than a number
-- refuses that with an error, and is looked at instead.
local function check(key, at)
  local charge, capacity, lead, wait =
    tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local sum = charge > 0 and wait == 0 and redis.pcall('INCRBY', key, ARGV[at])
  local added = type(sum) == 'number'
  if type(sum) == 'table' and not string.find(sum.err, 'not an integer', 1, true) then error(sum) end
  local stored = added and {tat = sum - charge} or load(redis.call('GET', key))
  local bucket = current(stored, capacity)
  local tat = math.max(bucket.tat, now)
  return {
    tat, bucket.credited, key = key, cost = charge, capacity = capacity, lead = lead, stored = stored,
    bucket = bucket, added = added, admits = charge == 0 or lead >= 0 and tat - lead - now <= wait,
  }
end

local function commit(entry)
  local bucket, stored, tat = entry.bucket, entry.stored, entry[1] + entry.cost
  local waits = tat > now + entry.capacity
  if entry.added and not waits then
    if stored.tat < now then redis.call('INCRBY', entry.key, int(now - stored.tat)) end
    keep(entry.key, tat, stored.tat ~= 0 and stored.tat)
    return
  end
  bucket.tat, bucket.till = tat, math.max(bucket.till, tat)
  if waits then bucket.slot = math.max(bucket.slot, entry[1] - entry.lead) end
  keep_bucket(entry.key, bucket, entry.capacity, stored.tat ~= 0 and ends(stored))
end

local function undo(entry)
  local stored = entry.stored
  if entry.bucket.tat < stored.tat then
    keep_bucket(entry.key, entry.bucket, entry.capacity, ends(stored))
  elseif entry.added and stored.tat == 0 then
    redis.call('DEL', entry.key)
  elseif entry.added then
    redis.call('DECRBY', entry.key, int(entry.cost))
  end
end

local function refund(key, at)
  local charge, from, credited = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local capacity, interval, last_only = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), ARGV[at + 5] == '1'
  local value = redis.call('GET', key)
  if not value then return end
  local stored = load(value)
  local bucket = current(stored, capacity)
  local tat, total, marked = bucket.tat, bucket.credited, from ~= nil
  if not marked then from, credited = tat, total end
  local last = from == tat and credited == total
  local worth = from - (total - credited) % CREDITS_WRAP - math.max(now, bucket.slot)
  local credit = (last or not last_only) and math.min(charge, worth) or 0
  -- A receipt from before a reset may say more than there is.
  credit = math.min(credit, tat - now)
  if credit <= 0 then return end
  local gone = last and (marked and credit == charge or last_only)
  bucket.tat = tat - credit
  bucket.slot = math.min(bucket.slot, bucket.tat - (gone and total == 0 and capacity or interval))
  if not gone then
    bucket.credited, bucket.till = (total + credit) % CREDITS_WRAP, math.max(bucket.till, tat)
  end
  keep_bucket(key, bucket, capacity, ends(stored))
end
