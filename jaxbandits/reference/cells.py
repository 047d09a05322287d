"""Executes cells of code from standard input and writes their outputs to standard output, both as JSON.

It is a program for `tutorials.execute`, and imports nothing of the package.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import traceback
import types


def pictures() -> list[str]:
    """Returns the open figures of Matplotlib as PNG files in base64, and closes them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    files = []
    for number in pyplot.get_fignums():
        buffer = io.BytesIO()
        pyplot.figure(number).savefig(buffer, format="png", dpi=120, bbox_inches="tight", facecolor="white")
        files.append(base64.b64encode(buffer.getvalue()).decode())
    pyplot.close("all")
    return files


def is_drawing(value: object) -> bool:
    """True if a value belongs to a figure, which is shown as a picture, or is a list of such values."""
    if isinstance(value, (list, tuple)) and value:
        return all(is_drawing(each) for each in value)
    return type(value).__module__.startswith("matplotlib.")


def execute(source: str, line: int, path: str, namespace: dict) -> dict:
    """Executes a cell and returns its text, its figures and its error."""
    printed, error = io.StringIO(), ""
    try:
        tree = ast.increment_lineno(ast.parse(source), line - 1)
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr):
            tree.body.pop()
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, path, "exec"), namespace)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), path, "eval"), namespace)
                if value is not None and not is_drawing(value):
                    # A table of ours has its text in `__str__`, others in `__repr__`; NumPy's types alike.
                    print(value if type(value).__str__ is not object.__str__ else repr(value))
    except BaseException:
        # The first entry of the traceback is this file.
        kind, value, trace = sys.exc_info()
        error = "".join(traceback.format_exception(kind, value, trace.tb_next if trace and trace.tb_next else trace))
    return {"text": printed.getvalue(), "figures": pictures(), "error": error}


def main(path: str) -> None:
    """Executes all cells in the module `__main__`, as if the script had been started."""
    cells = json.load(sys.stdin)
    # A library may write to file descriptor 1; the results go where nothing else is written.
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    # Modules beside the script are found, those beside this file are not.
    sys.path[0] = os.path.dirname(path)
    outputs = []
    for line, source in cells:
        outputs.append(execute(source, line, path, module.__dict__))
        if outputs[-1]["error"]:
            break
    json.dump(outputs, results)
    results.close()


if __name__ == "__main__":
    main(sys.argv[1])
