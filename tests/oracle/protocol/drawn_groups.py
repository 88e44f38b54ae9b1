"""What answers about groups are drawn of."""

from __future__ import annotations

import base64
import uuid

from hypothesis import strategies as st

from caughtup.models.ids import NUMBER_MAX

INT16 = st.integers(-(2**15), 2**15 - 1)
TEXTS = st.text(max_size=20)
BYTES = st.binary(max_size=20)
EPOCHS = st.integers(-2, 2**31 - 1)
NUMBERS = st.lists(st.integers(0, NUMBER_MAX), max_size=4, unique=True)
OFFSETS = st.integers(0, 2**62)
TOPIC_ID = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
IN_KAFKAS_WRITING = base64.urlsafe_b64encode(TOPIC_ID.bytes).decode().rstrip("=")
