"""``python -m bench``: what ``make bench`` runs; see ``bench.run``."""

import sys

from bench.run import main

sys.exit(main())
