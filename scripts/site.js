// What the website changes of mdBook's own pages: scripts/site.
"use strict";

// what scrolls can be reached by keyboard
function makeScrollable() {
    for (const box of document.querySelectorAll("main pre > code, main .table-wrapper")) {
        if (box.scrollWidth > box.clientWidth) {
            box.tabIndex = 0;
        } else {
            box.removeAttribute("tabindex");
        }
    }
}

// words of commands and flags are not broken at their hyphens, if they are short
for (const code of document.querySelectorAll("main :not(pre) > code")) {
    const words = code.textContent.split(" ");
    code.textContent = "";
    words.forEach((word, at) => {
        const span = document.createElement("span");
        span.className = word.length <= 26 ? "word" : "";
        span.textContent = word;
        code.append(at > 0 ? " " : "", span);
    });
}
makeScrollable();
addEventListener("resize", makeScrollable);

// cells without a text are no headings
for (const heading of document.querySelectorAll("main th:empty")) {
    heading.replaceWith(document.createElement("td"));
}

// mdBook's bar is no landmark, and what shows the menu is a label, which keys do not reach
document.getElementById("mdbook-menu-bar").setAttribute("role", "banner");
const label = document.getElementById("mdbook-sidebar-toggle");
const shown = document.getElementById("mdbook-sidebar-toggle-anchor");
const button = document.createElement("button");
for (const { name, value } of label.attributes) {
    if (name !== "for") {
        button.setAttribute(name, value);
    }
}
button.type = "button";
button.append(...label.childNodes);
label.replaceWith(button);
button.addEventListener("click", () => {
    label.dispatchEvent(new Event("click")); // what mdBook does before the menu moves
    shown.click();
});
shown.addEventListener("change", () => button.setAttribute("aria-expanded", String(shown.checked)));

document.body.dataset.ready = "true";
