-- Makes decisions, each about a list of charges of any algorithms. Most are about plain states, and Redis creates the functions of a
-- script anew for each call, so this pass over a list hardly makes any: it reads, or adds to, each key, and writes only if all charges
-- fit. What it cannot decide, such as a state from the future or a call that has to wait, it undoes and leaves to `decide`.
--
-- KEYS   the keys of each decision, in order; the keys of one decision are distinct
-- ARGV   the number of keys of a decision, the format of its arguments as of `struct.unpack`, and the arguments of the first decision,
--        packed. If those of others differ, there follow the format of the ones that do, which ends with a zero, their numbers from 1 on,
--        a byte each, and these arguments of each other decision. If decisions have different formats, or more arguments than a byte can
--        number, three of each decision. Last, if there are charges of holds, what is said of them, packed: of each that costs something
--        the released permits and the field
-- args   six for each charge: its kind, which is the number of its algorithm, negative for a shadow, and the arguments of `check`, but 0
--        for what differs between charges of holds
-- reply  doubles: now, then for each charge what was read, which starts with a negative number if its own policy refuses it:
--          gcra                tat                 the arrival time before the charge, at least now
--          fixed_window        opened, count
--          calendar_window     opened, used, ends, pays
--          sliding_window      newest, counted     the timestamp of the newest entry that counts, or now; the permits counted; if
--                                                  the charge is refused or costs 0, also when it will fit, or 0
--          interval_bucket     anchor, missing
--          adjustable_gcra     tat                 the same at the rate of the call
--          settled_gcra        tat, made           the same, and the time of the charge
--          holds               held                one more than the permits held before the charge; if the charge is refused, also 1 if the share is lost
--        If a decision was left to `decide`, a list of these numbers, with what it returns in place of those of the decision.
local call, type, tonumber, KEYS, ARGV = redis.pcall, type, tonumber, KEYS, ARGV
local unpack_struct, pack_struct, match, format, byte = struct.unpack, struct.pack, string.match, string.format, string.byte
local size, form, packed, next_at, given = ARGV[1] + 0, ARGV[2], ARGV[3], 1, 3
local args, differing, has_more, takes, next_take = nil, nil, true, #ARGV % 3 == 1 and ARGV[#ARGV], 1
-- How many charges may be left to `decide`, which takes many times as long. Then the rest of the call is not decided.
local left = 9
-- What the writes need of what was read: five for each charge of a decision, of which the first says whether a shadow is admitted.
local found = {0, 0, 0, 0, 0}
-- A table with room for a few numbers need not grow for them.
local reply, length, first, count = {now, 0, 0}, 1, 1, #KEYS
local add_entry, decide_fully, asked_for_time, take_back
-- The time as text, and the format of integers.
local now_text, integer

while first <= count do
  if has_more then
    --[[ plain_arguments.lua ]]
  end

  -- `added` is the last key to which a charge was added, and `done` the last one that was changed further.
  local last, before, at, f, added, done, take = first + size - 1, length, 1, 0, first - 1, first - 1, next_take
  local admitted, plain, to_write, to_trim, failed = true, has_first_pass, false, false, false
  for i = first, plain and last or 0 do
    local kind, key, cost, ok, shadow = args[at], KEYS[i], args[at + 1], true, false
    if kind < 0 then kind, shadow = -kind, true end

    -- gcra: adds at once. Mostly this is the only command: the bucket is busy, the charge fits, and the key expires in the right
    -- second already. Once refused, it only reads.
    if kind == 1 then
      local capacity, lead, was = args[at + 2], args[at + 3], nil
      local adds = admitted and cost > 0
      if adds then
        local sum = call('INCRBY', key, args[at + 5])
        if type(sum) ~= 'number' then plain = false break end
        was, added = sum - cost, i
        found[f + 2] = was
      else
        was = call('GET', key)
        if was then
          was = not was.err and match(was, '^%d+$')
          if not was then plain = false break end
          was = was + 0
        else
          was = 0
        end
      end
      local level = was < now and 0 or was - now
      if was < 0 or level > capacity then plain = false break end
      if level > lead and cost > 0 then
        local wait = args[at + 4]
        if wait < 0 then wait = -1 - wait end
        ok = not adds and lead >= 0 and level - lead <= wait
        -- A call that would have to wait, or may.
        if adds and lead >= 0 and wait > 0 then plain = false break end
        to_write = true
      elseif level + cost > capacity and adds then
        -- More than this is a state of several numbers.
        plain = false
        break
      elseif was < now or (was + cost) % 1000000 < cost then
        to_write = true
      end
      length = length + 1
      reply[length] = ok and now + level or -now - level

    -- fixed_window
    elseif kind == 2 then
      local value = call('GET', key)
      local opened, held, is_open = now, 0, false
      if value then
        if value.err or #value ~= 16 then plain = false break end
        opened, held = unpack_struct('<dd', value)
        local start, period = opened, args[at + 3]
        if args[at + 4] == 1 then start = opened - opened % period end
        if not (start <= now and opened >= 0 and held >= 0 and held <= 9007199254740992 and opened % 1 + held % 1 == 0) then
          plain = false
          break
        end
        if now >= start + period then opened, held = now, 0 else is_open = true end
      end
      if held + cost > args[at + 2] then ok = cost == 0 end
      found[f + 2], found[f + 3], found[f + 4] = is_open and opened, held, value
      reply[length + 1], reply[length + 2] = ok and opened or -opened, held
      to_write, length = true, length + 2

    -- sliding_window: a charge of now is in the sub-window from `here`, and counts those from `earliest` on.
    elseif kind == 3 then
      --[[ integer.lua ]]
      local limit, period, precision = args[at + 2], args[at + 3], args[at + 4]
      local unit, span = precision > 0 and precision or 1, precision + period
      local here, earliest = now - now % unit, now - span - (now - span) % unit + unit
      local counted, live, fits, newest, total, oldest, trim = 0, 0, 0, nil, nil, nil, nil
      local head = call('LRANGE', key, '0', '1')
      if head[1] then
        local tail = call('LRANGE', key, '-2', '-1')
        local before_oldest = tonumber(head[1])
        oldest, newest, total = tonumber(head[2]), tonumber(tail[1]), tonumber(tail[2])
        -- Totals are less than times, which shows where an end of the list is missing. Comparisons with what is no number fail.
        if
          not (
            before_oldest and oldest and newest and total and total >= 0
            and before_oldest < oldest and total < oldest and newest >= oldest and newest < here + unit
            and oldest % 1 == 0 and newest % 1 == 0 and total % 1 == 0
          )
        then
          plain = false
          break
        end
        if newest < earliest then
          trim = '-3'
        else
          -- Mostly one entry has ended, which is read alone. After a pause it is some, and the functions find them if they are many.
          local skipped = 0
          while oldest and oldest < earliest and live < 17 do
            live = live + 1
            if not head[2 * live - skipped + 2] then
              skipped = 2 * live
              head = call('LRANGE', key, live == 1 and '2' or format('%d', skipped), live == 1 and '3' or '35')
            end
            before_oldest, oldest = tonumber(head[2 * live - skipped + 1]), tonumber(head[2 * live - skipped + 2])
          end
          if not (before_oldest and oldest and before_oldest >= 0 and oldest >= earliest and oldest % 1 == 0) then
            plain = false
            break
          end
          if live > 0 then trim = live == 1 and '2' or format('%d', 2 * live) end
          counted = (total - before_oldest) % 1125899906842624
          if counted % 1 ~= 0 then plain = false break end
        end
      elseif head.err then
        plain = false
        break
      end
      -- A cost of 0 reads when one of 1 will fit.
      local asked = cost > 0 and cost or 1
      if counted + asked > limit then
        ok = cost == 0
        if asked <= limit then
          -- Mostly the cost fits when the oldest entry ends.
          local after = tonumber(call('LINDEX', key, 2 * live + 2))
          if
            not (after and after >= 0 and after < oldest and after % 1 == 0)
            or (total - after) % 1125899906842624 + asked > limit
          then
            plain = false
            break
          end
          fits = oldest - oldest % unit + span
        end
      end
      if not add_entry and not (total and newest >= here) then
        -- Adds an entry of now. Returns the second in which the key expires then, 0 if it does already and nil if no entry was
        -- added, and whether it failed.
        function add_entry(key, total, newest, after, here, unit, span)
          local ends, was, result = here + span, nil, nil
          local second = (ends - ends % 1000000) / 1000000 + 1
          if total then
            was = newest - newest % unit + span
            result = call('RPUSH', key, now_text, format(integer, after))
          else
            result = call('RPUSH', key, '0', now_text, format(integer, after))
          end
          if type(result) == 'table' then return nil, true end
          if was and (was - was % 1000000) / 1000000 + 1 == second then return 0, false end
          return second, type(call('EXPIREAT', key, format(integer, second))) == 'table'
        end
      end
      if size == 1 and ok and cost > 0 and not shadow then
        -- The only charge of a decision is written at once, but not a shadow, whose failure fails no decision.
        local after, second, fails = ((total or 0) + cost) % 1125899906842624, nil, nil
        if total and newest >= here then
          fails = call('LSET', key, '-1', format(integer, after)).err
        else
          second, fails = add_entry(key, total, newest, after, here, unit, span)
        end
        if trim and not fails then fails = call('LTRIM', key, trim, '-1').err end
        if fails then
          found[2], found[3], found[5], done, plain = total, newest, second, i, false
          break
        end
      else
        found[f + 2], found[f + 3], found[f + 4], found[f + 5] = total, newest, trim, nil
        to_write, to_trim = true, to_trim or trim
      end
      local shown = counted > 0 and newest or now
      reply[length + 1], reply[length + 2] = ok and shown or -shown, counted
      length = length + 2
      if not ok or cost == 0 then
        length = length + 1
        reply[length] = fits
      end

    -- interval_bucket
    elseif kind == 4 then
      local burst, refill, period, value = args[at + 2], args[at + 3], args[at + 4], call('GET', key)
      local anchor, missing, was = now, 0, nil
      if value then
        if value.err then plain = false break end
        anchor, missing = match(value, '^(%d+) (%d+)$')
        if not anchor then plain = false break end
        anchor, missing = anchor + 0, missing + 0
        if not (anchor <= now and missing <= burst) then plain = false break end
        local rounded = missing + refill - 1
        was = anchor + (rounded - rounded % refill) / refill * period
        local since = now - anchor
        local refills = (since - since % period) / period
        if now >= was then
          anchor, missing = now, 0
        else
          anchor, missing = anchor + refills * period, missing - refills * refill
        end
      end
      local over = missing + cost - burst
      if cost > 0 and over > 0 then
        local wait = args[at + 5]
        ok = false
        if cost <= burst and wait > 0 then
          if admitted then plain = false break end
          local rounded = over + refill - 1
          ok = anchor + (rounded - rounded % refill) / refill * period - now <= wait
        end
      end
      found[f + 2], found[f + 3], found[f + 4], found[f + 5] = anchor, missing, value, was
      reply[length + 1], reply[length + 2] = ok and anchor or -anchor, missing
      to_write, length = true, length + 2

    -- adjustable_gcra, at the rate of the last charge
    elseif kind == 5 then
      local lead, pace, value = args[at + 2], args[at + 4], call('GET', key)
      local tat, was = now, nil
      if value then
        if value.err or #value ~= 56 then plain = false break end
        local written, credited, till, slot, changed, of
        tat, written, credited, till, slot, changed, of = unpack_struct('<ddddddd', value)
        -- Not a state from the future, nor one that waiting calls, refunds or another rate have changed, nor one that `load` calls
        -- corrupt.
        if
          not (
            of == pace and credited == 0 and till == 0 and slot == 0 and changed == 0
            and written <= now and written % 1 == 0 and tat > 0 and tat % 1 == 0 and tat - written <= 1261440000000000
          )
        then
          plain = false
          break
        end
        was = tat
        if tat < now then tat = now end
      end
      local level = tat - now
      if cost > 0 and level > lead then
        local wait = args[at + 3]
        if admitted and lead >= 0 and wait > 0 then plain = false break end
        ok = lead >= 0 and level - lead <= wait
      end
      found[f + 2], found[f + 4], found[f + 5] = tat, value, was
      length = length + 1
      reply[length] = ok and tat or -tat
      to_write = true

    -- settled_gcra, at the rate of the last charge
    elseif kind == 9 then
      local lead, value, tat, made, was = args[at + 2], call('GET', key), now, now, nil
      if value then
        if value.err or #value ~= 88 then plain = false break end
        local written, slot, of, last, since1, low1, since2, low2, since3, low3
        tat, written, slot, of, last, since1, low1, since2, low2, since3, low3 = unpack_struct('<ddddddddddd', value)
        -- As above, and the lows are in order.
        if
          not (
            of == args[at + 4] and slot == 0 and written <= now and tat > 0 and tat - written <= 1261440000000000
            and 0 <= since1 and since1 <= since2 and since2 <= since3 and since3 <= last and last <= 9007199254740992
            and 0 <= low1 and low1 <= low2 and low2 <= low3 and low3 <= 9007199254740992
            and tat % 1 + written % 1 + last % 1 + since1 % 1 + low1 % 1 + since2 % 1 + low2 % 1 + since3 % 1 + low3 % 1 == 0
          )
        then
          plain = false
          break
        end
        was = last < tat and tat or last + 1
        if last >= now then made = last + 1 end
        if tat < now then tat = now end
      end
      local level = tat - now
      if cost > 0 and level > lead then
        local wait = args[at + 3]
        if admitted and lead >= 0 and wait > 0 then plain = false break end
        ok = lead >= 0 and level - lead <= wait
      end
      found[f + 2], found[f + 3], found[f + 4], found[f + 5] = tat, made, value, was
      reply[length + 1], reply[length + 2] = ok and tat or -tat, made
      to_write, length = true, length + 2

    --[[ plain_calendar_read.lua ]]
    --[[ plain_holds_read.lua ]]
    else
      plain = false
      break
    end
    if shadow then found[f + 1] = ok elseif not ok then admitted = false end
    at, f = at + 6, f + 5
  end

  at, f = 1, 0
  for i = first, plain and (admitted and to_write and last or not admitted and added) or 0 do
    local kind, key, cost, charged, result = args[at], KEYS[i], args[at + 1], admitted, nil
    if kind < 0 then kind, charged = -kind, admitted and found[f + 1] end
    if cost <= 0 then
      -- Only read, or released.
    elseif kind == 1 then
      local was = found[f + 2]
      if charged then
        local ends = (was < now and now or was) + cost
        done = i
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
      elseif was == 0 then
        result = call('DEL', key)
      else
        result = call('INCRBY', key, '-' .. args[at + 5])
      end
      if type(result) == 'table' and result.err then failed = true break end
      if not charged then found[f + 2] = nil end
    --[[ plain_holds_write.lua ]]
    elseif not charged then
      -- Nothing was added.
    elseif kind == 2 then
      local opened, period = found[f + 2], args[at + 3]
      if opened then
        result = call('SET', key, pack_struct('<dd', opened, found[f + 3] + cost), 'KEEPTTL')
      else
        local ends = (args[at + 4] == 1 and now - now % period or now) + period
        result = call('SET', key, pack_struct('<dd', now, cost), 'EXAT', (ends - ends % 1000000) / 1000000 + 1)
      end
      if result.err then failed = true break end
      done = i
    --[[ plain_calendar_write.lua ]]
    elseif kind == 3 then
      local total, newest, unit = found[f + 2], found[f + 3], args[at + 4]
      local span = args[at + 3] + unit
      if unit == 0 then unit = 1 end
      local here, after = now - now % unit, ((total or 0) + cost) % 1125899906842624
      if total and newest >= here then
        failed = call('LSET', key, '-1', format(integer, after)).err
        if failed then break end
        done = i
      else
        found[f + 5], failed = add_entry(key, total, newest, after, here, unit, span)
        if found[f + 5] then done = i end
        if failed then break end
      end
    else
      local was, ends, value = found[f + 5], nil, nil
      if kind == 4 then
        local anchor, missing, refill = found[f + 2], found[f + 3] + cost, args[at + 3]
        local rounded = missing + refill - 1
        ends = anchor + (rounded - rounded % refill) / refill * args[at + 4]
        value = format('%.0f %.0f', anchor, missing)
      elseif kind == 9 then
        local tat, made, missing, min = found[f + 2], found[f + 3], found[f + 2] - now, math.min
        local since1, low1, since2, low2, since3, low3 = 0, 0, 0, 0, 0, 0
        if was and was > now then
          -- `add_low` of settled_gcra.lua
          local tat, written, slot, of, last
          tat, written, slot, of, last, since1, low1, since2, low2, since3, low3 = unpack_struct('<ddddddddddd', found[f + 4])
          low1, low2, low3 = min(low1, missing), min(low2, missing), min(low3, missing)
          local loss1, loss2 = low1 * (since2 - since1), (low2 - low1) * (since3 - since2)
          local loss3, loss4 = (low3 - low2) * (last - since3), (missing - low3) * (made - last)
          local least = min(loss1, loss2, loss3, loss4)
          if loss1 == least then
            since1, low1, since2, low2, since3, low3 = since2, low2, since3, low3, last, missing
          elseif loss2 == least then
            since2, low2, since3, low3 = since3, low3, last, missing
          elseif loss3 == least then
            since3, low3 = last, missing
          end
        end
        ends = tat + cost
        value = pack_struct(
          '<ddddddddddd', ends, now, 0, args[at + 4], made, since1, low1, since2, low2, since3, low3
        )
        if ends <= made then ends = made + 1 end
      else
        ends = found[f + 2] + cost
        value = pack_struct('<ddddddd', ends, now, 0, 0, 0, 0, args[at + 4])
      end
      local second = (ends - ends % 1000000) / 1000000 + 1
      if was and (was - was % 1000000) / 1000000 + 1 == second then
        result = call('SET', key, value, 'KEEPTTL')
      else
        result = call('SET', key, value, 'EXAT', second)
      end
      if result.err then failed = true break end
      done = i
    end
    at, f = at + 6, f + 5
  end
  -- What has ended goes after all other writes, because this cannot be undone.
  if to_trim and admitted and plain and not failed then
    at, f = 1, 0
    for i = first, last do
      if (args[at] == 3 or args[at] == -3) and args[at + 1] > 0 and (args[at] > 0 or found[f + 1]) and found[f + 4] then
        if call('LTRIM', KEYS[i], found[f + 4], '-1').err then failed = true break end
      end
      at, f = at + 6, f + 5
    end
  end

  if failed or not plain then
    if not decide_fully then
      --[[ decide.lua ]]
      decide_fully, asked_for_time = decide, asks_for_time
      -- Undoes what was done to a key: `touched` if more than the charge was added.
      function take_back(key, at, f, touched)
        local kind, cost, period = math.abs(args[at]), args[at + 1], args[at + 3]
        if kind == 1 then
          if cost > 0 and found[f + 2] then give_back(key, cost, found[f + 2], touched) end
        elseif cost == 0 or not touched or args[at] < 0 and not found[f + 1] then
          return
        elseif kind == 3 then
          local total, newest, pushed, precision = found[f + 2], found[f + 3], found[f + 5], args[at + 4]
          local unit = precision > 0 and precision or 1
          algorithm(3).restore({
            key = key, total = total, newest = newest, pushed = pushed, raised = not pushed, created = pushed and not newest,
            -- The last two elements go, whatever the length, which the user may not ask for.
            n = -1.5,
            expiry_set = pushed and pushed > 0, expires = now - now % unit + precision + period,
            was = newest and newest - newest % unit + precision + period,
          })
        elseif kind == 10 then
          local read = found[f + 2]
          algorithm(10).restore({
            key = key, field = args[at + 5], sum = read[1], value = read[2], written = true, expires = read.second,
          })
        else
          local value, was = found[f + 4], found[f + 5]
          if kind == 2 and value then
            local opened = unpack_struct('<d', value)
            was = (args[at + 4] == 1 and opened - opened % period or opened) + period
          end
          restore_value({done = true, key = key, value = value, was = was})
        end
      end
    end
    for i = first, math.max(added, done) do
      local at, f, touched = 1 + 6 * (i - first), 5 * (i - first), i <= done
      if touched or args[at] == 1 or args[at] == -1 then pcall(take_back, KEYS[i], at, f, touched) end
    end
    for i = #reply, before + 1, -1 do reply[i] = nil end
    next_take = take
    for at = 1, takes and 6 * size or 0, 6 do
      if math.abs(args[at]) == 10 and args[at + 1] > 0 then
        args[at + 3], args[at + 5], next_take = unpack_struct('<dc16', takes, next_take)
      end
    end
    length = before + 1
    reply[length] = decide_fully(first - 1, size)
    left = left - size
    -- Those after a decision that the process is to ask for again are not to be made before it.
    if left <= 0 or asked_for_time(reply[length]) then return reply end
  end
  first = last + 1
end
if decide_fully or length > 500 then return reply end
return pack_struct('<' .. string.rep('d', length), unpack(reply, 1, length))
