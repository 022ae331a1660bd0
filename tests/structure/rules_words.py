"""Rules about words: phrases and constructions that must not come back, and names of money without their unit."""
import ast
import re

# (what must not stand, what to write instead). Add a phrase only where a plain replacement exists.
PHRASES = [(re.compile(pattern), instead) for pattern, instead in [
    (r"\bcan not\b", "cannot"),
    (r"\b[Ll]imiter away\b|\blocal share decides\b", "rate limiter unreachable; using local limits"),
    (r"\b(?:is|are|was|were|be|been) away\b", "is unreachable"),
    (r"\bmoney is at its end\b", "the hold is used up and cannot be extended"),
    (r"\bdoes not chat\b", "does not support chat completions"),
    (r"\b[Ee]nds by dying\b", "released by its destructor"),
    (r"\b(?:dies|dying)\b", "crashes, exits, is destroyed"),
    (r"\bmanners\b|\bin whose manner\b", "behaviour, conformance; the error envelope"),
    (r"\b(?:caller|client)s? (?:has|have|is|are) gone\b", "the client disconnected"),
    (r"\b[Nn]obody (?:can say|listens|hears|knows|says|said|asks|asked|thought)\b", "unknown, no subscriber"),
    (r"\b[Ss]omebody\b", "the component or the role: the operator, a client, another process"),
    (r"\bhears? (?:from|of)\b|\bheard (?:from|of)\b|\bunheard\b", "receives, gets a message from"),
    (r"\bwhose word\b|\btakes? (?:\w+ )?word for\b", "is trusted"),
    (r"\bin (?:its|their|the engine's|the family's) (?:own )?words\b", "the message text"),
    (r"\bthe books\b", "the ledger"),
    (r"\bwhat (?:the )?callers? (?:is|are) told\b", "the response"),
    (r"\b[Tt]he end is said\b", "the end is sent"),
    (r"\b(?:is|are) as good as (?:none|nothing)\b", "is treated as absent"),
    (r"\bopens the door\b", "fails open"),
    (r"\bunkind\b", "malformed, hostile"),
    # Identifiers.
    (r"\bMayGoOn\b", "ContinueOrRefuse"),
    (r"\bUnderstand\(", "Validate("),
    (r"\bGiveBackAndRefuse\b", "ReleaseAndRefuse"),
    (r"\b(?:Fly|Land)\b", "Start and Finish"),
]]
# What must not begin a sentence of a comment or a page, and what to do instead.
OPENERS = [(re.compile(r"(?:^|(?<=[.!?:;|(] ))" + pattern), instead) for pattern, instead in [
    (r"Of (?!course\b)\w+", "begin with the noun that the sentence is about"),
    (r"Those(?: \w+)?", "name the things"),
    (r"As of(?! \d) \w+", "say when, or by whom"),
    (r"The same of\b", "say what happens"),
    (r"That (?:an?|the|it|they|its|their|no|one|each|every|all|some|any|this|these|such|nothing|something|only)\b",
     "begin with the subject"),
    (r"Nothing:", "name the value: nullopt, an empty list"),
]]
# What must not stand anywhere in a sentence, message or page.
CONSTRUCTIONS = [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in [
    (r"(?<!there )\b(?:is|are|was|were) (?:(?-i:none)\b|no (?!longer\b|worse\b|more than\b|less than\b|\w+er than\b)\w+)",
     '"is not a ...", "has no ..."'),
    (r"\bnone any ?more\b", '"no longer a ...", "removed"'),
    (r"\bfor want of\b", '"because there is no ..."'),
    (r"\bhardly\b", '"almost no", "rarely"'),
    (r"\banew\b", '"again"'),
    (r"\b(?:stands?|stood|standing) still\b", '"hangs", "is stopped"'),
    (r"\bthe next try follows\b", '"retries later"'),
    (r"\b(?:is|are|was|were|be|been) looked at\b", '"is checked", "is read"'),
    (r"(?<!/)\bbeside\b(?!\.)", '"next to", "as well as"'),
    (r"\b(?:for|after|in|until|since) so long\b(?! as\b)|\bso many\b(?![^.;:]*\b(?:as|that)\b)",
     '"for this time", "this many"'),
    (r"\bit is (?:they|he|she|we)\b", "begin with the subject"),
]]
SCRIPTS = (".ts", ".tsx", ".js", ".mjs")
SLASHES = (".cc", ".h", ".proto", ".go") + SCRIPTS
HASHES = (".sh", ".yml", ".yaml", ".tpl", ".cmake", ".cfg", ".conf", "CMakeLists.txt", "Dockerfile")
STRING = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
C_STRING = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'')  # 10\'000 is a number
# Names that mean an amount of money, and the units that may end them.
MONEY = {"amount", "authorized", "available", "balance", "cap", "charged", "granted", "held", "overrun", "paid",
         "price", "spent"}
UNITS = re.compile(r"_(nano_usd|pico_usd|us|ms|s|seconds|tokens|bytes|version|month|sequence)_?$")
PROTO_FIELD = re.compile(r"^\s*(?:optional |repeated )?u?int64 (\w+) = ")
CPP_NAME = re.compile(r"\bint64_t>?[&*]? (\w+)(?![\w(])")


def check_phrases(path, text, _):
    if path.startswith(("tests/structure/", "proto/google/")) or path.endswith((".json", "LICENSE")) or "/corpus/" in path:
        return
    for pattern, instead in PHRASES:
        for found in pattern.finditer(text):
            yield text.count("\n", 0, found.start()) + 1, f'"{found[0]}": write {instead}'


def comments(text, mark, string):
    """The comments of a source file as (first line, lines); lines that follow each other are one comment."""
    block, column, start = [], None, 0
    for number, line in enumerate(text.split("\n") + [""], 1):
        masked = string.sub(lambda found: "x" * len(found[0]), line)
        at = 0 if re.match(mark + "(?!!)", masked) else masked.find(" " + mark) + 1 or None
        if block and (at != column or line[:at].strip()):
            yield start, block
            block = []
        if at is not None:
            if not block:
                start, column = number, at
            block.append(line[at:].lstrip(mark).strip())


def strings(text, mark, string):
    """What the string literals of each line say."""
    for number, line in enumerate(text.split("\n"), 1):
        if '"""' not in line:
            found = [part[0][1:-1] for part in string.finditer(line) if " " + mark not in line[:part.start()]]
            yield number, [" ".join(found)]


def docstrings(text):
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return
    for node in nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            yield node.body[0].lineno, node.body[0].value.value.split("\n")


def paragraphs(text):
    """A Markdown page without its code: paragraphs, list items, and each row of a table."""
    block, start, fenced = [], 0, False
    for number, line in enumerate(text.split("\n") + [""], 1):
        fence = line.lstrip().startswith("```")
        if block and (fence or not line.strip() or re.match(r"\s*(?:[-*|>#]|\d+\.)", line)):
            yield start, block
            block = []
        fenced ^= fence
        if line.strip() and not fence and not fenced:
            start = start if block else number
            block.append(re.sub(r"^\s*(?:[-*|>#]+|\d+\.)\s+|\*\*", "", re.sub(r"`[^`]*`", "`", line)).strip())


def prose(path, text):
    """What a reader reads in a file, as (first line, lines, whether they are sentences)."""
    python = path.endswith(".py") or text.startswith(("#!/usr/bin/python3", "#!/usr/bin/env python3"))
    if path.endswith(".md"):
        for start, lines in paragraphs(text):
            if path != "docs/proofs.md" or "| " not in lines[0]:  # its tables are what runs have printed
                yield start, lines, True
        return
    if path.endswith(SLASHES):
        mark, string = "//", STRING if path.endswith(SCRIPTS) else C_STRING
    elif python or path.endswith(HASHES) or re.match(r"#!.*sh\b", text):
        mark, string = "#", STRING
    else:
        return
    for start, lines in comments(text, mark, string):
        yield start, lines, True
    for start, lines in docstrings(text) if python else []:
        yield start, lines, True
    if path.endswith((".yml", ".yaml")):
        yield from ((number, [re.sub(r"(?:^|\s)#.*", "", line)], False) for number, line in enumerate(text.split("\n"), 1))
    else:
        yield from ((number, lines, False) for number, lines in strings(text, mark, string))


def check_grammar(path, text, _):
    """Comments, pages and messages are plain sentences."""
    if path.startswith(("tests/structure/", "proto/google/")) or "/corpus/" in path:
        return
    for start, lines, sentences in prose(path, text):
        joined = " ".join(lines)
        for pattern, instead in (OPENERS if sentences else []) + CONSTRUCTIONS:
            for found in pattern.finditer(joined):
                number, end = start, 0
                for line in lines:  # the line in which it begins
                    end += len(line) + 1
                    number += end <= found.start()
                yield number, f'"{found[0]}": {instead}'


def check_money_names(path, text, _):
    """An int64 that counts money ends in _nano_usd or _pico_usd."""
    if path.endswith(".proto"):
        pattern = PROTO_FIELD
    elif re.match(r"services/billing/domain/\w+\.h$", path):
        pattern = CPP_NAME
    else:
        return
    for number, line in enumerate(text.split("\n"), 1):
        for name in pattern.findall(line.split("//")[0]):
            if MONEY & set(name.split("_")) and not UNITS.search(name):
                yield number, f"{name} is money without its unit: _nano_usd or _pico_usd"
