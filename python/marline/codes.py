"""The erasure codes as functions on buffers, and what they and the planners cost, in numbers.

Whatever has a contiguous buffer is read where it is: bytes, bytearray, memoryview, numpy arrays.
What is made is new bytes, or is written to the buffer that `out` names.

>>> import marline.codes
>>> repair = marline.codes.block_repairs(bytearray(b"12345678"), 4, 1)
>>> sources = {1: b"5678"}
>>> marline.codes.block_recover(8, 4, sources=sources, repairs={0: repair})
b'12345678'
"""

from ._marline import (
    Frame,
    StreamDecoder,
    StreamEncoder,
    approximate_moments,
    block_recover,
    block_repairs,
    coded_path,
    coding_interval,
    coding_wait,
    hop_failure,
    hop_jump,
    hop_lateness,
    hop_leap,
    sos_redundant,
    sos_split,
    sos_width,
)

__all__ = [
    "Frame",
    "StreamDecoder",
    "StreamEncoder",
    "approximate_moments",
    "block_recover",
    "block_repairs",
    "coded_path",
    "coding_interval",
    "coding_wait",
    "hop_failure",
    "hop_jump",
    "hop_lateness",
    "hop_leap",
    "sos_redundant",
    "sos_split",
    "sos_width",
]
