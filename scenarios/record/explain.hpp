// Why a transfer took as long as it did, from a run's transfers.jsonl.zst and events.jsonl.zst.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// From `at` on the transfer had this rate.
struct explained_step {
  duration at{};
  double bits_per_second = 0;
  std::string why;           ///< 'slow_start', 'window', 'loss', 'cap', 'link', ...
  std::string link;          ///< of 'link'
  std::uint64_t sharers = 0; ///< transfers on the link, this one among them
};

struct explained_transfer {
  std::uint64_t number = 0;
  std::string from, to; ///< 'home-3#0/2'
  std::string type;
  std::uint64_t bytes = 0;
  duration sent{}, begun{}, left{}, arrives{}, round_trip{};
  bool cut = false;
  std::vector<explained_step> steps;
};

/// Time that transfers spent for one reason.
struct time_share {
  std::string why; ///< in words: 'slow start', 'uplink of home-3'
  duration time{};
};

struct explanation {
  explained_transfer transfer;
  std::vector<time_share> shares; ///< from `sent` to `arrives`, longest first
  std::vector<explained_transfer>
      others; ///< at the same time on the link that held it back longest
};

/// Errors: no such file or transfer; what to do about it.
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
  std::vector<time_share> shares;       ///< of all its transfers together
  std::vector<explained_transfer> all;  ///< as they are in the file
  std::vector<explained_transfer> last; ///< the last to arrive, latest first, at most 5
};

/// The rounds that averaged the gradients of `epoch`, in the order of their ends.
result<std::vector<round_explanation>> explain_round(const std::filesystem::path& run,
                                                     std::uint64_t epoch);
std::string to_text(const std::vector<round_explanation>& rounds);
std::string to_json(const std::vector<round_explanation>& rounds);

} // namespace shoal::scenarios
