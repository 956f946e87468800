#!/bin/busybox sh
# First stage of a guest, process 1 in the initramfs: puts the root file system together and goes there. The host's
# files are below, read-only; what the guest writes lies above them, in memory.
b=/bin/busybox
$b mount -t devtmpfs dev /dev
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
while read -r object; do
  $b insmod "/boot/$object" || echo "guest: $object doesn't load"
done </boot/load

nine=trans=virtio,version=9p2000.L,msize=512000
$b mount -t 9p -o "ro,cache=loose,$nine" host /host
$b mount -t tmpfs -o size=90% memory /memory
$b mkdir /memory/upper /memory/work
$b mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work root /new
for folder in dev proc sys; do
  $b mount --move "/$folder" "/new/$folder"
done
$b mount -t tmpfs run /new/run
$b mkdir -p /new/run/lock /new/run/guest /new/dev/pts /new/dev/shm /new/lib/modules
$b mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /new/dev/pts
$b mount -t tmpfs shm /new/dev/shm
$b ln -s /proc/self/fd /new/dev/fd
for stream in 0:stdin 1:stdout 2:stderr; do
  $b ln -s "fd/${stream%%:*}" "/new/dev/${stream##*:}"
done
# Not in every kernel.
$b mount -t configfs configfs /new/sys/kernel/config 2>/dev/null
$b mount -t cgroup2 cgroup2 /new/sys/fs/cgroup 2>/dev/null
$b mount -t debugfs debugfs /new/sys/kernel/debug 2>/dev/null

number=0
while read -r folder; do
  $b mkdir -p "/new$folder"
  $b mount -t 9p -o "rw,cache=mmap,$nine" "share$number" "/new$folder"
  number=$((number + 1))
done </boot/shares
# The guest's own modules in place of the host's.
read -r modules </boot/kernel
$b mount --bind "/host$modules" /new/lib/modules
$b cp /bin/busybox /boot/main /boot/command /boot/modules /new/run/guest/
exec $b switch_root /new /run/guest/busybox sh /run/guest/main
