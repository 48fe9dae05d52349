"""Entry point of `python -m mlca`, the command line."""

import sys

from mlca.cli import main

sys.exit(main())
