// rate-limiter-flexible on Redis: `node rate-limiter-flexible.js PORT TASKS MILLISECONDS`. For each line on its input it prints
// how many thousand decisions per second so many tasks get.
const { default: Redis } = require("ioredis");
const { RateLimiterRedis } = require("rate-limiter-flexible");

const [port, tasks, duration] = process.argv.slice(2).map(Number);
const KEYS = 10_000;
const client = new Redis({ host: "127.0.0.1", port });
const limiter = new RateLimiterRedis({ storeClient: client, points: 1e9, duration: 3600 });

async function measure() {
  const start = performance.now();
  const task = async (number) => {
    let calls = 0;
    for (; performance.now() - start < duration; calls++) {
      await limiter.consume(`user${(number * 7919 + calls) % KEYS}`);
    }
    return calls;
  };
  const calls = await Promise.all(Array.from({ length: tasks }, (_, number) => task(number)));
  return calls.reduce((sum, count) => sum + count, 0) / (performance.now() - start);
}

(async () => {
  for await (const _ of require("readline").createInterface({ input: process.stdin })) {
    console.log(await measure());
  }
  client.disconnect();
})();
