#!/bin/sh
# Installs MyClaw for one user, updates it, or removes it. Nothing is written to the place of installation before the
# signature of the list of digests, the digest of the archive and its version have been checked.
#
#   sh install.sh [--to DIR] [--from PLACE] [--downgrade] [--new-key]
#   sh install.sh --uninstall [--to DIR]
#
#   --to DIR       where to: DIR/bin, DIR/share; default ~/.local
#   --from PLACE   the directory or the https:// address with the files of the release
#   --downgrade    allow a version that is older than the installed one
#   --new-key      allow a release that another key has signed than the installed one
#   --uninstall    remove what this script has installed; `myclaw uninstall` removes what the program has written
#
# Needs tar, openssl 3 or ssh-keygen (OpenSSH 8.2 or newer), and for an address curl or wget.
set -eu
umask 022

from='@URL@'
to=
key='@PEM@'
ssh_key='@SSH@'
# The minor version of the GNU C library 2 that the programs for it need.
glibc='@GLIBC@'
action=install
may_downgrade=
may_change_key=

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
    --to | --from)
      [ $# -gt 1 ] || fail "$1 needs a value"
      [ "$1" = --to ] && to=$2 || from=$2
      shift
      ;;
    --downgrade) may_downgrade=1 ;;
    --new-key) may_change_key=1 ;;
    --uninstall) action=uninstall ;;
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0"
      exit 0
      ;;
    *) fail "there is no option $1; --help shows all" ;;
  esac
  shift
done
[ -n "$to" ] || [ -n "${HOME:-}" ] || fail "HOME is not set; name a directory with --to"
[ -n "$to" ] || to=$HOME/.local
case $to in /*) ;; *) to=$PWD/$to ;; esac
own=$to/share/myclaw
# Begins the names of temporary directories. The number of the process follows.
places=${TMPDIR:-/tmp}/myclaw-install-

# Removes the temporary directories of scripts that were killed.
remove_abandoned() {
  for left in "$places"*; do
    process=${left#"$places"}
    [ ! -d "$left" ] || [ -L "$left" ] || [ ! -O "$left" ] || kill -0 "${process%%-*}" 2> /dev/null || rm -rf "$left"
  done
}

# Removes the directories of a list that are empty. The deepest comes last in it, and is removed first.
remove_directories() {
  echo "$1" | sed '1!G;h;$!d' | while read -r _ name; do
    case $name in
      '') ;;
      .) rmdir "$to" 2> /dev/null || true ;;
      *) rmdir "$to/$name" 2> /dev/null || true ;;
    esac
  done
}

uninstall() {
  [ -f "$own/manifest" ] || fail "there is no $own/manifest, so this script has installed nothing in $to; --to names another place"
  directories=
  while read -r kind name; do
    case $name in /* | *..*) fail "$own/manifest names $name, which is outside of $to" ;; esac
    case $kind in
      f) rm -f "$to/$name" "$to/$name".new.[0-9]* ;;
      d) directories="$directories
d $name" ;;
    esac
  done < "$own/manifest"
  rm -f "$own/manifest"
  remove_directories "$directories"
  echo "removed MyClaw from $to"
  [ ! -d "${HOME:-/nonexistent}/.myclaw" ] || echo "what it has written is still in $HOME/.myclaw"
}

# Gets a file of the release. If it cannot, $why says why: the same sentences as those of `myclaw update`.
fetch() {
  case $from in
    https://*)
      if command -v curl > /dev/null; then
        why=$(curl --proto '=https' --fail --silent --show-error --location --connect-timeout 20 --speed-limit 1 --speed-time 20 \
          --output "$work/$1" "$from/$1" 2>&1) && return
        case $? in
          1) why="the server redirects to an address that does not begin with https://" ;;
          28) why="the server does not answer, or sends nothing more" ;;
          *) why=$(echo "$why" | sed -n '1s/^curl: ([0-9]*) //p') ;;
        esac
      elif command -v wget > /dev/null; then
        # It would follow a redirect to an address without https.
        why=$(wget --no-verbose --max-redirect=0 --timeout=20 --tries=1 --output-document "$work/$1" "$from/$1" 2>&1) && return
        case $? in
          4) why="the server does not answer, or sends nothing more" ;;
          5) why="the certificate of the server is not trusted here" ;;
          8) why="the server has no such file, or redirects, which is followed with curl only" ;;
          *) why=$(echo "$why" | sed -n 1p) ;;
        esac
      else
        fail "install curl or wget, or download the files and name their directory with --from"
      fi
      return 1
      ;;
    *)
      why=$(cp "$from/$1" "$work/$1" 2>&1) && return
      why=$(echo "$why" | sed -n 1p)
      why=${why##*: }
      return 1
      ;;
  esac
}

# Says that a file of the release is missing. The second argument is what follows from that.
missing() {
  fail "cannot get $1 from $from: $why$2. Nothing was installed"
}

verify() {
  bad="the signature of SHA256SUMS is wrong: the list of digests was changed, or another key has signed it. Nothing was installed"
  # The first of the two programs that is there decides.
  case $(openssl version 2> /dev/null) in
    "OpenSSL "[3-9]*)
      fetch SHA256SUMS.sig || missing SHA256SUMS.sig ", and without it the list of digests has no signature"
      printf '%s\n' "$key" > "$work/key.pem"
      openssl pkeyutl -verify -pubin -inkey "$work/key.pem" -rawin -in "$work/SHA256SUMS" -sigfile "$work/SHA256SUMS.sig" \
        > /dev/null 2>&1 || fail "$bad"
      ;;
    *)
      command -v ssh-keygen > /dev/null || fail "install openssl 3 or ssh-keygen: one of them checks the signature"
      fetch SHA256SUMS.sshsig || missing SHA256SUMS.sshsig ", and without it the list of digests has no signature"
      echo "myclaw $ssh_key" > "$work/signers"
      ssh-keygen -Y verify -f "$work/signers" -I myclaw -n '@NAMESPACE@' -s "$work/SHA256SUMS.sshsig" < "$work/SHA256SUMS" \
        > /dev/null 2>&1 || fail "$bad"
      ;;
  esac
}

digest() {
  if command -v sha256sum > /dev/null; then
    sha256sum "$1"
  else
    shasum -a 256 "$1"
  fi | cut -d ' ' -f 1
}

# Prints the archive of the list that runs here.
archive() {
  case $(uname -m) in
    x86_64 | amd64) processor=x86_64 ;;
    aarch64 | arm64) processor=aarch64 ;;
    *) fail "there is no program for the processor $(uname -m)" ;;
  esac
  case $(uname -s) in
    Linux)
      found=$(getconf GNU_LIBC_VERSION 2> /dev/null | sed -n 's/^glibc 2\.\([0-9]*\).*/\1/p')
      targets=$processor-unknown-linux-musl
      [ "${found:-0}" -lt "$glibc" ] || targets="$processor-unknown-linux-gnu $targets"
      ;;
    Darwin) targets=$processor-apple-darwin ;;
    *) fail "there is no program for $(uname -s)" ;;
  esac
  for target in $targets; do
    name=$(awk -v end="-$target.tar.gz" '
      substr($2, length($2) - length(end) + 1) == end && $2 ~ /^myclaw-[0-9]+\.[0-9]+\.[0-9]+-/ {print $2}' "$work/SHA256SUMS")
    case $name in
      '') ;;
      *' '* | *'
'*) fail "SHA256SUMS has more than one archive for $target" ;;
      *) echo "$name" && return ;;
    esac
  done
  fail "the release has no program for this machine ($targets)${found:+; its C library is glibc 2.$found, and 2.$glibc is needed}"
}

# Whether the first version is older than the second.
is_older() {
  awk -v a="$1" -v b="$2" 'BEGIN {
    split(a, x, "."); split(b, y, ".")
    for (i = 1; i <= 3; i++) if (x[i] + 0 != y[i] + 0) exit !(x[i] + 0 < y[i] + 0)
    exit 1 }'
}

# Runs a command that may fail for a reason of the machine. The first argument is what it does, the second what to do about a failure.
try() {
  does=$1
  then=$2
  shift 2
  why=$("$@" 2>&1) && return
  why=$(echo "$why" | sed -n 1p)
  fail "cannot $does: ${why##*: }; $then"
}

make_directory() {
  [ -d "$to/$1" ] && return
  case $1 in */*) make_directory "${1%/*}" ;; esac
  try "make the directory $to/$1" "choose another place with --to" mkdir "$to/$1"
  made="$made
d $1"
}

# Puts a file there as a whole, also while the old one runs.
put() {
  new=$to/$2.new.$$
  again="what was there before is still there. Correct that and repeat the command"
  try "write $to/$2" "$again" cp "$1" "$new"
  try "write $to/$2" "$again" chmod "$3" "$new"
  try "write $to/$2" "$again" mv -f "$new" "$to/$2"
  # What a script left that was killed.
  for left in "$to/$2".new.[0-9]*; do
    [ ! -e "$left" ] || kill -0 "${left##*.}" 2> /dev/null || rm -f "$left"
  done
}

# Removes what only this run needs, and after a failure what it has begun.
clean() {
  rm -rf "$work"
  [ -z "$new" ] || rm -f "$new"
  # Without the list nothing would ever remove them.
  [ -f "$own/manifest" ] || remove_directories "$made"
}

install() {
  [ -n "$from" ] || fail "name the directory or the address of the release with --from"
  from=${from%/}
  case $from in
    https://*) ;;
    *://*) fail "$from is no place of a release; --from is a directory, or an address that begins with https://" ;;
    /*) ;;
    *) from=$PWD/$from ;;
  esac
  work=$(mktemp -d "$places$$-XXXXXX" 2> /dev/null) || fail "cannot make a directory in ${TMPDIR:-/tmp}; name another place with TMPDIR=DIR"
  made=
  new=
  trap clean EXIT
  trap 'exit 130' INT TERM HUP
  fetch SHA256SUMS || missing SHA256SUMS "; --from names the directory or the address of a release"
  verify
  name=$(archive)
  version=${name#myclaw-}
  version=${version%%-*}
  if [ -f "$own/version" ]; then
    installed=$(cat "$own/version")
    if [ -z "$may_downgrade" ] && is_older "$version" "$installed"; then
      fail "$version is older than the installed $installed, so it was not installed; --downgrade allows it"
    fi
    if [ -z "$may_change_key" ] && [ "$(cat "$own/release-key.pem")" != "$key" ]; then
      fail "another key has signed this release than the installed one. If the makers have announced that, --new-key allows it"
    fi
  elif [ -e "$to/bin/myclaw" ]; then
    fail "$to/bin/myclaw is there, and this script did not install it; remove it, or choose another place with --to"
  fi
  fetch "$name" || missing "$name" ""
  expected=$(awk -v name="$name" '$2 == name {print $1}' "$work/SHA256SUMS")
  [ "$(digest "$work/$name")" = "$expected" ] || fail "$name has another digest than the signed list. Nothing was installed"
  try "unpack $name in $work" "nothing was installed. TMPDIR=DIR takes another place than ${TMPDIR:-/tmp}" tar -xzf "$work/$name" -C "$work"
  files=$work/${name%.tar.gz}
  said=$("$files/myclaw" --version 2> "$work/why") || {
    why=$(sed -n 1p "$work/why")
    fail "the program does not run: ${why##*: }. Nothing was installed. If ${TMPDIR:-/tmp} is no place for programs, TMPDIR=DIR takes another"
  }
  [ "$said" = "myclaw $version" ] || fail "the program of $name says that it is \`$said\`. Nothing was installed"

  printf '%s\n' "$key" > "$files/release-key.pem"
  echo "$version" > "$files/version"
  # Where `myclaw update` looks for the next one.
  echo "$from" > "$files/from"
  # From, to, mode.
  {
    echo "myclaw bin/myclaw 755"
    for page in "$files"/man/*.1; do echo "man/${page##*/} share/man/man1/${page##*/} 644"; done
    echo "completions/myclaw.bash share/bash-completion/completions/myclaw 644"
    echo "completions/_myclaw share/zsh/site-functions/_myclaw 644"
    echo "completions/myclaw.fish share/fish/vendor_completions.d/myclaw.fish 644"
    for one in LICENSE-MIT LICENSE-APACHE THIRD-PARTY-LICENCES.txt release-key.pem version from; do echo "$one share/myclaw/$one 644"; done
  } > "$work/plan"
  if [ ! -d "$to" ]; then
    try "make the directory $to" "choose another place with --to" mkdir -p "$to"
    made="d ."
  fi
  while read -r _ place _; do make_directory "${place%/*}"; done < "$work/plan"
  # The list comes first, so that an installation that was broken off can be removed.
  {
    [ ! -f "$own/manifest" ] || cat "$own/manifest"
    echo "$made"
    awk '{print "f " $2}' "$work/plan"
  } | awk 'NF && !seen[$0]++' > "$work/manifest"
  put "$work/manifest" share/myclaw/manifest 644
  while read -r source place mode; do put "$files/$source" "$place" "$mode"; done < "$work/plan"
  echo "installed MyClaw $version in $to"
  case :$PATH: in *:"$to/bin":*) ;; *) echo "add it to your PATH: export PATH=\"$to/bin:\$PATH\"" ;; esac
  echo "try it: myclaw run \"List the files here\""
}

remove_abandoned
$action
