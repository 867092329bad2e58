#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: serial.sh WORKDIR [STEP…]
#
# Every command of the example's build, one after another: the reference for what rebuild-model
# does, and its peer in the benchmark. A step reads other steps' outputs and writes only into
# WORKDIR/out/STEP, which must not exist before. Without STEP all of them run, in order.
#
# Tools: bash, git, python3.11 with pip, uv, npm, tar, g++, emcc. All but the first three steps run
# without network where the kernel allows it.
set -euo pipefail

ESBUILD=0.28.2
ESBUILD_SHA256=9573bb2233aab0f9ea7647d5cca9726113cc1768de61d66b17267f4db84488f6
# The C version of the 0.1.15.post2 wheel, as its own library reports it.
TVM_FFI_VERSION=0.1.16
DECODER_COMMIT=a7de7a209e2e40d48859f11f66981f8dd5adfbc1
OVERLAY_COMMIT=563b2ab7d604754c5f4ea4b69b76045eb4bc1578
MAX_BATCH_SIZE=1
STEPS=(wheels esbuild decoder tvm tvm-ffi tvm-patched objects-ffi objects-vm objects-runtime
  ffi-native python compile weights link browser artifacts)

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "${1:?usage: serial.sh WORKDIR [STEP…]}/out" "$1/tmp"
work=$(cd "$1" && pwd)
out=$work/out
shift

for tool in git python3.11 uv npm tar g++ em++ em-config; do
  command -v "$tool" >/dev/null || { echo "serial.sh: $tool is not installed" >&2; exit 1; }
done
python=$(python3.11 -c 'import sys; print(sys.executable)')
uv=$(command -v uv)
scrubbed=(PATH=/usr/local/bin:/usr/bin:/bin LC_ALL=C.UTF-8 TZ=UTC SOURCE_DATE_EPOCH=0
  PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0 PYTHONNOUSERSITE=1)
if unshare -n true 2>/dev/null; then
  isolate=(unshare -n)
elif unshare -rn true 2>/dev/null; then
  isolate=(unshare -rn)
else
  isolate=()
fi

# A frozen cache, such as Debian's, holds every library already and is never written; any other
# gets a private place, for a shared one may be read-only or raced for.
if [ "$(env -i "${scrubbed[@]}" em-config FROZEN_CACHE)" != True ]; then
  scrubbed+=("EM_CACHE=$work/em-cache")
fi

# in_clean [NAME=VALUE…] COMMAND…: with nothing of the caller's environment, offline.
in_clean() {
  env -i "${scrubbed[@]}" HOME="$work/tmp" TMPDIR="$work/tmp" "${isolate[@]}" env "$@"
}

# in_network COMMAND…: the same, but with network and what is needed to reach a registry.
in_network() {
  local passed=() name
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE \
    NODE_EXTRA_CA_CERTS PIP_CERT PIP_INDEX_URL npm_config_registry; do
    if [ -n "${!name:-}" ]; then passed+=("$name=${!name}"); fi
  done
  env -i "${scrubbed[@]}" "${passed[@]}" HOME="$work/tmp" TMPDIR="$work/tmp" "$@"
}

wheels() {
  in_network "$python" -m pip download --quiet --disable-pip-version-check --no-cache-dir \
    --require-hashes --no-deps --only-binary :all: -r "$here/requirements.txt" -d "$out/wheels"
}

esbuild() {
  local archive=$out/esbuild/esbuild-linux-x64-$ESBUILD.tgz
  in_network npm pack --silent --pack-destination "$out/esbuild" \
    "@esbuild/linux-x64@$ESBUILD" >/dev/null
  echo "$ESBUILD_SHA256  $archive" | sha256sum --check --quiet
  tar -xzf "$archive" -C "$out/esbuild"
}

decoder() {
  local git=(in_clean GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
    git -c core.autocrlf=false -c protocol.file.allow=always -c advice.detachedHead=false)
  "$here/set-up.sh" >/dev/null
  "${git[@]}" clone --quiet --no-checkout "$here/.repositories/decoder.git" "$out/decoder"
  "${git[@]}" -C "$out/decoder" checkout --quiet "$DECODER_COMMIT"
  "${git[@]}" -C "$out/decoder" submodule --quiet update --init
  "${git[@]}" -C "$out/decoder/3rdparty/overlay" checkout --quiet "$OVERLAY_COMMIT"
  rm -rf "$out/decoder/.git" "$out"/decoder/3rdparty/*/.git
}

# unpack WHEEL DIRECTORY [PREFIX…]: a wheel is a zip archive; with prefixes, only those members.
unpack() {
  in_clean "$python" -c 'import sys, zipfile
wheel, directory, *prefixes = sys.argv[1:]
archive = zipfile.ZipFile(wheel)
names = [name for name in archive.namelist() if name.startswith(tuple(prefixes or [""]))]
archive.extractall(directory, names)' "$@"
}

# Without the compiler's library, which is nine tenths of the wheel.
tvm() { unpack "$out"/wheels/apache_tvm-*.whl "$out/tvm" tvm/include/ tvm/src/ tvm/web/; }

tvm-ffi() { unpack "$out"/wheels/apache_tvm_ffi-*.whl "$out/tvm-ffi"; }

tvm-patched() {
  local tree=$out/tvm-patched patch
  mkdir -p "$tree/tvm/src" "$tree/tvm/web" "$tree/tvm/3rdparty/tvm-ffi"
  cp -R "$out/tvm/tvm/include" "$tree/tvm/"
  cp -R "$out/tvm/tvm/src/runtime" "$tree/tvm/src/"
  cp -R "$out"/tvm/tvm/web/{emcc,src,tsconfig.json} "$tree/tvm/web/"
  cp -R "$out"/tvm-ffi/tvm_ffi/{include,src} "$tree/tvm/3rdparty/tvm-ffi/"
  cp -R "$out/decoder/3rdparty/overlay/tvm/." "$tree/tvm/"
  cp "$out/decoder/3rdparty/adapter/tvmjs_runtime_wasi.js" "$tree/tvm/web/src/"
  for patch in tvm-runtime-pack tvm-browser-memory; do
    # Outside any repository, or git would skip the files of an enclosing one and still exit 0.
    (cd "$tree" && in_clean GIT_CEILING_DIRECTORIES="$out" git apply "$here/patches/$patch.patch")
  done
}

# objects STEP SOURCE…: compile web/emcc/SOURCE.cc. Relative include paths keep the place of the
# tree out of the objects. -Os compiles in two thirds of -O2's time and the kernels run on the GPU.
objects() {
  local step=$1 source
  shift
  for source in "$@"; do
    (cd "$out/tvm-patched/tvm" && in_clean em++ -Os -std=c++17 -Wno-ignored-attributes \
      -I. -Iinclude -I3rdparty/tvm-ffi/include -c "web/emcc/$source.cc" -o "$out/$step/$source.o")
  done
}

objects-ffi() { objects objects-ffi ffi_pack; }

objects-vm() { objects objects-vm vm_pack; }

objects-runtime() { objects objects-runtime wasm_runtime webgpu_runtime tvmjs_support; }

# The Python package of tvm-ffi with its library built here. Unoptimized: it serves one compile.
ffi-native() {
  local native=$out/decoder/3rdparty/overlay/native library=tvm_ffi/lib/libtvm_ffi.so
  cp -R "$out/tvm-ffi/." "$out/ffi-native/"
  (cd "$out/tvm-ffi/tvm_ffi" && in_clean g++ -O0 -std=c++17 -fPIC -fvisibility=hidden \
    -fvisibility-inlines-hidden -DTVM_FFI_EXPORTS -DTVM_FFI_USE_LIBBACKTRACE=0 \
    -DTVM_FFI_BACKTRACE_ON_SEGFAULT=0 "-ffile-prefix-map=$native=native" -I. -Iinclude \
    -shared -s -Wl,-soname,libtvm_ffi.so "$native/tvm_ffi.cc" -o "$out/ffi-native/$library")
  in_clean "$python" "$native/check.py" "$out/ffi-native/$library" "$TVM_FFI_VERSION" \
    TVMFFIFunctionCall TVMFFIFunctionGetGlobal TVMFFITypeGetOrAllocIndex TVMFFIObjectDecRef \
    TVMFFIErrorMoveFromRaised TVMFFITensorFromDLPackVersioned TVMFFIEnvModLookupFromImports
}

# uv would note the time of each wheel file in the environment.
python() {
  local pure=(UV_NO_INSTALLER_METADATA=1 "$uv")
  in_clean "${pure[@]}" venv --quiet --no-config --no-cache --relocatable --python "$python" \
    "$out/python/venv"
  in_clean "${pure[@]}" pip install --quiet --no-config --no-cache --offline --link-mode copy \
    --python "$out/python/venv/bin/python" --require-hashes --no-deps --no-index \
    --find-links "$out/wheels" -r "$here/requirements.txt"
}

# decoder_module NAME ARGUMENT…: run a module of the decoder's package.
decoder_module() {
  (cd "$out/decoder" && in_clean PYTHONPATH="$out/ffi-native" "$out/python/venv/bin/python" \
    -m "decoder.$1" --config config.json "${@:2}")
}

compile() { decoder_module compile --max-batch-size "$MAX_BATCH_SIZE" --out "$out/compile"; }

weights() { decoder_module weights --out "$out/weights"; }

link() {
  in_clean em++ -O1 -Wl,--strip-all --no-entry -sSTANDALONE_WASM=1 -sWASM_BIGINT=1 \
    -sALLOW_MEMORY_GROWTH=1 -sERROR_ON_UNDEFINED_SYMBOLS=1 \
    --js-library "$out/decoder/3rdparty/overlay/link/imports.js" \
    "$out/objects-runtime/"{wasm_runtime,webgpu_runtime,tvmjs_support}.o \
    "$out/objects-ffi/ffi_pack.o" "$out/objects-vm/vm_pack.o" \
    "$out/compile/"{lib0,devc}.o -o "$out/link/decoder-webgpu.wasm"
}

browser() {
  (cd "$out/tvm-patched/tvm/web" && in_clean "$out/esbuild/package/bin/esbuild" src/index.ts \
    --bundle --format=cjs --platform=browser --log-level=warning \
    --external:{fs,path,ws,perf_hooks,crypto} "--external:node:*" \
    --outfile="$out/browser/tvmjs.cjs")
}

artifacts() {
  cp -R "$out/weights" "$out/artifacts/weights"
  cp "$out/link/decoder-webgpu.wasm" "$out/browser/tvmjs.cjs" "$out/artifacts/"
}

for step in "${@:-${STEPS[@]}}"; do
  mkdir "$out/$step"
  TIMEFORMAT="$step: %R s, CPU %U + %S s"
  time "$step"
done
