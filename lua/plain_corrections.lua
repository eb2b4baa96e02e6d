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
        local limit = unpack_struct('<d', packed, 57 * at - 15)
        if limit < pays then limit = pays end
        -- The next windows would pay for what does not fit into this one.
        if not is_open or used - charge > limit or used - charge > from then break end
        used, pays, changed = used - charge, limit, true
      elseif is_open and (from ~= from or from == opened) then
        used, changed = used - charge, true
        is_open = used > 0
      end
      reply[at], at = '', at + 1
      if KEYS[at] ~= key then break end
      kind, charge, from, third, fourth, fifth = unpack_struct('<bddddd', packed, 57 * at - 56)
      plain = kind == 11 and fourth == second and fifth == lengths
    end
    -- The end of the window stays, and for how long it is remembered.
    if changed and is_open then ends, value = was, pack_struct('<dddd', opened, used, was, pays) end

  -- sliding_window: debts, and receipts of one of the newest entries, except one that leaves the very newest empty
  elseif kind == 3 then
    --[[ integer.lua ]]
    local period, precision, plain, elements, n, wanted, following = third, fourth, true, nil, 0, 3, at
    local unit, span, earliest = precision == 0 and 1 or precision, period + precision, 1 / 0
    local here, head, before_oldest, oldest, first_read, newest = now - now % unit, nil, nil, nil, nil, nil
    -- What the entries up to `elements[place]` have got back: totals after that are still to decrease by it. The first total that
    -- changes, and what a new entry owes.
    local given, place, time, lowest, owed = 0, 2, nil, nil, nil
    -- How many entries have ended, and how many elements come before `head`.
    local ended, skipped = 0, 0
    while KEYS[following] == key and following < at + 58 do following = following + 1 end
    if charge >= 0 and from >= now - span then
      -- Mostly the earliest of all, and one of the newest entries of a log, or of few sub-windows.
      earliest = from
      if precision == 0 then wanted = 4 * (following - at) + 3 end
    end
    -- 17 entries for each correction, because the functions change one that is far away faster, but not more than a command takes as
    -- arguments.
    local most = 34 * (following - at) - 1
    -- Reads from the total before that entry on, unless it is far away. Comparisons with what is no number fail.
    while plain and not first_read do
      elements = call('LRANGE', key, wanted == 3 and '-3' or format('-%d', wanted), '-1')
      n = #elements
      plain = n % 2 == 1 or n == 0 and not elements.err
      if not plain or n == 0 then break end
      head = n == wanted and (head or call('LRANGE', key, '0', '1')) or elements
      before_oldest, oldest, first_read = tonumber(head[1]), tonumber(head[2]), tonumber(elements[2])
      newest = n == 3 and first_read or tonumber(elements[n - 1])
      plain = before_oldest and oldest and first_read and newest and before_oldest >= 0
        and before_oldest < oldest and oldest <= first_read and first_read <= newest and newest < here + unit
        and before_oldest % 1 + oldest % 1 + first_read % 1 + newest % 1 == 0
      if plain and first_read > earliest and n == wanted and wanted < most then
        first_read, wanted = nil, 4 * wanted - 3 < most and 4 * wanted - 3 or most
      end
    end
    -- Times stay text, as which they are written again.
    if earliest < 1 / 0 then time = format(integer, from) end
    while place < n and elements[place] ~= time do place = place + 2 end
    -- Totals are less than times, which shows where the end of the list is missing.
    for i = place - 1, plain and n or 0, 2 do
      local total = tonumber(elements[i])
      plain = total and total >= 0 and total < oldest and total % 1 == 0
      if not plain then break end
      elements[i] = total
    end
    while plain do
      if charge < 0 then
        if n == 0 or newest - newest % unit + span <= now then break end
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
          or (elements[n] + (owed or 0) - before_live) % 1125899906842624 - charge > from
        then
          break
        end
        before_oldest, oldest, ended = before_live, first_live, live
        if newest < here then
          owed = (owed or 0) - charge
        else
          elements[n], lowest = (elements[n] - charge) % 1125899906842624, lowest or n
        end
      elseif n > 0 then
        -- Without a receipt, the newest charges go first.
        if from ~= from then break end
        if from >= oldest and from - from % unit + span > now then
          -- Receipts are mostly in the order of their charges.
          local i = place
          if from ~= earliest then earliest, time = from, format(integer, from) end
          while i < n and elements[i] ~= time do i = i + 2 end
          if i > n then break end
          for j = place + 1, given > 0 and i - 1 or 0, 2 do elements[j] = (elements[j] - given) % 1125899906842624 end
          place = i
          local left = (elements[i + 1] - given - elements[i - 1]) % 1125899906842624
          local credit = charge < left and charge or left
          if not owed and (i == n - 1 and left == credit or (elements[n] - elements[n - 2]) % 1125899906842624 == 0) then break end
          if credit > 0 then
            given = given + credit
            if not lowest or i + 1 < lowest then lowest = i + 1 end
          end
        end
      end
      reply[at], at = '', at + 1
      if KEYS[at] ~= key then break end
      kind, charge, from, third, fourth = unpack_struct('<bdddd', packed, 57 * at - 56)
      plain = kind == 3 and third == period and fourth == precision
    end
    if owed then
      local second, was = (here + span - (here + span) % 1000000) / 1000000 + 1, newest - newest % unit + span
      failed = (was - was % 1000000) / 1000000 + 1 ~= second and type(call('EXPIREAT', key, format(integer, second))) ~= 'number'
      owed = format(integer, (elements[n] - given + owed) % 1125899906842624)
    end
    for i = lowest or n + 1, n, 2 do
      elements[i] = format(integer, (i < place and elements[i] or elements[i] - given) % 1125899906842624)
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
      if not failed then
        failed = call('LTRIM', key, ended == 0 and '0' or format('%d', 2 * ended), format('-%d', removed + 1)).err
          or type(call('RPUSH', key, unpack(elements, lowest, n))) ~= 'number'
        ended = 0
      end
    end
    if ended > 0 and not failed then call('LTRIM', key, format('%d', 2 * ended), '-1') end

  -- adjustable_interval_bucket, with its own refills, for which no call waits
  elseif kind == 6 then
    local burst, own, period = unpack_struct('<ddd', packed, 57 * first - 23)
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
      reply[at], at = '', at + 1
      -- A bucket that is full, and kept for a refund only, is read anew.
      if KEYS[at] ~= key or missing == 0 then break end
      kind, charge, from, third, fourth = unpack_struct('<bdddd', packed, 57 * at - 56)
      local other_burst, other, every = unpack_struct('<ddd', packed, 57 * at - 23)
      plain = kind == 6 and other == own and every == period
      burst = other_burst
    end
    if changed then
      was = value and was
      if anchor then
        value = format('%.0f %.0f %.0f %.0f %.0f %.0f %.0f', anchor, missing, total, till, slot, refill, since)
      end
    end

