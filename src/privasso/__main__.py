"""`python -m privasso` is the command line."""

from privasso.cli import main

raise SystemExit(main())
