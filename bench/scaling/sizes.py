"""Sizes on command lines, as dd(1) has them."""

import argparse
import re


def size_of(text):
    """M is 1024 * 1024, MB is 1000 * 1000."""
    parts = re.fullmatch(r"(\d+)([KMGT]?)(B?)", text)
    if not parts or int(parts[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text} is no size")
    return int(parts[1]) * (1000 if parts[3] else 1024) ** " KMGT".index(parts[2] or " ")
