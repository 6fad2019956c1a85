"""What the parts of scripts/quality share."""

import io
import subprocess
import textwrap

import matplotlib.pyplot as plt
from PIL import Image


class Failed(Exception):
    pass


def run(fbp, *arguments):
    """Runs fbp and returns what it prints; its complaints are shown when it fails."""
    command = [str(fbp), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}\n{done.stderr.rstrip()}")
    return done.stdout


def save(figure, path):
    """A PNG of 256 colours: a third of the size, and the same bytes for the same pixels."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    plt.close(figure)
    image = Image.open(buffer).convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    image.save(path, optimize=True)


def number(value, digits=2):
    """0.0026 as 2.6e-3; what JSON cannot hold is infinite."""
    if value is None:
        return "inf"
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def paragraph(text, bullet=False):
    """Text as a paragraph or a point of a list, in lines of up to 120 characters."""
    return textwrap.fill(" ".join(text.split()), 120, initial_indent="* " if bullet else "",
                         subsequent_indent="  " if bullet else "", break_long_words=False,
                         break_on_hyphens=False) + "\n"
