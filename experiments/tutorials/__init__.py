"""Tutorials: scripts of cells, which `python -m jaxbandits.reference FOLDER` runs and renders as pages.

Each runs by itself, `python -m experiments.tutorials.NAME`, or cell by cell in an editor that knows `# %%`.
"""
