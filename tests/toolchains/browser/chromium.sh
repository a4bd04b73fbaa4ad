#!/bin/sh
# Installs Debian's chromium where it is missing and packages may be installed.
set -e
command -v chromium >/dev/null && exit 0
[ "$(id -u)" = 0 ] && [ -z "$MOTOR_NO_INSTALL" ] || { echo "chromium is not installed: apt-get install chromium" >&2; exit 1; }
echo 'installing the Debian package chromium, in which the page is tested (`--no-install` skips that)'
apt-get update --quiet
DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends chromium
