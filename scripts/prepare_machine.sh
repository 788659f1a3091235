#!/bin/sh
# Names the programs that Regreen needs and this machine lacks, and installs them: at once where there are root
# rights, with sudo where somebody at a terminal agrees; otherwise it prints the one command to paste.
#
# usage: prepare_machine.sh [setup|demo|test|ci]
# Exit 0: all that is required is there. Exit 3: something required is missing; the last line says what to do.
# Runs in any POSIX shell (dash, busybox).
set -u

# level: from which goal on a program is wanted. required: without it nothing works; wanted: less works.
# program  level  need      apt              dnf                pacman      apk              brew         for
TABLE='
git        setup  required  git              git                git         git              git          reading_repositories
make       setup  required  make             make               make        make             make         building
python3    setup  required  python3          python3            python      python3          python@3.13  Python_3.11_or_newer
venv       setup  required  python3-venv     python3            python      python3          python@3.13  virtual_environments
bwrap      demo   wanted    bubblewrap       bubblewrap         bubblewrap  bubblewrap       -            the_sandbox_without_Docker
prlimit    demo   wanted    util-linux       util-linux         util-linux  util-linux-misc  -            the_sandbox_without_Docker
setpriv    demo   wanted    util-linux       util-linux         util-linux  setpriv          -            the_sandbox_without_Docker
redis-server test wanted    redis-server     redis              redis       redis            redis        tests_of_services
memcached  test   wanted    memcached        memcached          memcached   memcached        memcached    tests_of_services
initdb     test   wanted    postgresql       postgresql-server  postgresql  postgresql       postgresql   tests_of_the_PostgreSQL_store
dockerd    ci     wanted    docker.io        moby-engine        docker      docker           -            the_sandbox
iptables   ci     wanted    iptables         iptables           iptables    iptables         -            the_sandbox
'

level() { case "$1" in setup) echo 0 ;; demo) echo 1 ;; test) echo 2 ;; ci) echo 3 ;; *) echo "usage: $0 [setup|demo|test|ci]" >&2; exit 2 ;; esac; }

has_program() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ]; }

# The Python that the Makefile takes: the first of these that is new enough.
new_python() {
  for name in "${PYTHON:-python3}" python3.13 python3.12 python3.11 python3.14 python3; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo "$name"; return 0; fi
  done
  return 1
}

is_there() {
  case "$1" in
    python3) new_python >/dev/null ;;
    # Without a Python nobody can say; Debian needs another package than Python's own for it.
    venv) python=$(new_python) && "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ;;
    # An engine that answers is a sandbox already; on macOS there is no other.
    bwrap | prlimit | setpriv) has_program "$1" || engine_answers ;;
    initdb) has_program initdb || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 ;;
    redis-server) has_program redis-server || has_program valkey-server ;;
    *) has_program "$1" ;;
  esac
}

engine_answers() {
  command -v docker >/dev/null 2>&1 && docker version >/dev/null 2>&1
}

find_manager() {
  for name in apt-get dnf pacman apk brew; do
    if command -v "$name" >/dev/null 2>&1; then echo "$name"; return 0; fi
  done
  return 1
}

# The command that installs the packages, for a shell to run; the word before it (sudo) is the caller's.
install_command() {
  before="$1"; shift
  case "$manager" in
    apt-get) echo "${before}apt-get update -qq && ${before}env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $*" ;;
    dnf) echo "${before}dnf install -y -q $*" ;;
    pacman) echo "${before}pacman -S --needed --noconfirm $*" ;;
    apk) echo "${before}apk add -q $*" ;;
    brew) echo "brew install $*" ;;
  esac
}

# Where python3 is there and too old: the newest other one that the package manager has.
other_python() {
  command -v python3 >/dev/null 2>&1 || return 1
  for version in 3.13 3.12 3.11; do
    case "$manager" in
      apt-get) apt-cache show "python$version-venv" >/dev/null 2>&1 && echo "python$version-venv" && return 0 ;;
      dnf) dnf -q list "python$version" >/dev/null 2>&1 && echo "python$version" && return 0 ;;
      *) return 1 ;;
    esac
  done
  return 1
}

add_once() {
  case " $packages " in *" $1 "*) ;; *) packages="$packages $1" ;; esac
}

# Sets missing (lines to show), packages, and required (whether nothing works without them).
look() {
  missing="" packages="" required=no
  while read -r program from need apt dnf pacman apk brew what; do
    [ -n "$program" ] && [ "$(level "$from")" -le "$wanted" ] || continue
    is_there "$program" && continue
    case "$manager" in apt-get) package=$apt ;; dnf) package=$dnf ;; pacman) package=$pacman ;; apk) package=$apk ;; brew) package=$brew ;; *) package=- ;; esac
    [ "$program" != python3 ] || package=$(other_python || echo "$package")
    missing="$missing  $program ($(echo "$what" | tr _ ' '))
"
    [ "$need" = required ] && required=yes
    [ "$package" = - ] || add_once "$package"
  done <<TABLE_END
$TABLE
TABLE_END
}

wanted=$(level "${1:-setup}") || exit 2
manager=$(find_manager) || manager=""
look
[ -n "$missing" ] || exit 0
printf 'missing on this machine:\n%s' "$missing" >&2

if [ -n "$packages" ]; then
  # shellcheck disable=SC2086 # a list of words
  if [ "$(id -u)" = 0 ] || [ "$manager" = brew ]; then
    command=$(install_command "" $packages)
  else
    command=$(install_command "sudo " $packages)
  fi
  agreed=no
  if [ "$(id -u)" = 0 ]; then
    agreed=yes
  elif [ -t 0 ] && [ -t 2 ] && { [ "$manager" = brew ] || command -v sudo >/dev/null 2>&1; }; then
    printf 'install now with\n  %s\n[y/N] ' "$command" >&2
    read -r answer && case "$answer" in [yY]*) agreed=yes ;; esac
  fi
  if [ "$agreed" = yes ]; then
    printf 'installing:%s\n' "$packages" >&2
    sh -c "$command" >/dev/null || printf 'the installation failed; by hand:\n  %s\n' "$command" >&2
    look
    [ -n "$missing" ] || exit 0
    printf 'still missing:\n%s' "$missing" >&2
  else
    printf 'to install it, paste:\n  %s\n' "$command" >&2
  fi
fi
if [ "$required" = no ]; then
  echo "going on without: what needs it is left out, and said" >&2
  exit 0
fi
[ -n "$packages" ] || echo "install it by hand: no package manager that is known here (apt, dnf, pacman, apk, brew)" >&2
exit 3
