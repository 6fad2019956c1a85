"""Chromium without a screen, and what passed in it."""

import base64
import shutil
import sys
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

WIDE, PHONE = 1280, 375
PASSED = []


def check(what, held, seen=""):
    if not held:
        sys.exit(f"FAILED: {what} {seen}")
    PASSED.append(what)


class Browser:
    """Chromium without a screen."""

    def __init__(self, axe):
        options = Options()
        options.binary_location = shutil.which("chromium")
        for word in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]:
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.axe = Path(axe).read_text()

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def open(self, page, width=WIDE, scheme="light"):
        """Opens a file, or an address."""
        cdp = self.driver.execute_cdp_cmd
        cdp("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == PHONE}
        cdp("Emulation.setDeviceMetricsOverride", size)
        self.driver.get(page if isinstance(page, str) else page.resolve().as_uri())
        self.until("document.body.dataset.ready", f"{page} is ready")

    def until(self, expression, what):
        for _ in range(200):
            if self.js(f"return {expression}"):
                return
            time.sleep(0.05)
        sys.exit(f"FAILED: {what}: not within 10 s; console: {self.console()}")

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def find(self, name):
        return self.driver.find_element(By.ID, name)

    def image(self, script):
        """A packed image of the page: its width, height and step."""
        return self.js(f"const image = {script}; return [image.width, image.height, image.step]")

    def point(self, viewer, x, y, size):
        """Moves the pointer to a pixel of an image; what is read there."""
        box = self.js(
            "const c = document.getElementById(arguments[0]); c.scrollIntoView({ block: 'center' });"
            "const b = c.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]",
            f"{viewer}-canvas",
        )
        at = [box[i] + (p + 0.5) / n * box[i + 2] for i, (p, n) in enumerate(zip((x, y), size))]
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": at[0], "y": at[1]})
        return self.read(viewer)

    def place(self, viewer, share_x, share_y):
        """A place in a viewer on the screen, in shares of its sides."""
        box = self.js(
            "const c = document.getElementById(arguments[0]); c.scrollIntoView({ block: 'center' });"
            "const b = c.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]",
            f"{viewer}-canvas",
        )
        return box[0] + share_x * box[2], box[1] + share_y * box[3], box[2], box[3]

    def mouse(self, kind, x, y, **more):
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def drag(self, viewer, start, end, modifiers=0):
        """Drags with the left button from one place of a viewer to another; the distance in shares of its sides."""
        x, y, width, height = self.place(viewer, *start)
        left, top = x - start[0] * width, y - start[1] * height
        to = left + end[0] * width, top + end[1] * height
        held = {"button": "left", "buttons": 1, "modifiers": modifiers}
        self.mouse("mousePressed", x, y, clickCount=1, **held)
        for share in (0.5, 1):
            self.mouse("mouseMoved", x + share * (to[0] - x), y + share * (to[1] - y), **held)
        self.mouse("mouseReleased", *to, clickCount=1, button="left", modifiers=modifiers)

    def table(self, element):
        """The rows of a table in an element, as texts."""
        return self.js(
            "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((r) => [...r.children].map((c) => c.textContent))",
            element,
        )

    def read(self, viewer):
        output = self.find(f"{viewer}-value")
        return output.text, float(output.get_attribute("data-value"))

    def sound(self, page, width, scheme):
        """Nothing in the console, nothing from elsewhere, nothing that hinders people, nothing beside the screen."""
        where = f"{page.name}, {scheme}, {width} wide:"
        self.open(page, width, scheme)
        self.js(self.axe)
        result = self.driver.execute_async_script("axe.run().then(arguments[0])")
        found = [f"{v['id']} at {v['nodes'][0]['target']}" for v in result["violations"]]
        check(f"{where} axe finds nothing", not found, found)
        check(f"{where} axe looked", len(result["passes"]) > 15, len(result["passes"]))
        wide = self.js("return [document.documentElement.scrollWidth, innerWidth]")
        check(f"{where} fits", wide[0] <= wide[1], wide)
        asked = self.js("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        check(f"{where} asks for nothing", not [name for name in asked if not name.startswith("data:")], asked)
        self.quiet(page)

    def quiet(self, page):
        said = self.console()
        check(f"{page.name}: nothing in the console", not said, said)

    def picture(self, path, width, height):
        self.js("scrollTo(0, 0); document.activeElement.blur()")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        path.write_bytes(base64.b64decode(shot["data"]))
