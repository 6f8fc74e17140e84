// The cases of a run: one for each accused member. A case has the proof, the hosts that banned the
// member, and its rounds that ended badly. The observer `cases` writes the events to cases.jsonl,
// one line each:
//   {"at_ns":1,"member":"m","what":"banned","by":"home-3","text":"two votes in one
//   round","proof":"…"}
// The page and `shoal explain --case` read them again.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

inline constexpr const char* cases_file = "cases.jsonl";

enum class case_what : std::uint8_t {
  accused, ///< `by` says in `text` that the member sent what no correct member sends
  proven,  ///< `by` has two contradicting statements of the member
  banned,  ///< `by` banned the member: `text` names the deed, `proof` is the proof
  round,   ///< a round of the member did not end well: `text` says how
};
inline constexpr std::array<std::string_view, 4> case_what_names{"accused", "proven", "banned",
                                                                 "round"};

struct case_event {
  duration at{};
  std::string member; ///< the name of its host
  case_what what = case_what::accused;
  std::string by; ///< the name of a host; empty for a round
  std::string text;
  std::string proof; ///< one line, which 'shoal keys revoke --evidence' takes; empty: none
  bool operator==(const case_event&) const = default;
};

/// One line without its newline, and back. Errors: not such a line.
std::string to_json(const case_event& what);
result<case_event> case_event_from(std::string_view line);

/// The case against one member.
struct case_file {
  struct report {
    duration at{};
    std::string by;
    bool operator==(const report&) const = default;
  };
  struct accusation {
    std::string why;
    std::vector<report> by; ///< in the order of time, each host once
    bool operator==(const accusation&) const = default;
  };
  struct bad_round {
    duration at{};
    std::string how;
    bool operator==(const bad_round&) const = default;
  };

  std::string member;
  duration begun{};
  std::vector<accusation> accusations; ///< in the order of time
  std::vector<report> proven;          ///< the hosts that saw both statements themselves
  std::vector<report> bans;
  std::string deed, proof; ///< the first ban names both
  std::vector<bad_round> rounds;
  bool operator==(const case_file&) const = default;
};

/// Memory: bounded.
class case_book {
public:
  static constexpr std::size_t most_cases = 4096, most_reports = 20'000, most_reasons = 64,
                               most_rounds = 1000;

  /// Returns false if the event repeats an earlier one, or a limit is reached.
  bool add(const case_event& what);
  bool has(std::string_view member) const { return numbers_.contains(member); }
  /// The cases in the order of their first events. Case N of the user is all()[N - 1].
  const std::vector<case_file>& all() const noexcept { return all_; }

private:
  std::vector<case_file> all_;
  std::map<std::string, std::size_t, std::less<>> numbers_; // by member
};

} // namespace shoal::scenarios
