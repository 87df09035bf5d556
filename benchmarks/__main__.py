"""All that a message costs, in one command and some ten minutes: `python -m benchmarks [--quick] [--only PART]`.

Prints a table, and leaves a JSON file and a picture in `benchmarks/results`. See `benchmarks.pipeline`.
"""

from benchmarks.pipeline import main

if __name__ == "__main__":
    main()
