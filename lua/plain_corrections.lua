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

  -- sliding_window: debts, and receipts of one of the newest entries, except one that leaves the very newest empty. `credits[i]` is what
  -- the entry of the timestamp `elements[i]` gets back, until it is written, and `lowest` the first of the totals that change.
  elseif kind == 3 then
    local period, precision, plain, elements, n, bottom, lowest, credits = third, fourth, true, nil, 0, nil, nil, {}
    local unit, span, wanted, most, before_oldest, oldest, ended = precision, period + precision, 3, 33, nil, nil, 0
    -- Between a charge and its receipt there are few sub-windows, and some entries of a log.
    if precision == 0 then unit, wanted = 1, 9 end
    local here, earliest = now - now % unit, nil
    -- Reads the numbers from the total before the earliest charged entry on, unless that is far away: then `bottom` is the first
    -- timestamp that was read. Totals are less than times, which shows where an end of the list is missing. Comparisons with what is no
    -- number fail.
    while plain and not bottom do
      elements = call('LRANGE', key, '-' .. wanted, '-1')
      n = #elements
      plain = n == 0 and not elements.err or n > 1 and n % 2 == 1
      if not plain or n == 0 then break end
      local head = n == wanted and call('LRANGE', key, '0', '1') or elements
      before_oldest, oldest = tonumber(head[1]), tonumber(head[2])
      plain = before_oldest and oldest and before_oldest >= 0 and before_oldest < oldest and before_oldest % 1 + oldest % 1 == 0
      if plain and not earliest then
        -- The earliest entry to which a receipt gives something back: one that has ended gets nothing. The functions change an entry
        -- faster, but once for each receipt.
        local same, least, receipts = at, now - span < oldest and oldest or now - span, 0
        earliest = 1 / 0
        while KEYS[same] == key do
          local _, other, charged = unpack_struct('<bdd', packed, 57 * same - 56)
          if other >= 0 and charged >= least then
            receipts = receipts + 1
            if charged < earliest then earliest = charged end
          end
          same = same + 1
        end
        if receipts > 1 then most = 33 * receipts end
      end
      local known = n + 1
      while plain and known > 1 and not bottom do
        known = known - 1
        local number, after = tonumber(elements[known]), elements[known + 1]
        plain = number and number >= 0 and number % 1 == 0 and (known == n or known % 2 == 1 and number < after
          or known % 2 == 0 and number > after and number < (elements[known + 2] or here + unit) and number >= oldest)
        elements[known] = number
        if plain and known < n and known % 2 == 1 and after <= earliest then bottom = known + 1 end
      end
      wanted = 4 * wanted - 3
      if wanted > most then bottom = bottom or 2 end
    end
    while plain do
      local newest = elements[n - 1]
      if charge < 0 then
        if n == 0 or newest - newest % unit + span <= now then break end
        local before_live, first_live, live = before_oldest, oldest, 0
        while first_live and first_live - first_live % unit + span <= now and live < 3 do
          live = live + 1
          local entry = call('LRANGE', key, 2 * (ended + live), 2 * (ended + live) + 1)
          before_live, first_live = tonumber(entry[1]), tonumber(entry[2])
        end
        if
          not (before_live and first_live and before_live >= 0 and first_live % 1 + before_live % 1 == 0)
          or first_live - first_live % unit + span <= now
          or (elements[n] - before_live) % 1125899906842624 - charge > from
        then
          break
        end
        if newest < here then
          -- What can still fail comes after what is changed already.
          local credit = 0
          for j = lowest or n + 1, n, 2 do
            credit = credit + (credits[j - 1] or 0)
            elements[j] = (elements[j] - credit) % 1125899906842624
            failed = call('LSET', key, j - n - 1, elements[j]).err
            if failed then break end
          end
          if failed then break end
          lowest, credits = nil, {}
          local second = (here + span - (here + span) % 1000000) / 1000000 + 1
          local was, after = newest - newest % unit + span, (elements[n] - charge) % 1125899906842624
          if (was - was % 1000000) / 1000000 + 1 ~= second and type(call('EXPIREAT', key, second)) ~= 'number' then break end
          if type(call('RPUSH', key, now, after)) ~= 'number' then break end
          elements[n + 1], elements[n + 2], n, to_repeat = now, after, n + 2, at + 1
        else
          elements[n], lowest = (elements[n] - charge) % 1125899906842624, lowest or n
        end
        before_oldest, oldest, ended = before_live, first_live, ended + live
      elseif n > 0 then
        -- Without a receipt, the newest charges go first.
        if from ~= from then break end
        local is_live, i, top = from >= oldest and from - from % unit + span > now, bottom, n + 1
        if is_live and from < elements[bottom] then break end
        while top - i > 2 do
          local middle = (i + top) / 2
          middle = middle - middle % 2
          if elements[middle] <= from then i = middle else top = middle end
        end
        if is_live and elements[i] == from then
          local credited, last = credits[i] or 0, (elements[n] - elements[n - 2]) % 1125899906842624 - (credits[n - 1] or 0)
          local credit = (elements[i + 1] - elements[i - 1]) % 1125899906842624 - credited
          if charge < credit then credit = charge end
          if i == n - 1 then last = last - credit end
          if last == 0 then break end
          if credit > 0 then
            credits[i] = credited + credit
            if not lowest or i + 1 < lowest then lowest = i + 1 end
          end
        end
      end
      reply[at], at = '', at + 1
      if KEYS[at] ~= key then break end
      kind, charge, from, third, fourth = unpack_struct('<bdddd', packed, 57 * at - 56)
      plain = kind == 3 and third == period and fourth == precision
    end
    if not failed then
      local credit = 0
      for j = lowest or n + 1, n, 2 do
        credit = credit + (credits[j - 1] or 0)
        failed = call('LSET', key, j - n - 1, (elements[j] - credit) % 1125899906842624).err
        if failed then break end
      end
      if ended > 0 and not failed then call('LTRIM', key, 2 * ended, '-1') end
    end

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

