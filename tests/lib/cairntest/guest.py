"""A throw-away virtual machine with Debian's own kernel, for what the host's kernel doesn't have: soft-RoCE, the
kernel's NVMe-oF, iSCSI, NFS and SMB clients.

    guest = Guest(modules=["rdma_rxe"])
    status, output = guest.run(["rdma", "link"], seconds=300)

 host                                        guest
 ┌────────────────────────────────┐          ┌───────────────────────────────────────────────┐
 │ /               read-only, 9p ─┼──────────┼─► lower layer of /; what is written stays in  │
 │                                │          │   the guest's memory and is gone at the end   │
 │ a shared folder           9p  ─┼──────────┼─► the same folder, at the same path           │
 │ loopback                      ─┼──────────┼─► eth0 10.0.2.15; the host is 10.0.2.2        │
 │ command, status, output       ─┼──────────┼─► initramfs, two ports of a virtual console   │
 └────────────────────────────────┘          └───────────────────────────────────────────────┘

So programs that were built on the host run in it, as root. There is no hardware acceleration: it boots in 5 to 20 s and
computes about thirty times slower than the host. Whoever uses it measures nothing and allows time generously.

The kernel comes from Debian's archive (`tests/vm/vmrun --setup`, as root, which scripts/setup.sh calls) and is unpacked
beside the host's own files, not installed.
"""

import lzma
import os
import pathlib
import shlex
import shutil
import stat
import struct
import subprocess
import tempfile

CACHE = pathlib.Path(os.environ.get("CAIRN_VM_CACHE", "/var/cache/cairn-vm"))
KERNEL = CACHE / "kernel"
SCRIPTS = pathlib.Path(__file__).resolve().parent.parent.parent / "vm"
# What the first stage needs to reach the host's files, and the ports; the guest's modprobe loads the rest.
BOOT_MODULES = ["virtio_pci", "virtio_console", "9p", "9pnet_virtio", "overlay", "virtio_net", "configfs"]
BOOT_OPTIONS = (
    "console=ttyS0 quiet panic=-1 oops=panic reboot=t net.ifnames=0 "
    # Emulation is slow enough to look like a fault to whatever watches the clock.
    "no_timer_check tsc=reliable nowatchdog rcupdate.rcu_expedited=1 rcupdate.rcu_cpu_stall_suppress=1 "
    # Nobody attacks this kernel, and the numbers that it wants at boot are there at once.
    "nokaslr mitigations=off random.trust_cpu=on"
)


class GuestError(Exception):
    """The guest didn't come to report a status: it died, or its time was up."""


class Guest:
    def __init__(self, *, cpus=2, memory_mib=2048, modules=(), shares=(), forwards=(), nvme=(), iommu=False, append="",
                 qemu=(), console=None):
        """modules: loaded before the command, each may hold options ("mod opt=1"). shares: folders of the host that the
        guest may write to. forwards: (port on the host's loopback, port in the guest). nvme: sizes of emulated disks
        ("1G"). append: for the kernel's command line. qemu: arguments of its own. console: file that keeps its log."""
        if not (KERNEL / "vmlinux").exists():
            raise GuestError(f"no kernel in {KERNEL}: as root, run {SCRIPTS}/vmrun --setup")
        self.cpus, self.memory_mib, self.iommu, self.append = cpus, memory_mib, iommu, append
        self.modules = [*modules, *(["nvme"] if nvme else [])]
        self.shares = [str(pathlib.Path(share).resolve(strict=True)) for share in shares]
        self.forwards, self.nvme, self.qemu = list(forwards), list(nvme), list(qemu)
        self.keep_console = console
        self.process = None

    def run(self, command, seconds, cwd=None):
        """The command's status and its output (both streams, as text). GuestError when it has none."""
        self.start(command, cwd)
        return self.wait(seconds)

    def start(self, command, cwd=None):
        assert self.process is None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cairn-vm."))
        self.initramfs(command, cwd or os.getcwd())
        for name in ("status", "console"):
            (self.folder / name).touch()
        # setpriv: a guest doesn't outlive whoever started it, however that ends.
        with open(self.folder / "qemu", "wb") as errors:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", *self.command_line()],
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)

    @property
    def output(self):
        """While it runs: a binary stream of what the command writes."""
        return self.process.stdout

    def wait(self, seconds):
        try:
            output, _ = self.process.communicate(timeout=seconds)
            late = False
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, _ = self.process.communicate()
            late = True
        text = (output or b"").decode(errors="replace")
        status = (self.folder / "status").read_text().strip()
        console = (self.folder / "console").read_text(errors="replace")
        errors = (self.folder / "qemu").read_text(errors="replace")
        self.close()
        if status:
            return int(status), text
        cause = f"the guest wasn't done after {seconds} s" if late else "the guest died"
        raise GuestError(f"{cause}\n{errors}--- its output\n{text}\n--- its console ends with\n"
                         + "\n".join(console.splitlines()[-100:]))

    def close(self):
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        if self.keep_console:
            shutil.copy(self.folder / "console", self.keep_console)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.process = None

    def initramfs(self, command, cwd):
        version = kernel_version()
        listing = subprocess.run(["modprobe", "-d", KERNEL, "-S", version, "-aD", *BOOT_MODULES], check=True, text=True,
                                 capture_output=True).stdout
        # "insmod /path/x.ko ", in the order in which they are needed; what is needed twice comes twice.
        objects = list(dict.fromkeys(line.split()[1] for line in listing.splitlines() if line.startswith("insmod ")))
        archive = Cpio()
        for folder in ("bin", "dev", "proc", "sys", "host", "memory", "new", "boot"):
            archive.folder(folder)
        archive.file("bin/busybox", pathlib.Path(shutil.which("busybox")).read_bytes(), executable=True)
        archive.file("init", (SCRIPTS / "guest_init.sh").read_bytes(), executable=True)
        archive.file("boot/main", (SCRIPTS / "guest_main.sh").read_bytes())
        for path in objects:
            archive.file(f"boot/{pathlib.Path(path).name}", pathlib.Path(path).read_bytes())
        lists = {"load": [pathlib.Path(path).name for path in objects], "modules": self.modules,
                 "shares": self.shares, "kernel": [str(KERNEL / "lib/modules")],
                 "command": [f"cd {shlex.quote(str(cwd))}", f"exec {shlex.join(map(str, command))}"]}
        for name, lines in lists.items():
            archive.file(f"boot/{name}", "".join(f"{line}\n" for line in lines).encode())
        (self.folder / "initramfs").write_bytes(archive.finish())

    def command_line(self):
        forwards = "".join(f",hostfwd=tcp:127.0.0.1:{host}-10.0.2.15:{guest}" for host, guest in self.forwards)
        line = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-machine", "q35,hpet=off,smm=off,usb=off,graphics=off" + (",kernel-irqchip=split" if self.iommu else ""),
                "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max,la57=off",
                "-smp", str(self.cpus), "-m", str(self.memory_mib), "-bios", "/usr/share/qemu/qboot.rom",
                "-kernel", KERNEL / "vmlinux", "-initrd", self.folder / "initramfs",
                "-append", f"{BOOT_OPTIONS} {'intel_iommu=on ' if self.iommu else ''}{self.append}",
                "-serial", f"file:{self.folder}/console",
                "-netdev", f"user,id=net0,ipv6=off{forwards}", "-device", "virtio-net-pci,netdev=net0,romfile=",
                "-device", "virtio-serial-pci"]
        # QEMU makes what it is given as standard output non-blocking; opened anew it is a description of its own.
        for name, path in (("output", "/proc/self/fd/1"), ("status", f"{self.folder}/status")):
            line += ["-chardev", f"file,id={name},path={path}", "-device", f"virtserialport,chardev={name},name={name}"]
        line += ["-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
                 "-device", "virtio-9p-pci,fsdev=host,mount_tag=host"]
        if self.iommu:
            line += ["-device", "intel-iommu,intremap=on"]
        for number, share in enumerate(self.shares):
            line += ["-fsdev", f"local,id=share{number},path={share},security_model=none,multidevs=remap",
                     "-device", f"virtio-9p-pci,fsdev=share{number},mount_tag=share{number}"]
        for number, size in enumerate(self.nvme):
            disk = self.folder / f"nvme{number}"
            subprocess.run(["truncate", "-s", size, disk], check=True)
            line += ["-drive", f"file={disk},format=raw,if=none,id=nvme{number},cache=unsafe,discard=unmap",
                     "-device", f"nvme,drive=nvme{number},serial=cairn{number}"]
        return [*line, *self.qemu]


class Cpio:
    """A cpio archive in the "newc" format, as the kernel unpacks it (Documentation/driver-api/early-userspace)."""

    def __init__(self):
        self.bytes = bytearray()
        self.inode = 0

    def folder(self, name):
        self.entry(name, stat.S_IFDIR | 0o755, b"")

    def file(self, name, content, executable=False):
        self.entry(name, stat.S_IFREG | (0o755 if executable else 0o644), content)

    def entry(self, name, mode, content):
        self.inode += 1
        links, owner, when, device, check = 1, 0, 0, 0, 0
        fields = [self.inode, mode, owner, owner, links, when, len(content), device, device, device, device,
                  len(name) + 1, check]
        self.bytes += b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        self.pad()
        self.bytes += content
        self.pad()

    def pad(self):
        self.bytes += bytes(-len(self.bytes) % 4)

    def finish(self):
        self.entry("TRAILER!!!", 0, b"")
        return bytes(self.bytes)


def kernel_version():
    return next((KERNEL / "lib/modules").iterdir()).name


def fetch_kernel():
    """Puts the current kernel of Debian's archive into the cache (about 70 MB). As root, since apt is asked."""
    depends = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], check=True, text=True, capture_output=True)
    package = next((line.split()[1] for line in depends.stdout.splitlines() if "Depends: linux-image-" in line), None)
    if package is None:
        raise GuestError("apt knows no linux-image-amd64: apt-get update first")
    if (KERNEL / "package").exists() and (KERNEL / "package").read_text() == package:
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        subprocess.run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package], check=True, cwd=folder)
        new = pathlib.Path(folder) / "kernel"
        subprocess.run(["dpkg", "-x", *pathlib.Path(folder).glob("*.deb"), new], check=True)
        version = next((new / "lib/modules").iterdir()).name
        subprocess.run(["depmod", "-b", new, version], check=True)
        (new / "vmlinux").write_bytes(unpack_kernel(next((new / "boot").glob("vmlinuz-*")).read_bytes()))
        shutil.rmtree(new / "usr", ignore_errors=True)
        (new / "package").write_text(package)
        shutil.rmtree(KERNEL, ignore_errors=True)
        new.rename(KERNEL)


def unpack_kernel(image):
    """The ELF inside a bzImage: QEMU boots it directly. Unpacking it inside the guest would take seconds, each time.
    Offsets: Documentation/x86/boot.rst."""
    setup_sectors = image[0x1F1]
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    # The size that follows the compressed data isn't part of it.
    kernel = lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(image[start:start + length])
    if kernel[:4] != b"\x7fELF":
        raise GuestError("the kernel's image holds no ELF file")
    return kernel
