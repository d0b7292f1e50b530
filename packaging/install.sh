#!/bin/sh
# Installs Spillway from a release: a folder that `./dev package` filled, or the address of its checksum file.
set -eu

usage() {
  cat <<'EOT'
Usage: install.sh [OPTION...] FROM

Installs Spillway. As root on Debian it installs the .deb; otherwise it unpacks the archive below the prefix, for which no root is needed.
Every file is compared with the release's checksums before anything is installed.

FROM is one of
  DIR                                   a folder with the files of one release
  DIR/spillway_VERSION.sha256           the checksum file of a release, where the folder has several
  https://HOST/.../spillway_VERSION.sha256  the address of the checksum file; the other files are next to it

Options:
  --key FILE     public key (OpenPGP, not armored): the checksum file must have a signature of it, FROM's name with .sig
  --archive      unpack the archive, also as root on Debian
  --prefix DIR   where the archive goes: DIR/lib/spillway-VERSION and DIR/bin/spillway (default: ~/.local, for root /usr/local)
  --print        print what would be done, and do nothing
  --help         print this text

Examples:
  sh install.sh build/packages
  sh install.sh --prefix ~/tools build/packages
  sh install.sh --key spillway.gpg https://example.com/spillway/spillway_0.2.0.sha256

Exit codes: 0 installed, 1 not installed, 2 wrong command line.
EOT
}

say() { printf '%s\n' "$*"; }
die() { printf '%s\n' "install: $*" >&2; exit 1; }
wrong() { printf '%s\n' "install: $*; see install.sh --help" >&2; exit 2; }
have() { command -v "$1" >/dev/null 2>&1; }

key='' archive='' prefix='' print='' from=''
while [ $# -gt 0 ]; do
  case $1 in
    --key | --prefix)
      [ $# -gt 1 ] || wrong "$1 needs a value"
      if [ "$1" = --key ]; then key=$2; else prefix=$2; fi
      shift
      ;;
    --archive) archive=yes ;;
    --print) print=yes ;;
    --help | -h) usage; exit 0 ;;
    -*) wrong "unknown option $1" ;;
    *) [ -z "$from" ] || wrong "one release at a time: $from or $1"; from=$1 ;;
  esac
  shift
done
[ -n "$from" ] || wrong "a release is needed: a folder or the address of a checksum file"
[ -z "$key" ] || [ -r "$key" ] || die "--key $key: no such file"
have sha256sum || die "sha256sum is missing (package coreutils)"

temporary=$(mktemp -d)
unfinished=''  # a folder below the prefix that is not complete yet
clean_up() { rm -rf "$temporary" ${unfinished:+"$unfinished"}; }
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Copies the file NAME of the release to the temporary folder.
fetch() { # NAME
  case $base in
    http://* | https://*)
      if have curl; then
        curl --fail --silent --show-error --location --proto '=http,https' --proto-redir "$redirects" --output "$temporary/$1" "$base/$1"
      elif have wget; then
        wget --quiet --output-document="$temporary/$1" "$base/$1"
      else
        die "curl or wget is needed to download $base/$1"
      fi || die "$base/$1 was not downloaded"
      ;;
    *) cp "$base/$1" "$temporary/$1" 2>/dev/null || die "$base/$1: no such file" ;;
  esac
}

# --- The checksum file, and its signature ---
redirects='=https'
case $from in
  https://*.sha256) base=${from%/*} sums=${from##*/} ;;
  http://*.sha256)
    [ -n "$key" ] || die "$from: anyone on the way can change what http carries; use https, or --key to check a signature"
    base=${from%/*} sums=${from##*/} redirects='=http,https'
    ;;
  *://*) wrong "$from is not the address of a checksum file (https://.../spillway_VERSION.sha256)" ;;
  *)
    if [ -d "$from" ]; then
      base=$from sums=''
      for file in "$from"/spillway_*.sha256; do
        [ -e "$file" ] || die "$from holds no spillway_VERSION.sha256; ./dev package makes one"
        [ -z "$sums" ] || die "$from holds several releases, $sums and ${file##*/}; name one of these files"
        sums=${file##*/}
      done
    elif [ -f "$from" ]; then
      base=$(dirname "$from") sums=$(basename "$from")
    else
      die "$from: no such folder or file"
    fi
    ;;
esac
case $sums in
  spillway_*[!A-Za-z0-9._+~-]*) die "$sums: not a name of a checksum file" ;;
  spillway_?*.sha256) version=${sums#spillway_} version=${version%.sha256} ;;
  *) die "$sums: expected spillway_VERSION.sha256" ;;
esac
fetch "$sums"
if [ -n "$key" ]; then
  have gpgv || die "gpgv is needed to check a signature (package gpgv)"
  fetch "$sums.sig"
  case $key in /*) ;; *) key=$PWD/$key ;; esac
  gpgv --quiet --keyring "$key" "$temporary/$sums.sig" "$temporary/$sums" 2>"$temporary/reason" ||
    die "$sums has no valid signature of $key: $(tail -n 1 "$temporary/reason")"
  say "The signature of $sums is valid."
fi

# --- The file for this machine ---
machine=$(uname -m)
case $machine in
  x86_64) machine=amd64 ;;
  aarch64) machine=arm64 ;;
esac
user=$(id -u)
if [ -z "$archive" ] && [ -z "$prefix" ] && [ "$user" = 0 ] && have dpkg; then
  file=spillway_${version}_$machine.deb
else
  archive=yes file=spillway_${version}_linux_$machine.tar.gz
fi
# The second column of the checksum file, compared as a whole: no name leads out of the folder.
awk -v name="$file" '$2 == name && length($1) == 64' "$temporary/$sums" >"$temporary/sum"
[ "$(wc -l <"$temporary/sum")" = 1 ] || die "$sums does not list $file: this release has nothing for this machine ($machine)"

if [ -n "$archive" ]; then
  if [ -z "$prefix" ]; then
    if [ "$user" = 0 ]; then prefix=/usr/local; else prefix=${HOME:?}/.local; fi
  fi
  folder=$prefix/lib/spillway-$version link=$prefix/bin/spillway
  if [ -e "$link" ] || [ -L "$link" ]; then
    case $(readlink "$link" || true) in
      ../lib/spillway-*/bin/spillway) ;;
      *) die "$link exists and this script did not make it; remove it, or choose another --prefix" ;;
    esac
  fi
fi
if [ -n "$print" ]; then
  if [ -n "$archive" ]; then say "would unpack $file to $folder and link $link to it"; else say "would install $file by dpkg, and what it depends on by apt-get"; fi
  exit 0
fi
fetch "$file"
(cd "$temporary" && sha256sum --check --status sum) || die "$file is not what $sums says: it was damaged or changed; download it again"

# --- Installation ---
if [ -z "$archive" ]; then
  if have apt-get; then
    chmod 755 "$temporary" # apt-get reads the file as a user of its own
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet "$temporary/$file" || die "$file was not installed; the lines above say why"
  else
    dpkg -i "$temporary/$file" || die "$file was not installed; the lines above say why"
  fi
  say "Spillway $version is installed. Start a cluster of this machine:"
  say "    systemctl enable --now spillway-up     (or, in this terminal: spillway up)"
  exit 0
fi
mkdir -p "$prefix/lib" "$prefix/bin" || die "$prefix cannot be written; choose another --prefix"
if [ -e "$folder" ]; then
  say "$folder is there already; only the link is made."
else
  unfinished=$(mktemp -d "$prefix/lib/.spillway-XXXXXX")
  tar -xzf "$temporary/$file" -C "$unfinished" --strip-components=1 --no-same-owner || die "$file cannot be unpacked"
  chmod 755 "$unfinished"
  "$unfinished/bin/spillway" --version >/dev/null || die "the program does not run on this machine; README in the archive says what it needs"
  mv "$unfinished" "$folder"
  unfinished=''
fi
# A link is replaced by a rename: the command exists at every moment.
ln -s "../lib/spillway-$version/bin/spillway" "$link.$$"
mv -f "$link.$$" "$link"
say "Spillway $version is installed: $link"
case :$PATH: in
  *":$prefix/bin:"*) command=spillway ;;
  *) command=$link; say "$prefix/bin is not on the PATH; add it, or call the program by its path." ;;
esac
if [ "$user" = 0 ]; then
  say "Start a cluster of this machine:  $command up"
else
  say "Try it without root:              $command simulate zone-outage"
  say "Ask a cluster what is wrong:      $command explain"
fi
