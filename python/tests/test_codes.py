"""The codes and what they cost, on buffers."""

import itertools
import math
import random

import numpy as np
import pytest

from marline import codes


def test_any_symbols_bring_a_block_back() -> None:
    block = np.random.default_rng(1).integers(0, 256, 997, dtype=np.uint8)
    repairs = codes.block_repairs(block, 100, 10)
    assert len(repairs) == 1000
    chosen = random.Random(2)
    for lost in range(11):
        missing = chosen.sample(range(10), lost)
        sources = {n: block[n * 100 : (n + 1) * 100] for n in range(10) if n not in missing}
        indices = chosen.sample(range(10), lost)
        kept = {i: memoryview(repairs)[i * 100 : (i + 1) * 100] for i in indices}
        assert codes.block_recover(997, 100, sources=sources, repairs=kept) == block.tobytes()
        if kept:
            kept.popitem()
            assert codes.block_recover(997, 100, sources=sources, repairs=kept) is None


def test_results_are_written_where_they_are_wanted() -> None:
    block = np.arange(400, dtype=np.uint16)
    out = np.zeros((4, 200), dtype=np.uint8)
    assert codes.block_repairs(block, 200, 4, first=3, out=out) is out
    assert out.tobytes() == codes.block_repairs(block.tobytes(), 200, 4, first=3)
    back = bytearray(800)
    found = codes.block_recover(
        800, 200, sources={}, repairs={3 + i: out[i] for i in range(4)}, out=back
    )
    assert found is back
    assert back == block.tobytes()
    with pytest.raises(ValueError, match="799 bytes"):
        codes.block_repairs(block, 200, 4, out=bytearray(799))
    with pytest.raises(BufferError, match="cannot be written"):
        codes.block_repairs(block, 200, 1, out=bytes(200))
    with pytest.raises(BufferError, match="contiguous"):
        codes.block_repairs(np.zeros((20, 20), dtype=np.uint8)[:, ::2], 10, 1)
    with pytest.raises(ValueError, match="at least one byte"):
        codes.block_repairs(b"", 10, 1)
    with pytest.raises(TypeError):
        codes.block_repairs("text", 10, 1)  # type: ignore[call-overload]


def test_a_stream_is_repaired() -> None:
    random_ = random.Random(3)
    symbols = [random_.randbytes(random_.randrange(1, 1200)) for _ in range(300)]
    encoder, decoder = codes.StreamEncoder(window=64), codes.StreamDecoder(window=64)
    got: dict[int, bytes] = {}
    payload = bytearray(1502)
    for symbol in symbols:
        number = encoder.push(symbol)
        if random_.random() > 0.08:
            decoder.source(number, symbol)
            got[number] = symbol
        if number % 5 == 4:
            made = encoder.repair(out=payload)
            assert made is not None
            start, count, key, length = made
            decoder.repair(start, count, key, memoryview(payload)[:length])
            for one in decoder.recovered():
                found = decoder.symbol(one)
                assert found is not None
                got[one] = found
        first_missing = decoder.status[0]
        encoder.release_before(first_missing)
        decoder.forget_before(max(0, first_missing - 32))
    assert len(got) >= 290
    assert all(got[n] == symbols[n] for n in got)
    with pytest.raises(ValueError, match="1501"):
        encoder.push(bytes(1501))


def test_the_distribution_of_a_decoding_period_is_one() -> None:
    frame = codes.Frame([(0.02, 20, 1.0)], coded=0)
    law = frame.distribution(400)
    assert math.isclose(sum(law), 1.0, abs_tol=1e-9)
    assert math.isclose(law[0], frame.idle, rel_tol=1e-9)
    assert math.isclose(law[0], 0.98**19, rel_tol=1e-9)
    assert math.isclose(sum(k * p for k, p in enumerate(law)), frame.mean, rel_tol=1e-6)
    mean, second = codes.approximate_moments(20, 0.02)
    assert math.isclose(mean, frame.mean, rel_tol=1e-6)
    assert math.isclose(second, frame.second_moment, rel_tol=1e-6)
    assert codes.coded_path([0.01, 0.05, 0.03]) == 1
    with pytest.raises(ValueError):
        codes.Frame([(1.5, 20, 1.0)], coded=0)


def test_the_interval_keeps_the_wait() -> None:
    tau = codes.coding_interval(0.01, 0.01, 0.5)
    assert tau is not None
    assert codes.coding_wait(tau, 0.01, 0.01) <= 0.5 < codes.coding_wait(tau + 1, 0.01, 0.01)
    assert codes.coding_interval(0.0, 0.0, 0.5) is None


def failure_by_hand(late: list[list[float]], packets: list[int], k: int) -> float:
    """P_e from its definition: on a path, all before the first late packet are on time."""
    total = 0.0
    for counts in itertools.product(*(range(n + 1) for n in packets)):
        if sum(counts) >= k:
            continue
        probability = 1.0
        for path, count, sent in zip(late, counts, packets, strict=True):
            beyond = path[count + 1] if count < sent else 1.0
            probability *= beyond - (path[count] if count else 0.0)
        total += probability
    return total


def test_the_failure_of_a_schedule_is_that_of_its_definition() -> None:
    late = [[0.0, 0.01, 0.05, 0.2, 0.7], [0.0, 0.1, 0.2, 0.4]]
    for a, b, k in [(4, 3, 4), (4, 0, 3), (2, 3, 5), (1, 1, 1)]:
        wanted = failure_by_hand(late, [a, b], k)
        assert math.isclose(codes.hop_failure(late, [a, b], k=k), wanted, rel_tol=1e-9)
    packets, failure, feasible = codes.hop_jump(late, k=3, target=0.05)
    assert feasible and failure <= 0.05
    assert math.isclose(codes.hop_failure(late, packets, k=3), failure, rel_tol=1e-9)
    found = codes.hop_leap(late, target=0.05)
    assert found is not None
    k, (packets, failure, feasible) = found
    assert codes.hop_failure(late, [4, 3], k=k) <= 0.05 < codes.hop_failure(late, [4, 3], k=k + 1)
    with pytest.raises(ValueError, match="at most 3"):
        codes.hop_failure(late, [1, 4], k=1)


def test_a_split_is_the_best_of_all() -> None:
    paths = [(1.0, 0.5, 10.0, 0.0), (2.0, 0.1, 4.0, 3.0)]

    def bound(path: tuple[float, float, float, float], n: int) -> float:
        mean, width, delay, ahead = path
        return (n + ahead) * mean + math.sqrt(n + ahead) * width + delay if n else -math.inf

    for n in (1, 7, 30):
        packets, when = codes.sos_split(paths, n)
        assert sum(packets) == n
        best = min(max(bound(paths[0], i), bound(paths[1], n - i)) for i in range(n + 1))
        assert math.isclose(when, best, rel_tol=1e-9)
    more, _ = codes.sos_redundant(paths, 30, 0.5)
    assert sum(more) > 30
    assert codes.sos_redundant(paths, 30, 1.0)[0] == codes.sos_split(paths, 30)[0]
    # Hoeffding: range · √(−ln(ε/paths) / 2).
    width = codes.sos_width(paths=2, epsilon=0.05, range=3.0)
    assert math.isclose(width, 3 * math.sqrt(-math.log(0.025) / 2), rel_tol=1e-9)
