    -- calendar_window, of which nothing is owed
    elseif kind == 11 then
      local limit, first, second, third, value = args[at + 2], args[at + 3], args[at + 4], args[at + 5], call('GET', key)
      local opened, used, ends, pays, was = now, 0, nil, 0, nil
      if value then
        if value.err or #value ~= 32 then plain = false break end
        opened, used, was, pays = unpack_struct('<dddd', value)
        -- Comparisons with what is no number fail.
        if
          not (
            opened >= 0 and opened <= now and used >= 0 and used <= pays and pays <= 9007199254740992
            and was - opened <= third - first and opened % 1 + used % 1 + was % 1 + pays % 1 == 0
          )
        then
          plain = false
          break
        end
        if now < was then ends = was else opened, used, pays = now, 0, 0 end
      end
      found[f + 3] = ends
      if not ends then
        if now < first or now >= third then plain = false break end
        ends = now < second and second or third
      end
      if used + cost > limit then ok = cost == 0 end
      found[f + 2] = ok and cost > 0 and pack_struct('<dddd', opened, used + cost, ends, pays > limit and pays or limit)
      found[f + 4], found[f + 5] = value, was
      reply[length + 1], reply[length + 2], reply[length + 3], reply[length + 4] = ok and opened or -opened, used, ends, pays
      to_write, length = true, length + 4

