// rounds.csv: the samples in each averaged gradient, as the members of the rounds report them. The
// file is made from observations of peers, never from the data shard, so that it can contradict the
// ledger.
//
//   epoch,group,peer,first,count,parts_included,parts_total
//   1,00..2a,3,0,64,4,4      64 samples of peer 3 are in 4 of the 4 parts of a round of epoch 1
//   1,00..2a,7,64,8,0,4      peer 7 took part and delivered nothing
//
// The epoch is that of the state at which the gradients were computed, as in ledger.csv. The first
// round has epoch 0 and makes epoch 1. Rounds that no member finished are left out. parts_total is
// the number of part_outcomes of the first member that finished. It must be the parts_total of that
// member's commit. In a pipeline (actors/pipeline/), a batch is a round, its trainers are the
// members, and the hops are the parts.
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
  /// Takes an observation of the host of `who`. Observations that are not about rounds are ignored.
  void observe(actors::peer_id who, const actors::observation& what);

  /// The rows, ascending by epoch, then group, then member.
  void write(std::ostream& out) const;
  /// Errors: the file cannot be written completely. The message has the path.
  result<void> write(const std::string& path) const;

private:
  /// Kept for the whole run, so the entry is small: 24 bytes a member, and 16 for each range of its
  /// samples.
  struct contribution {
    actors::peer_id peer = 0;
    std::uint32_t member = 0, parts = 0; // parts that hold its data
    std::uint32_t first = 0, count = 0;  // the member's ranges in round::samples
  };
  struct round {
    std::uint64_t epoch = 0;
    std::uint32_t parts_total = 0; // 0: no member finished
    std::vector<contribution> members;
    std::vector<actors::sample_range> samples;

    contribution& of(std::uint32_t member);
  };

  std::map<actors::group_id, round> rounds_;
};

} // namespace shoal::scenarios
