// The Byzantine-tolerant rounds of a run, as its hosts observe them. A round has its audits,
// accusations and verdicts, and each contribution's distance from the result. The observer
// `guard_rounds` writes a line of guard.jsonl whenever more is known about a round. The last line
// of a round counts:
//   {"at_ns":1,"group":"ab…","epoch":31,"committed":16,"audits":[["home-1","lab-2","wrong"]],
//    "accusations":[["home-1","lab-2","gradient"]],"verdicts":[["lab-2","gradient"]],
//    "distances":[["home-0",1.25]]}
// The page reads them again.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::scenarios {

inline constexpr const char* guard_file = "guard.jsonl";

struct guarded_round {
  struct audit {
    std::string validator, target;
    std::string found; ///< 'right' or 'wrong'; empty: not reported
    bool operator==(const audit&) const = default;
  };
  struct accusation {
    std::string accuser, accused;
    std::string what; ///< a case_kind of actors/trust/verdict.hpp
    bool operator==(const accusation&) const = default;
  };
  struct lost_case {
    std::string culprit, what;
    bool operator==(const lost_case&) const = default;
  };
  duration at{}; ///< when this was known
  std::string group;
  std::uint64_t epoch = 0;
  std::uint32_t committed = 0; ///< members that committed to a contribution
  std::vector<audit> audits;
  std::vector<accusation> accusations;
  std::vector<lost_case> verdicts;
  std::vector<std::pair<std::string, double>> distances; ///< by member; not finite: unknown
  bool operator==(const guarded_round&) const = default;

  bool is_eventful() const noexcept { return !accusations.empty() || !verdicts.empty(); }
};

/// One line without its newline, and back. Errors: not such a line.
std::string to_json(const guarded_round& what);
result<guarded_round> guarded_round_from(std::string_view line);

/// Memory: bounded. The latest rounds, and the latest of those with accusations.
class guard_book {
public:
  static constexpr std::size_t most_rounds = 400, most_eventful = 200;

  /// Replaces what was known about the round. In a cluster each host tells what it saw, so the
  /// lists of several hosts are united.
  void add(guarded_round what);
  /// In the order in which the rounds were first heard of.
  const std::deque<guarded_round>& all() const noexcept { return all_; }

private:
  void drop_oldest();

  std::deque<guarded_round> all_;
  std::size_t eventful_ = 0;
};

} // namespace shoal::scenarios
