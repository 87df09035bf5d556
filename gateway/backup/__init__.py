"""`chat-chat backup` and `restore`: everything that is kept, as a folder, and back.

SHA256SUMS      of every other file: `sha256sum --check` reads it
backup.json     when it was made, and how much there was of what
redis.gz        every key of ours
longterm/       people's memory as JSON files, also where it is kept in PostgreSQL
transcripts/    what was said, likewise
media/ keys/ …  the other folders and files of DATA_DIR
"""
