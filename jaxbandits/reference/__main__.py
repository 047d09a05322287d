"""Writes the reference: `python -m jaxbandits.reference FOLDER`."""

import sys

from jaxbandits.reference.writing import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
