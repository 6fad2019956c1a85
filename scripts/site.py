"""Parts of scripts/site: the reference that the program prints about itself, and the check of links.

python3 scripts/site.py reference --fbp BINARY --out DIR
python3 scripts/site.py titles DIR
python3 scripts/site.py links DIR
"""

import argparse
import html.parser
import pathlib
import re
import subprocess
import sys
import urllib.parse


class Program:
    def __init__(self, path):
        self.path = path

    def prints(self, *arguments):
        return subprocess.check_output([self.path, *arguments], text=True)

    def commands(self, *path):
        """The commands below one, each as a list of words."""
        block = re.search(r"^Commands:\n((?:  .*\n|\n)*)", self.prints("help", *path), re.M)
        found = re.findall(r"^  ([a-z][a-z-]*)(?: +(.*))?$", block.group(1) if block else "", re.M)
        return [(*path, name) for name, _about in found]


def flags_table(text):
    """The sections of a long help as tables: rows of flag and meaning."""
    parts, rows = [], []
    for line in text.splitlines():
        if re.match(r"^\S.*:$", line):
            parts.append((line[:-1], []))
        elif match := re.match(r"^ {2,6}(-.*|<.*|\[.*)$", line):
            if parts:
                rows = parts[-1][1]
                rows.append([match.group(1).strip(), []])
        elif parts and parts[-1][1] and line.startswith("          "):
            parts[-1][1][-1][1].append(line.strip())
    page = ""
    for heading, rows in parts:
        if not rows:
            continue
        page += f"\n**{heading}**\n\n| | |\n|---|---|\n"
        for flag, words in rows:
            escaped = " ".join(" ".join(words).split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
            page += f"| `{flag.replace('|', chr(92) + '|')}` | {escaped} |\n"
    return page


def reference(arguments):
    program = Program(arguments.fbp)
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)

    page = "# Commands\n\nAs the program prints them: `fbp help COMMAND`.\n"
    open_, count = [list(below) for below in program.commands()], 0
    while open_:
        path = list(open_.pop(0))
        text = program.prints("help", *path)
        about, usage = text.split("\n\n")[0], re.search(r"^Usage: (.*)$", text, re.M).group(1)
        page += f"\n## fbp {' '.join(path)}\n\n{about}\n\n```text\n{usage}\n```\n" + flags_table(text)
        open_[:0] = [list(below) for below in program.commands(*path)]
        count += 1
    missing = [flag for flag in re.findall(r"--[a-z][a-z0-9-]+", program.prints("help", "reconstruct")) if flag not in page]
    if count < 15 or missing:
        sys.exit(f"scripts/site.py: {count} commands were found, and the page lacks {missing}")
    (out / "commands.md").write_text(page)

    topics = re.findall(r"^  ([a-z-]+) ", program.prints("help").split("Topics")[1], re.M)
    page = "# Exit codes, conventions, units\n\nAs the program prints them: `fbp help TOPIC`.\n"
    for topic in topics:
        page += f"\n## {topic}\n\n```text\n{program.prints('help', topic)}```\n"
    (out / "topics.md").write_text(page)

    page = "# Built-in profiles\n\nAs printed by `fbp profiles list`, `fbp profiles show NAME`.\n"
    listed = program.prints("profiles", "list")
    page += f"\n```text\n{listed}```\n"
    for name in re.findall(r"^([a-z][a-z0-9-]*) ", listed, re.M):
        if name not in ("name", "profile"):
            page += f"\n## {name}\n\n```toml\n{program.prints('profiles', 'show', name)}```\n"
    (out / "profiles.md").write_text(page)


def titles(arguments):
    """Links that name a page by its file get its title in the table of contents: the site has no such files."""
    root = arguments.directory.resolve()
    listed = re.findall(r"\[([^]]+)\]\(([^)]+)\)", (root / "SUMMARY.md").read_text())
    title_of = {(root / path).resolve(): title for title, path in listed}
    for page in sorted(root.rglob("*.md")):

        def titled(match):
            text, target = match.groups()
            title = title_of.get((page.parent / target.split("#")[0]).resolve())
            named = re.fullmatch(r"[./a-zA-Z0-9-]+\.md", text)
            return f"[{title}]({target})" if title and named else match.group(0)

        if page.name != "SUMMARY.md":
            text = re.sub(r"\[([^]]+)\]\(([^)\s]+)\)", titled, page.read_text())
            # mdBook has no colours for these, and warns
            page.write_text(re.sub(r"^```(fbp|tofu|nabu|tomocupy)$", "```text", text, flags=re.M))


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.update(filter(None, (values.get("id"), values.get("name"))))
        self.links += [values[key] for key in ("href", "src") if values.get(key)]


def links(arguments):
    """Every link of every page leads to a file, and to a place in it; others are listed by their number."""
    root = arguments.directory.resolve()
    pages = {path: Page(path.read_text()) for path in sorted(root.rglob("*.html"))}
    bad, checked, outside = [], 0, set()
    for path, page in pages.items():
        if path.name in ("404.html", "toc.html"):
            continue  # their links are relative to the site's root
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                outside.add(link)
                if url.scheme not in ("https", "mailto"):
                    bad.append(f"{path.relative_to(root)}: {link} is not https")
                continue
            checked += 1
            to = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
            to = to / "index.html" if to.is_dir() and (to / "index.html").exists() else to
            if not to.exists():
                bad.append(f"{path.relative_to(root)}: {link} leads nowhere")
            elif url.fragment and to in pages and urllib.parse.unquote(url.fragment) not in pages[to].ids:
                bad.append(f"{path.relative_to(root)}: {link} leads to a place that is not there")
    if bad or checked < 500:
        sys.exit("\n".join([*sorted(set(bad)), f"FAILED: {len(bad)} of {checked} links"]))
    print(f"{len(pages)} pages, {checked} links, {len(outside)} to other sites, which are not followed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("reference")
    command.add_argument("--fbp", required=True)
    command.add_argument("--out", required=True, type=pathlib.Path)
    command.set_defaults(run=reference)
    command = commands.add_parser("titles")
    command.add_argument("directory", type=pathlib.Path)
    command.set_defaults(run=titles)
    command = commands.add_parser("links")
    command.add_argument("directory", type=pathlib.Path)
    command.set_defaults(run=links)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
