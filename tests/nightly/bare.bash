# The common part of the tests that install the Debian package elsewhere. Expects: folder, build, root.
# shellcheck shell=bash disable=SC2154

# Skips the test where no bare Debian can be made.
need_bare_debian() {
  local tool
  for tool in cpack dpkg-deb dpkg-shlibdeps mmdebstrap unshare chroot; do
    command -v "$tool" >/dev/null || skip "$tool is missing (Debian packages cmake, dpkg-dev, mmdebstrap and util-linux)"
  done
  [ "$(id -u)" = 0 ] || skip "a bare Debian needs root"
  unshare -m true 2>/dev/null || skip "this machine lets root make no mount namespace"
  [ -x "$build/bin/shoal" ] || skip "the program is not built in $build"
}

# Sets `package` to the path of a new package of the build.
make_package() {
  (cd "$folder" && cpack --config "$build/CPackConfig.cmake" -B "$folder/packed") >"$folder/cpack.log" 2>&1 || fail "cpack"
  package=$(ls "$folder"/packed/shoal_*.deb) || fail "no package"
}

# Fails unless the output of quickstart in file $1 has the event hash of README.md, which is that of OpenBLAS's loops for
# Haswell. Sets `hash`.
compare_hash() {
  local shown
  hash=$(sed -n 's/^ *event hash *//p' "$1")
  shown=$(sed -n 's/^ *event hash *//p' "$root/README.md")
  [ -n "$hash" ] || fail "no event hash"
  if ! grep -qw avx2 /proc/cpuinfo; then
    echo "this processor has no AVX2: the event hash $hash is not compared"
  elif [ "$hash" = "$shown" ]; then
    echo "event hash $hash, as in README.md"
  else
    fail "the event hash is '$hash', but README.md has '$shown'"
  fi
}

# Runs a shell command in $folder/root, with /proc and /dev.
inside() {
  unshare -mpf --kill-child sh -c '
    mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" &&
    exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 OPENBLAS_CORETYPE=Haswell DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy=$http_proxy} sh -c "$2"' \
    - "$(realpath "$folder/root")" "$1" </dev/null
}
