    -- calendar_window, of which nothing is owed
    elseif kind == 11 then
      local limit, first, second, lengths, value = args[at + 2], args[at + 3], args[at + 4], args[at + 5], call('GET', key)
      local last = lengths % 67108864
      local third = second + (lengths - last) / 67108864 * 1000000
      local fourth = third + last * 1000000
      -- As `blur` of calendar_window.lua.
      local blur = fourth - first < 518400000000 and 43200000000 or 97200000000
      local opened, used, ends, pays, was, time = now, 0, nil, 0, nil, now
      if value then
        if value.err or #value ~= 32 then plain = false break end
        opened, used, was, pays = unpack_struct('<dddd', value)
        -- Comparisons with what is no number fail.
        if
          not (
            opened >= 0 and opened <= now and used >= 0 and used <= pays and pays <= 9007199254740992
            and was - opened <= fourth - second and opened % 1 + used % 1 + was % 1 + pays % 1 == 0
          )
        then
          plain = false
          break
        end
        if now < was then
          ends = was
        else
          opened, used, pays = now, 0, 0
          if now < was + blur then time = was + blur end
        end
        was = was + blur
      end
      found[f + 3] = nil
      if not ends then
        if time < first or time >= fourth then plain = false break end
        ends = time < second and second or time < third and third or fourth
        found[f + 3] = ends + blur
      end
      if used + cost > limit then ok = cost == 0 end
      found[f + 2] = ok and cost > 0 and pack_struct('<dddd', opened, used + cost, ends, pays > limit and pays or limit)
      found[f + 4], found[f + 5] = value, was
      reply[length + 1], reply[length + 2], reply[length + 3], reply[length + 4] = ok and opened or -opened, used, ends, pays
      to_write, length = true, length + 4

