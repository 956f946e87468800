"""SRPC echo of 64 B over TCP on loopback, between two threads, against bare loops that do the same: recv, send and epoll_wait on
one connection, and nothing else. Median round trip. SRPC sends a header and metadata with each message, checks its CRC, has
deadlines and credits; the bare loops have none of that.

Three ways to wait: `auto` is SRPC's default, against epoll; then both sleep whenever they can; then both never do. "batched":
the bare loops answer all messages that came together with one send, where others send each by itself."""

SIZE = 64
CASES = [
    # SRPC's way to wait, the peer, the peer's way to wait, depths
    ("auto", "bare", "epoll", (1, 32)),
    ("epoll", "bare", "epoll", (1, 32)),
    ("poll", "bare", "poll", (1, 32)),
    ("auto", "batched", "epoll", (32,)),
]
NAMES = {"auto": "automatic", "epoll": "economy", "poll": "performance"}


def run(ctx):
    program = ctx.program("srpc_bench")
    seconds = 0.2 if ctx.quick else 2
    cases = []
    for wait, peer, peer_wait, depths in CASES:
        for depth in depths:
            def measure(side, how, depth=depth):
                return ctx.json(program, side, how, SIZE, depth, seconds)["p50_us"]

            name = f"echo {SIZE} B depth {depth}, {NAMES[wait]}" + (", batched peer" if peer == "batched" else "")
            cases.append(ctx.compare(name, "us", "lower", lambda m=measure, w=wait: m("srpc", w),
                                     lambda m=measure, p=peer, w=peer_wait: m(p, w),
                                     peer=f"bare {peer_wait} loop", note="p50"))
    return cases
