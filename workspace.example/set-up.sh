#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Turn the folders under repositories/ into bare git repositories under .repositories/, with the
# same commit ids on every machine, and print commit and tree of each. Safe to run again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

scratch=$(mktemp -d "$PWD/.repositories.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# No configuration of the user or the machine, and no clock, reaches a commit.
git=(env -i PATH="$PATH" HOME="$scratch" LC_ALL=C TZ=UTC
  GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_INDEX_FILE=
  GIT_AUTHOR_NAME=rebuild-model GIT_AUTHOR_EMAIL=rebuild-model@example.invalid
  GIT_COMMITTER_NAME=rebuild-model GIT_COMMITTER_EMAIL=rebuild-model@example.invalid
  "GIT_AUTHOR_DATE=1767225600 +0000" "GIT_COMMITTER_DATE=1767225600 +0000"
  git -c core.autocrlf=false -c core.fileMode=false -c core.excludesFile=/dev/null
  -c core.attributesFile=/dev/null -c commit.gpgSign=false -c safe.directory=*)

# in_repository NAME COMMAND…: git with that bare repository, its folder and a scratch index.
in_repository() {
  local name=$1
  shift
  "${git[@]/#GIT_INDEX_FILE=/&$scratch/$name.index}" \
    --git-dir="$scratch/$name.git" --work-tree="repositories/$name" "$@"
}

create() {
  "${git[@]}" init --quiet --bare --template= --object-format=sha1 --initial-branch=main \
    "$scratch/$1.git"
  # As the large hosts do: a commit can be fetched by its id.
  in_repository "$1" config uploadpack.allowReachableSHA1InWant true
}

# stage NAME [PATHSPEC…]: put the folder's files into the index, all as plain 100644 files.
stage() {
  local name=$1
  shift
  in_repository "$name" add -- . ':(exclude,glob)**/__pycache__/**' "$@"
}

# commit NAME MESSAGE [PARENT]: commit the index and move main there; prints the id.
commit() {
  local tree id
  tree=$(in_repository "$1" write-tree)
  id=$(in_repository "$1" commit-tree ${3:+-p "$3"} -m "$2" "$tree")
  in_repository "$1" update-ref refs/heads/main "$id"
  echo "$id"
}

create adapter
stage adapter
adapter=$(commit adapter "WASI adapter")

# The commit that decoder records lacks one header, so the build works only when the overlay is
# overridden with the newer commit, which is what the example's pins do.
create overlay
stage overlay ':(exclude)tvm/include/tvm/support/cuda'
recorded=$(commit overlay "Headers and runtime packs")
stage overlay
overlay=$(commit overlay "Profiler ranges" "$recorded")

create decoder
stage decoder
modules=$(printf '[submodule "3rdparty/%s"]\n\tpath = 3rdparty/%s\n\turl = ../%s.git\n' \
  adapter adapter adapter overlay overlay overlay |
  in_repository decoder hash-object -w --stdin --no-filters)
in_repository decoder update-index --add --cacheinfo "100644,$modules,.gitmodules" \
  --cacheinfo "160000,$adapter,3rdparty/adapter" --cacheinfo "160000,$recorded,3rdparty/overlay"
decoder=$(commit decoder "Tiny decoder")

report() {
  printf '%-17s commit %s tree %s\n' "$1" "$3" "$(in_repository "$2" rev-parse "$3^{tree}")"
}
report adapter adapter "$adapter"
report overlay-recorded overlay "$recorded"
report overlay overlay "$overlay"
report decoder decoder "$decoder"

rm -f "$scratch"/*.index
chmod 755 "$scratch"
rm -rf .repositories
mv "$scratch" .repositories
trap - EXIT
