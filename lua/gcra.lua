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

local function load(value)
  if not value then return {tat = 0} end
  local tat, written, credited, till, slot = string.match(value, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  if tat then
    return {
      tat = exactly(tat), written = exactly(written), credited = exactly(credited), till = exactly(till),
      slot = exactly(slot),
    }
  end
  return {tat = exactly(string.match(value, '^%d+$'))}
end

-- The bucket as of now. One that was written later reaches no further from now than it did from then.
local function current(bucket, capacity)
  local reach = math.max(bucket.written and bucket.tat - bucket.written or 0, capacity)
  local tat = math.min(bucket.tat, now + reach)
  local back = bucket.tat - tat
  local till, slot = (bucket.till or 0) - back, (bucket.slot or 0) - back
  return {tat = tat, credited = till > now and bucket.credited or 0, till = till, slot = slot}
end

local function ends(bucket)
  return math.max(bucket.tat, bucket.till or 0)
end

-- Stores the bucket with no more than what says something.
local function keep_bucket(key, bucket, capacity, was)
  local slot = bucket.slot > now and bucket.slot or 0
  local till = bucket.credited > 0 and bucket.till or 0
  local ends = math.max(bucket.tat, till)
  if ends <= now then return remove(key) end
  local value = int(bucket.tat)
  if bucket.tat > now + capacity or slot > 0 or bucket.credited > 0 then
    value = table.concat({value, int(now), int(bucket.credited), int(till), int(slot)}, ' ')
  end
  set(key, value, ends, was)
end

-- Takes back what `check` added, and what `commit` has done.
local function restore(entry)
  local added, key = entry.added, entry.key
  if not entry.plain then
    if added and added ~= 0 then entry.value = int(added) end
    return put_back(entry)
  end
  if added == 0 then remove(key) else redis.call('INCRBY', key, int(-entry.cost)) end
  if entry.done then keep(key, entry.was, entry[1] + entry.cost) end
  entry.plain = false
end

-- Adds the charge at once, which on a busy key where nobody waits is the only command. A bucket that is more than a number
-- refuses that with an error, and is looked at instead. Until more than the charge is stored the entry is `plain`.
local function check(key, at)
  local charge, capacity, lead, wait =
    tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local entry = {now, 0, key = key, cost = charge, capacity = capacity, lead = lead}
  local sum, refused = charge > 0 and wait == 0 and redis.pcall('INCRBY', key, ARGV[at])
  if type(sum) == 'number' then
    entry.added, entry.plain = sum - charge, true
    if entry.added < 0 or sum > 2 ^ 53 then
      restore(entry)
      corrupt()
    end
    entry.was = entry.added ~= 0 and entry.added
    entry[1] = math.min(math.max(entry.added, now), now + capacity)
  elseif sum and string.find(sum.err, 'overflow', 1, true) then
    corrupt()
  else
    if sum and not string.find(sum.err, 'not an integer', 1, true) then refused = sum end
    entry.value = redis.call('GET', key)
    local stored = load(entry.value)
    local bucket = current(stored, capacity)
    entry.bucket, entry.moved, entry.was = bucket, bucket.tat < stored.tat, stored.tat ~= 0 and ends(stored)
    entry[1], entry[2] = math.max(bucket.tat, now), bucket.credited
  end
  entry.admits = charge == 0 or lead >= 0 and entry[1] - lead - now <= wait
  -- Who is limited is told so, even where nothing can be charged.
  if entry.admits and refused then error(refused) end
  return entry
end

local function commit(entry)
  local tat, added = entry[1] + entry.cost, entry.added
  local within = tat <= now + entry.capacity
  if added and within then
    if added >= now then return keep(entry.key, tat, entry.was) end
    set(entry.key, int(tat), tat, entry.was)
    entry.plain = false
    return
  end
  local bucket = entry.bucket or {credited = 0, till = 0, slot = 0}
  bucket.tat, bucket.till = tat, math.max(bucket.till, tat)
  if not within then bucket.slot = math.max(bucket.slot, entry[1] - entry.lead) end
  keep_bucket(entry.key, bucket, entry.capacity, entry.was)
  entry.plain = false
end

local function undo(entry)
  local added, latest = entry.added, now + entry.capacity
  if not added then
    if entry.moved then keep_bucket(entry.key, entry.bucket, entry.capacity, entry.was) end
  elseif added > latest then
    set(entry.key, int(latest), latest, entry.was)
    entry.plain = false
  else
    restore(entry)
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
  local full = from - since(credited, total)
  local worth = full - math.max(now, bucket.slot)
  local credit = (last or not last_only) and math.min(charge, worth) or 0
  -- Where it would be full later than it will be, the charge was to a state that is lost.
  if credit <= 0 or full > tat then return end
  local gone = last and (marked and credit == charge or last_only)
  bucket.tat = tat - credit
  bucket.slot = math.min(bucket.slot, bucket.tat - (gone and total == 0 and capacity or interval))
  if not gone then
    bucket.credited, bucket.till = (total + credit) % CREDITS_WRAP, math.max(bucket.till, tat)
  end
  keep_bucket(key, bucket, capacity, ends(stored))
end
