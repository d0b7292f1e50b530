"""The Kubernetes manifests of deploy/ with the image of one version, and a Helm chart made of the same text.

The chart has no templates of its own: each manifest becomes one, with its image and the flags after the fixed ones as values. So what is tested with
kubectl is what the chart installs.
"""
import pathlib
import re

import files as packed

DEPLOY = pathlib.Path(__file__).resolve().parent.parent / "deploy"
# part: (manifest, the flags that are values)
PARTS = {"companion": ("companion/companion.yaml", ["--shadow"]),
         "controller": ("controller/lifecycle-controller.yaml", ["--beside-stock-controllers"]),
         "dashboard": ("dashboard/dashboard.yaml", [])}
VALUES = """# The image, as nodes pull it: load spillway_VERSION.oci.tar into a registry of yours, or into each node's container runtime.
image: spillway:{tag}

# Beside the kubelet of every node. --shadow only looks; to let it act: [--eviction-hard=memory.available<300Mi]
companion:
  enabled: false
  flags: [--shadow]

# Node lifecycle and taint eviction. --shadow only looks; to put it in charge, switch both off in kube-controller-manager, then
# [--beside-stock-controllers]
controller:
  enabled: false
  flags: [--shadow]

dashboard:
  enabled: false
  flags: []
"""


def tag_of(version):
    return re.sub(r"[+~]", "-", version)


def template(part):
    """The manifest as a Helm template."""
    manifest, given = PARTS[part]
    text = (DEPLOY / manifest).read_text()
    assert "{{" not in text, f"{manifest}: braces that Helm would read"
    text, count = re.subn(r"image: spillway:latest\b.*", "image: {{ .Values.image }}", text)
    assert count == 1, f"{manifest}: expected one image"
    last = given[-1] if given else re.findall(r"^ +- (--\S+)$", text, re.M)[-1]
    place = re.search(rf"^( +)- {re.escape(last)}\n", text, re.M)
    assert place, f"{manifest}: has no flag {last}"
    flags = f"{place.group(1)}{{{{- range .Values.{part}.flags }}}}\n{place.group(1)}- {{{{ . }}}}\n{place.group(1)}{{{{- end }}}}\n"
    text = text[:place.start()] + ("" if given else place.group(0)) + flags + text[place.end():]
    return f"{{{{- if .Values.{part}.enabled }}}}\n{text.rstrip()}\n{{{{- end }}}}\n"


def files(version):
    """All of deploy/, the chart below chart/."""
    root = packed.Files()
    tag = tag_of(version)
    for file in sorted(file for file in DEPLOY.rglob("*") if file.is_file()):
        text = file.read_text()
        if file.name == "kustomization.yaml":
            text = text.replace("newTag: latest", f"newTag: {tag}")
        root.add(f"deploy/{file.relative_to(DEPLOY)}", text.replace("image: spillway:latest", f"image: spillway:{tag}"))
    # A chart's version is a semantic one: what Debian sorts after "+" is not compared there.
    root.add("chart/Chart.yaml", f"apiVersion: v2\nname: spillway\ndescription: Keeps nodes alive under pressure and workloads running when nodes fail\n"
                                 f"type: application\nversion: {version}\nappVersion: \"{version}\"\n")
    root.add("chart/values.yaml", VALUES.format(tag=tag))
    for part in PARTS:
        root.add(f"chart/templates/{part}.yaml", template(part))
    return root
