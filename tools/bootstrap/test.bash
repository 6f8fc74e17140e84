# `./shoal test`, sourced by the `shoal` script after setup.bash.
# shellcheck shell=bash disable=SC2154

# Prints, from ctest's JUnit file on standard input, what was skipped and why, what failed, and the line
# 'N passed, N failed, N skipped'. A test that is disabled or could not start counts as failed.
summarize_junit() {
  awk '
    function unescape(text) {
      gsub(/&quot;/, "\"", text); gsub(/&apos;/, "\047", text); gsub(/&lt;/, "<", text)
      gsub(/&gt;/, ">", text); gsub(/&#[^;]*;/, "", text); gsub(/&amp;/, "\\&", text)
      return text
    }
    function attribute(line, key) {
      if (!match(line, " " key "=\"[^\"]*\"")) return ""
      return unescape(substr(line, RSTART + length(key) + 3, RLENGTH - length(key) - 4))
    }
    /<testcase / {
      name = attribute($0, "name"); status = attribute($0, "status"); message = reason = ""
    }
    /<skipped / { message = attribute($0, "message") }
    match($0, /SKIPPED: .*/) && reason == "" {
      reason = substr($0, RSTART + 9); sub(/<\/system-out>.*/, "", reason); reason = unescape(reason)
    }
    /<\/testcase>/ {
      if (status == "run") passed++
      else if (message ~ /^SKIP_/) skips[++skipped] = name ": " (reason == "" ? "no reason given" : reason)
      else failures[++failed] = name (message == "" ? "" : ": " message)
    }
    END {
      if (skipped) print "\nSkipped:"
      for (i = 1; i <= skipped; i++) print "  " skips[i]
      if (failed) print "\nFailed:"
      for (i = 1; i <= failed; i++) print "  " failures[i]
      print ""
      printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    }'
}

run_tests() {
  local options=() argument junit status summary
  unset SHOAL_NIGHTLY
  for argument in "$@"; do
    if [ "$argument" = --nightly ]; then
      export SHOAL_NIGHTLY=1
    else
      options+=("$argument")
    fi
  done

  lock_build
  install_missing run test
  install_page_tools
  configure -DSHOAL_BUILD_TESTS=ON
  comes_next="the tests"
  build all
  unlock_build

  junit=$build_dir/tests.xml
  rm -f "$junit"
  ctest --test-dir "$build_dir" --output-on-failure --no-tests=error --timeout 300 -j "$(nproc)" \
    --test-output-size-passed 65536 --output-junit "$junit" "${options[@]}" </dev/null
  status=$?
  if [ ! -s "$junit" ]; then
    say "ctest did not run the tests"
    printf '\n0 passed, 0 failed, 0 skipped\n'
    return 3
  fi
  summary=$(summarize_junit <"$junit")
  printf '%s\n' "$summary"
  [ "$status" = 0 ] || return 3
  [[ $summary == *", 0 failed, "* ]] || return 3
}
