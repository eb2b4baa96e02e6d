-- Makes decisions, each about a list of token buckets or meters for which no call waits, without shadows: plain.lua for the most
-- frequent calls, which need nothing else. It adds to all keys of a decision at once, and looks again only if one of them needs it.
--
-- KEYS   the keys of each decision, `size` of them, which are distinct
-- ARGV   `size`, unless it is 1; then for each key, or once if all have the same, charge and capacity in microseconds
-- reply  as of plain.lua
local call, type, format, KEYS, ARGV = redis.pcall, type, string.format, KEYS, ARGV
local size, at_first = 1, 1
if #ARGV % 2 == 1 then size, at_first = ARGV[1] + 0, 2 end
-- The distance between the arguments of two keys.
local each = ARGV[at_first + 2] and 2 or 0
-- How many charges may be left to `decide`, which takes many times as long. Then the rest of the call is not decided.
local left = 9
local added, charge, capacity = ARGV[at_first], ARGV[at_first] + 0, ARGV[at_first + 1] + 0
-- The reply about the key `i` is at `i + shift`. What the key held is there until its decision is settled.
local reply, shift, last, settled = {now, 0}, 1, size, true
local args, decide_fully, take_back
-- The time as text, and the format of integers.
local now_text, integer

for i = 1, #KEYS do
  if each > 0 then
    local at = at_first + 2 * i - 2
    added, charge, capacity = ARGV[at], ARGV[at] + 0, ARGV[at + 1] + 0
  end
  -- Mostly the only command: the bucket is busy, the charge fits, and the key expires in the right second already.
  local sum = call('INCRBY', KEYS[i], added)
  if type(sum) == 'number' then
    local was = sum - charge
    reply[i + shift] = was
    if was < now or sum - now > capacity or sum % 1000000 < charge then settled = false end
  else
    reply[i + shift], settled = false, false
  end

  if i == last then
    if not settled then
      local first, admitted, failed = i - size + 1, true, false
      for k = first, i do
        if each > 0 then
          local at = at_first + 2 * k - 2
          charge, capacity = ARGV[at] + 0, ARGV[at + 1] + 0
        end
        local was = reply[k + shift]
        if not was or was < 0 or was - now > capacity then failed = true break end
        admitted = admitted and (was < now and 0 or was - now) + charge <= capacity
      end

      -- The first key whose charge is not taken back, and the last one that is changed further.
      local from, touched = first, first - 1
      for k = first, failed and 0 or i do
        if each > 0 then
          local at = at_first + 2 * k - 2
          added, charge = ARGV[at], ARGV[at] + 0
        end
        local key, was, result = KEYS[k], reply[k + shift], nil
        if admitted then
          local ends = (was < now and now or was) + charge
          touched = k
          if was == 0 then
            --[[ integer.lua ]]
            result = call('SET', key, format(integer, ends), 'EXAT', format(integer, (ends - ends % 1000000) / 1000000 + 1))
          else
            -- Cannot fail, as the same command has just not.
            if was < now then call('INCRBY', key, now - was) end
            if ends % 1000000 < ends - was then
              result = call('EXPIREAT', key, (ends - ends % 1000000) / 1000000 + 1)
            end
          end
        else
          from = k
          if was == 0 then result = call('DEL', key) else result = call('INCRBY', key, '-' .. added) end
        end
        if type(result) == 'table' and result.err then failed = true break end
      end

      if failed then
        if not decide_fully then
          --[[ decide.lua ]]
          decide_fully, take_back = decide, give_back
        end
        args = {}
        for k = first, i do
          local at = at_first + (k - 1) * each
          local was, charge, capacity = reply[k + shift], ARGV[at] + 0, ARGV[at + 1] + 0
          local n = 6 * (k - first)
          args[n + 1], args[n + 2], args[n + 3], args[n + 4], args[n + 5] = 1, charge, capacity, capacity - charge, 0
          if was and k >= from then pcall(take_back, KEYS[k], charge, was, k <= touched) end
        end
        for k = first + 1, i do reply[k + shift] = nil end
        reply[first + shift] = decide_fully(first - 1, size)
        left = left - size
        if left <= 0 then return reply end
        shift = shift + 1 - size
      else
        for k = first, i do
          if each > 0 and not admitted then
            local at = at_first + 2 * k - 2
            charge, capacity = ARGV[at] + 0, ARGV[at + 1] + 0
          end
          local tat = reply[k + shift] < now and now or reply[k + shift]
          reply[k + shift] = (admitted or tat - now + charge <= capacity) and tat or -tat
        end
      end
      settled = true
    end
    last = last + size
  end
end
if decide_fully or #KEYS > 500 then return reply end
return struct.pack('<' .. string.rep('d', #KEYS + 1), unpack(reply))
