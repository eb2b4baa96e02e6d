    -- holds, of which none has expired, and for which no call waits
    elseif kind == 10 then
      local released, field, forgotten = 0, '', 0
      if cost > 0 then
        released, field, next_take = unpack_struct('<dc16', takes, next_take)
        args[at + 5] = field
      end
      local read = call('HMGET', key, 'sum', field)
      local sum, share, held, soonest, second = read[1], read[2], 0, nil, 0
      if sum then
        if #sum ~= 24 then plain = false break end
        held, soonest, second = unpack_struct('<ddd', sum)
        -- Comparisons with what is no number fail.
        if
          not (
            held >= 0 and held <= 9007199254740992 and soonest > now and soonest - now <= 315360000000000 and second >= 0
            and second * 1000000 - now <= 315360000000000 and held % 1 + soonest % 1 + second % 1 == 0
          )
        then
          plain = false
          break
        end
      elseif read.err or share or call('HGETALL', key)[1] then
        plain = false
        break
      end
      local permits, till, before, reported = 0, 0, 0, 0
      if released < 0 then released, forgotten = -1 - released, 1 end
      if share then
        if #share ~= 32 then plain = false break end
        permits, till, before, reported = unpack_struct('<dddd', share)
        -- As in `load` of holds.lua.
        if
          not (
            till > now and till - now <= 315360000000000 and permits >= 0 and permits <= held and before >= 0
            and before <= 9007199254740992 and (reported == 0 or reported == 1) and permits % 1 + till % 1 + before % 1 == 0
          )
        then
          plain = false
          break
        end
        forgotten = 0
      end
      found[f + 2], found[f + 5] = read, nil
      if cost > 0 then
        local releases = share and released > before
        if releases then
          local ended = released - before
          if ended > permits then ended = permits end
          held, permits = held - ended, permits - ended
        elseif share then
          released = before
        end
        if held + cost > args[at + 2] then
          if args[at + 4] < 0 then plain = false break end
          ok, forgotten = false, 0
        elseif forgotten == 1 then
          ok = false
        end
        if releases then
          -- What has ended is released even if the call is refused.
          share = pack_struct('<dddd', permits, till, released, reported)
          if ok and admitted then
            found[f + 5], added = share, i
          elseif type(call('HSET', key, 'sum', pack_struct('<ddd', held, soonest, second), field, share)) == 'table' then
            plain = false
            break
          end
        end
      end
      if ok and cost > 0 then
        local ttl = args[at + 4]
        local ends = now + (ttl < 0 and -ttl or ttl)
        local latest = (ends - ends % 1000000) / 1000000 + 1
        if latest > second then read.second = latest else latest = second end
        if not soonest or ends < soonest then soonest = ends end
        found[f + 3] = pack_struct('<ddd', held + cost, soonest, latest)
        found[f + 4] = pack_struct('<dddd', permits + cost, ends, released, reported)
      end
      length = length + 1
      reply[length] = ok and held + 1 or -1 - held
      if not ok then
        length = length + 1
        reply[length] = forgotten
      end
      to_write = true

