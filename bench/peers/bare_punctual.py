"""The yardstick: a thread that sleeps until the next whole second."""

import threading
import time

from punctual import Ran, main


def start(ran: Ran) -> None:
    threading.Thread(target=loop, args=(ran,), daemon=True).start()


def loop(ran: Ran) -> None:
    second = int(time.time())
    while True:
        second += 1
        time.sleep(max(0.0, second - time.time()))
        ran(second)


if __name__ == "__main__":
    main(start)
