#!/bin/sh
# Makes bevies.tar.xz: fs/, a file system with files in bevies as releases before parity made them (docs/FORMAT.md
# "Older files"), whose daemons were killed, so that redo logs have entries; and files/, what its files hold.
# older_files_test.py starts the present release on it. Made once, with the programs of commit 192d91a; kept to show
# what is in it.
#
#   make_bevies.sh BIN OUT     BIN: folder of the older programs, crash_client among them
set -eu
bin=$(cd "$1" && pwd)
out=$(realpath "$2")
work=$(mktemp -d)
trap '"$bin/pif" down "$work/fs" >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
mkdir "$work/files"
cd "$work/files"

numbered() {  # COUNT WIDTH TEXT: lines of WIDTH bytes
  seq -f "%0$(($2 - 1)).0f" 1 "$1" | sed "s/^00/$3/"
}
numbered 1003 100 ab > short && printf 'the short last record' >> short
numbered 2500 100 cd > pages && truncate -s 204800 pages  # 50 records of 4 KiB
seq 1 3000 | awk '{ s = ""; for (i = 0; i < $1 % 7; ++i) s = s $1 " "; print s }' > lines
printf 'no line end' >> lines
numbered 7 100 ef > few
numbered 1 100 gh > one
: > empty
numbered 95 100 ij > appended
printf 'a\n\nbc\n' > appended_lines
numbered 40 100 kl > plain

export PIF="$work/fs" HOME="$work" XDG_CONFIG_HOME="$work/config" XDG_STATE_HOME="$work/state"
"$bin/pif" up -n 4 "$work/fs"
put() { "$bin/pif" put -q "$@"; }
put --bevy 2 --record-length 100 short few one empty appended /
put --bevy 2 --record-length 4096 pages /
put --bevy 2 --lines lines appended_lines /
put --record-length 100 plain /
numbered 77 100 mn > more && "$bin/pif" append -q more /appended && cat more >> appended
printf 'half a record' > more && "$bin/pif" append -q more /appended && cat more >> appended
printf 'and the rest of it, and more' > more && "$bin/pif" append -q more /appended && cat more >> appended
printf 'd\n\n\nlonger\n' > more && "$bin/pif" append -q more /appended_lines && cat more >> appended_lines
rm more
overwrite() { echo "1 overwrite /$1 7 $2 $3" | "$bin/crash_client" "$work/fs"; "$bin/pif" cat "/$1" > "$1"; }
overwrite short 5 90
overwrite short 1000 3
overwrite pages 17 6
for file in *; do "$bin/pif" cat "/$file" | cmp - "$file"; done
"$bin/pif" fsck
cat "$work"/fs/*/lock | xargs kill -9
cd "$work"
rm -rf fs/*/*.log fs/*/lock fs/run/*
tar --sort=name --owner=0 --group=0 --mtime=@0 -cJf "$out" files fs
