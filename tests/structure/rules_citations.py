"""Rule: what a comment, a message or a page cites exists in this repository. The forms:

    docs/design/wire.md 2.4, 3              sections of a page by number
    docs/contract.md "Errors" and "Limits"  sections of a page by title
    docs/design/performance.md, point 2     an item of a page's numbered list
    decision 26, decisions 1 to 4, 9        rules of docs/decisions.md
    H49, invariant I6, ADR 0003             rows of hostile-inputs.md and ledger.md, decision records

A page is named by its path from the top of the tree, or in a page by its path from that page.
"""
import os
import re

# Bare names that need no folder: every folder may have one.
BARE_PAGES = ("README.md", "CONTRIBUTING.md")
OLD_FORMS = [
    (re.compile(r"\bgateway-spec\b"), "docs/contract.md"),
    (re.compile(r"\breliability [1-9]"), "docs/design/ledger.md and the section"),
    (re.compile(r"\bwire reference\b"), "docs/design/wire.md"),
    (re.compile(r"\bspec: "), "See …"),
]
PAGE = re.compile(r"(?<![\w./:*<>{}$-])((?:\.{1,2}/)*(?:[\w.-]+/)*[\w.-]*\w\.md)\b")
NUMBERS = r"\d+(?:\.\d+)*(?:(?:\s*[-–]\s*|,?\s+(?:and|or|to)\s+|,\s+)\d+(?:\.\d+)*)*(?![\w%])"
SECTIONS = re.compile(r"[`)\]]*(?:,?\s+\[?sections?)?\s+\[?(%s)" % NUMBERS)
TITLE = re.compile(r'[`)\]]*,?(?:\s+and)?\s+"([^"]+)"')
POINTS = re.compile(r"[`)\]]*,?\s+points?\s+(%s)" % NUMBERS)
DECISIONS = re.compile(r"\b[Dd]ecisions?\s+(%s)" % NUMBERS)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)[^)]*\)")


def numbers_of(text):
    return re.findall(r"\d+(?:\.\d+)*", text)


def slug(title, seen):
    """The anchor that GitHub gives a heading."""
    base = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    seen[base] = seen.get(base, 0) + 1
    return base if seen[base] == 1 else f"{base}-{seen[base] - 1}"


def without_code(text):
    """A Markdown page with its code blanked out; offsets stay."""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])
    return re.sub(r"`[^`\n]*`", blank, re.sub(r"^ *```.*?^ *```", blank, text, flags=re.M | re.S))


def joined(path, text):
    """The text with its paragraphs and comments on one line each, so that a citation may be broken over two lines.
    Offsets stay."""
    if path.endswith(".md"):
        breaks = r"\n[ \t]*(?![ \t]|\n|#|\||```|[-*] |\d+\. )"
    elif path.endswith(".py"):
        breaks = r"\n[ \t]*#*[ \t]*"
    else:
        breaks = r"\n[ \t]*(?://+|#+|--|\*)[ \t]+"
    return re.sub(breaks, lambda found: " " * len(found[0]), text)


class Page:
    """What can be cited of one Markdown page."""

    def __init__(self, text):
        self.numbers, self.titles, self.anchors, seen = set(), set(), set(), {}
        fenced = re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)
        for heading in re.findall(r"^#+ +(.*?)\s*$", fenced, re.M):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
            self.anchors.add(slug(plain, seen))
            number = re.match(r"(\d+(?:\.\d+)*)\.? +", plain)
            if number:
                self.numbers.add(number[1])
            self.titles.add(re.sub(r"^[\d.]+ +", "", plain).lower())
        self.points = set(re.findall(r"^(\d+)\. ", fenced, re.M))


class Pages:
    """Everything that can be cited. `files`: the paths there are; `read`: path to text."""

    def __init__(self, files, read):
        self.files = set(files)
        self.folders = {os.path.dirname(path) for path in self.files}
        self.read = read
        self.pages = {}
        self.decisions = self.page("docs/decisions.md").points
        self.rows = set(re.findall(r"^\| *(H\d+) *\|", self.text("docs/design/hostile-inputs.md"), re.M))
        self.invariants = set(re.findall(r"\*\*(I\d+)\*\*", self.text("docs/design/ledger.md")))
        self.records = {found[1] for found in map(re.compile(r"docs/adr/(\d{4})-").match, self.files) if found}

    def text(self, path):
        return self.read(path) if path in self.files else ""

    def page(self, path):
        if path not in self.pages:
            self.pages[path] = Page(self.text(path))
        return self.pages[path]

    def resolve(self, name, citing):
        """The path of a page that a file names, or None."""
        beside = os.path.normpath(os.path.join(os.path.dirname(citing), name))
        return next((path for path in (name, beside) if path in self.files), None)


def range_ends(text):
    """The decisions of "1-4, 9": 1 to 4 and 9."""
    for first, last in re.findall(r"(\d+)(?:\s*(?:[-–]|\bto\b)\s*(\d+))?", text):
        yield from map(str, range(int(first), int(last or first) + 1))


def check_page(name, path, after, pages):
    """What is wrong with what is cited of this page. `after`: the text that follows its name."""
    page = pages.page(path)
    sections = SECTIONS.match(after)
    if sections and path == "docs/decisions.md":
        for number in range_ends(sections[1]):
            if number not in pages.decisions:
                yield f"there is no decision {number}"
    elif sections and (path.startswith("docs/design/") or path == "docs/contract.md"):
        for number in numbers_of(sections[1]):
            if number not in page.numbers:
                yield f"{name} has no section {number}"
    points = POINTS.match(after)
    for number in numbers_of(points[1]) if points else []:
        if number not in page.points:
            yield f"{name} has no point {number}"
    title = TITLE.match(after)
    while title:
        if re.sub(r"\s+", " ", title[1]).replace("`", "").lower() not in page.titles:
            yield f'{name} has no section "{title[1]}"'
        after = after[title.end():]
        title = TITLE.match(after)


def citations(path, text, pages):
    """(offset, message) of every citation that leads nowhere."""
    flat = joined(path, text)
    for found in PAGE.finditer(flat):
        if re.match(r"`?\]\(", flat[found.end():]):
            continue  # the text of a link
        target = pages.resolve(found[1], path)
        if target:
            for message in check_page(found[1], target, flat[found.end():found.end() + 300], pages):
                yield found.start(), message
        elif "/" in found[1] or found[1] not in BARE_PAGES:
            yield found.start(), f"there is no page {found[1]}: name it by its path from the top of the tree"
    for found in DECISIONS.finditer(flat):
        for number in range_ends(found[1]):
            if number not in pages.decisions:
                yield found.start(), f"there is no decision {number}"
    for found in re.finditer(r"\bADR\s+(\d{4})\b|\badr/(\d{4})\b", flat):
        if (found[1] or found[2]) not in pages.records:
            yield found.start(), f"there is no ADR {found[1] or found[2]}"
    for found in re.finditer(r"\b[Ii]nvariants?\s+((?:I\d{1,2}(?:, | and | to |-)?)+)", flat):
        for name in re.findall(r"I\d+", found[1]):
            if name not in pages.invariants:
                yield found.start(), f"docs/design/ledger.md has no invariant {name}"
    if path.endswith((".cc", ".h", ".proto", ".py")):
        for found in re.finditer(r"\bH\d{1,2}\b", flat):
            if found[0] not in pages.rows:
                yield found.start(), f"docs/design/hostile-inputs.md has no row {found[0]}"
    for pattern, instead in OLD_FORMS:
        for found in pattern.finditer(flat):
            yield found.start(), f'"{found[0].strip()}": write {instead}'


def links(path, text, pages):
    """(offset, message) of every Markdown link that leads nowhere."""
    for found in LINK.finditer(without_code(text)):
        target, _, anchor = found[1].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        place = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if place not in pages.files and place not in pages.folders:
            yield found.start(), f"the link to {found[1]} leads nowhere"
        elif anchor and place.endswith(".md") and anchor not in pages.page(place).anchors:
            yield found.start(), f"{place} has no heading #{anchor}"


def check_citations(path, text, pages):
    if path.startswith("tests/structure/") and path.endswith(".py"):
        return  # the rules and their samples
    if path.endswith("package-lock.json"):
        return  # written by npm, with the licences of packages
    found = list(citations(path, text, pages))
    if path.endswith(".md"):
        found += links(path, text, pages)
    for offset, message in sorted(found):
        yield text.count("\n", 0, offset) + 1, message
