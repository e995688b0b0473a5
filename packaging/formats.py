"""The packages of a release. The same input gives the same bytes: names are sorted, and times, modes and owners are fixed."""

import base64
import gzip
import hashlib
import io
import json
import pathlib
import re
import struct
import subprocess
import tarfile
import tempfile
import time
import zipfile

SUMMARY = "A personal AI agent in one binary"
LICENCE = "MIT OR Apache-2.0"
# Packages need an address in the form of one. Names below `invalid` belong to nobody (RFC 2606).
MAINTAINER = "The MyClaw contributors <contributors@myclaw.invalid>"
# What lintian says that does not apply: no program of these is run, and this is no upload to Debian.
OVERRIDES = """\
# The program has a list of commands that start others.
myclaw: missing-depends-on-sensible-utils
# This is no upload to Debian.
myclaw: initial-upload-closes-no-bugs
"""

# What package managers call the targets: Node.js (system, processor, C library), Python, Debian, RPM.
TARGETS = {
    "x86_64-unknown-linux-gnu": {"npm": ("linux", "x64", "glibc"), "wheel": "x86_64", "deb": "amd64", "rpm": "x86_64"},
    "aarch64-unknown-linux-gnu": {"npm": ("linux", "arm64", "glibc"), "wheel": "aarch64", "deb": "arm64", "rpm": "aarch64"},
    "x86_64-unknown-linux-musl": {"npm": ("linux", "x64", "musl"), "wheel": "x86_64", "deb": "amd64", "rpm": "x86_64"},
    "aarch64-unknown-linux-musl": {"npm": ("linux", "arm64", "musl"), "wheel": "aarch64", "deb": "arm64", "rpm": "aarch64"},
    "x86_64-apple-darwin": {"npm": ("darwin", "x64", None), "wheel": "macosx_10_12_x86_64"},
    "aarch64-apple-darwin": {"npm": ("darwin", "arm64", None), "wheel": "macosx_11_0_arm64"},
    "x86_64-pc-windows-gnu": {"npm": ("win32", "x64", None), "wheel": "win_amd64"},
}


def glibc_of(program):
    """The minor version of the GNU C library 2 that a program needs; 0 for a static program."""
    data = program.read_bytes()
    # Relocations in the packed form need 2.36.
    packed = [36] if b"GLIBC_ABI_DT_RELR\0" in data else []
    return max([int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)(?:\.\d+)?\0", data)] + packed, default=0)


def is_for(program, target):
    """Whether the head of a program is that of the target, with the right C library."""
    head = program.read_bytes()[:20]
    if "linux" in target:
        machine = {"x86_64": 62, "aarch64": 183}[target.split("-")[0]]
        has_glibc = glibc_of(program) > 0
        return head[:4] == b"\x7fELF" and head[18] == machine and has_glibc == target.endswith("-gnu")
    return head[:2] == b"MZ" if "windows" in target else head[:4] == b"\xcf\xfa\xed\xfe"


def is_program(name):
    return name.rsplit("/", 1)[-1] in {"myclaw", "myclaw.exe", "myclaw.js"}


def write_tar(path, files, epoch):
    """A .tar.gz of files by name, each bytes."""
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, epoch) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name in sorted(files):
                entry = tarfile.TarInfo(name)
                entry.size, entry.mtime = len(files[name]), epoch
                entry.mode = 0o755 if is_program(name) else 0o644
                archive.addfile(entry, io.BytesIO(files[name]))


def wheel(directory, version, target, program, extra, epoch):
    """A wheel that holds the program, for pip and uvx."""
    facts = TARGETS[target]
    tag = facts["wheel"]
    if target.endswith("-gnu") and "linux" in target:
        tag = f"manylinux_2_{glibc_of(program)}_{tag}"
    elif target.endswith("-musl"):
        # It is static, so it runs with either C library.
        tag = f"manylinux_2_17_{tag}.manylinux2014_{tag}.musllinux_1_1_{tag}"
    name = "myclaw.exe" if "windows" in target else "myclaw"
    info = f"myclaw-{version}.dist-info"
    tags = "".join(f"Tag: py3-none-{one}\n" for one in tag.split("."))
    files = {
        f"myclaw-{version}.data/scripts/{name}": program.read_bytes(),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.4\nName: myclaw\nVersion: {version}\nSummary: {SUMMARY}\nLicense-Expression: {LICENCE}\n"
            + "".join(f"License-File: {one}\n" for one in sorted(extra["licences"]))
            + "Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n"
            + extra["readme"]
        ).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: myclaw\nRoot-Is-Purelib: false\n{tags}".encode(),
    }
    files.update({f"{info}/licenses/{one}": text for one, text in extra["licences"].items()})
    files.update({f"myclaw-{version}.data/data/share/man/man1/{one}": text for one, text in extra["man"].items()})
    record = f"{info}/RECORD"
    lines = []
    for one in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[one]).digest()).rstrip(b"=").decode()
        lines.append(f"{one},sha256={digest},{len(files[one])}\n")
    files[record] = ("".join(lines) + f"{record},,\n").encode()
    path = directory / f"myclaw-{version}-py3-none-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for one in sorted(files):
            entry = zipfile.ZipInfo(one, time.gmtime(epoch)[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = ((0o100755 if is_program(one) else 0o100644) << 16)
            archive.writestr(entry, files[one])
    return path


def npm_name(target):
    system, processor, library = TARGETS[target]["npm"]
    return f"myclaw-{system}-{processor}" + ("-musl" if library == "musl" else "")


def npm(directory, version, target, program, extra, epoch):
    """The package of one platform."""
    system, processor, library = TARGETS[target]["npm"]
    name = npm_name(target)
    described = {
        "name": name, "version": version, "description": f"{SUMMARY}: the program for {target}", "license": LICENCE,
        "os": [system], "cpu": [processor], **({"libc": [library]} if library else {}), "preferUnplugged": True,
    }
    end = ".exe" if system == "win32" else ""
    files = {
        "package/package.json": (json.dumps(described, indent=2) + "\n").encode(),
        f"package/bin/myclaw{end}": program.read_bytes(),
        **{f"package/{one}": text for one, text in extra["licences"].items()},
    }
    path = directory / f"{name}-{version}.tgz"
    write_tar(path, files, epoch)
    return path


def npm_main(directory, version, targets, extra, epoch, script):
    """The package that people install. It needs the one of their platform, which npm chooses."""
    described = {
        "name": "myclaw", "version": version, "description": SUMMARY, "license": LICENCE,
        "bin": {"myclaw": "bin/myclaw.js"}, "engines": {"node": ">=18"},
        "optionalDependencies": {npm_name(target): version for target in sorted(targets)},
    }
    files = {
        "package/package.json": (json.dumps(described, indent=2) + "\n").encode(),
        "package/bin/myclaw.js": script,
        "package/README.md": extra["readme"].encode(),
        **{f"package/{one}": text for one, text in extra["licences"].items() if one != "THIRD-PARTY-LICENCES.txt"},
    }
    path = directory / f"myclaw-{version}.tgz"
    write_tar(path, files, epoch)
    return path


def debian_changelog(version, epoch):
    """The entry of this release. Debian's tools read nothing else."""
    day = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(epoch))
    entry = f"  * MyClaw {version}. Its CHANGELOG.md is in the archives of the release."
    return f"myclaw ({version}-1) unstable; urgency=medium\n\n{entry}\n\n -- {MAINTAINER}  {day}\n".encode()


def has_system_packages(target, programs):
    """Whether the .deb and the .rpm of its processor are made of this program. The one for glibc comes first."""
    return "deb" in TARGETS[target] and not (target.endswith("-musl") and target.replace("-musl", "-gnu") in programs)


def system_packages(directory, version, target, program, extra, epoch, nfpm):
    """The .deb and the .rpm, with nfpm."""
    facts, stamp = TARGETS[target], time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    minor = glibc_of(program)
    # A static program needs no library. That for glibc needs libgcc, whose package has another name in each distribution of RPM.
    libraries = {
        "deb": [f"libc6 (>= 2.{minor})", "libgcc-s1"] if minor else [],
        "rpm": [f"glibc >= 2.{minor}", "libgcc_s.so.1()(64bit)"] if minor else [],
    }
    with tempfile.TemporaryDirectory() as work:
        contents = []

        def add(place, data, mode, **more):
            source = pathlib.Path(work) / str(len(contents))
            source.write_bytes(data)
            contents.append({"src": str(source), "dst": place, "file_info": {"mode": mode, "mtime": stamp}, **more})

        add("/usr/bin/myclaw", program.read_bytes(), 0o755)
        add("/usr/lib/systemd/user/myclaw-gateway.service", extra["unit"], 0o644)
        add("/usr/share/bash-completion/completions/myclaw", extra["completions"]["myclaw.bash"], 0o644)
        for packager, place in (("deb", "vendor-completions"), ("rpm", "site-functions")):
            add(f"/usr/share/zsh/{place}/_myclaw", extra["completions"]["_myclaw"], 0o644, packager=packager)
        add("/usr/share/fish/vendor_completions.d/myclaw.fish", extra["completions"]["myclaw.fish"], 0o644)
        # RPM marks what can be left out, and licences, which cannot.
        for packager, man, licence in (("deb", {}, {}), ("rpm", {"type": "doc"}, {"type": "license"})):
            for name, text in sorted(extra["man"].items()):
                add(f"/usr/share/man/man1/{name}.gz", gzip.compress(text, 9, mtime=0), 0o644, packager=packager, **man)
            for name, text in sorted({**extra["licences"], "copyright": extra["copyright"]}.items()):
                add(f"/usr/share/doc/myclaw/{name}", text, 0o644, packager=packager, **licence)
        remarks = OVERRIDES if minor else f"{OVERRIDES}# So it needs no library.\nmyclaw: statically-linked-binary\n"
        add("/usr/share/lintian/overrides/myclaw", remarks.encode(), 0o644, packager="deb")
        add("/usr/share/doc/myclaw/changelog.Debian.gz", gzip.compress(debian_changelog(version, epoch), 9, mtime=0), 0o644,
            packager="deb")
        # RPM removes only directories that a package names. Several packages may name one.
        for place in ("doc/myclaw", "fish", "fish/vendor_completions.d", "zsh", "zsh/site-functions"):
            info = {"mode": 0o755, "mtime": stamp}
            contents.append({"dst": f"/usr/share/{place}", "type": "dir", "packager": "rpm", "file_info": info})
        made = []
        for kind in ("deb", "rpm"):
            described = {
                "name": "myclaw", "arch": facts["deb"], "platform": "linux", "version": version, "release": "1",
                "section": "utils", "priority": "optional", "maintainer": MAINTAINER,
                # Package managers show it behind the name.
                "description": f"{SUMMARY.removeprefix('A ')}\nIt calls a language model, runs the tools that the model asks for,\n"
                "and keeps every message on disk.",
                "license": LICENCE, "mtime": stamp, "contents": contents,
                # The certificates are for connections to providers.
                "overrides": {one: {"depends": needs, "recommends": ["ca-certificates"]} for one, needs in libraries.items()},
                "deb": {"compression": "xz"},
                "rpm": {"compression": "xz", "buildhost": "localhost", "summary": SUMMARY},
            }
            config = pathlib.Path(work) / "nfpm.json"
            # JSON is YAML.
            config.write_text(json.dumps(described))
            name = f"myclaw_{version}_{facts['deb']}.deb" if kind == "deb" else f"myclaw-{version}-1.{facts['rpm']}.rpm"
            command = [nfpm, "package", "--config", str(config), "--packager", kind, "--target", str(directory / name)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            made.append(directory / name)
    return made


def formula(template, version, address, archives):
    """The formula of Homebrew, for the archives that exist: file names and digests by target."""
    systems = {"macos": "apple-darwin", "linux": "unknown-linux-gnu"}
    lines = []
    for system, end in systems.items():
        found = [(name, f"{name}-{end}") for name in ("aarch64", "x86_64") if f"{name}-{end}" in archives]
        if not found:
            continue
        lines.append(f"  on_{system} do")
        for processor, target in found:
            file, digest = archives[target]
            lines += [
                f"    on_{'arm' if processor == 'aarch64' else 'intel'} do",
                f'      url "{address}/{file}"',
                f'      sha256 "{digest}"',
                "    end",
            ]
        lines.append("  end")
    return template.replace("@VERSION@", version).replace("@ARCHIVES@", "\n".join(lines))


def ssh_string(data):
    return struct.pack(">I", len(data)) + data


def public_key(key):
    """The public half of an Ed25519 key: as PEM, and its 32 bytes."""
    run = lambda form: subprocess.check_output(["openssl", "pkey", "-in", key, "-pubout", "-outform", form])
    pem, der = run("PEM").decode(), run("DER")
    if len(der) != 44 or der[:12].hex() != "302a300506032b6570032100":
        raise SystemExit("release: RELEASE_KEY is no Ed25519 key; make one with: openssl genpkey -algorithm ed25519 -out FILE")
    return pem, der[12:]


def ed25519(key, data):
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        return subprocess.check_output(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", file.name])


def ssh_public(raw):
    return "ssh-ed25519 " + base64.b64encode(ssh_string(b"ssh-ed25519") + ssh_string(raw)).decode()


def ssh_signature(key, raw, data, namespace):
    """A signature that `ssh-keygen -Y verify` checks (PROTOCOL.sshsig of OpenSSH)."""
    common = ssh_string(namespace.encode()) + ssh_string(b"") + ssh_string(b"sha512")
    signed = ed25519(key, b"SSHSIG" + common + ssh_string(hashlib.sha512(data).digest()))
    whole = b"SSHSIG" + struct.pack(">I", 1) + ssh_string(ssh_string(b"ssh-ed25519") + ssh_string(raw)) + common
    whole += ssh_string(ssh_string(b"ssh-ed25519") + ssh_string(signed))
    text = base64.b64encode(whole).decode()
    lines = "\n".join(text[start : start + 70] for start in range(0, len(text), 70))
    return f"-----BEGIN SSH SIGNATURE-----\n{lines}\n-----END SSH SIGNATURE-----\n"
