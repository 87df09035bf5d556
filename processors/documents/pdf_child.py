"""Reads one PDF and writes its pages as JSON. Run by `processors.documents.pdf`; imports nothing of ours."""

from __future__ import annotations

import json
import logging
import resource
import sys


def main(path: str, most_pages: int, most_characters: int, megabytes: int, seconds: int) -> dict[str, object]:
    resource.setrlimit(resource.RLIMIT_AS, (megabytes * 1024 * 1024,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    logging.disable(logging.CRITICAL)
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError

        try:
            reader = PdfReader(path)
            if reader.is_encrypted and not reader.decrypt(""):
                return {"error": "locked"}
            if len(reader.pages) > most_pages:
                return {"error": "pages"}
            found: list[tuple[int, str]] = []
            total = 0
            for number, page in enumerate(reader.pages, 1):
                text = page.extract_text().encode("utf-8", "replace").decode()
                total += len(text)
                if total > most_characters:
                    return {"error": "characters"}
                if text.strip():
                    found.append((number, text))
        except PyPdfError:
            return {"error": "broken"}
        except (ArithmeticError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError, OSError):
            return {"error": "broken"}  # what a parser stumbles over in a file that somebody made up
        except ImportError:  # a cipher that needs another package
            return {"error": "locked"}
        except RecursionError:
            return {"error": "broken"}
    except MemoryError:
        return {"error": "memory"}
    return {"pages": found} if found else {"error": "empty"}


if __name__ == "__main__":
    said = main(sys.argv[1], *map(int, sys.argv[2:6]))
    sys.stdout.write(json.dumps(said))
