"""A keyboard for tests: it presses keys only, and looks at where the focus lies after each."""

from __future__ import annotations

from typing import Any, NamedTuple

MOST = 150  # presses of Tab that any control of a page is away
PARTS = 9  # stops of Tab inside one field for a date and a time

# What has the focus: its name, whether its look differs from one without the focus, and whether a person can see it.
_HERE = """() => {
  const e = document.activeElement;
  if (!e || e === document.body) return null;
  let stop = '';
  for (let one = e, up; (up = one.parentElement); one = up) stop = `${[...up.children].indexOf(one)}.${stop}`;
  const named = document.getElementById(e.getAttribute('aria-labelledby'))?.innerText;
  const name = named || e.ariaLabel || e.labels?.[0]?.innerText || e.innerText || e.title || '';
  const s = getComputedStyle(e), box = e.getBoundingClientRect();
  const ring = s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 1 && s.outlineColor !== 'rgba(0, 0, 0, 0)';
  const seen = box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  const x = Math.min(Math.max(box.left + box.width / 2, 0), innerWidth - 1);
  const y = Math.min(Math.max(box.top + Math.min(box.height / 2, 8), 0), innerHeight - 1);
  const above = document.elementFromPoint(x, y);
  const covered = !(above && (e.contains(above) || above.contains(e) || above.closest('label')?.control === e));
  return [stop, name.trim().split('\\n')[0], ring, seen, covered, e.outerHTML.slice(0, 120)];
}"""


class Focus(NamedTuple):
    """The element that has the focus."""

    stop: str  # its position in the page, which stays when a live part is replaced by one like it
    name: str
    has_ring: bool
    is_in_view: bool
    is_covered: bool
    html: str


class Keyboard:
    """Walks through pages by keys alone. Whatever gets the focus must show it, and must be in view."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def go(self, *keys: str, to: str) -> None:
        """Press keys that lead to another page."""
        with self.page.expect_navigation(url=to):
            self.press(*keys)
        self.page.wait_for_load_state()

    def here(self) -> Focus | None:
        """What has the focus; None: the page as a whole."""
        found = self.page.evaluate(_HERE)
        return None if found is None else Focus(*found)

    def check(self) -> Focus:
        focus = self.here()
        assert focus is not None, "nothing has the focus"
        shown = (focus.has_ring, focus.is_in_view, not focus.is_covered)
        assert shown == (True, True, True), f"(ring, in view, on top) = {shown} of {focus.html} on {self.page.url}"
        return focus

    def reach(self, name: str, key: str = "Tab") -> None:
        """Press Tab until the control of this name has the focus."""
        passed: list[str] = []
        for _ in range(MOST):
            self.press(key)
            if self.here() is None:
                continue  # past the last control, the focus begins anew
            focus = self.check()
            if focus.name == name:
                return
            passed.append(focus.stop)
            assert passed[-PARTS:] != [focus.stop] * PARTS, f"the focus does not leave {focus.html}"
        raise AssertionError(f"no {key} leads to {name!r} on {self.page.url}")

    def tour(self) -> int:
        """Press Tab until the focus is where it began; says how many controls had it. None of them keeps it."""
        found: list[str] = []
        for _ in range(MOST):
            self.press("Tab")
            if self.here() is None:
                continue
            focus = self.check()
            if found[-1:] == [focus.stop] and "datetime-local" in focus.html:
                continue
            if found and focus.stop == found[0]:
                return len(found)
            assert focus.stop not in found, f"the focus comes back to {focus.html} before the tour is over"
            found.append(focus.stop)
        raise AssertionError(f"the tour of {self.page.url} does not end")
