"""The pages of `fbp reconstruct --report`, `fbp report`, `fbp batch` and `fbp center --sweep`, as a browser shows them.

    pages.py FBP WORK AXE [PICTURES]

FBP is the program, WORK a directory for scans and pages, AXE the script of axe-core. With PICTURES, screenshots go there.
scripts/browser calls this with what it needs.
"""

import base64
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import tifffile
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

WIDE, PHONE = 1200, 390
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
        cdp = self.driver.execute_cdp_cmd
        cdp("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == PHONE}
        cdp("Emulation.setDeviceMetricsOverride", size)
        self.driver.get(page.resolve().as_uri())
        self.until("document.body.dataset.ready", f"{page.name} is ready")

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

    def picture(self, path, height):
        clip = {"x": 0, "y": 0, "width": WIDE, "height": height, "scale": 1}
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        path.write_bytes(base64.b64decode(shot["data"]))


def data_of(page):
    text = page.read_text().split('<script type="application/json" id="data">')[1]
    return json.loads(text.split("</script>")[0])


def run_page(browser, work):
    """Slider, values, window, run file of a page with every pixel."""
    page = work / "run.html"
    browser.open(page)
    slices = [tifffile.imread(work / f"slices/slice_{i:05d}.tif") for i in range(24)]
    slider, shown = browser.find("slices-slider"), browser.find("slices-shown")
    check("the slider starts in the middle", shown.text == "slice 12", shown.text)
    slider.send_keys(Keys.ARROW_RIGHT)
    browser.until("document.getElementById('slices-shown').textContent === 'slice 13'", "the slider moves by keys")
    width, height, step = browser.image("DATA.slices.images[13]")
    check("every pixel is shown", (width, height) == (256, 256), (width, height))
    for x, y in [(128, 128), (3, 250), (90, 61), (160, 77), (201, 12)]:
        text, value = browser.point("slices", x, y, (256, 256))
        true = float(slices[13][y, x])
        check(f"slice 13 at {x}, {y}", abs(value - true) <= 0.51 * step, (text, value, true))
        check(f"slice 13 at {x}, {y} in words", text.startswith(f"x {x}, y {y}: "), text)
        said = float(text.split(": ")[1].split(" ")[0])
        check(f"slice 13 at {x}, {y} as said", abs(said - true) <= 1.1 * 10 ** np.ceil(np.log10(step)), (said, true))
    canvas = browser.find("slices-canvas")
    browser.point("slices", 100, 100, (256, 256))
    canvas.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    text, value = browser.read("slices")
    check("arrow keys move the place", text.startswith("x 101, y 102: "), text)
    check("and read its value", abs(value - float(slices[13][102, 101])) <= 0.51 * step, value)
    window, level = browser.find("window-width"), browser.find("window-level")
    for field, number in [(window, "0.02"), (level, "0.015")]:
        field.clear()
        field.send_keys(number, Keys.TAB)
    greys = browser.js(
        "const c = document.getElementById('slices-canvas'); const p = c.getContext('2d').getImageData(0, 0, c.width, c.height);"
        "return arguments[0].map(([x, y]) => p.data[4 * (Math.floor((y + 0.5) / 256 * c.height) * c.width + Math.floor((x + 0.5) / 256 * c.width))])",
        [[128, 128], [90, 61], [160, 77]],
    )
    wanted = [np.clip((slices[13][y, x] - 0.005) / 0.02, 0, 1) * 255 for x, y in [(128, 128), (90, 61), (160, 77)]]
    check("window and level", np.allclose(greys, wanted, atol=1.5), (greys, wanted))
    text, value = browser.point("xz", 128, 5, browser.image("DATA.sections.xz.image")[:2])
    check("the xz section", abs(value - float(slices[5][128, 128])) <= browser.image("DATA.sections.xz.image")[2], text)
    text, value = browser.point("yz", 70, 20, browser.image("DATA.sections.yz.image")[:2])
    check("the yz section", abs(value - float(slices[20][70, 128])) <= browser.image("DATA.sections.yz.image")[2], text)
    record = (work / "slices/fbp-run.toml").read_text()
    check("the run file is the record", browser.find("record").get_attribute("textContent") == record)
    axis = float(browser.js("return document.querySelector('#sinogram strong').textContent").split()[0])
    check("the axis is near the true one", abs(axis - 131.4) < 0.2, axis)
    methods = browser.js("return [...document.querySelectorAll('#axis [data-method]')].map((f) => f.dataset.method)")
    every = ["likelihood", "registration", "vo", "overlap", "sweep"]
    check("every method has a curve", methods == every, methods)
    warned = browser.find("notes").text
    check("the warning names a flag", "--stripes dead" in warned, warned)
    bar = browser.js("return [document.querySelector('#slices-scale span').getBoundingClientRect().width,"
                     "document.getElementById('slices-canvas').getBoundingClientRect().width]")
    length = float(browser.find("slices-scale").text.split()[0])
    check("the scale bar", abs(bar[0] / bar[1] - length / (256 * 0.65)) < 0.01, (bar, length))
    browser.quiet(page)
    # the same from the files
    check("fbp report says the same", data_of(work / "again.html") == data_of(page))


def large_page(browser, work):
    """Means of pixels, and the limit of a page, with noise that hardly compresses."""
    page = work / "large.html"
    size = (work / "full.html").stat().st_size
    check("a full page is below 10 MB", 6e6 < size < 10e6, size)
    browser.open(page)
    data = data_of(page)["slices"]
    by = data["reduction"]["columns"]
    check("slices are shrunk", by == data["reduction"]["rows"] == 2 and data["count"] == 12, data["reduction"])
    index = len(data["numbers"]) // 2
    values = tifffile.imread(work / f"large/slice_{data['numbers'][index]:05d}.tif").astype(float)
    width, height, step = browser.image(f"DATA.slices.images[{index}]")
    for x, y in [(150, 140), (3, 299), (211, 60)]:
        text, value = browser.point("slices", x, y, (width, height))
        true = values[y * by : (y + 1) * by, x * by : (x + 1) * by].mean()
        check(f"the mean at {x}, {y}", abs(value - true) <= 0.51 * step, (text, value, true))
        check(f"the mean at {x}, {y} in words", text.startswith(f"mean of x {2 * x} to {2 * x + 1}, y {2 * y} to"), text)
    browser.quiet(page)


def trials_page(browser, work, fbp):
    """Slider, values, score and the command."""
    page = work / "trials.html"
    browser.open(page)
    data = data_of(page)
    left, top, side = (data["part"][key] for key in ("left", "top", "side"))
    shown = browser.find("trials-shown")
    check("the middle trial is shown", shown.text == "131.50 bins", shown.text)
    browser.find("trials-slider").send_keys(Keys.ARROW_LEFT)
    browser.until("document.getElementById('trials-shown').textContent === '131.00 bins'", "the slider moves by keys")
    trial = tifffile.imread(work / "trials/center_131.00.tif")
    middle = trial.shape[0] // 2
    for x, y in [(10, 20), (side // 2, side // 3), (side - 1, side - 1)]:
        text, value = browser.point("trials", x, y, (side, side))
        true = float(trial[middle + top + y, middle + left + x])
        check(f"the trial at {x}, {y}", abs(value - true) <= 0.51 * data["trials"][8]["image"]["step"], (text, value, true))
    best = min(data["trials"], key=lambda trial: trial["score"])["center"]
    check("the lowest score is next to the axis", abs(best - 131.4) <= 0.5, best)
    browser.js("[...document.querySelectorAll('button')].find((b) => b.textContent.startsWith('Lowest')).click()")
    browser.until(f"document.getElementById('trials-shown').textContent === '{best:.2f} bins'", "the button goes to the best")
    command = browser.find("line").text
    check("the command has the axis", f"--center {best:g} " in command, command)
    browser.quiet(page)
    command = command.replace("fbp ", f"{fbp} ", 1).replace("slices/", "chosen/")
    subprocess.run(f"{command} --rows {data['row']}", shell=True, check=True, cwd=work, capture_output=True)
    chosen = tifffile.imread(work / f"chosen/slice_{data['row']:05d}.tif")
    same = np.array_equal(chosen, tifffile.imread(work / f"trials/center_{best:.2f}.tif"))
    check("and makes the slice that was chosen", same)


def batch_page(browser, work):
    """Order, filters and links of the page of all scans, by keys alone."""
    browser.open(work / "rec/index.html")
    rows = lambda: browser.js("return [...document.querySelectorAll('#scans tbody th')].map((cell) => cell.firstChild.textContent)")
    head = lambda name: browser.js("return [...document.querySelectorAll('#scans thead button')].find((b) => b.textContent === arguments[0])", name)
    check("scans are in the order of their numbers", rows() == ["a2", "a10", "b <i>", "empty"], rows())
    head("Scan").send_keys(Keys.ENTER)
    check("a column sorts in the other direction", rows() == ["empty", "b <i>", "a10", "a2"], rows())
    said = browser.js("return document.activeElement.textContent + document.activeElement.parentElement.getAttribute('aria-sort')")
    check("the column keeps the focus and says its order", said == "Scandescending", said)
    head("State").send_keys(Keys.ENTER)
    check("failed scans are first by state", rows()[0] == "empty", rows())
    message = browser.js("return document.querySelector('#scans .message').textContent")
    check("an error has its exit code and what was expected", message.startswith("Exit code 3: ") and "expected files named" in message, message)
    browser.find("text").send_keys("empty")
    check("a text filters", rows() == ["empty"] and browser.find("count").text == "1 of 4 scans", rows())
    browser.find("text").send_keys(Keys.BACKSPACE * 5)
    browser.find("state").send_keys("done")
    check("a state filters", len(rows()) == 3, rows())
    check("a done scan has a picture", browser.js("return document.querySelectorAll('#scans img').length") == 3)
    axis = browser.js("return document.querySelectorAll('#scans tbody tr')[0].children[3].textContent")
    check("the axis has its uncertainty", "\u00b1" in axis, axis)
    browser.quiet(work / "rec/index.html")
    browser.driver.find_element(By.LINK_TEXT, "b <i>").send_keys(Keys.ENTER)
    browser.until("document.body.dataset.ready && document.getElementById('slices-slider')", "a name leads to the page of its scan")


def scans(fbp, work):
    """The runs that the pages are about, on a processor."""

    def run(arguments, code=0):
        done = subprocess.run([fbp, *arguments.split()], cwd=work, capture_output=True, text=True)
        check(f"fbp {arguments.split()[0]}", done.returncode == code, f"{arguments}: {done.stderr}")

    fields = "--flats scan/flats --darks scan/darks"
    run(f"phantom --kind asymmetric --size 256 --slices 24 --projections 240 --as projections --photons 20000 --center 131.4 --output scan/projections {fields}")
    # a bin without light in the flat field: there must be a warning
    for flat in sorted((work / "scan/flats").iterdir()):
        image = tifffile.imread(flat)
        image[:, 40] = 0
        tifffile.imwrite(flat, image)
    scan = f"--projections scan/projections {fields} --pixel-size 0.65um --device cpu"
    run(f"reconstruct {scan} --center auto --mask 0.98 --output slices --report run.html")
    run("report slices --output again.html")
    run(f"center {scan} --sweep 127..136:0.5 --output trials.html")
    run(f"center {scan} --sweep 127..136:0.5 --output trials")
    for name in ["a2", "a10", "b"]:
        run(f"phantom --kind asymmetric --size 64 --slices 3 --projections 48 --noise 0.01 --as projections --output night/{name}")
    (work / "night/b").rename(work / "night/b <i>")
    (work / "night/empty").mkdir()
    run("batch night/* --center auto --device cpu --output rec/{name} --report rec/{name}.html", 1)
    run("phantom --kind discs --size 600 --slices 12 --projections 60 --noise 0.5 --output sinograms")
    run("reconstruct --sinograms sinograms --device cpu --output large --report large.html")
    run("reconstruct --sinograms sinograms --device cpu --size 512 --rows 0..10 --output full --report full.html")


def main():
    fbp, work, axe = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]), sys.argv[3]
    scans(fbp, work)
    browser = Browser(axe)
    try:
        run_page(browser, work)
        large_page(browser, work)
        trials_page(browser, work, fbp)
        batch_page(browser, work)
        for name in ["run.html", "trials.html", "rec/index.html", "rec/empty.html"]:
            for width, scheme in [(WIDE, "light"), (WIDE, "dark"), (PHONE, "light"), (PHONE, "dark"), (375, "light")]:
                browser.sound(work / name, width, scheme)
        if len(sys.argv) > 4:
            pictures = Path(sys.argv[4])
            for name, scheme, height in [("run", "light", 2150), ("trials", "dark", 1500)]:
                browser.open(work / f"{name}.html", WIDE, scheme)
                browser.picture(pictures / f"{'report' if name == 'run' else name}.png", height)
    finally:
        browser.driver.quit()
    print(f"{len(PASSED)} passed, 0 failed")


main()
