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
  -- the entry of the timestamp `elements[i]` gets back, and `lowest` the first of the totals that change.
  elseif kind == 3 then
    local period, precision, plain, elements, n, bottom, lowest, credits = third, fourth, true, nil, 0, nil, nil, {}
    local unit, span, head, before_oldest, oldest = precision == 0 and 1 or precision, period + precision, nil, nil, nil
    -- The newest entry, once a debt adds one after it.
    local newest_was
    -- The earliest entry to which a receipt may give something back, and the number of such receipts.
    local here, earliest, receipts, following = now - now % unit, 1 / 0, 0, at
    while KEYS[following] == key do
      local _, other, charged = unpack_struct('<bdd', packed, 57 * following - 56)
      if other >= 0 and charged >= now - span then
        receipts = receipts + 1
        if charged < earliest then earliest = charged end
      end
      following = following + 1
    end
    -- How many elements are read at first, an odd number: receipts mostly are of the newest entries of a log, or of few sub-windows. And
    -- how many at most: 17 entries for each receipt, because the functions change one that is far away faster, but not more than a
    -- command takes as arguments.
    local wanted = precision == 0 and receipts > 0 and 2 * (following - at) + 3 or 3
    local most = receipts > 58 and 1999 or receipts > 1 and 34 * receipts - 1 or 33
    -- How many entries have ended, and how many elements come before `head`.
    local ended, skipped = 0, 0
    -- Reads the numbers from the total before that entry on, unless it is far away: then `bottom` is the first timestamp that was read.
    -- Totals are less than times, which shows where an end of the list is missing. Comparisons with what is no number fail.
    while plain and not bottom do
      elements = call('LRANGE', key, '-' .. wanted, '-1')
      n = #elements
      plain = n == 0 and not elements.err or n > 1 and n % 2 == 1
      if not plain or n == 0 then break end
      head = n == wanted and (head or call('LRANGE', key, '0', '3')) or elements
      before_oldest, oldest = tonumber(head[1]), tonumber(head[2])
      plain = before_oldest and oldest and before_oldest >= 0 and before_oldest < oldest and before_oldest % 1 + oldest % 1 == 0
      local known = n + 1
      while plain and known > 1 and not bottom do
        known = known - 1
        local number, after = tonumber(elements[known]), elements[known + 1]
        plain = number and number >= 0 and number % 1 == 0 and (known == n or known % 2 == 1 and number < after
          or known % 2 == 0 and number > after and number < (elements[known + 2] or here + unit) and number >= oldest)
        elements[known] = number
        if plain and known < n and known % 2 == 1 and after <= earliest then bottom = known + 1 end
      end
      if n < wanted or wanted >= most then bottom = bottom or 2 end
      wanted = 4 * wanted - 3 < most and 4 * wanted - 3 or most
    end
    while plain do
      local newest = elements[n - 1]
      if charge < 0 then
        if n == 0 or newest - newest % unit + span <= now then break end
        local before_live, first_live, live = before_oldest, oldest, ended
        while first_live and first_live - first_live % unit + span <= now and live < 17 do
          live = live + 1
          if not head[2 * live - skipped + 2] then
            skipped = 2 * live
            head = call('LRANGE', key, skipped, skipped + 31)
          end
          before_live, first_live = tonumber(head[2 * live - skipped + 1]), tonumber(head[2 * live - skipped + 2])
        end
        if
          not (before_live and first_live and before_live >= 0 and first_live % 1 + before_live % 1 == 0)
          or first_live - first_live % unit + span <= now
          or (elements[n] - before_live) % 1125899906842624 - charge > from
        then
          break
        end
        before_oldest, oldest, ended = before_live, first_live, live
        if newest < here then
          newest_was, n = newest, n + 2
          elements[n - 1], elements[n] = now, (elements[n - 2] - charge) % 1125899906842624
        else
          elements[n], lowest = (elements[n] - charge) % 1125899906842624, lowest or n
        end
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
    local credit = 0
    for j = lowest or n + 1, n, 2 do
      credit = credit + (credits[j - 1] or 0)
      elements[j] = (elements[j] - credit) % 1125899906842624
    end
    if newest_was then
      -- The last total is of the new entry, so no other changes.
      if lowest == n then lowest = nil end
      local second, was = (here + span - (here + span) % 1000000) / 1000000 + 1, newest_was - newest_was % unit + span
      failed = (was - was % 1000000) / 1000000 + 1 ~= second and type(call('EXPIREAT', key, second)) ~= 'number'
    end
    if lowest == n and not failed then
      failed = call('LSET', key, '-1', elements[n]).err
    elseif lowest and not failed then
      local removed = (newest_was and n - 2 or n) - lowest + 1
      -- As in `replace` of sliding_window.lua. A user may run a command on some keys only where the server can be asked.
      if not (can_replace and (not redis.acl_check_cmd or redis.acl_check_cmd('RPUSH', key, '0'))) then
        failed = call('LTRIM', key, '0', '-1').err or type(call('RPUSH', key, '0')) ~= 'number'
        can_replace, removed = not failed, removed + 1
      end
      if not failed then
        failed = call('LTRIM', key, 2 * ended, -removed - 1).err or type(call('RPUSH', key, unpack(elements, lowest, n))) ~= 'number'
        ended = 0
      end
    elseif newest_was and not failed then
      failed = type(call('RPUSH', key, now, elements[n])) ~= 'number'
    end
    if ended > 0 and not failed then call('LTRIM', key, 2 * ended, '-1') end

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

