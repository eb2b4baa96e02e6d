    elseif kind == 11 then
      if found[f + 3] then
        result = call('SET', key, found[f + 2], 'KEEPTTL')
      else
        local ends = now < args[at + 4] and args[at + 4] or args[at + 5]
        result = call('SET', key, found[f + 2], 'EXAT', (ends - ends % 1000000) / 1000000 + 1)
      end
      if result.err then failed = true break end
      done = i
