# For tests in which Prometheus scrapes: sourced by a script with `set -u`. Without Prometheus the script ends as skipped.
# $folder is a new one, and all in "${children[@]}" is killed at the end.
for tool in prometheus promtool; do
  if ! command -v "$tool" >/dev/null; then
    echo "SKIPPED: $tool is missing (Debian package prometheus)"
    exit 0
  fi
done
. "$(dirname "${BASH_SOURCE[0]}")/../../support/script.bash"

# find_metrics LOG: makes $target the host:port at which a program serves metrics that says so in LOG.
find_metrics() {
  until_there 20 "address of the metrics in $1" grep -qs 'metrics: http://127.0.0.1:' "$1"
  target=$(sed -n 's!^.*metrics: http://\(.*\)/metrics$!\1!p' "$1")
}

# start_prometheus TARGET ...: makes $server its address.
start_prometheus() {
  local targets="" each
  for each in "$@"; do targets+="${targets:+, }\"$each\""; done
  cat >"$folder/prometheus.yml" <<YAML
global: {scrape_interval: 500ms, scrape_timeout: 500ms}
scrape_configs:
  - {job_name: shoal, static_configs: [{targets: [$targets]}]}
YAML
  # Port 0 is no choice here: Prometheus would not say which one it got.
  server=
  local attempt port child
  for attempt in 1 2 3 4 5; do
    port=$((20000 + (RANDOM + attempt) % 12000))
    prometheus --config.file="$folder/prometheus.yml" --storage.tsdb.path="$folder/data" --web.listen-address="127.0.0.1:$port" \
      >"$folder/prometheus.log" 2>&1 &
    child=$!
    children+=("$child")
    for _ in $(seq 200); do
      grep -qs "Server is ready" "$folder/prometheus.log" && server="http://127.0.0.1:$port" && return
      kill -0 "$child" 2>/dev/null || break
      sleep 0.1
    done
  done
  fail "Prometheus does not start"
}

# has QUERY: the API answers the query with at least one series. has_all COUNT QUERY: with that many.
has() {
  promtool query instant "$server" "$1" 2>/dev/null | grep -q '=>'
}
has_all() {
  [ "$(promtool query instant "$server" "$2" 2>/dev/null | grep -c '=>')" -eq "$1" ]
}
