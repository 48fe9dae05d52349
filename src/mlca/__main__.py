"""`python -m mlca` is the command line."""

import sys

from mlca.cli import main

sys.exit(main())
