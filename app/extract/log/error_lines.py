"""Parse lines that name an error class and its message, as Python prints them or people write them.

In: a line's text. Out: class and message. Lines that only mention a class are ignored: changelogs, `except`
clauses, comments in code.
"""

from app.extract.rules.patterns import pattern

MAX_MESSAGE_CHARS = 400

_ENDINGS = (
    "(?:Error|Exception|ExceptionGroup|Interrupt|Exit|Iteration|Timeout|Warning|Fault|Failed|Failure|Empty|Full"
    "|Dead|Died|CxxCompiler|OutOfResources|Unsupported|Invalid|NotFound|Expired|Aborted|Cancelled)"
)
_TERMINAL = pattern(
    r"^[ \t]*(?:E[ \t]+)?("
    rf"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*{_ENDINGS}|(?:[A-Za-z_]\w*\.)+{_ENDINGS}|Exception|OutOfResources"
    r"|(?:[a-z_]\w*\.)+(?:exceptions?|errors?|exc)\.[A-Z]\w*|(?:re|struct|socket|zlib)\.(?:error|gaierror)"
    r"|BaseExceptionGroup|ExceptionGroup"
    r"|(?:[a-z_]\w*\.){2,}[A-Z]\w*(?:Removed|Denied|Refused|Missing|Mismatch|Exceeded|Violation|Overflow)\w{0,8}"
    r")(?:\([\w.]+\))?(?::[ \t]?(.*))?$"
)
_INLINE = pattern(
    r"(?:^|[\s'\"(:|`*])((?:[a-z_][\w]*\.)*"
    r"(?:[A-Z]\w*(?:Error|Exception|Unsupported)|Exception|\w*OutOfResources)|socket\.gaierror)(?:'>;|:) "
    r"(\S.{0,300})"
)
_IN_TITLE = pattern(
    r"(?:^|[\s'\"(:|`*])((?:[a-z_][\w]*\.)*(?:[A-Z]\w*(?:Error|Exception)|Exception)|socket\.gaierror)"
    r"(?: ?[:：] ?|'>; )(\S.{0,300})"
)
_BARE = pattern(
    r"\s((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))(?: (?:The above exception|During handling) .*)?\s*$"
)
"""A class without a message that ends a traceback in flattened text."""
_REMARK = pattern(
    r" (?:is|was|are|were|has been|being|gets) (?:reported|raised|thrown|shown|seen|encountered)\b"
    r"| (?:when|while|during|after) [a-z]"
)
_MESSAGE_REMARK = pattern(r"\billegal [\w ]{1,40} was encountered$")
"""Part of CUDA's message, not a person's remark about an error."""
_REPR_MESSAGE = pattern(r"^('(?:[^'\\]|\\.){1,200}'|\"(?:[^\"\\]|\\.){1,200}\")(?:[\s`*).,;]|$)")
_TRAILING = pattern(r"`{3}| (?:~?[$#] |>>> |\*\*\* |\+-{8}|[\w.-]{1,40}@[\w.-]{1,40}:|\[repeated \d+x)|<br")
_MAPPED = pattern(r"^\w*(?:Error|Exception|Timeout),$")
"""An entry of an exception mapping in code."""
_NOT_RAISED = ("except ", "catch ", "raises ", "Raises ")


def terminal(text: str) -> tuple[str, str | None] | None:
    """Return class and message of a line that consists of an error only; message None without a colon."""
    head = text.lstrip().removeprefix("E ").partition(":")[0].strip()
    if not head or " " in head or not head[0].isidentifier():
        return None
    found = _TERMINAL.match(text.rstrip())
    message = found.group(2) if found else None
    if found is None or _MAPPED.match(message or ""):
        return None
    return found.group(1), message and message.strip()


def inline(text: str) -> tuple[str, str] | None:
    """Return class and message of an error inside a line."""
    found = _INLINE.search(text) if ": " in text or "'>; " in text else None
    if found is None or _MAPPED.match(found.group(2)):
        return None
    before, kind = text[: found.start(1)], found.group(1)
    if before.endswith(_NOT_RAISED) or before.lstrip().startswith(("# ", "//")) or "  # " in before:
        return None
    return kind, cut_message(kind, found.group(2), before[-1:])


def bare(text: str) -> str | None:
    """Return the class without a message that ends flattened code, or None."""
    found = _BARE.search(text)
    return found.group(1) if found else None


def in_title(title: str) -> tuple[str, str] | None:
    """Return class and message named in a title, without the author's remarks about them."""
    found = _IN_TITLE.search(title)
    if found is None:
        return None
    message = cut_message(found.group(1), found.group(2), title[: found.start(1)][-1:])
    cut = _REMARK.search(message)
    if cut is not None and cut.start() > 5:
        is_own = _MESSAGE_REMARK.search(message[: cut.end()])
        message = message[: cut.end() if is_own else cut.start()]
    return found.group(1), message


def cut_message(kind: str, text: str, opened: str = "") -> str:
    """Return an error's message without other text after it in the same line.

    Args:
        opened: the character before the error: a back-tick or asterisk if it is marked up.
    """
    message = text.strip()[:MAX_MESSAGE_CHARS]
    if opened in {"`", "*"}:
        end = message.find("`" if opened == "`" else "**")
        return message[:end].rstrip() if end > 0 else message
    exact = _REPR_MESSAGE.match(message) if kind.endswith("KeyError") else None
    if exact is not None:
        return str(exact.group(1))
    cut = _TRAILING.search(message)
    return message[: cut.start()].rstrip() if cut and cut.start() > 3 else message
