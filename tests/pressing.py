"""Hands on a keyboard, in front of a page."""

from __future__ import annotations

from typing import Any

FOCUSED = """
() => {
  const element = document.activeElement;
  if (!element || element === document.body) return { text: "", tag: "BODY", seen: true, shown: true, place: -1 };
  const outlined = (style) => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  const seen = outlined(getComputedStyle(element)) || outlined(getComputedStyle(element, "::after"));
  const box = element.getBoundingClientRect();
  const shown = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth && box.height > 0;
  const label = element.labels?.[0]?.textContent ?? "";
  const text = (element.getAttribute("aria-label") || label || element.value || element.textContent).trim();
  const where = [box.left, box.top, box.width, box.height, scrollY, innerWidth, innerHeight].map(Math.round);
  const place = [...document.querySelectorAll("*")].indexOf(element);
  return { text, tag: element.tagName, seen, shown, where, place };
}
"""
"""What has the focus: its name, whether its outline can be seen and stands on the screen, its place on the page.

where: its box, how far the page is scrolled, and the window, in pixels.
"""


FRAMES = 60


class Keys:
    """Presses keys on a page; whatever has the focus then is seen."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def press(self, key: str) -> dict[str, Any]:
        """Presses a key; what has the focus then, which is seen."""
        self.page.keyboard.press(key)
        for _ in range(FRAMES):
            stop: dict[str, Any] = self.page.evaluate(FOCUSED)
            if stop["seen"] and stop["shown"]:
                return stop
            # The browser scrolls to what has the focus with one of its next frames.
            self.page.evaluate("() => new Promise(requestAnimationFrame)")
        raise AssertionError(f"the focus is not seen: {stop}")

    def go_to(self, text: str, tag: str = "", key: str = "Tab", most: int = 140) -> dict[str, Any]:
        """Presses a key until the focus is on what begins with a text."""
        passed = []
        for _ in range(most):
            stop = self.press(key)
            if stop["text"].startswith(text) and tag in ("", stop["tag"]):
                return stop
            passed.append(stop["text"][:25])
        raise AssertionError(f"{text} is not reached: {passed}")

    def follow(self, text: str, address: str, **options: Any) -> None:
        """Goes to a link and presses Enter, which leads to an address."""
        self.go_to(text, "A", **options)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(address)
