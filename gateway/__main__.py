"""`python -m gateway` is the console script."""

from gateway.cli import main

main()
