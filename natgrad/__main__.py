"""The command `natgrad` and `python -m natgrad`."""

import sys

from natgrad.extras import MissingExtra, needs


def main() -> None:
    """The command line, or the line that says what to install for it; ends the process."""
    try:
        with needs("The command natgrad", "cli"):
            from natgrad import cli
    except MissingExtra as error:
        print(f"natgrad: {error}", file=sys.stderr)
        sys.exit(2)
    cli.main()


if __name__ == "__main__":
    main()
