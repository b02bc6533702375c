"""What the documents show: blocks of text that is typed or compiled, and the options that manual pages tell of."""

import os
import re
from collections import namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOCUMENTS = ["README.md", *(f"docs/{name}.md" for name in "DISKS HOSTS LIBRARY WRITING-TOOLS SHARING".split())]
COMMANDS = "pif scripts/ cmake cc c++ cp rm mv mkdir export eval head zcat tail edit (umask cd".split()

Block = namedtuple("Block", "document heading lines")


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def blocks(document):
    """Indented and fenced blocks, each with the heading that it stands below."""
    heading, lines, is_fenced = "", [], False
    for line in read(document).split("\n") + [""]:
        is_fence = line.startswith("```")
        if is_fenced and not is_fence:
            lines.append(line)
        elif not is_fence and line.startswith("    "):
            lines.append(line[4:])
        elif lines and not (not line and not is_fence):
            yield Block(document, heading, lines)
            lines = []
        elif lines:
            lines.append("")
        if is_fence:
            is_fenced = not is_fenced
        if line.startswith("#") and not is_fenced:
            heading = line.lstrip("# ")
    if lines:
        yield Block(document, heading, lines)


def is_command(line):
    return any(line == word or line.startswith(word if word.endswith("/") else word + " ") for word in COMMANDS)


def typed_lines(block):
    """Command lines of a block, without prompts and comments. Where there are prompts, all else is output."""
    lines = [line for line in block.lines if line]
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return [without_comment(line) for line in lines if is_command(line)]


def without_comment(line):
    """Commands have no two blanks in a row; what stands behind two, or behind "#", says what a command does."""
    return re.split(r"\s+#\s|\s{2,}", line)[0].strip()


def all_typed_lines():
    return [(block, line) for document in DOCUMENTS for block in blocks(document) for line in typed_lines(block)]


def code_blocks(document):
    """Blocks of C++: with statements or an include."""
    return [block for block in blocks(document) if re.search(r"[;{]$|^#include|pif::", "\n".join(block.lines), re.M)
            and not typed_lines(block) and "find_package" not in block.lines[0]]


def sentences(document):
    """Of its prose: no blocks, tables and headings; an item of a list ends a sentence."""
    shown = {line for block in blocks(document) for line in block.lines if line}
    paragraphs, is_open = [], False
    for line in read(document).split("\n"):
        text = line.strip()
        is_prose = text and not text.startswith(("#", "|", "```", "!")) and line not in shown and line[4:] not in shown
        if is_prose and is_open and not re.match(r"[-*] |\d+\. ", text):
            paragraphs[-1] += " " + text
        elif is_prose:
            paragraphs.append(text)
        is_open = bool(is_prose)
    return [part for paragraph in paragraphs for part in re.split(r"(?<=[.!?:;])\s+(?=[A-Z`*\[(])", paragraph)]


def options_of_help(text):
    """Long options that a --help lists in its own lines, not those in examples."""
    listed = re.split(r"^Examples?:?$", text[text.find("\nOptions:") :], flags=re.M)[0]
    return set(re.findall(r"^\s+(?:-\w,\s*)?(--[a-z][a-z0-9-]*)", listed, re.M))


def has_page(name):
    return os.path.exists(os.path.join(ROOT, f"docs/man/{name}.1"))


def page(name):
    """The source of a manual page, of whatever page it refers to."""
    text = read(f"docs/man/{name}.1")
    match = re.fullmatch(r"\.so man1/(.*)\.1\n?", text)
    return page(match.group(1)) if match else text


def options_of_page(text):
    """Words of several letters with two dashes, and those that may have one, as find(1) has them."""
    plain = re.sub(r"\\f[A-Z]", "", text).replace("\\-", "-")
    return set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*)", plain)) | {
        "-" + word for word in re.findall(r"(?<![\w-])(-[a-z][a-z0-9-]+)", plain)
    }


def told_options(text):
    """Those with two dashes that a page tells of; what stands in its examples may be another program's."""
    without_examples = re.sub(r"^\.nf\n.*?^\.fi$", "", text.split(".SH DESCRIPTION", 1)[-1], flags=re.M | re.S)
    plain = without_examples.replace("\\-", "-")
    return set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*)", plain))
