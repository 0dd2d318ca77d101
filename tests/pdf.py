"""PDFs for tests, written by hand: pages of lines in Helvetica."""

from collections.abc import Sequence


def pdf(pages: Sequence[str], **info: str) -> bytes:
    """A PDF with these texts, a page each; `info` is its metadata, as `Title`."""
    numbers = [6 + 2 * at for at in range(len(pages))]
    kids = " ".join(f"{number} 0 R" for number in numbers)
    objects = {
        1: "<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        3: "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        4: f"<< {' '.join(f'/{name} ({_escaped(text)})' for name, text in info.items())} >>",
        5: "<< /Font << /F1 3 0 R >> >>",
    }
    for number, page in zip(numbers, pages, strict=True):
        shown = "".join(f"({_escaped(line)}) Tj T*\n" for line in page.split("\n"))
        stream = f"BT /F1 11 Tf 14 TL 60 780 Td\n{shown}ET"
        media = "/MediaBox [0 0 595 842]"
        objects[number] = f"<< /Type /Page /Parent 2 0 R {media} /Resources 5 0 R /Contents {number + 1} 0 R >>"
        objects[number + 1] = f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream"
    out, places = b"%PDF-1.4\n", {}
    for number in sorted(objects):
        places[number] = len(out)
        out += f"{number} 0 obj\n{objects[number]}\nendobj\n".encode("cp1252")
    table = "".join(f"{places[number]:010} 00000 n \n" for number in sorted(places))
    size = len(objects) + 1
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return out + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode("cp1252")


def _escaped(text: str) -> str:
    text = text.encode("cp1252", "replace").decode("cp1252")
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
