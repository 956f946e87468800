"""What the scripts/check-* share: which files to look at, C++ text without comments, markers, and self-tests.

A check is an executable `scripts/check-NAME` with a function `check(tree) -> list[Finding]` and a function
`self_test(expect)`, handed to `main`. `--self-test` plants violations in a throw-away tree and fails when one is not
found, or when a clean tree has a finding: a check that finds nothing is not known to work.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

CPP_SUFFIXES = (".h", ".cc")


@dataclasses.dataclass(order=True)
class Finding:
    path: str
    line: int
    text: str

    def __str__(self):
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.text}"


class Tree:
    """The files of a checkout: what git tracks and what it would track, so that new files are checked before `git add`."""

    def __init__(self, root, only=None):
        self.root = pathlib.Path(root).resolve()
        self.only = set(only or [])

    def files(self, *suffixes, under=("",)):
        listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=self.root,
                                 capture_output=True, check=True).stdout.decode()
        for name in sorted(set(listing.split("\0"))):
            if not name or not (self.root / name).is_file():
                continue
            if suffixes and not name.endswith(suffixes):
                continue
            if not name.startswith(tuple(under)):
                continue
            if self.only and name not in self.only:
                continue
            yield name

    def read(self, name):
        return (self.root / name).read_text(encoding="utf-8", errors="replace")


_CPP_TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)'
    r'|(?P<raw>R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)")'
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    # A quote after a digit is a digit separator (1'000), not a character.
    r"|(?P<char>(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+')", re.DOTALL)


def strip_cpp(text):
    """The text with comments and the contents of strings blanked, lines kept: what a ban should look at."""
    def blank(match):
        token = match.group(0)
        if match.lastgroup == "comment" or match.group("comment"):
            return re.sub(r"[^\n]", " ", token)
        return token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]
    return _CPP_TOKEN.sub(blank, text)


def allowed(lines, index, rule):
    """Whether line `index` (from 0) or the one above carries `cairn-allow(rule): reason`, with a reason."""
    for i in (index, index - 1):
        if 0 <= i < len(lines):
            match = re.search(r"cairn-allow\((?P<rules>[\w, -]+)\):\s*(?P<reason>\S.*)", lines[i])
            if match and rule in re.split(r"[,\s]+", match["rules"]) and len(match["reason"]) >= 8:
                return True
    return False


class Expect:
    """Builds throw-away trees for a check's self-test."""

    def __init__(self, check):
        self._check = check
        self.count = 0

    def _run(self, files):
        with tempfile.TemporaryDirectory(prefix="cairn-check-") as folder:
            root = pathlib.Path(folder)
            subprocess.run(["git", "init", "-q", folder], check=True)
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return self._check(Tree(root))

    def clean(self, files):
        self.count += 1
        findings = self._run(files)
        if findings:
            raise SystemExit("self-test: a clean tree has findings:\n  " + "\n  ".join(map(str, findings)))

    def finds(self, pattern, files):
        self.count += 1
        findings = self._run(files)
        if not any(re.search(pattern, str(f)) for f in findings):
            raise SystemExit(f"self-test: a planted violation was not found: {pattern}\n  found: "
                             + "\n  ".join(map(str, findings)) + f"\n  in: {files}")


def main(check, self_test, advice=""):
    name = pathlib.Path(sys.argv[0]).name
    parser = argparse.ArgumentParser(prog=name, description=sys.modules["__main__"].__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true", help="plant violations and see them found")
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("files", nargs="*", help="only these files, relative to the root")
    args = parser.parse_args()
    if args.self_test:
        expect = Expect(check)
        self_test(expect)
        print(f"{name}: self-test of {expect.count} trees passed")
        return 0
    findings = sorted(check(Tree(args.root, args.files)))
    for finding in findings:
        print(finding)
    if findings:
        print(f"{name}: {len(findings)} finding(s)." + (f" {advice}" if advice else ""), file=sys.stderr)
        return 1
    return 0


def cores():
    """How many this process may use: in a container, fewer than the machine has."""
    return len(os.sched_getaffinity(0))


def parallel(commands, done=None):
    """Runs argument lists, one per core at a time; gives (returncode, output) in their order. `done(i, code, output)` is
    called as each ends, in the calling thread."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    def one(command):
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return ended.returncode, ended.stdout

    results = [None] * len(commands)
    with ThreadPoolExecutor(cores()) as pool:
        futures = {pool.submit(one, command): i for i, command in enumerate(commands)}
        try:
            for future in as_completed(futures):
                i = futures[future]
                results[i] = future.result()
                if done:
                    done(i, *results[i])
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    return results


class Progress:
    """A line of `what: 12 of 300, 3 found, 4 min left` for checks that take minutes: rewritten in place on a terminal, one
    every half minute elsewhere. What is found is said at once, so that the cure can begin."""

    def __init__(self, what, total):
        self._what, self._total, self._done, self._found = what, total, 0, 0
        self._start = self._said = time.monotonic()

    def step(self, found):
        self._done += 1
        self._found += len(found)
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        for finding in found if self._total > 1 else ():
            print(f"\r  {str(finding):<70}" if terminal else f"  {finding}", file=sys.stderr, flush=True)
        if not terminal and now - self._said < 30:
            return
        self._said = now
        left = (now - self._start) / self._done * (self._total - self._done)
        text = f"  {self._what}: {self._done} of {self._total}, {self._found} found, " + (
            f"{left / 60:.0f} min left" if left >= 90 else f"{left:.0f} s left")
        over = terminal and self._done < self._total
        print(f"\r{text:<70}" if terminal else text, end="" if over else "\n", file=sys.stderr, flush=True)


_INCLUDE_LINE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


class Closure:
    """The project's own headers that a file includes, however deep: what a result about the file depends on."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self._direct = {}

    def _includes(self, path):
        if path not in self._direct:
            text = path.read_text(encoding="utf-8", errors="replace")
            candidates = [base / name for name in _INCLUDE_LINE.findall(text)
                          for base in (self.root / "src", build_folder(self.root) / "generated", self.root, path.parent)]
            self._direct[path] = [c.resolve() for c in candidates if c.is_file()]
        return self._direct[path]

    def of(self, path):
        seen, todo = set(), [pathlib.Path(path).resolve()]
        while todo:
            here = todo.pop()
            if here not in seen:
                seen.add(here)
                todo.extend(self._includes(here))
        return sorted(seen)


class Cache:
    """Remembers by content what was found clean, so that a second run looks only at what changed. A finding is never
    remembered."""

    def __init__(self, folder, *inputs):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._base = hashlib.sha256("\0".join(inputs).encode()).hexdigest()

    def key(self, files, *inputs):
        digest = hashlib.sha256(self._base.encode())
        for part in inputs:
            digest.update(part.encode() + b"\0")
        for file in files:
            digest.update(str(file).encode() + b"\0" + pathlib.Path(file).read_bytes() + b"\0")
        return digest.hexdigest()

    def clean(self, key):
        return (self.folder / key).exists()

    def remember(self, key):
        (self.folder / key).touch()


def build_folder(root):
    return root / os.environ.get("CAIRN_BUILD", "build/release")


def compile_flags(tree):
    """For each source file the arguments of its compiler call without compiler, input, output and precompiled headers
    (which would hide a missing #include, and save clang-tidy nothing: it looks at every declaration anyway); empty when
    the tree was never configured (as in a self-test)."""
    database = build_folder(tree.root) / "compile_commands.json"
    if not database.exists():
        return {}
    flags = {}
    for entry in json.loads(database.read_text()):
        words = entry.get("arguments") or shlex.split(entry["command"])
        if "ccache" in words[0]:
            words = words[1:]
        kept, skip = [], False
        for word in words[1:]:
            if skip:
                skip = False
            elif word in ("-o", "-MF", "-MT", "-MQ", "-Xclang"):  # -Xclang: only precompiled headers use it
                skip = True
            elif word not in ("-c", "-MD", "-MMD", "--", entry["file"]) and not word.endswith((".cc", ".o")):
                kept.append(word)
        flags[str(pathlib.Path(entry["file"]).relative_to(tree.root)) if entry["file"].startswith(str(tree.root))
              else entry["file"]] = kept
    return flags
