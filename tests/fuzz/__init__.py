"""What strangers, files and models may send, at random: `python -m tests.fuzz` for as long as one likes."""
