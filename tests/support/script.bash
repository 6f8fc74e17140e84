# The common part of tests that are scripts. At the end a new $folder and all processes in "${children[@]}" are
# removed. Before that,
# clean_up is called if it exists.
# shellcheck shell=bash
folder=$(mktemp -d)
children=()
finish() {
  local child
  for child in "${children[@]}"; do kill -KILL "$child" 2>/dev/null; done
  wait 2>/dev/null
  type clean_up >/dev/null 2>&1 && clean_up
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 1' INT TERM
fail() {
  echo "FAILED: $*"
  tail -n 20 "$folder"/*.log 2>/dev/null
  exit 1
}
skip() {
  echo "SKIPPED: $*"
  exit 0
}

# Ends the test as skipped unless the nightly tests were asked for.
nightly() {
  [ -n "${SHOAL_NIGHTLY-}" ] || skip "nightly; ./shoal test --nightly runs it"
}

# until_there SECONDS WHAT COMMAND ...: repeats the command until it succeeds.
until_there() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ $SECONDS -lt $deadline ] || fail "no $what"
    sleep 0.1
  done
}
