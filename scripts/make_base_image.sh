#!/bin/sh
# A base for the App's image made of this machine's own files (Debian or Ubuntu), where no image can be pulled:
#   sh scripts/make_base_image.sh regreen-machine-base && make image BASE=regreen-machine-base
# It holds the files of the packages below and of what they depend on, as dpkg lists them, and no configuration of the machine's.
set -eu
name=${1:?the name of the image}
wanted="python3 python3-venv git ca-certificates bash coreutils passwd base-files base-passwd dash debianutils libc-bin mawk sed grep findutils tar gzip"
packages=$(apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances $wanted | grep '^[a-z0-9]' | sort -u | while read -r each; do dpkg -s "$each" >/dev/null 2>&1 && echo "$each"; done)
rest=$(mktemp -d)
trap 'rm -rf "$rest"' EXIT
mkdir -p "$rest/etc" "$rest/tmp" "$rest/root" "$rest/var/tmp"
chmod 1777 "$rest/tmp" "$rest/var/tmp"
cp /usr/share/base-passwd/passwd.master "$rest/etc/passwd"
cp /usr/share/base-passwd/group.master "$rest/etc/group"
{
  dpkg -L $packages | sort -u | while read -r path; do
    case $path in /etc/ssl/*|/usr/share/doc/*|/usr/share/man/*|/usr/share/locale/*|/.|/proc*|/sys*|/dev*|/tmp|/root|/home*) continue ;; esac
    if [ -e "$path" ] || [ -L "$path" ]; then printf '%s\n' "${path#/}"; fi  # a false last line would end it all
  done
  for path in bin sbin lib lib64 usr/lib64; do if [ -e "/$path" ]; then printf '%s\n' "$path"; fi; done
  find -L /etc/ssl/certs -maxdepth 1 -name ca-certificates.crt | cut -c2-
  find /etc/alternatives /usr/bin/awk | cut -c2-
  find /usr/lib/python3.[0-9]* -name '*.pyc' | cut -c2-  # no package lists them, and without them each process compiles all that it imports
} | sed -E 's,^(bin|sbin|lib|lib64)/,usr/\1/,' | grep -vxE 'etc|tmp|root|var/tmp|etc/passwd|etc/group' | sort -u > "$rest/list"  # /bin is a link to /usr/bin here
tar -C / --no-recursion -cf "$rest/base.tar" -T "$rest/list"
tar -C "$rest" -rf "$rest/base.tar" etc tmp root var/tmp
docker import --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8' "$rest/base.tar" "$name"
docker run --rm "$name" sh -ec 'ldconfig; python3 -c "import ssl, venv, ensurepip; assert ssl.create_default_context().get_ca_certs()"; git --version'
