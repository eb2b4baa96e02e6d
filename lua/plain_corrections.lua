  -- calendar_window, which is not over, and of which nothing is owed
  elseif kind == 11 then
    local second, lengths, plain, is_open, opened, used, pays = fourth, fifth, charge >= 0, false, nil, nil, 0
    value = call('GET', key)
    if value then
      plain = false
      if not value.err and #value == 32 then
        opened, used, was, pays = unpack_struct('<dddd', value)
        local last = lengths % 67108864
        -- As in plain_calendar_read.lua.
        plain = opened >= 0 and opened <= now and used >= 0 and used <= pays and pays <= 9007199254740992
          and now < was and was - opened <= ((lengths - last) / 67108864 + last) * 1000000
          and opened % 1 + used % 1 + was % 1 + pays % 1 == 0
        is_open = plain
      end
    end
    while plain do
      if charge < 0 then
        local limit = unpack_struct('<d', packed, 58 * at - 15)
        if limit < pays then limit = pays end
        -- The next windows would pay for what does not fit into this one.
        if not is_open or used - charge > limit or used - charge > from then break end
        used, pays, changed = used - charge, limit, true
      elseif is_open and (from ~= from or from == opened) then
        used, changed = used - charge, true
        is_open = used > 0
      end
      at = at + 1
      if at > final then break end
      kind, charge, from, third, fourth, fifth = unpack_struct('<bxddddd', packed, 58 * at - 57)
      plain = kind == 11 and fourth == second and fifth == lengths
    end
    -- The end of the window stays, and for how long it is remembered.
    if changed and is_open then ends, value = was, pack_struct('<dddd', opened, used, was, pays) end

  -- sliding_window: receipts of one of the newest entries, except one that leaves the very newest empty, and debts after them
  elseif kind == 3 then
    --[[ integer.lua ]]
    local period, precision, plain, wanted = third, fourth, true, 3
    local unit, span = precision == 0 and 1 or precision, period + precision
    local here, latest, time = now - now % unit, nil, nil
    -- The total after the entry at `place`, and the one before it, less what entries up to there have been `given`.
    local before, total, given = nil, nil, 0
    -- The first total that changes, and what a new entry owes.
    local lowest, owed = nil, nil
    -- How many entries have ended, and how many elements come before `head`.
    local ended, skipped = 0, 0
    if charge >= 0 and from >= now - span then
      -- Times stay text, as which they are written again.
      latest, time = from, format(integer, from)
      -- It is mostly the earliest of all, and in one of the newest entries of a log, or in the last sub-window.
      if precision == 0 then wanted = 4 * (final - first < 58 and final - first or 57) + 7 end
    end
    local elements = call('LRANGE', key, wanted == 3 and '-3' or format('-%d', wanted), '-1')
    local n, place, step = #elements, 2, 8
    local newest, is_all, head, before_oldest, oldest = tonumber(elements[n - 1]), n < wanted, nil, nil, nil
    plain = n == 0 and not elements.err or n % 2 == 1 and newest and newest < here + unit and newest % 1 == 0
    if plain and n > 0 then
      head = is_all and elements or call('LRANGE', key, '0', '1')
      before_oldest, oldest = tonumber(head[1]), tonumber(head[2])
      plain = before_oldest and oldest and before_oldest >= 0 and before_oldest < oldest and oldest <= newest
        and before_oldest % 1 + oldest % 1 == 0 and (charge < 0 or elements[n] ~= elements[n - 2])
    end
    while place < n and elements[place] ~= time do place = place + 2 end
    -- Reads on towards the head, from the total before that entry on.
    while time and plain and place > n and not is_all and from >= oldest and (tonumber(elements[2]) or 0) > from do
      local older = call('LRANGE', key, format('-%d', n + step), format('-%d', n + 1))
      local size = #older
      for i = 1, n do older[size + i] = elements[i] end
      elements, n, place, plain, is_all, step = older, n + size, 2, size % 2 == 0, size < step, 2 * step
      while place < n and elements[place] ~= time do place = place + 2 end
    end
    -- Another one may be in the list.
    if place > n then place = 2 end
    if plain and n > 0 then
      -- Totals are less than times, which shows where an element is missing.
      total = tonumber(elements[place + 1])
      plain = total and total >= 0 and total < oldest and total % 1 == 0
    end
    -- Receipts are mostly in the order of their charges. Totals that follow decrease by all that was given back before.
    local newest_place = n - 1
    failed = not plain
    while not failed do
      -- No entry is left to look for, or none is named: then the functions give back the newest charges first.
      if not plain or charge < 0 or from ~= from then
        time = nil
      elseif from ~= latest then
        latest, time = from, format(integer, from)
      end
      if not time or n > 0 and from >= oldest and from - from % unit + span > now then
        while place < newest_place and elements[place] ~= time do
          if lowest then elements[place + 1] = format(integer, total) end
          place, before = place + 2, total
          total = tonumber(elements[place + 1])
          if not (total and total >= 0 and total < oldest and total % 1 == 0) then failed = true break end
          total = total - given
          if total < 0 then total = total % 1125899906842624 end
        end
        if failed or not time or elements[place] ~= time then break end
        if not before then
          before = tonumber(elements[place - 1])
          if not (before and before >= 0 and before < oldest and before % 1 == 0) then failed = true break end
        end
        local left = total - before
        if left < 0 then left = left % 1125899906842624 end
        local credit = charge < left and charge or left
        if place == newest_place and credit == left then break end
        if credit > 0 then
          total, given, lowest = total - credit, given + credit, lowest or place + 1
          if total < 0 then total = total % 1125899906842624 end
        end
      end
      at = at + 1
      plain = at <= final
      if plain then
        kind, charge, from, third, fourth = unpack_struct('<bxdddd', packed, 58 * at - 57)
        plain = kind == 3 and third == period and fourth == precision
      end
    end
    while plain and not failed and charge < 0 and n > 0 and newest - newest % unit + span > now do
      local before_live, first_live, live = before_oldest, oldest, ended
      while first_live and first_live - first_live % unit + span <= now and live < 17 do
        live = live + 1
        if not head[2 * live - skipped + 2] then
          skipped = 2 * live
          head = call('LRANGE', key, live == 1 and '2' or format('%d', skipped), live == 1 and '3' or '35')
        end
        before_live, first_live = tonumber(head[2 * live - skipped + 1]), tonumber(head[2 * live - skipped + 2])
      end
      if
        not (before_live and first_live and before_live >= 0 and first_live % 1 + before_live % 1 == 0)
        or first_live - first_live % unit + span <= now
        or (total + (owed or 0) - before_live) % 1125899906842624 - charge > from
      then
        break
      end
      before_oldest, oldest, ended = before_live, first_live, live
      if newest < here then
        owed = (owed or 0) - charge
      else
        total, lowest = (total - charge) % 1125899906842624, lowest or n
      end
      at = at + 1
      if at > final then break end
      kind, charge, from, third, fourth = unpack_struct('<bxdddd', packed, 58 * at - 57)
      plain = kind == 3 and third == period and fourth == precision
    end
    if lowest and not failed then elements[n] = format(integer, total) end
    if owed then
      local second, was = (here + span - (here + span) % 1000000) / 1000000 + 1, newest - newest % unit + span
      failed = (was - was % 1000000) / 1000000 + 1 ~= second and type(call('EXPIREAT', key, format(integer, second))) ~= 'number'
      owed = format(integer, (total + owed) % 1125899906842624)
    end
    if failed or not (lowest or owed) then
      -- Nothing is written.
    elseif not lowest then
      failed = type(call('RPUSH', key, now_text, owed)) ~= 'number'
    elseif lowest == n and not owed then
      failed = call('LSET', key, '-1', elements[n]).err
    else
      local removed = n - lowest + 1
      -- As in `replace` of sliding_window.lua. A user may run a command on some keys only where the server can be asked.
      if not (can_replace and (not redis.acl_check_cmd or redis.acl_check_cmd('RPUSH', key, '0'))) then
        failed = call('LTRIM', key, '0', '-1').err or type(call('RPUSH', key, '0')) ~= 'number'
        can_replace, removed = not failed, removed + 1
      end
      if owed then elements[n + 1], elements[n + 2], n = now_text, owed, n + 2 end
      failed = failed or call('LTRIM', key, ended == 0 and '0' or format('%d', 2 * ended), format('-%d', removed + 1)).err
      -- Lua's stack holds only some thousands of values.
      while not failed and lowest <= n do
        local to = lowest + 999 < n and lowest + 999 or n
        failed, lowest = type(call('RPUSH', key, unpack(elements, lowest, to))) ~= 'number', to + 1
      end
      ended = 0
    end
    if ended > 0 and not failed then call('LTRIM', key, format('%d', 2 * ended), '-1') end

  -- adjustable_interval_bucket, with its own refills, for which no call waits
  elseif kind == 6 then
    local burst, own, period = unpack_struct('<ddd', packed, 58 * first - 23)
    local plain, anchor, missing, total, till, slot, refill, since = charge >= 0, nil, nil, nil, nil, nil, nil, nil
    value = call('GET', key)
    if value then
      if not value.err then
        anchor, missing, total, till, slot, refill, since = match(value, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
      end
      plain = false
      if anchor then
        anchor, missing, total, till, slot, refill, since =
          anchor + 0, missing + 0, total + 0, till + 0, slot + 0, refill + 0, since + 0
        was = anchor + ceil(missing / refill) * period
        if was < till then was = till end
        -- As `load` and `current` of interval_bucket.lua. Nothing compares with what is no number.
        plain = refill == own and anchor <= now and slot <= now and missing <= 4503599627370496 and was <= 9007199254740992
          and was - anchor <= 1261440000000000 and total <= 9007199254740992 and since <= 9007199254740992
      end
      if plain then
        local passed = now - anchor
        local refills = (passed - passed % period) / period
        if refills >= ceil(missing / refill) then
          anchor, missing = now, 0
        else
          anchor, missing = anchor + refills * period, missing - refills * refill
        end
        if till <= now then total = 0 end
      end
    end
    while plain do
      local was_missing = missing
      if charge < 0 then
        if not anchor then break end
        local most = ceil(burst / refill) * refill
        most = from * refill + (burst < most and burst or most)
        if most > 4503599627370496 then most = 4503599627370496 end
        if missing - charge > most then break end
        missing, changed = missing - charge, true
      elseif anchor then
        local level, credited = third, fourth
        if from ~= from or level > 4503599627370496 then break end
        if from >= since then
          -- What is missing now of the bucket as it was after the charge.
          local refilled, left = from - (from - anchor) % period, level
          local passed = now - refilled
          local refills = (passed - passed % period) / period
          if passed < 0 then
            refilled = now
          elseif refills >= ceil(level / refill) then
            refilled, left = now, 0
          else
            refilled, left = refilled + refills * period, level - refills * refill
          end
          local back = (total - credited) % 1125899906842624
          local is_last = credited == total and refilled == anchor and left == missing
          local credit = is_last and charge or left - back
          if charge < credit then credit = charge end
          if missing < credit then credit = missing end
          if credit > 0 and left - back <= missing then
            missing, changed = missing - credit, true
            local full = anchor + ceil(missing / refill) * period
            if full < slot then slot = full end
            if not is_last or credit < charge then
              full = anchor + ceil(was_missing / refill) * period
              total, till = (total + credit) % 1125899906842624, full < till and till or full
            end
          end
        end
      end
      if missing ~= was_missing then
        if total == 0 then till = 0 end
        ends = anchor + ceil(missing / refill) * period
        if ends < till then ends = till end
        if ends <= now then anchor = nil end
      end
      at = at + 1
      -- A bucket that is full, and kept for a refund only, is read anew.
      if at > final or missing == 0 then break end
      kind, charge, from, third, fourth = unpack_struct('<bxdddd', packed, 58 * at - 57)
      local other_burst, other, every = unpack_struct('<ddd', packed, 58 * at - 23)
      plain = kind == 6 and other == own and every == period
      burst = other_burst
    end
    if changed then
      was = value and was
      if anchor then
        value = format('%.0f %.0f %.0f %.0f %.0f %.0f %.0f', anchor, missing, total, till, slot, refill, since)
      end
    end

