-- The generic cell rate algorithm (ITU-T I.371, annex A): continuous token buckets, and leaky buckets as a meter and as a
-- queue. Twin of ratelimit-runtime/src/algorithm/gcra.rs: change both or neither.
--
-- key    "tat": the theoretical arrival time, when the bucket will be full again, in microseconds since the epoch; if it is
--        beyond the capacity, a call waits, or a refund must be remembered: "tat written credited until slot"
-- args   charge, capacity, lead, wait      all in microseconds of refill; lead is how far the arrival time may be ahead of
--                                          a call's slot, -1 if the call can never be admitted, and for a charge of 0
--                                          that of one permit; wait is the maximum wait, or -1 less that if the call starts
--                                          at the slot of another bucket, by which this one has to be ready
-- reply  tat, credited                     the arrival time before the charge, at least now, and the total of refunds
-- correct args: charge, negative for a debt; tat and credited right after the charge or nil, for a debt the most that may be missing;
--        capacity, interval, 1 if only the last charge is refundable
-- pause args: microseconds; the least that is missing afterwards, capacity

local function arguments(at)
  return args[at], args[at + 1], args[at + 2], args[at + 3]
end

local function load(value)
  if not value then return {tat = 0} end
  local tat, written, credited, till, slot = string.match(value, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  if tat then
    local bucket = {
      tat = parse(tat), written = parse(written), credited = parse(credited), till = parse(till),
      slot = parse(slot),
    }
    return within_reach(bucket.tat, bucket.written) and bucket or corrupt()
  end
  return {tat = parse(string.match(value, '^%d+$'))}
end

-- Returns the state as of now. One written in the future is as far ahead of now as it was when written.
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

-- Stores the bucket, without what has expired. Calls wait until `last`, if that is not the bucket's slot: it knows none of a queue.
local function keep(key, bucket, capacity, was, last)
  local slot = bucket.slot > now and bucket.slot or 0
  local till = bucket.credited > 0 and bucket.till or 0
  local ends = math.max(bucket.tat, till)
  if ends <= now then return remove(key) end
  local value = bucket.tat
  if bucket.tat > now + capacity or slot > 0 or bucket.credited > 0 then
    value = table.concat({int(bucket.tat), int(now), int(bucket.credited), int(till), int(slot)}, ' ')
  end
  set(key, value, ends, was, last or slot)
end

--[[ decisions ]]
-- Undoes what `check` added and `commit` stored.
local function restore(entry)
  local added, key = entry.added, entry.key
  if not entry.plain then
    if added and added ~= 0 then entry.value = added end
    return restore_value(entry)
  end
  if added == 0 then remove(key) else redis.call('INCRBY', key, -entry.cost) end
  if entry.done then expire(key, entry.was, entry[1] + entry.cost) end
  entry.plain = false
end

-- Adds the charge at once, which is the only command if the bucket is busy and no call waits. A state of several numbers
-- refuses `INCRBY` with an error and is read instead. Until more than the charge is stored, the entry is `plain`.
local function check(key, at)
  local charge, capacity, lead, wait = arguments(at)
  local joins = wait < 0
  if joins then wait = -1 - wait end
  local entry = {now, 0, key = key, cost = charge, capacity = capacity, lead = lead, joins = joins}
  local sum, refused = charge > 0 and wait == 0 and redis.pcall('INCRBY', key, charge)
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
    entry.value = get(key)
    local stored = load(entry.value)
    local bucket = current(stored, capacity)
    entry.bucket, entry.moved, entry.was = bucket, bucket.tat < stored.tat, stored.tat ~= 0 and ends(stored)
    entry[1], entry[2] = math.max(bucket.tat, now), bucket.credited
  end
  entry.waits = math.max(entry[1] - lead, now) - started
  entry.admits = charge == 0 or lead >= 0 and entry.waits <= wait
  -- A refused call is limited even if the server refuses to write.
  if entry.admits and refused then error(refused) end
  return entry
end

local function commit(entry)
  local from, slot, added = math.max(entry[1], entry.slot or 0), entry.slot, entry.added
  local tat = from + entry.cost
  local within = tat <= now + entry.capacity
  if added and within and not slot then
    if added >= now then return expire(entry.key, tat, entry.was) end
    set(entry.key, tat, tat, entry.was)
    entry.plain = false
    return
  end
  local bucket = entry.bucket or {credited = 0, till = 0, slot = 0}
  bucket.tat, bucket.till = tat, math.max(bucket.till, tat)
  if not within then bucket.slot = math.max(bucket.slot, from - entry.lead) end
  if slot then
    -- Remembered like a refund: once the charge is gone, the arrival time does not tell the slots of those before it.
    bucket.slot, bucket.credited = math.max(bucket.slot, slot), (bucket.credited + 1) % CREDITS_WRAP
  end
  keep(entry.key, bucket, entry.capacity, entry.was, math.max(bucket.slot, from - entry.lead))
  entry.plain = false
end

local function undo(entry)
  local added, latest = entry.added, now + entry.capacity
  if not added then
    if entry.moved then keep(entry.key, entry.bucket, entry.capacity, entry.was, entry.bucket.tat) end
  elseif added > latest then
    set(entry.key, latest, latest, entry.was)
    entry.plain = false
  else
    restore(entry)
  end
end

--[[ corrections ]]
local function correct(key, at)
  local charge, from, credited = args[at], args[at + 1], args[at + 2]
  local capacity, interval, last_only = args[at + 3], args[at + 4], args[at + 5] == 1
  local value = get(key)
  if not value and charge > 0 then return end
  local stored = load(value)
  local bucket = current(stored, capacity)
  if charge < 0 then
    bucket.tat = math.max(bucket.tat, now)
    local owed, most = bucket.tat - charge, math.max(bucket.tat, now + from)
    bucket.tat = math.min(owed, most)
    keep(key, bucket, capacity, value and ends(stored))
    return owed > most
  end
  local tat, total, identified = bucket.tat, bucket.credited, from ~= nil
  if not identified then from, credited = tat, total end
  local last = from == tat and credited == total
  local full = from - since(credited, total)
  local worth = full - math.max(now, bucket.slot)
  local credit = (last or not last_only) and math.min(charge, worth) or 0
  -- If the charged bucket would be full later than this one, it was lost.
  if credit <= 0 or full > tat then return end
  local gone = last and (identified and credit == charge or last_only)
  bucket.tat = tat - credit
  bucket.slot = math.min(bucket.slot, bucket.tat - (gone and total == 0 and capacity or interval))
  if not gone then
    bucket.credited, bucket.till = (total + credit) % CREDITS_WRAP, math.max(bucket.till, tat)
  end
  keep(key, bucket, capacity, ends(stored), last_only and bucket.tat)
end

-- Stands still, with one permit at most afterwards. Receipts from before are worth nothing then.
local function pause(key, at)
  local least, capacity = args[at + 1], args[at + 2]
  local bucket, from = current(load(get(key)), capacity), now
  local by, missing = halt(key, args[at]), math.max(bucket.tat - from, 0)
  if by == 0 then return end
  bucket.tat = now + math.max(missing, least)
  bucket.credited, bucket.till = (bucket.credited + missing) % CREDITS_WRAP, math.max(bucket.till + by, bucket.tat)
  bucket.slot = bucket.slot > from and bucket.slot + by or 0
  keep(key, bucket, capacity)
end
