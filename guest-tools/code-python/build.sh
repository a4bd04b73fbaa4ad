#!/bin/sh
# Builds the two engines for Python: `build.sh HERE ROOT`, with componentize-py in HERE/venv, into HERE.
set -eu
here=$1
root=$2
cd "$root/guest-tools/code-python"

# `zoneinfo` reads its zones from this package while the engine is initialised.
rm -rf "$here/packages" "$here/wit"
mkdir -p "$here/packages"
cp -r "$here"/venv/lib/python3*/site-packages/tzdata "$here/packages"

"$here/venv/bin/componentize-py" -q -d "$root/wit" -w code \
    componentize --stub-wasi engine -p . -p "$here/packages" -o "$here/code-python.wasm"

# The world of the connected engine, with the interfaces of WASI in the version that the host links.
wasi=$(cargo metadata --locked --format-version 1 --manifest-path "$root/Cargo.toml" |
    grep -o '"manifest_path":"[^"]*/wasmtime-wasi-http-[0-9.]*/Cargo.toml"' | head -n 1 | cut -d '"' -f 4)
host=$(sed -n '1s/.*@\(.*\);/\1/p' "$root/wit/types.wit")
mkdir -p "$here/wit"
cp "$root"/wit/*.wit "$here/wit"
cp -r "$(dirname "$wasi")/wit/deps" "$here/wit/deps"
cat >"$here/wit/code-python.wit" <<'WORLD'
world code-python-connected {
    include code-connected;
    import wasi:http/outgoing-handler@0.2.12;
}
WORLD

"$here/venv/bin/componentize-py" -q -d "$here/wit" -w code-python-connected \
    --import-interface-name wasi:http/types@0.2.12=types \
    --import-interface-name "motor:host/types@$host=motor_host_types" \
    componentize engine -p . -p "$here/packages" -o "$here/code-python-connected.wasm"
