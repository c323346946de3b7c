"""The limit on Redis: one script that finishes a batch and takes the next; nothing but the jobs' places is kept."""

import threading

import redis
from trial import Contender, Ran, main

BATCH = 100
BULK = 1_000
STEP = """
if #ARGV > 1 then redis.call('HDEL', 'running', unpack(ARGV, 2)) end
local jobs = redis.call('LPOP', 'line', ARGV[1])
if not jobs then return {} end
local held = {}
for i, job in ipairs(jobs) do held[2 * i - 1] = job; held[2 * i] = '1' end
redis.call('HSET', 'running', unpack(held))
return jobs
"""


class Limit(Contender):
    """A list, a hash, a script, and a blocking pop to wake up."""

    def __init__(self, ran: Ran, url: str) -> None:
        self.ran = ran
        self.url = url
        self.redis = redis.Redis.from_url(url, socket_timeout=30)
        self.number = 0
        self.is_idle = threading.Event()

    def enqueue(self) -> None:
        self.number += 1
        self.redis.rpush("line", self.number)

    def enqueue_many(self, count: int) -> None:
        for start in range(0, count, BULK):
            many = range(self.number + 1, self.number + 1 + min(BULK, count - start))
            self.redis.rpush("line", *many)
            self.number = many.stop - 1

    def work(self) -> None:
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self) -> None:
        client = redis.Redis.from_url(self.url, socket_timeout=30)
        step = client.register_script(STEP)
        done: list[bytes] = []
        while True:
            claimed = step(args=[BATCH, *done])
            for _ in claimed:
                self.ran()
            done = claimed
            if not claimed:
                self.is_idle.set()
                popped = client.blpop("line", 5)
                if popped:
                    self.ran()

    def settle(self) -> None:
        self.is_idle.wait()

    def left(self) -> int:
        return int(self.redis.llen("line") + self.redis.hlen("running"))

    def close(self) -> None:
        self.redis.close()


if __name__ == "__main__":
    main(Limit)
