"""The README's Python blocks run as they stand, one after the other."""

import re
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def test_python_blocks_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) >= 2
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "[20 20 20] [0 0 0]" in shown  # all runs stopped, none censored
    assert int(names["state"].pulls) == 1
