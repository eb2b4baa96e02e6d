-- Gives permits back to keys of any algorithms, charges them what calls have used beyond their costs, or pauses them, each on its own.
-- Most corrections are of plain states, and Redis creates the functions of a script anew for each call, so this pass makes none: it
-- reads a key, makes all corrections of it that follow each other, and writes it once. What it cannot correct, such as a state from the
-- future or a paused key, is left to the functions.
--
-- KEYS   the key of the first corrections, of those after them, and so on
-- ARGV   all arguments, packed: for each a byte, the number of its algorithm; a byte, how many more of the same key follow; and seven
--        doubles, the arguments of `correct`, NaN for nil; or that number negative, and the arguments of `pause`. In place of the
--        duration, a penalty chooses one of some: the last two doubles are where they begin and how many they are. Those of all
--        penalties, packed
-- reply  for each the text of an error, an empty one, CUT if a debt was cut, or STEP and the number of a penalty that was added; or the
--        text that `correct` returns. If all are empty, one empty text
local call, type, tonumber, KEYS, unpack_struct, pack_struct = redis.pcall, type, tonumber, KEYS, struct.unpack, struct.pack
local match, format, sub, ceil = string.match, string.format, string.sub, math.ceil
local packed, reply, first, number = ARGV[1], {}, 1, 1
local count = #packed / 58
-- What `correct` and `pause` read, as `check` does for a decision.
local args
local correct_fully
-- Whether the commands that replace entries of a log have been tried: nothing may fail once entries are gone.
local can_replace
-- The time as text, and the format of integers.
local now_text, integer

while first <= count do
  -- Corrects from `first` on, up to the one before `at`: `value` is what the key holds, nil if nothing, `was` and `ends` when that
  -- expires before and afterwards, and `changed` whether it is written. A write that failed has changed nothing, or that the key
  -- expires later.
  local key, at, value, was, ends, changed, failed = KEYS[number], first, nil, nil, 0, false, false
  local kind, final, charge, from, third, fourth, fifth = unpack_struct('<bBddddd', packed, 58 * first - 57)
  -- The last one of this key.
  final = first + final
  if not has_first_pass then kind = 0 end

  -- settled_gcra, at the rate of the last charge
  if kind == 9 then
    local pace, plain = fourth, true
    local tat, made, since1, low1, since2, low2, since3, low3 = now, 0, 0, 0, 0, 0, 0, 0
    value = call('GET', key)
    if value then
      local written, slot, of
      if value.err or #value ~= 88 then
        plain = false
      else
        tat, written, slot, of, made, since1, low1, since2, low2, since3, low3 = unpack_struct('<ddddddddddd', value)
        -- As in plain.lua.
        if
          of == pace and slot == 0 and written <= now and tat > 0 and tat - written <= 1261440000000000
          and 0 <= since1 and since1 <= since2 and since2 <= since3 and since3 <= made and made <= 9007199254740992
          and 0 <= low1 and low1 <= low2 and low2 <= low3 and low3 <= 9007199254740992
          and tat % 1 + written % 1 + made % 1 + since1 % 1 + low1 % 1 + since2 % 1 + low2 % 1 + since3 % 1 + low3 % 1 == 0
        then
          was = made < tat and tat or made + 1
          if tat < now then tat = now end
          if was <= now then made, since1, low1, since2, low2, since3, low3 = 0, 0, 0, 0, 0, 0, 0 end
        else
          plain = false
        end
      end
    end
    while plain do
      local text, missing = '', tat - now
      if charge < 0 then
        local last = made
        made, changed = last < now and now or last + 1, true
        -- `add_low` of settled_gcra.lua
        if missing < low1 then low1 = missing end
        if missing < low2 then low2 = missing end
        if missing < low3 then low3 = missing end
        local loss1, loss2 = low1 * (since2 - since1), (low2 - low1) * (since3 - since2)
        local loss3, loss4 = (low3 - low2) * (last - since3), (missing - low3) * (made - last)
        if loss1 <= loss2 and loss1 <= loss3 and loss1 <= loss4 then
          since1, low1, since2, low2, since3, low3 = since2, low2, since3, low3, last, missing
        elseif loss2 <= loss3 and loss2 <= loss4 then
          since2, low2, since3, low3 = since3, low3, last, missing
        elseif loss3 <= loss4 then
          since3, low3 = last, missing
        end
        local longest = now + from
        if longest < tat then longest = tat end
        tat = tat - charge
        if tat > longest then tat, text = longest, 'CUT' end
      else
        -- `low_since` of settled_gcra.lua; without a receipt, what is missing now
        local credit = missing
        if third ~= third then
          third = -1
        elseif third ~= made then
          local low = 0
          if third < made then
            if since3 <= third then
              low = low3
            elseif since2 <= third then
              low = low2
            elseif since1 <= third then
              low = low1
            end
          end
          if low < missing then credit = low end
        end
        local rest = credit - charge
        if rest > 0 then credit = charge else rest = 0 end
        if credit > 0 then
          tat, changed = tat - credit, true
          if since1 > third then low1 = low1 > credit and low1 - credit or 0 elseif rest < low1 then low1 = rest end
          if since2 > third then low2 = low2 > credit and low2 - credit or 0 elseif rest < low2 then low2 = rest end
          if since3 > third then low3 = low3 > credit and low3 - credit or 0 elseif rest < low3 then low3 = rest end
          -- Nothing is left of a bucket that is full, unless it was charged just now.
          if tat <= now and made < now then made, since1, low1, since2, low2, since3, low3 = 0, 0, 0, 0, 0, 0, 0 end
        end
      end
      if text ~= '' then reply[at] = text end
      at = at + 1
      if at > final then break end
      kind, charge, from, third, fourth = unpack_struct('<bxdddd', packed, 58 * at - 57)
      plain = kind == 9 and fourth == pace
    end
    if changed then
      ends = made < tat and tat or made + 1
      if ends > now then
        was, value = value and was, pack_struct(
          '<ddddddddddd', tat, now, 0, pace, made, since1, low1, since2, low2, since3, low3
        )
      end
    end

  -- fixed_window, of those that owe nothing
  elseif kind == 2 then
    local period, aligned, plain = third, fourth, true
    local opened, held, is_open = now, 0, false
    value = call('GET', key)
    if value then
      if value.err or #value ~= 16 then
        plain = false
      else
        opened, held = unpack_struct('<dd', value)
        local start = aligned == 1 and opened - opened % period or opened
        -- As in plain.lua.
        plain = start <= now and opened >= 0 and held >= 0 and held <= 9007199254740992 and opened % 1 + held % 1 == 0
        was = start + period
        is_open = now < was
      end
    end
    while plain do
      if charge < 0 then
        if not is_open then opened, held = now, 0 end
        -- The next windows would pay for what does not fit into this one.
        if held - charge > fifth then break end
        held, is_open, changed = held - charge, true, true
      elseif is_open and (from ~= from or from == opened) then
        held, changed = held - charge, true
        is_open = held > 0
      end
      at = at + 1
      if at > final then break end
      kind, charge, from, third, fourth, fifth = unpack_struct('<bxddddd', packed, 58 * at - 57)
      plain = kind == 2 and third == period and fourth == aligned
    end
    if changed and is_open then
      ends = (aligned == 1 and opened - opened % period or opened) + period
      was, value = value and was, pack_struct('<dd', opened, held)
    end

  --[[ plain_corrections.lua ]]
  -- gcra and adjustable_gcra, which know nothing but when the bucket is full, and whose rate is that of the last charge
  elseif kind == 1 or kind == 5 then
    local tat, plain, shape, latest, credited = 0, true, kind == 1 and fourth or fifth, nil, kind == 1 and third or fourth
    value = call('GET', key)
    if kind == 1 then
      latest = now + shape
      if value then
        tat = not value.err and match(value, '^%d+$')
        plain = tat and tat + 0 <= latest
      end
    elseif value then
      plain = not value.err and #value == 56
      if plain then
        local written, total, till, slot, since, pace
        tat, written, total, till, slot, since, pace = unpack_struct('<ddddddd', value)
        -- As in plain.lua.
        plain = pace == shape and total == 0 and till == 0 and slot == 0 and since == 0
          and written <= now and written % 1 == 0 and tat > 0 and tat % 1 == 0 and tat - written <= 1261440000000000
      end
    end
    if plain then
      tat = tat + 0
      if value then was = tat end
    end
    while plain do
      local text = ''
      if charge < 0 then
        if tat < now then tat = now end
        local owed, most = tat - charge, now + from
        if most < tat then most = tat end
        if owed > most then owed, text = most, 'CUT' end
        -- A bucket that owes more than it holds remembers when that was written.
        if latest and owed > latest then break end
        tat, changed = owed, true
      else
        local full = tat
        if from == from then full = from - (0 - credited) % 1125899906842624 end
        local credit = full - now
        if charge < credit then credit = charge end
        if credit > 0 and full <= tat then
          -- Only the last charge leaves no trace, if all of it goes.
          if from ~= tat or credited ~= 0 or credit ~= charge then break end
          tat, changed = tat - credit, true
        end
      end
      if text ~= '' then reply[at] = text end
      at = at + 1
      if at > final then break end
      local next_kind
      next_kind, charge, from, third, fourth, fifth = unpack_struct('<bxddddd', packed, 58 * at - 57)
      plain = next_kind == kind and shape == (kind == 1 and fourth or fifth)
      credited = kind == 1 and third or fourth
    end
    if changed and tat > now then
      ends, was = tat, value and was
      value = kind == 1 and format('%.0f', tat) or pack_struct('<ddddddd', tat, now, 0, 0, 0, 0, shape)
    end

  -- holds, of which some are released
  elseif kind == 10 and charge == 1 then
    local field = sub(packed, 58 * first - 31, 58 * first - 16)
    local read = call('HMGET', key, 'sum', field)
    local sum, share = read[1], read[2]
    if sum and share and #sum >= 24 and #share == 32 then
      local total, soonest, ends = unpack_struct('<ddd', sum)
      local permits, till, released, reported = unpack_struct('<dddd', share)
      -- As in `load` of holds.lua.
      if
        total >= permits and total <= 9007199254740992 and permits >= 0 and till > now and till - now <= 315360000000000
        and released >= 0 and released <= 9007199254740992 and (reported == 0 or reported == 1)
        and total % 1 + permits % 1 + till % 1 + released % 1 == 0
      then
        if third > released then
          local left = permits + released - third
          if left < 0 then left = 0 end
          share = pack_struct('<dddd', left, till, third, reported)
          sum = pack_struct('<ddd', total - permits + left, soonest, ends) .. sub(sum, 25)
          failed = type(call('HSET', key, 'sum', sum, field, share)) == 'table'
        end
        at = at + 1
      end
    end
  end

  if changed then
    local result
    if ends > now then
      local second = (ends - ends % 1000000) / 1000000 + 1
      if was and (was - was % 1000000) / 1000000 + 1 == second then
        result = call('SET', key, value, 'KEEPTTL')
      else
        -- As text: to write a number itself takes Redis longer.
        result = call('SET', key, value, 'EXAT', format('%.0f', second))
      end
      failed = result.err
    elseif value then
      failed = type(call('DEL', key)) ~= 'number'
    end
  end
  if failed or at == first then
    if not correct_fully then
      --[[ algorithms.lua ]]
      function correct_fully(key, i)
        args = {unpack_struct('<bxddddddd', packed, 58 * i - 57)}
        local kind = args[1]
        for j = 2, 8 do
          if args[j] ~= args[j] then args[j] = nil end
        end
        local of = algorithm(math.abs(kind))
        local begin, size = args[7], args[8]
        penalty = kind < 0 and size > 0 and {unpack_struct('<' .. string.rep('d', size), ARGV[2], 8 * begin + 1)} or nil
        -- After the numbers, `struct.unpack` returns where it has stopped.
        if penalty then penalty[size + 1] = nil end
        local ok, result = pcall(kind > 0 and of.correct or of.pause, key, 2)
        now = started
        if not ok then return error_text(result) end
        if penalty and penalty.step then return 'STEP ' .. int(penalty.step) end
        return type(result) == 'string' and result or result and 'CUT' or ''
      end
    end
    if at == first then at = first + 1 end
    for i = first, at - 1 do
      local text = correct_fully(key, i)
      reply[i] = text ~= '' and text or nil
    end
  end
  if at > final then number = number + 1 end
  first = at
end
-- Mostly there is nothing to say, which is shorter to send and to read as one text.
if next(reply) == nil then return '' end
for i = 1, count do reply[i] = reply[i] or '' end
return reply
