"""Rules about words: phrases that must not come back, and names of money without their unit."""
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
# Names that mean an amount of money, and the units that may end them.
MONEY = {"amount", "authorized", "available", "balance", "cap", "charged", "granted", "held", "overrun", "paid",
         "price", "spent"}
UNITS = re.compile(r"_(nano_usd|pico_usd|us|ms|s|seconds|tokens|bytes|version|month|sequence)_?$")
PROTO_FIELD = re.compile(r"^\s*(?:optional |repeated )?u?int64 (\w+) = ")
CPP_NAME = re.compile(r"\bint64_t>?[&*]? (\w+)(?![\w(])")


def check_phrases(path, text, _):
    if path.startswith(("tests/structure/", "proto/google/")) or path.endswith((".json", "LICENSE")) or "/corpus/" in path:
        return
    for number, line in enumerate(text.split("\n"), 1):
        for pattern, instead in PHRASES:
            found = pattern.search(line)
            if found:
                yield number, f'"{found[0]}": write {instead}'


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
