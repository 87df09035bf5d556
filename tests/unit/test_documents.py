"""Files as passages: what is read, where it is cut, and what is refused with which words."""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import pytest

from processors.documents import pdf
from processors.documents.chunks import LONGEST
from processors.documents.parts import LARGEST_TEXT, DocumentError, Passage
from processors.documents.reading import _mended, read


def pdf_of(*pages: str, more: bytes = b"") -> bytes:
    """A PDF whose pages say this, in ASCII."""
    streams = [zlib.compress(b"BT /F1 12 Tf 72 720 Td (" + text.encode() + b") Tj ET") for text in pages]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {len(pages)}/Kids[{kids}]>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, stream in enumerate(streams):
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {5 + 2 * number} 0 R"
            "/Resources<</Font<</F1 3 0 R>>>>>>".encode()
        )
        head = f"<</Length {len(stream)}/Filter/FlateDecode>>stream\n".encode()
        objects.append(head + stream + b"\nendstream")
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + one + b"\nendobj\n"
    at = len(out)
    out += f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    out += f"trailer<</Size {len(places) + 1}/Root 1 0 R>>\n".encode() + more + f"startxref\n{at}\n%%EOF".encode()
    return bytes(out)


def given(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_heading_goes_with_what_stands_below_it_and_with_those_above(tmp_path: Path) -> None:
    text = (
        "# กติกา\n\nนำ\n\n## คืนของ\n\nภายใน 7 วัน\n\n### ของสด\n\nคืนไม่ได้\n\n```\n# code\n```\n\nDelivery\n---\nby van\n"
    )
    assert read(given(tmp_path, "rules.md", text)) == [
        Passage("นำ", "กติกา"),
        Passage("ภายใน 7 วัน", "กติกา", "คืนของ"),
        Passage("คืนไม่ได้\n```\n# code\n```", "กติกา", "คืนของ › ของสด"),
        Passage("by van", "กติกา", "Delivery"),
    ]


def test_a_row_of_a_table_is_a_passage_with_its_columns_names(tmp_path: Path) -> None:
    table = 'สินค้า;ราคา\n"เค้ก; ใหญ่";690\n\nครัวซองต์;75;extra\n'
    for encoding in ("utf-8", "utf-8-sig", "cp874", "utf-16"):
        found = read(given(tmp_path, f"price_list.{encoding}.csv", table.encode(encoding)))
        assert [one.text for one in found] == ["สินค้า: เค้ก; ใหญ่ · ราคา: 690", "สินค้า: ครัวซองต์ · ราคา: 75 · extra"]


def test_thai_without_a_space_is_cut_between_letters_and_nothing_is_lost(tmp_path: Path) -> None:
    letters = random.Random(1).choices(["ก", "ข้", "ที่", "น้ำ", "สู", "งุ", "เ", "ป็", "ด", "วั"], k=2000)
    text = "".join(letters)
    found = [one.text for one in read(given(tmp_path, "long.txt", text))]
    whole = found[0]
    for piece in found[1:]:
        over = next(n for n in range(100, 0, -1) if whole.endswith(piece[:n]))
        whole += piece[over:]
    assert (whole, max(map(len, found)) <= LONGEST) == (text, True)
    assert [piece[0] for piece in found if piece[0] in "ัิุู็่้ำ"] == []


def test_a_long_text_is_cut_where_its_paragraphs_and_sentences_end(tmp_path: Path) -> None:
    sentence = "We open at nine on every day but Monday and close when the last guest has left. "
    found = read(given(tmp_path, "about-us.txt", "\n\n".join([sentence * 3] * 6 + [sentence * 20])))
    assert {one.title for one in found} == {"about us"}
    assert [one.text[-5:] for one in found if not one.text.endswith("left.")] == []
    assert "".join(one.text for one in found).count("Monday") == 38


def test_thai_marks_that_a_pdf_put_elsewhere_are_put_back() -> None:
    assert _mended("น\uf70a้ำ ก\uf70b") == "น่้ำ ก้"
    assert _mended("เมล็ดกาแฟคั วเข้ม ขั นตํ า มี 5 ถุง") == "เมล็ดกาแฟคัวเข้ม ขันตำ มี 5 ถุง"


def test_the_pages_of_a_pdf_are_told_apart(tmp_path: Path) -> None:
    path = given(tmp_path, "menu.pdf", pdf_of("Latte 70", "", "Mocha 75"))
    assert read(path) == [Passage("Latte 70", "menu", page=1), Passage("Mocha 75", "menu", page=3)]


@pytest.mark.parametrize(
    ("name", "content", "what", "remedy"),
    [
        ("a.docx", b"PK", "is no .md, .txt, .csv, .pdf", "save it as one of these"),
        ("a.txt", b"\x80\x81\xff\xfe caf\xe9", "is not UTF-8 text", "save it as text in UTF-8"),
        ("a.txt", b"one\0two", "is not UTF-8 text", "save it as text in UTF-8"),
        ("a.txt", b" \n ", "holds no text", "write something in it, or remove it"),
        ("a.txt", b"x" * (LARGEST_TEXT + 1), "is larger than 5 MB (5)", "split it"),
        ("a.md", b"y " * 1_100_000, "holds more than 2,000,000 characters", "split it"),
        ("a.csv", b"a\n" + b"b\n" * 20_001, "has more than 20,000 rows", "split it"),
        (
            "a.csv", b'a,b\n"open', "is no table: unexpected end of data",
            "save it as CSV, with quotes around values that hold commas",
        ),
        (
            "a.pdf", b"%PDF-1.7 nonsense", "is no PDF that can be read",
            "open it and save it anew, or save its text as .txt",
        ),
        ("a.pdf", pdf_of(*[""] * 501), "has more than 500 pages", "split it"),
        ("a.pdf", pdf_of(""), "holds no text, as a scan does", "save its text as .txt or .md"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_says_why_and_how_to_mend_it(
    tmp_path: Path, name: str, content: bytes, what: str, remedy: str
) -> None:
    with pytest.raises(DocumentError) as refused:
        read(given(tmp_path, name, content))
    assert (str(refused.value), refused.value.remedy) == (what, remedy)


def test_a_pdf_that_takes_too_long_is_left(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="takes longer than"):
        pdf.pages(given(tmp_path, "slow.pdf", pdf_of("slow")), seconds=0.001)


def test_a_page_that_unpacks_to_very_much_costs_no_memory_here(tmp_path: Path) -> None:
    bomb = pdf_of("x").replace(zlib.compress(b"BT /F1 12 Tf 72 720 Td (x) Tj ET"), zlib.compress(b" " * 100_000_000, 1))
    with pytest.raises(DocumentError):
        read(given(tmp_path, "bomb.pdf", bomb))
