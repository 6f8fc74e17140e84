# Set-up and build for the `shoal` script, which sources this file: install what is missing, configure,
# build. Everything here writes to standard error, so that a program's --json stays clean.
# Expects: root (the repository). Sets: preset, build_dir.
# shellcheck shell=bash disable=SC2154

preset=${SHOAL_PRESET:-release}
build_dir=$root/build/$preset

say() { printf 'shoal: %s\n' "$*" >&2; }

# Ends the script: set-up or build failed.
die() {
  say "$@"
  exit 3
}

# Prints the progress of a build as a bar: progress_bar DONE ALL SECONDS. Steps differ in length, so the time
# left is a rough one, and says nothing before the build has gone on for ten seconds.
progress_bar() {
  local done=$1 all=$2 seconds=$3 width=24 filled left time='' bar
  filled=$((done * width / all))
  printf -v bar '%*s' "$filled" ''
  printf -v left '%*s' $((width - filled)) ''
  if ((seconds >= 10 && done > 0)); then
    local rest=$((seconds * (all - done) / done))
    if ((rest >= 90)); then time=", about $(((rest + 30) / 60)) min left"; else time=", about $rest s left"; fi
  fi
  printf '%s%s %d of %d steps%s%s' "${bar// /#}" "${left// /.}" "$done" "$all" "$time" "${comes_next:+; then: $comes_next}"
}

# Shows a tool's output as one changing line on a terminal, and otherwise as a line every 15 seconds. Lines
# that match `$2`, an extended regular expression, are progress; others are shown as they come. All goes
# into the file `$1`. Lines of ninja, '[12/345] ...', become a bar with the time left and `$comes_next`.
show_progress() {
  local log=$1 pattern=$2 line terminal=no next=15 start=$SECONDS pending=no columns
  columns=$(stty size 2>/dev/null <&2)
  columns=${columns##* }
  ((columns > 20)) 2>/dev/null || columns=79
  ((columns -= 1))
  [ -t 2 ] && [ "${TERM:-dumb}" != dumb ] && terminal=yes
  : >"$log"
  while IFS= read -r line || [ -n "$line" ]; do
    printf '%s\n' "$line" >>"$log"
    if ! [[ $line =~ $pattern ]]; then
      [ "$pending" = yes ] && printf '\r\033[K' >&2
      pending=no
      printf '%s\n' "$line" >&2
      continue
    fi
    [ "$terminal" = yes ] || ((SECONDS - start >= next)) || continue
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] &&
      line=$(progress_bar "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" $((SECONDS - start)))
    if [ "$terminal" = yes ]; then
      printf '\r\033[K%.*s' "$columns" "$line" >&2
      pending=yes
    else
      printf '  %.100s\n' "$line" >&2
      next=$((SECONDS - start + 15))
    fi
  done
  [ "$pending" = yes ] && printf '\r\033[K' >&2
  return 0
}

# Prints the packages of the lists in "$@" that are not installed.
missing_packages() {
  local list wanted=() installed
  for list in "$@"; do
    while read -r package _; do
      case $package in '' | '#'*) ;; *) wanted+=("$package") ;; esac
    done <"$root/tools/bootstrap/packages_$list.txt"
  done
  installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package}\n' "${wanted[@]}" 2>/dev/null |
    sed -n 's/^installed://p' | tr '\n' ' ')"
  for package in "${wanted[@]}"; do
    [[ $installed == *" $package "* ]] || printf '%s ' "$package"
  done
}

# Installs what is missing from the package lists named in "$@" (run, test).
install_missing() {
  local missing as_root=() status
  { command -v dpkg-query && command -v apt-get; } >/dev/null ||
    die "this is not Debian: install the libraries that tools/bootstrap/packages_*.txt name, then build with cmake --preset $preset"
  missing=$(missing_packages "$@")
  missing=${missing% }
  [ -z "$missing" ] && return 0
  if [ "$(id -u)" != 0 ]; then
    as_root=(sudo)
    # Ask for a password only where somebody can type one, and before the progress line starts.
    if ! command -v sudo >/dev/null || { ! sudo -n true 2>/dev/null && ! { [ -t 0 ] && [ -t 2 ] && sudo -v; }; }; then
      die "Debian packages are missing and neither root nor sudo is at hand; as root: apt-get install $missing"
    fi
  fi
  say "installing Debian packages: $missing"
  # shellcheck disable=SC2086 # one word per package
  "${as_root[@]}" "$root/tools/bootstrap/install_packages" $missing 2>&1 |
    show_progress "$root/build/install.log" ''
  status=${PIPESTATUS[0]}
  if [ "$status" != 0 ]; then
    tail -n 15 "$root/build/install.log" >&2
    die "installing failed (build/install.log has it all); as root: apt-get update && apt-get install $missing"
  fi
}

# Installs npm for the page of runs, once, and continues without it if that fails. A machine may have another Node than Debian's.
# Debian's npm cannot be installed beside it, so only the command's presence counts.
install_page_tools() {
  local tried=$root/build/npm_tried
  command -v npm >/dev/null && return 0
  [ -e "$tried" ] && return 0
  (install_missing page) ||
    say "going on without the page of runs (report.html, --dashboard): install Node 18 and npm, and remove build/npm_tried"
  touch "$tried" 2>/dev/null
  return 0
}

# Configures the preset if it never was, or if its inputs have changed. Ninja itself notices a changed
# CMakeLists.txt, but not the presets, the path or the options. "$@" are options for cmake. A tree that
# was configured with more options stays as it is. A folder for releases that begins here compiles several
# sources at once, which takes less time (tools/cmake/unity.cmake). Afterwards its cache decides.
configure() {
  local stamp_file=$build_dir/configured stamp fresh=()
  stamp="$root $(cksum <"$root/CMakePresets.json") $*"
  [ -f "$build_dir/build.ninja" ] && [ -f "$stamp_file" ] && [[ $(<"$stamp_file") == "$stamp"* ]] && return 0
  # A moved tree has another path in its cache, which cmake refuses.
  if ! grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build_dir/CMakeCache.txt"; then
    fresh=(--fresh)
    [ "$preset" != release ] || fresh+=(-DSHOAL_UNITY=ON)
  fi
  mkdir -p "$build_dir"
  say "configuring build/$preset"
  if ! (cd "$root" && cmake --preset "$preset" "${fresh[@]}" "$@") >"$build_dir/configure.log" 2>&1 </dev/null; then
    tail -n 30 "$build_dir/configure.log" >&2
    die "configuring failed; build/$preset/configure.log has it all"
  fi
  printf '%s\n' "$stamp" >"$stamp_file"
}

# As many compilers at once as there are cores and memory for (libtorch's headers take over 1 GB each).
jobs() {
  local cores available
  cores=$(nproc)
  available=$(awk '/^MemAvailable:/ { print int($2 / 1500000) }' /proc/meminfo)
  [ "${available:-1}" -ge 1 ] || available=1
  echo $((available < cores ? available : cores))
}

# Builds the targets in "$@".
build() {
  local status start=$SECONDS
  # The first build takes minutes; a newcomer should know why, and that there is a shorter way.
  [ -e "$build_dir/.ninja_log" ] ||
    say "building for the first time, which takes minutes; later builds compile only what changed (docs/install.md: a package without a compiler)"
  ninja -C "$build_dir" -j "$(jobs)" "$@" 2>&1 </dev/null |
    show_progress "$build_dir/build.log" '^(\[[0-9]+/[0-9]+\]|ninja: (no work to do|Entering directory)|-- )'
  status=${PIPESTATUS[0]}
  [ "$status" = 0 ] || die "the build failed; build/$preset/build.log has it all"
  ((SECONDS - start < 5)) || say "built in $((SECONDS - start)) s"
}

# Holds the lock of this tree, so that two commands started together do not build over each other.
lock_build() {
  { mkdir -p "$root/build" && exec 9>"$root/build/lock"; } 2>/dev/null || die "cannot write in $root/build"
  flock -n 9 || {
    say "waiting for another build of this tree"
    flock 9
  }
}
unlock_build() { exec 9>&-; }
