#!/usr/bin/env python3
"""Runs the benchmarks: all of bench/*.py that have a run(ctx), or those named. Each writes build/bench/NAME.json (a list of
cases) and build/bench/NAME.md (the table), and prints its rows as they are measured."""

import argparse
import importlib
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lib  # noqa: E402


def names():
    for path in sorted(pathlib.Path(__file__).resolve().parent.glob("*.py")):
        if path.stem not in ("run", "lib") and "\ndef run(" in path.read_text():
            yield path.stem


def markdown(cases):
    lines = [f"Measured on {lib.machine()}.", "", "| case | ours | theirs | unit | ratio | better | peer | runs |",
             "|---|---|---|---|---|---|---|---|"]
    for c in cases:
        ratio = "-" if c["ratio"] is None else f"{c['ratio']:.2f}"
        lines.append(f"| {c['case']} | {c['ours']:.4g} | {c['theirs']:.4g} | {c['unit']} | {ratio} | {c['better']} | {c['peer']} "
                     f"| {c['runs']} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=lib.ROOT / "build/release")
    parser.add_argument("--out", type=pathlib.Path, default=lib.ROOT / "build/bench")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one short run of each: only to see that they work")
    parser.add_argument("--scratch", type=pathlib.Path, help="where files are written that stand for disks")
    parser.add_argument("only", nargs="*", help=f"of: {', '.join(names())}")
    args = parser.parse_args()

    wanted = args.only or list(names())
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        parser.error(f"no benchmark named {', '.join(unknown)}; there are: {', '.join(names())}")
    args.out.mkdir(parents=True, exist_ok=True)
    if os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1):
        print(f"bench: the load is {os.getloadavg()[0]:.1f}; a benchmark beside other work measures that work", file=sys.stderr)
    print(lib.machine())
    for name in wanted:
        print(f"{name}\n{lib.header()}", flush=True)
        context = lib.Context(args.build, args.runs, args.scratch, args.quick)
        try:
            cases = importlib.import_module(name).run(context)
        finally:
            context.close()
        (args.out / f"{name}.json").write_text(json.dumps(cases, indent=1) + "\n")
        (args.out / f"{name}.md").write_text(markdown(cases))
    print(f"written to {os.path.relpath(args.out)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
