"""HTTP by hand on a socket, for what http.client doesn't let one send or see."""

import dataclasses
import re
import socket
import time


def head(method, target, headers, version="HTTP/1.1"):
    return (f"{method} {target} {version}\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers.items()) + "\r\n").encode()


@dataclasses.dataclass
class Reply:
    status: int
    headers: dict
    body: bytes

    @property
    def code(self):
        match = re.search(rb"<Code>([^<]*)</Code>", self.body)
        return match[1].decode() if match else ""


class Connection:
    def __init__(self, address, timeout=30):
        self.socket = socket.create_connection(address, timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def shutdown(self, how):
        self.socket.shutdown(how)

    @staticmethod
    def pause():
        """Long enough for the peer to read what was sent as a piece of its own. Nothing depends on its length: a test that
        splits a stream must pass either way."""
        time.sleep(0.002)

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError(f"closed in the middle of a reply, after {self._buffer[:200]!r}")
        self._buffer += data

    def _until(self, mark):
        while mark not in self._buffer:
            self._more()
        part, self._buffer = self._buffer.split(mark, 1)
        return part

    def _exactly(self, count):
        while len(self._buffer) < count:
            self._more()
        part, self._buffer = self._buffer[:count], self._buffer[count:]
        return part

    def status_line(self):
        """The next head as it came."""
        return self._until(b"\r\n\r\n")

    def response(self, no_body=False):
        """The next final response; interim ones are skipped."""
        while True:
            lines = self._until(b"\r\n\r\n").split(b"\r\n")
            status = int(lines[0].split(b" ")[1])
            if status >= 200:
                break
        headers = {n.decode().lower(): v.decode().strip() for n, _, v in (line.partition(b":") for line in lines[1:])}
        body = b""
        if no_body or status in (204, 304):
            pass
        elif headers.get("transfer-encoding") == "chunked":
            while size := int(self._until(b"\r\n").split(b";")[0], 16):
                body += self._exactly(size)
                self._exactly(2)
            self._until(b"\r\n")
        elif "content-length" in headers:
            body = self._exactly(int(headers["content-length"]))
        else:
            try:
                while True:
                    self._more()
            except ConnectionError:
                body, self._buffer = self._buffer, b""
        return Reply(status, headers, body)

    def closed_by_peer(self, seconds=10):
        """Whether the peer closes, within some time, without more to say."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def drain(self, seconds):
        """Everything until the peer closes or time is up."""
        self.socket.settimeout(seconds)
        out = self._buffer
        try:
            while data := self.socket.recv(65536):
                out += data
        except (TimeoutError, ConnectionError):
            pass
        return out
