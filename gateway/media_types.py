"""Which types of content are taken, told by the content itself where it can be. Pure."""

from __future__ import annotations

from gateway.messages import Kind

_IMAGES = ((b"\xff\xd8\xff", "image/jpeg"), (b"\x89PNG\r\n\x1a\n", "image/png"), (b"GIF8", "image/gif"))
_SUFFIXES = {
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/gif": "gif",
    "image/webp": "webp",
    "audio/ogg": "ogg",
    "audio/mpeg": "mp3",
    "audio/mp4": "m4a",
    "audio/x-m4a": "m4a",
    "audio/aac": "aac",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
    "application/pdf": "pdf",
    "text/plain": "txt",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
}
_TYPES = {suffix: mime for mime, suffix in _SUFFIXES.items()}
_LOOSE = ("", "application/octet-stream", "binary/octet-stream")


def type_of(kind: Kind, data: bytes, said: str, file_name: str) -> str | None:
    """The content's type, if it is one that is taken for this kind of message; `said` is the platform's word for it."""
    image = _image(data)
    if kind is Kind.IMAGE:
        return image
    said = said.partition(";")[0].strip().lower()
    if said in _LOOSE:
        said = _TYPES.get(file_name.rpartition(".")[2].lower(), "")
    if kind is Kind.AUDIO:
        # Telegram's voice messages are Opus in Ogg; LINE's are M4A, which some name video/mp4.
        if data[:4] == b"OggS":
            return "audio/ogg"
        return "audio/mp4" if said == "video/mp4" or not said else said if said.startswith("audio/") else None
    if kind is Kind.VIDEO:
        return "video/mp4" if not said else said if said.startswith("video/") or image else None
    return image or (said if said in _SUFFIXES else None)


def suffix_of(mime: str) -> str:
    return _SUFFIXES.get(mime, "bin")


def _image(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for start, mime in _IMAGES if data.startswith(start)), None)
