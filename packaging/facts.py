"""What a release says about itself: its dependencies, their licences, its man pages."""

import hashlib
import json
import pathlib
import re
import subprocess
import uuid

# Names of files with a licence.
NAMES = re.compile(r"(licen[cs]e|copying|notice|unlicense)", re.IGNORECASE)


def dependencies(root, features=()):
    """The packages that a build of the program links or runs, each once, sorted, and who needs whom."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--manifest-path", f"{root}/crates/cli/Cargo.toml"]
    metadata = json.loads(subprocess.check_output(command + list(features)))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    top = next(id for id, package in packages.items() if package["name"] == "myclaw")
    reached, waiting = {}, [top]
    while waiting:
        id = waiting.pop()
        if id in reached:
            continue
        # Tests and benchmarks are not part of the program.
        needed = [
            dependency["pkg"]
            for dependency in nodes[id]["deps"]
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
        ]
        reached[id] = needed
        waiting += needed
    order = sorted(reached, key=lambda id: (packages[id]["name"], packages[id]["version"]))
    return [packages[id] for id in order], {id: reached[id] for id in order}, packages[top]


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def web_libraries(root):
    """The libraries of the gateway's page, from its lock file."""
    lock = json.loads((root / "web-ui/package-lock.json").read_text())["packages"]
    wanted = json.loads((root / "web-ui/package.json").read_text())["dependencies"]
    return [(name, lock[f"node_modules/{name}"]) for name in sorted(wanted)]


def sbom(root, version, stamp):
    """A bill of materials in the form of CycloneDX 1.6."""
    packages, needs, top = dependencies(root)
    by_id = {package["id"]: package for package in packages}
    sums = {}
    for name, number, digest in re.findall(
        r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]+"\nchecksum = "([0-9a-f]+)"',
        (root / "Cargo.lock").read_text(),
    ):
        sums[name, number] = digest

    def component(package):
        described = {
            "type": "library",
            "bom-ref": purl(package),
            "name": package["name"],
            "version": package["version"],
            "purl": purl(package),
            "licenses": [{"expression": package["license"].replace("/", " OR ")}],
        }
        digest = sums.get((package["name"], package["version"]))
        if digest:
            described["hashes"] = [{"alg": "SHA-256", "content": digest}]
        return described

    components = [component(package) for package in packages if package["id"] != top["id"]]
    for name, facts in web_libraries(root):
        reference = f"pkg:npm/{name}@{facts['version']}"
        components.append({
            "type": "library", "bom-ref": reference, "name": name, "version": facts["version"], "purl": reference,
            "licenses": [{"expression": facts["license"].strip("()")}],
        })
    program = component(top)
    program["type"] = "application"
    pages = [f"pkg:npm/{name}@{facts['version']}" for name, facts in web_libraries(root)]
    graph = [
        {
            "ref": purl(by_id[id]),
            "dependsOn": sorted({purl(by_id[needed]) for needed in needed_ids} | set(pages if id == top["id"] else ())),
        }
        for id, needed_ids in needs.items()
    ]
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": stamp, "component": program},
        "components": components,
        "dependencies": graph,
    }
    # The same list has the same number.
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    body["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'myclaw/{version}/{digest}')}"
    return json.dumps(body, indent=1, sort_keys=True) + "\n"


def licences(root):
    """The texts of all licences, each once, with the packages that have it."""
    packages, _, _ = dependencies(root)
    texts, lines = {}, []
    for package in packages:
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']}"
        lines.append(f"{name}: {package['license'].replace('/', ' OR ')}")
        directory = pathlib.Path(package["manifest_path"]).parent
        for file in sorted(directory.iterdir()):
            if file.is_file() and NAMES.match(file.name) and file.suffix not in {".rs", ".toml"}:
                text = "\n".join(line.rstrip() for line in file.read_text(errors="replace").strip().splitlines())
                texts.setdefault(text, set()).add(name)
    for name, facts in web_libraries(root):
        lines.append(f"{name} {facts['version']} (the gateway's page): {facts['license'].strip('()')}")
    parts = ["Licences of the libraries in MyClaw", "", *lines]
    for text, names in sorted(texts.items(), key=lambda item: sorted(item[1])):
        parts += ["", "-" * 78, ", ".join(sorted(names)), "-" * 78, "", text]
    return "\n".join(parts) + "\n"


def copyright_notice(licence):
    """What Debian's file `copyright` says, with the line of the licence that names the owners."""
    owners = next(line for line in licence.splitlines() if line.startswith("Copyright"))
    return (
        f"{owners}\n\nLicence: MIT or Apache-2.0, at your choice. The texts are in this directory. On Debian the Apache License is\n"
        "in /usr/share/common-licenses/Apache-2.0 too.\n"
    )


def roff(text):
    """Text in which nothing is a command of roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def inline(markdown):
    """A cell of the page of options: code in bold."""
    parts = re.split(r"`([^`]*)`", markdown.replace("\\|", "|"))
    return "".join(f"\\fB{roff(part)}\\fR" if number % 2 else roff(part) for number, part in enumerate(parts))


def as_it_is(text):
    """Lines that are not filled."""
    return [".nf", roff(text.strip("\n")), ".fi"]


def man_pages(root, version, day):
    """One page for each command, by file name. The source is the page of options, which is made from the grammar; a test
    of the program compares both."""
    sections = re.split(r"(?m)^## `(.+)`\n", (root / "docs/use/options.md").read_text())[1:]
    commands = dict(zip(sections[::2], sections[1::2]))
    pages = {}
    for command, text in commands.items():
        words = command.split()
        page = pages.setdefault("-".join(words[:2]), [])
        has_page = len(words) < 3
        blocks = re.split(r"(?m)^```text\n(.*?)^```\n", text.strip() + "\n", flags=re.DOTALL | re.MULTILINE)
        about = blocks[0].strip()
        if has_page:
            name = f"{roff('-'.join(words))} \\- {inline(about.split('. ')[0].rstrip('.'))}"
            page += [".SH NAME", name, ".SH SYNOPSIS", *as_it_is(blocks[1]), ".SH DESCRIPTION", inline(about)]
        else:
            page += [f'.SH "{roff(command.upper())}"', inline(about), ".PP", *as_it_is(blocks[1])]
        for number, block in enumerate(blocks[2:], start=2):
            if number % 2:
                examples, _, codes = block.partition("Exit codes:\n")
                page += [".SH EXAMPLES" if has_page else ".PP", *as_it_is(examples)]
                page += [".SH EXIT STATUS" if has_page else ".PP", *as_it_is(codes)] if codes else []
                continue
            page += [".SH OPTIONS"] if has_page and block.strip() else []
            for cells in re.findall(r"(?m)^\| (.+?) \| (.*?) \|$", block):
                page += [".TP", inline(cells[0]), inline(cells[1])]
    names = sorted(pages)
    for name, lines in pages.items():
        others = ", ".join(f"\\fB{roff(other)}\\fR(1)" for other in names if other != name)
        head = f'.TH "{roff(name.upper())}" 1 "{day}" "MyClaw {version}" "Commands"'
        pages[name] = "\n".join([head, *lines, ".SH SEE ALSO", others]) + "\n"
    return {f"{name}.1": page for name, page in pages.items()}
