"""A client and a server for asyncio, over real sockets of the loopback."""

import asyncio
from pathlib import Path

import pytest

import marline


async def echo(server: marline.Server) -> None:
    """Sends back what comes in each flow of each session."""
    tasks = []
    async for session in server:
        tasks.append(asyncio.create_task(echo_session(session)))


async def echo_session(session: marline.Session) -> None:
    tasks = []
    async for flow in session:
        tasks.append(asyncio.create_task(echo_flow(flow)))


async def echo_flow(flow: marline.Stream | marline.Packets) -> None:
    if isinstance(flow, marline.Stream):
        while data := await flow.read():
            await flow.write(data)
        await flow.close()
    else:
        while (message := await flow.receive()) is not None:
            await flow.send(message)


PATHS = [
    {"address": "127.0.0.2", "name": "wifi"},
    {"address": "127.0.0.3", "name": "lte", "cost": 1},
]


def test_streams_and_messages_come_back() -> None:
    async def talk() -> None:
        ours, theirs = marline.Identity.generate(), marline.Identity.generate()
        async with marline.serve(["127.0.0.1:0"], theirs, [ours.public_key]) as server:
            echoes = asyncio.create_task(echo(server))
            async with marline.connect(server.connection_string, ours, PATHS) as session:
                stream = session.open_stream(priority=1)
                sent = bytes(range(256)) * 4096
                _, came = await asyncio.gather(stream.write(sent), stream.read_exactly(len(sent)))
                assert came == sent
                await stream.close()
                assert await stream.read() == b""
                with pytest.raises(EOFError, match="after 0 of 1 bytes"):
                    await stream.read_exactly(1)
                packets = session.open_packets(lifetime=1.0, ordered=True, scheduler="redundant")
                for n in range(20):
                    await packets.send(bytearray([n]) * 100)
                assert [await packets.receive() for _ in range(20)] == [
                    bytes([n]) * 100 for n in range(20)
                ]
                assert set(session.paths) <= {"wifi", "lte"} and session.paths
            echoes.cancel()

    asyncio.run(asyncio.wait_for(talk(), 60))


def test_a_stranger_is_refused() -> None:
    async def talk() -> None:
        ours, theirs = marline.Identity.generate(), marline.Identity.generate()
        async with marline.serve(["127.0.0.1:0"], theirs, []) as server:
            with pytest.raises(ConnectionError):
                async with marline.connect(
                    server.connection_string, ours, ["127.0.0.1"], timeout=20
                ):
                    pass

    asyncio.run(asyncio.wait_for(talk(), 60))


def test_mistakes_are_named() -> None:
    identity = marline.Identity.generate()
    with pytest.raises(ValueError):
        marline.connect("nonsense", identity, ["lo"])
    server = f"marline://{identity.public_key.removeprefix('marline-pub:')}@localhost:1"
    with pytest.raises(ValueError, match="no key `adress`"):
        marline.connect(server, identity, [{"adress": "::1"}])
    with pytest.raises(ValueError):
        marline.serve(["localhost"], identity, [])


def test_keys_are_kept_in_files(tmp_path: Path) -> None:
    identity = marline.Identity.generate()
    file = tmp_path / "key"
    identity.save_new(file)
    assert marline.Identity.load(file).public_key == identity.public_key
    with pytest.raises(OSError):
        identity.save_new(file)
    assert "marline-secret" not in repr(identity)
