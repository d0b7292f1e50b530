"""The OCI image, as a layout in a tar: the program, the libraries it is linked with, time zones, a user that is not root. No shell, nothing else."""
import gzip
import hashlib
import json
import pathlib
import time

import files as packed
import linked

USER = 65532
ARCHITECTURES = {"amd64": "amd64", "arm64": "arm64"}


def contents(program, libraries):
    root = packed.Files()
    root.add("usr/bin/spillway", program, 0o755)
    for name in ("bin", "lib", "lib64"):
        root.add_link(name, f"usr/{name}")
    for library in libraries:
        # Where its loader looks: as the machine has it, with /lib as a link to /usr/lib.
        place = str(library.path.parent)
        place = (place if place.startswith("/usr/") else "/usr" + place).removeprefix("/")
        root.add(f"{place}/{library.name}", library.path.read_bytes(), 0o755)
        if library.name.startswith("ld-linux"):
            root.add_link(f"usr/lib64/{library.name}", f"/{place}/{library.name}")
    root.add("usr/share/doc/spillway/copyright", (pathlib.Path(__file__).resolve().parent / "debian/copyright").read_bytes())
    for package, notice in linked.notices([linked.ZONES, *(library.package for library in libraries)]).items():
        root.add(f"usr/share/doc/{package}/copyright", notice)
    for place, path in linked.files_of(linked.ZONES, "/usr/share/zoneinfo").items():
        if place.startswith(("usr/share/zoneinfo/posix/", "usr/share/zoneinfo/right/")):
            continue  # the same once more, and with leap seconds
        if path.is_symlink():
            root.add_link(place, str(path.readlink()))
        else:
            root.add(place, path.read_bytes())
    root.add("etc/passwd", f"root:x:0:0:root:/:/nonexistent\nspillway:x:{USER}:{USER}:Spillway:/var/lib/spillway:/nonexistent\n")
    root.add("etc/group", f"root:x:0:\nspillway:x:{USER}:\n")
    root.add_folder("tmp", 0o1777)
    root.add_folder("var/lib/spillway", 0o700, owner=USER)
    return root


def write(program, libraries, version, epoch, out):
    """`version` becomes the tag, with what tags may not hold replaced."""
    blobs = {}

    def blob(data, media_type, **more):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data), **more}

    def text(value):
        return json.dumps(value, sort_keys=True).encode()

    tag = version.replace("+", "-").replace("~", "-")
    platform = {"architecture": ARCHITECTURES[linked.architecture()], "os": "linux"}
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    layer = contents(program, libraries).tar(epoch)
    config = {**platform, "created": created,
              "config": {"User": f"{USER}:{USER}", "Entrypoint": ["/usr/bin/spillway"], "Env": ["PATH=/usr/bin"], "WorkingDir": "/",
                         "Labels": {"org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0"}},
              "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
              "history": [{"created": created, "created_by": "./dev package"}]}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": blob(text(config), "application/vnd.oci.image.config.v1+json"),
                "layers": [blob(gzip.compress(layer, 6, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip")]}
    names = {"io.containerd.image.name": f"docker.io/library/spillway:{tag}", "org.opencontainers.image.ref.name": tag}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
             "manifests": [blob(text(manifest), manifest["mediaType"], platform=platform, annotations=names)]}
    layout = packed.Files()
    layout.add("oci-layout", text({"imageLayoutVersion": "1.0.0"}))
    layout.add("index.json", text(index))
    for digest, data in blobs.items():
        layout.add(f"blobs/sha256/{digest}", data)
    out.write_bytes(layout.tar(epoch))
