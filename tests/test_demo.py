"""The demo runs, and the README shows what it printed."""

import re
import subprocess
import sys

import pytest
from support import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def figures(text):
    """Return every line's words, and its numbers."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    words = [re.sub(r"[-+]?\d+\.\d+", "#", line).split() for line in lines]
    return words, [float(n) for line in lines for n in re.findall(r"[-+]?\d+\.\d+", line)]


def test_the_readme_shows_what_the_demo_prints():
    done = subprocess.run(
        [sys.executable, ROOT / "sample_data" / "demo.py"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    words, numbers = figures(done.stdout)
    shown = re.search(r"<!-- demo -->(.*)<!-- /demo -->", README, flags=re.DOTALL).group(1)
    shown_words, shown_numbers = figures(shown)
    assert shown_words == words
    # Other versions of the numerical libraries may round otherwise in the last places.
    assert shown_numbers == pytest.approx(numbers, abs=0.002)
