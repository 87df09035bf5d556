"""The console script, also as `python -m gateway`."""

import signal


def main() -> None:
    heard = signal.getsignal(signal.SIGINT)
    if heard is signal.default_int_handler:  # while it loads, which takes a moment, Ctrl-C ends it without a traceback
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from gateway.cli import main as commands

    signal.signal(signal.SIGINT, heard)
    commands()


if __name__ == "__main__":
    main()
