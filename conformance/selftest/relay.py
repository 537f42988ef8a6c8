"""A gateway that carries everything: what the runner's own test runs guests and upstreams against."""
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

HOME = tempfile.TemporaryDirectory()
SOCKET = os.path.join(HOME.name, "gateway")


def carry(source, sink):
    try:
        while True:
            piece = source.recv(65536)
            if not piece:
                break
            sink.sendall(piece)
    except OSError:
        pass
    for end in (sink, source):
        try:
            end.shutdown(socket.SHUT_WR if end is sink else socket.SHUT_RD)
        except OSError:
            pass


def serve(guest):
    head = b""
    while b"\r\n\r\n" not in head:
        piece = guest.recv(65536)
        if not piece:
            return guest.close()
        head += piece
    host, port = [line for line in head.split(b"\r\n") if line.lower().startswith(b"host:")][0][5:].strip().split(b":")
    try:
        upstream = socket.create_connection((host.decode(), int(port)))
        if b"x-tls:" in head:
            context = ssl.create_default_context(cafile=sys.argv[1])
            context.hostname_checks_common_name = False
            upstream = context.wrap_socket(upstream, server_hostname=host.decode())
    except ssl.SSLError:
        guest.sendall(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n")
        return guest.close()
    upstream.sendall(head)
    back = threading.Thread(target=carry, args=(upstream, guest))
    back.start()
    carry(guest, upstream)
    back.join()
    guest.close()
    upstream.close()


def listen():
    server = socket.socket(socket.AF_UNIX)
    server.bind(SOCKET)
    server.listen(64)
    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()


def start(command, stdin, workspace):
    if not os.path.exists(SOCKET):
        threading.Thread(target=listen, daemon=True).start()
        while not os.path.exists(SOCKET):
            pass
    # The guest's world is not made here, so its paths are moved.
    words = [command["executable"]] + command["args"]
    words = [word.replace("/workspace/", workspace + "/") for word in words]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return child, stdin.replace("/run/stitchkit-network.sock", SOCKET).encode()
