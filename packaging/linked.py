"""The shared libraries a program is linked with, and the Debian packages they come from."""
import dataclasses
import functools
import pathlib
import re
import subprocess

INFO = pathlib.Path("/var/lib/dpkg/info")
ZONES = "tzdata"  # the Debian package with the time zones that CronJobs name


@dataclasses.dataclass(frozen=True)
class Library:
    name: str            # the name by which the program loads it: libfmt.so.9
    path: pathlib.Path   # the file itself, links followed
    package: str         # the Debian package that has it


def _output(*words):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True).stdout


def _owners(paths):
    """{path: Debian package}. /lib is a link to /usr/lib on merged systems, but dpkg's lists have either."""
    as_listed = {variant: path for path in paths for variant in (str(path), str(path).removeprefix("/usr"), f"/usr{path}")}
    done = subprocess.run(["dpkg-query", "-S", *as_listed], capture_output=True, text=True, check=False)
    owners = {as_listed[path]: package for package, path in re.findall(r"^([^:\s]+)(?::\w+)?: (/.*)$", done.stdout, re.M) if path in as_listed}
    if missing := [path for path in paths if path not in owners]:
        raise SystemExit(f"package: {missing[0]} is in no Debian package: expected libraries of packages only")
    return owners


@functools.cache
def libraries(binary):
    """All that the loader loads, the loader included, in the order of their names."""
    found = re.findall(r"^\s*(?:(\S+) => )?(/\S+) \(0x", _output("ldd", binary), re.M)
    real = {name or pathlib.Path(path).name: pathlib.Path(path).resolve() for name, path in found}
    owners = _owners(sorted(set(real.values())))
    return [Library(name, path, owners[path]) for name, path in sorted(real.items())]


def notices(packages):
    """{package: its copyright file}, which goes wherever its files go."""
    files = {package: pathlib.Path("/usr/share/doc") / package / "copyright" for package in sorted(set(packages))}
    if missing := [package for package, file in files.items() if not file.exists()]:
        raise SystemExit(f"package: {missing[0]} has no /usr/share/doc/{missing[0]}/copyright: it cannot be passed on without")
    return {package: file.read_bytes() for package, file in files.items()}


def asked_for(binary):
    """Names of the libraries that the program itself names, without those that only they need."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", _output("readelf", "-d", binary))


def _shlibs(package):
    for file in (INFO / f"{package}:{architecture()}.shlibs", INFO / f"{package}.shlibs"):
        if file.exists():
            return file.read_text().splitlines()
    return []


def dependencies(binary):
    """The relations for Depends: for each library that is needed, the row of its package's `shlibs` file."""
    by_name = {each.name: each for each in libraries(binary)}
    needed = set()
    for name in asked_for(binary):
        package = by_name[name].package
        match = re.fullmatch(r"(.+)\.so\.(.+)", name) or re.fullmatch(r"(.+)-([0-9].*)\.so", name) or re.fullmatch(r"(ld-linux.*)\.so\.(.+)", name)
        rows = [line.split(None, 2) for line in _shlibs(package) if line and not line.startswith(("#", "udeb:"))]
        found = [row[2] for row in rows if match and row[:2] == list(match.groups())]
        if not found:
            raise SystemExit(f"package: {package} has no line for {name} in its shlibs file")
        needed.add(found[0])
    return sorted(needed)


def files_of(package, below):
    """{path without leading slash: what is there, links as they are} of what the package has below that folder."""
    listed = map(pathlib.Path, _output("dpkg-query", "-L", package).split("\n"))
    return {str(path).removeprefix("/"): path for path in listed if path.is_relative_to(below) and (path.is_symlink() or path.is_file())}


@functools.cache
def architecture():
    return _output("dpkg", "--print-architecture").strip()


@functools.cache
def version_of(package):
    rows = dict(line.split() for line in _output("dpkg-query", "-W", "-f=${Architecture} ${Version}\n", package).splitlines())
    return rows.get(architecture()) or rows["all"]


def oldest_glibc(*programs):
    """The newest version of glibc's symbols that one of the files uses, as text: "2.36"."""
    versions = set()
    for program in programs:
        versions |= set(re.findall(r"GLIBC_(\d+(?:\.\d+)+)", _output("objdump", "-T", program)))
    return max(versions, key=lambda text: tuple(map(int, text.split("."))))
