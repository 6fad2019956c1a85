"""The website of scripts/site, as a browser shows it, from a server of its own."""

import functools
import http.server
import threading

from chromium import PHONE, WIDE, check

# the front page, pictures, wide tables, long tables of words
MAIN = ["index.html", "docs/tutorial.html", "docs/performance.html", "docs/formats.html"]
# the part of axe-core that depends on colours
COLOURS = ["color-contrast", "link-in-text-block"]

# what reaches beyond the screen and is in no box that scrolls
BESIDE = """
return [...document.querySelectorAll("main *")]
    .filter((part) => part.getBoundingClientRect().right > innerWidth + 1 && !part.closest(".table-wrapper, pre"))
    .map((part) => `${part.tagName} ${part.textContent.slice(0, 40)}`)
"""
WIDTHS = "return [document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]"
PICTURES = "return [...document.images].filter((image) => !image.naturalWidth || !image.alt).map((image) => image.src)"
SCROLLED = """
return [...document.querySelectorAll("main .table-wrapper")]
    .filter((box) => box.scrollWidth > box.clientWidth)
    .map((box) => [getComputedStyle(box).overflowX, box.tabIndex])
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files, without a line for each."""

    def log_message(self, *_):
        pass


def fits(browser, where):
    """Nothing is beside the screen, pictures are there and described, and the console is empty."""
    page, body, screen = browser.js(WIDTHS)
    check(f"{where} fits", page <= screen and body <= screen, (page, body, screen))
    beside = browser.js(BESIDE)
    check(f"{where} has nothing beside the screen", not beside, beside)
    missing = browser.js(PICTURES)
    check(f"{where} has its pictures", not missing, missing)
    said = browser.console()
    check(f"{where} says nothing in the console", not said, said)


def main_page(browser, address, page):
    """A page at both widths, light and dark, with axe-core."""
    for width, scheme in [(WIDE, "light"), (PHONE, "light"), (WIDE, "dark"), (PHONE, "dark")]:
        where = f"{page}, {scheme}, {width} wide:"
        browser.open(address + page, width, scheme)
        fits(browser, where)
        dark = browser.js("return document.documentElement.classList.contains('navy')")
        check(f"{where} follows the system", dark == (scheme == "dark"))
        browser.js(browser.axe)
        options = {"preload": False} | ({"runOnly": COLOURS} if scheme == "dark" else {})
        result = browser.driver.execute_async_script("axe.run(document, arguments[0]).then(arguments[1])", options)
        found = [f"{v['id']} ({v['impact']}) at {v['nodes'][0]['target']}" for v in result["violations"]]
        check(f"{where} axe finds nothing", not found, found)
        check(f"{where} axe looked", len(result["passes"]) >= (15 if scheme == "light" else 1), len(result["passes"]))


def wide_table(browser, address):
    """A table that is too wide for a phone scrolls in its own box, also by keyboard."""
    browser.open(address + "docs/performance.html", PHONE)
    scrolled = browser.js(SCROLLED)
    check("a wide table scrolls in its own box", scrolled and all(box == ["auto", 0] for box in scrolled), scrolled)


def menu(browser, address):
    """The table of contents on a phone: hidden at first, opened by a key, and every section is in it."""
    browser.open(address + "docs/tutorial.html", PHONE)
    seen = "document.getElementById('mdbook-sidebar').getBoundingClientRect().right > 0"
    check("the menu is hidden at first", not browser.js(f"return {seen}"))
    browser.find("mdbook-sidebar-toggle").send_keys(" ")
    browser.until(seen, "a key shows the menu")
    check("its button says so", browser.find("mdbook-sidebar-toggle").get_attribute("aria-expanded") == "true")
    page, body, screen = browser.js(WIDTHS)
    check("the page with its menu fits", page <= screen and body <= screen, (page, body, screen))
    parts = browser.js("return [...document.querySelectorAll('#mdbook-sidebar .part-title')].map((part) => part.textContent)")
    wanted = ["First steps", "Tasks", "Reference", "For those who change the program"]
    check("the menu has its parts in order", parts == wanted, parts)
    last = browser.js("return [...document.querySelectorAll('#mdbook-sidebar a')].map((link) => link.getAttribute('href'))")
    beyond = last.index(next(link for link in last if "CONTRIBUTING" in link))
    check("pages for developers come last", not [link for link in last[:beyond] if "/dev/" in link], last)


def look(browser, site):
    """All pages on a phone, and the main ones in every way."""
    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    left_out = ("404.html", "toc.html", "print.html")
    pages = sorted(str(path.relative_to(site)) for path in site.rglob("*.html") if path.name not in left_out)
    check("the website has its pages", len(pages) > 35 and set(MAIN) <= set(pages), pages)
    for page in pages:
        browser.open(address + page, PHONE)
        fits(browser, f"{page}, {PHONE} wide:")
    for page in MAIN:
        main_page(browser, address, page)
    wide_table(browser, address)
    menu(browser, address)
    server.shutdown()
