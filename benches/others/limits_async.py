"""limits on Redis, with asyncio: `python limits_async.py PORT TASKS MILLISECONDS`. For each line on its input it prints how many
thousand decisions per second so many tasks get."""
import asyncio
import sys
import time

from limits import RateLimitItemPerHour
from limits.aio.storage import RedisStorage
from limits.aio.strategies import FixedWindowRateLimiter

PORT, TASKS, DURATION = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) / 1000
KEYS = 10_000
LIMIT = RateLimitItemPerHour(1_000_000_000)


async def measure(limiter):
    start = time.perf_counter()

    async def task(number):
        calls = 0
        while time.perf_counter() - start < DURATION:
            await limiter.hit(LIMIT, f"user{(number * 7919 + calls) % KEYS}")
            calls += 1
        return calls

    calls = sum(await asyncio.gather(*(task(number) for number in range(TASKS))))
    return calls / (time.perf_counter() - start) / 1000


async def main():
    limiter = FixedWindowRateLimiter(RedisStorage(f"async+redis://127.0.0.1:{PORT}", implementation="redispy"))
    while sys.stdin.readline():
        print(await measure(limiter), flush=True)


asyncio.run(main())
