"""`python -m natgrad`."""

from natgrad.cli import main

main()
