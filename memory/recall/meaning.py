"""Vectors in memory, one byte a number: the closest to a question's. numpy comes with the first vector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_SCALE = 127.0
_CHUNK = 512  # rows that are turned into floats at a time: they stay in the cache


def packed(vectors: Any) -> list[bytes]:
    """float32 rows of unit length, each as signed bytes."""
    import numpy as np

    whole = np.clip(np.rint(vectors * _SCALE), -127, 127).astype(np.int8)
    return [row.tobytes() for row in whole]


def cosines(vectors: Sequence[bytes], question: Any) -> list[float]:
    """Of packed vectors to a float32 row of unit length; 0.0 for those of another length."""
    import numpy as np

    mine = [at for at, vector in enumerate(vectors) if len(vector) == len(question)]
    rows = np.frombuffer(b"".join(vectors[at] for at in mine), np.int8).reshape(len(mine), -1) if mine else None
    out = [0.0] * len(vectors)
    for start in range(0, len(mine), _CHUNK):
        assert rows is not None
        close = (rows[start : start + _CHUNK].astype(np.float32) @ question) / _SCALE
        for at, value in zip(mine[start : start + _CHUNK], close.tolist(), strict=True):
            out[at] = value
    return out


class Meaning:
    """Ids and their vectors. Brute force: a hundred thousand take some ten milliseconds."""

    def __init__(self, vectors: Mapping[str, bytes]) -> None:
        self._ids: list[str] = []
        self._at: dict[str, int] = {}
        self._rows: Any = None
        self.put(vectors)

    def __len__(self) -> int:
        return len(self._at)

    def put(self, vectors: Mapping[str, bytes]) -> None:
        import numpy as np

        fresh = [name for name in vectors if name not in self._at]
        for name in vectors.keys() - set(fresh):
            self._rows[self._at[name]] = np.frombuffer(vectors[name], np.int8)
        if fresh:
            rows = np.frombuffer(b"".join(vectors[name] for name in fresh), np.int8).reshape(len(fresh), -1)
            # Of its own memory: what comes from the store's bytes can't be written.
            self._rows = rows.copy() if self._rows is None else np.concatenate([self._rows, rows])
            self._at.update((name, len(self._ids) + at) for at, name in enumerate(fresh))
            self._ids += fresh

    def drop(self, names: Iterable[str]) -> None:
        gone = [name for name in names if name in self._at]
        if not gone:
            return
        keep = [name for name in self._ids if name not in set(gone)]
        self._rows = self._rows[[self._at[name] for name in keep]] if keep else None
        self._ids, self._at = keep, {name: at for at, name in enumerate(keep)}

    def closest(self, question: Any, most: int) -> dict[str, float]:
        """The ids with the `most` highest cosines. `question`: a float32 row of unit length."""
        import numpy as np

        if self._rows is None or self._rows.shape[1] != len(question):
            return {}
        parts: Sequence[Any] = [
            self._rows[at : at + _CHUNK].astype(np.float32) @ question for at in range(0, len(self._rows), _CHUNK)
        ]
        values = np.concatenate(parts) / _SCALE
        best = np.argpartition(-values, most)[:most] if len(values) > most else np.arange(len(values))
        return {self._ids[at]: float(values[at]) for at in best}
