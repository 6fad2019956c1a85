"""Runs docs/notebook.ipynb in the Python that runs this, which needs fbp and Pillow, and compares what it shows with what is
stored.

    python scripts/notebook.py             every output is the stored one: text except for its numbers, pictures up to noise
    python scripts/notebook.py --update    stores the outputs
    python scripts/notebook.py --source FILE.py     writes the code, for type checkers
    python scripts/notebook.py --page DIR  writes notebook.md with its pictures, for the website

Cells run as in Jupyter: the value of the last expression is shown, as a picture if it is one.
"""

import argparse
import ast
import base64
import contextlib
import io
import json
import pathlib
import re
import sys

NOTEBOOK = pathlib.Path(__file__).resolve().parents[1] / "docs" / "notebook.ipynb"
# levels of 255 by which pixels of a picture may differ on average
MARGIN = 2


def run(cell, names):
    """The outputs of a cell."""
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(tree, "notebook", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "notebook", "eval"), names) if last else None
    outputs = []
    if shown.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": shown.getvalue().splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": [repr(value)]}
        if hasattr(value, "_repr_png_"):
            picture = base64.b64encode(value._repr_png_()).decode()
            # a repr of pictures has an address
            data = {"image/png": picture + "\n", "text/plain": [f"<picture of {value.width} x {value.height} pixels>"]}
        outputs.append({"data": data, "execution_count": cell["execution_count"], "metadata": {}, "output_type": "execute_result"})
    return outputs


def text_of(outputs):
    """All text, with the same digit in the place of each number."""
    text = "".join("".join(output.get("text", output.get("data", {}).get("text/plain", []))) for output in outputs)
    return re.sub(r"\d+", "0", text)


def pictures_of(outputs):
    return [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]


def pixels(picture):
    import numpy
    from PIL import Image

    return numpy.asarray(Image.open(io.BytesIO(base64.b64decode(picture)))).astype(float)


def difference(outputs, stored):
    """What differs; None if nothing does."""
    if text_of(outputs) != text_of(stored):
        return f"shows {text_of(outputs)!r}, and not {text_of(stored)!r}"
    pairs = list(zip(map(pixels, pictures_of(outputs)), map(pixels, pictures_of(stored))))
    if len(pairs) != len(pictures_of(outputs)) or any(a.shape != b.shape for a, b in pairs):
        return "has pictures of other sizes"
    apart = max((abs(a - b).mean() for a, b in pairs), default=0)
    return None if apart <= MARGIN else f"has a picture whose pixels differ by {apart:.1f} levels on average"


def page(notebook, folder):
    """The notebook as a page."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            if "text" in output:
                parts.append("```text\n" + "".join(output["text"]) + "```")
            elif "image/png" in output["data"]:
                name = f"{cell['id']}.png"
                (folder / "notebook").mkdir(exist_ok=True)
                (folder / "notebook" / name).write_bytes(base64.b64decode(output["data"]["image/png"]))
                parts.append(f"![What the cell above shows: {''.join(output['data']['text/plain'])[1:-1]}](notebook/{name})")
            else:
                parts.append("```text\n" + "".join(output["data"]["text/plain"]) + "\n```")
    (folder / "notebook.md").write_text("\n\n".join(parts) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--source", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    arguments = parser.parse_args()
    notebook = json.loads(NOTEBOOK.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if arguments.page:
        page(notebook, arguments.page)
        return
    if arguments.source:
        # the last expression of a cell is shown, which type checkers take for one of no use
        arguments.source.write_text("\n".join("".join(cell["source"]) + "\n" for cell in code))
        return
    names, wrong = {"__name__": "__main__"}, []
    for number, cell in enumerate(code, 1):
        cell["execution_count"] = number
        outputs = run(cell, names)
        apart = None if arguments.update else difference(outputs, cell["outputs"])
        if apart:
            wrong.append(f"docs/notebook.ipynb: cell {number} {apart}")
        cell["outputs"] = outputs
    if arguments.update:
        NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    elif wrong:
        sys.exit("\n".join([*wrong, "If that is right: python scripts/notebook.py --update"]))
    shown = sum(len(pictures_of(cell["outputs"])) for cell in code)
    print(f"{len(code)} cells of the notebook, with {shown} pictures")


if __name__ == "__main__":
    main()
