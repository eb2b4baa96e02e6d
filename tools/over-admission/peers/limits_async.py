"""limits on Redis, which Flask-Limiter decides by: `python limits_async.py STRATEGY PORT BURSTS LOG`, as peers/rust."""
import asyncio
import sys
import time

from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter

STRATEGIES = {
    "fixed": FixedWindowRateLimiter,
    "moving": MovingWindowRateLimiter,
    "counter": SlidingWindowCounterRateLimiter,
}
STRATEGY, PORT, LOG = STRATEGIES[sys.argv[1]], sys.argv[2], sys.argv[4]
BURSTS = [tuple(int(time) / 1000 for time in burst.split("-")) for burst in sys.argv[3].split(",")]
LIMIT = RateLimitItemPerSecond(20)
refused = 0


async def task(number, limiter, log):
    global refused
    call = number
    while burst := next((burst for burst in BURSTS if time.time() < burst[1]), None):
        await asyncio.sleep(max(0, burst[0] - time.time()))
        key = f"key-{call % 4}"
        call += 1
        start = time.time_ns()
        if await limiter.hit(LIMIT, key):
            took = time.time_ns() - start
            log.write(f'{{"time":{start + took // 2},"took":{took},"key":"{key}"}}\n')
        else:
            refused += 1
        await asyncio.sleep(0.001)


async def main():
    limiter = STRATEGY(RedisStorage(f"async+redis://127.0.0.1:{PORT}", implementation="redispy"))
    with open(LOG, "w") as log:
        await asyncio.gather(*(task(number, limiter, log) for number in range(6)))
    print(refused)


asyncio.run(main())
