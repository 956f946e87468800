"""SRPC echo of 64 B between two threads, over TCP on loopback and over shared memory, against bare loops that do the same: recv,
send and epoll_wait on one connection, or a ring in memory that both poll, and nothing else. Median round trip. SRPC sends a header and metadata with each message, checks its CRC, has
deadlines and credits; the bare loops have none of that.

Three ways to wait: `auto` is SRPC's default, against epoll; then both sleep whenever they can; then both never do. "batched":
the bare loops answer all messages that came together with one send, where others send each by itself."""

SIZE = 64
CASES = [
    # SRPC's transport and way to wait, the peer, the peer's way to wait, depths
    ("srpc", "auto", "bare", "epoll", (1, 32)),
    ("srpc", "epoll", "bare", "epoll", (1, 32)),
    ("srpc", "poll", "bare", "poll", (1, 32)),
    ("srpc", "auto", "batched", "epoll", (32,)),
    ("shm", "poll", "ring", "poll", (1, 32)),
]
# What TLS costs: the same with it and without, in which the proof of the key is over with the connect. Bytes, depths.
TLS_CASES = [(64, (1, 32)), (131072, (1, 8)), (1048576, (1,))]
NAMES = {"auto": "automatic", "epoll": "economy", "poll": "performance"}


def run(ctx):
    program = ctx.program("srpc_bench")
    seconds = 0.2 if ctx.quick else 2
    cases = []
    for side, wait, peer, peer_wait, depths in CASES:
        for depth in depths:
            def measure(side, how, depth=depth):
                return ctx.json(program, side, how, SIZE, depth, seconds)["p50_us"]

            name = f"{'shm ' if side == 'shm' else ''}echo {SIZE} B depth {depth}, {NAMES[wait]}"
            name += ", batched peer" if peer == "batched" else ""
            cases.append(ctx.compare(name, "us", "lower", lambda m=measure, s=side, w=wait: m(s, w),
                                     lambda m=measure, p=peer, w=peer_wait: m(p, w),
                                     peer="bare ring" if peer == "ring" else f"bare {peer_wait} loop", note="p50"))
    for size, depths in TLS_CASES:
        for depth in depths:
            def measure_tls(side, size=size, depth=depth):
                return ctx.json(program, side, "auto", size, depth, seconds)["p50_us"]

            cases.append(ctx.compare(f"TLS echo {size} B depth {depth}, automatic", "us", "lower",
                                     lambda m=measure_tls: m("tls"), lambda m=measure_tls: m("plain"),
                                     peer="SRPC without TLS", note="p50"))
    return cases
