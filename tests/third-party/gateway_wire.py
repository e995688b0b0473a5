"""Checks the gateway's metrics and its WebSocket with the parsers of others.

PORT and TOKEN are in the environment. The metrics are read by the parser of Prometheus's own client. The frames are made
and read by the package websockets, below its API, so that they can break the rules.
"""

import os
import socket
import urllib.request

from prometheus_client.parser import text_string_to_metric_families
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

PORT, TOKEN = int(os.environ["PORT"]), os.environ["TOKEN"]
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


def metrics():
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}/metrics", headers=HEADERS)
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4"), answer.headers
        families = list(text_string_to_metric_families(answer.read().decode()))
    names = [family.name for family in families]
    assert len(names) == len(set(names)), f"a family occurs twice: {names}"
    for family in families:
        assert family.documentation and family.type in ("counter", "gauge", "histogram"), family
        assert family.samples or family.type == "counter", family
        labels = [tuple(sorted(sample.labels.items())) for sample in family.samples]
        assert len(labels) == len(set(labels)), family
    assert "myclaw_messages_accepted" in names, names


class Connection:
    def __init__(self):
        self.protocol = ClientProtocol(parse_uri(f"ws://127.0.0.1:{PORT}/ws"))
        self.socket = socket.create_connection(("127.0.0.1", PORT), timeout=30)
        request = self.protocol.connect()
        request.headers["Authorization"] = HEADERS["Authorization"]
        self.protocol.send_request(request)
        self.flush()
        self.events = []
        assert self.event().status_code == 101
        hello = self.event()
        assert b'"type":"hello"' in hello.data, hello

    def flush(self):
        for data in self.protocol.data_to_send():
            if data:
                self.socket.sendall(data)

    def event(self):
        """The next response or frame; None at the end of the connection."""
        while not self.events:
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.protocol.receive_data(data)
            events = self.protocol.events_received()
            # The gateway asks now and then whether its client is there.
            self.events.extend(e for e in events if getattr(e, "opcode", None) is not Opcode.PING)
        return self.events.pop(0)

    def write(self, *frames, mask=True):
        self.socket.sendall(b"".join(frame.serialize(mask=mask) for frame in frames))

    def code(self):
        """The code with which the gateway closes."""
        while (event := self.event()) is not None:
            if event.opcode is Opcode.CLOSE:
                return int.from_bytes(event.data[:2], "big") if event.data else 1005
        return None


def text(data, **more):
    return Frame(Opcode.TEXT, data, **more)


def more(data, **rest):
    return Frame(Opcode.CONT, data, **rest)


def what_is_allowed():
    connection = Connection()
    # A request in three pieces, one of them empty, with a ping between two.
    connection.write(
        text(b'{"type":"request","id":"1",', fin=False),
        Frame(Opcode.PING, b"between"),
        more(b"", fin=False),
        more(b'"method":"status"}'),
    )
    pong, answer = connection.event(), connection.event()
    assert (pong.opcode, pong.data) == (Opcode.PONG, b"between"), pong
    assert b'"id":"1"' in answer.data and b'"ok":true' in answer.data, answer
    # A character that is cut between two pieces, and a pong that nobody asked for.
    character = "\u00e4".encode()
    connection.write(Frame(Opcode.PONG, b"nobody asked"), text(b'"' + character[:1], fin=False), more(character[1:] + b'"'))
    assert b'"class":"parse"' in connection.event().data
    connection.write(Frame(Opcode.PING, b"x" * 125))
    assert connection.event().data == b"x" * 125
    # The close is answered with the same code, then the connection ends.
    connection.write(Frame(Opcode.CLOSE, (1000).to_bytes(2, "big") + b"done"))
    assert connection.code() == 1000
    assert connection.event() is None


def what_is_not():
    cases = [
        ("a text that is no UTF-8", 1007, [text(b'"\xc3\x28"')]),
        ("pieces that are no UTF-8", 1007, [text(b'"\xc3', fin=False), more(b'\x28"')]),
        ("a binary frame", 1003, [Frame(Opcode.BINARY, b"{}")]),
        ("a piece of nothing", 1002, [more(b"{}")]),
        ("a text within a text", 1002, [text(b"{", fin=False), text(b"}")]),
        ("a reason that is no UTF-8", (1002, 1007), [Frame(Opcode.CLOSE, (1000).to_bytes(2, "big") + b"\xc3\x28")]),
        ("half a code", 1002, [Frame(Opcode.CLOSE, b"\x03")]),
        ("a code that does not exist", 1002, [Frame(Opcode.CLOSE, (999).to_bytes(2, "big"))]),
    ]
    for name, code, frames in cases:
        connection = Connection()
        connection.write(*frames)
        found = connection.code()
        assert found in (code if isinstance(code, tuple) else (code,)), f"{name}: {found}"
    raw = [
        ("a reserved bit", 1002, bytes([0xC1, 0x82, 0, 0, 0, 0]) + b"{}"),
        ("a ping in pieces", 1002, bytes([0x09, 0x80, 0, 0, 0, 0])),
        ("an unknown kind of frame", 1002, bytes([0x83, 0x80, 0, 0, 0, 0])),
        ("a ping of 126 bytes", 1002, bytes([0x89, 0xFE, 0, 126, 0, 0, 0, 0]) + b"x" * 126),
        ("a frame without a mask", 1002, bytes([0x81, 2]) + b"{}"),
        ("a frame of 7 MiB", 1009, bytes([0x81, 0xFF]) + (7 * 1024 * 1024).to_bytes(8, "big") + bytes(4)),
        ("a frame of 2^63 bytes", (1002, 1009), bytes([0x81, 0xFF]) + (1 << 63).to_bytes(8, "big") + bytes(4)),
    ]
    for name, code, data in raw:
        connection = Connection()
        connection.socket.sendall(data)
        found = connection.code()
        assert found in (code if isinstance(code, tuple) else (code,)), f"{name}: {found}"
    connection = Connection()
    # Pieces that are small each and too large together.
    piece = b"x" * (1024 * 1024)
    connection.write(text(piece, fin=False), *[more(piece, fin=False)] * 6)
    assert connection.code() == 1009


metrics()
what_is_allowed()
what_is_not()
