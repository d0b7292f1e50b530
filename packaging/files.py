"""The content of a package: paths with a mode and either bytes or the target of a link, written in one order and with
one time."""
import dataclasses
import io
import os
import pathlib
import tarfile


@dataclasses.dataclass(frozen=True)
class File:
    data: bytes = b""
    mode: int = 0o644
    link: str = ""  # the target; the file is a symbolic link
    owner: int = 0  # user and group by number
    folder: bool = False


class Files:
    """Paths without a leading slash. Folders come by themselves, with mode 0755, unless they are added."""

    def __init__(self):
        self.entries = {}

    def add(self, path, data=b"", mode=0o644):
        self.entries[path] = File(data.encode() if isinstance(data, str) else data, mode)

    def add_link(self, path, target):
        self.entries[path] = File(link=target, mode=0o777)

    def add_folder(self, path, mode=0o755, owner=0):
        self.entries[path] = File(mode=mode, owner=owner, folder=True)

    def in_order(self):
        """(path, File) of everything, each folder before what is in it."""
        everything = dict(self.entries)
        for path in self.entries:
            for parent in pathlib.PurePosixPath(path).parents:
                if str(parent) != ".":
                    everything.setdefault(str(parent), File(mode=0o755, folder=True))
        return sorted(everything.items())

    def write_below(self, root, epoch):
        """Writes them as real files; owners are left to the caller that packs them."""
        for path, file in self.in_order():
            place = root / path
            if file.folder:
                place.mkdir(parents=True, exist_ok=True)
            elif file.link:
                place.symlink_to(file.link)
            else:
                place.write_bytes(file.data)
            if not file.link:
                place.chmod(file.mode)
        for path, _ in [*reversed(self.in_order()), (".", None)]:
            os.utime(root / path, (epoch, epoch), follow_symlinks=False)

    def tar(self, epoch, prefix=""):
        """The bytes of an uncompressed tar; `prefix` stands before every path."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for path, file in self.in_order():
                info = tarfile.TarInfo(prefix + path)
                info.mtime, info.mode, info.uid, info.gid = epoch, file.mode, file.owner, file.owner
                info.type = tarfile.DIRTYPE if file.folder else tarfile.SYMTYPE if file.link else tarfile.REGTYPE
                info.linkname = file.link
                info.size = len(file.data)
                archive.addfile(info, io.BytesIO(file.data))
        return out.getvalue()
