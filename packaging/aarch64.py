"""The static program for aarch64 on a machine with another processor, through qemu-user: scripts/test-release starts this.

  unshare --user --map-root-user --mount --net --pid --fork --kill-child python3 packaging/aarch64.py RELEASE ROOT

The kernel (Linux 6.7 or newer) starts programs for aarch64 with qemu in this user namespace only, so nothing changes for the
rest of the machine. ROOT is an empty directory. First the program runs in it with nothing else, then install.sh installs it.
"""

import fcntl
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import time
import urllib.request

QEMU = "/usr/bin/qemu-aarch64-static"
BINFMT = pathlib.Path("/proc/sys/fs/binfmt_misc")
# The head of an ELF file for aarch64, and which of its bits count. F: qemu is opened now, so that a root need not have it.
HEAD = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
BITS = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
PORT = 18789
LONGEST = 300


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def prepare(root):
    subprocess.run(["mount", "-t", "binfmt_misc", "none", BINFMT], check=True)
    (BINFMT / "register").write_text(f":qemu-aarch64:M::{HEAD}:{BITS}:{QEMU}:F")
    for name in ("proc", "dev", "tmp", "root", "work/.git"):
        (root / name).mkdir(parents=True)
    subprocess.run(["mount", "-t", "proc", "none", root / "proc"], check=True)
    subprocess.run(["mount", "--rbind", "/dev", root / "dev"], check=True)
    # The address 127.0.0.1 of the empty network: SIOCSIFFLAGS with IFF_UP.
    with socket.socket() as one:
        fcntl.ioctl(one, 0x8914, struct.pack("16sh22x", b"lo", 1))


def call(root, path, body=None):
    token = (root / "root/.myclaw/gateway/token").read_text().strip()
    head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", body and json.dumps(body).encode(), head)
    with urllib.request.urlopen(request, timeout=LONGEST) as answer:
        return json.load(answer)


def in_an_empty_root(root):
    """First answer, gateway, an answer through it, a backup, the way back, and nothing is left."""
    environment = {"HOME": "/root", "PATH": "/"}
    program = [shutil.which("chroot"), root, "/myclaw"]

    def inside(*words):
        return run(*program, *words, env=environment)

    def timed(*words):
        begun = time.monotonic()
        return inside(*words), f"{time.monotonic() - begun:.1f} s"

    version = inside("--version").strip()
    answer, first = timed("run", "--quiet", "--model", "builtin/demo", "-C", "/work", "List the files here")
    if ".git" not in answer:
        sys.exit(f"the answer is: {answer}")
    begun = time.monotonic()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    gateway = subprocess.Popen([*program, "gateway"], env=environment, **quiet)
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/ready", timeout=LONGEST):
                break
        except OSError:
            if gateway.poll() is not None or time.monotonic() - begun > LONGEST:
                gateway.kill()
                sys.exit(f"the gateway is not ready: {gateway.communicate()[1]}")
            time.sleep(0.1)
    ready = f"{time.monotonic() - begun:.1f} s"
    message = call(root, "/api/messages", {"session": "main", "id": "one", "text": "write \"tea\" to list.txt"})["messageId"]
    outcome = call(root, f"/api/messages/{message}?wait={LONGEST}")
    if outcome.get("state") != "answered":
        sys.exit(f"the gateway's answer is: {outcome}")
    inside("backup", "--with-keys", "/tmp/claw.backup")
    gateway.terminate()
    gateway.wait(LONGEST)
    inside("backup", "--check", "/tmp/claw.backup")
    (root / "root/.myclaw/workspace/list.txt").unlink()
    inside("restore", "--replace", "/tmp/claw.backup")
    if (root / "root/.myclaw/workspace/list.txt").read_text() != "tea\n":
        sys.exit("the backup does not bring the file back")
    inside("uninstall", "--yes", "--workspace")
    (root / "tmp/claw.backup").unlink()
    left = [str(path) for place in ("tmp", "root", "work") for path in (root / place).rglob("*")]
    left.remove(str(root / "work/.git"))
    if left:
        sys.exit(f"left: {left}")
    return f"{version} under qemu: first answer after {first}, gateway ready after {ready}"


def with_install_sh(release, root):
    """On this machine, with a `uname` that says aarch64."""
    programs, to = root / "programs", root / "local"
    programs.mkdir()
    (programs / "uname").write_text('#!/bin/sh\n[ "$1" = -m ] && exec echo aarch64\nexec /usr/bin/uname "$@"\n')
    (programs / "uname").chmod(0o755)
    environment = {"HOME": str(root / "home"), "PATH": f"{programs}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    script = ["sh", release / "install.sh", "--to", to]
    run(*script, "--from", release, env=environment)
    said = run(to / "bin/myclaw", "update", env=environment)
    if "has no newer version" not in said:
        sys.exit(f"`update` says: {said}")
    run(*script, "--uninstall", env=environment)
    if to.exists():
        sys.exit(f"left: {list(to.rglob('*'))}")
    return "installed and removed by install.sh"


def main():
    release, root = map(pathlib.Path, sys.argv[1:])
    os.environ["no_proxy"] = "*"
    prepare(root)
    (archive,) = release.glob("myclaw-*-aarch64-unknown-linux-musl.tar.gz")
    with tarfile.open(archive) as packed:
        program = next(entry for entry in packed if entry.name.endswith("/myclaw"))
        (root / "myclaw").write_bytes(packed.extractfile(program).read())
    (root / "myclaw").chmod(0o755)
    said = [in_an_empty_root(root)]
    if (release / "install.sh").exists():
        said.append(with_install_sh(release, root))
    print("; ".join(said))


main()
