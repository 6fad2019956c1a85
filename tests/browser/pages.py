"""The pages of `fbp reconstruct --report`, `fbp report`, `fbp batch`, `fbp center --sweep` and `fbp trials`, as a browser shows them.

    pages.py FBP WORK AXE SITE [PICTURES]

FBP is the program, WORK a directory for scans and pages, AXE the script of axe-core, SITE the website (site_pages.py). With
PICTURES, screenshots go there. scripts/browser calls this with what it needs.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import tifffile
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import site_pages
from chromium import PASSED, PHONE, WIDE, Browser, check


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
    tools(browser, slices)
    facts = dict(browser.table("#facts"))
    check("the title has the scan", browser.driver.title == "scan/projections: 24 slices, fbp", browser.driver.title)
    check("the heading has the scan", browser.find("title").text == "Reconstruction of scan/projections")
    check("plain words", browser.find("shown").text == "24 slices of 256 x 256 pixels.", browser.find("shown").text)
    wanted = {"Fields": "10 flats, 10 darks, mean of each", "Stripes": "not removed", "Phase": "no phase retrieval",
              "Projections": "240", "Angles": "0 to 179.25 degrees", "Pixel size": "0.65 um", "Padding": "edge: its first and last value",
              "Filter": "ramp, cutoff 1 of the Nyquist frequency"}  # fmt: skip
    check("what was done is in the table", wanted.items() <= facts.items(), facts)
    for number, field in enumerate(["flats", "darks"]):
        frames = [tifffile.imread(file).astype(float) for file in sorted((work / "scan" / field).iterdir())]
        step = browser.image(f"DATA.fields[{number}].image")[2]
        text, value = browser.point(f"field-{number}", 77, 9, (256, 24))
        check(f"the mean of the {field}", abs(value - np.mean(frames, axis=0)[9, 77]) <= step, (text, value))
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


def tools(browser, slices):
    """Dragging, the wheel, the line profile and sections anywhere, on the page of these slices, of which 13 is shown."""
    fields = lambda: [float(browser.find(f"window-{name}").get_attribute("value")) for name in ("width", "level")]
    browser.find("window-reset").click()
    before = fields()
    browser.drag("slices", (0.4, 0.6), (0.6, 0.5))
    width, level = fields()
    check("dragging to the right widens the window", abs(width / before[0] - np.exp(0.4)) < 0.02, (before, width))
    check("dragging upwards lowers the level", abs((before[1] - level) / before[0] - 0.1) < 0.01, (before, level))
    x, y, *_ = browser.place("slices", 0.5, 0.5)
    for count in (1, 2):
        for kind in ("mousePressed", "mouseReleased"):
            browser.mouse(kind, x, y, button="left", clickCount=count)
    check("a double click resets it", fields() == before, (fields(), before))

    # the pixel under the pointer stays where it is
    x, y, wide, _ = browser.place("slices", 64.5 / 256, 192.5 / 256)
    browser.mouse("mouseMoved", x, y)
    text, value = browser.read("slices")
    zoom = lambda: float(browser.find("slices-zoom").text.split()[0])
    whole = zoom()
    for _ in range(6):
        browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-120)
    check("the wheel zooms", abs(zoom() / whole - 1.25**6) < 0.02, (whole, zoom()))
    check("the wheel zooms about the pointer", browser.read("slices") == (text, value), (text, browser.read("slices")))
    offset = 40
    browser.mouse("mouseMoved", x + offset, y)
    text, value = browser.read("slices")
    column = int(64.5 + offset / 1.25**6 / wide * 256)
    check("pixels are larger", abs(int(text.split(",")[0].split()[1]) - column) <= 1, (text, column))
    seen_x, seen_y = (int(word.split()[1]) for word in text.split(":")[0].split(", "))
    step = browser.image("DATA.slices.images[13]")[2]
    check("values are those of the pixels", abs(value - float(slices[13][seen_y, seen_x])) <= 0.51 * step, text)
    browser.find("slices-drag-move").click()
    browser.drag("slices", (0.3, 0.5), (0.6, 0.5))
    browser.mouse("mouseMoved", x, y)
    moved = int(browser.read("slices")[0].split(",")[0].split()[1])
    check("dragging moves the image", 64 - moved in range(17, 24), moved)
    browser.find("slices-drag-window").click()
    canvas = browser.find("slices-canvas")
    canvas.send_keys("0")
    check("a key shows the whole image", zoom() == whole, zoom())
    canvas.send_keys("+")
    check("and another one zooms", abs(zoom() / whole - 1.25) < 0.02, zoom())
    canvas.send_keys("0")

    # lines along rows and columns have the values of pixels, others means of neighbours
    check("there is no line at first", not browser.find("slices-profile").is_displayed())
    middle = lambda x, y: ((x + 0.5) / 256, (y + 0.5) / 256)
    values = lambda: np.array([[float(number) for number in row] for row in browser.table("#slices-profile-table")])
    slice_13 = slices[13].astype(float)
    browser.drag("slices", middle(20, 100), middle(200, 100), modifiers=8)
    found = values()
    near = lambda a, b: a.shape == b.shape and np.allclose(a, b, atol=0.51 * step, rtol=1e-6)
    check("a line along a row", near(found[:, 1], slice_13[100, 20:201]), found[:5])
    check("its distances", np.allclose(found[:, 0], 0.65 * np.arange(181), rtol=1e-6), found[:5])
    check("the window is as before", fields() == before, fields())
    browser.drag("slices", middle(33, 40), middle(33, 90), modifiers=8)
    check("a line along a column", near(values()[:, 1], slice_13[40:91, 33]))
    said = browser.find("slices-profile-said").text
    check("the line in words", "From x 33, y 40 to x 33, y 90, 32.5 um: " in said and "per um" in said, said)
    # by keyboard
    for name, number in [("from-x", 60), ("from-y", 50), ("to-x", 160), ("to-y", 110)]:
        field = browser.find(f"slices-{name}")
        field.clear()
        field.send_keys(str(number), Keys.TAB)
    share = np.linspace(0, 1, 101)
    x, y = 60 + 100 * share, 50 + 60 * share
    top = np.floor(y + 1e-9).astype(int)
    at = np.round(x).astype(int)
    rows = slice_13[top, at] * (1 - (y - top)) + slice_13[np.minimum(top + 1, 255), at] * (y - top)
    found = values()
    check("a slanted line", near(found[:, 1], rows), (found[:3], rows[:3]))
    check("its length", abs(found[-1, 0] - 0.65 * np.hypot(100, 60)) < 1e-4, found[-1])
    browser.find("slices-slider").send_keys(Keys.ARROW_LEFT)
    browser.until("document.getElementById('slices-shown').textContent === 'slice 12'", "the slider moves")
    rows = slices[12][top, at] * (1 - (y - top)) + slices[12][np.minimum(top + 1, 255), at] * (y - top)
    drawn = "document.querySelector('#slices-profile-table tbody td:last-child').textContent"
    browser.until(f"Math.abs({drawn} - {float(rows[0])!r}) < {step}", "the line follows")
    check("the line is that of the slice", near(values()[:, 1], rows), values()[:3])
    browser.find("slices-slider").send_keys(Keys.ARROW_RIGHT)

    # sections at another row and column
    for name, keys, value_of in [("xz", 28, lambda s, i: s[156, i]), ("yz", -30, lambda s, i: s[i, 98])]:
        slider = browser.find(f"{name}-slider")
        slider.send_keys((Keys.ARROW_RIGHT if keys > 0 else Keys.ARROW_LEFT) * abs(keys))
        place = "y 156" if name == "xz" else "x 98"
        at = f"document.getElementById('{name}-canvas').getAttribute('aria-label')"
        browser.until(f"{at}.includes('at {place}.')", f"the {name} section moves")
        check(f"the {name} slider says where", browser.find(f"{name}-shown").text == place, place)
        text, value = browser.point(name, 140, 7, (256, 24))
        check(f"the {name} section there", abs(value - float(value_of(slices[7], 140))) <= 2 * step, (text, value))
        check(f"the {name} section says where", text.startswith(f"{'x' if name == 'xz' else 'y'} 140, {place}, slice 7: "), text)
        slider.send_keys((Keys.ARROW_LEFT if keys > 0 else Keys.ARROW_RIGHT) * abs(keys))
        browser.until(f"{at}.includes(' 128.')", f"the {name} section is back")


def striped_page(browser, work):
    """What a run did to its data: the table, the methods, the sinogram before and after; and a second report."""
    page = work / "striped.html"
    browser.open(page)
    report = json.loads((work / "striped.json").read_text())
    check("there are two reports", report["slices"] == 4 and data_of(page)["slices"]["count"] == 4, report["slices"])
    facts = dict(browser.table("#facts"))
    check("the filter", facts["Filter"] == "hann, cutoff 0.8 of the Nyquist frequency", facts["Filter"])
    check("the stripes", facts["Stripes"].startswith("dead:snr=3,size=51, then titarenko:"), facts["Stripes"])
    text = browser.find("methods-text").get_attribute("textContent")
    for said in ["4 slices of 256 x 256 pixels", "240 parallel-beam projections", "window hann", "cutoff at 0.8", "mean of 10 flat fields",
                 "dead (snr = 3, size = 51) [2] and titarenko (alpha = 0.01, blocks = 1) [3]", "doi:10.1007/s11554-019-00883-w",
                 "at bin 131.4 (counted from 0)"]:  # fmt: skip
        check(f"the methods say: {said}", said in text, text)
    check("the methods do not say what was not done", "Phase" not in text and "mask" not in text, text)
    projections = [tifffile.imread(file).astype(float) for file in sorted((work / "scan/projections").iterdir())]
    fields = [np.mean([tifffile.imread(file).astype(float) for file in sorted((work / "scan" / name).iterdir())], axis=0)
              for name in ("flats", "darks")]  # fmt: skip
    row, size = data_of(page)["sinogram"]["slice"], browser.image("DATA.seen.image")
    for x, y in [(128, 17), (90, 200)]:
        text, value = browser.point("seen", x, y, size[:2])
        true = -np.log((projections[y][row, x] - fields[1][row, x]) / (fields[0][row, x] - fields[1][row, x]))
        check(f"the sinogram with stripes at {x}, {y}", abs(value - true) < 0.51 * size[2] + 1e-5, (text, true))
    lost = [browser.point(name, 40, 100, size[:2])[1] for name in ("seen", "sinogram")]
    beside = np.mean([browser.point("sinogram", bin, 100, size[:2])[1] for bin in (38, 42)])
    check("a lost bin is interpolated", abs(lost[0]) < size[2] and abs(lost[1] - beside) < 0.1 * beside, (lost, beside))
    browser.quiet(page)


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
    left, top, side = (data["part"][key] for key in ("left", "top", "width"))
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
    best = float(min(data["trials"], key=lambda trial: trial["score"])["values"][0])
    check("the lowest score is next to the axis", abs(best - 131.4) <= 0.5, best)
    said = browser.find("score-lowest").text
    number = float(said.split("Lowest score: ")[1].split()[0])
    check("one number is the lowest score", abs(number - best) <= 0.25 and f", {data['score']['verdict']} (" in said, (said, best))
    names = browser.js("return [...document.querySelectorAll('#axis [data-method]')].map((f) => f.dataset.method)")
    check("and sweep has no other", "sweep" not in names and len(names) == 4, names)
    check("the heading has the scan", browser.find("title").text == "Rotation axis of scan/projections: trial slices")
    press = "[...document.querySelectorAll('button')].find((b) => b.textContent.startsWith(arguments[0])).click()"
    browser.js(press, "Next to likelihood")
    browser.until("document.getElementById('trials-shown').textContent === '131.50 bins'", "a button goes next to the axis found")
    browser.js(press, "Lowest")
    browser.until(f"document.getElementById('trials-shown').textContent === '{best:.2f} bins'", "the button goes to the best")
    command = browser.find("line").text
    check("the command has the axis", f"--center {best:g} " in command, command)
    browser.quiet(page)
    command = command.replace("fbp ", f"{fbp} ", 1).replace("slices/", "chosen/")
    subprocess.run(f"{command} --rows {data['row']}", shell=True, check=True, cwd=work, capture_output=True)
    chosen = tifffile.imread(work / f"chosen/slice_{data['row']:05d}.tif")
    same = np.array_equal(chosen, tifffile.imread(work / f"trials/center_{best:.2f}.tif"))
    check("and makes the slice that was chosen", same)


def tiles_page(browser, work, fbp):
    """All slices of two flags, with their values, names and commands, and one window and zoom."""
    page = work / "tiles.html"
    browser.open(page)
    data = data_of(page)
    centers, stripes = (flag["values"] for flag in data["varied"])
    check("there are tiles for all pairs of values", browser.js("return document.querySelectorAll('#tiles canvas').length") == 8)
    names = browser.js("return [...document.querySelectorAll('#tiles figcaption > button')].map((button) => button.textContent)")
    wanted = [f"center {center}, stripes {method}" for method in stripes for center in centers]
    check("tiles have the names of their values", names == wanted, names)
    columns = browser.js("return getComputedStyle(document.getElementById('tiles')).gridTemplateColumns.split(' ').length")
    check("there is a column for each value of the first flag", columns == 4, columns)
    slices = [tifffile.imread(work / f"tiles/center_{float(center):.2f}_stripes_{method.replace(' ', '-')}.tif")
              for method in stripes for center in centers]  # fmt: skip
    step = lambda i: data["trials"][i]["image"]["step"]
    for i, x, y in [(0, 40, 50), (3, 128, 17), (5, 200, 90), (7, 130, 130)]:
        text, value = browser.point(f"tile-{i}", x, y, (256, 256))
        at = [int(word.split()[1]) for word in text.split(" from")[0].split(", ")]
        true = float(slices[i][128 + at[1], 128 + at[0]])
        check(f"tile {i} at {at}", abs(value - true) <= 0.51 * step(i) and abs(at[0] + 128 - x) <= 1, (text, value, true))
    # a name shows its slice, and the command for it
    browser.js("document.querySelectorAll('#tiles figcaption > button')[5].click()")
    browser.until("document.getElementById('line').textContent === DATA.trials[5].command", "a name shows its command")
    shown = [browser.find(name).text for name in ("trials-shown", "trials-second-shown")]
    check("the sliders follow", shown == [centers[1], stripes[1]], shown)
    text, value = browser.point("trials", 99, 77, (256, 256))
    check("the large slice, too", abs(value - float(slices[5][77, 99])) <= 0.51 * step(5), (text, value))
    browser.find("trials-second-slider").send_keys(Keys.ARROW_LEFT)
    browser.until("document.getElementById('line').textContent === DATA.trials[1].command", "a slider chooses the other flag")
    check("the name of the slice that is shown is pressed", browser.js("return document.querySelector('#tiles button[aria-pressed=true]').textContent") == wanted[1])
    # one zoom and place
    seen = lambda viewer: browser.read(viewer)[0].split(":")[0]
    under = lambda viewer, x, y: (browser.mouse("mouseMoved", *browser.place(viewer, x, y)[:2]), seen(viewer))[1]
    x, y, *_ = browser.place("tile-2", 0.25, 0.75)
    browser.mouse("mouseMoved", x, y)
    for _ in range(8):
        browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-120)
    browser.find("trials-drag-move").click()
    first = [under("tile-2", 0.1, 0.1), under("tile-2", 0.9, 0.9)]
    span = int(first[1].split(",")[0].split()[1]) - int(first[0].split(",")[0].split()[1])
    check("the wheel zooms a tile", abs(span - 0.8 * 256 / 1.25**8) <= 2, (first, span))
    for other in ("tile-0", "tile-7", "trials"):
        check(f"{other} shows the same part", [under(other, 0.1, 0.1), under(other, 0.9, 0.9)] == first, other)
    browser.drag("tile-7", (0.7, 0.5), (0.3, 0.5))
    moved = [under("tile-2", 0.1, 0.1), under("tile-2", 0.9, 0.9)]
    check("moving in one tile moves", moved != first, moved)
    for other in ("tile-0", "tile-7", "trials"):
        check(f"{other} moves with it", [under(other, 0.1, 0.1), under(other, 0.9, 0.9)] == moved, other)
    browser.find("trials-drag-window").click()
    # one window
    grey = lambda viewer: browser.js("const c = document.getElementById(arguments[0]); return c.getContext('2d').getImageData(c.width / 2, c.height / 2, 1, 1).data[0]", f"{viewer}-canvas")
    browser.js("const level = document.getElementById('window-level'); level.value = -100; level.dispatchEvent(new Event('change'))")
    greys = [grey("tile-0"), grey("tile-6")]
    check("one window is for all", greys == [255, 255], greys)
    # the command makes the slice
    copies = browser.js("return [...document.querySelectorAll('#tiles .controls button')].map((button) => button.getAttribute('aria-label'))")
    check("every tile has a button to copy its command", copies == [f"Copy the command for {name}" for name in wanted], copies)
    browser.quiet(page)
    command = data["trials"][6]["command"].replace("fbp ", f"{fbp} ", 1).replace("slices/", "sixth/")
    subprocess.run(f"{command} --rows {data['row']}", shell=True, check=True, cwd=work, capture_output=True)
    same = np.array_equal(tifffile.imread(work / f"sixth/slice_{data['row']:05d}.tif"), slices[6])
    check("and it makes the slice of the tile", same)


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
    run(f"reconstruct {scan} --center 131.4 --rows 10..14 --stripes dead,titarenko --filter hann --filter-cutoff 0.8 "
        "--output striped --report striped.html --report striped.json --preview preview.png")  # fmt: skip
    run(f"center {scan} --sweep 127..136:0.5 --output trials.html")
    run(f"center {scan} --sweep 127..136:0.5 --output trials")
    vary = "--vary center=130..=133:1 --vary stripes=none,dead+mean"
    run(f"trials {scan} {vary} --output tiles.html")
    run(f"trials {scan} {vary} --output tiles")
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
        striped_page(browser, work)
        large_page(browser, work)
        trials_page(browser, work, fbp)
        tiles_page(browser, work, fbp)
        batch_page(browser, work)
        for name in ["run.html", "striped.html", "trials.html", "tiles.html", "rec/index.html", "rec/empty.html"]:
            for width, scheme in [(WIDE, "light"), (WIDE, "dark"), (PHONE, "light"), (PHONE, "dark"), (375, "light")]:
                browser.sound(work / name, width, scheme)
        site_pages.look(browser, Path(sys.argv[4]))
        if len(sys.argv) > 5:
            pictures = Path(sys.argv[5])
            for page, name, width, scheme, height in [("run", "report", WIDE, "light", 2450), ("trials", "trials", WIDE, "dark", 1500), ("tiles", "tiles", WIDE, "light", 1950),
                                                      ("run", "report-phone", PHONE, "light", 1500)]:  # fmt: skip
                browser.open(work / f"{page}.html", width, scheme)
                if name == "report":
                    browser.drag("slices", (0.15, 0.45), (0.85, 0.6), modifiers=8)
                browser.picture(pictures / f"{name}.png", width, height)
            shutil.copy(work / "preview.png", pictures)
    finally:
        browser.driver.quit()
    print(f"{len(PASSED)} passed, 0 failed")


main()
