// Explains how long a transfer took, from a run's transfers.jsonl.zst and events.jsonl.zst.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// The rate of a transfer from the time `at` on.
struct explained_step {
  duration at{};
  double bits_per_second = 0;
  std::string why;           ///< 'slow_start', 'window', 'loss', 'cap', 'link', ...
  std::string link;          ///< the link's name, if `why` is 'link'
  std::uint64_t sharers = 0; ///< number of transfers on the link, this transfer included
};

struct explained_transfer {
  std::uint64_t number = 0;
  std::string from, to; ///< actor names like 'home-3#0/2'
  std::string type;
  std::uint64_t bytes = 0;
  duration sent{}, begun{}, left{}, arrives{}, round_trip{};
  bool cut = false;
  std::vector<explained_step> steps;
};

/// Calls `each` with the transfers of a run, in the order of the file. Errors: there is no such
/// directory or file, or a line cannot be read.
result<void> read_transfers(const std::filesystem::path& run,
                            const std::function<void(explained_transfer)>& each);

/// The time that transfers spent at one limit.
struct time_share {
  std::string why; ///< the limit in words: 'slow start', 'uplink of home-3'
  duration time{};
};

struct explanation {
  explained_transfer transfer;
  std::vector<time_share> shares; ///< from `sent` to `arrives`, longest first
  /// other transfers at that time on the link that limited this transfer longest
  std::vector<explained_transfer> others;
};

/// Errors: there is no such file or transfer. The message says what to do about it.
result<explanation> explain_transfer(const std::filesystem::path& run, std::uint64_t number);
std::string to_text(const explanation& what);
std::string to_json(const explanation& what);

struct round_explanation {
  std::uint64_t epoch = 0;
  std::string group;
  std::string outcome, reason;
  duration started{}, ended{};
  std::vector<std::string> members;
  std::uint64_t transfers = 0, bytes = 0;
  /// The least time by the rates of the lines (round_bound.hpp); empty if it is not known.
  std::optional<duration> bound;
  std::vector<time_share> shares;       ///< shares of all transfers of the round together
  std::vector<explained_transfer> all;  ///< all transfers of the round, in the order of the file
  std::vector<explained_transfer> last; ///< the last to arrive, latest first, at most 5
};

/// Explains the rounds that averaged the gradients of `epoch`, in the order of their ends.
result<std::vector<round_explanation>> explain_round(const std::filesystem::path& run,
                                                     std::uint64_t epoch);
std::string to_text(const std::vector<round_explanation>& rounds);
std::string to_json(const std::vector<round_explanation>& rounds);

} // namespace shoal::scenarios
