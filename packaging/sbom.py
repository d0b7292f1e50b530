"""The parts of the program, as SPDX 2.3 JSON: the Debian libraries it is linked with, sources that are compiled into
it, the dashboard's packages."""
import hashlib
import json
import pathlib
import re
import time

import linked

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Debian packages of which only headers are used.
HEADERS = ("libboost1.81-dev", "libcli11-dev", "libboost-url1.81-dev")


def licence_of(package):
    """Short names in a machine-readable copyright file, as SPDX expressions would need them mapped: as a comment, not as a claim."""
    file = pathlib.Path("/usr/share/doc") / package / "copyright"
    names = re.findall(r"^License: *(\S.*)$", file.read_text(errors="replace"), re.M) if file.exists() else []
    return ", ".join(sorted(set(names)))


def identifier(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", text)


def debian_package(name):
    version = linked.version_of(name)
    row = {"SPDXID": identifier(f"debian-{name}"), "name": name, "versionInfo": version, "supplier": "Organization: Debian",
           "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
           "copyrightText": "NOASSERTION",
           "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                             "referenceLocator": f"pkg:deb/debian/{name.replace('+', '%2B')}@{version.replace('+', '%2B').replace(':', '%3A')}"
                                                 f"?arch={linked.architecture()}&distro=bookworm"}]}
    licences = licence_of(name)
    return row | ({"licenseComments": f"Debian's copyright file names: {licences}"} if licences else {})


def npm_packages():
    """The packages that esbuild puts into the dashboard: all that are not for development only."""
    lock = json.loads((ROOT / "ui/package-lock.json").read_text())
    for path, package in sorted(lock["packages"].items()):
        if path.startswith("node_modules/") and not package.get("dev"):
            name = path.removeprefix("node_modules/")
            licence = package.get("license", "NOASSERTION")
            yield {"SPDXID": identifier(f"npm-{name}"), "name": name, "versionInfo": package["version"], "downloadLocation": "NOASSERTION",
                   "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION",
                   "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:npm/{name}@{package['version']}"}]}


def document(program, libraries, version, epoch):
    """`program`: the bytes that are packed."""
    digest = hashlib.sha256(program).hexdigest()
    own = {"SPDXID": "SPDXRef-spillway", "name": "spillway", "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
           "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION",
           "checksums": [{"algorithm": "SHA256", "checksumValue": digest}]}
    shared = [debian_package(name) for name in sorted({each.package for each in libraries})]
    zones = [debian_package(linked.ZONES)]
    compiled = [debian_package(name) for name in sorted(HEADERS)]
    bundled = list(npm_packages())

    def relation(kind, rows):
        return [{"spdxElementId": "SPDXRef-spillway", "relationshipType": kind, "relatedSpdxElement": row["SPDXID"]} for row in rows]
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"spillway-{version}",
        "documentNamespace": f"https://spillway.dev/spdx/spillway-{version}-{digest}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)), "creators": ["Tool: spillway-package"]},
        "packages": [own, *shared, *zones, *compiled, *bundled],
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-spillway"},
                          *relation("DYNAMIC_LINK", shared), *relation("DEPENDS_ON", zones), *relation("CONTAINS", compiled), *relation("CONTAINS", bundled)]}


def text(*arguments):
    return json.dumps(document(*arguments), indent=1) + "\n"
