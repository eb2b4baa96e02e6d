// rate-limiter-flexible on Redis: `node rate-limiter-flexible.js PORT BURSTS LOG`, as peers/rust.
const fs = require("fs");
const { default: Redis } = require("ioredis");
const { RateLimiterRedis } = require("rate-limiter-flexible");

const [port, bursts, log] = process.argv.slice(2);
const times = bursts.split(",").map((burst) => burst.split("-").map(Number));
const client = new Redis({ host: "127.0.0.1", port: Number(port) });
const limiter = new RateLimiterRedis({ storeClient: client, points: 20, duration: 1 });
const file = fs.openSync(log, "w");
const origin = BigInt(Math.round(performance.timeOrigin * 1e6));
const now = () => origin + BigInt(Math.round(performance.now() * 1e6));
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
let refused = 0;

async function task(number) {
  for (let call = number; ; call++) {
    const burst = times.find(([, end]) => Date.now() < end);
    if (!burst) return;
    if (burst[0] > Date.now()) await sleep(burst[0] - Date.now());
    const key = `key-${call % 4}`;
    const start = now();
    try {
      await limiter.consume(key);
      const took = now() - start;
      fs.writeSync(file, `{"time":${start + took / 2n},"took":${took},"key":"${key}"}\n`);
    } catch (error) {
      if (error instanceof Error) throw error;
      refused++;
    }
    await sleep(1);
  }
}

(async () => {
  await Promise.all(Array.from({ length: 6 }, (_, number) => task(number)));
  console.log(refused);
  client.disconnect();
})();
