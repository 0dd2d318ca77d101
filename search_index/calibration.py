"""Measure what an embedder's cosines are worth, by questions and their answers: no cosine stands in the code.

`near` is 1 for a text as near to a query as an answer usually is to its question, and 0 for one about something else.
Vectors are compared after the mean of the owner's vectors is taken out: what all texts of a person have in common tells
none apart, and in some spaces it is most of the cosine.
"""

import json
import logging
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Self

import numpy as np

from search_index.analysis import DEFAULT_ANALYSIS, Analysis
from search_index.arrays import Floats
from search_index.caches import cached
from search_index.embeddings import NO_VECTOR, UNIT, Embedder, EmbeddingUnavailable, Vectors, quantize

log = logging.getLogger(__name__)

PAIRS = Path(__file__).with_name("calibration.json")  # 24 questions with answers, which share no word with them
COMMON_WEIGHT = 20  # messages that the answers' mean counts as, so that a few messages have a mean as well
CROWD = 500  # messages; so many the limits of nearness were chosen with
_LEAST_SPREAD = 0.01  # between right and wrong pairs: an embedder with less tells nothing apart
WORDS, NEAR = 0.5, 2.15  # the least cosine of two sets of terms, and the least nearness, of texts that are similar
TEXTS_KEPT = 2_048  # whose vectors are cached: consecutive turns compare the same facts
LISTS_KEPT = 8  # of texts, with their vectors together


@dataclass(frozen=True, eq=False)
class Calibration:
    """Measure of an embedder: what its vectors have in `common`, and the usual cosines of right and wrong pairs."""

    common: Floats
    like: float
    unlike: float

    @classmethod
    def of(cls, embedder: Embedder) -> Self:
        """Measure an embedder, with one call for all texts.  Raises EmbeddingUnavailable."""
        pairs = json.loads(PAIRS.read_text("utf-8"))
        form = DEFAULT_ANALYSIS.content if embedder.instant else str
        texts = [form(pair["q"]) for pair in pairs] + [pair["a"] for pair in pairs]
        vectors = _units(Vectors.of(quantize(embedder, texts)).rows.astype(float))
        questions = vectors[: len(pairs)]
        answers = vectors[len(pairs) :]
        common = answers.mean(axis=0)
        cosines = _units(questions - common) @ _units(answers - common).T
        right = np.eye(len(pairs), dtype=bool)
        return cls(common, median(cosines.diagonal().tolist()), float(cosines[~right].mean()))

    def near(self, query: bytes, vectors: Vectors) -> Floats:
        """Return how near vectors are to the packed `query`; 0 for one without such a vector.

        All are seen from their mean.  What is multiplied with the rows is rounded to small whole numbers, so that the
        products are exact.
        """
        spread = self.like - self.unlike
        if spread < _LEAST_SPREAD or len(query) != vectors.rows.shape[1]:
            return np.zeros(len(vectors.rows))
        mean = (vectors.total / UNIT + COMMON_WEIGHT * self.common) / (vectors.number + COMMON_WEIGHT)
        step = float(np.abs(mean).max()) / 127 or 1.0
        centre = np.rint(mean / step)
        vector = np.frombuffer(query, np.int8).astype(float)
        towards = vector / math.sqrt(vector @ vector) - centre * step
        towards = np.rint(towards * (127 / (np.abs(towards).max() or 1.0)))
        size = math.sqrt(towards @ towards) or 1.0
        has_vector = vectors.norms > 0
        targets = [towards.astype(np.float32), centre.astype(np.float32)]
        along, across = vectors.products(targets) / np.where(has_vector, vectors.norms, 1).astype(float)
        squared = 1 + step**2 * (centre @ centre) - 2 * step * across
        cosine = (along / size - step * (centre @ towards) / size) / np.sqrt(np.maximum(squared, 1e-9))
        near: Floats = (cosine - self.unlike) / spread
        near[~has_vector] = 0.0
        return near


def nearness_by_chance(count: int) -> float:
    """Return how much nearer to anything the nearest of `count` messages is than the nearest of CROWD.

    Measured with requests that have nothing to do with the messages, in real and written chats of 370 to 9,000
    messages (`benchmarks.meaning --requests`): 0.1 to 0.14 for each doubling.
    """
    return 0.2 * math.log(max(count / CROWD, 1))


class CalibratedEmbedder:
    """Embedder with its calibration, which is measured once a process.  Thread-safe."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._calibration: Calibration | None = None
        self._calibrating = threading.Lock()

    @property
    def calibration(self) -> Calibration | None:
        """Return the calibration; None until a service has been measured, or if its vectors have another size since."""
        known = self._calibration
        if known is not None and len(known.common) == self.embedder.dimensions:
            return known
        return self.calibrate() if self.embedder.instant else None

    def calibrate(self) -> Calibration:
        """Measure the embedder, unless that is done.  Raises EmbeddingUnavailable."""
        with self._calibrating:
            if self._calibration is None or len(self._calibration.common) != self.embedder.dimensions:
                self._calibration = Calibration.of(self.embedder)
            return self._calibration

    def calibrate_soon(self) -> None:
        """Measure a service in the background, for the searches after this one."""
        if self.calibration is None and not self._calibrating.locked():
            threading.Thread(target=self._try_to_calibrate, name="recap-calibration", daemon=True).start()

    def _try_to_calibrate(self) -> None:
        try:
            self.calibrate()
        except EmbeddingUnavailable as error:
            log.warning("how near meanings are can't be measured yet: %s", error)


def _units(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    units: Floats = rows / np.where(lengths > 0, lengths, 1)
    return units


class Nearness:
    """Compares texts by their meaning by a local embedder; without one nothing is near anything."""

    def __init__(self, analysis: Analysis, embedder: CalibratedEmbedder | None) -> None:
        self._analysis = analysis
        self._embedder = embedder
        self._vector_of = cached(TEXTS_KEPT)(self._packed)
        self._measured = cached(LISTS_KEPT)(self._measure)

    def near(self, text: str, others: Sequence[str], *, of_one: bool = True) -> list[float]:
        """Return how near each of the other texts is to `text`; 1 is as near as an answer usually is to its question.

        of_one: the others are all of one person, and so have something in common that counts for nothing.
        """
        vector = self._vector_of(self._analysis.content(text)) if others else NO_VECTOR
        if self._embedder is None or vector == NO_VECTOR:
            return [0.0] * len(others)
        calibration = self._embedder.calibration
        if calibration is None:
            return [0.0] * len(others)
        near: list[float] = calibration.near(vector, self._measured(tuple(others), of_one=of_one)).tolist()
        return near

    def _measure(self, texts: Sequence[str], *, of_one: bool) -> Vectors:
        """Return the vectors of texts, with their sum and number if they are `of_one` person."""
        vectors = Vectors.of(list(map(self._vector_of, texts)))
        return vectors if of_one else vectors._replace(total=np.zeros_like(vectors.total), number=0)

    def similar(self, text: str, others: Sequence[str]) -> list[bool]:
        """Return which of the other texts ask for much the same: half of their words are the same, or their meaning.

        Of two LoCoMo questions about one person 0.9 % pass for similar where the evidence differs, 18 % where some is
        the same.
        """
        terms = self._analysis.words(text)
        terms_of_others = list(map(self._analysis.words, others))
        words = [len(other & terms) / math.sqrt(len(other) * len(terms) or 1) for other in terms_of_others]
        near = self.near(text, list(map(self._analysis.content, others)), of_one=False)
        return [same >= WORDS or like >= NEAR for same, like in zip(words, near, strict=True)]

    def _packed(self, text: str) -> bytes:
        return quantize(self._embedder.embedder, [text])[0] if self._embedder is not None else NO_VECTOR
