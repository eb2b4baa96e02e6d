-- The first pass over decisions about plain buckets: token buckets and meters for which no call waits, without shadows. Their
-- state is one number, and the first pass makes no function, which saves most of what a script costs. What it cannot decide,
-- such as a bucket with a state of several numbers, it undoes and leaves to `decide`.
--
-- args   charge, capacity                   in microseconds
-- reply  now, then for each key of a decision the arrival time before the charge, at least now, and negative if the call is
--        refused; or what `decide` returns for the decision
local given = 2
--[[ first_pass.lua ]]
local added, charge, capacity = ARGV[args], ARGV[args] + 0, ARGV[args + 1] + 0
-- The reply about the key `i` is at `i + shift`. What the key held is there until its decision is settled.
local reply, shift, last, settled = {now, 0}, 1, size, true
local decide_fully, take_back

for i = 1, #KEYS do
  if each > 0 then
    local at = args + 2 * i - 2
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
          local at = args + 2 * k - 2
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
          local at = args + 2 * k - 2
          added, charge = ARGV[at], ARGV[at] + 0
        end
        local key, was, result = KEYS[k], reply[k + shift], nil
        if admitted then
          local ends = (was < now and now or was) + charge
          touched = k
          if was == 0 then
            result = call('SET', key, ends, 'EXAT', (ends - ends % 1000000) / 1000000 + 1)
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
          --[[ prelude.lua ]]
          --[[ gcra.lua ]]
          --[[ decide.lua ]]
          width, decide_fully = each, decide
          function arguments(at)
            local charge, capacity = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
            return charge, capacity, charge <= capacity and capacity - charge or -1, 0
          end
          function take_back(key, charge, was, touched)
            if was == 0 then return remove(key) end
            local tat = touched and math.max(was, now) or was
            redis.call('INCRBY', key, was - tat - charge)
            if touched then expire(key, was, tat + charge) end
          end
        end
        for k = from, i do
          local was, charge = reply[k + shift], ARGV[args + (k - 1) * each]
          if was then pcall(take_back, KEYS[k], charge, was, k <= touched) end
        end
        for k = first + 1, i do reply[k + shift] = nil end
        reply[first + shift] = decide_fully(first - 1, size, nil, args + (first - 1) * each)
        left = left - size
        if left <= 0 then return reply end
        shift = shift + 1 - size
      else
        for k = first + shift, i + shift do
          local tat = reply[k] < now and now or reply[k]
          reply[k] = admitted and tat or -tat
        end
      end
      settled = true
    end
    last = last + size
  end
end
return decide_fully and reply or pack(reply)
