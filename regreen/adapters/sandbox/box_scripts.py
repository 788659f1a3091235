"""The shell scripts that run inside a box: POSIX sh and tar only, so that any image will do.

They run as the box's own user inside the boundary: only their exit status is used, and a tree that
deceives them affects its own box alone.
"""

from __future__ import annotations

from regreen.domain.ports import BOX_HOME

WORK_DIR = "/work"
HOME_DIR = BOX_HOME
ENV_DIR = "/env"

# Runs argv in a directory; a missing command is 127 and a missing directory 126, as in any shell.
RUN_SCRIPT = 'cd -- "$1" || exit 126; shift; exec "$@"'

# The tree comes on standard input, or as the file $2. Files that the setup left in the tree are in the environment's tar files:
# `new` under the tree (the tree wins), `changed` over it where the tree still holds what the setup saw ("-": holds nothing).
# Each of the latter is noted in the home directory with what the tree held, so that git can be shown the tree as it came.
_LAY_OUT = """
set -e
cd /work
mkdir -p "$HOME" 2>/dev/null || true
[ -f /env/.regreen/new.tar ] && tar -xf /env/.regreen/new.tar
[ -f /env/.regreen/home.tar ] && tar -xf /env/.regreen/home.tar -C "$HOME"
if [ "$1" = tree ]; then tar -xf "${2:--}"; fi
if [ -s /env/.regreen/changed.sums ]; then
  rm -rf "$HOME/.regreen-laid"
  mkdir -p "$HOME/.regreen-laid"
  while read -r sum number name; do
    if [ "$sum" = - ]; then
      if [ -e "$name" ] || [ -h "$name" ]; then continue; fi
      mkdir -p "${name%/*}"
    else
      now=$(sha256sum < "$name" 2>/dev/null) || continue
      if [ "${now%% *}" != "$sum" ]; then continue; fi
      cp -p "$name" "$HOME/.regreen-laid/$number"
    fi
    cp -p "/env/.regreen/changed/$number" "$name"
    echo "$number $name" >> "$HOME/.regreen-laid/list"
  done < /env/.regreen/changed.sums
fi
"""
UNPACK_SCRIPT = f"{_LAY_OUT}exit 0\n"

# Resets a used box, then runs argv ($4 ...) in a directory ($3). Every process but this one ends (if $1 is
# "kill": else the caller has ended them); all that
# this user can write to is emptied, and a remaining file is an error; the tree comes on standard input; then the mark
# ($2) is printed, so that the host knows where the command's own output and time begin.
RESET_SCRIPT = f"""
if [ "$1" = kill ]; then kill -9 -1 2>/dev/null; fi
shift
places=
for place in /work /tmp /dev/shm /dev/mqueue {HOME_DIR}; do [ -d "$place" ] && places="$places $place"; done
find $places -mindepth 1 -delete 2>/dev/null || {{
  chmod -R u+rwx $places 2>/dev/null
  find $places -mindepth 1 -delete
  if [ -n "$(find $places -mindepth 1 2>&1 | head -n 1)" ]; then echo "the box cannot be emptied"; exit 1; fi
}}
chmod 755 /work {HOME_DIR} 2>/dev/null
command -v ipcrm >/dev/null && ipcrm -a 2>/dev/null
set -- tree "" "$@"
{_LAY_OUT}
set +e
shift 2
printf '%s\\n' "$1"
cd -- "$2" || exit 126
shift 2
exec "$@" </dev/null
"""

# Unpacks the tree (where $2 is "tree"), runs the setup ($1), and keeps what it left in the tree and in the home directory. Tools
# that ask git for a version get a repository with one high tag: real history never enters a box. A few new files that git would
# show as untracked are kept as changes: a later check may ask for them.
SETUP_SCRIPT = """
mkdir -p /env/.regreen /tmp/regreen
cd /work || exit 70
if [ "$2" = tree ]; then tar -xf - || exit 71; fi
find . -mindepth 1 | LC_ALL=C sort > /tmp/regreen/before
find . -type f -exec sha256sum {} + > /tmp/regreen/sums 2>/dev/null
if command -v git >/dev/null && [ ! -e .git ]; then
  (
    export GIT_AUTHOR_NAME=regreen GIT_AUTHOR_EMAIL=regreen@localhost
    export GIT_COMMITTER_NAME=regreen GIT_COMMITTER_EMAIL=regreen@localhost
    git init -q . && git add -A -f . && git commit -q -m tree --no-verify && git tag -a -m tree v999.0.0
  ) >/dev/null 2>&1
  fresh=1
fi
if command -v bash >/dev/null; then shell=bash; else shell=sh; fi
"$shell" -c "$1" </dev/null
status=$?
[ "$status" = 0 ] || exit "$status"
cd /work || exit 70
rm -rf /env/.regreen; mkdir -p /env/.regreen/changed
: > /tmp/regreen/loose
if [ -n "$fresh" ]; then
  printf '%s\\n' '.regreen*' node_modules .venv .tox .nox __pycache__ '*.egg-info' >> .git/info/exclude
  git -c core.quotePath=false ls-files --others --exclude-standard 2>/dev/null | head -n 201 | sed 's|^|./|' > /tmp/regreen/untracked
  while read -r name; do
    if [ -f "$name" ] && [ ! -h "$name" ]; then printf '%s\\n' "$name"; fi
  done < /tmp/regreen/untracked | LC_ALL=C sort > /tmp/regreen/loose
  if [ "$(wc -l < /tmp/regreen/untracked)" -gt 200 ]; then : > /tmp/regreen/loose; fi
  rm -rf .git
fi
find . -name __pycache__ -prune -o -mindepth 1 -print | LC_ALL=C sort > /tmp/regreen/after
LC_ALL=C comm -13 /tmp/regreen/before /tmp/regreen/after | LC_ALL=C comm -23 - /tmp/regreen/loose > /tmp/regreen/new
if [ -s /tmp/regreen/new ]; then
  tar -cf /env/.regreen/new.tar --no-recursion -T /tmp/regreen/new || exit 72
fi
number=0
sha256sum -c /tmp/regreen/sums 2>/dev/null | sed -n 's/: FAILED$//p' > /tmp/regreen/differs
: > /env/.regreen/changed.sums
while read -r name; do
  [ -f "$name" ] || continue
  sum=$(grep -F -- "  $name" /tmp/regreen/sums | head -n 1)
  number=$((number + 1))
  cp -p -- "$name" "/env/.regreen/changed/$number" || exit 72
  echo "${sum%% *} $number $name" >> /env/.regreen/changed.sums
done < /tmp/regreen/differs
while read -r name; do
  number=$((number + 1))
  cp -p -- "$name" "/env/.regreen/changed/$number" || exit 72
  echo "- $number $name" >> /env/.regreen/changed.sums
done < /tmp/regreen/loose
rm -rf "$HOME/.cache" "$HOME/.npm/_cacache"
if [ -n "$(ls -A "$HOME" 2>/dev/null)" ]; then
  tar -cf /env/.regreen/home.tar -C "$HOME" . || exit 72
fi
rm -rf /tmp/regreen
exit 0
"""

# Creates the environment's own Python ($1 is the interpreter) with pip, from what the interpreter bundles.
# An image's own packages stay visible ($2 is --system-site-packages there).
VENV_SCRIPT = """
mkdir -p /env/bin
command -v "$1" >/dev/null || exit 0
"$1" -m venv $2 /env >/dev/null 2>&1 || "$1" -m venv $2 --without-pip /env || exit 73
[ -x /env/bin/python ] || exit 73
exit 0
"""

# Prints at most $2 bytes of the regular file $1 if no part of its path is a symbolic link; else fails. The check is on the
# opened file: a running program may put another file at the path at any moment.
READ_SCRIPT = """
[ -f "$1" ] || exit 3
exec 3<"$1" || exit 3
[ -f /proc/self/fd/3 ] || exit 3
real=$(readlink -- /proc/self/fd/3 && echo x) || exit 3
[ "$real" = "$1
x" ] || exit 3
exec head -c "$2" <&3
"""

WRITE_SCRIPT = 'cd -- "$1" && exec tar -xf -'
