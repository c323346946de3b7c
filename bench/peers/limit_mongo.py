"""The limit on MongoDB: find a batch, mark it, finish the last one; majority writes, a tailable cursor to wake up."""

import threading

from pymongo import ASCENDING, CursorType, MongoClient, WriteConcern
from trial import Contender, Ran, main

BATCH = 100
BULK = 1_000


class Limit(Contender):
    """One collection and one capped one."""

    def __init__(self, ran: Ran, url: str) -> None:
        self.ran = ran
        self.client = MongoClient(url)
        database = self.client.get_default_database()
        self.jobs = database.get_collection("job", write_concern=WriteConcern("majority"))
        self.jobs.create_index([("state", ASCENDING), ("_id", ASCENDING)])
        if "notifications" not in database.list_collection_names():
            database.create_collection("notifications", capped=True, size=4096)
            database.notifications.insert_one({"first": 1})
        self.notifications = database.get_collection("notifications", write_concern=WriteConcern(w=0))
        self.is_idle = threading.Event()

    def enqueue(self) -> None:
        self.jobs.insert_one({"state": 0, "payload": b"[]"})
        self.notifications.insert_one({})

    def enqueue_many(self, count: int) -> None:
        for start in range(0, count, BULK):
            many = [{"state": 0, "payload": b"[]"} for _ in range(min(BULK, count - start))]
            self.jobs.insert_many(many, ordered=False)

    def work(self) -> None:
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self) -> None:
        last = next(self.notifications.find().sort("$natural", -1).limit(1))["_id"]
        done: list[object] = []
        while True:
            if done:
                self.jobs.update_many({"_id": {"$in": done}, "state": 1}, {"$set": {"state": 2}})
            done = [job["_id"] for job in self.jobs.find({"state": 0}).sort("_id", 1).limit(BATCH)]
            if done:
                self.jobs.update_many({"_id": {"$in": done}, "state": 0}, {"$set": {"state": 1}})
            for _ in done:
                self.ran()
            if not done:
                self.is_idle.set()
                cursor = self.notifications.find({"_id": {"$gte": last}}, cursor_type=CursorType.TAILABLE_AWAIT)
                for notified in cursor:  # begins with the last one: a cursor that finds nothing at first does not wait
                    if notified["_id"] == last:
                        continue
                    last = notified["_id"]
                    break

    def settle(self) -> None:
        self.is_idle.wait()

    def left(self) -> int:
        return self.jobs.count_documents({"state": {"$ne": 2}})

    def close(self) -> None:
        self.client.close()


if __name__ == "__main__":
    main(Limit)
