-- Generic cell rate algorithm (ITU-T I.371): a continuous token bucket, a leaky bucket as a meter.
-- Twin of ratelimit-runtime/src/algorithm/gcra.rs: change both or neither.
--
-- key    the theoretical arrival time, when the bucket will be full again, in microseconds since the epoch
-- args   charge, capacity                                      both in microseconds of refill
-- reply  the theoretical arrival time before the charge, not before now
-- refund args: credit, when the bucket would have been full right after the charge or '', capacity
local width = 2

local function load(key)
  local value = redis.call('GET', key)
  if not value then return 0 end
  return tonumber(string.match(value, '^%d+$')) or corrupt()
end

-- Adds the charge at once, which on a busy key is the only command.
local function check(key, at)
  local charge, capacity = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local stored = charge == 0 and load(key) or redis.call('INCRBY', key, ARGV[at]) - charge
  local tat = math.min(math.max(stored, now), now + capacity)
  return {
    tat, key = key, cost = charge, stored = stored, capacity = capacity,
    admits = tat + charge <= now + capacity,
  }
end

local function commit(entry)
  if entry.stored < now then
    redis.call('INCRBY', entry.key, int(now - entry.stored))
  end
  keep(entry.key, entry[1] + entry.cost, entry.stored ~= 0 and entry.stored)
end

local function undo(entry)
  if entry.stored > now + entry.capacity then
    redis.call('SET', entry.key, int(now + entry.capacity))
    keep(entry.key, now + entry.capacity)
  elseif entry.stored == 0 then
    redis.call('DEL', entry.key)
  else
    redis.call('DECRBY', entry.key, int(entry.cost))
  end
end

local function refund(key, at)
  local credit, full, capacity = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local stored = load(key)
  local tat = math.min(stored, now + capacity)
  if full then credit = math.min(credit, math.max(full - now, 0)) end
  if credit == 0 or tat <= now then return end
  if tat - credit <= now then
    redis.call('DEL', key)
  else
    redis.call('DECRBY', key, int(stored - tat + credit))
    keep(key, tat - credit, stored)
  end
end
