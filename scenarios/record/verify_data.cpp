#include "scenarios/record/verify_data.hpp"

#include "kernels/base/interval_map.hpp"
#include "kernels/base/text_fields.hpp"
#include "scenarios/record/ledger_file.hpp"
#include "scenarios/record/rounds_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

namespace shoal::scenarios {

namespace {

using actors::index_block_size;

// A contribution to a round: (epoch, peer, group).
using use_key = std::tuple<std::uint64_t, std::uint64_t, std::string>;
using parts = std::pair<std::uint32_t, std::uint32_t>; // included, total

struct final_state {
  enum class kind : std::uint8_t { leased, returned, used };
  kind state = kind::returned;
  std::uint64_t peer = 0;
  use_key key;    // for used ranges
  parts included; // for used ranges
  std::size_t line = 0;
  bool operator==(const final_state&) const = default;
};

struct verifier {
  data_report report;
  std::optional<std::uint64_t> high_water;
  interval_map<final_state> states;
  interval_set doubtful;
  std::map<use_key, interval_set> repeated;
  std::map<use_key, interval_map<parts>> disputed;
  std::map<use_key, interval_map<parts>> used; // rounds.csv
  interval_set known_by_rounds;                // used, and doubtful in the ledger
  std::uint64_t last_epoch = 0;

  void error(std::string what) {
    if (report.errors.size() < data_report::max_errors)
      report.errors.push_back(std::move(what));
    else
      ++report.errors_left_out;
  }

  void read_ledger(std::istream& in);
  void read_rounds(std::istream& in);
  void check_uses();
  void count_doubtful();
  void check_states();
};

// Splits a line at commas. False unless there are exactly N fields.
template <std::size_t N>
bool split(std::string_view line, std::array<std::string_view, N>& fields) {
  for (std::size_t i = 0; i < N; ++i) {
    const auto comma = line.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == N)) return false;
    fields[i] = line.substr(0, comma);
    if (comma != std::string_view::npos) line.remove_prefix(comma + 1);
  }
  return true;
}

bool is_group(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// The fields that a used range has in both files.
bool read_use(std::string_view epoch, std::string_view peer, std::string_view group,
              std::string_view included, std::string_view total, use_key& key, parts& p) {
  auto& [e, who, name] = key;
  name = group;
  return read_number(epoch, e) && read_number(peer, who) && is_group(group) &&
         read_number(included, p.first) && read_number(total, p.second) && p.second > 0 &&
         p.first <= p.second;
}

bool read_range(std::string_view first, std::string_view count, std::uint64_t& from,
                std::uint64_t& to) {
  std::uint64_t n = 0;
  if (!read_number(first, from) || !read_number(count, n)) return false;
  if (n > std::numeric_limits<std::uint64_t>::max() - from) return false;
  to = from + n;
  return true;
}

void verifier::read_ledger(std::istream& in) {
  std::string line;
  std::size_t n = 1;
  if (!std::getline(in, line) || line != ledger_header)
    return error("ledger.csv:1: is not the header of a ledger, or the file cannot be read");
  std::uint64_t next = 0;
  bool in_events = false;
  struct gap {
    std::uint64_t first, end;
    std::size_t line;
  };
  std::vector<gap> unissued;
  while (std::getline(in, line)) {
    const auto where = fmt::format("ledger.csv:{}: ", ++n);
    std::array<std::string_view, 8> f;
    std::uint64_t first = 0, end = 0;
    if (!split(line, f) || !read_range(f[0], f[1], first, end)) {
      error(where + "is not a row of a ledger");
      continue;
    }
    if (high_water) error(where + "follows the row that ends the ledger");
    const auto state = f[2];
    if (state == "end") {
      high_water = first;
      continue;
    }
    if (first == end) {
      error(where + "has no indices");
      continue;
    }
    use_key key;
    parts included;
    // The indices need not be known.
    if (state == "doubtful") {
      in_events = true;
      doubtful.insert(first, end);
      continue;
    }
    const bool is_event = state == "repeated" || state == "disputed";
    if ((is_event || state == "committed" || state == "partial") &&
        !read_use(f[3], f[4], f[5], f[6], f[7], key, included)) {
      error(where + "does not say epoch, peer, group and parts");
      continue;
    }
    if (is_event) {
      in_events = true;
      if (first >= next || end > next) error(where + "reports indices that were never issued");
      if (state == "repeated") {
        repeated[key].insert(first, end);
        report.repeated_reported += end - first;
      } else {
        disputed[key].assign(first, end, included);
        report.disputed_reported += end - first;
      }
      continue;
    }
    if (in_events) error(where + "is a state behind the events");
    if (first < next)
      error(fmt::format("{}index {} has a state already", where, first));
    else if (first > next)
      error(fmt::format("{}indices {} to {} have no state", where, next, first - 1));
    if (end > next) next = end;
    if (state == "unissued") {
      if (end % index_block_size != 0) unissued.push_back({first, end, n});
      continue;
    }

    final_state s;
    s.line = n;
    const auto size = end - first;
    report.indices += size;
    if (state == "leased") {
      s.state = final_state::kind::leased;
      if (!read_number(f[4], s.peer)) error(where + "does not say who leases");
      report.leased += size;
    } else if (state == "returned") {
      report.returned += size;
    } else if (state == "committed" || state == "partial") {
      s.state = final_state::kind::used;
      s.peer = std::get<1>(key);
      s.key = key;
      s.included = included;
      const bool whole = included.first == included.second;
      if (whole != (state == "committed") || included.first == 0)
        error(fmt::format("{}{} of {} parts is not '{}'", where, included.first, included.second,
                          state));
      (whole ? report.committed : report.partial) += size;
    } else {
      error(fmt::format("{}unknown state '{}'", where, state));
    }
    states.assign(first, end, s);
  }
  // The index block of a primary that is gone can have gaps: its peers may have claimed single
  // samples.
  for (const auto& gap : unissued)
    if (!doubtful.covers(std::max(gap.first, gap.end / index_block_size * index_block_size),
                         gap.end))
      error(fmt::format("ledger.csv:{}: does not end where an index block begins", gap.line));
  if (!high_water)
    error("ledger.csv: the last row is missing; the file was cut");
  else if (*high_water != next)
    error(fmt::format("ledger.csv: indices up to {} were issued, the rows end at {}", *high_water,
                      next));
}

void verifier::read_rounds(std::istream& in) {
  std::string line;
  std::size_t n = 1;
  if (!std::getline(in, line) || line != rounds_header)
    return error("rounds.csv:1: is not the header of a rounds file, or the file cannot be read");
  while (std::getline(in, line)) {
    ++n;
    std::array<std::string_view, 7> f;
    std::uint64_t first = 0, end = 0;
    use_key key;
    parts included;
    if (!split(line, f) || !read_range(f[3], f[4], first, end) || first == end ||
        !read_use(f[0], f[2], f[1], f[5], f[6], key, included)) {
      error(fmt::format("rounds.csv:{}: is not a row of a rounds file", n));
      continue;
    }
    auto& ranges = used[key];
    if (!ranges.pieces(first, end).empty())
      error(fmt::format("rounds.csv:{}: this round has index {} of this peer already", n,
                        ranges.pieces(first, end).front().first));
    ranges.assign(first, end, included);
    last_epoch = std::max(last_epoch, std::get<0>(key));
  }
}

std::string describe(const use_key& key, std::uint64_t first, std::uint64_t end) {
  return fmt::format("samples {} to {} of peer {} in epoch {} (group {})", first, end - 1,
                     std::get<1>(key), std::get<0>(key), std::get<2>(key).substr(0, 8));
}

void verifier::check_uses() {
  for (const auto& [key, ranges] : used) {
    const auto said_repeated = repeated.find(key);
    const auto said_disputed = disputed.find(key);
    for (const auto& use : ranges.pieces()) {
      // No part contains it.
      if (use.value.first == 0) continue;
      auto at = use.first;
      auto fail = [&, &key = key](std::uint64_t first, std::uint64_t end, std::string_view why) {
        for (const auto& known : doubtful.pieces(first, end))
          known_by_rounds.insert(known.first, known.end);
        for (const auto& p : doubtful.missing(first, end))
          error(fmt::format("rounds.csv: {} were used, and the ledger {}",
                            describe(key, p.first, p.end), why));
      };
      for (const auto& p : states.pieces(use.first, use.end)) {
        if (at < p.first) fail(at, p.first, "does not know them");
        at = p.end;
        const auto& s = p.value;
        if (s.state == final_state::kind::used && s.key == key) {
          if (s.included == use.value) continue;
          const bool explained =
              said_disputed != disputed.end() && said_disputed->second.covers(p.first, p.end);
          if (!explained) fail(p.first, p.end, fmt::format("says other parts in line {}", s.line));
        } else if (said_repeated != repeated.end() &&
                   said_repeated->second.covers(p.first, p.end)) {
          // used twice, and reported
        } else if (s.state == final_state::kind::leased && s.peer == std::get<1>(key) &&
                   std::get<0>(key) == last_epoch) {
          report.in_flight += p.size();
        } else {
          fail(p.first, p.end, fmt::format("has something else in line {}", s.line));
        }
      }
      if (at < use.end) fail(at, use.end, "does not know them");
    }
  }
}

void verifier::count_doubtful() {
  interval_map<std::uint32_t> rounds; // number of rounds that used an index
  for (const auto& [key, ranges] : used)
    for (const auto& use : ranges.pieces())
      if (use.value.first > 0)
        for (const auto& p : known_by_rounds.pieces(use.first, use.end))
          rounds.update(p.first, p.end,
                        [](std::uint64_t, std::uint64_t, std::uint32_t& count) { ++count; });
  for (const auto& p : rounds.pieces())
    (p.value > 1 ? report.doubtful_repeated : report.doubtful_used) += p.size();
}

void verifier::check_states() {
  std::set<std::uint64_t> epochs;
  for (const auto& p : states.pieces()) {
    if (p.value.state != final_state::kind::used) continue;
    epochs.insert(std::get<0>(p.value.key));
    const auto round = used.find(p.value.key);
    auto at = p.first;
    if (round != used.end())
      for (const auto& use : round->second.pieces(p.first, p.end)) {
        if (use.value.first == 0 || use.first != at) break;
        at = use.end;
      }
    if (at < p.end)
      error(fmt::format("ledger.csv:{}: {} are final, but no such round used them", p.value.line,
                        describe(p.value.key, at, p.end)));
  }
  report.epochs = epochs.size();
}

} // namespace

data_report verify_data(std::istream& ledger, std::istream& rounds) {
  verifier v;
  v.read_ledger(ledger);
  v.read_rounds(rounds);
  v.check_uses();
  v.count_doubtful();
  v.check_states();
  return std::move(v.report);
}

data_report verify_data(const std::string& run_directory) {
  std::ifstream ledger(run_directory + "/ledger.csv", std::ios::binary);
  std::ifstream rounds(run_directory + "/rounds.csv", std::ios::binary);
  return verify_data(ledger, rounds);
}

} // namespace shoal::scenarios
