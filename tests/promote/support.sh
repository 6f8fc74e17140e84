# The common part of the tests of promoted scenarios: an inventory measured here, and the checks of its results.
# Expects: shoal (the program).
# shellcheck shell=bash disable=SC2154
. "$(dirname "${BASH_SOURCE[0]}")/../support/script.bash"

# Below the ports that connections are given.
port=$((20000 + RANDOM % 11000))

# A scenario that trains for EPOCHS epochs, 0: until it is ended.
write_scenario() {
  cat >"$folder/s.yaml" <<YAML
name: reef
seed: 1
stop_time: 10min
network: {detection_time: 2s}
devices: {fast: {samples_per_second: 150, step_time: 2ms}}
peers: {home: {count: 2, up: 20Mbit, down: 50Mbit, device: fast}}
workload: {kind: quadratic, parameters: 4000}
training: {target_batch: 64, micro_batch: 4, epochs: $1, min_refresh: 50ms, max_refresh: 400ms, optimizer: {kind: sgd, learning_rate: 0.1}}
averaging: {matchmaking_time: 500ms, round_timeout: 20s, sender_timeout: 5s}
record: {metrics_interval: 200ms}
faults: [{kill: machine, select: home-1, at: 1min}]
YAML
}

# One shard and three peers, all on this machine, measured as an operator would, one at a time. They compute no faster than is said here.
write_inventory() {
  "$shoal" probe --listen "127.0.0.1:$port" --insecure 2>/dev/null &
  children+=("$!")
  local name at=$port
  for name in lab-0 lab-1 lab-2 lab-3; do
    at=$((at + 1))
    local more=() other=lab-0
    [ "$name" = lab-0 ] && more=(--shard) other=lab-1
    until_there 30 "measurement of $name" "$shoal" probe "$folder/s.yaml" --name "$name" --address "127.0.0.1:$at" --insecure --time 500ms \
      --to "$other=127.0.0.1:$port" --up 20Mbit --down 50Mbit "${more[@]}" -o "$folder/hosts.yaml" >/dev/null 2>"$folder/probe.log"
  done
  [ "$(grep -c '^    serialize: ' "$folder/hosts.yaml")" = 4 ] || fail "a host did not measure how fast it copies: $(cat "$folder/hosts.yaml")"
  [ "$(grep -c '^    boot_time: ' "$folder/hosts.yaml")" = 3 ] || fail "a host did not measure how long a node starts: $(cat "$folder/hosts.yaml")"
  # The values are those that a machine can keep up with when it runs all nodes at once.
  sed -i 's/samples_per_second: .*/samples_per_second: 60/; s/jitter: .*/jitter: 0/; s/step_time: .*/step_time: 2ms/' "$folder/hosts.yaml"
}

epoch_of() { awk -v name="$1" '$1 == name { print $4 }' <<<"$status"; }
