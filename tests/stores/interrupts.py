"""Signal handlers that raise in the middle of a call, as Ctrl-C and time limits do, at every step of it."""

from __future__ import annotations

import sys
from itertools import count

STEPS = {"call", "c_return"}  # Python runs signal handlers before the first step of a function, and after a call


class Interrupt(BaseException):
    """What the handler raises."""


def interrupted_at(step, act):
    """Raise at this step of `act`; whether it had so many. (What is raised in a finalizer is lost.)"""
    steps, reached = count(), []

    def interrupt(_frame, event, _argument):
        if event in STEPS and next(steps) == step:
            sys.setprofile(None)
            reached.append(step)
            raise Interrupt

    sys.setprofile(interrupt)
    try:
        act()
    except Interrupt:
        pass
    finally:
        sys.setprofile(None)
    return bool(reached)


def interrupted_everywhere(act, every=1):
    """Interrupt `act` at each of its steps, or at every third or so, one after another."""
    for step in count(step=every):
        if not interrupted_at(step, act):
            assert step > 10
            return
        yield step
