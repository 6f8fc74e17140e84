// rounds.csv: which samples went into which averaged gradient, as the members of the rounds saw it.
// It is made from what peers observe and never from the data shard, so that it can convict the
// ledger.
//
//   epoch,group,peer,first,count,parts_included,parts_total
//   1,00..2a,3,0,64,4,4      64 samples of peer 3 are in 4 of the 4 parts of a round of epoch 1
//   1,00..2a,7,64,8,0,4      peer 7 took part and delivered nothing
//
// The epoch is that of the state that the gradients were computed on, as in ledger.csv: the first
// round is of epoch 0 and makes epoch 1. Rounds that no member finished (failed) are not in it.
// parts_total is the number of part_outcomes of the first member that finished, which must be the
// parts_total of its commit.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/result.hpp"

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {
class observation;
}

namespace shoal::scenarios {

inline constexpr std::string_view rounds_header =
    "epoch,group,peer,first,count,parts_included,parts_total";

class rounds_recorder {
public:
  /// An observation of `who`'s host; those that are not about rounds are ignored.
  void observe(actors::peer_id who, const actors::observation& what);

  /// Ascending by epoch, then group, then member.
  void write(std::ostream& out) const;
  /// Errors: the file cannot be written whole (says the path).
  result<void> write(const std::string& path) const;

private:
  /// Kept for as long as the run lasts, so it is small: 24 bytes a member, 16 for each range of its
  /// samples.
  struct contribution {
    actors::peer_id peer = 0;
    std::uint32_t member = 0, parts = 0; // parts that hold its data
    std::uint32_t first = 0, count = 0;  // of its ranges in round::samples
  };
  struct round {
    std::uint64_t epoch = 0;
    std::uint32_t parts_total = 0; // 0: nobody finished
    std::vector<contribution> members;
    std::vector<actors::sample_range> samples;

    contribution& of(std::uint32_t member);
  };

  std::map<actors::group_id, round> rounds_;
};

} // namespace shoal::scenarios
