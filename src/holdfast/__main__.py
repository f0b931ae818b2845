"""`python -m holdfast`."""

from holdfast.transport.cli.main import main

if __name__ == "__main__":
    main()
